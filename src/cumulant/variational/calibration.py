"""Simulation-based calibration: whether the fits of a model are as uncertain as they should be."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import chisquare

from cumulant import checks, randomness
from cumulant.sampling import Target
from cumulant.variational.fit import fit


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of true parameters among draws of the fits to data simulated from them.

    If every fit were the posterior, each rank would be uniform on ``0 ... draws`` (Talts and others 2018).

    Attributes
    ----------
    ranks : array (simulations, dim)
    draws : int
        How many draws each was ranked among.
    p_values : array (dim,)
        Of a chi-squared test that the ranks are uniform; coordinates of one simulation are not independent.
    coverage : dict
        The share of simulations whose parameter is inside the central interval of each level, by coordinate.
    verdicts : tuple of str
        How often a fit was said to be trusted, and so on.
    names : tuple of str
        The coordinates.
    """

    ranks: np.ndarray
    draws: int
    p_values: np.ndarray
    coverage: dict[float, np.ndarray]
    verdicts: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def calibrated(self) -> bool:
        """Whether no coordinate is rejected at the level 0.01, shared by all coordinates (Bonferroni)."""
        return bool(np.min(self.p_values) >= 0.01 / len(self.p_values))

    def __str__(self):
        worst = int(np.argmin(self.p_values))
        found = "calibrated" if self.calibrated else "not calibrated"
        shape = "" if self.calibrated else f", {self._shape(worst)}"
        return (
            f"{found} over {len(self.ranks)} simulations: least p-value {self.p_values[worst]:.2g} of "
            f"{self.names[worst]}{shape}; central 90 % intervals hold the truth in "
            f"{np.min(self.coverage[0.9]):.0%} to {np.max(self.coverage[0.9]):.0%}"
        )

    def _shape(self, coordinate: int) -> str:
        """What non-uniform ranks say: Talts and others (2018), section 4."""
        scaled = (self.ranks[:, coordinate] + 0.5) / (self.draws + 1) - 0.5
        # Both in standard errors under uniform ranks, whose variance is 1/12 and that of their squares 1/180.
        aside, spread = np.mean(scaled) * np.sqrt(12), (np.mean(scaled**2) - 1 / 12) * np.sqrt(180)
        if abs(aside) > abs(spread):
            return "whose fits are too low" if aside > 0 else "whose fits are too high"
        return "whose fits are too narrow" if spread > 0 else "whose fits are too wide"


def calibrate(
    simulate: Callable[[np.random.Generator], tuple[Any, Any]],
    target: Callable[[Any], Target],
    n: int = 200,
    *,
    draws: int = 99,
    rng: Any = 0,
    progress: Any = None,
    **settings: Any,
) -> Calibration:
    """Fit `n` data sets simulated from the prior, and rank each true parameter among draws of its fit.

    Parameters
    ----------
    simulate : callable
        ``simulate(generator)`` draws a parameter from the prior and data from the model at it: ``(parameter, data)``.
        The parameter is a vector in the coordinates of the target, or a dictionary of its variables in their own
        spaces.
    target : callable
        ``target(data)`` is the posterior of the data.
    n : int
        Simulations.
    draws : int
        Draws of each fit; ranks are among ``0 ... draws``.
    progress : callable, optional
        Called with the number of simulations done.
    **settings
        For `fit`.

    Examples
    --------
    >>> from cumulant import variational as vi
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> def simulate(generator):
    ...     z = generator.normal(size=2)
    ...     return z, X @ z + generator.normal(size=20)
    >>> calibrate(simulate, lambda y: vi.linear_regression(X, y), 100, rng=1).calibrated      # the fits are exact
    True
    """
    checks.takes("simulate", simulate, "generator")
    checks.takes("target", target, "data")
    checks.whole("n", n, least=10)
    checks.whole("draws", draws, least=4)
    seed = randomness.seed(rng)
    ranks, verdicts, names = [], [], ()
    for k in range(n):
        generator = np.random.default_rng([seed, k])
        parameter, data = simulate(generator)
        posterior = checks.instance("target(data)", target(data), Target, "a Target")
        found = fit(posterior, rng=int(generator.integers(2**31)), **settings)
        sample = found.sample(draws, generator)
        truth = _vector(parameter, sample.variables, sample.flat.shape[1])
        ranks.append(np.sum(sample.flat < truth, axis=0))
        verdicts.append(found.verdict)
        names = _names(sample.variables)
        if progress is not None:
            progress(k + 1)
    table = np.array(ranks)
    bins = max(2, min(20, n // 10))
    cells = np.minimum((table * bins) // (draws + 1), bins - 1)
    sizes = np.bincount((np.arange(draws + 1) * bins) // (draws + 1), minlength=bins)
    expected = n * sizes / (draws + 1)
    p_values = [chisquare(np.bincount(column, minlength=bins), expected).pvalue for column in cells.T]
    coverage = {level: _coverage(table, draws, level) for level in (0.5, 0.9)}
    return Calibration(table, draws, np.array(p_values), coverage, tuple(verdicts), names)


def _coverage(ranks: np.ndarray, draws: int, level: float) -> np.ndarray:
    outside = (1 - level) / 2 * (draws + 1)
    return np.mean((ranks >= outside) & (ranks < draws + 1 - outside), axis=0)


def _vector(parameter: Any, shapes: Any, size: int) -> np.ndarray:
    if isinstance(parameter, dict):
        missing = set(shapes) ^ set(parameter)
        if missing:
            raise ValueError(f"simulate must return the variables {list(shapes)}; got {list(parameter)}")
        parameter = np.concatenate([np.ravel(np.asarray(parameter[name], dtype=np.float64)) for name in shapes])
    vector = checks.real_array("the parameter of simulate", parameter, finite=False)
    if vector.shape != (size,):
        raise ValueError(f"simulate must return a parameter of {size} numbers; got shape {vector.shape}")
    return vector


def _names(shapes: Any) -> tuple[str, ...]:
    return tuple(
        name if not shape else f"{name}[{', '.join(map(str, index))}]"
        for name, shape in shapes.items()
        for index in np.ndindex(*shape)
    )
