"""Variational sequential Monte Carlo: models of a user's own against enumeration, ferromagnets against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax

from cumulant import particles
from cumulant.errors import CumulantError, DomainError
from cumulant.graphical import Ising, torus, torus_log_partition
from cumulant.particles import ParameterPath, TwoBlockFamily, has_both_modes, variational_smc
from cumulant.particles.variational.directions import Curvature

LEVELS = np.arange(3.0)
PAIRS = np.stack([np.repeat(LEVELS, 3), np.tile(LEVELS, 3)], axis=1)


class Levels(TwoBlockFamily):
    """Two levels 0, 1, 2 with the statistics [a = b] and a b; both parameters at least zero."""

    target, start = np.array([2.0, 0.4]), np.array([0.1, 0.1])
    lower = np.zeros(2)

    def __init__(self):
        self.log_partition_at_start = self.log_partition(self.start)

    def log_partition(self, theta):
        return float(logsumexp(self.statistics(PAIRS[:, :1], PAIRS[:, 1:]) @ theta))

    def begin(self, n, rng):
        p = softmax(self.statistics(PAIRS[:, :1], PAIRS[:, 1:]) @ self.start)
        x = PAIRS[rng.choice(9, n, p=p)]
        return x[:, :1], x[:, 1:]

    def statistics(self, a, b):
        return np.concatenate([a == b, a * b], axis=1).astype(float)

    def log_block(self, a, theta):
        scores = theta[0] * (a == jnp.asarray(LEVELS)) + theta[1] * a * jnp.asarray(LEVELS)
        return jnp.logaddexp(jnp.logaddexp(scores[:, 0], scores[:, 1]), scores[:, 2])

    def sample_B(self, a, theta, rng):
        p = softmax(theta[0] * (a == LEVELS) + theta[1] * a * LEVELS, axis=1)
        return (rng.random((len(a), 1)) > np.cumsum(p, axis=1)[:, :2]).sum(axis=1, keepdims=True).astype(float)

    def sample_A(self, b, theta, rng):
        return Levels.sample_B(self, b, theta, rng)


class Wrong(Levels):
    """A sampler that does not belong to the block marginal."""

    def sample_B(self, a, theta, rng):
        return super().sample_B(a, 1.2 * theta, rng)


def test_one_function_gives_weights_means_and_covariances():
    family, theta, v = Levels(), np.array([0.7, 0.3]), np.array([0.5, -1.0])
    a = LEVELS[:, None]
    values, means, products = (
        family.block_values(a, theta), family.block_means(a, theta), family.block_products(a, theta, v),
    )  # fmt: skip
    for s in range(3):
        t = family.statistics(np.full((3, 1), LEVELS[s]), a)
        p = softmax(t @ theta)
        assert_allclose(values[s], logsumexp(t @ theta), rtol=1e-14)
        assert_allclose(means[s], p @ t, rtol=1e-14)
        assert_allclose(products[s], (p * ((t - p @ t) @ v)) @ (t - p @ t), atol=1e-14)
    assert values.dtype == np.float64
    assert particles.check_family(family) < 5
    with pytest.raises(DomainError, match="sample_B and log_block of Wrong do not agree"):
        particles.check_family(Wrong(), n=20_000)


@pytest.mark.parametrize("gradient", ["plain", "rb"])
def test_a_model_of_ones_own_stays_above_its_bounds_and_nears_the_target(gradient):
    family = Levels()
    result = variational_smc(family, 1000, 150, gradient=gradient, rng=1)
    path = result.path[0]
    assert (path > 0).all()
    assert result.distance[0] < 0.3 * np.linalg.norm(family.start - family.target)
    exact, theta = family.log_partition(family.target), result.theta[0]
    t = family.statistics(PAIRS[:, :1], PAIRS[:, 1:])
    mean = softmax(t @ theta) @ t
    assert_allclose(result.log_partition("smc"), family.log_partition(theta), atol=4 * result.log_partition_error)
    bound = family.log_partition(theta) - mean @ (theta - family.target)
    assert bound < exact
    assert_allclose(result.log_partition("bound"), bound, atol=0.1)
    assert_allclose(result.log_partition("jump"), exact, atol=0.1)
    assert result.certificate is None


@pytest.mark.parametrize("curvature", ["bfgs", "bb", "none"])
@pytest.mark.parametrize("safeguard", ["joint-quadratic", "exact"])
def test_the_product_of_weights_speaks_of_the_last_parameter(curvature, safeguard):
    model = Ising(torus(4, 4), 1.0)
    result = variational_smc(model, 500, 40, curvature=curvature, safeguard=safeguard, rng=0)
    theta = float(result.theta[0, 0])
    assert 0.1 < theta < 1.5
    assert abs(result.log_partition("smc") - torus_log_partition(4, 4, theta)) < 4 * result.log_partition_error
    rules = result.active_rules()
    assert sum(rules.values()) == 40
    assert rules["finish"] == 0
    assert "the particles are those of theta_K" in str(result)


def test_curvature_in_the_span_of_the_gradients_is_the_whole_of_it():
    rng, dim, steps = np.random.default_rng(0), 30, 8
    small, whole = (Curvature.begin("bfgs", dim, n, False) for n in (steps, dim))
    assert small.matrix.shape == (8, 8)
    theta, hessian = np.zeros(dim), np.diag(rng.uniform(0.5, 5.0, dim))
    for k in range(steps):
        gradient = hessian @ (theta - 1.0) + 0.1 * rng.normal(size=dim)
        small, whole = (each.update("bfgs", theta, gradient, 1 / (2 + k), 0.75) for each in (small, whole))
        assert_allclose(small.solve(gradient), whole.solve(gradient), rtol=1e-10)
        theta = theta - 0.3 * whole.solve(gradient)


def test_a_path_that_a_pilot_designed_is_unbiased():
    """Of 400 runs with fresh particles on one path the mean of exp(log_z) is Z."""
    model = Ising(torus(4, 4), 1.0)
    family = particles.IsingFamily(model)
    pilot = variational_smc(model, 50, 15, finish=10, rng=0)
    bridge = pilot.bridge.frozen(pilot.outcomes[0])
    assert len(bridge.path) == 26
    with pytest.raises(ValueError, match="designed with the random numbers of this rng"):
        particles.run(bridge, 50, rng=0)
    settings = particles.Settings(10)
    found = np.exp([
        particles.run_population(bridge, settings, seed).log_z - torus_log_partition(4, 4, 1.0) for seed in range(400)
    ])  # fmt: skip
    assert abs(found.mean() - 1) < 4 * found.std(ddof=1) / np.sqrt(found.size)
    tempered = ParameterPath.tempered(family, 20, "naive")
    found = np.exp([
        particles.run_population(tempered, settings, seed).log_z - torus_log_partition(4, 4, 1.0) for seed in range(400)
    ])  # fmt: skip
    assert abs(found.mean() - 1) < 4 * found.std(ddof=1) / np.sqrt(found.size)


def test_the_path_of_a_pilot_has_a_certificate_that_says_whose_word_it_rests_on():
    result = variational_smc(Levels(), 100, 20, finish=5, pilot=True, n_islands=4, rng=0)
    assert result.certificate is not None
    assert result.certificate.lower <= Levels().log_partition(Levels.target)
    assert any("Levels" in str(each) and "assumed" in str(each) for each in result.certificate.assumptions)
    assert result.certificate.verify(result.subject).lower == result.certificate.lower
    ours = variational_smc(Ising(torus(4, 4), 0.3), 50, 5, finish=3, pilot=True, rng=0)
    assert not any("Family" in str(each) for each in ours.certificate.assumptions)
    with pytest.raises(ValueError, match="pilot needs finish"):
        variational_smc(Levels(), 100, 20, pilot=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block_means": lambda self, a, theta: np.full((len(a), 2), np.nan)}, "block_means of Changed is NaN"),
        (
            {"block_values": lambda self, a, theta: np.zeros(len(a)) + (np.nan if theta[0] == 2.0 else 0.0)},
            r"log_block of Changed is NaN at theta = array\(\[2. , 0.4\]\)",
        ),
    ],
)
def test_a_model_of_ones_own_that_is_not_a_number_is_refused(change, words):
    with pytest.raises(FloatingPointError, match=words):
        variational_smc(type("Changed", (Levels,), change)(), 20, 3, rng=0)


def test_an_island_that_becomes_impossible_has_the_estimate_zero():
    def values(self, a, theta):  # nothing is possible after the first step
        return np.full(len(a), -np.inf) if np.any(theta > self.start) and len(a) > 2 else np.zeros(len(a))

    result = variational_smc(type("Closed", (Levels,), {"block_values": values})(), 20, 3, n_islands=2, rng=0)
    assert result.log_partition() == result.log_partition("smc") == -np.inf
    with pytest.raises(CumulantError, match="every particle of an island has weight zero"):
        _ = result.kl
    with pytest.raises(CumulantError, match="both estimates of Z are zero"):
        result.bayes_factor(result, "smc")


def test_a_bound_is_not_compared_with_an_estimate():
    model = Ising(torus(4, 4), 0.3)
    bound, annealed = variational_smc(model, 20, 3, rng=0), particles.anneal(model, 20, 3, rng=0)
    with pytest.raises(ValueError, match="different kinds, 'bound' and 'smc'"):
        bound.bayes_factor(annealed)
    assert np.isfinite(bound.bayes_factor(annealed, "smc")[0])


def test_islands_and_threads_change_nothing():
    model = Ising(torus(4, 4), 1.0)
    many, few = (variational_smc(model, 50, 20, n_islands=k, n_jobs=j, rng=5) for k, j in ((4, 2), (2, 1)))
    assert [each.log_z for each in many.outcomes[:2]] == [each.log_z for each in few.outcomes]
    assert many.theta.shape == (4, 1)
    assert_allclose(many.log_partition(), np.mean([each.kinds["bound"] for each in many.outcomes]))
    assert many.trace["bound"].shape == (4, 21)


def test_the_bound_is_below_and_off_by_the_divergence():
    """One parameter: the bound is log Z - KL(p_theta | p_target), both known in closed form."""
    model = Ising(torus(6, 6), 1.0)
    exact, errors, gaps = torus_log_partition(6, 6, 1.0), [], []
    for seed in range(10):
        result = variational_smc(model, 400, 60, rng=seed)
        theta = float(result.theta[0, 0])
        slope = (torus_log_partition(6, 6, theta + 1e-5) - torus_log_partition(6, 6, theta - 1e-5)) / 2e-5
        divergence = slope * (theta - 1.0) + exact - torus_log_partition(6, 6, theta)
        bound = result.log_partition("bound")
        errors.append(bound - (exact - divergence))
        gaps.append(bound - exact)
    spread = np.std(errors, ddof=1) / np.sqrt(10)
    assert abs(np.mean(errors)) < 4 * spread
    assert np.mean(gaps) < 4 * spread


def test_refusals_and_a_warning():
    model = Ising(torus(4, 4), 0.3)
    with pytest.warns(UserWarning, match=r"\(1 \+ k\)\^-0.4 break the condition sum a_k\^2 < inf"):
        variational_smc(model, 10, 2, step_size=0.4, rng=0)
    for length in (np.nan, -1.0):
        with pytest.raises(ValueError, match=r"step_size\(0\) must be positive and finite"):
            variational_smc(model, 10, 2, step_size=lambda k, length=length: length, rng=0)
    with pytest.raises(ValueError, match="gradient must be one of"):
        variational_smc(model, 10, 2, gradient="exact")
    with pytest.raises(ValueError, match="curvature must be one of"):
        variational_smc(model, 10, 2, curvature="newton")
    with pytest.raises(ValueError, match="begin at the start of the family and end at its target"):
        ParameterPath(particles.IsingFamily(model), np.array([[0.0], [0.2]]))

    class Misshapen(Levels):
        def statistics(self, a, b):
            return super().statistics(a, b)[:, : 2 if len(a) == 9 else 1]

    with pytest.raises(ValueError, match=r"statistics of Misshapen must be finite numbers of shape \(2, 2\)"):
        variational_smc(Misshapen(), 10, 2)


def test_a_run_that_is_stopped_has_a_path_and_no_estimate():
    result = variational_smc(Ising(torus(4, 4), 1.0), 20, 50, time_limit=1e-9, rng=0)
    assert result.status == "time_limit"
    assert len(result.path[0]) == 2
    for question in (result.log_partition, lambda: result.kl):
        with pytest.raises(CumulantError, match="was stopped"):
            question()


def test_a_penalty_on_the_variance_changes_the_path_and_nothing_else():
    model = Ising(torus(4, 4), 1.0)
    found = [variational_smc(model, 200, 20, penalty=penalty, rng=0) for penalty in (0.0, 200.0)]
    assert_allclose(found[0].path[0][:2], found[1].path[0][:2])  # equal weights: their variance has no gradient
    assert not np.allclose(found[0].path[0][2:], found[1].path[0][2:])
    for each in found:
        theta = float(each.theta[0, 0])
        assert abs(each.log_partition("smc") - torus_log_partition(4, 4, theta)) < 4 * each.log_partition_error
        assert each.lost_variance[0] >= 0


def test_the_end_of_the_path_is_the_target():
    """12 x 12 at T = 0.1 from one seed: the bound, and the annealed end of the path."""
    result = variational_smc(Ising(torus(12, 12), 10.0), finish=100, rng=1)
    assert abs(result.log_partition("bound") - 2880.693) < 40
    assert abs(result.log_partition() - 2880.693) < 3
    assert_allclose(result.path[0][-1], [10.0])


@pytest.mark.slow
def test_twelve_by_twelve_at_a_tenth():
    """100 particles, 250 steps, 20 seeds: the bound within 25 nats (median), both modes in 70 %; annealed, within 1."""
    model, exact = Ising(torus(12, 12), 10.0), torus_log_partition(12, 12, 10.0)
    plain = variational_smc(model, n_islands=20, rng=0)
    bounds = np.array([each.kinds["bound"] for each in plain.outcomes])
    assert np.median(np.abs(bounds - exact)) < 25
    modes = [has_both_modes(plain.bridge.draws(e.population.x), e.population.weights) for e in plain.outcomes]
    assert np.mean(modes) >= 0.7
    annealed = variational_smc(model, finish=100, n_islands=20, rng=0)
    ends = np.array([each.log_z for each in annealed.outcomes])
    assert abs(np.median(ends) - exact) < 1
    fixed = variational_smc(model, finish=50, pilot=True, n_islands=40, rng=0)
    assert abs(fixed.log_partition() - exact) < 3 * fixed.log_partition_error < 0.3
    assert fixed.certificate.lower < exact
