"""The one question, answered in every way that applies, and certified only where it is a theorem."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, DomainError
from cumulant.families import (
    Bernoulli,
    Binomial,
    Categorical,
    ConjugatePrior,
    Exponential,
    Gamma,
    Multinomial,
    Normal,
    NormalKnownMean,
    NormalKnownVariance,
    Poisson,
    Product,
    WeibullKnownShape,
    risk,
)

THIRDS = [1 / 3, 1 / 3, 1 / 3]


def test_exact_answers_find_their_closed_form():
    n = [2, 5, 50]
    assert_allclose(risk.expected_kl(NormalKnownMean(), [-2.0], n).value, risk.risk_mle_gamma(n, 0.5))
    assert_allclose(risk.expected_kl(WeibullKnownShape(3.0), [-2.0], n).value, risk.risk_mle_gamma(n, 1.0))
    prior = ConjugatePrior([0.5], 1.5)
    assert_allclose(risk.expected_kl(NormalKnownMean(), [-2.0], n, prior).value, risk.risk_map_gamma(n, 1.5, 2.0, 0.5))
    family = Normal()
    assert_allclose(risk.expected_kl(family, family.natural(mean=1.0, variance=3.0), n).value, risk.risk_mle_normal(n))
    prior = ConjugatePrior([1.0, 2.0], 1.0)
    found = risk.expected_kl(family, family.natural(mean=0.0, variance=1.0), n, prior)
    assert_allclose(found.value, risk.risk_map_normal1d(n, 1.0, (1.0, 2.0), (0.0, 1.0)).total)
    found = risk.expected_kl(NormalKnownVariance(4.0), [0.5], n, ConjugatePrior([4.0], 3.0))
    assert_allclose(found.value, risk.risk_map_quadratic(n, 3.0, 1, 1.0))  # |2 - 4| / sqrt(4)
    found = risk.expected_kl(Poisson(), [np.log(2.0)], n, ConjugatePrior([1.0], 1.0))
    assert_allclose(found.value, risk.risk_map_poisson(n, 1.0, 2.0, 1.0))


def test_classes_in_all_their_forms():
    family = Categorical(3)
    theta = family.natural(probabilities=[0.5, 0.3, 0.2])
    exact = risk.risk_map_categorical([4, 8], 3.0, [0.5, 0.3, 0.2], THIRDS)
    assert_allclose(
        risk.expected_kl(family, theta, [4, 8], ConjugatePrior([1 / 3, 1 / 3], 3.0)).value, exact, rtol=1e-12
    )
    # Two draws of a class at a time: half as many observations, and twice the divergence of one.
    paired = Multinomial(2, 3)
    found = risk.expected_kl(paired, theta, [2, 4], ConjugatePrior([2 / 3, 2 / 3], 1.5))
    assert_allclose(found.value, 2 * exact, rtol=1e-12)
    two = risk.risk_map_categorical(6, 2.0, [0.3, 0.7], [0.5, 0.5])
    theta = Bernoulli().natural(probability=0.3)
    assert_allclose(risk.expected_kl(Bernoulli(), theta, 6, ConjugatePrior([0.5], 2.0)).value, two, rtol=1e-12)
    assert_allclose(risk.expected_kl(Binomial(3), theta, 2, ConjugatePrior([1.5], 2 / 3)).value, 3 * two, rtol=1e-12)
    prior = ConjugatePrior([0.5, 0.5], 1.5)
    simulated = risk.expected_kl(paired, [0.2, 0.1], 2, prior, "monte carlo", trials=100_000, rng=0)
    exact = risk.expected_kl(paired, [0.2, 0.1], 2, prior)
    assert abs(simulated.value - exact.value) < 3 * simulated.standard_error


def test_products_add_up():
    family = Product((Exponential(), NormalKnownMean()))
    theta = np.array([-1.0, -0.5])
    total = risk.risk_mle_gamma(10, 1.0) + risk.risk_mle_gamma(10, 0.5)
    found = risk.expected_kl(family, theta, 10)
    assert found.kind == "exact"
    assert_allclose(found.value, total)
    prior = ConjugatePrior([2.0, 3.0], 1.0)
    total = risk.risk_map_gamma(10, 1.0, 2.0, 1.0) + risk.risk_map_gamma(10, 1.0, 3.0, 0.5)
    assert_allclose(risk.expected_kl(family, theta, 10, prior).value, total)
    simulated = risk.monte_carlo_risk(family, theta, 10, prior, trials=100_000, rng=1)
    assert abs(simulated.value - total) < 3 * simulated.standard_error
    assert simulated.tail_known
    bound = risk.expected_kl(family, theta, 10, prior, "upper bound")
    assert bound.value >= total
    assert risk.self_concordance_constant(family) == np.sqrt(2)
    assert_allclose(risk.gap_constant(family, theta), 0.577216 + 0.635181, rtol=1e-6)
    assert risk.gap_batch(family) == 1
    assert risk.expected_kl(Product((Exponential(), Poisson())), [-1.0, 0.0], 5).value == np.inf


def test_a_certificate_is_issued_where_it_is_a_theorem():
    found = risk.expected_kl(NormalKnownMean(), [-0.5], 10)
    certificate = found.certificate
    assert isinstance(certificate, Certificate)
    assert certificate.kind == "in expectation"
    assert (certificate.bound.lower, certificate.bound.upper) == (found.value, found.value)
    assert str(certificate).startswith(f"E KL(p_theta* || p_theta_n) = {found.value:.6g}  [")
    assert [a.text for a in certificate.assumptions if a.status == "assumed"] == ["the data are i.i.d. from the family"]
    assert certificate.verify(found.subject).bound.upper == found.value
    assert str(found) == str(certificate)
    prior = ConjugatePrior([2.0], 1.0)
    found = risk.expected_kl(NormalKnownMean(), [-0.5], 10, prior)
    assumed = [a.text for a in found.certificate.assumptions if a.status == "assumed"]
    assert assumed == ["the data are i.i.d. from the family", "the truth is the given parameter"]
    bound = risk.expected_kl(NormalKnownMean(), [-0.5], 10, prior, "upper bound")
    assert bound.certificate.bound >= found.value
    assert bound.certificate.verify(bound.subject).bound == bound.value
    with pytest.raises(CertificateError, match=r"does not hold|not shown"):
        found.certificate.verify(Subject(risk.RiskProblem(NormalKnownMean(), 5, prior), [-0.5]))


def test_no_certificate_where_there_is_no_theorem():
    assert risk.expected_kl(NormalKnownMean(), [-0.5], 2).certificate is None  # infinite
    assert risk.expected_kl(NormalKnownMean(), [-0.5], [3, 4]).certificate is None  # not one claim
    assert risk.expected_kl(NormalKnownMean(), [-0.5], 10, method="asymptotic").certificate is None
    simulated = risk.expected_kl(NormalKnownMean(), [-0.5], 10, method="monte carlo", trials=100, rng=0)
    assert simulated.certificate is None
    assert simulated.standard_error > 0
    assert "monte carlo" in str(simulated)


def test_upper_bounds_are_above_and_asymptotics_near():
    n = np.array([3, 10, 100, 1000])
    for prior in (None, ConjugatePrior([2.0], 1.0)):
        exact = risk.expected_kl(NormalKnownMean(), [-0.5], n, prior).value
        assert np.all(exact <= risk.expected_kl(NormalKnownMean(), [-0.5], n, prior, "upper bound").value)
        near = risk.expected_kl(NormalKnownMean(), [-0.5], n, prior, "asymptotic")
        assert near.kind == "asymptotic"
        assert_allclose(near.value[-1], exact[-1], rtol=0.01)


def test_the_second_order_form_knows_the_prior():
    prior, n = ConjugatePrior([0.7, 1.6], 30.0), 60
    family = Normal()
    theta = family.natural(mean=0.5, variance=1.0)
    exact = risk.expected_kl(family, theta, n, prior).value
    proxy = risk.expected_kl(family, theta, n, prior, "asymptotic").value
    assert abs(proxy - exact) < abs(risk.asymptote(2, n) - exact)


@pytest.mark.slow
def test_simulation_is_the_fallback():
    family = Gamma()
    found = risk.expected_kl(family, family.natural(shape=2.0, rate=1.0), 50, trials=2000, rng=0)
    assert found.kind == "monte carlo"
    assert_allclose(found.value, 0.02, rtol=0.2)


def test_what_is_not_known_is_refused():
    family = Gamma()
    with pytest.raises(
        NotImplementedError, match="no exact risk is known for the maximum-likelihood estimate of Gamma"
    ):
        risk.expected_kl(family, [1.0, -1.0], 50, method="exact")
    with pytest.raises(CertificateError, match="no finite-sample bound is known for Gamma"):
        risk.expected_kl(family, [1.0, -1.0], 50, method="upper bound")


def test_heavy_tails_are_mentioned():
    found = risk.expected_kl(NormalKnownMean(), [-0.5], 3, method="monte carlo", trials=100, rng=0)
    assert found.standard_error == np.inf
    assert "heavy-tailed" in found.theorem


def test_a_prior_of_no_strength_is_no_prior():
    found = risk.expected_kl(NormalKnownMean(), [-0.5], 10, ConjugatePrior([2.0], 0.0))
    assert found.value == risk.risk_mle_gamma(10, 0.5)


def test_estimates_know_their_risk():
    estimate = Exponential().estimate([1.0, 2.0, 3.0, 4.0])
    assert estimate.risk.value == risk.risk_mle_gamma(4, 1.0)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="method must be one of 'auto', 'exact'"):
        risk.expected_kl(Exponential(), [-1.0], 5, method="guess")
    with pytest.raises(DomainError, match="mean parameter of Exponential"):
        risk.expected_kl(Exponential(), [-1.0], 5, ConjugatePrior([-1.0], 1.0))
    with pytest.raises(DomainError, match="theta_star must be one natural parameter"):
        risk.expected_kl(Exponential(), [-1.0, -2.0], 5)


def test_a_batch_of_estimates_has_the_risk_of_each():
    x = np.random.default_rng(0).gamma(2.0, size=(30, 2, 2))
    for prior in (None, ConjugatePrior(mean=np.full((2, 2, 1), 1.5), strength=[1.0, 3.0])):
        many = Exponential().estimate(x, prior=prior)
        for i, j in np.ndindex(2, 2):
            one_prior = None if prior is None else ConjugatePrior(mean=[1.5], strength=[1.0, 3.0][j])
            one = Exponential().estimate(x[:, i, j], prior=one_prior)
            assert many.risk.value[i, j] == pytest.approx(one.risk.value, rel=1e-12)
        assert many.risk.certificate is None
        assert one.risk.certificate is not None
