"""Social influence as a scikit-learn estimator: from graphs to who decides for himself, and to predictions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import networkx as nx
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from cumulant import checks, files, randomness
from cumulant.certificates import Certificate, Interval
from cumulant.errors import CertificateError, FileFormatError
from cumulant.relational.annealing import sample_parameters
from cumulant.relational.graphs import network_from_graph
from cumulant.relational.learning import E_STEPS, fit_em
from cumulant.relational.messages import warn_unsettled
from cumulant.relational.model import SmokersModel
from cumulant.relational.network import Network
from cumulant.relational.parameters import RULES, checked_prior, frequency_prior
from cumulant.relational.posterior import Posterior
from cumulant.relational.prediction import LeaveOneOut, loo_scores
from cumulant.sampling.resampling import resample

_PARTICLES = 500  # at least, of which draws are taken
_REFUSALS = {
    "loopy": "messages on a graph with cycles: their free energy bounds the likelihood on neither side",
    "double_loop": "the Bethe free energy has been minimised, which bounds the likelihood on neither side",
    "gibbs": "counts were averaged over Markov chains that are not known to have mixed",
}


class SocialInfluence(BaseEstimator):
    """Habits that make friends and friends that make habits, learned together from social networks.

    Each person either decides independently of friends or does not, which is not observed. Independent people take up
    the attribute on their own, and ties depend on the attributes of independent people; the others are swayed by their
    friends. See `SmokersModel` for the fourteen probabilities.

    Parameters
    ----------
    attribute : str
        The name of the node attribute: 0 or 1, or a truth value, for every person.
    symmetrise : {None, "mutual", "any"}
        How ties of directed graphs become symmetric: see `network_from_graph`.
    e_step : {"loopy", "double_loop", "exact", "gibbs"}
        How beliefs on the latent variables are found: by messages (fast, without a guarantee), by messages that always
        settle (slow), exactly (networks of up to 20 people), or by Markov chains. Predictions use the same; after
        ``"gibbs"``, messages.
    n_restarts : int
        Further starts of the fit; the best is kept.
    influence : {"independent", "ordered"}
        Who is able to sway: see `SmokersModel`.
    alpha, beta : float or array (14,)
        Of the Beta prior of every probability, or of each.
    prior : {"same", "frequencies"}
        With ``"frequencies"`` the prior of each probability of a tie, or of the attribute, keeps its weight, ``alpha +
        beta - 2`` trials, and has its mode at the frequency in the networks: see `frequency_prior`. In a small sparse
        network ``"same"`` favours parameters under which few kinds of people and ties exist at all.
    n_draws : int
        If positive, predictions, `influence_` and sways are averages over as many draws of the probabilities from their
        posterior (`sample_parameters`), in place of those of one fit: better on small networks, where several fits are
        about as probable, and slower by this factor.
    fixed : mapping, optional
        Probabilities that are not learned, by the names of `RULES`: ``{"independent": 1.0}`` is the model in which
        nobody is swayed.
    max_iter, tol : int, float
        Of the EM algorithm: see `fit_em`.
    random_state : int, Generator or None
    n_jobs : int, optional
        Threads; answers do not depend on it.

    Attributes
    ----------
    theta_ : dict of str to float
        The learned probabilities, by the names of `RULES`.
    trials_ : dict of str to float
        How much data there was on each; with few trials an estimate is the prior's.
    influence_ : list of dicts
        For each network that was learned from, the probability that a person decides independently, given all data.
    model_ : SmokersModel
        With these probabilities.
    draws_ : array (n_draws, 14) or None
        Draws of the probabilities, of equal weight.
    evidence_ : float or None
        With `n_draws`, an estimate of ``log p(networks)``, the probabilities integrated out: larger for priors and
        restrictions that suit the networks. A prior at the ``"frequencies"`` has seen the networks: compare its
        evidence with that of other fits with this prior only.
    status_ : str
        ``"stationary"``, ``"max_steps"``, ``"interrupted"`` or, where messages of an E-step did not settle, ``"not
        settled"``.
    certificate_ : Certificate or None
        With exact E-steps, that the fit has at least the posterior density of its start; EM finds a local maximum, and
        no certificate says more. None for all other E-steps: `refusal_` says why.
    refusal_ : str or None
    objective_ : float or None
        The log-posterior, or its Bethe estimate.
    result_ : EMResult or None
        None after `load`.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.Graph([("anna", "bob"), ("bob", "carl"), ("anna", "carl"), ("dora", "emil"), ("emil", "finn")])
    >>> smokers = {"anna": 1, "bob": 1, "carl": 1, "dora": 0, "emil": 0, "finn": 0}
    >>> nx.set_node_attributes(graph, smokers, "smokes")
    >>> model = SocialInfluence("smokes", e_step="exact").fit(graph)
    >>> model.status_, sorted(model.influence_[0]) == sorted(graph)
    ('stationary', True)
    >>> bool(model.predict_attribute(graph, ["anna"])[0] > model.predict_attribute(graph, ["dora"])[0])
    True
    """

    def __init__(
        self,
        attribute: str = "attribute",
        *,
        symmetrise: str | None = None,
        e_step: str = "loopy",
        n_restarts: int = 0,
        influence: str = "independent",
        alpha: Any = 4.0,
        beta: Any = 4.0,
        prior: str = "same",
        n_draws: int = 0,
        fixed: Mapping[str, float] | None = None,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.attribute, self.symmetrise, self.e_step = attribute, symmetrise, e_step
        self.n_restarts, self.influence, self.alpha, self.beta = n_restarts, influence, alpha, beta
        self.prior, self.n_draws, self.fixed, self.max_iter, self.tol = prior, n_draws, fixed, max_iter, tol
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(self, networks: Any, y: Any = None) -> Self:
        """Learn from one graph or several: networkx graphs (`graph_from_tables` makes them), or `Network` objects."""
        checks.choice("e_step", self.e_step, E_STEPS)
        read = [self._network(each) for each in _several(networks)]
        nets = [net for net, _ in read]
        checks.whole("n_draws", self.n_draws, 0)
        alpha, beta = self.alpha, self.beta
        if checks.choice("prior", self.prior, ("same", "frequencies")) == "frequencies":
            alpha, beta = frequency_prior(nets, sum(checked_prior(alpha, beta)) - 2.0)
        self.seed_ = self._seed()
        result = fit_em(
            nets,
            e_step=self.e_step,
            alpha=alpha,
            beta=beta,
            n_restarts=self.n_restarts,
            max_iter=self.max_iter,
            tol=self.tol,
            fixed=self.fixed,
            influence=self.influence,
            rng=self.seed_,
            n_jobs=self.n_jobs,
        )
        self.result_, self.model_, self.objective_ = result, result.model, result.objective
        self.trials_ = dict(zip((rule.name for rule in RULES), result.counts.trials.tolist(), strict=True))
        self.status_ = result.status if result.e_steps_converged is not False else "not settled"
        self.certificate_, self.refusal_ = result.certificate, _REFUSALS.get(self.e_step)
        self.n_iter_ = len(result.thetas) - 1
        if self.status_ == "not settled":
            message = "messages of an E-step did not settle: the fit is not to be relied on; try e_step='double_loop'"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        elif self.status_ == "max_steps" and self.e_step != "gibbs":
            message = f"EM was stopped after max_iter={self.max_iter} iterations, before it was stationary"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        self.draws_ = self.evidence_ = None
        if self.n_draws:
            found = sample_parameters(
                nets,
                max(_PARTICLES, 2 * self.n_draws),
                alpha=alpha,
                beta=beta,
                fixed=self.fixed,
                influence=self.influence,
                rng=self.seed_,
                n_jobs=self.n_jobs,
            )
            chosen = resample(np.asarray(found.draws.log_weights)[0], self.n_draws, rng=self.seed_)
            self.draws_, self.evidence_ = found.draws["theta"][0, chosen], found.log_partition()
        self.influence_ = [self._influence(net, people) for net, people in read]
        return self

    @property
    def theta_(self) -> dict[str, float]:
        """The learned probabilities, by name."""
        return self.model_.parameters

    def influence_of(self, network: Any) -> dict[Any, float]:
        """For each person of a network, the probability of deciding independently, given all its data."""
        check_is_fitted(self)
        return self._influence(*self._network(network))

    def sways_of(self, network: Any) -> dict[tuple[Any, Any], float]:
        """For each tie of a network, both ways, the probability that the first person sways the second.

        That is ``p(x depends on friends, y decides independently and sways x | all data)`` under ``(y, x)``: the gate
        of the posterior less what it holds where ``x`` decides independently and nobody's influence matters,
        ``p(gate_xy) - sway p(z_x = 1, z_y = 1)``. It is as exact as the E-step. Sums over friends are expected numbers
        of those who sway a person, or whom a person sways.
        """
        check_is_fitted(self)
        net, people = self._network(network)
        posteriors = self._posteriors(net, "who sways whom is")
        x, y = posteriors[0].gate_people.T
        sways = np.mean([_sways(each, x, y) for each in posteriors], axis=0)
        return {(people[b], people[a]): float(p) for a, b, p in zip(x, y, sways, strict=True)}

    def predict_attribute(self, network: Any, people: Sequence[Any] | None = None) -> np.ndarray:
        """The probability that each of `people` (all, in the order of the nodes) has the attribute, given all else.

        What the network says of the attribute of the person who is asked about does not count.
        """
        net, names = self._asked(network)
        if people is not None and (isinstance(people, str) or not isinstance(people, Iterable)):
            raise TypeError(f"people must be a list of people of the network; got {people!r}")
        who = list(range(net.n_people)) if people is None else [_number(names, "people", each) for each in people]
        return np.mean([each.attributes for each in self._scores(net, people=who, pairs=[])], axis=0)

    def predict_tie(self, network: Any, pairs: Sequence[Any] | None = None) -> np.ndarray:
        """The probability of a tie given all else: for each of `pairs`, or a symmetric matrix of all."""
        net, names = self._asked(network)
        if pairs is None:
            out, (x, y) = np.zeros((net.n_people, net.n_people)), net.pairs.T
            out[x, y] = out[y, x] = np.mean([each.ties for each in self._scores(net, people=[])], axis=0)
            return out
        if isinstance(pairs, str) or not isinstance(pairs, Iterable):
            raise TypeError(f"pairs must be a list of pairs of people; got {pairs!r}")
        asked = []
        for each in pairs:
            if isinstance(each, str) or not isinstance(each, Sequence | np.ndarray) or len(each) != 2:
                raise ValueError(f"pairs must hold two people each; got {each!r}")
            asked.append([_number(names, "pairs", one) for one in each])
        return np.mean([each.ties for each in self._scores(net, people=[], pairs=asked)], axis=0)

    def score(self, networks: Any, y: Any = None) -> float:
        """The mean over people of the log-probability of their attribute given all else; larger is better."""
        check_is_fitted(self)
        parts = []
        for each in _several(networks):
            net = self._network(each)[0]
            odds = np.array([found.attribute_log_odds for found in self._scores(net, pairs=[])])
            logs = -np.logaddexp(0.0, np.where(net.attribute, -odds, odds))
            parts.append(np.logaddexp.reduce(logs) - np.log(len(odds)))
        return float(np.concatenate(parts).mean())

    def bound_log_likelihood(self, network: Any, **options: Any) -> Interval:
        """An interval that contains ``log p(attributes, ties)`` under the fitted model, with its certificate."""
        check_is_fitted(self)
        return self.model_.bound_log_likelihood(self._network(network)[0], **options)

    def verify(self, networks: Any, y: Any = None) -> Certificate:
        """Issue the certificate again from the data that were learned from: see `Certificate.verify`."""
        check_is_fitted(self)
        if self.certificate_ is None or self.result_ is None:
            why = self.refusal_ or "the fit was loaded from a file, without its starting point"
            raise CertificateError(f"there is no certificate to verify: {why}", "there is a certificate")
        nets = [self._network(each)[0] for each in _several(networks)]
        return self.certificate_.verify(replace(self.result_, nets=nets).subject)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted estimator to an `.npz` file (no pickle), which `load` reads; networks are not written."""
        check_is_fitted(self)
        held = {RULES[k].name if isinstance(k, int) else k: float(v) for k, v in (self.fixed or {}).items()}
        settings = self.get_params() | {"random_state": self.seed_, "fixed": held or None}
        settings |= {name: np.asarray(settings[name], float).tolist() for name in ("alpha", "beta")}
        fitted: dict[str, Any] = {"status": self.status_, "objective": self.objective_, "iterations": self.n_iter_}
        fitted["evidence"] = self.evidence_
        fitted["certificate"] = None if self.certificate_ is None else self.certificate_.to_json()
        arrays = {"theta": self.model_.theta, "trials": np.array(list(self.trials_.values()))}
        if self.draws_ is not None:
            arrays["draws"] = self.draws_
        return files.save(path, type(self).__name__, arrays, {"parameters": settings, "fitted": fitted})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote; `influence_` is empty, and `influence_of` gives it for any network."""
        saved = files.load(path, cls.__name__)
        try:
            new, fitted = cls(**saved.settings["parameters"]), saved.settings["fitted"]
            new.model_ = SmokersModel(saved.arrays["theta"], new.influence)
            new.trials_ = dict(zip((rule.name for rule in RULES), saved.arrays["trials"].tolist(), strict=True))
            new.status_, new.objective_, new.n_iter_ = fitted["status"], fitted["objective"], fitted["iterations"]
            new.draws_, new.evidence_ = saved.arrays.get("draws"), fitted["evidence"]
            text = fitted["certificate"]
            new.certificate_ = None if text is None else Certificate.from_json(text)
            new.refusal_, new.seed_ = _REFUSALS.get(new.e_step), new.random_state
            new.influence_, new.result_ = [], None
        except (KeyError, TypeError, ValueError) as problem:
            raise FileFormatError(f"{path} does not hold a SocialInfluence of this version: {problem}") from problem
        return new

    # Helpers ----------------------------------------------------------------------------------------------------------

    def _network(self, network: Any) -> tuple[Network, list[Any]]:
        if isinstance(network, Network):
            return network, list(range(network.n_people))
        with checks.about("network"):
            return network_from_graph(network, self.attribute, symmetrise=self.symmetrise)

    def _asked(self, network: Any) -> tuple[Network, dict[Any, int]]:
        check_is_fitted(self)
        net, people = self._network(network)
        return net, {each: i for i, each in enumerate(people)}

    def _models(self) -> list[SmokersModel]:
        """What answers are averages of."""
        if self.draws_ is None:
            return [self.model_]
        return [SmokersModel(theta, self.influence) for theta in self.draws_]

    def _posteriors(self, net: Network, what: str, pairs: bool = True, stacklevel: int = 4) -> list[Posterior]:
        found = [each.posterior(net, self.e_step, pairs=pairs, **self._options()) for each in self._models()]
        if not all(each.settled for each in found):
            warn_unsettled(what, stacklevel=stacklevel)
        return found

    def _influence(self, net: Network, people: list[Any]) -> dict[Any, float]:
        posteriors = self._posteriors(net, "who decides independently is", pairs=False, stacklevel=5)
        means = np.mean([each.independence for each in posteriors], axis=0)
        return dict(zip(people, means.tolist(), strict=True))

    def _options(self) -> dict[str, Any]:
        return {"rng": self.seed_} if self.e_step == "gibbs" else {}

    def _scores(self, net: Network, **asked: Any) -> list[LeaveOneOut]:
        method = "loopy" if self.e_step == "gibbs" else self.e_step
        found = [loo_scores(each, net, method=method, n_jobs=self.n_jobs, **asked) for each in self._models()]
        settled = [np.concatenate([each.attributes_converged, each.ties_converged]) for each in found]
        lost = int((~np.all(settled, axis=0)).sum())
        if lost:
            message = f"messages did not settle for {lost} of the predictions, which are not to be relied on"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return found

    def _seed(self) -> int:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else randomness.seed(state)


def _sways(found: Posterior, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """For the gates of persons `x` and friends `y`: that ``x`` depends on friends and ``y`` sways ``x``."""
    both, theta = found.require_pair_beliefs()[x, y, 1, 1], found.model.theta
    if found.model.ordered:  # friends before a person are able to sway, whoever they are
        both = np.where(y < x, found.independence[x], both)
    kind = np.where(found.network.attribute[y], theta[8], theta[9])
    return np.clip(found.gates - kind * both, 0.0, 1.0)


def _several(networks: Any) -> list[Any]:
    """One network or several, as a list."""
    if isinstance(networks, nx.Graph | Network):
        return [networks]
    if not isinstance(networks, Iterable) or isinstance(networks, str | Mapping | np.ndarray):
        raise TypeError(f"networks must be graphs of networkx, or Network objects; got {type(networks).__name__}")
    if hasattr(networks, "columns"):
        raise TypeError(
            "networks must be graphs of networkx, or Network objects; graph_from_tables makes one of tables"
        )
    found = list(networks)
    if not found:
        raise ValueError("networks must hold at least one; got none")
    return found


def _number(names: dict[Any, int], argument: str, person: Any) -> int:
    if not isinstance(person, Hashable) or person not in names:
        known = ", ".join(map(repr, list(names)[:5]))
        raise ValueError(f"{argument}: {person!r} is not among the {len(names)} people of the network ({known}, ...)")
    return names[person]
