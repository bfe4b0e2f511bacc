"""A population: an attribute of every person, and ties between pairs of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks


class Layout(NamedTuple):
    """A network as kernels see it. The ties of person ``x`` are the entries ``starts[x]:starts[x + 1]`` of `others`."""

    attribute: np.ndarray
    """(n,), 0 or 1"""
    starts: np.ndarray
    """(n + 1,)"""
    others: np.ndarray
    """(2 ties,), the friends of each person in increasing order"""
    mirror: np.ndarray
    """(2 ties,), the entry of the same tie in the list of the other person"""
    code: np.ndarray
    """(n, n) bytes, ``4 attribute_x + 2 attribute_y + tie_xy``: which of the eight pair tables is meant"""


@dataclass(frozen=True, eq=False)
class Latents:
    """What a simulated population knows and an observed one does not.

    Attributes
    ----------
    independent : array (n,)
        Who decides without looking at friends.
    sways : array (n, n)
        ``sways[x, y]``: friend ``y``, who is able to influence, moves ``x`` towards the attribute that ``y`` has.
    encouraged, discouraged : array (n,)
        Whether some friend with, or without, the attribute sways the person.
    """

    independent: np.ndarray
    sways: np.ndarray
    encouraged: np.ndarray
    discouraged: np.ndarray


@dataclass(frozen=True, eq=False)
class Network:
    """People with a binary attribute (they smoke or not) and symmetric ties (they are friends or not).

    Parameters
    ----------
    attribute : array (n,)
        0 or 1 for each person.
    ties : array (n, n)
        0 or 1, symmetric, with zeros on the diagonal.
    latents : Latents, optional
        What a simulation drew besides.

    Examples
    --------
    >>> network = Network.from_edges([1, 1, 0], [(0, 1), (0, 2)])
    >>> network
    Network(3 people, 2 with the attribute, 2 ties)
    >>> network.degrees
    array([2, 1, 1])
    >>> network.with_tie(1, 2, True).n_ties
    3
    """

    attribute: np.ndarray
    ties: np.ndarray
    latents: Latents | None = field(default=None, repr=False)

    def __post_init__(self):
        attribute = _binary("attribute", self.attribute, 1)
        ties = _binary("ties", self.ties, 2)
        n = attribute.size
        if n == 0:
            raise ValueError("attribute must hold at least one person; got none")
        if ties.shape != (n, n):
            raise ValueError(
                f"ties must have a row and a column for each of {n} people of attribute; got shape {ties.shape}"
            )
        if ties.diagonal().any():
            raise ValueError(
                f"ties must have zeros on the diagonal; person {int(np.argmax(ties.diagonal()))} is tied to itself"
            )
        uneven = np.argwhere(ties != ties.T)
        if uneven.size:
            x, y = uneven[0].tolist()
            raise ValueError(f"ties must be symmetric; ties[{x}, {y}] is {int(ties[x, y])} and ties[{y}, {x}] is not")
        if self.latents is not None:
            checks.instance("latents", self.latents, Latents, "Latents of a simulation")
            for name in ("independent", "sways", "encouraged", "discouraged"):
                shape = (n, n) if name == "sways" else (n,)
                if np.shape(getattr(self.latents, name)) != shape:
                    found = np.shape(getattr(self.latents, name))
                    raise ValueError(f"latents.{name} must be of shape {shape}; got {found}")
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "ties", ties)

    @classmethod
    def from_edges(cls, attribute: Any, edges: Any) -> Network:
        """From pairs of people, numbered from 0; a pair may be named twice."""
        attribute = _binary("attribute", attribute, 1)
        n = attribute.size
        if not hasattr(edges, "__len__"):
            raise TypeError(f"edges must be a list of pairs of people; got {edges!r:.60}")
        pairs = checks.array("edges", edges if len(edges) else np.zeros((0, 2), np.int64))
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(
                f"edges must be pairs of whole numbers, of shape (ties, 2); got shape {pairs.shape}, {pairs.dtype}"
            )
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < n):
            raise ValueError(f"edges must name people from 0 to {n - 1}; got {int(pairs.min())} to {int(pairs.max())}")
        ties = np.zeros((n, n), bool)
        ties[pairs[:, 0], pairs[:, 1]] = ties[pairs[:, 1], pairs[:, 0]] = True
        return cls(attribute, ties)

    def __repr__(self):
        return f"Network({self.n_people} people, {int(self.attribute.sum())} with the attribute, {self.n_ties} ties)"

    @property
    def n_people(self) -> int:
        """How many people there are."""
        return self.attribute.size

    @property
    def n_ties(self) -> int:
        """How many pairs are tied."""
        return int(self.ties.sum()) // 2

    @property
    def degrees(self) -> np.ndarray:
        """How many ties each person has."""
        return self.ties.sum(axis=1)

    @property
    def pairs(self) -> np.ndarray:
        """All pairs of people, (n (n - 1) / 2, 2), the first before the second."""
        return np.stack(np.triu_indices(self.n_people, 1), axis=1)

    @property
    def edges(self) -> np.ndarray:
        """The pairs that are tied, (ties, 2)."""
        return np.argwhere(np.triu(self.ties))

    def with_attribute(self, x: int, value: bool) -> Network:
        """The same with another attribute of person `x`, without latents."""
        attribute = self.attribute.copy()
        attribute[self._person("x", x)] = _yes_or_no(value)
        return Network(attribute, self.ties)

    def with_tie(self, x: int, y: int, value: bool) -> Network:
        """The same with, or without, a tie of `x` and `y`, without latents."""
        x, y = self._person("x", x), self._person("y", y)
        if x == y:
            raise ValueError(f"x and y must be two people; got {x} twice")
        ties = self.ties.copy()
        ties[x, y] = ties[y, x] = _yes_or_no(value)
        return Network(self.attribute, ties)

    def permuted(self, order: Any) -> Network:
        """The same people in another order, without latents: the first is the one that had number ``order[0]``."""
        order = checks.array("order", order)
        if order.ndim != 1 or order.dtype.kind not in "iu" or sorted(order.tolist()) != list(range(self.n_people)):
            raise ValueError(f"order must hold each of the numbers 0 to {self.n_people - 1} once; got {order!s:.60}")
        return Network(self.attribute[order], self.ties[np.ix_(order, order)])

    def without_latents(self) -> Network:
        """What is observed of it."""
        return replace(self, latents=None)

    @functools.cached_property
    def layout(self) -> Layout:
        """The arrays that kernels take."""
        attribute = self.attribute.astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(self.degrees)]).astype(np.int64)
        rows, others = np.nonzero(self.ties)
        mirror = np.empty(others.size, np.int64)
        mirror[np.lexsort((rows, others))] = np.arange(others.size)
        code = 4 * attribute[:, None] + 2 * attribute[None, :] + self.ties
        return Layout(attribute, starts, others.astype(np.int64), mirror, code.astype(np.uint8))

    def _person(self, name: str, x: Any) -> int:
        if checks.whole(name, x, 0) >= self.n_people:
            raise ValueError(f"{name} must be a person from 0 to {self.n_people - 1}; got {x}")
        return int(x)


def _yes_or_no(value: Any) -> bool:
    return bool(_binary("value", value, 0))


def networks_of(nets: Any) -> list[Network]:
    """One network or several, as a list."""
    if isinstance(nets, Network):
        return [nets]
    try:
        found = list(nets)
    except TypeError:
        raise TypeError(f"nets must be a Network or a sequence of them; got {type(nets).__name__}") from None
    if not found:
        raise ValueError("nets must hold at least one Network; got none")
    for net in found:
        checks.instance("each of nets", net, Network, "a Network")
    return found


def people_of(name: str, value: Any, n: int) -> np.ndarray:
    """Numbers of people from 0 to ``n - 1``, (people,); there may be none."""
    return _numbers(name, value, (), n)


def pairs_of(name: str, value: Any, n: int) -> np.ndarray:
    """Pairs of different people, (pairs, 2); there may be none."""
    found = _numbers(name, value, (2,), n)
    if (found[:, 0] == found[:, 1]).any():
        raise ValueError(f"{name} must be of two different people")
    return found


def _numbers(name: str, value: Any, of_each: tuple[int, ...], n: int) -> np.ndarray:
    found = checks.array(name, value)
    if found.size == 0:
        return np.zeros((0, *of_each), np.int64)
    if found.dtype.kind not in "iu" or found.ndim == 0 or found.shape[1:] != of_each:
        shape = "(pairs, 2)" if of_each else "(people,)"
        raise ValueError(f"{name} must be whole numbers of shape {shape}; got {found.dtype}, shape {found.shape}")
    if not (found.min() >= 0 and found.max() < n):
        raise ValueError(f"{name} must be people from 0 to {n - 1}; got {int(found.min())} to {int(found.max())}")
    return found.astype(np.int64)


def _binary(name: str, value: Any, ndim: int) -> np.ndarray:
    found = checks.real_array(name, value, ndim=ndim)
    wrong = ~np.isin(found, (0.0, 1.0))
    if wrong.any():
        raise ValueError(f"{name} must hold 0 and 1 only; got {found[wrong][0]:g}")
    return found.astype(bool)
