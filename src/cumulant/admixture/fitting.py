"""The methods of `Admixture`: each gives draws of memberships, and what it knows of the evidence."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cumulant import checks, sampling
from cumulant.admixture.collapsed import begin_chains, run_chains
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.evidence import EvidenceBridge, annealed_evidence, evidence_error
from cumulant.admixture.mean_field import mean_field
from cumulant.admixture.model import AdmixtureModel, Counts
from cumulant.admixture.posterior import MembershipDraws
from cumulant.admixture.two_stage import TwoStageGibbs
from cumulant.admixture.two_stage_kernels import count_tokens
from cumulant.admixture.variational import variational_evidence
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CumulantError
from cumulant.particles.engine import Settings
from cumulant.particles.islands import Runs, island_seeds

_CHAINS = {"draws": 200, "chains": 4, "burn_in": 1000, "thin": 5}
DEFAULTS: dict[str, dict[str, Any]] = {
    "collapsed_gibbs": _CHAINS,
    "gibbs": {**_CHAINS, "exchange": True},
    "mean_field": {"n_starts": 8, "max_sweeps": 2000, "tol": 1e-8, "draws": 200},
    "ais": {"n_particles": 100, "n_temperatures": 500, "n_sweeps": 1, "exchange": True, "n_islands": 1},
    "variational_smc": {
        "n_particles": 100,
        "n_steps": 100,
        "finish": 100,
        "safeguard": "exact",
        "exchange": True,
        "pilot": False,
        "n_islands": 1,
    },
}


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """What a method found; `answer` are the arrays that its certificate is about."""

    draws: MembershipDraws
    result: Any
    evidence: float | None = None
    evidence_error: float | None = None
    elbo: float | None = None
    certificate: Certificate | None = None
    answer: tuple[np.ndarray, ...] = ()


def fit_by(
    method: str, model: AdmixtureModel, options: dict[str, Any], seed: int, n_jobs: int | None, progress: Any = False
) -> Fitted:
    """Run a method of `DEFAULTS`."""
    return _METHODS[method](model, options, seed, n_jobs, progress)


def subject_of(
    method: str, model: AdmixtureModel, options: dict[str, Any], seed: int, answer: tuple[np.ndarray, ...]
) -> Subject:
    """What the certificate of a method speaks of."""
    if method == "mean_field":
        return Subject(model, answer)
    if method == "variational_smc":  # the pilot runs again for its path
        return Subject(variational_evidence(model, rng=seed, **options).runs, answer[0])
    bridge = EvidenceBridge(model, options["n_temperatures"], options["n_sweeps"], options["exchange"])
    seeds = island_seeds(seed, options["n_islands"])
    return Subject(Runs(bridge, Settings(options["n_particles"]), seeds, 0.05), answer[0])


def _two_stage(model: AdmixtureModel, options: dict[str, Any], seed: int, n_jobs: int | None, progress: Any) -> Fitted:
    checks.whole("draws", options["draws"])
    draws = sampling.sample(
        TwoStageGibbs(options["exchange"], n_jobs), model, options["draws"], rng=seed, **_of_chains(options)
    )
    members, frequencies = (draws[name].reshape(len(draws), *shape) for name, shape in model.shapes.items())
    return Fitted(MembershipDraws(members, frequencies, np.full(len(draws), 1 / len(draws))), draws)


def _collapsed(model: AdmixtureModel, options: dict[str, Any], seed: int, n_jobs: int | None, progress: Any) -> Fitted:
    """Of each draw the counts are kept, not the components of the tokens, of which there may be millions."""
    corpus, k = model.corpus, model.n_components
    draws, chains, burn_in, thin = (options[name] for name in ("draws", "chains", "burn_in", "thin"))
    checks.whole("draws", draws)
    target = CollapsedPosterior(corpus, k, model.membership_prior, model.allele_prior)
    begun = begin_chains(target, chains, burn_in, thin, None, False, seed)
    counts = Counts.zeros(corpus, k, chains * draws)

    def keep(chain: int, draw: int, z: np.ndarray) -> None:
        row = slice(chain * draws + draw, chain * draws + draw + 1)
        count_tokens(z[None], corpus.document, corpus.word, counts.words[row], counts.documents[row])

    result = run_chains(begun, burn_in + draws * thin, progress, None, n_jobs, keep)
    done = result.log_joint.shape[1]
    if done == 0:
        raise CumulantError(f"interrupted after {result.state.sweeps} sweeps, before the first draw: there is no fit")
    rows = (np.arange(chains)[:, None] * draws + np.arange(done)).ravel()
    counts = Counts(*(each[rows] for each in counts)) if done < draws else counts
    weights = np.full(rows.size, 1 / rows.size)
    return Fitted(MembershipDraws.of_counts(model, counts, weights, seed, n_jobs), result)


def _of_chains(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("chains", "burn_in", "thin")}


def _mean_field(model: AdmixtureModel, options: dict[str, Any], seed: int, n_jobs: int | None, progress: Any) -> Fitted:
    settings = {name: options[name] for name in ("n_starts", "max_sweeps", "tol")}
    n = checks.whole("draws", options["draws"])
    fit = mean_field(model, rng=seed, **settings)
    rng = np.random.default_rng([seed, 1])
    members = np.stack([_dirichlet(fit.membership_parameters, rng) for _ in range(n)])
    frequencies = np.broadcast_to(fit.frequencies, (n, *fit.frequencies.shape))
    draws = MembershipDraws(members, frequencies, np.full(n, 1 / n))
    answer = (fit.frequency_parameters, fit.membership_parameters)
    return Fitted(draws, fit, elbo=fit.elbo, certificate=fit.certificate, answer=answer)


def _dirichlet(parameters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw of each row, by logarithms: small parameters make gamma variates that underflow."""
    logs = np.log(rng.standard_gamma(parameters + 1.0)) + np.log(rng.random(parameters.shape)) / parameters
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _annealed(model: AdmixtureModel, options: dict[str, Any], seed: int, n_jobs: int | None, progress: Any) -> Fitted:
    result = annealed_evidence(model, rng=seed, n_jobs=n_jobs, progress=progress, **options)
    return _of_particles(model, result, lambda x: x, seed, n_jobs)


def _variational(
    model: AdmixtureModel, options: dict[str, Any], seed: int, n_jobs: int | None, progress: Any
) -> Fitted:
    checks.whole("finish", options["finish"])  # without it the particles are not those of the posterior
    result = variational_evidence(model, rng=seed, n_jobs=n_jobs, progress=progress, **options)
    return _of_particles(model, result, lambda x: x[0], seed, n_jobs)


def _of_particles(model: AdmixtureModel, result: Any, counts_of: Any, seed: int, n_jobs: int | None) -> Fitted:
    """Draws given the counts of weighted particles of all islands."""
    if result.status != "converged":
        raise CumulantError(f"the particles were stopped ({result.status}) before the end of their path")
    each = [counts_of(outcome.population.x) for outcome in result.outcomes]
    counts = Counts(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
    weights = result.draws.weights.reshape(-1)
    error = evidence_error(result)
    return Fitted(
        MembershipDraws.of_counts(model, counts, weights, seed, n_jobs),
        result,
        result.log_partition(),
        error,
        certificate=result.certificate,
        answer=() if result.certificate is None else (result.subject.answer,),
    )


_METHODS = {
    "collapsed_gibbs": _collapsed,
    "gibbs": _two_stage,
    "mean_field": _mean_field,
    "ais": _annealed,
    "variational_smc": _variational,
}
