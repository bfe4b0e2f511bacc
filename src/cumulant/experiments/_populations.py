"""Trials of the methods that chapter 3 of Carbonetto (2009) compares on simulated populations."""

import time
from typing import Any

import numpy as np

from cumulant import admixture, particles
from cumulant.admixture.fitting import fit_by

NAMES = {
    "gibbs": "two-stage Gibbs",
    "collapsed_gibbs": "collapsed Gibbs",
    "ais": "annealing",
    "exchange": "annealing with exchanges",
    "published": "variational, as published",
    "variational": "variational, our defaults",
    "finished": "variational, annealed to the posterior",
}
PUBLISHED = particles.Safeguard("joint-quadratic", variance=0.95)  # section 3.5.2
_PARTICLES = 100


def trials(method: str, model: admixture.AdmixtureModel, count: int, events: int, rng: int) -> dict[str, Any]:
    """Agreement of the trials, levels of each, estimates of the evidence, the last parameters, and seconds.

    An event is a sweep of a chain, or a step of one of 100 particles.
    """
    runs, evidence, last, began = [], [], [], time.process_time()
    for trial in range(count):
        seed = 1000 * rng + trial
        if method in ("gibbs", "collapsed_gibbs"):
            burn_in, thin = events // 5, 40
            options = {"draws": (events - burn_in) // thin, "chains": 1, "burn_in": burn_in, "thin": thin}
            options |= {"exchange": False} if method == "gibbs" else {}
            draws = fit_by(method, model, options, seed, 1).draws
        elif method in ("ais", "exchange"):
            options = {"n_particles": _PARTICLES, "n_temperatures": events // _PARTICLES, "n_sweeps": 1, "n_islands": 1}
            options["exchange"] = method == "exchange"
            fit = fit_by("ais", model, options, seed, 1)
            draws = fit.draws
            evidence.append(fit.evidence)
        else:
            finish = events // (2 * _PARTICLES) if method == "finished" else None
            settings = {"safeguard": PUBLISHED, "exchange": False} if method == "published" else {}
            steps = events // _PARTICLES - (finish or 0)
            result = admixture.variational_evidence(
                model, _PARTICLES, steps, finish=finish, rng=seed, n_jobs=1, **settings
            )
            outcome = result.outcomes[0]
            logs = outcome.population.x[1]
            draws = admixture.MembershipDraws(
                np.exp(logs.memberships), np.exp(logs.frequencies), outcome.population.weights
            )
            evidence.append(result.log_partition())
            last.append(result.theta[0, -2:])
        runs.append((draws.distance, draws.level))
    return {
        "report": admixture.agreement_report(runs),
        "levels": np.array([level for _, level in runs]),
        "evidence": np.array(evidence),
        "last": np.array(last),
        "seconds": (time.process_time() - began) / count,
    }
