"""Causally independent factors: an effect of many causes by a chain of small tables, in time linear in their number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cumulant import checks
from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.graphical.labels import Labels
from cumulant.graphical.structure import Structure
from cumulant.graphical.tables import LARGEST, require_room

_OPERATIONS = ("or", "and", "max", "xor", "sum")


@dataclass(frozen=True, eq=False)
class CausalIndependence:
    """``effect = op(z_1, ..., z_n)`` where each ``z_k`` is a noisy copy of one cause: ``p(z_k | x_k)``.

    Its table would have as many entries as all causes have states together; the chain ``s_k = op(s_(k-1), z_k)`` has
    tables of three variables, so that messages take time linear in the number of causes (Heckerman and Breese 1996).

    Parameters
    ----------
    operation : str
        ``"or"``, ``"and"``, ``"xor"`` (of 0 and 1), ``"max"`` or ``"sum"`` (of 0, 1, 2, ...; a sum that the effect has
        no state for counts as its last state).
    effect : int or str
        The variable that results, by number or name.
    causes : sequence of int or str
        The variables it depends on.
    noise : sequence of arrays, optional
        ``noise[k][x, z] = p(z | x)``, a row for each state of cause ``k``; without it ``z_k = x_k``.
    leak : array, optional
        The distribution of one more ``z`` that depends on no cause.
    """

    operation: str
    effect: Any
    causes: Sequence[Any]
    noise: Sequence[Any] | None = None
    leak: Any = None

    def __post_init__(self):
        checks.choice("operation", self.operation, _OPERATIONS)
        if len({self.effect, *self.causes}) != 1 + len(self.causes):
            raise ValueError(f"effect and causes must all be different; got {self.effect} and {tuple(self.causes)}")
        if self.noise is not None and len(self.noise) != len(self.causes):
            raise ValueError(f"noise must have one table for each of {len(self.causes)} causes; got {len(self.noise)}")
        if not self.causes and self.leak is None:
            raise ValueError("a factor without causes needs a leak")

    def copies(self, sizes: Sequence[int]) -> list[tuple[int | None, np.ndarray]]:
        """Each cause, None for the leak, and ``p(z | x)``."""
        states = sizes[self.effect]
        if self.operation in ("or", "and", "xor") and states != 2:
            raise ValueError(
                f"the effect of {self.operation!r} must have 2 states; variable {self.effect} has {states}"
            )
        out: list[tuple[int | None, np.ndarray]] = []
        for k, cause in enumerate(self.causes):
            if self.noise is None:
                if sizes[cause] > states:
                    raise ValueError(
                        f"cause {cause} has {sizes[cause]} states, the effect {states}: noise must map them"
                    )
                table = np.eye(sizes[cause], states)
            else:
                table = np.asarray(self.noise[k], dtype=np.float64)
                if table.shape != (sizes[cause], states):
                    raise ValueError(
                        f"noise of cause {cause} must have shape {(sizes[cause], states)}; got {table.shape}"
                    )
            out.append((cause, table))
        if self.leak is not None:
            out.append((None, np.asarray(self.leak, dtype=np.float64)))
            if out[-1][1].shape != (states,):
                raise ValueError(f"leak must have shape ({states},); got {out[-1][1].shape}")
        for cause, table in out:
            if not (
                np.isfinite(table).all() and (table >= 0).all() and np.allclose(table.sum(axis=-1), 1.0, atol=1e-8)
            ):
                what = "leak" if cause is None else f"noise of cause {cause}"
                raise ValueError(f"{what} must hold distributions: not negative, summing to one")
        return out

    def combine(self, states: int) -> np.ndarray:
        """``op(s, z)`` for all pairs."""
        s, z = np.indices((states, states))
        table = {"or": s | z, "and": s & z, "xor": s ^ z, "max": np.maximum(s, z), "sum": s + z}
        return np.minimum(table[self.operation], states - 1)

    def expand(self, sizes: Sequence[int], first: int) -> tuple[list[int], list[tuple[tuple[int, ...], np.ndarray]]]:
        """The chain: sizes of its hidden variables, numbered from `first`, and its tables of probabilities."""
        states, copies = sizes[self.effect], self.copies(sizes)
        together = self.combine(states)
        hidden: list[int] = []
        factors: list[tuple[tuple[int, ...], np.ndarray]] = []
        before: tuple[int, ...] = ()
        for k, (cause, noisy) in enumerate(copies):
            last = k == len(copies) - 1
            after = self.effect if last else first + len(hidden)
            if not last:
                hidden.append(states)
            given = () if cause is None else (cause,)
            if not before:
                factors.append(((*given, after), noisy))
            else:
                # p(s_k | s_(k-1), x_k) = sum over z of p(z | x_k) [s_k = op(s_(k-1), z)]
                table = np.einsum("...z,sza->s...a", noisy, np.eye(states)[together])
                factors.append(((*before, *given, after), table))
            before = (after,)
        return hidden, factors


def noisy_or(effect: Any, causes: Sequence[Any], strengths: Sequence[float], leak: float = 0.0) -> CausalIndependence:
    """``p(effect = 0 | x) = (1 - leak) prod_k (1 - strength_k)^x_k``: each cause that is on may bring the effect about.

    >>> model = CausalFactorGraph([2, 2, 2], [((0,), [0.0, 0.0])], [noisy_or(2, [0, 1], [0.9, 0.5], leak=0.1)])
    >>> model.given({0: 1, 1: 1}).marginals()[2].round(6)          # 0.9 * 0.1 * 0.5
    array([0.045, 0.955])
    """
    for name, given in (("causes", causes), ("strengths", strengths)):
        if isinstance(given, str) or not hasattr(given, "__len__"):
            raise TypeError(f"{name} must be a sequence; got {given!r:.80}")
    for each in (*strengths, leak):
        checks.number("a probability of strengths, or leak,", each)
    if not 0.0 <= leak <= 1.0:
        raise ValueError(f"leak must be a probability; got {leak}")
    if len(strengths) != len(causes) or not all(0.0 <= p <= 1.0 for p in strengths):
        raise ValueError(f"strengths must be one probability for each of {len(causes)} causes; got {strengths!s:.80}")
    noise = [np.array([[1.0, 0.0], [1.0 - p, p]]) for p in strengths]
    return CausalIndependence("or", effect, causes, noise, np.array([1.0 - leak, leak]) if leak else None)


class CausalFactorGraph(DiscreteModel):
    """A factor graph with causally independent factors as well as tables.

    The hidden variables of the chains are summed out everywhere: `marginals`, `sample`, `map` and `log_prob` are about
    the variables of `cardinalities` alone. `theta` and `mean` are those of all tables, the chains' after the others.
    The entropy and divergences do not follow from the tables of a chain: for these it is multiplied out
    (`to_factor_graph`), which is refused where an effect has too many causes that are not given.

    Parameters
    ----------
    cardinalities, factors
        As for `FactorGraph`: tables of logarithms.
    causal : sequence of CausalIndependence
    names, states
        As for `FactorGraph`: effects and causes may be meant by name.

    Examples
    --------
    Two hundred causes, each with probability 0.01; the table of the effect would have 2^201 entries:

    >>> prior = [((i,), np.log([0.99, 0.01])) for i in range(200)]
    >>> model = CausalFactorGraph([2] * 201, prior, [noisy_or(200, range(200), [0.5] * 200)])
    >>> bool(np.isclose(model.marginals()[200][0], (1 - 0.01 * 0.5) ** 200))
    True
    """

    def __init__(
        self,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Sequence[int], Any]],
        causal: Iterable[CausalIndependence],
        *,
        names: Any = None,
        states: Any = None,
    ):
        plain = FactorGraph(cardinalities, factors, names=names, states=states)
        sizes = plain.cardinalities.tolist()
        self._visible = len(sizes)
        pairs, hidden = list(plain.factors), []
        for each in causal:
            effect, *causes = (plain.labels.variable(v) for v in (each.effect, *each.causes))
            each = replace(each, effect=effect, causes=causes)
            more, chain = each.expand(sizes, self._visible + len(hidden))
            hidden += more
            with np.errstate(divide="ignore"):  # log 0 = -inf says that the state is impossible
                pairs += [(scope, np.log(table)) for scope, table in chain]
        structure = Structure(np.array([*sizes, *hidden], dtype=np.int64), [scope for scope, _ in pairs])
        flat = np.concatenate([*(table.ravel() for _, table in pairs), np.zeros(0)])
        self._bind(DiscreteFamily(structure, None, _with_hidden(plain.labels, structure)), flat)

    @property
    def n_variables(self) -> int:
        """How many variables there are, the hidden ones of the chains not counted."""
        return self._visible

    @property
    def cardinalities(self) -> np.ndarray:
        """How many states each of these has."""
        return self.structure.cardinalities[: self._visible]

    def _all_marginals(self, found: list[np.ndarray]) -> list[np.ndarray]:
        return super()._all_marginals(found)[: self._visible]

    def log_prob(self, x: Any, **options: Any) -> np.ndarray:
        """``log p(x)``: the chains are summed out exactly for each row of `x`; options are for ``A`` alone."""
        x = replace(self.labels, cardinalities=tuple(self.cardinalities.tolist())).encode(x)
        total = self.log_partition(**options)
        self._require_possible(total)
        out = []
        for row in x.reshape(-1, self._visible).tolist():
            if any(row[v] != state for v, state in self._evidence.items()):
                out.append(-np.inf)
            else:
                out.append(self.given(dict(enumerate(row))).log_partition() - total)
        return np.array(out).reshape(x.shape[:-1])[()]

    def sample(self, n: int = 1, rng: Any = None, **options: Any) -> Any:
        """`n` draws as those of every model, of the variables that are not hidden."""
        drawn = super().sample(n, rng, **options)
        if isinstance(drawn, np.ndarray):
            return drawn[:, : self._visible]
        shown = {"x": (self._visible,)} if self.labels.names is None else dict.fromkeys(self.labels.names, ())
        return replace(drawn, values=drawn.values[:, :, : self._visible], variables=shown)

    def entropy(self, **options: Any) -> float:
        """``H = -E log p(x)`` in nats, of the model with its chains multiplied out: see `to_factor_graph`."""
        return self.to_factor_graph().entropy(**options)

    def kl(self, other: DiscreteModel, **options: Any) -> float:
        """``KL(self || other)``, both with their chains multiplied out: see `to_factor_graph`."""
        return self.to_factor_graph().kl(other, **options)

    def _without_hidden(self) -> FactorGraph:
        return self.to_factor_graph()

    def to_factor_graph(self, max_states: int = LARGEST) -> FactorGraph:
        """The same distribution with one table for each chain, over its effect and causes that are not given.

        Raises `TooWide` where such a table would have more than `max_states` entries: entropy and divergences can then
        be estimated from `sample` and `log_prob`.
        """
        factors = [self._at_evidence(scope, table) for scope, table in self.factors]
        plain = [pair for pair in factors if all(v < self._visible for v in pair[0])]
        chains = [(scope, np.exp(table)) for scope, table in factors if any(v >= self._visible for v in scope)]
        sizes = self.structure.cardinalities
        for hidden in range(self._visible, self.structure.n_variables):  # numbered along each chain
            touching = [pair for pair in chains if hidden in pair[0]]
            chains = [pair for pair in chains if hidden not in pair[0]]
            left = sorted({v for scope, _ in touching for v in scope} - {hidden})
            require_room(
                [int(sizes[v]) for v in left], max_states, "estimate what you need from sample(n, rng) and log_prob"
            )
            number = {v: i for i, v in enumerate([hidden, *left])}
            operands = [part for scope, table in touching for part in (table, [number[v] for v in scope])]
            chains.append((tuple(left), np.einsum(*operands, [number[v] for v in left])))
        with np.errstate(divide="ignore"):  # log 0 = -inf says that the state is impossible
            dense = [(scope, np.log(table)) for scope, table in chains]
        names, states = self.labels.names, self.labels.states
        states = None if states is None else states[: self._visible]
        model = FactorGraph(self.cardinalities.tolist(), [*plain, *dense], names=names, states=states)
        return model.given(self.evidence)

    def _at_evidence(self, scope: tuple[int, ...], table: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
        """A factor at the states that are given, without their variables."""
        at = tuple(self._evidence.get(v, slice(None)) for v in scope)
        return tuple(v for v in scope if v not in self._evidence), table[at]

    def _description(self) -> tuple[dict, dict]:
        return {"visible": self._visible}, super()._description()[1]

    @classmethod
    def _of_description(cls, settings: dict, arrays: dict) -> Self:
        new = object.__new__(cls)
        structure = Structure.checked(*(arrays[name] for name in Structure.PARTS))
        names, states = settings["names"], settings["states"]
        new._visible = int(settings["visible"])
        if not 0 <= new._visible <= structure.n_variables:
            raise ValueError(f"{new._visible} variables are said to be visible")
        shown = slice(new._visible)
        labels = Labels.of(structure.cardinalities[shown], names, None if states is None else states[shown])
        new._bind(DiscreteFamily(structure, None, _with_hidden(labels, structure)), arrays["theta"])
        return new


def _with_hidden(labels: Labels, structure: Structure) -> Labels:
    """The names of the visible variables, and numbers for the states of those after them."""
    sizes = tuple(structure.cardinalities.tolist())
    hidden = [tuple(map(str, range(size))) for size in sizes[len(labels.cardinalities) :]]
    states = None if labels.states is None else (*labels.states, *hidden)
    return replace(labels, cardinalities=sizes, states=states)
