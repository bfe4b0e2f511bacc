"""Trials of the methods that chapter 3 of Carbonetto (2009) compares on simulated populations."""

import time
from typing import Any

import numpy as np

from cumulant import admixture
from cumulant.admixture.fitting import fit_by

NAMES = {
    "gibbs": "two-stage Gibbs",
    "collapsed_gibbs": "collapsed Gibbs",
    "ais": "annealing",
    "exchange": "annealing with exchanges",
    "variational": "variational",
    "finished": "variational, annealed to the posterior",
}


def trials(method: str, model: admixture.AdmixtureModel, count: int, events: int, rng: int) -> dict[str, Any]:
    """Distances and levels of each trial, estimates of the evidence, the last parameters, and seconds."""
    runs, evidence, last, began = [], [], [], time.process_time()
    for trial in range(count):
        seed = 1000 * rng + trial
        if method in ("gibbs", "collapsed_gibbs"):
            burn_in, thin = events // 5, 40
            options = {"draws": (events - burn_in) // thin, "chains": 1, "burn_in": burn_in, "thin": thin}
            options |= {"exchange": False} if method == "gibbs" else {}
            draws = fit_by(method, model, options, seed, 1).draws
        elif method in ("ais", "exchange"):
            options = {"n_particles": 100, "n_temperatures": events // 100, "n_sweeps": 1, "n_islands": 1}
            options["exchange"] = method == "exchange"
            fit = fit_by("ais", model, options, seed, 1)
            draws = fit.draws
            evidence.append(fit.evidence)
        else:
            finish = events // 200 if method == "finished" else None
            steps = events // 100 - (finish or 0)
            result = admixture.variational_evidence(model, 100, steps, finish=finish, rng=seed, n_jobs=1)
            outcome = result.outcomes[0]
            members = np.exp(outcome.population.x[1].memberships)
            frequencies = np.exp(outcome.population.x[1].frequencies)
            draws = admixture.MembershipDraws(members, frequencies, outcome.population.weights)
            evidence.append(result.log_partition())
            last.append(result.theta[0, -2:])
        runs.append((draws.distance, draws.level))
    return {
        "report": admixture.agreement_report(runs),
        "evidence": np.array(evidence),
        "last": np.array(last),
        "seconds": (time.process_time() - began) / count,
    }
