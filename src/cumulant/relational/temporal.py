"""A population over time: people at places, who make and lose friends and take up or drop a habit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cumulant import checks, randomness
from cumulant.relational.network import Network


@dataclass(frozen=True)
class TemporalProcess:
    """Habits and friendships that influence each other, driven by where people live, which no model is told.

    In each step, first the people in their order: with probability `reset` somebody takes a habit from outside (with it
    with probability `outside`, else without), then with probability `adoption` the habit of a friend drawn at random.
    Then all pairs at once, by the habits and friends in common then. Strangers become friends with probability

    ``formation exp(-distance / reach) (1 + 2 min(friends in common, 3)) (1.5 if of one habit else 0.5) 20 / n``

    and friends part with probability `parting_same` or `parting_other`. Places are uniform in the unit square.

    Parameters
    ----------
    n_people : int
    formation, reach : float
        How often, and how near, friends are found.
    start, reset, outside, adoption : float
        The share of those who have the habit at first, and the probabilities above.
    parting_same, parting_other : float
        With which friends of one habit, or of different habits, part.

    References
    ----------
    Carbonetto (2009), section 5.3.2, describes a process of this kind in words, without its constants: these are ours.

    Examples
    --------
    >>> early, late = TemporalProcess(50).run(steps=(100, 200), rng=0)
    >>> late.n_people
    50
    """

    n_people: int
    formation: float = 0.02
    reach: float = 0.15
    start: float = 0.3
    reset: float = 0.01
    outside: float = 0.3
    adoption: float = 0.05
    parting_same: float = 0.02
    parting_other: float = 0.05

    def __post_init__(self):
        checks.whole("n_people", self.n_people, 2)
        for name in ("formation", "reach"):
            checks.positive(name, getattr(self, name))
        for name in ("start", "reset", "outside", "adoption", "parting_same", "parting_other"):
            if not 0.0 <= checks.number(name, getattr(self, name)) <= 1.0:
                raise ValueError(f"{name} must be between 0 and 1; got {getattr(self, name)}")

    def run(self, steps: Sequence[int] = (200,), rng: Any = None) -> list[Network]:
        """The population after each of the numbers of steps, which increase."""
        checks.instance("steps", steps, (tuple, list, np.ndarray), "numbers of steps")
        steps = [checks.whole("a number of steps", each) for each in steps]
        if steps != sorted(set(steps)) or not steps:
            raise ValueError(f"steps must increase; got {steps}")
        generator, n = randomness.generator(rng), self.n_people
        places = generator.random((n, 2))
        habits = generator.random(n) < self.start
        near = self.formation * np.exp(-np.linalg.norm(places[:, None] - places[None], axis=-1) / self.reach) * 20 / n
        ties = np.zeros((n, n), bool)
        found = []
        for step in range(1, steps[-1] + 1):
            self._people(habits, ties, generator)
            ties = self._pairs(habits, ties, near, generator)
            if step in steps:
                found.append(Network(habits.copy(), ties.copy()))
        return found

    def _people(self, habits: np.ndarray, ties: np.ndarray, generator: np.random.Generator) -> None:
        """People in their order, in place."""
        for x in range(self.n_people):
            if generator.random() < self.reset:
                habits[x] = generator.random() < self.outside
            if generator.random() < self.adoption:
                friends = np.flatnonzero(ties[x])
                if friends.size:
                    habits[x] = habits[generator.choice(friends)]

    def _pairs(
        self, habits: np.ndarray, ties: np.ndarray, near: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        """All pairs at once."""
        same = habits[:, None] == habits[None]
        sparse: Any = csr_array(ties.astype(np.int64))
        shared = np.minimum((sparse @ sparse).toarray(), 3)
        forms = near * (1.0 + 2.0 * shared) * np.where(same, 1.5, 0.5)
        ends = np.where(same, self.parting_same, self.parting_other)
        drawn = generator.random(ties.shape)
        new = np.triu(np.where(ties, drawn >= ends, drawn < forms), 1)
        return new | new.T
