"""Simulated populations against exact probabilities, and learning when nothing is hidden."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

from cumulant.relational import Network, SmokersModel, fit_complete
from tests.reference import relational as reference
from tests.relational.networks import READINGS, STUDY, T3, THETA


@pytest.mark.parametrize("size", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_frequencies_of_two_people(size):
    """Check 19: 10^5 populations of two, within four standard errors of check 2."""
    model, rng = SmokersModel(THETA), np.random.default_rng(0)
    tied, smokes, both = 0, 0, 0
    for _ in range(size):
        net = model.sample(2, rng)
        tied += net.ties[0, 1]
        smokes += net.attribute[0]
        both += net.ties[0, 1] and net.attribute.all()
    for count, p in ((tied, 0.18656), (smokes, 0.26801), (both, 0.0518)):
        assert abs(count / size - p) < 4 * np.sqrt(p * (1 - p) / size)


@pytest.mark.parametrize("influence", READINGS)
def test_frequencies_of_three_people(influence):
    """Check 19: chi-square over the 64 outcomes."""
    model, rng, size = SmokersModel(THETA, influence), np.random.default_rng(1), 20_000
    outcomes = list(reference.evidence(3))
    number = {(tuple(s), frozenset(f)): i for i, (s, f) in enumerate(outcomes)}
    counts = np.zeros(64)
    for _ in range(size):
        attribute, ties = reference.observed(model.sample(3, rng))
        counts[number[tuple(attribute), frozenset(ties)]] += 1
    states = list(np.ndindex(2, 2, 2))
    expected = size * np.array([
        sum(reference.joint(THETA, *each, z, influence == "ordered") for z in states) for each in outcomes
    ])  # fmt: skip
    few = expected < 5
    if few.any():  # into one cell
        counts, expected = (np.append(each[~few], each[few].sum()) for each in (counts, expected))
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, counts.size - 1) > 1e-3


@pytest.mark.parametrize("influence", READINGS)
def test_latent_variables_follow_the_rules(influence):
    """Gates are of friends who are able to; ORs are of the gates; each rule has its frequency within 4.5 errors."""
    model, n = SmokersModel(STUDY, influence), 25
    earlier = np.arange(n)[None, :] < np.arange(n)[:, None]
    nets = [model.sample(n, seed) for seed in range(60)]
    for net in nets:
        hidden, s = net.latents, net.attribute
        able = hidden.independent[None, :] | (earlier & (influence == "ordered"))
        assert not (hidden.sways & ~(net.ties & able)).any()
        assert (hidden.encouraged == (hidden.sways & s).any(axis=1)).all()
        assert (hidden.discouraged == (hidden.sways & ~s).any(axis=1)).all()
        assert fit_complete(net, influence=influence).counts.trials[8] == (net.ties & able & s[None, :]).sum()
    counts, p = fit_complete(nets, influence=influence).counts, np.array(STUDY)
    assert counts.trials.min() > 40
    error = np.sqrt(p * (1 - p) / counts.trials)
    assert (np.abs(counts.successes / counts.trials - p) < 4.5 * error).all()


def test_seeds():
    one, two, other = (SmokersModel(STUDY).sample(20, seed) for seed in (5, 5, 6))
    assert (one.ties == two.ties).all()
    assert (one.attribute == two.attribute).all()
    assert (one.ties != other.ties).any()


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_everybody_or_nobody_independent(certain):
    net = SmokersModel((certain, *STUDY[1:])).sample(50, 0)
    assert (net.latents.independent == bool(certain)).all()
    assert certain or not net.latents.sways.any()


# Complete data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
def test_the_mode_with_complete_data(influence):
    """Check 14: (count + 3) / (count + 6), with counts by a loop over people, pairs and gates."""
    nets = [SmokersModel(THETA, influence).sample(9, seed) for seed in range(3)]
    successes, trials = np.zeros(14), np.zeros(14)

    def use(rule, success):
        trials[rule] += 1
        successes[rule] += success

    for net in nets:
        attribute, ties = reference.observed(net)
        z, sways = net.latents.independent, net.latents.sways
        for x in range(9):
            use(0, z[x])
            for y in range(x + 1, 9):
                use(reference.rule_of_pair(attribute, z, x, y), (x, y) in ties)
            for y in range(9):
                if (x, y) in ties and reference.able(z, x, y, influence == "ordered"):
                    use(8 if attribute[y] else 9, sways[x, y])
            a, b = ((sways[x] & (net.attribute == kind)).any() for kind in (True, False))
            use(7 if z[x] else 10 + 2 * int(a) + int(b), attribute[x])
    fit = fit_complete(nets, influence=influence)
    assert_allclose(fit.counts.trials, trials)
    assert_allclose(fit.counts.successes, successes)
    assert_allclose(fit.theta, (successes + 3) / (trials + 6))
    used = trials > 0
    if used.all():
        assert_allclose(fit_complete(nets, 1.0, 1.0, influence=influence).theta, successes / trials)


def test_the_exact_e_step_of_known_latents_is_the_mean_of_complete_counts():
    """Counts of simulated worlds that agree with T3 average to the exact expected counts: four standard errors."""
    model, rng, rows = SmokersModel(THETA), np.random.default_rng(0), []
    while len(rows) < 100:
        net = model.sample(3, rng)
        if (net.attribute == T3.attribute).all() and (net.ties == T3.ties).all():
            rows.append(fit_complete(net).counts.trials)
    exact, rows = model.posterior(T3, "exact").counts.trials, np.array(rows)
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    assert (np.abs(rows.mean(axis=0) - exact) <= 4.5 * error + 0.02 * (error == 0)).all()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fit_complete(T3), ValueError, "nets must have latents"),
        (lambda: fit_complete([]), ValueError, "at least one Network"),
        (lambda: fit_complete(SmokersModel().sample(3, 0), 0.5), ValueError, "alpha must be finite and at least 1"),
        (lambda: fit_complete(SmokersModel().sample(3, 0), influence="x"), ValueError, "influence must be one of"),
        (lambda: fit_complete(SmokersModel().sample(1, 0), 1, 1), ValueError, "was never used and has no estimate"),
        (lambda: Network([1], [[0]], SmokersModel().sample(3, 0).latents), ValueError, r"shape \(1,\); got \(3,\)"),
        (lambda: Network([1], [[0]], latents=3), TypeError, "latents must be Latents of a simulation"),
    ],
)  # fmt: skip
def test_arguments_are_checked(call, error, words):
    with pytest.raises(error, match=words):
        call()
