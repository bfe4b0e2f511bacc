"""Draws of chains or particles, weighted or not, with the names of their variables."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import files
from cumulant.sampling.diagnostics import (
    effective_sample_size,
    normalised,
    split_r_hat,
    weighted_sample_size,
)


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of Markov chains or particles, shape ``(chains, draws, ...)``, and how they were made.

    ``np.asarray(draws)`` puts the chains one after the other: ``(chains * draws, ...)``. With `log_weights` the draws
    are independent and weighted: means, standard errors and effective sizes use the weights.

    Attributes
    ----------
    values : array (chains, draws, ...)
    method : str
        The name of the sampler.
    settings : dict
        What it ran with: `seed`, `burn_in`, `thin`, and what else it reports (a bound on the bias of its decisions).
    variables : mapping of str to shape, optional
        The names of the variables on the last axis and the shape of each: ``draws["mu"]`` has that variable.
    log_weights : array (chains, draws), optional
        Logarithms of weights, up to a constant.
    log_normaliser : float, optional
        An estimate of ``log Z`` that came with the draws, and `log_normaliser_error`, its standard error.
    ancestors : array (steps, chains, draws), optional
        For particles that were resampled: the index of the parent of each at every step.

    Examples
    --------
    >>> draws = Draws(np.random.default_rng(0).normal(size=(4, 1000, 2)), "independent", variables={"a": (), "b": ()})
    >>> draws.mean().shape, bool(draws.r_hat().max() < 1.01), draws["b"].shape
    ((2,), True, (4, 1000))
    >>> tilted = Draws(draws.values, "independent", log_weights=draws.values[:, :, 0])  # weights exp(a): the mean is 1
    >>> bool(abs(tilted.mean()[0] - 1.0) < 4 * tilted.standard_error()[0])
    True
    """

    values: np.ndarray
    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    variables: Mapping[str, tuple[int, ...]] | None = None
    log_weights: np.ndarray | None = None
    log_normaliser: float | None = None
    log_normaliser_error: float | None = None
    ancestors: np.ndarray | None = None

    def __post_init__(self):
        if self.log_weights is not None and np.shape(self.log_weights) != self.values.shape[:2]:
            raise ValueError(
                f"log_weights must have one number for each draw, shape {self.values.shape[:2]}; "
                f"got {np.shape(self.log_weights)}"
            )
        if self.variables is not None:
            size = sum(math.prod(shape) for shape in self.variables.values())
            if self.values.ndim != 3 or size != self.values.shape[2]:
                raise ValueError(f"variables name {size} coordinates; the draws have shape {self.values.shape}")

    @property
    def flat(self) -> np.ndarray:
        """All draws, chain after chain: shape (chains * draws, ...)."""
        return self.values.reshape(len(self), *self.values.shape[2:])

    @property
    def weights(self) -> np.ndarray:
        """Weights ``(chains, draws)`` that sum to one: equal ones where there are none."""
        if self.log_weights is None:
            return np.full(self.values.shape[:2], 1.0 / len(self))
        return normalised(self.log_weights)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.flat, dtype=dtype) if copy else np.asarray(self.flat, dtype=dtype)

    def __len__(self):
        return self.values.shape[0] * self.values.shape[1]

    def __repr__(self):
        chains, draws = self.values.shape[:2]
        weighted = ", weighted" if self.log_weights is not None else ""
        return f"Draws({chains} chains of {draws}, {self.values.shape[2:]} each, by {self.method!r}{weighted})"

    def __getitem__(self, name: str) -> np.ndarray:
        """One variable: (chains, draws, *shape)."""
        start = 0
        for each, shape in (self.variables or {}).items():
            size = math.prod(shape)
            if each == name:
                return self.values[:, :, start : start + size].reshape(*self.values.shape[:2], *shape)
            start += size
        raise KeyError(f"there is no variable {name!r}; there are {list(self.variables or {})!s:.200}")

    def save(self, path: str | os.PathLike) -> Path:
        """Write the draws, their weights and what is known of ``log Z`` to a file; `load` reads it.

        >>> import tempfile
        >>> draws = Draws(np.zeros((2, 3, 1)), "none", {"seed": 0}, {"a": ()}, np.zeros((2, 3)), 1.5, 0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = Draws.load(draws.save(f"{folder}/draws"))
        >>> again["a"].shape, again.log_normaliser, again.settings
        ((2, 3), 1.5, {'seed': 0})
        """
        arrays = {name: getattr(self, name) for name in ("values", "log_weights", "ancestors")}
        plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in self.settings.items()}
        names = None if self.variables is None else {name: list(shape) for name, shape in self.variables.items()}
        about = {
            "method": self.method,
            "settings": plain,
            "variables": names,
            "log_normaliser": self.log_normaliser,
            "log_normaliser_error": self.log_normaliser_error,
        }
        return files.save(path, "draws", {name: each for name, each in arrays.items() if each is not None}, about)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Draws":
        """Draws that `save` wrote."""
        saved = files.load(path, "draws")
        names = saved.settings.pop("variables")
        variables = None if names is None else {name: tuple(shape) for name, shape in names.items()}
        return cls(**saved.arrays, **saved.settings, variables=variables)

    def of(self, statistic: Callable[[np.ndarray], Any] | str | None = None) -> np.ndarray:
        """A function of the states at every draw, (chains, draws, ...); the variable of a name; the states themselves
        without either.
        """
        if statistic is None:
            return self.values
        if isinstance(statistic, str):
            return self[statistic]
        found = np.asarray(statistic(self.flat))
        if found.shape[:1] != (len(self),):
            raise ValueError(f"statistic must give one row for each of the {len(self)} states; got shape {found.shape}")
        return found.reshape(*self.values.shape[:2], *found.shape[1:])

    def mean(self, statistic: Callable[[np.ndarray], Any] | str | None = None) -> Any:
        """The mean of a statistic over all draws, weighted where there are weights."""
        values = self.of(statistic)
        if self.log_weights is None:
            return values.mean(axis=(0, 1), dtype=np.float64)
        return np.tensordot(self.weights, np.asarray(values, dtype=np.float64), axes=2)[()]

    def r_hat(self, statistic: Callable[[np.ndarray], Any] | str | None = None, *, rank: bool = False) -> Any:
        """`split_r_hat` of a statistic, or of each variable; refused for weighted draws."""
        if self.log_weights is not None:
            raise ValueError("R-hat compares chains: weighted draws have none; use effective_sample_size()")
        return split_r_hat(self.of(statistic), rank=rank)

    def effective_sample_size(
        self, statistic: Callable[[np.ndarray], Any] | str | None = None, *, rank: bool = False
    ) -> Any:
        """`effective_sample_size` of a statistic, or of each variable; of weighted draws `weighted_sample_size`."""
        if self.log_weights is not None:
            return weighted_sample_size(self.log_weights)
        return effective_sample_size(self.of(statistic), rank=rank)

    def standard_error(self, statistic: Callable[[np.ndarray], Any] | str | None = None) -> Any:
        """Of `mean`: ``sd / sqrt(effective sample size)``, if the chains have forgotten where they started. For weights
        that sum to one, ``sqrt(sum w^2 (f - mean)^2)`` (Hesterberg 1995), if no large weight was missed.
        """
        values = np.asarray(self.of(statistic), dtype=np.float64)
        if self.log_weights is None:
            return values.std(axis=(0, 1), ddof=1) / np.sqrt(effective_sample_size(values))
        return np.sqrt(np.tensordot(self.weights**2, (values - self.mean(statistic)) ** 2, axes=2))[()]

    def to_arviz(self, name: str = "x") -> Any:
        """The draws for ArviZ: `InferenceData` (0.x) or `DataTree` (1.x), one posterior variable for each name, or one
        called `name` where the variables have none. Weighted draws are refused: resample them first.
        """
        if self.log_weights is not None:
            raise ValueError("ArviZ takes draws without weights: resample them first (sampling.resample)")
        try:
            import arviz
        except ImportError as problem:
            raise ImportError("to_arviz needs ArviZ: pip install arviz") from problem
        named = self.variables and list(self.variables) != ["x"]
        posterior = {each: self[each] for each in self.variables or ()} if named else {name: self.values}
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict({"posterior": posterior})
        return arviz.from_dict(posterior=posterior)
