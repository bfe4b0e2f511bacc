"""The estimator: genotypes of two groups that every method must tell apart, files, refusals, held-out likelihoods."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from scipy.special import gammaln, logsumexp
from sklearn.base import clone

from cumulant import sampling
from cumulant.admixture import (
    Admixture,
    AdmixtureModel,
    CollapsedGibbs,
    CollapsedPosterior,
    Corpus,
    Genotypes,
    MembershipDraws,
    agreement_report,
    collapsed,
)
from cumulant.errors import CertificateError, CumulantError, FileFormatError
from cumulant.optim.driver.interruption import InterruptedWarning

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.integers(0, 4, (8, 6, 2)), RNG.integers(3, 8, (8, 6, 2))
DATA = np.concatenate([FIRST, SECOND])
CHAINS = {"draws": 50, "chains": 2, "burn_in": 200, "thin": 2}
METHODS = {
    "collapsed_gibbs": CHAINS,
    "gibbs": CHAINS,
    "mean_field": {},
    "ais": {"n_particles": 40, "n_temperatures": 1000},
    "variational_smc": {"n_particles": 40, "n_steps": 50, "finish": 300},
}


def fitted(method, **change):
    return Admixture(2, method=method, options=METHODS[method], random_state=0, **change).fit(DATA)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_tells_two_groups_apart(method):
    model = fitted(method)
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0)
    assert model.mode_share_ > 0.8
    groups = model.memberships_.argmax(axis=1)
    assert len(set(groups[:8])) == len(set(groups[8:])) == 1
    assert groups[0] != groups[8]
    assert (model.memberships_sd_ > 0).all()
    assert model.distance_[:8, 8:].min() > 0.6 > 0.4 > model.distance_[:8, :8].max()
    assert model.level_.shape == (16,)
    sums = np.add.reduceat(model.frequencies_, model.locus_starts_[:-1], axis=1)
    np.testing.assert_allclose(sums, 1.0)
    assert (model.evidence_ is not None) == (method in ("ais", "variational_smc"))
    assert (model.certificate_ is not None) == (method in ("ais", "mean_field"))
    again = clone(model).set_params(n_jobs=1).fit(DATA)
    np.testing.assert_array_equal(again.memberships_, model.memberships_)


def test_bound_and_evidence_are_in_order():
    field, annealed = fitted("mean_field"), fitted("ais")
    assert field.elbo_ < annealed.evidence_ + 4 * annealed.evidence_error_
    assert annealed.certificate_.lower < annealed.evidence_
    report = agreement_report([field, annealed])
    assert report.largest_distance_variance < 0.1


@pytest.mark.parametrize("method", ["gibbs", "mean_field", "ais"])
def test_files_keep_what_was_fitted(method, tmp_path):
    model = fitted(method)
    path = model.save(tmp_path / "model")
    loaded = Admixture.load(path)
    for name in ("memberships_", "distance_", "frequencies_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    assert loaded.evidence_ == model.evidence_
    np.testing.assert_array_equal(loaded.transform(FIRST), model.transform(FIRST))
    if model.certificate_ is None:
        with pytest.raises(CertificateError, match="has no certificate"):
            loaded.verify(DATA)
    else:
        assert loaded.verify(DATA).upper <= loaded.certificate_.upper
        with pytest.raises(CertificateError):
            loaded.verify(DATA[::-1])
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(FileFormatError):
        Admixture.load(path)


def test_a_pilot_of_variational_particles_gives_a_certificate_that_can_be_verified(tmp_path):
    options = {"n_particles": 20, "n_steps": 5, "finish": 10, "pilot": True, "n_islands": 2, "safeguard": "line-search"}
    model = Admixture(2, method="variational_smc", options=options, random_state=3).fit(DATA)
    loaded = Admixture.load(model.save(tmp_path / "model"))
    assert loaded.verify(DATA).lower == model.certificate_.lower < model.evidence_
    with pytest.raises(CertificateError, match="estimates are those of these seeds"):
        loaded.verify(DATA[::-1])


def test_a_mode_is_found_in_noise():
    """Three draws in five are of one mode, two of another, in which half of the individuals have exchanged
    components; all have other names, and are as far from each other as memberships of few alleles are.
    """
    rng, n = np.random.default_rng(1), 60
    first = np.repeat(np.eye(3), n // 3, axis=0) * 0.7 + 0.1
    second = np.where(np.arange(n)[:, None] % 2 == 0, first[:, [1, 2, 0]], first)
    frequencies = rng.dirichlet(np.full(4, 0.5), size=3)
    data = np.array([rng.choice(4, size=(5, 2), p=tau @ frequencies) for tau in first])
    of_first = np.arange(100) % 5 < 3
    clean = np.where(of_first[:, None, None], first, second)
    noisy = np.array([[rng.dirichlet(1.5 * tau) for tau in each] for each in clean])
    assert 0.5 * np.abs(noisy[0] - noisy[5]).sum(axis=1).mean() > 0.3  # two draws of one mode: noise
    order = np.array([rng.permutation(3) for _ in noisy])
    draws = np.take_along_axis(noisy, order[:, None], 2)
    model = AdmixtureModel(Genotypes(data).corpus(), 3)
    beta = np.broadcast_to(np.tile(frequencies, 5)[:, : model.corpus.n_words], (100, 3, model.corpus.n_words))
    beta = np.where(of_first[:, None, None], np.take_along_axis(beta, order[:, :, None], 1), 1 / 4)
    found = MembershipDraws(draws, beta, np.full(100, 0.01)).mode(model)
    assert found.share == pytest.approx(0.6)
    matched = found.memberships[:, (found.memberships.T @ first).argmax(axis=0)]
    np.testing.assert_allclose(matched, first, atol=0.15)  # 60 draws with deviations of 0.29: four standard errors
    assert found.memberships_sd.mean() == pytest.approx(np.sqrt(first * (1 - first) / 2.5).mean(), rel=0.05)


def test_new_individuals_belong_to_the_group_of_their_alleles():
    model = fitted("gibbs")
    new = model.transform(np.concatenate([FIRST[:2], SECOND[:2]]))
    np.testing.assert_array_equal(new.argmax(axis=1)[:2], model.memberships_.argmax(axis=1)[:2])
    np.testing.assert_allclose(new[0], model.memberships_[0], atol=0.2)
    unknown = model.transform(np.full((1, 6, 2), 99))  # alleles that the fit did not see: the prior
    np.testing.assert_allclose(unknown, 0.5)


def test_held_out_likelihoods_are_those_of_enumeration():
    model = fitted("gibbs")
    new = np.array([[[0, 5], [3, -1], [2, 2], [-1, -1], [6, 0], [-1, -1]]])
    columns = []
    for locus, values in enumerate(model.alleles_):
        columns += [model.locus_starts_[locus] + np.flatnonzero(values == a)[0] for a in new[0, locus] if a in values]
    beta, nu, terms = model.frequencies_, model.membership_prior, []
    for z in itertools.product(range(2), repeat=len(columns)):
        n = np.bincount(z, minlength=2)
        prior = gammaln(nu + n).sum() - gammaln(2 * nu + n.sum()) - 2 * gammaln(nu) + gammaln(2 * nu)
        terms.append(prior + np.log(beta[list(z), columns]).sum())
    exact = logsumexp(terms)
    found = [model.score_samples(new, n_particles=4, rng=seed)[0] for seed in range(400)]
    ratio = np.exp(np.array(found) - exact)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / 20
    assert model.score_samples(new, n_particles=4000)[0] == pytest.approx(exact, abs=0.05)
    assert model.score(FIRST) > model.score(FIRST[:, ::-1])


def test_data_may_be_counts_sparse_counts_a_corpus_or_genotypes_with_missing_calls():
    counts = np.array([[9, 1, 0], [0, 1, 9], [8, 2, 0]])
    models = [
        Admixture(2, method="gibbs", options=CHAINS, random_state=1).fit(data)
        for data in (counts, scipy.sparse.csr_array(counts), Corpus.from_counts(counts))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.memberships_, models[0].memberships_)
    missing = DATA.astype(float)
    missing[0, 0] = np.nan
    coded = np.where(np.isnan(missing), -1, missing)
    names = Genotypes(coded + 100 * (coded >= 0), individuals=[f"cat {i}" for i in range(16)])
    found = [Admixture(2, method="gibbs", options=CHAINS, random_state=1).fit(data) for data in (missing, coded, names)]
    np.testing.assert_array_equal(found[0].memberships_, found[1].memberships_)
    np.testing.assert_array_equal(found[0].memberships_, found[2].memberships_)  # lengths of fragments are only names


@pytest.mark.parametrize("method", METHODS)
def test_one_component_is_allowed_and_its_evidence_is_exact(method):
    options = {"n_particles": 4, "n_temperatures": 3} if method == "ais" else METHODS[method]
    options = {"n_particles": 4, "n_steps": 2, "finish": 2} if method == "variational_smc" else options
    model = Admixture(1, method=method, options=options, random_state=0).fit(DATA)
    np.testing.assert_allclose(model.memberships_, 1.0)
    np.testing.assert_array_equal(model.level_, 0.0)
    target = AdmixtureModel(Genotypes(DATA).corpus(), 1)
    exact = float(target.log_joint(np.zeros(target.corpus.n_tokens, int)))
    if model.evidence_ is not None:
        assert model.evidence_ == pytest.approx(exact, abs=1e-8)
        assert model.evidence_error_ < 1e-8
    if model.elbo_ is not None:
        assert exact - 1e-8 < model.elbo_ < exact


def _with(change):
    data = DATA.astype(float)
    change(data)
    return data


@pytest.mark.parametrize(
    ("settings", "data", "words"),
    [
        ({"n_components": 0}, DATA, "n_components must be a whole number of at least 1; got 0"),
        ({"n_components": 2.5}, DATA, "n_components"),
        ({"method": "structure"}, DATA, "method must be one of"),
        ({"options": {"sweeps": 3}}, DATA, "sweeps is not an argument"),
        ({"membership_prior": -1.0}, DATA, "membership_prior"),
        ({}, [[["A", "T"]]], "X must be an array of real numbers"),
        ({}, [[[0, 1], [0]]], "different lengths"),
        ({}, DATA[:, :, 0][:, 0], "X must have 3 axes"),
        ({}, np.zeros((0, 3, 2)), "must have individuals"),
        ({}, _with(lambda x: x[3].fill(-1)), "individual 3 has no data"),
        ({}, _with(lambda x: x[:, 2].fill(np.nan)), "locus 2 has no data"),
        ({}, DATA - 3, r"from 0 on, below 2\*\*53, or -1 or NaN"),
        ({}, 1e300 * DATA, r"below 2\*\*53.*; got \de\+300"),
        ({"allele_prior": 1e15}, DATA, r"allele_prior must be a number between 1e-100 and 1e\+08; got"),
        ({"membership_prior": 1e-310}, DATA, "membership_prior must be a number between"),
        ({"options": {"draws": 0}}, DATA, "draws must be a whole number of at least 1; got 0"),
        ({"method": "ais", "options": {"exchange": 1}}, DATA, "exchange must be True or False"),
        ({"method": "variational_smc", "options": {"pilot": 1}}, DATA, "pilot must be True or False"),
        ({}, DATA + 0.5, "whole numbers"),
        ({}, np.array([[1, 0], [0, 0]]), "document 1 has no data"),
        ({}, np.array([[1.5, 0], [0, 1]]), "X: counts must be whole numbers"),
    ],
)
def test_refusals_name_what_is_wrong(settings, data, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Admixture(**{"n_components": 2, "method": "gibbs", **settings}).fit(data)


def test_new_data_must_fit_the_loci():
    model = fitted("gibbs")
    with pytest.raises(ValueError, match="the 6 loci of the fit"):
        model.transform(DATA[:, :3])


def test_draws_of_chains_are_those_of_the_sampler():
    """Counts are kept draw by draw; the sampler keeps the component of every token. The answers are the same."""
    model = fitted("collapsed_gibbs")
    corpus = Genotypes(DATA).corpus()
    posterior = CollapsedPosterior(corpus, 2)
    settings = {"chains": 2, "burn_in": 200, "thin": 2}
    draws = sampling.sample(CollapsedGibbs(), posterior, 50, rng=model.seed_, **settings)
    target = AdmixtureModel(corpus, 2)
    wanted = MembershipDraws.of_counts(target, target.counts(draws.flat), np.full(100, 0.01), model.seed_, 1)
    np.testing.assert_array_equal(model.distance_, wanted.distance)
    np.testing.assert_array_equal(model.memberships_, wanted.mode(target).memberships)
    assert model.result_.log_joint.shape == (2, 50)
    assert model.result_.r_hat < 1.1


class Interrupted:
    """Stands for Ctrl-C when it has been asked for the given number of times."""

    after = 0

    def __init__(self):
        self.asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        pass

    @property
    def requested(self):
        self.asked += 1
        return self.asked > self.after


def test_a_fit_that_is_interrupted_has_the_draws_so_far(monkeypatch):
    monkeypatch.setattr(collapsed, "Interruption", Interrupted)
    monkeypatch.setattr(Interrupted, "after", 30)
    with pytest.warns(InterruptedWarning, match="interrupted after"):
        model = fitted("collapsed_gibbs")
    assert model.result_.status == "interrupted"
    assert model.result_.log_joint.shape == (2, 30)
    assert model.distance_[:8, 8:].min() > 0.6
    monkeypatch.setattr(Interrupted, "after", 0)
    with pytest.warns(InterruptedWarning), pytest.raises(CumulantError, match="before the first draw"):
        fitted("collapsed_gibbs")
