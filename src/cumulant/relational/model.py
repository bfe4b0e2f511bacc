"""The model: who decides independently, who is tied to whom, and who is swayed by whom."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Interval, rounding
from cumulant.graphical.bounds.log_partition import bound_log_partition
from cumulant.graphical.causal_independence import CausalFactorGraph
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.relational.annealing import anneal_independence
from cumulant.relational.elimination import exact, gibbs, log_joint_table, log_total
from cumulant.relational.factors import causal_factor_graph, factor_graph
from cumulant.relational.messages import double_loop, loopy, warn_unsettled
from cumulant.relational.network import Network
from cumulant.relational.parameters import DEFAULT_START, RULES, checked_parameters
from cumulant.relational.posterior import Posterior
from cumulant.relational.simulation import simulate

_METHODS = {"loopy": loopy, "double_loop": double_loop, "exact": exact, "gibbs": gibbs}


def posterior_by(method: str) -> Callable[..., Posterior]:
    """The function behind `SmokersModel.posterior`."""
    return _METHODS[checks.choice("method", method, _METHODS)]


def options_of(function: Callable[..., Posterior]) -> list[str]:
    """What it takes besides the model and the network."""
    return list(inspect.signature(function).parameters)[2:]


@dataclass(frozen=True, eq=False)
class SmokersModel:
    """People with an attribute (smoking) and symmetric ties (friendship) that influence each other.

    A person ``x`` is independent, ``z_x = 1``, with probability ``theta_0``. Independent people choose the attribute
    first; ties depend on the attributes of independent people only; all others choose the attribute last, swayed by
    friends. So habits shape friendships and friendships shape habits, and yet for every ``z`` the model is an acyclic
    network with fourteen probabilities (Carbonetto 2009, thesis, chapter 5):

    ``p(s, f, z) = prod_x p(z_x) prod_(x<y) p(f_xy | z_x, z_y, s_x, s_y) prod_x p(s_x | z_x, encouraged, discouraged)``.

    Friends who are able to, sway a person with probability ``theta_8`` (``theta_9``) towards having the attribute
    (being without it): `encouraged` and `discouraged` are the ORs over friends of either kind.

    Parameters
    ----------
    theta : array (14,)
        See `RULES` for what each is the probability of; `theta[0]` may be 0 or 1.
    influence : {"independent", "ordered"}
        Who is able to sway: independent friends, or also friends with a smaller number, whoever they are. Only the
        first does not depend on how people are numbered.

    Examples
    --------
    >>> model = SmokersModel([.6, .1, .2, .7, .15, .4, .05, .3, .5, .25, .2, .1, .8, .45])
    >>> network = Network.from_edges([1, 1, 0], [(0, 1), (0, 2)])
    >>> round(model.log_likelihood(network, "exact"), 9)
    -5.19621106
    >>> model.posterior(network, "exact").independence.round(6)
    array([0.855132, 0.613108, 0.579929])
    >>> print(model.posterior(network))
    log p ~ -5.23131  (Bethe estimate without a certificate; ... sweeps, converged)
    """

    theta: Any = DEFAULT_START
    influence: str = "independent"

    def __post_init__(self):
        checks.choice("influence", self.influence, ("independent", "ordered"))
        object.__setattr__(self, "theta", checked_parameters("theta", self.theta))

    @property
    def ordered(self) -> bool:
        """Whether friends with a smaller number are able to sway whoever they are."""
        return self.influence == "ordered"

    @property
    def parameters(self) -> dict[str, float]:
        """The probabilities by the names of their rules."""
        return {rule.name: float(value) for rule, value in zip(RULES, self.theta, strict=True)}

    def replace(self, **values: float) -> SmokersModel:
        """The same with other values of some rules, by name.

        >>> float(SmokersModel().replace(independent=1.0).theta[0])
        1.0
        """
        checks.keywords("replace", values, [rule.name for rule in RULES])
        theta = [values.get(rule.name, value) for rule, value in zip(RULES, self.theta, strict=True)]
        return SmokersModel(theta, self.influence)

    def __repr__(self):
        return f"SmokersModel([{', '.join(f'{p:.3g}' for p in self.theta)}], influence={self.influence!r})"

    def __str__(self):
        rows = [
            f"{k:2d}  {value:.4f}  {rule.name}: {rule.meaning}"
            for k, (rule, value) in enumerate(zip(RULES, self.theta, strict=True))
        ]
        return "\n".join([f"influence of {self.influence} friends", *rows])

    def sample(self, n: int, rng: Any = None) -> Network:
        """A population of `n` people, with its latent variables.

        >>> SmokersModel().sample(5, 0).latents.independent.shape
        (5,)
        """
        return simulate(self.theta, self.ordered, checks.whole("n", n), rng)

    def posterior(self, network: Network, method: str = "loopy", **options: Any) -> Posterior:
        """Beliefs on the latent variables of a network.

        ``"loopy"`` and ``"double_loop"`` find stationary points of the Bethe free energy, the second always;
        ``"exact"`` sums over all ``z``, for at most 20 people; ``"gibbs"`` averages over Markov chains.

        Parameters
        ----------
        **options
            ``damping``, ``max_sweeps``, ``tol``, ``start``; ``max_loops``, ``inner_sweeps``, ``inner_tol``;
            ``n_sweeps``, ``burn_in``, ``n_chains``, ``rng``, ``n_jobs``; and ``pairs=False`` for no beliefs of pairs.
        """
        checks.instance("network", network, Network, "a Network")
        function = posterior_by(method)
        checks.keywords(f"posterior(method={method!r})", options, options_of(function))
        return function(self, network, **options)

    def log_likelihood(self, network: Network, method: str = "exact", **options: Any) -> Any:
        """``log p(attribute, ties)``.

        ``"exact"`` sums over all ``z`` and raises `TooWide` above 20 people. ``"bethe"`` is minus the Bethe free energy
        at a fixed point of messages: an estimate that may lie on either side, and a `ConvergenceWarning` where messages
        did not settle. ``"ais"`` is a `ParticleResult`: the
        estimate `log_partition` with its error, an interval, and a lower bound that holds with probability 0.95.
        """
        checks.instance("network", network, Network, "a Network")
        checks.choice("method", method, ("exact", "bethe", "ais"))
        if method == "exact":
            checks.keywords("log_likelihood(method='exact')", options, [])
            return log_total(log_joint_table(self, network))
        if method == "ais":
            return anneal_independence(self, network, **options)
        found = loopy(self, network, pairs=False, **options)
        if not found.converged:
            warn_unsettled("the log-likelihood is")
        return found.log_likelihood

    def bound_log_likelihood(self, network: Network, **options: Any) -> Interval:
        """An interval that contains ``log p(attribute, ties)``, with its certificate, for any number of people.

        It is `graphical.bound_log_partition` of `factor_graph`, whose options it takes, wider by what rounding may have
        done to each entry of a table of logarithms.
        """
        graph = self.factor_graph(network, causal=True)
        found = bound_log_partition(graph, **options)
        assert found.certificate is not None
        slack = rounding(1.0 + np.abs(graph.theta[np.isfinite(graph.theta)]))
        certificate = replace(found.certificate, slack=found.certificate.slack + slack)
        return Interval(found.lower - slack, found.upper + slack, found.estimate, certificate)

    def log_joint(self, network: Network) -> np.ndarray:
        """``log p(attribute, ties, z)`` for all ``z``, of shape (2, ..., 2), an axis for each of at most 20 people.

        >>> network = Network.from_edges([1, 0], [(0, 1)])
        >>> SmokersModel().log_joint(network).shape
        (2, 2)
        """
        checks.instance("network", network, Network, "a Network")
        n, found = network.n_people, log_joint_table(self, network)
        if found.size < 2**n:
            table = np.full((2,) * n, -np.inf)
            table[(int(self.theta[0]),) * n] = found[0]
            return table
        return found.reshape((2,) * n).transpose()

    def factor_graph(self, network: Network, causal: bool = False) -> FactorGraph | CausalFactorGraph:
        """The posterior as a factor graph for everything that `graphical` does; its ``Z`` is ``p(attribute, ties)``.

        Variables come in the order of people: who is independent, encouraged, discouraged; then, unless `causal`,
        gates in the order of `Posterior.gate_people`. With `causal` an OR with its gates is a chain
        (`graphical.noisy_or`), in place of a table that doubles with every friend.
        """
        checks.instance("network", network, Network, "a Network")
        build = causal_factor_graph if causal else factor_graph
        return build(self.theta, self.ordered, network)
