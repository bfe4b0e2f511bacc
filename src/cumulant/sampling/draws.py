"""The draws of several chains, kept apart so that they can be compared."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.sampling.diagnostics import effective_sample_size, split_r_hat

__all__ = ["Draws"]


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of Markov chains, shape ``(chains, draws, variables)``, and how they were made.

    ``np.asarray(draws)`` puts the chains one after the other: ``(chains * draws, variables)``.

    Attributes
    ----------
    values : array (chains, draws, variables)
    method : str
        The name of the sampler.
    settings : dict
        What it ran with: `seed`, `burn_in`, `thin`, and what else it has to say (a bound on the bias of its decisions).

    Examples
    --------
    >>> draws = Draws(np.random.default_rng(0).normal(size=(4, 1000, 2)), "independent")
    >>> draws.mean().shape, bool(draws.r_hat().max() < 1.01)
    ((2,), True)
    """

    values: np.ndarray
    method: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def n_chains(self) -> int:
        """How many chains there are."""
        return self.values.shape[0]

    @property
    def flat(self) -> np.ndarray:
        """All draws, chain after chain: shape (chains * draws, variables)."""
        return self.values.reshape(len(self), *self.values.shape[2:])

    def __array__(self, dtype=None, copy=None):
        return np.array(self.flat, dtype=dtype) if copy else np.asarray(self.flat, dtype=dtype)

    def __len__(self):
        return self.values.shape[0] * self.values.shape[1]

    def __repr__(self):
        chains, draws = self.values.shape[:2]
        return f"Draws({chains} chains of {draws}, {self.values.shape[2:]} each, by {self.method!r})"

    def of(self, statistic: Callable[[np.ndarray], Any] | None = None) -> np.ndarray:
        """A function of the states ``(..., variables)`` at every draw: (chains, draws, ...). The states without one."""
        if statistic is None:
            return self.values
        found = np.asarray(statistic(self.flat))
        if found.shape[:1] != (len(self),):
            raise ValueError(f"statistic must give one row for each of the {len(self)} states; got shape {found.shape}")
        return found.reshape(*self.values.shape[:2], *found.shape[1:])

    def mean(self, statistic: Callable[[np.ndarray], Any] | None = None) -> Any:
        """The mean of a statistic over all draws."""
        return self.of(statistic).mean(axis=(0, 1), dtype=np.float64)

    def r_hat(self, statistic: Callable[[np.ndarray], Any] | None = None, *, rank: bool = False) -> Any:
        """`split_r_hat` of a statistic, or of each variable."""
        return split_r_hat(self.of(statistic), rank=rank)

    def effective_sample_size(self, statistic: Callable[[np.ndarray], Any] | None = None, *, rank: bool = False) -> Any:
        """`effective_sample_size` of a statistic, or of each variable."""
        return effective_sample_size(self.of(statistic), rank=rank)

    def standard_error(self, statistic: Callable[[np.ndarray], Any] | None = None) -> Any:
        """``sd / sqrt(effective sample size)``: of `mean`, if the chains have forgotten where they started."""
        values = np.asarray(self.of(statistic), dtype=np.float64)
        return values.std(axis=(0, 1), ddof=1) / np.sqrt(effective_sample_size(values))

    def to_arviz(self, name: str = "x") -> Any:
        """The draws as the posterior variable `name` of ArviZ: `InferenceData` (0.x) or `DataTree` (1.x)."""
        try:
            import arviz
        except ImportError as problem:
            raise ImportError("to_arviz needs ArviZ: pip install arviz") from problem
        posterior = {name: self.values}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict({"posterior": posterior})
        return arviz.from_dict(posterior=posterior)
