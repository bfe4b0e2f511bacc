"""Random cause-effect models: dense or sparse Dirichlet distributions on the cause and on each row of the effect."""

from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.causal.categorical import CategoricalSCM
from cumulant.causal.dirichlet import log_dirichlet


def sample_reference(K: int | tuple[int, int], n: int, prior: Any = "dense", rng: Any = None) -> CategoricalSCM:
    """`n` independent models with ``p_X ~ Dir(a)`` and independent rows ``p_{Y|x} ~ Dir(b)``.

    Parameters
    ----------
    K : int or pair of int
        The number of values, or ``(K_x, K_y)``.
    n : int
    prior : {"dense", "sparse"} or pair of float
        ``"dense"``: ``a = b = 1``. The cause can then be told from the effect (`direction_log_odds`). ``"sparse"``:
        ``a = 1``, ``b = 1 / K_y``, which makes the joint table ``Dir(1 / K_y)`` over all cells: for ``K_x = K_y``
        symmetric in cause and effect (the likelihood-equivalent prior of Buntine 1991, called BDeu). A pair is
        ``(a, b)``.
    rng : int, numpy.random.Generator or None

    Examples
    --------
    >>> models = sample_reference(20, 100, "sparse", rng=0)
    >>> models.shape, models.sizes, bool(models.log_effect.min() < -100)
    ((100,), (20, 20), True)
    """
    sizes = _sizes(K)
    n, generator = checks.whole("n", n), randomness.generator(rng)
    a, b = concentrations(prior, sizes[1])
    cause = log_dirichlet(np.full(sizes[0], a), n, generator)
    return CategoricalSCM(cause, log_dirichlet(np.full(sizes[1], b), (n, sizes[0]), generator))


def concentrations(prior: Any, effects: int) -> tuple[float, float]:
    """``(a, b)`` of a prior on models whose effect has that many values."""
    if isinstance(prior, str):
        return (1.0, 1.0) if checks.choice("prior", prior, ("dense", "sparse")) == "dense" else (1.0, 1.0 / effects)
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise ValueError(f"prior must be 'dense', 'sparse' or a pair of concentrations; got {prior!r}")
    a, b = (float(checks.positive("a concentration of prior", each)) for each in prior)
    return a, b


def _sizes(K: Any) -> tuple[int, int]:
    pair = (K, K) if not isinstance(K, tuple | list) else tuple(K)
    if len(pair) != 2:
        raise ValueError(f"K must be a number of values, or a pair of them; got {K!r}")
    return checks.whole("K", pair[0], 2), checks.whole("K", pair[1], 2)
