"""The bound on averaged stochastic gradient descent, against the algorithm (acceptance check 11)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import (
    CategoricalSCM,
    Schedule,
    adapt_categorical,
    adaptation_bound,
    certify_adaptation,
    initial_distances,
    sample_normal_reference,
    sample_reference,
)
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim import rates

SMALL = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
CHANGED = SMALL.intervene("cause", [0.8, 0.2])


def copies(model, n):
    return CategoricalSCM(
        np.broadcast_to(model.log_cause, (n, *model.log_cause.shape)),
        np.broadcast_to(model.log_effect, (n, *model.log_effect.shape)),
    )


@pytest.mark.parametrize("model", ["causal", "anticausal", "joint"])
@pytest.mark.parametrize("T", [10, 100, 1000])
def test_means_over_runs_are_below_the_bound(T, model):
    """Check 11, for ``step = c / sqrt(T)``, `c` ``1``, ``sqrt(delta) / 2`` and the best: three standard errors."""
    n = 3000
    delta = float(getattr(initial_distances(SMALL, CHANGED), model))
    B = np.sqrt(2.0) if model == "joint" else 2.0
    cs = np.array([1.0, np.sqrt(delta) / 2, np.sqrt(delta) / B])
    runs = adapt_categorical(copies(SMALL, n), copies(CHANGED, n), T, cs / np.sqrt(T), rng=T, models=model, times=[T])
    for c, kl in zip(cs, runs.kl[0, :, :, 0], strict=True):
        bound = (delta / c + c * B**2) / (2 * np.sqrt(T))
        certificate = adaptation_bound(SMALL, CHANGED, T, c / np.sqrt(T), model)
        assert_allclose(certificate.bound, bound, rtol=1e-12)
        assert kl.mean() + 3 * kl.std() / np.sqrt(n) <= bound
    best = adaptation_bound(SMALL, CHANGED, T, model=model)
    assert_allclose(best.bound, B * np.sqrt(delta / T), rtol=1e-12)
    assert_allclose(best.details["step_size"], cs[2] / np.sqrt(T), rtol=1e-12)


def test_the_bound_holds_on_random_problems():
    """Of the mean over a batch, each problem with the common best step, for dense and sparse models."""
    for prior in ("dense", "sparse"):
        reference = sample_reference(10, 300, prior, rng=0)
        for target in ("cause", "effect", "single"):
            transfer = reference.intervene(target, rng=1)
            for model in ("causal", "anticausal", "joint"):
                claimed = adaptation_bound(reference, transfer, 100, model=model)
                run = adapt_categorical(
                    reference, transfer, 100, claimed.details["step_size"], rng=2, models=model, times=[100]
                )
                kl = run.kl[0, 0, :, 0]
                assert kl.mean() - 3 * kl.std() / np.sqrt(len(kl)) <= claimed.bound


def test_the_start_counts_as_an_iterate():
    """With one observation the average is the start, and the bound holds there: ``sga`` is for averages without it."""
    certificate = adaptation_bound(SMALL, CHANGED, 1)
    assert float(CHANGED.kl(SMALL)) <= certificate.bound
    delta = float(initial_distances(SMALL, CHANGED).causal)
    later = rates.sga(np.full(101, 0.1), C=2.0, distance_squared=delta)
    first = rates.sga_constant(2.0, delta, np.arange(1, 101), step_size=0.1)
    assert np.all(later >= first)  # one step more has been taken, which may have moved away


def test_it_can_be_verified_and_not_deceived():
    certificate = adaptation_bound(SMALL, CHANGED, 100, 0.05, "anticausal")
    for schedule, words in (
        (("causal", 0, 0.05), "T must be a whole number of at least 1; got 0"),
        (("causal", np.inf, 0.05), "T must be a whole number of at least 1; got inf"),
        (("causal", 100, np.nan), "step_size must be positive and finite; got nan"),
        (("both", 100, 0.05), "model must be one of"),
    ):
        with pytest.raises(ValueError, match=words):
            certify_adaptation((SMALL, CHANGED), Schedule(*schedule))
    subject = Subject((SMALL, CHANGED), Schedule("anticausal", 100, 0.05))
    assert certificate.verify(subject).bound == certificate.bound
    with pytest.raises(CertificateError):  # the bound of the causal model is not one of the anticausal
        adaptation_bound(SMALL, CHANGED, 100, 0.05).verify(subject)
    with pytest.raises(CertificateError):
        certificate.verify(Subject((SMALL, SMALL.intervene("cause", [0.99, 0.01])), subject.answer))


@pytest.mark.parametrize("step", [1e-320, 1e308])
def test_a_bound_that_says_nothing_is_not_issued(step):
    with pytest.raises(CertificateError, match="the bound is finite with this step size"):
        adaptation_bound(SMALL, CHANGED, 10, step)


def test_where_nothing_changes_the_bound_is_zero():
    assert adaptation_bound(SMALL, SMALL, 100).bound < 1e-15


def squared_distance(mpmath, model, first, second):
    """Of the logits of a model, in as many digits as are asked for."""

    def centred(values):
        return [each - mpmath.fsum(values) / len(values) for each in values]

    def logits(scm):
        log_p, rows = ([mpmath.mpf(float(v)) for v in each] for each in (scm.log_cause, scm.log_effect.ravel()))
        rows = [rows[i * scm.sizes[1] : (i + 1) * scm.sizes[1]] for i in range(scm.sizes[0])]
        log_p, *rows = ([v - mpmath.log(mpmath.fsum(map(mpmath.exp, each))) for v in each] for each in (log_p, *rows))
        joint = [[p + v for v in row] for p, row in zip(log_p, rows, strict=True)]
        if model == "joint":
            return centred([v for row in joint for v in row])
        columns = list(zip(*joint, strict=True))
        if model == "anticausal":
            log_p = [mpmath.log(mpmath.fsum(map(mpmath.exp, each))) for each in columns]
        return sum(map(centred, rows if model == "causal" else columns), centred(log_p))

    return mpmath.fsum((a - b) ** 2 for a, b in zip(logits(first), logits(second), strict=True))


def test_the_slack_covers_rounding():
    """Against 60 digits: tables that hardly differ, tiny probabilities, steps of all sizes."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(0)
    for trial in range(60):
        K = int(rng.integers(2, 5))
        start = sample_reference(K, 1, (1.0, 10.0 ** rng.uniform(-3, 2)), rng=trial)[0]
        noise = 10.0 ** rng.uniform(-16, -1) * rng.normal(size=(K, K)) * (np.abs(start.log_joint) if trial % 2 else 1)
        goal = CategoricalSCM.from_log_joint(start.log_joint + noise)
        T, step = int(rng.integers(1, 1000)), 10.0 ** rng.uniform(-12, 1)
        for model, squared in (("causal", 4), ("anticausal", 4), ("joint", 2)):
            claimed = adaptation_bound(start, goal, T, step, model)
            with mpmath.workdps(60):
                h = mpmath.mpf(step)
                truth = squared_distance(mpmath, model, start, goal) / (2 * h * T) + h * squared / 2
                assert truth <= mpmath.mpf(claimed.bound) + mpmath.mpf(claimed.slack)


NORMAL = sample_normal_reference(1, 1, 0)
NEARER = copies(CategoricalSCM.from_logits([0.0, 1.8e154], [[0.0, 1.0], [1.0, 0.0]]), 50)  # squares add up to infinity
FAR = CategoricalSCM.from_logits([0.0, 1e200], [[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("pair", "error", "words"),
    [
        ((NORMAL, NORMAL), TypeError, "reference must be a CategoricalSCM; got NormalSCM"),
        ((SMALL, NORMAL), TypeError, "transfer must be a CategoricalSCM"),
        ((sample_reference(3, 2, rng=0), sample_reference(3, 3, rng=0)), ValueError, "must have the same shape"),
        ((sample_reference(3, 2, rng=0)[:0],) * 2, ValueError, "at least one model; got an empty batch"),
        ((FAR, FAR.intervene("cause", [0.5, 0.5])), CertificateError, "that of finite logits"),
        ((NEARER, NEARER.intervene("cause", [0.5, 0.5])), CertificateError, "that of finite logits"),
    ],
)
def test_no_bound_without_its_assumptions(pair, error, words):
    for step in (None, 0.1):
        with pytest.raises(error, match=words):
            adaptation_bound(*pair, 100, step)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0,), "T must be a whole number"),
        ((10, -1.0), "step_size must be positive and finite; got -1.0"),
        ((10, None, "both"), "model must be one of"),
    ],
)
def test_refusals(arguments, words):
    with pytest.raises(ValueError, match=words):
        adaptation_bound(SMALL, CHANGED, *arguments)


def test_rates_refuse_what_no_problem_has():
    for call in (
        lambda: rates.sga_constant(-1.0, 1.0, 10),
        lambda: rates.sga_constant(1.0, -1.0, 10),
        lambda: rates.sga_constant(1.0, 1.0, 10, step_size=0.0),
        lambda: rates.sga_best_step(0.0, 1.0, 10),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
    assert np.isinf(rates.sga_constant(1.0, 1.0, 0))
