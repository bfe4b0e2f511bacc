"""Gibbs, mean field and evidence of an admixture on a corpus whose posterior is known by enumeration."""

import numpy as np
import pytest

from cumulant import admixture, sampling
from cumulant.admixture.mean_field import _Ascent
from tests.admixture.tiny import ASSIGNMENTS, CORPUS, LOG_EVIDENCE, MODEL, SAME


def same_component(draws, i, j):
    """``P(z_i = z_j)`` given the memberships and frequencies of each draw: (chains, draws)."""
    tau, beta = draws["memberships"], draws["frequencies"]
    parts = []
    for token in (i, j):
        p = tau[:, :, CORPUS.document[token]] * beta[:, :, :, CORPUS.word[token]]
        parts.append(p / p.sum(axis=2, keepdims=True))
    return (parts[0] * parts[1]).sum(axis=2)


def test_two_stage_gibbs_has_the_posterior_of_enumeration():
    draws = sampling.sample(admixture.TwoStageGibbs(), MODEL, 20_000, chains=4, burn_in=200, rng=1)
    for (i, j), exact in SAME.items():
        values = same_component(draws, i, j)
        error = values.std() / np.sqrt(sampling.effective_sample_size(values))
        assert abs(values.mean() - exact) < 4 * error
    assert np.asarray(draws.settings["n"]) == 20_000


def test_chains_do_not_depend_on_threads_and_can_be_continued():
    one, two = (
        sampling.sample(admixture.TwoStageGibbs(n_jobs=jobs), MODEL, 20, chains=3, burn_in=5, rng=2) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.values, two.values)
    sampler = admixture.TwoStageGibbs()
    state = sampler.init(MODEL, MODEL.starts(3, None, 2), 2)
    state, _ = sampler.advance(MODEL, state, 0, 5, 1)
    state, first = sampler.advance(MODEL, state, 7, 0, 1)
    state, second = sampler.advance(MODEL, state, 13, 0, 1)
    np.testing.assert_array_equal(np.concatenate([first, second], axis=1), one.values)


def test_mean_field_reaches_the_published_bound_and_never_falls():
    fit = admixture.mean_field(MODEL, rng=0)
    assert fit.elbo == pytest.approx(-9.406235803713, abs=1e-6)
    assert fit.elbo <= LOG_EVIDENCE
    assert (np.diff(fit.trace) > -1e-12).all()
    assert fit.converged
    assert fit.elbo == pytest.approx(fit.elbos.max(), abs=1e-10)
    assert fit.certificate.slack < 1e-10
    np.testing.assert_allclose(fit.memberships.sum(axis=1), 1.0)
    np.testing.assert_allclose(fit.frequencies.sum(axis=1), 1.0)


def test_the_certificate_of_mean_field_is_about_any_parameters():
    """Equal responsibilities are a saddle point, with the published bound."""
    equal = (0.5 + np.array([[1.0, 1.0, 1.0]] * 2), 0.7 + np.full((2, 2), 1.5))
    certificate = admixture.certify_mean_field(MODEL, equal)
    assert -certificate.bound == pytest.approx(-10.676149547, abs=1e-8)
    again = _Ascent(MODEL).sweep(*equal)
    for before, after in zip(equal, again, strict=False):
        np.testing.assert_allclose(after, before, rtol=1e-14)
    aside = _Ascent(MODEL).sweep(equal[0] + [[0.0, 0.0, 1e-3], [0.0, 0.0, -1e-3]], equal[1])
    for _ in range(200):
        aside = _Ascent(MODEL).sweep(*aside[:2])
    assert aside[2] > -9.5  # ascent leaves it: not a maximum
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        parameters = tuple(scale * rng.exponential(size=each.shape) for each in equal)
        assert -admixture.certify_mean_field(MODEL, parameters).bound <= LOG_EVIDENCE
    with pytest.raises(Exception, match="parameters of q are positive"):
        admixture.certify_mean_field(MODEL, (-equal[0], equal[1]))


@pytest.mark.parametrize("seed", range(3))
def test_annealing_finds_the_evidence(seed):
    result = admixture.annealed_evidence(MODEL, 2000, 100, rng=seed)
    assert result.log_partition() == pytest.approx(LOG_EVIDENCE, abs=0.02)
    assert result.log_partition_error < 0.01
    assert result.certificate is not None
    assert result.certificate.lower < LOG_EVIDENCE


def test_the_evidence_is_unbiased_also_from_few_particles():
    found = [admixture.annealed_evidence(MODEL, 10, 3, rng=seed, n_jobs=1).log_partition() for seed in range(1000)]
    ratio = np.exp(np.array(found) - LOG_EVIDENCE)
    assert abs(ratio.mean() - 1.0) < 4 * ratio.std() / np.sqrt(ratio.size)


def test_annealed_particles_have_the_posterior():
    result = admixture.annealed_evidence(MODEL, 4000, 50, n_sweeps=2, rng=4)
    counts = result.draws.values[0]  # tokens of the documents: how often all of the first are of one component
    weights = np.exp(MODEL.log_joint(ASSIGNMENTS) - LOG_EVIDENCE)
    exact = weights @ (ASSIGNMENTS[:, :3].sum(axis=1) % 3 == 0)
    found = result.expect(lambda x: np.isin(x[:, 0, 0], (0, 3)).astype(float))
    assert counts.shape == (4000, 2, 2)
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / result.ess)


def test_the_evidence_chooses_the_number_of_components():
    rng = np.random.default_rng(3)
    groups = np.array([[0.9, 0.1, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9]])
    counts = np.array([rng.multinomial(20, groups[d % 2]) for d in range(12)])
    choice = admixture.choose_components(counts, (1, 2, 3), n_particles=30, n_temperatures=100, rng=0)
    assert choice.best == 2
    assert choice.decided
    assert choice.probability.sum() == pytest.approx(1.0)
    assert "<- largest" in str(choice)
    assert "larger ones may be better" not in str(choice)
    assert (choice.bound <= choice.log_evidence).all()
    hasty = admixture.choose_components(counts, (2,), n_particles=2, n_temperatures=1, rng=0)
    assert not hasty.decided  # an estimate below a certified bound
    logs = [outcome.log_z for outcome in hasty.results[0].outcomes]
    assert hasty.error[0] > 0.499 * abs(logs[0] - logs[1]) > 1  # islands that are nats apart are not hidden
    assert "too low" in str(hasty)
    two = {name: getattr(choice, name)[:2] for name in ("n_components", "log_evidence", "error", "bound", "results")}
    assert "K = 2 is the largest number that was compared" in str(admixture.ComponentChoice(**two))
    same = admixture.choose_components(counts, (1, 2, 3), n_particles=30, n_temperatures=100, rng=0, n_jobs=1)
    np.testing.assert_array_equal(choice.log_evidence, same.log_evidence)
    # of one component the evidence is a closed form: nothing is left to sum over
    one = admixture.AdmixtureModel(admixture.Corpus.from_counts(counts), 1)
    assert choice.log_evidence[0] == pytest.approx(float(one.log_joint(np.zeros(240, int))), abs=1e-8)


@pytest.mark.parametrize("numbers", [3, (), [[1, 2]]])
def test_numbers_of_components_to_compare_are_a_list(numbers):
    with pytest.raises(ValueError, match=r"n_components must be the numbers to compare, such as \(1, 2, 3\)"):
        admixture.choose_components([[2, 1]], numbers)


def test_rounding_of_log_gammas_of_a_large_prior_is_allowed_for():
    """They are 1e9, and the evidence is their difference; the truth is a sum in 200 digits."""
    result = admixture.annealed_evidence(admixture.AdmixtureModel(CORPUS, 2, 0.7, 1e8), 4000, 5, rng=0)
    truth = -6.591673742008658
    assert result.log_partition_error < 1e-7
    assert abs(result.log_partition() - truth) > 2e-7  # or the claims were true by luck
    assert truth in result.interval(0.95)
    assert result.certificate.verify(result.subject).lower < truth
