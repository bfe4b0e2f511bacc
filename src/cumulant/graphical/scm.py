"""Structural causal models: each variable a function of its parents and of noise of its own."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np

from cumulant import randomness
from cumulant.graphical.graphs import parents_to_graph
from cumulant.sampling.chains import require_counts


def uniform_noise(rng: np.random.Generator, n: int) -> np.ndarray:
    """Independent uniform numbers on [0, 1): enough to make any distribution by its quantile function."""
    return rng.random(n)


@dataclass(frozen=True)
class Mechanism:
    """How one variable comes about: ``X_i = f_i(X_parents, U_i)``.

    Parameters
    ----------
    function : callable
        ``function(*parents, noise) -> array``: takes the draws of the parents in order, then the noise, each with draws
        on the first axis, and returns draws of the variable. It must be deterministic.
    parents : tuple
        The names of the parents.
    noise : callable
        ``noise(rng, n) -> array`` draws ``U_i``; uniform on [0, 1) unless given.
    """

    function: Callable[..., Any]
    parents: tuple[Hashable, ...] = ()
    noise: Callable[[np.random.Generator, int], Any] = uniform_noise

    def __post_init__(self):
        object.__setattr__(self, "parents", tuple(self.parents))


@dataclass(frozen=True, eq=False)
class SCM:
    """A structural causal model ``X_i = f_i(X_parents(i), U_i)`` with independent noises ``U_i`` on a DAG.

    (Pearl 2009, definition 7.1.1; Le Priol 2021, equation 2.39.) `sample` draws the noises and applies the functions in
    topological order. `do` replaces functions by constants, which is what an intervention means.

    Each variable has a random stream of its own, which depends on the seed and its place in `mechanisms` only: a model
    and the same model under `do` share their noise when sampled with one seed, so that their difference is the effect
    of the intervention on each single unit.

    Examples
    --------
    Rain wets the grass, and hardly anybody waters it in the rain.

    >>> model = SCM({
    ...     "rain": Mechanism(lambda u: u < 0.3),
    ...     "sprinkler": Mechanism(lambda rain, u: u < np.where(rain, 0.01, 0.4), ["rain"]),
    ...     "wet": Mechanism(lambda rain, sprinkler, u: (rain | sprinkler) & (u < 0.95), ["rain", "sprinkler"]),
    ... })
    >>> seen = model.sample(100_000, rng=0)
    >>> float(seen["rain"][seen["sprinkler"]].mean().round(2))     # a sprinkler that is on speaks against rain
    0.01
    >>> done = model.do({"sprinkler": True}).sample(100_000, rng=0)
    >>> float(done["rain"].mean().round(2))                        # turning it on does not stop the rain
    0.3
    """

    mechanisms: Mapping[Hashable, Mechanism]

    def __post_init__(self):
        if not self.mechanisms:
            raise ValueError("a structural causal model needs at least one variable; got no mechanisms")
        for name, mechanism in self.mechanisms.items():
            if not isinstance(mechanism, Mechanism):
                raise TypeError(f"the mechanism of {name!r} must be a Mechanism; got {type(mechanism).__name__}")
        object.__setattr__(self, "mechanisms", dict(self.mechanisms))
        _ = self.graph  # refuses unknown parents and cycles

    @property
    def variables(self) -> tuple:
        """The names of the variables, in the order in which they were given."""
        return tuple(self.mechanisms)

    @property
    def graph(self) -> nx.DiGraph:
        """The causal graph, with an arrow from each parent to its child."""
        return parents_to_graph({name: mechanism.parents for name, mechanism in self.mechanisms.items()})

    def sample(self, n: int, rng: Any = None) -> dict[Hashable, np.ndarray]:
        """`n` independent draws of all variables, by name.

        Raises `ValueError` where a function returns the wrong number of draws or NaN.
        """
        require_counts(n=(n, 0))
        seed = randomness.seed(rng)
        place = {name: i for i, name in enumerate(self.mechanisms)}
        draws: dict[Hashable, np.ndarray] = {}
        for name in nx.topological_sort(self.graph):
            mechanism = self.mechanisms[name]
            noise = mechanism.noise(np.random.default_rng([seed, place[name]]), n)
            values = np.asarray(mechanism.function(*(draws[parent] for parent in mechanism.parents), noise))
            if values.shape[:1] != (n,):
                raise ValueError(f"the mechanism of {name!r} must return {n} draws; got shape {values.shape}")
            if values.dtype.kind == "f" and np.isnan(values).any():
                raise ValueError(
                    f"the mechanism of {name!r} returned NaN at draw {int(np.argwhere(np.isnan(values))[0, 0])}"
                )
            draws[name] = values
        return {name: draws[name] for name in self.mechanisms}

    def do(self, values: Mapping[Hashable, Any]) -> "SCM":
        """The model under the intervention ``do(X_j = value)``: ``f_j`` replaced by the constant, its arrows cut."""
        changed = dict(self.mechanisms)
        for name, value in values.items():
            if name not in changed:
                raise ValueError(f"do: {name!r} is not a variable of the model; there are {self.variables}")
            changed[name] = replace(
                changed[name], function=_Constant(np.asarray(value)), parents=(), noise=uniform_noise
            )
        return SCM(changed)


@dataclass(frozen=True, eq=False)
class _Constant:
    """A function that gives the same value to every draw."""

    value: np.ndarray

    def __call__(self, noise):
        return np.broadcast_to(self.value, (len(noise), *self.value.shape)).copy()
