"""Two environments made of one table: what the experiments on adaptation speed with real pairs share."""

import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from cumulant.causal import AdaptationSpeed, Bins, direction_log_odds
from cumulant.experiments.base import Claim, verdict
from cumulant.plotting import COLOURS, figure

SPLITS = ("cause", "effect", "random", "both")
METHOD = (
    "A pair becomes two environments: half of the rows, drawn at random, are the reference; of the other half the "
    "third with the largest values of one variable, or of the sum of the ranks of both, is the transfer. Columns are "
    "exchanged at random before the method sees them. Each variable is cut into five bins with equal shares of the "
    "reference; directions are compared after 20 observations, by the sign of the median log ratio of divergences over "
    "tables drawn from their posterior. Selecting rows by a variable changes its distribution and keeps that of the "
    "other given it, exactly: it is an intervention on a cause, whichever variable is the cause. Shares are weighted, "
    "with Wilson's intervals of two standard errors for the effective number of pairs: a claim counts where the "
    "interval is above one half."
)
EXPLORATION = "Exploration"
NOT_PUBLISHED = "no real data in the source"


def compare(
    pairs: list[tuple[np.ndarray, np.ndarray]], repeats: int, settings: tuple, seed: int
) -> tuple[dict[str, list[list["Guess"]]], list[float]]:
    """Guesses of each pair by each split, with several halves and exchanges; and the shares right by log odds."""
    guesses = {
        s: [[guess(*pair, s, seed + 1000 * r + i, *settings) for r in range(repeats)] for i, pair in enumerate(pairs)]
        for s in SPLITS
    }
    return guesses, [float(np.mean([log_odds_guess(*pair, seed + r) for r in range(repeats)])) for pair in pairs]


def claims_of(guesses: dict[str, list[list["Guess"]]], odds: list, weights: np.ndarray, kind: str) -> list[Claim]:
    """What the splits and the log odds say, against a coin."""
    causal = {s: share([np.mean([g.causal for g in pair]) for pair in pairs], weights) for s, pairs in guesses.items()}
    split = {s: share([np.mean([bool(g.split) for g in p]) for p in guesses[s]], weights) for s in ("cause", "effect")}
    sure = {s: np.mean([g.sure for pair in pairs for g in pair]) for s, pairs in guesses.items()}
    by_odds = share(odds, weights)
    return [
        Claim(
            f"{kind}: the direction with the variable that was split on as the cause adapts faster, whichever is the "
            "cause",
            NOT_PUBLISHED,
            f"split on the cause {split['cause']}, on the effect {split['effect']} of {len(weights)}",
            verdict(all(each.low > 0.5 for each in split.values())),
            EXPLORATION,
            f"interval of a pair without zero on {sure['cause']:.0%} and {sure['effect']:.0%}",
        ),
        Claim(
            f"{kind}, split on either variable at random: the faster direction is the causal one more often than a "
            "coin (accuracy)",
            NOT_PUBLISHED,
            str(causal["random"]),
            verdict(causal["random"].low > 0.5),
            EXPLORATION,
        ),
        Claim(
            f"{kind}, split on the sum of ranks, which treats both alike: the faster direction is the causal one more "
            "often than a coin (accuracy)",
            NOT_PUBLISHED,
            str(causal["both"]),
            verdict(causal["both"].low > 0.5),
            EXPLORATION,
            f"interval of a pair without zero on {sure['both']:.0%}",
        ),
        Claim(
            f"{kind}, one environment, bins of equal width: the more uniform marginal is the effect (accuracy)",
            "optimal under the dense prior; " + NOT_PUBLISHED,
            str(by_odds),
            verdict(by_odds.low > 0.5),
            EXPLORATION,
        ),
    ]


def draw(guesses: dict[str, list[list["Guess"]]], odds: list, weights: np.ndarray, kind: str) -> Any:
    """The share of pairs whose causal direction is chosen, by each way to choose."""
    fig, ax = figure(width=7.6, height=3.4)
    names = [
        "speed, split on the cause",
        "speed, split on the effect",
        "speed, split on either",
        "speed, split on both",
        "log odds of marginals",
    ]
    values = [[np.mean([g.causal for g in pair]) for pair in guesses[s]] for s in SPLITS] + [odds]
    for place, each in enumerate(values):
        found = share(each, weights)
        reach = [[found.mean - found.low], [found.high - found.mean]]
        ax.errorbar([found.mean], [place], xerr=reach, fmt="o", color=COLOURS[0])
    ax.axvline(0.5, color=COLOURS[1], linestyle="--", linewidth=1.0)
    ax.set(xlabel="weighted share of pairs whose causal direction is chosen", xlim=(-0.02, 1.02), title=kind)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    return fig


def data_file(name: str) -> Path | None:
    """A file in the folder that CUMULANT_DATA names, if it is there."""
    given = os.environ.get("CUMULANT_DATA")
    path = Path(given) / name if given else None
    return path if path is not None and path.exists() else None


class Guess(NamedTuple):
    """For one pair and one split: whether the causal direction was faster, whether the variable that was split on was
    (None for a split on both), and whether the interval excludes zero.
    """

    causal: bool
    split: bool | None
    sure: bool


def guess(x: np.ndarray, y: np.ndarray, split: str, seed: int, n_draws: int, n_runs: int) -> Guess:
    """Which direction of the pair, with the cause `x`, adapts faster after a split."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(x))
    columns = np.stack([x, y], axis=1)[order]
    where = int(generator.integers(2)) if split == "random" else {"cause": 0, "effect": 1, "both": None}[split]
    here, there = np.array_split(columns, 2)
    ranks = [rankdata(there[:, j]) for j in range(2)]
    score = ranks[0] + ranks[1] if where is None else ranks[where]
    there = there[np.argsort(score, kind="stable")[-max(10, len(there) // 3) :]]
    flip = bool(generator.integers(2))
    if flip:
        here, there = here[:, ::-1], there[:, ::-1]
    model = AdaptationSpeed(n_bins=5, n_draws=n_draws, n_runs=n_runs, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "faster adaptation does not mean cause", UserWarning)
        model.fit(here, there)
    first_is_faster = model.advantage_ > 0
    causal = first_is_faster != flip
    on_split = None if where is None else causal == (where == 0)
    return Guess(causal, on_split, model.faster_ is not None)


def log_odds_guess(x: np.ndarray, y: np.ndarray, seed: int) -> bool:
    """Whether the direction whose effect is the more uniform one is the causal one, in bins of equal width."""
    flip = bool(np.random.default_rng(seed).integers(2))
    first, second = (y, x) if flip else (x, y)
    codes = [Bins.learn(each, 5, "uniform").codes(each) for each in (first, second)]
    table = np.bincount(5 * codes[0] + codes[1], minlength=25).reshape(5, 5) + 1.0
    return bool(direction_log_odds(table / table.sum()) > 0) != flip


class Share(NamedTuple):
    """A weighted share and its interval."""

    mean: float
    low: float
    high: float

    def __str__(self):
        return f"{self.mean:.0%} ({self.low:.0%} to {self.high:.0%})"


def share(right: Any, weights: Any) -> Share:
    """The weighted share of the right ones, with Wilson's interval of two standard errors.

    The number of pairs that counts is ``(sum w)^2 / sum w^2``. Where all are right the interval has a width: 18 of 18
    leave a share of 82 % possible.
    """
    right, weights = np.asarray(right, dtype=float), np.asarray(weights, dtype=float)
    mean, n = float(weights @ right / weights.sum()), float(weights.sum() ** 2 / np.sum(weights**2))
    centre, shrink = (mean + 2 / n) / (1 + 4 / n), 1 / (1 + 4 / n)
    reach = 2 * shrink * float(np.sqrt(mean * (1 - mean) / n + 1 / n**2))
    return Share(mean, max(centre - reach, 0.0), min(centre + reach, 1.0))


def simulated(n_pairs: int, seed: int, n: int = 2000) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs ``y = tanh(a x) + b x + noise`` with a cause that is a mixture of two normal distributions."""
    generator, found = np.random.default_rng(seed), []
    for _ in range(n_pairs):
        x = generator.normal(size=n) * generator.choice([0.5, 1.5], n) + generator.choice([-1.0, 1.0], n)
        a, b, scale = generator.uniform(0.5, 3), generator.normal(0, 0.3), generator.uniform(0.2, 0.6)
        found.append((x, np.tanh(a * x) + b * x + scale * generator.normal(size=n)))
    return found
