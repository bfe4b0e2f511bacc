"""Bayesian networks: conditional tables on a directed acyclic graph, asked by name."""

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from cumulant import checks, files
from cumulant.errors import FileFormatError
from cumulant.graphical.exact.enumeration import joint_scores
from cumulant.graphical.graphs import parents_to_graph
from cumulant.graphical.labels import Labels
from cumulant.graphical.scm import SCM, Mechanism
from cumulant.graphical.tables import LARGEST, require_room

if TYPE_CHECKING:
    from cumulant.graphical.net_fit import NetFit

_ROWS_SUM = 1e-8  # how far a row of a table may be from adding up to one


@dataclass(frozen=True, eq=False)
class BayesNet:
    """A Bayesian network ``p(x) = prod_i p(x_i | x_parents(i))`` over variables with finitely many states.

    Answers are exact, by elimination in the factor graph of its tables (`model`), or `TooWide` where that does not fit
    into ``max_memory`` bytes, an option of every question. `marginal`, `conditional`, `query` and `map` leave out the
    variables that are neither asked about nor given nor above these: their tables sum to one (barren nodes; Shachter
    1986). Interventions replace factors: ``do`` cuts the arrows into a variable (Pearl 2009, section 3.2).

    Parameters
    ----------
    tables : mapping of name to array
        ``tables[i][x_parents..., x_i] = p(x_i | x_parents)``: one axis for each parent, in the order of `parents`, and
        the variable itself on the last axis, along which the entries add up to one (they are divided by their sum,
        which must be 1 to 1e-8).
    parents : mapping of name to names, optional
        The parents of each variable that has any.
    states : mapping of name to names of states, optional
        Without it states are numbers from 0; with it numbers can still be used.

    Attributes
    ----------
    variables : tuple
        The names, in the order of `tables`: the order of the columns of data and of the axes of `table()`.
    model : FactorGraph
        The same distribution as a `DiscreteModel`: bounds, samplers and messages take it.

    Examples
    --------
    >>> net = BayesNet(
    ...     {"rain": [0.7, 0.3], "wet": [[0.9, 0.1], [0.05, 0.95]]},
    ...     parents={"wet": ["rain"]},
    ... )
    >>> net.marginals()["wet"]
    array([0.645, 0.355])
    >>> net.conditional("rain", {"wet": 1}).round(4)
    array([0.1972, 0.8028])
    >>> net.do({"wet": 1}).marginals()["rain"]        # wetting the grass does not make it rain
    array([0.7, 0.3])
    >>> net.is_d_separated("rain", "wet")
    False

    With names of states:

    >>> net = BayesNet(net.tables, net.parents, {"rain": ["no", "yes"], "wet": ["no", "yes"]})
    >>> {state: round(p, 4) for state, p in net.query("rain", {"wet": "yes"}).items()}
    {'no': 0.1972, 'yes': 0.8028}
    >>> net.map(given={"wet": "yes"})[0]
    {'rain': 'yes', 'wet': 'yes'}
    """

    tables: Mapping[Hashable, Any]
    parents: Mapping[Hashable, Any] = field(default_factory=dict)
    states: Mapping[Any, Any] | None = None

    def __post_init__(self):
        _mapping(self.tables, "tables", "variables to arrays")
        _mapping(self.parents, "parents", "variables to lists of their parents")
        if not self.tables:
            raise ValueError("a Bayesian network needs at least one variable; got no tables")
        unknown = [name for name in self.parents if name not in self.tables]
        if unknown:
            raise ValueError(f"parents has an entry for {unknown[0]!r}, which has no table")
        above = {name: _several(self.parents.get(name, ())) for name in self.tables}
        parents_to_graph(above)  # refuses unknown parents and cycles
        with checks.about("tables"):
            read = {name: _conditional_table(name, table) for name, table in self.tables.items()}
            for name, table in read.items():
                expected = tuple(read[parent].shape[-1] for parent in above[name])
                if table.shape[:-1] != expected:
                    raise ValueError(
                        f"the table of {name!r} must have shape {(*expected, table.shape[-1])} for its parents "
                        f"{above[name]}; got {table.shape}"
                    )
        object.__setattr__(self, "tables", read)
        object.__setattr__(self, "parents", above)
        if self.states is not None:
            labels = Labels.of(
                self.cardinalities, list(map(str, read)), {str(v): some for v, some in self.states.items()}
            )
            object.__setattr__(self, "states", dict(zip(read, labels.states or (), strict=True)))

    @property
    def variables(self) -> tuple:
        """The names of the variables."""
        return tuple(self.tables)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """How many states each variable has."""
        return tuple(table.shape[-1] for table in self.tables.values())

    @property
    def graph(self) -> nx.DiGraph:
        """The graph, with an arrow from each parent to its child."""
        return parents_to_graph(self.parents)

    @cached_property
    def model(self) -> Any:
        """The factor graph of the tables, which answers the questions of every model."""
        from cumulant.graphical.factor_graph import FactorGraph  # it reads networks, which this one is

        return FactorGraph.from_bayes_net(self)

    def given(self, evidence: Mapping[Any, Any]) -> Any:
        """The factor graph conditioned on states of some variables: what *seeing* them says."""
        named = _mapping(evidence, "evidence", "variables to states")
        return self.model.given({self._number(name, "evidence"): state for name, state in named.items()})

    def log_prob(self, x: Any) -> np.ndarray:
        """``log p(x) = sum_i log p(x_i | x_parents)`` for states ``(..., variables)``; ``-inf`` where ``p(x) = 0``."""
        return self.model.family.score(x, self.model.theta)

    def sample(self, n: int, rng: Any = None) -> np.ndarray:
        """`n` independent draws, shape ``(n, variables)``, parents before children."""
        draws = self.scm().sample(n, rng)
        return self.model.labels.decode(np.stack([draws[name] for name in self.variables], axis=-1))

    def table(self, max_states: int = LARGEST) -> np.ndarray:
        """The joint table ``p(x)``, one axis for each variable. Raises `TooWide` beyond `max_states` entries."""
        require_room(
            self.cardinalities, max_states, "ask for marginals, a conditional or map: they need no joint table"
        )
        return np.exp(joint_scores(self.model.structure, self.model.theta, max_states))

    def marginal(self, names: Any, **options: Any) -> np.ndarray:
        """The distribution of one variable, or the joint table of several (a list of names) in their order."""
        return self.conditional(names, {}, **options)

    def marginals(self, given: Mapping[Hashable, Any] | None = None, **options: Any) -> dict[Hashable, np.ndarray]:
        """The distribution of each single variable, by name; where states are `given`, conditioned on them."""
        return dict(zip(self.variables, self.given(given or {}).marginals(**options), strict=True))

    def conditional(self, names: Any, given: Mapping[Hashable, Any], **options: Any) -> np.ndarray:
        """``p(names | given)`` as a table: what *seeing* these states says. What *setting* them does is `do`.

        Raises `DomainError` where the states in `given` have probability zero.
        """
        wanted = self._names(names)
        part, number = self._relevant(wanted, given)
        if len(wanted) == 1:
            return part.marginals(**options)[number[wanted[0]]]
        return part.marginal([number[name] for name in wanted], **options)

    def query(self, names: Any, given: Mapping[Hashable, Any] | None = None, **options: Any) -> dict[Any, float]:
        """The same as a mapping of states to probabilities; of tuples of states for a list of several names."""
        wanted = self._names(names)
        table = self.conditional(wanted, given or {}, **options)
        states = [self.model.labels.allowed(self._number(name)) for name in wanted]
        keys = product(*states) if isinstance(names, list) else states[0]
        return dict(zip(keys, table.ravel().tolist(), strict=True))

    def map(
        self, names: Any = None, given: Mapping[Hashable, Any] | None = None, **options: Any
    ) -> tuple[dict[Hashable, Any], float]:
        """Most probable states, by name, and the logarithm of their probability together with that of `given`.

        Without `names`, of all variables at once, those that are given included. With `names`, of these when the others
        are summed out (marginal MAP), which can need far larger tables (Park and Darwiche 2004).
        """
        wanted = list(self.variables) if names is None else self._names(names)
        part, number = self._relevant(wanted, given or {}, overlap=names is None)
        states, score = part.marginal_map([number[name] for name in wanted], **options)
        return dict(zip(wanted, states.tolist(), strict=True)), score

    def is_d_separated(self, x: Any, y: Any, given: Any = ()) -> bool:
        """Whether every path between `x` and `y` is blocked by `given`: then they are independent given it, whatever
        the tables are (Pearl 1988). Each is a name or a list of names.

        >>> net = BayesNet({"rain": [0.7, 0.3], "hose": [0.9, 0.1], "wet": np.full((2, 2, 2), 0.5)},
        ...                {"wet": ["rain", "hose"]})
        >>> net.is_d_separated("rain", "hose"), net.is_d_separated("rain", "hose", "wet")
        (True, False)
        """
        sets = [
            set(self._names(list(some) if isinstance(some, tuple | set) else some, argument))
            for argument, some in (("x", x), ("y", y), ("given", given))
        ]
        if sum(map(len, sets)) > len(set.union(*sets)):
            raise ValueError(f"x, y and given must have no variable in common; got {x!r}, {y!r} and {given!r}")
        return bool(nx.is_d_separator(self.graph, *sets))

    @classmethod
    def fit(
        cls,
        data: Any,
        parents: Mapping[Hashable, Any],
        *,
        states: Mapping[Any, Any] | None = None,
        prior: Any = 1.0,
    ) -> "NetFit":
        """Tables from data, for a given graph: ``(counts + prior) / sum``, the mean of the Dirichlet posterior.

        Parameters
        ----------
        data : data frame, mapping of names to columns, or array (rows, variables)
            A row for each observation, without missing values; each column is a variable. States are the values that
            occur, sorted (the categories of a categorical column); whole numbers from 0 stay numbers.
        parents : mapping of name to names
            The parents of each variable that has any.
        states : mapping of name to states, optional
            The states of some variables in order: also those that do not occur.
        prior : number, or mapping of name to number or table
            Pseudo-counts of each entry: 1 is uniform, 1/2 Jeffreys', 0 maximum likelihood; ``s / entries of the
            table`` is the BDeu prior of sample size ``s`` (Heckerman, Geiger and Chickering 1995).

        Examples
        --------
        >>> fit = BayesNet.fit({"smoke": ["no", "yes", "no", "no"], "cough": ["no", "yes", "no", "yes"]},
        ...                    {"cough": ["smoke"]})
        >>> fit.net.query("cough", {"smoke": "yes"})       # (0 + 1) / 3 and (1 + 1) / 3
        {'no': 0.3333333333333333, 'yes': 0.6666666666666666}
        >>> low, high = fit.interval("cough")
        >>> low[1].round(3), high[1].round(3)
        (array([0.013, 0.158]), array([0.842, 0.987]))
        """
        from cumulant.graphical.net_fit import fit_tables  # it makes networks, which this one is

        return fit_tables(data, _mapping(parents, "parents", "variables to lists of their parents"), states, prior)

    def log_partition(self) -> float:
        """Zero: the tables are those of a distribution."""
        return 0.0

    def entropy(self) -> float:
        """``H = -sum_x p(x) log p(x)`` in nats."""
        return self.model.entropy()

    def kl(self, other: "BayesNet") -> float:
        """``KL(self || other)`` in nats, for a network over the same variables; infinite where other lacks a state."""
        if not isinstance(other, BayesNet):
            raise TypeError(f"other must be a BayesNet; got {type(other).__name__}")
        mine, theirs = (dict(zip(net.variables, net.cardinalities, strict=True)) for net in (self, other))
        if mine != theirs:
            raise ValueError(f"both networks must have the same variables with as many states; got {mine} and {theirs}")
        same = BayesNet({name: other.tables[name] for name in self.variables}, other.parents)
        return self.model.kl(same.model)

    def do(self, values: Mapping[Hashable, Any]) -> "BayesNet":
        """The network under an intervention: the factor of each named variable replaced, its arrows cut.

        A value is a state (the variable is set to it) or a vector of probabilities (it is drawn from them, whatever its
        parents are). The other factors stay: ``p(x | do(x_j)) = [x_j as set] prod_{i != j} p(x_i | x_parents)``.
        """
        tables, parents = dict(self.tables), dict(self.parents)
        for name, value in _mapping(values, "values", "variables to states or probabilities").items():
            v = self._number(name, "values")
            count = tables[name].shape[-1]
            with checks.about("values"):
                value = checks.array(f"what {name!r} is set to", value)
                if value.ndim == 0:
                    tables[name] = np.eye(count)[self.model.labels.state(v, value.item())]
                elif value.shape == (count,):
                    tables[name] = _conditional_table(name, value)
                else:
                    raise ValueError(f"{name!r} needs a state or {count} probabilities; got shape {value.shape}")
            parents[name] = ()
        return BayesNet(tables, parents, self.states)

    def scm(self) -> SCM:
        """A structural causal model with this joint distribution and these interventions: each state is a quantile of
        uniform noise. (There are many; they differ in what they say of single units, not of populations.)
        """
        return SCM({name: Mechanism(_Quantile(table), self.parents[name]) for name, table in self.tables.items()})

    def save(self, path: str | os.PathLike) -> Path:
        """Write the network, with its names, to an `.npz` file (no pickle); `load` reads it."""
        wrong = [name for name in self.variables if isinstance(name, bool) or not isinstance(name, str | int)]
        if wrong:
            raise TypeError(f"names of variables must be strings or whole numbers to be saved; got {wrong[0]!r}")
        place = {name: k for k, name in enumerate(self.variables)}
        settings = {
            "variables": list(self.variables),
            "parents": [[place[parent] for parent in self.parents[name]] for name in self.variables],
            "states": None if self.states is None else [list(some) for some in self.states.values()],
        }
        flat = np.concatenate([table.ravel() for table in self.tables.values()])
        return files.save(path, "BayesNet", {"tables": flat, "cardinalities": self.cardinalities}, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "BayesNet":
        """Read what `save` wrote."""
        saved = files.load(path, "BayesNet")
        try:
            names, sizes, flat = saved.settings["variables"], saved.arrays["cardinalities"], saved.arrays["tables"]
            shapes = [tuple(int(sizes[k]) for k in (*above, v)) for v, above in enumerate(saved.settings["parents"])]
            parts = np.split(flat, np.cumsum([int(np.prod(shape)) for shape in shapes]))
            if parts.pop().size:
                raise ValueError("there are more numbers than the tables have entries")
            tables = {name: part.reshape(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
            above = {
                name: [names[k] for k in some] for name, some in zip(names, saved.settings["parents"], strict=True)
            }
            states = saved.settings["states"]
            return cls(tables, above, None if states is None else dict(zip(names, states, strict=True)))
        except (KeyError, ValueError, TypeError, IndexError) as problem:
            raise FileFormatError(f"{path} does not hold a BayesNet: {problem}") from problem

    def require(self, name: Any, argument: str = "name") -> None:
        """Refuse what is not the name of a variable, saying in which argument it was."""
        if not isinstance(name, Hashable) or name not in self.tables:
            there = f"{', '.join(map(repr, self.variables))!s:.200}"
            raise ValueError(f"{argument}: {name!r} is not a variable of the network; there are {there}")

    def _relevant(
        self, wanted: Iterable[Hashable], given: Mapping[Hashable, Any], overlap: bool = False
    ) -> tuple[Any, dict[Hashable, int]]:
        """The factor graph of some variables, of those given and of all above them, conditioned on what is given, and
        the numbers of its variables.
        """
        fixed = self._names(list(_mapping(given, "given", "variables to states")), "given")
        both = [name for name in wanted if name in given]
        if both and not overlap:
            raise ValueError(f"{both[0]!r} is both asked for and given")
        kept, waiting = set(), [*wanted, *fixed]
        while waiting:
            name = waiting.pop()
            if name not in kept:
                kept.add(name)
                waiting += self.parents[name]
        model = self.model
        if len(kept) < len(self.tables):
            model = type(model).from_bayes_net(self, kept)
        number = {name: k for k, name in enumerate(name for name in self.tables if name in kept)}
        with checks.about("given"):
            return model.given({number[name]: given[name] for name in fixed}), number

    def _names(self, names: Any, argument: str = "names") -> list:
        chosen = list(names) if isinstance(names, list) else [names]
        for name in chosen:
            self.require(name, argument)
        if len(set(chosen)) != len(chosen):
            raise ValueError(f"each variable of {argument} must be named once; got {chosen}")
        return chosen

    def _number(self, name: Any, argument: str = "names") -> int:
        return self.variables.index(*self._names([name], argument))


def _several(names: Any) -> Any:
    return names if isinstance(names, str) else tuple(names)  # a single name is refused with the graph


def _mapping(found: Any, name: str, what: str) -> Mapping:
    if not isinstance(found, Mapping):
        raise TypeError(f"{name} must be a mapping of {what}; got {found!r:.60}")
    return found


class _Quantile:
    """``x = F^-1(u)`` row by row of a conditional table."""

    def __init__(self, table: np.ndarray):
        totals = np.cumsum(table, axis=-1)
        # From the last state that can occur on, the ratio is one exactly: no u < 1 reaches an impossible state.
        self.cumulative = totals / totals[..., -1:]

    def __call__(self, *inputs):
        *parents, u = inputs
        rows = self.cumulative[tuple(parents)] if parents else self.cumulative
        return np.sum(u[:, None] >= rows, axis=-1)


def _conditional_table(name: Hashable, table: Any) -> np.ndarray:
    table = checks.real_array(f"the table of {name!r}", table, finite=False)
    if table.ndim == 0 or table.size == 0:
        raise ValueError(f"the table of {name!r} must have its states on the last axis; got shape {table.shape}")
    if not np.isfinite(table).all() or (table < 0).any():
        raise ValueError(f"the table of {name!r} must hold probabilities; its smallest entry is {table.min()}")
    sums = table.sum(axis=-1, keepdims=True)
    worst = np.argmax(np.abs(sums - 1.0))
    if abs(sums.flat[worst] - 1.0) > _ROWS_SUM:
        raise ValueError(
            f"each row of the table of {name!r} must add up to 1; row {worst} adds up to {sums.flat[worst]:.9g}"
        )
    return normalised(table)


def normalised(table: np.ndarray) -> np.ndarray:
    """Rows divided by their sums; those that add up to one but for rounding stay as they are, to the bit."""
    sums = table.sum(axis=-1, keepdims=True)
    allowed = 4.0 * np.finfo(np.float64).eps * table.shape[-1]
    return table / np.where(np.abs(sums - 1.0) <= allowed, 1.0, sums)
