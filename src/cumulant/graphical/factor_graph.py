"""Factor graphs: products of tables over variables with finitely many states."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from cumulant import checks
from cumulant.graphical.bayes_net import BayesNet
from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.labels import Labels
from cumulant.graphical.structure import Structure
from cumulant.graphical.tables import LARGEST, require_room


class FactorGraph(DiscreteModel):
    """``p(x) = exp(sum_f theta_f(x_f) - A)``: each factor is a table of logarithms over the variables of its scope.

    The parameter is all tables, one after the other, the last variable of a scope running fastest; the statistics are
    their indicators, so that `mean` are the marginal tables. This is over-complete.

    Parameters
    ----------
    cardinalities : sequence of int
        How many states each variable has: 0, 1, ..., k - 1.
    factors : pairs (scope, table)
        A scope is a tuple of variables, the table has one axis for each; -inf is an impossible state. A scope may be
        empty (a constant), and several factors may have the same. Variables may be meant by name.
    names : sequence of str, optional
        What the variables are called.
    states : optional
        What their states are called: a list for each variable, a mapping of variables to lists, or one list for all.

    Examples
    --------
    >>> model = FactorGraph([2, 3], [((0,), [0.0, 1.0]), ((0, 1), [[0.0, 0.5, -np.inf], [0.0, 0.0, 0.0]])])
    >>> round(model.log_partition(), 6)
    2.379876
    >>> model.marginals()[0].round(4)
    array([0.2452, 0.7548])
    >>> model.given({1: 2}).marginals()[0]
    array([0., 1.])
    >>> x, score = model.map()
    >>> x, float(score)
    (array([1, 0]), 1.0)

    With names:

    >>> states = {"smoke": ["no", "yes"], "cancer": ["no", "yes"]}
    >>> tables = [(["smoke"], [0.7, 0.3]), (["smoke", "cancer"], [[0.99, 0.01], [0.9, 0.1]])]
    >>> model = FactorGraph.from_tables([2, 2], tables, names=["smoke", "cancer"], states=states)
    >>> model.given({"smoke": "yes"}).marginal("cancer").round(6)
    array([0.9, 0.1])
    >>> model.map()[0]
    array(['no', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Sequence[Any], Any]],
        *,
        names: Any = None,
        states: Any = None,
    ):
        labels = Labels.of(Structure(cardinalities, []).cardinalities, names, states)
        pairs = _scopes_and_tables(factors)
        with checks.about("factors"):
            scopes = [[labels.variable(v) if isinstance(v, str) else v for v in scope] for scope, _ in pairs]
            structure = Structure(cardinalities, scopes)
            for f, (scope, table) in enumerate(pairs):
                if table.shape != structure.shape(f):
                    raise ValueError(
                        f"the table of factor {f} over {scope} must have shape {structure.shape(f)}; got {table.shape}"
                    )
                if np.isnan(table).any() or (table == np.inf).any():
                    raise ValueError(
                        f"the table of factor {f} must hold logarithms, finite or -inf; it has NaN or +inf"
                    )
        flat = np.concatenate([*(table.ravel() for _, table in pairs), np.zeros(0)])
        self._bind(DiscreteFamily(structure, None, labels), flat)

    @classmethod
    def from_tables(
        cls, cardinalities: Sequence[int], factors: Iterable[tuple[Sequence[Any], Any]], **labels: Any
    ) -> "FactorGraph":
        """The same from tables of numbers that are not negative, such as probabilities, instead of their logarithms."""
        pairs = []
        for f, (scope, table) in enumerate(_scopes_and_tables(factors)):
            if not (np.isfinite(table) & (table >= 0)).all():
                raise ValueError(f"factors: the table of factor {f} must hold finite numbers that are not negative")
            with np.errstate(divide="ignore"):  # log 0 = -inf says that the state is impossible
                pairs.append((scope, np.log(table)))
        return FactorGraph(cardinalities, pairs, **labels)

    @classmethod
    def from_pandas(
        cls,
        tables: Iterable[Any],
        *,
        value: str = "value",
        cardinalities: Sequence[int] | None = None,
        missing: float | None = None,
    ) -> "FactorGraph":
        """From data frames, one for each factor: a row for each state of its variables.

        A column is named by the number of its variable, or by its name, and holds states, by number or by name; the
        column `value` has the logarithms, -inf for what is impossible. Without `cardinalities` a variable has as many
        states as the frames name. A state without a row is refused, unless `missing` says which logarithm it has.
        Names are numbered in the order of their appearance.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({0: [0, 0, 1, 1], 1: [0, 1, 0, 1], "value": [0.5, 0.0, 0.0, 0.5]})
        >>> round(FactorGraph.from_pandas([frame]).log_partition(), 6)
        1.667224
        """
        if hasattr(tables, "columns"):
            raise TypeError(
                "tables must be a list of data frames, one for each factor; got one data frame: use [frame]"
            )
        frames, labels = _numbered_frames(list(tables), value)
        read = [_table_of_frame(f, frame, value) for f, frame in enumerate(frames)]
        if cardinalities is None:
            n = max((v + 1 for scope, _, _ in read for v in scope), default=0)
            sizes = [1] * n
            for scope, states, _ in read:
                for v, column in zip(scope, states.T, strict=True):
                    sizes[v] = max(sizes[v], int(column.max(initial=0)) + 1)
        else:
            sizes = Structure(cardinalities, []).cardinalities.tolist()
        factors = []
        for f, (scope, states, logs) in enumerate(read):
            if any(v >= len(sizes) for v in scope) or (states >= [sizes[v] for v in scope]).any():
                raise ValueError(f"table {f} has a variable or a state that cardinalities {sizes!s:.60} do not have")
            shape = tuple(sizes[v] for v in scope)
            if missing is None and len(logs) < math.prod(shape):
                raise ValueError(
                    f"table {f} over {scope} has {len(logs)} rows for {math.prod(shape)} states: add them, or say "
                    "with missing= which logarithm they have"
                )
            require_room(shape, LARGEST, "a factor with more states must be made of smaller ones")
            table = np.full(shape, 0.0 if missing is None else missing)
            table[tuple(states.T)] = logs if scope else logs[0]
            factors.append((scope, table))
        return FactorGraph(sizes, factors, **labels)

    @classmethod
    def from_flat(cls, structure: Structure, theta: np.ndarray, labels: Labels | None = None) -> Self:
        """The same from a structure and its tables, one after the other."""
        new = object.__new__(cls)
        new._bind(DiscreteFamily(structure, None, labels), np.array(theta, dtype=np.float64))
        return new

    @classmethod
    def from_bayes_net(cls, net: BayesNet, variables: Iterable[Any] | None = None) -> "FactorGraph":
        """The tables of a Bayesian network, variables numbered in the order of ``net.variables``, with its names; or
        those of some `variables`, which must include their parents.
        """
        kept = net.tables if variables is None else set(variables)
        chosen = [v for v in net.variables if v in kept]
        number = {name: i for i, name in enumerate(chosen)}
        scopes = [tuple(number[name] for name in (*net.parents[v], v)) for v in chosen]
        names = chosen if all(isinstance(name, str) for name in chosen) else None
        states = None if net.states is None else [net.states[v] for v in chosen]
        tables = [net.tables[v] for v in chosen]
        sizes = [table.shape[-1] for table in tables]
        return cls.from_tables(sizes, zip(scopes, tables, strict=True), names=names, states=states)

    @classmethod
    def _of_description(cls, settings: dict, arrays: dict) -> Self:
        structure = Structure.checked(*(arrays[name] for name in Structure.PARTS))
        return cls.from_flat(structure, arrays["theta"], Labels.of(structure.cardinalities, **settings))


def _scopes_and_tables(factors: Any) -> list[tuple[tuple[Any, ...], np.ndarray]]:
    """Scopes of names and whole numbers, and tables as arrays of floats."""
    try:
        pairs = [(tuple(v if isinstance(v, str) else int(v) for v in scope), table) for scope, table in factors]
    except (TypeError, ValueError):
        raise TypeError(f"factors must be pairs (scope, table), a scope of variables; got {factors!r:.80}") from None
    with checks.about("factors"):
        return [
            (scope, checks.real_array(f"the table of factor {f}", table, finite=False))
            for f, (scope, table) in enumerate(pairs)
        ]


def _numbered_frames(frames: list, value: str) -> tuple[list, dict[str, list]]:
    """Frames whose columns, and states, are numbers, and the names they had."""
    columns = [column for frame in frames for column in frame.columns if column != value]
    names = list(dict.fromkeys(columns))
    if not names or not all(isinstance(name, str) for name in names):
        return frames, {}
    seen = {name: list(dict.fromkeys(x for frame in frames if name in frame for x in frame[name])) for name in names}
    words = [all(isinstance(x, str) for x in some) for some in seen.values()]
    if any(words) != all(words):
        raise ValueError(
            f"states must be names in all columns or in none; column {names[words.index(False)]!r} has numbers"
        )
    numbered = []
    for frame in frames:
        own = [name for name in names if name in frame]
        codes = {name: [seen[name].index(x) for x in frame[name]] for name in own} if all(words) else {}
        numbered.append(frame.assign(**codes).rename(columns={name: names.index(name) for name in own}))
    return numbered, {"names": names, **({"states": list(seen.values())} if all(words) else {})}


def _table_of_frame(f: int, frame: Any, value: str) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """The variables of a data frame, its states (rows, variables) and the logarithms."""
    if value not in frame:
        raise ValueError(f"table {f} has no column {value!r}; it has {list(frame.columns)}")
    columns = [column for column in frame.columns if column != value]
    for column in columns:
        if isinstance(column, bool) or not isinstance(column, int | np.integer) or column < 0:
            raise ValueError(f"a column of table {f} must be the number of a variable or {value!r}; got {column!r}")
        if frame[column].to_numpy().dtype.kind not in "iu" or (frame[column] < 0).any():
            raise ValueError(f"column {column} of table {f} must hold states, whole numbers from 0")
    twice = frame.duplicated(columns).any() if columns else len(frame) != 1
    if len(set(columns)) < len(columns) or twice:
        raise ValueError(f"table {f} must have one column for each variable and one row for each state")
    states = np.stack([frame[column].to_numpy() for column in columns], axis=1) if columns else np.zeros((1, 0), int)
    return tuple(int(column) for column in columns), states, frame[value].to_numpy(dtype=np.float64)
