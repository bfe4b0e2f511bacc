"""Two variables before and after changes, fitted: to tables of categories, and to normal distributions."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cumulant import checks, families
from cumulant.causal.adaptation import adapt_categorical
from cumulant.causal.categorical import CategoricalSCM
from cumulant.causal.changes import Change, in_units, normal_changes, pseudo_counts, table_changes
from cumulant.causal.discretise import Bins
from cumulant.causal.normal_adaptation import adapt_normal
from cumulant.causal.normal_model import NormalSCM
from cumulant.causal.table_posterior import draw_tables
from cumulant.causal.tables import encode, learn_column
from cumulant.causal.trajectories import Trajectories

_TRIES = 50  # to draw rows that are not on one line
_SINGULAR = 1e-12  # determinants of correlations at most this are taken to be zero


@dataclass(frozen=True, eq=False)
class CategoricalPairs:
    """Tables of counts, the reference first, and the pseudo-counts of a cell that are averaged over."""

    counts: list[np.ndarray]
    pseudo_count: float | None
    beyond: np.ndarray
    labels: list[list[str]]

    models: ClassVar[tuple[str, ...]] = ("causal", "anticausal", "joint")
    default_step_sizes: ClassVar[tuple[float, ...]] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 9.0)

    @classmethod
    def learn(
        cls, names, columns, transfers, n_bins, categories, strategy, outside, pseudo_count
    ) -> "CategoricalPairs":
        """Categories are those of the reference."""
        pseudo_counts(pseudo_count)  # refuses what is none
        learnt = [learn_column(*each, strategy) for each in zip(names, columns, n_bins, categories, strict=True)]
        beyond, counts = np.zeros((len(transfers), 2)), []
        for i, table in enumerate([columns, *transfers]):
            label = "reference" if i == 0 else f"transfers[{i - 1}]" if len(transfers) > 1 else "transfers"
            codes = []
            for j, (name, column, values) in enumerate(zip(names, learnt, table, strict=True)):
                codes.append(encode(label, name, column, values, outside))
                if i and isinstance(column, Bins):
                    beyond[i - 1, j] = column.beyond(values)
            cells = codes[0] * learnt[1].size + codes[1]
            size = learnt[0].size * learnt[1].size
            counts.append(np.bincount(cells, minlength=size).reshape(learnt[0].size, learnt[1].size))
        labels = [column.labels() for column in learnt]
        return cls([each.astype(float) for each in counts], pseudo_count, beyond, labels)

    @property
    def default_budget(self) -> int:
        """A quarter of the number of cells, at least 20."""
        return max(20, self.counts[0].size // 4)

    def draw(self, n: int, rng: np.random.Generator) -> list[CategoricalSCM]:
        """`n` models of each table, from the posterior over the explanations of the changes and all mechanisms."""
        drawn = draw_tables(self.counts, pseudo_counts(self.pseudo_count), n, rng)
        return [CategoricalSCM.from_log_joint(each) for each in drawn]

    def adapt(self, reference: Any, transfer: Any, T: int, step_sizes: Any, seed: int, **options: Any) -> Trajectories:
        """By stochastic gradients on the logits."""
        return adapt_categorical(reference, transfer, T, step_sizes, seed, **options)

    def changes(self) -> list[list[Change]]:
        """The explanations of each transfer."""
        return [table_changes(self.counts[0], after, self.pseudo_count) for after in self.counts[1:]]

    def tables(self, drawn: list[CategoricalSCM]) -> list[np.ndarray]:
        """Means of the tables that were drawn."""
        return [each.to_joint().mean(axis=0) for each in drawn]


@dataclass(frozen=True, eq=False)
class NormalPairs:
    """Two columns of numbers each, the reference first, all standardised by the reference."""

    values: list[np.ndarray]
    beyond: np.ndarray

    labels: ClassVar[list[list[str]]] = [[], []]
    models: ClassVar[tuple[str, ...]] = ("causal", "anticausal")
    default_step_sizes: ClassVar[tuple[float, ...]] = (0.001, 0.003, 0.01, 0.02, 0.03, 0.1, 0.2)
    default_budget: ClassVar[int] = 50

    @classmethod
    def learn(cls, names, columns, transfers) -> "NormalPairs":
        """Columns must be numbers, neither constant nor multiples of each other."""
        values, family = [], families.MultivariateNormal(2)
        origin = np.stack(
            [checks.real_array(f"column {n!r} of reference", c) for n, c in zip(names, columns, strict=True)], axis=1
        )
        for i, table in enumerate([columns, *transfers]):
            label = "reference" if i == 0 else f"transfers[{i - 1}]" if len(transfers) > 1 else "transfers"
            both = [
                checks.real_array(f"column {name!r} of {label}", each) for name, each in zip(names, table, strict=True)
            ]
            values.append(in_units(np.stack(both, axis=1), origin))
            with checks.about(label):
                family.mle(values[-1])  # refuses what has no estimate, with the reason
        centre, scale = values[0].mean(axis=0), values[0].std(axis=0)
        return cls([(each - centre) / scale for each in values], np.zeros((len(transfers), 2)))

    def tables(self, drawn: list[NormalSCM]) -> list[np.ndarray]:
        """Mean and covariance of each table of values, in the rows of one array."""
        return [np.vstack([each.mean(axis=0), np.cov(each.T, bias=True)]) for each in self.values]

    def draw(self, n: int, rng: np.random.Generator) -> list[NormalSCM]:
        """`n` models of each table: maximum likelihood, of rows drawn with replacement."""
        found = []
        for values in self.values:
            centre = values.mean(axis=0)
            x, y = (values - centre).T
            features = np.stack([x, y, x * x, x * y, y * y], axis=1)
            moments = np.stack([_drawn_moments(features, rng) for _ in range(n)])
            found.append(NormalSCM.from_joint(moments[:, :2] + centre, _covariance(moments), 1))
        return found

    def adapt(self, reference: Any, transfer: Any, T: int, step_sizes: Any, seed: int, **options: Any) -> Trajectories:
        """By stochastic proximal gradients; step sizes that diverge are not chosen."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "step size .* times the expected smoothness", RuntimeWarning)
            return adapt_normal(reference, transfer, T, step_sizes, seed, **options)

    def changes(self) -> list[list[Change]]:
        """The explanations of each transfer."""
        return [normal_changes(self.values[0], after) for after in self.values[1:]]


def _drawn_moments(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of rows drawn with replacement, drawn again where they are on one line."""
    size = len(features)
    for _ in range(_TRIES):
        moments = rng.multinomial(size, np.full(size, 1 / size)) @ features / size
        covariance = _covariance(moments)
        if np.linalg.det(covariance) > _SINGULAR * covariance[0, 0] * covariance[1, 1]:
            return moments
    raise ValueError(
        f"a table of {size} rows has too few different ones for an interval: rows drawn from it with replacement were "
        f"all on one line {_TRIES} times"
    )


def _covariance(moments: np.ndarray) -> np.ndarray:
    """From the means of ``x, y, x^2, x y, y^2`` on the last axis."""
    mean = moments[..., :2]
    second = moments[..., [2, 3, 3, 4]].reshape(*mean.shape, 2)
    return second - mean[..., :, None] * mean[..., None, :]
