"""Linear-Gaussian models: coordinates, reversal, interventions, divergences, distances and the prior.

Check numbers are those of the acceptance list for the adaptation speed of causal models.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import NormalSCM, initial_distances, normal_kl, sample_normal_reference

NATURAL = ("shift", "precision", "coupling", "conditional_shift", "conditional_precision")


@pytest.fixture(scope="module")
def one_dimensional():
    return NormalSCM.from_mean([0.0], [[1.0]], [[0.8]], [0.5], [[0.36]])


@pytest.fixture(scope="module")
def models():
    return sample_normal_reference(4, 60, 0)


@pytest.fixture(scope="module")
def rectangular():
    """Two causes and three effects."""
    rng = np.random.default_rng(0)
    square = rng.normal(size=(30, 5, 8))
    covariance = square @ square.swapaxes(-1, -2) / 8
    mean = rng.normal(size=(30, 5))
    return NormalSCM.from_joint(mean, covariance, 2), mean, covariance


def scalars(coordinates):
    return [float(np.squeeze(value)) for value in coordinates]


def test_coordinates_of_the_one_dimensional_example(one_dimensional):
    """Check 17."""
    assert_allclose(scalars(one_dimensional.to_natural()), [0, 1, 2.2222, 1.38889, 2.77778], atol=5e-5)
    assert_allclose(scalars(one_dimensional.reverse().to_natural()), [0.5, 1, 2.2222, -1.11111, 2.77778], atol=5e-5)
    assert_allclose(scalars(one_dimensional.to_cholesky()), [0, 1, 1.33333, 0.833333, 1.66667], atol=5e-5)
    assert_allclose(scalars(one_dimensional.to_mean()), [0, 1, 0.8, 0.5, 0.36], atol=1e-14)


def test_distances_of_the_one_dimensional_example(one_dimensional):
    """Check 18."""
    cause = one_dimensional.intervene("cause", ([0.5], [[0.5]]))  # eta 1, precision 2
    assert_allclose(scalars(cause.to_natural()[:2]), [1, 2])
    assert_allclose(initial_distances(one_dimensional, cause, "natural")[:2], [2.0, 2.899654], atol=5e-7)
    assert_allclose(initial_distances(one_dimensional, cause, "cholesky")[:2], [0.671573, 0.879313], atol=5e-7)
    assert_allclose(cause.kl(one_dimensional), 0.221574, atol=5e-7)
    effect = one_dimensional.intervene("effect", ([0.5], [[0.5]]))
    assert_allclose(scalars(effect.to_natural()), [0, 1, 0, 1, 2])
    assert_allclose(initial_distances(one_dimensional, effect, "natural")[:2], [5.694444, 10.583333], atol=5e-7)
    assert_allclose(initial_distances(one_dimensional, effect, "cholesky")[:2], [1.857443, 2.881133], atol=5e-7)
    assert_allclose(effect.kl(one_dimensional), 0.919081, atol=5e-7)


def test_reversing_twice_is_the_identity(models, rectangular):
    """Check 1, for normal models: to 1e-12 of the largest entry of each."""
    for each in (models, rectangular[0]):
        again = each.reverse().reverse()
        for name in NATURAL:
            expected = getattr(each, name)
            size = np.abs(expected).reshape(len(expected), -1).max(axis=1)
            apart = np.abs(getattr(again, name) - expected).reshape(len(expected), -1).max(axis=1)
            assert np.all(apart < 1e-12 * size)


def test_the_reverse_is_the_conditional_distribution(rectangular):
    """Against the textbook formulas of conditioning in means and covariances."""
    model, mean, covariance = rectangular
    found = model.reverse().to_mean()
    xx, xy, yy = covariance[:, :2, :2], covariance[:, :2, 2:], covariance[:, 2:, 2:]
    slope = xy @ np.linalg.inv(yy)
    assert_allclose(found.mean, mean[:, 2:], rtol=1e-9)
    assert_allclose(found.covariance, yy, rtol=1e-9)
    assert_allclose(found.slope, slope, rtol=1e-8, atol=1e-10)
    assert_allclose(found.conditional_covariance, xx - slope @ xy.swapaxes(-1, -2), rtol=1e-8, atol=1e-10)
    assert_allclose(found.intercept, mean[:, :2] - (slope @ mean[:, 2:, None])[..., 0], rtol=1e-8, atol=1e-10)


def test_coordinates_go_round(rectangular):
    model, mean, covariance = rectangular
    for back in (NormalSCM.from_mean(*model.to_mean()), NormalSCM.from_cholesky(*model.to_cholesky())):
        for name in NATURAL:
            assert_allclose(getattr(back, name), getattr(model, name), rtol=1e-8, atol=1e-9)
    joint = model.to_joint("mean")
    assert_allclose(joint.vector, mean, rtol=1e-9)
    assert_allclose(joint.matrix, covariance, rtol=1e-9, atol=1e-12)
    natural = model.to_joint("natural")
    assert_allclose(natural.matrix, np.linalg.inv(covariance), rtol=1e-8, atol=1e-9)
    assert_allclose(natural.vector, np.linalg.solve(covariance, mean[..., None])[..., 0], rtol=1e-8, atol=1e-9)


def test_the_joint_factor_is_that_of_the_permuted_precision(rectangular):
    """Check 20."""
    model, _, covariance = rectangular
    order = [2, 3, 4, 0, 1]
    vector, factor = model.to_joint("cholesky")
    precision = np.linalg.inv(covariance)[:, order][:, :, order]
    assert_allclose(factor @ factor.swapaxes(-1, -2), precision, rtol=1e-12, atol=1e-12 * np.abs(precision).max())
    assert np.all(np.triu(factor, 1) == 0)
    natural = model.to_joint("natural").vector[:, order]
    assert_allclose((factor @ vector[..., None])[..., 0], natural, rtol=1e-10, atol=1e-10)


def test_divergences_agree(models):
    """Checks 19 and 9: three forms, both directions, and the family of normal distributions."""
    others = sample_normal_reference(4, 60, 1)
    forms = [normal_kl(models.to_joint(s), others.to_joint(s), s) for s in ("mean", "natural", "cholesky")]
    for form in forms[1:]:
        assert_allclose(form, forms[0], rtol=1e-10)
    assert_allclose(models.kl(others), forms[0], rtol=1e-10)
    assert_allclose(models.reverse().kl(others.reverse()), forms[0], rtol=1e-10)
    assert_allclose(models.family.kl(models.theta, others.theta), forms[0], rtol=1e-8)
    assert_allclose(models.kl(models), 0, atol=1e-12)


def test_the_natural_distance_after_a_change_of_the_cause(models):
    """(4.74), and check 24: without exception on 1,000 problems of ten dimensions; not so after one of the effect."""
    many = sample_normal_reference(10, 1000, 2)
    changed = many.intervene("cause", rng=3)
    causal, anticausal, _ = initial_distances(many, changed, "natural")
    marginals = [each.reverse() for each in (many, changed)]
    more = np.sum((marginals[0].precision - marginals[1].precision) ** 2, axis=(-2, -1))
    more += np.sum((marginals[0].shift - marginals[1].shift) ** 2, axis=-1)
    assert_allclose(anticausal, causal + more, rtol=1e-9)
    assert np.all(anticausal >= causal)
    causal, anticausal, _ = initial_distances(many, many.intervene("effect", rng=3), "natural")
    share = np.mean(anticausal < causal)
    assert abs(share - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_distances_after_a_change_of_the_effect(models):
    """Theorem 8 of the list: the distances are those of the blocks."""
    changed = models.intervene("effect", rng=5)
    eta, precision = changed.conditional_shift, changed.conditional_precision
    backward = models.reverse()
    norm = lambda m: np.sum(m**2, axis=(-2, -1))  # noqa: E731
    causal = norm(models.coupling) + np.sum((models.conditional_shift - eta) ** 2, axis=-1)
    causal += norm(models.conditional_precision - precision)
    carried = models.coupling.swapaxes(-1, -2) @ np.linalg.inv(models.conditional_precision)
    anticausal = norm(models.coupling) + np.sum((carried @ models.conditional_shift[..., None]) ** 2, axis=(-2, -1))
    anticausal += norm(carried @ models.coupling) + np.sum((backward.shift - eta) ** 2, axis=-1)
    anticausal += norm(backward.precision - precision)
    found = initial_distances(models, changed, "natural")
    assert_allclose(found.causal, causal, rtol=1e-9)
    assert_allclose(found.anticausal, anticausal, rtol=1e-9)


def test_distances_and_divergences_of_figure_4_6():
    """Means over 800 problems, within 4 % (their standard errors are about 1 %), and how often the order holds."""
    many = sample_normal_reference(10, 800, 2)
    for kind, kl, rows in (
        ("cause", 5.66, {"natural": (49.9, 99.2, 1.0), "cholesky": (10.8, 15.8, 0.978)}),
        ("effect", 190, {"natural": (1.35e4, 2.01e4, 0.95), "cholesky": (353, 364, 0.86)}),
    ):
        changed = many.intervene(kind, rng=3)
        assert_allclose(changed.kl(many).mean(), kl, rtol=0.04)
        for space, (causal, anticausal, share) in rows.items():
            found = initial_distances(many, changed, space)
            assert_allclose([found.causal.mean(), found.anticausal.mean()], [causal, anticausal], rtol=0.04)
            farther = np.mean(found.anticausal > found.causal)
            assert abs(farther - share) <= 4 * np.sqrt(share * (1 - share) / 800)


def test_in_cholesky_coordinates_the_joint_distribution_is_the_causal_model(models):
    found = initial_distances(models, models.intervene("effect", rng=5))
    assert_allclose(found.joint, found.causal, rtol=1e-12)


def test_prior_moments():
    """Check 22, within four standard errors; and with the gain of the companion code."""
    many = sample_normal_reference(10, 4000, 7)
    for values, expected in (
        (np.trace(many.to_mean().covariance, axis1=1, axis2=2), 10 / 11),
        (np.trace(many.to_mean().conditional_covariance, axis1=1, axis2=2), 1 / 11),
        (np.trace(many.reverse().to_mean().covariance, axis1=1, axis2=2), 10 / 11 + 1 / 11),
    ):
        assert abs(values.mean() / 10 - expected) < 4 * values.std() / 10 / np.sqrt(4000)
    less = sample_normal_reference(10, 2000, 7, gain=0.95)
    values = np.trace(less.reverse().to_mean().covariance, axis1=1, axis2=2) / 10
    assert abs(values.mean() - (0.95**2 * 10 / 11 + 1 / 11)) < 4 * values.std() / np.sqrt(2000)


def test_draws_have_the_joint_moments(rectangular):
    model = rectangular[0]
    x, y = model.sample(20_000, rng=0)
    assert x.shape == (20_000, 30, 2)
    assert y.shape == (20_000, 30, 3)
    both = np.concatenate([x, y], axis=-1)
    mean, covariance = model.to_joint("mean")
    spread = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    assert np.max(np.abs(both.mean(axis=0) - mean) / spread) < 4.5 / np.sqrt(20_000)
    found = np.einsum("nbi,nbj->bij", both - mean, both - mean) / 20_000
    error = np.sqrt(covariance**2 + spread[..., :, None] ** 2 * spread[..., None, :] ** 2) / np.sqrt(20_000)
    assert np.max(np.abs(found - covariance) / error) < 4.5


def test_interventions_change_one_mechanism(models):
    cause, effect = models.intervene("cause", rng=0), models.intervene("effect", rng=0)
    for name in NATURAL[2:]:
        assert_allclose(getattr(cause, name), getattr(models, name))
    for name in NATURAL[:2]:
        assert_allclose(getattr(effect, name), getattr(models, name))
    assert np.all(effect.coupling == 0)
    assert_allclose(models[3].kl(cause[3]), models.kl(cause)[3], rtol=1e-9)


@pytest.mark.parametrize("kind", ["cause", "effect"])
def test_one_seed_for_everything_does_not_undo_an_intervention(kind):
    """The new cause would be the old one, were both drawn from one stream."""
    model = sample_normal_reference(3, 20, 0)
    changed = model.intervene(kind, rng=0)
    assert changed.kl(model).min() > 0.1
    assert np.array_equal(changed.shift, model.intervene(kind, rng=0).shift)
    assert not np.array_equal(changed.theta, model.intervene(kind, rng=1).theta)


def test_an_effect_that_is_nearly_a_function_of_the_cause():
    """The Schur complement ``1e14 - 1e28 / (1 + 1e14)`` is rounding; the variance of the effect is one."""
    model = NormalSCM.from_mean([0.3], [[1.0]], [[1.0]], [0.2], [[1e-14]])
    assert_allclose(model.reverse().precision, [[1.0]], rtol=1e-12)
    assert_allclose(model.reverse().shift, [0.5], rtol=1e-12)
    assert_allclose(model.reverse().reverse().precision, [[1.0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NormalSCM([0.0], [[-1.0]], [[1.0]], [0.0], [[1.0]]), "precision must be positive definite"),
        (lambda: NormalSCM([0.0], [[1.0]], [[1.0, 2.0]], [0.0], [[1.0]]), "coupling must have shape"),
        (lambda: NormalSCM([np.nan], [[1.0]], [[1.0]], [0.0], [[1.0]]), "shift must be finite"),
        (lambda: NormalSCM(np.zeros((2, 1)), [[1.0]], [[1.0]], np.zeros((3, 1)), [[1.0]]), "leading axes"),
        (lambda: NormalSCM(0.0, [[1.0]], [[1.0]], [0.0], [[1.0]]), "shift must have at least 1 axes"),
        (lambda: NormalSCM.from_mean([0.0], [[0.0]], [[1.0]], [0.0], [[1.0]]), "covariance must be positive definite"),
        (lambda: NormalSCM.from_mean([0.0], [1.0], [[1.0]], [0.0], [[1.0]]), "covariance must be a square matrix"),
        (lambda: NormalSCM.from_joint([0.0, 1.0], np.eye(2), 2), "more than n_causes = 2 entries"),
        (lambda: NormalSCM.from_cholesky([0.0], [[-1.0]], [[1.0]], [0.0], [[1.0]]), "factor must be lower triangular"),
        (lambda: sample_normal_reference(0, 3), "K must be a whole number"),
        (lambda: sample_normal_reference(5, 3, n0=2), "n0 must be more than K - 1 = 4"),
        (lambda: sample_normal_reference(2, 3, 0).intervene("single"), "target must be one of 'cause', 'effect'"),
        (lambda: sample_normal_reference(2, 3, 0).intervene("cause", ([0.0], np.eye(2))), "mean of value must have"),
        (lambda: sample_normal_reference(2, 3, 0).kl(sample_normal_reference(3, 3, 0)), "other must have"),
        (
            lambda: sample_normal_reference(2, 3, 0).kl(sample_normal_reference(2, 4, 0)),
            "got a batch of shape \\(4,\\)",
        ),
        (lambda: sample_normal_reference(2, 3, 0)[0][0], "not a batch"),
        (lambda: normal_kl(([0.0], [[1.0]]), ([0.0, 1.0], np.eye(2))), "the vector of second must have shape"),
        (
            lambda: normal_kl(([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), ([0.0, 0.0], np.eye(2))),
            "matrix of first must be pos",
        ),
        (
            lambda: normal_kl(*[([0.0, 0.0], -np.eye(2))] * 2, "natural"),
            "the matrix of first must be positive definite",
        ),
        (
            lambda: normal_kl(([0.0], [[1.0]]), ([0.0], [[-1.0]]), "cholesky"),
            "matrix of second must be lower triangular",
        ),
        (lambda: sample_normal_reference(2, 3, 0).to_joint("logit"), "space must be one of"),
    ],
)
def test_refusals(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
