"""What the experiments on social networks share: learners, leave-one-out queries, and the networks of pupils."""

import csv
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cumulant.glm import GLM
from cumulant.particles import ParticleResult
from cumulant.relational import MarkovLogic, Network, SmokersModel, fit_em, loo_scores, sample_parameters
from cumulant.sampling.resampling import resample

SOURCE = "Carbonetto (2009), PhD thesis, chapter 5"
THETA = (0.5, 0.10, 0.02, 0.30, 0.10, 0.15, 0.10, 0.4, 0.5, 0.5, 0.3, 0.05, 0.9, 0.5)
TEST_VECTOR = (0.6, 0.1, 0.2, 0.7, 0.15, 0.4, 0.05, 0.3, 0.5, 0.25, 0.2, 0.1, 0.8, 0.45)
T3 = Network.from_edges([1, 1, 0], [(0, 1), (0, 2)])
LEFT_OUT = "set CUMULANT_DATA to the folder that holds networks/s50_edges.csv and networks/s50_nodes.csv"
# A double loop in EM stops at this change, as the source has it; predictions at the default of `loo_scores`.
DOUBLE_LOOP = {"tol": 1e-5}


class Answers(NamedTuple):
    """Leave-one-out queries: what was observed, the predicted probability, and whether all messages settled."""

    labels: np.ndarray
    scores: np.ndarray
    converged: bool = True

    def __add__(self, other):
        labels, scores = (np.concatenate(pair) for pair in zip(self[:2], other[:2], strict=True))
        return Answers(labels, scores, self.converged and other.converged)


class Queries(NamedTuple):
    """What is asked of a network: people, and pairs of people."""

    net: Network
    people: np.ndarray
    pairs: np.ndarray


def queries(net: Network, pairs: int | None, rng: Any, people: int | None = None) -> Queries:
    """All people, or some, and all pairs, or some, drawn without looking at anything."""
    who, which = np.arange(net.n_people), net.pairs
    if people is not None and people < who.size:
        who = np.sort(rng.choice(who, people, replace=False))
    if pairs is not None and pairs < len(which):
        which = which[np.sort(rng.choice(len(which), pairs, replace=False))]
    return Queries(net, who, which)


def learn(nets: Any, method: str, **options: Any) -> Any:
    """A fitted model: ``"loopy"``, ``"double_loop"`` or ``"gibbs"`` EM, or ``"mln"``."""
    if method == "mln":
        return MarkovLogic().fit(nets)
    extra = {"e_step_options": DOUBLE_LOOP} if method == "double_loop" else {}
    return fit_em(nets, e_step=method, **{"max_iter": 50, "n_jobs": 1, **extra, **options})


class Averaged(NamedTuple):
    """Models with probabilities drawn from their posterior, of equal weight, and the run that they are from."""

    models: list[SmokersModel]
    found: ParticleResult


def averaged(nets: list[Network], draws: int, rng: Any, **prior: Any) -> Averaged:
    """Models to average predictions over."""
    found = sample_parameters(nets, 1000, rng=rng, n_jobs=1, **prior)
    weighted = found.draws
    chosen = resample(np.asarray(weighted.log_weights)[0], draws, rng=rng)
    return Averaged([SmokersModel(theta) for theta in weighted["theta"][0, chosen]], found)


def ask(fit: Any, asked: list[Queries], method: str, decimals: int | None = None) -> tuple[Answers, Answers]:
    """Answers about attributes and about ties, over all networks.

    Scores are rounded to what they are good for, so that no query is ranked before another by what an iteration left
    over. A double loop ends with free energies that are still a little too high, the observed one less so than that of
    the query, which started from it: unrounded, its scores tell the answer.
    """
    if isinstance(fit, Averaged):
        return _mean([ask(model, asked, method, decimals) for model in fit.models])
    if decimals is None:
        decimals = 3 if method == "double_loop" else 9
    attributes, ties = [], []
    for net, people, pairs in asked:
        if isinstance(fit, MarkovLogic):
            attributes.append(Answers(net.attribute[people], fit.predict_attribute(net)[people]))
            ties.append(Answers(net.ties[pairs[:, 0], pairs[:, 1]], fit.predict_tie(net, pairs)))
            continue
        model = fit if isinstance(fit, SmokersModel) else fit.model
        # without independent people (or only with them) the posterior of z is known, and messages are exact
        way = "loopy" if method == "gibbs" else method
        found = loo_scores(model, net, method=way, people=people, pairs=pairs, n_jobs=1)
        chances = np.round(found.attributes, decimals), np.round(found.ties, decimals)
        attributes.append(Answers(found.observed_attributes, chances[0], bool(found.attributes_converged.all())))
        ties.append(Answers(found.observed_ties, chances[1], bool(found.ties_converged.all())))
    return _joined(attributes), _joined(ties)


def _joined(parts: list[Answers]) -> Answers:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _mean(answers: list[tuple[Answers, Answers]]) -> tuple[Answers, Answers]:
    """The same queries by several models: the mean of what they say."""
    smokes, friends = zip(*answers, strict=True)
    return tuple(
        Answers(each[0].labels, np.mean([one.scores for one in each], axis=0), all(one.converged for one in each))
        for each in (smokes, friends)
    )  # type: ignore[return-value]


def folder() -> Path | None:
    """The folder with the networks of pupils, if there is one."""
    given = os.environ.get("CUMULANT_DATA")
    where = Path(given or "") / "networks"
    return where if given and (where / "s50_edges.csv").exists() and (where / "s50_nodes.csv").exists() else None


def waves() -> list[Network]:
    """Fifty girls in three years: mutual friendships, and whether they smoke occasionally or regularly."""
    where = folder()
    if where is None:
        raise FileNotFoundError(LEFT_OUT)
    with (where / "s50_nodes.csv").open() as file:
        people = list(csv.DictReader(file))
    with (where / "s50_edges.csv").open() as file:
        named = [(int(row["wave"]), row["source"], row["target"]) for row in csv.DictReader(file)]
    number = {row["id"]: i for i, row in enumerate(people)}
    out = []
    for wave in (1, 2, 3):
        ties = np.zeros((len(people), len(people)), bool)
        for when, a, b in named:
            if when == wave:
                ties[number[a], number[b]] = True
        smokes = np.array([int(row[f"smoke_{wave}"]) > 1 for row in people])
        out.append(Network(smokes, ties & ties.T))
    return out


def _yes(model: GLM, rows: np.ndarray) -> np.ndarray:
    """The probability of yes for each row; there may be none."""
    return model.predict_proba(rows)[:, 1] if len(rows) else np.zeros(0)


class NetworkRegression:
    """Logistic regression on what the rest of the network says of a person or of a pair.

    Of a person: how many friends have the attribute, how many have not, and the share of friends who have it. Of a
    pair: both attributes by class, friends in common, and the number of other friends of both.
    """

    def __init__(self, l2_people: float = 1e-3, l2_pairs: float = 1e-4):
        self.l2_people, self.l2_pairs = l2_people, l2_pairs

    def fit(self, nets: list[Network]) -> "NetworkRegression":
        """Learn from all people and pairs, with a small ridge."""
        people = np.concatenate([self.people(net) for net in nets])
        pairs = np.concatenate([self.pairs(net, net.pairs) for net in nets])
        ties = np.concatenate([net.ties[tuple(net.pairs.T)] for net in nets])
        attributes = np.concatenate([net.attribute for net in nets])
        self.of_people = GLM("bernoulli", l2=self.l2_people).fit(people, attributes.astype(int))
        self.of_pairs = GLM("bernoulli", l2=self.l2_pairs).fit(pairs, ties.astype(int))
        return self

    def ask(self, asked: list[Queries]) -> tuple[Answers, Answers]:
        """Answers about attributes and about ties."""
        attributes, ties = [], []
        for net, who, which in asked:
            chance = _yes(self.of_people, self.people(net)[who])
            attributes.append(Answers(net.attribute[who], chance))
            chance = _yes(self.of_pairs, self.pairs(net, which))
            ties.append(Answers(net.ties[tuple(which.T)], chance))
        return _joined(attributes), _joined(ties)

    @staticmethod
    def people(net: Network) -> np.ndarray:
        """The features of each person; nothing of the person's own attribute."""
        with_it = net.ties.astype(float) @ net.attribute
        degree = net.degrees.astype(float)
        return np.column_stack([with_it, degree - with_it, with_it / np.maximum(degree, 1.0)])

    @staticmethod
    def pairs(net: Network, pairs: np.ndarray) -> np.ndarray:
        """The features of each pair; nothing of its own tie."""
        x, y = pairs.T
        f, own = net.ties.astype(float), net.ties[x, y].astype(float)
        kind = net.attribute[x].astype(int) + net.attribute[y]
        others = net.degrees[x] + net.degrees[y] - 2.0 * own
        return np.column_stack([kind == 1, kind == 2, (f @ f)[x, y], others])
