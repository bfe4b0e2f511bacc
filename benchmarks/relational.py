"""The E-step of the relational model by loopy messages, and EM on the study of Carbonetto (2009), figure 5.3.

The peer is the same algorithm in plain NumPy (`tests/reference/relational_messages.py`): all messages of a sweep at
once, without damping where that settles and else with 0.3, to the same change of 1e-9. Both must reach the same free
energy, beliefs and parameters. Seconds are of the processor, on one thread, after compiling. The study has nine shares
of independent people and 16 trials of each; a trial is 40 iterations of EM on eight networks of 50 people, and all 144
are run. What was promised before the first run: an E-step of 1,000 people in a second, the study in 15 minutes, and
five times the speed of NumPy.
"""

import time

import numpy as np
from tests.reference.relational_messages import e_step

from benchmarks.timing import Row
from cumulant.relational import Counts, SmokersModel, fit_em

_REST = (0.10, 0.02, 0.30, 0.10, 0.15, 0.10, 0.4, 0.5, 0.5, 0.3, 0.05, 0.9, 0.5)
_SHARES, _TRIALS, _NETWORKS, _PEOPLE, _ITERATIONS = np.arange(1, 10) / 10, 16, 8, 50, 40
_REPEATS = 5


def run() -> list[Row]:
    return [*(row for n in (50, 200, 1000) for row in one_e_step(n)), trial_against_numpy(), study()]


def cpu_seconds(work) -> float:
    """Of the processor, for one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(name: str, peer: str, ours, theirs, bar: float, repeats: int = _REPEATS) -> Row:
    """Both sides in turn, after a first call of each."""
    ours()
    theirs()
    times = np.array([[cpu_seconds(side) for side in (ours, theirs)] for _ in range(repeats)])
    ratios = times[:, 1] / times[:, 0]
    mine, its = np.median(times, axis=0)
    return shown(Row(name, peer, float(mine), float(its), float(np.median(ratios)), (ratios.min(), ratios.max()), bar))


def promised(name: str, spent: list[float], limit: float) -> Row:
    """Seconds spent beside those that were promised."""
    ratios, middle = limit / np.array(spent), float(np.median(spent))
    return shown(Row(name, "promised", middle, limit, limit / middle, (ratios.min(), ratios.max()), 1.0))


def shown(row: Row) -> Row:
    print(row, flush=True)
    return row


def plainly(model: SmokersModel, net):
    """The E-step of the peer."""
    found = e_step(model.theta, net, max_sweeps=500)
    return found if found.change <= 1e-9 else e_step(model.theta, net, damping=0.3, max_sweeps=500)


def one_e_step(n: int) -> list[Row]:
    """From uniform messages, with all counts."""
    model = SmokersModel((0.5, *_REST))
    net = model.sample(n, 1)
    ours, theirs = model.posterior(net, pairs=False), plainly(model, net)
    assert ours.converged, "messages must settle"
    assert theirs.change <= 1e-9, "messages of NumPy must settle"
    np.testing.assert_allclose(ours.require_log_likelihood(), theirs.log_likelihood, rtol=1e-9)
    np.testing.assert_allclose(ours.independence, theirs.independence, atol=1e-6)
    np.testing.assert_allclose(ours.counts.trials, theirs.trials, rtol=1e-5, atol=1e-4)
    print(f"  {n} people: {ours.sweeps} sweeps, NumPy {theirs.sweeps}; log p ~ {ours.require_log_likelihood():.6f}")
    name = f"loopy E-step, {n} people"
    few = 2 if n == 1000 else _REPEATS
    rows = [compare(name, "NumPy", lambda: model.posterior(net, pairs=False), lambda: plainly(model, net), 5.0, few)]
    if n == 1000:
        spent = [cpu_seconds(lambda: model.posterior(net, pairs=False)) for _ in range(_REPEATS)]
        rows.append(promised(name, spent, 1.0))
    return rows


def networks(share: float, seed: int) -> list:
    model, rng = SmokersModel((share, *_REST)), np.random.default_rng(seed)
    return [model.sample(_PEOPLE, rng).without_latents() for _ in range(_NETWORKS)]


def fit(nets: list):
    return fit_em(nets, max_iter=_ITERATIONS, tol=0.0, n_jobs=1)


def trial_against_numpy() -> Row:
    """One trial, without any stopping on either side."""
    nets = networks(0.5, 0)

    def numpy_em():
        theta = fit(nets).thetas[0]
        for _ in range(_ITERATIONS):
            beliefs = [plainly(SmokersModel(theta), net) for net in nets]
            theta = sum((Counts(each.successes, each.trials) for each in beliefs), Counts.zeros()).map_estimate(
                4.0, 4.0
            )
        return theta

    np.testing.assert_allclose(fit(nets).thetas[-1], numpy_em(), atol=1e-6)
    return compare("EM, 8 networks of 50, 40 iterations", "NumPy", lambda: fit(nets), numpy_em, 5.0, 2)


def study() -> Row:
    """All 144 trials: drawing the networks is not counted, learning from them is."""
    spent, settled = 0.0, 0
    for share in _SHARES:
        for trial in range(_TRIALS):
            nets = networks(float(share), 1000 * round(10 * share) + trial)
            start = time.process_time()
            settled += bool(fit(nets).e_steps_converged)
            spent += time.process_time() - start
    print(f"  messages of all E-steps settled in {settled} of {_SHARES.size * _TRIALS} trials")
    return promised("EM of the study, 9 shares x 16 trials", [spent], 900.0)


if __name__ == "__main__":
    run()
