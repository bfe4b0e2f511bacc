"""The bound on averaged stochastic gradient descent, against the algorithm (acceptance check 11)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import (
    CategoricalSCM,
    Schedule,
    adapt_categorical,
    adaptation_bound,
    initial_distances,
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
    """Check 11, with ``step = c / sqrt(T)`` for ``c = 1`` and the best one: three standard errors."""
    n = 3000
    delta = float(getattr(initial_distances(SMALL, CHANGED), model))
    B = np.sqrt(2.0) if model == "joint" else 2.0
    cs = np.array([1.0, np.sqrt(delta) / B])
    runs = adapt_categorical(copies(SMALL, n), copies(CHANGED, n), T, cs / np.sqrt(T), rng=T, models=model, times=[T])
    for c, kl in zip(cs, runs.kl[0, :, :, 0], strict=True):
        bound = (delta / c + c * B**2) / (2 * np.sqrt(T))
        certificate = adaptation_bound(SMALL, CHANGED, T, c / np.sqrt(T), model)
        assert_allclose(certificate.bound, bound, rtol=1e-12)
        assert kl.mean() + 3 * kl.std() / np.sqrt(n) <= bound
    best = adaptation_bound(SMALL, CHANGED, T, model=model)
    assert_allclose(best.bound, B * np.sqrt(delta / T), rtol=1e-12)
    assert_allclose(best.details["step_size"], cs[1] / np.sqrt(T), rtol=1e-12)


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
    subject = Subject((SMALL, CHANGED), Schedule("anticausal", 100, 0.05))
    assert certificate.verify(subject).bound == certificate.bound
    with pytest.raises(CertificateError):  # the bound of the causal model is not one of the anticausal
        adaptation_bound(SMALL, CHANGED, 100, 0.05).verify(subject)
    with pytest.raises(CertificateError):
        certificate.verify(Subject((SMALL, SMALL.intervene("cause", [0.99, 0.01])), subject.answer))


def test_where_nothing_changes_the_bound_is_zero():
    assert adaptation_bound(SMALL, SMALL, 100).bound < 1e-15


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
