"""Dirichlet distributions of rows and of tables: exact draws in log space, and tables as marginals and rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from cumulant import checks, randomness


class DirichletFactors(NamedTuple):
    """Concentrations of the marginal ``(..., K_x)`` and of the rows ``(..., K_x, K_y)``."""

    marginal: np.ndarray
    rows: np.ndarray


def log_dirichlet(concentration: Any, shape: int | tuple[int, ...] = (), rng: Any = None) -> np.ndarray:
    """Logarithms of Dirichlet draws: shape ``(*shape, *batch, K)`` for concentrations ``(*batch, K)``.

    The logarithm of a Gamma(a) variate is that of a Gamma(a + 1) variate plus ``log(U) / a``, ``U`` uniform, so that
    coordinates of ``e^-700`` and less, which small concentrations give, are finite numbers (NumPy's draws are then
    zero, and divergences infinite).

    >>> logs = log_dirichlet([0.01, 0.01, 0.01], 4, rng=0)
    >>> bool(np.isfinite(logs).all()), np.exp(logs).sum(axis=-1).round(12).tolist()
    (True, [1.0, 1.0, 1.0, 1.0])
    """
    a = checks.real_array("concentration", concentration)
    if a.ndim < 1 or not np.all(a > 0):
        raise ValueError(f"concentration must be positive numbers along the last axis; got {concentration!r}")
    generator = randomness.generator(rng)
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    shape = tuple(checks.whole("each of shape", size, 0) for size in sizes)
    full = (*shape, *a.shape)
    logs = np.log(generator.standard_gamma(np.broadcast_to(a + 1.0, full))) - generator.standard_exponential(full) / a
    return logs - logsumexp(logs, axis=-1, keepdims=True)


def dirichlet_factorize(gamma: Any) -> DirichletFactors:
    """A Dirichlet table as a Dirichlet marginal and independent Dirichlet rows.

    ``P ~ Dir(gamma)`` on ``K_x x K_y`` tables exactly when ``p_X ~ Dir(row sums of gamma)`` and ``p_{Y|x} ~
    Dir(gamma_x)``, all independent (Le Priol 2021, theorem 4.C.1, which writes the sum over the other index).

    >>> dirichlet_factorize([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]]).marginal
    array([6. , 1.5])
    """
    found = checks.real_array("gamma", gamma)
    if found.ndim < 2 or not np.all(found > 0):
        raise ValueError(f"gamma must be tables (..., K_x, K_y) of positive numbers; got {gamma!r}")
    return DirichletFactors(found.sum(axis=-1), found)
