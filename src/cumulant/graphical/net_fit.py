"""Tables of a Bayesian network from data: every row has a Dirichlet posterior."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from cumulant.graphical.bayes_net import BayesNet
from cumulant.graphical.tables import LARGEST, require_room


@dataclass(frozen=True, eq=False)
class NetFit:
    """A network whose tables were estimated from data, and what the estimate rests on.

    Row by row, ``p(. | x_parents)`` has the posterior ``Dirichlet(counts + prior)``; the table of the network is its
    mean, ``(counts + prior) / sum(counts + prior)``.

    Attributes
    ----------
    net : BayesNet
    counts : dict of name to array
        How often each state came with each state of the parents: the shape of the table.
    prior : dict of name to array
        The pseudo-counts.
    """

    net: BayesNet
    counts: dict[Hashable, np.ndarray]
    prior: dict[Hashable, np.ndarray]

    def interval(self, name: Hashable, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Equal-tailed credible intervals of the entries of a table, each by itself: lower and upper ends.

        An entry of a Dirichlet row has a Beta distribution. The probability is that of the posterior: it rests on the
        prior, and on rows of data that are independent draws of a network with this graph.
        """
        if not isinstance(level, int | float) or not 0 < level < 1:
            raise ValueError(f"level must be strictly between 0 and 1; got {level!r}")
        self.net.require(name)
        own = self.counts[name] + self.prior[name]
        rest = own.sum(axis=-1, keepdims=True) - own
        if own.shape[-1] == 1:  # one state is certain
            return np.ones(own.shape), np.ones(own.shape)
        if (self.prior[name] <= 0).any():
            raise ValueError(f"the prior of {name!r} must be positive for credible intervals; fit with prior > 0")
        tail = 0.5 * (1.0 - level)
        return betaincinv(own, rest, tail), betaincinv(own, rest, 1.0 - tail)


def fit_tables(data: Any, parents: Mapping[Hashable, Any], states: Mapping[Any, Any] | None, prior: Any) -> NetFit:
    """See `BayesNet.fit`."""
    columns = _columns(data)
    n_rows = len(next(iter(columns.values())))
    for name, above in parents.items():
        if isinstance(above, str):
            raise ValueError(f"the parents of {name!r} must be a list of names; got {above!r}")
        missing = [each for each in (name, *above) if each not in columns]
        if missing:
            raise ValueError(f"data must have a column for each variable; {missing[0]!r} is missing")
    given = dict(states or {})
    unknown = [name for name in given if name not in columns]
    if unknown:
        raise ValueError(f"states has an entry for {unknown[0]!r}, which is not a column of data")
    coded = {name: _codes(name, column, given.get(name)) for name, column in columns.items()}
    named = any(plain is False for _, _, plain in coded.values())
    counts, pseudo, tables = {}, {}, {}
    for name in columns:
        scope = [*parents.get(name, ()), name]
        shape = tuple(len(coded[each][1]) for each in scope)
        require_room(shape, LARGEST, "a variable with fewer parents has a smaller table")
        place = np.zeros(n_rows, np.int64)
        for each, size in zip(scope, shape, strict=True):
            place = place * size + coded[each][0]
        counts[name] = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
        pseudo[name] = _pseudo_counts(name, prior, shape)
        total = (counts[name] + pseudo[name]).sum(axis=-1, keepdims=True)
        if not (total > 0).all():
            row = np.unravel_index(int(np.argmin(total)), total.shape)[:-1]
            seen = {p: coded[p][1][k] for p, k in zip(scope[:-1], row, strict=True)}
            raise ValueError(
                f"prior = 0 leaves the probabilities of {name!r} undefined: no row of data has {seen or 'any state'}; "
                "use prior > 0"
            )
        tables[name] = (counts[name] + pseudo[name]) / total
    names = {name: list(map(str, some)) for name, (_, some, _) in coded.items()} if named else None
    return NetFit(BayesNet(tables, {name: list(above) for name, above in parents.items()}, names), counts, pseudo)


def _columns(data: Any) -> dict[Hashable, Any]:
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        columns: dict[Hashable, Any] = {
            name: data[name] for name in (data if isinstance(data, Mapping) else data.columns)
        }
        lengths = {len(column) for column in columns.values()}
        if not columns or len(lengths) > 1:
            raise ValueError(f"data must have columns of one length; got lengths {sorted(lengths)}")
    else:
        array = np.asarray(data)
        if array.ndim != 2 or array.shape[1] == 0:
            raise ValueError(f"data must be a data frame or an array (rows, variables); got shape {array.shape}")
        columns = dict(enumerate(array.T))
    return columns


def _codes(name: Hashable, column: Any, states: Any) -> tuple[np.ndarray, list, bool]:
    """The number of the state in each row, the states, and whether these are the numbers from 0."""
    if states is None and hasattr(column, "cat"):  # pandas keeps the states of a categorical column, in their order
        states = [str(value) for value in column.cat.categories]
    values = np.asarray(column, dtype=object if hasattr(column, "cat") else None)
    if values.ndim != 1:
        raise ValueError(f"column {name!r} must have one value in each row; got shape {values.shape}")
    lost = [k for k, value in enumerate(values.tolist()) if value is None or value != value]
    if lost:
        raise ValueError(f"column {name!r} has no value in row {lost[0]}: rows must be complete")
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    if values.dtype.kind not in "iubOU":
        raise ValueError(
            f"column {name!r} must hold states: strings or whole numbers; got dtype {values.dtype} (pandas.cut makes "
            "classes of numbers)"
        )
    if states is None:
        different = sorted(set(values.tolist()), key=lambda value: (isinstance(value, str), value))
        if not different:
            raise ValueError(f"column {name!r} has no rows: say with states= which states it has")
        plain = values.dtype.kind in "iu" and different == list(range(len(different)))
        place = {value: k for k, value in enumerate(different)}
        return np.array([place[value] for value in values.tolist()], np.int64), different, plain
    states = list(states)
    place = {str(state): k for k, state in enumerate(states)}
    if len(place) < len(states):
        raise ValueError(f"states of {name!r} must be different; got {states!r:.80}")
    found = [place.get(str(value), -1) for value in values.tolist()]
    if found and min(found) < 0:
        row = found.index(-1)
        raise ValueError(f"column {name!r} has {values[row]!r} in row {row}, which is not one of its states {states}")
    return np.array(found, np.int64), states, False


def _pseudo_counts(name: Hashable, prior: Any, shape: tuple[int, ...]) -> np.ndarray:
    if isinstance(prior, Mapping):
        if name not in prior:
            raise ValueError(f"prior has no entry for {name!r}")
        prior = prior[name]
    array = np.asarray(prior, dtype=np.float64)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(f"prior must be finite numbers that are not negative; got {prior!r:.80} for {name!r}")
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise ValueError(f"prior of {name!r} must be a number or have the shape {shape}; got {array.shape}") from None
