"""The laws of exponential families, each written once and run over all of them: closed forms and finite sums.

One compiled bundle per family evaluates every law at a fixed batch of members; hypothesis chooses the members. The
other tests call the methods themselves, at as few shapes as will do: compiling is what they cost.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cumulant import families as fam
from cumulant import optim
from cumulant.errors import DomainError, NoEstimateError
from tests.families import cases
from tests.laws import discrete

CLOSED = fam.all_families()
ALL = (*CLOSED, *discrete.FAMILIES)
EACH = pytest.mark.parametrize("family", ALL, ids=str)
CLOSED_FORM = pytest.mark.parametrize("family", CLOSED, ids=str)
ENUMERATED = pytest.mark.parametrize("name", discrete.CASES)
SEEDS = st.integers(0, 2**31)
N = 20_000  # draws, wherever a test draws from one member
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@functools.cache
def compiled(family):
    """Everything the laws compare, for a batch of members and a batch of others, as one program."""

    def dot(a, b):
        return jnp.sum(a * b, axis=-1)

    def both(function, first, second):
        """`function` of two batches. What stands once in a program is compiled once, a Newton solve above all."""
        return function(jnp.stack([first, second]))

    def inverse(mu):
        theta = family.to_natural(mu)
        return theta, theta

    determined = projector(family)

    def bundle(theta, other):
        mu, nu = both(family.to_mean, theta, other)
        gradient = jax.vmap(jax.grad(family.log_partition))(theta)
        fisher = family.fisher(theta)
        kl, reverse = family.kl(jnp.stack([theta, other]), jnp.stack([other, theta]))
        conjugate, conjugate_nu = both(family.conjugate, mu, nu)
        value, value_other = both(family.log_partition, theta, other)
        entropy = family.entropy(theta)
        derivative, back = jax.vmap(jax.jacfwd(inverse, has_aux=True))(mu)
        laws = {
            "mean": (mu, gradient),
            "fisher": (fisher, jax.vmap(jax.jacfwd(family.to_mean))(theta)),
            "round trip": (back, theta @ determined),
            "fenchel-young": (conjugate + value, dot(theta, mu)),
            "kl is bregman": (kl, value_other - value - dot(mu, other - theta)),
            "bregman": (family.bregman(theta, other), reverse),
            "kl is dual bregman": (kl, conjugate - conjugate_nu - dot(other, mu - nu)),
            "inverse derivative": (
                jnp.einsum("bij,bjk->bik", derivative, fisher),
                jnp.broadcast_to(determined, (theta.shape[0], family.dim, family.dim)),
            ),
            "domains": (family.in_domain(theta) & family.in_mean_domain(mu), jnp.ones(theta.shape[0], bool)),
        }
        if not isinstance(family, fam.ExponentialFamily):
            return laws | {"entropy": (entropy, -conjugate)}
        dual, base = family.bregman_conjugate(mu, nu), family.expected_log_base(theta)
        return laws | {
            "entropy": (entropy, -conjugate - base),
            "usual": (family.natural(**family.usual(theta)), theta),
            "dual order": (dual, kl),
            "symmetrised": (family.symmetrised(mu, nu), kl + reverse),
            "cross entropy": (family.cross_entropy(theta, other), entropy + kl),
        }

    return jax.jit(bundle)


def projector(family):
    """What of ``theta`` the distribution determines: all of it, unless the family is over-complete."""
    if not isinstance(family, fam.BoundedFamily):
        return np.eye(family.dim)
    return family.directions() @ family.directions().T


def scale_of(expected):
    """Components of one parameter can differ by orders of magnitude: errors are measured against the largest of each
    row.
    """
    flat = np.abs(expected.reshape(len(expected), -1))
    return np.maximum(1.0, flat.max(axis=1)).reshape(-1, *(1,) * (expected.ndim - 1))


@EACH
@FEW
@given(seed=SEEDS)
def test_every_law_holds_in_float64(family, seed):
    theta, other = cases.members(family, cases.cube(seed)), cases.members(family, cases.cube(seed + 1))
    if not isinstance(family, fam.ExponentialFamily):  # a solve on the host for each
        theta, other = theta[:2], other[:2]
    with jax.enable_x64(True):
        laws = jax.tree.map(np.asarray, compiled(family)(jnp.asarray(theta), jnp.asarray(other)))
    for name, (got, expected) in laws.items():
        tolerance = 1e-6 if name == "inverse derivative" else 1e-8
        assert_allclose(got / scale_of(expected), expected / scale_of(expected), rtol=0, atol=tolerance, err_msg=name)


@EACH
def test_the_laws_hold_in_the_callers_float32(family):
    theta = cases.members(family, cases.cube(3)).astype(np.float32)

    def single(t):
        return family.to_mean(t), jax.vmap(jax.grad(family.log_partition))(t), family.log_partition(t)

    mu, gradient, value = jax.jit(single)(jnp.asarray(theta))
    assert mu.dtype == gradient.dtype == value.dtype == jnp.float32
    exact = family.to_mean(theta)  # NumPy in: float64
    scale = scale_of(exact)
    assert_allclose(np.asarray(mu) / scale, exact / scale, atol=1e-4)
    assert_allclose(np.asarray(gradient) / scale, exact / scale, atol=1e-4)
    assert_allclose(np.asarray(value), family.log_partition(theta), rtol=1e-4, atol=1e-4 * float(np.max(scale)))


@EACH
def test_numpy_goes_in_and_comes_out_in_float64(family):
    theta, one = cases.members(family, cases.cube(4)), cases.member(family, 4)
    kl, mean = family.kl(theta, theta), family.to_mean(theta)
    for answer in (family.log_partition(theta), family.entropy(theta), kl, mean, family.fisher(one)):
        assert isinstance(answer, np.ndarray)
        assert answer.dtype == np.float64
    assert family.fisher(one).shape == (family.dim, family.dim)
    assert isinstance(family.log_partition(one), np.float64)
    assert kl.shape == (cases.BATCH,)
    assert np.all(np.abs(kl) <= 1e-12 * (1 + np.sum(np.abs(theta * mean), axis=-1)))


@EACH
def test_batches_are_the_same_as_one_at_a_time(family):
    theta = cases.members(family, cases.cube(5))
    stacked = theta.reshape(3, 4, -1)
    assert_allclose(family.log_partition(stacked), family.log_partition(theta).reshape(3, 4), rtol=1e-13)
    assert_allclose(family.to_mean(stacked)[1, 2], family.to_mean(theta[6]), rtol=1e-12, atol=1e-13)


@CLOSED_FORM
def test_densities_agree_with_scipy(family):
    usual = cases.usual_parameters(family, cases.cube(7))
    theta = family.natural(**usual).reshape(3, 4, -1)
    # A program that draws is expensive to compile: the shape of a batch is read off its trace, the points are those of
    # each member by itself.
    drawn = jax.eval_shape(lambda t: family.sample(t, 4, rng=jax.random.PRNGKey(2)), theta)
    each = [family.sample(one, N, rng=2 + i) for i, one in enumerate(theta.reshape(cases.BATCH, -1))]
    x = jax.tree.map(lambda *parts: np.stack([p[:4] for p in parts], 1).reshape(4, 3, 4, *parts[0].shape[1:]), *each)
    leaf, shape = (x[0], family.event_shape[0]) if isinstance(x, tuple) else (x, family.event_shape)
    assert leaf.shape == (4, 3, 4, *shape)
    assert jax.tree.map(lambda a: a.shape, drawn) == jax.tree.map(lambda a: a.shape, x)
    density = family.log_prob(x, theta)
    assert density.shape == (4, 3, 4)
    if type(family).__name__ in ("Product", "NormalInverseWishart", "NormalInverseGamma"):
        return  # no twin: the density is the product of its parts, or tested beside the family
    x, density = x.reshape(4, cases.BATCH, *shape), density.reshape(4, cases.BATCH)
    twin = cases.scipy_twin(family, **usual)
    if twin is not None:
        assert_allclose(density, twin.logpmf(x) if family.discrete else twin.logpdf(x), rtol=1e-9, atol=1e-9)
        return
    for i in range(cases.BATCH):
        one = {name: np.asarray(value)[i] for name, value in usual.items()}
        assert_allclose(density[:, i], cases.scipy_log_density(family, x[:, i], one), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "family", [fam.Normal(), fam.Beta(), fam.Product((fam.Poisson(), fam.Normal())), fam.Wishart(2)], ids=str
)
def test_each_member_of_a_batch_has_its_own_draws(family):
    theta, n = cases.members(family, cases.cube(7)).reshape(3, 4, -1), 500
    t = statistics(family, family.sample(theta, n, rng=2))
    error = np.std(t, axis=0) / np.sqrt(n)
    assert np.all(np.abs(t.mean(axis=0) - family.to_mean(theta)) <= 5 * error)


ON_THE_LINE = pytest.mark.parametrize("family", [f for f in CLOSED if cases.nodes(f) is not None], ids=str)


@ON_THE_LINE
def test_integrals_of_the_density_are_what_the_cumulant_says(family):
    x, w = cases.nodes(family)
    theta, other = cases.members(family, cases.cube(8)), cases.members(family, cases.cube(9))
    if isinstance(family, fam.Beta):  # floats end at 1 - 1e-16, and a small parameter leaves mass beyond
        theta, other = np.maximum(theta, 0.8), np.maximum(other, 0.8)
    logs, others = family.log_prob(x[:, None], theta), family.log_prob(x[:, None], other)
    p = np.exp(logs) * w[:, None]
    held = p > 0
    with jax.enable_x64(True):
        t = np.asarray(family.statistics(jnp.asarray(x)))
    t = np.where(np.isfinite(t), t, 0.0)
    mu = np.einsum("nb,nd->bd", p, t)
    assert_allclose(p.sum(axis=0), 1.0, rtol=1e-9, err_msg="normalisation")
    assert_allclose(mu, family.to_mean(theta), rtol=1e-7, atol=1e-9, err_msg="mean")
    entropy = -np.sum(np.where(held, p * np.where(held, logs, 0.0), 0.0), axis=0)
    assert_allclose(entropy, family.entropy(theta), rtol=1e-7, atol=1e-8, err_msg="entropy")
    kl = np.sum(np.where(held, p * np.where(held, logs - others, 0.0), 0.0), axis=0)
    assert_allclose(kl, family.kl(theta, other), rtol=1e-6, atol=1e-8, err_msg="kl")


@ON_THE_LINE
def test_sampling_passes_a_goodness_of_fit_test(family):
    from scipy import stats

    usual = cases.usual_parameters(family, cases.cube(10))
    theta = family.natural(**usual)
    for i in range(3):
        x = family.sample(theta[i], N, rng=3 + i)
        if family.discrete:
            cells, _ = cases.nodes(family)
            expected = N * np.exp(family.log_prob(cells[:, None], theta)[:, i])
            observed = np.bincount(x.astype(int), minlength=cells.size).astype(float)
            assert observed.size == cells.size
            keep = expected >= 8
            pooled = (
                np.append(observed[keep], N - observed[keep].sum()),
                np.append(expected[keep], N - expected[keep].sum()),
            )
            if pooled[1][-1] < 8:  # too thin a tail is joined to the last cell
                pooled = tuple(np.append(side[:-2], side[-2:].sum()) for side in pooled)
            statistic = np.sum((pooled[0] - pooled[1]) ** 2 / pooled[1])
            p_value = stats.chi2.sf(statistic, len(pooled[0]) - 1)
        else:
            one = {name: value[i] for name, value in usual.items()}
            sample, twin = x, cases.scipy_twin(family, **one)
            if isinstance(family, fam.VonMises):  # scipy's circle is cut opposite to the direction
                sample = one["direction"] + np.angle(np.exp(1j * (sample - one["direction"])))
            p_value = stats.kstest(sample, twin.cdf).pvalue
        assert p_value > 1e-3, (family, i, p_value)


@EACH
def test_a_sample_gives_back_the_mean_the_fisher_information_and_the_parameter(family):
    """The mean and covariance of T(x) within standard errors, and what estimation makes of the same sample."""
    theta, n = cases.member(family, 6), N
    mean, fisher = family.to_mean(theta), family.fisher(theta)
    x = family.sample(theta, n, rng=1)
    t = statistics(family, x)
    error = np.std(t, axis=0) / np.sqrt(n)
    assert np.all(np.abs(t.mean(axis=0) - mean) <= 5 * error), "mean of T"
    products = (t - mean)[:, :, None] * (t - mean)[:, None, :]
    spread = np.std(products, axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - fisher) <= 6 * spread + 1e-12), "covariance of T"
    # The estimate has the mean statistic of the data as its mean, and is as far from the truth as the theory says.
    estimate = family.mle(x)
    seen = t.mean(axis=0)
    assert_allclose(family.to_mean(estimate), seen, rtol=1e-7, atol=1e-9 * (1 + np.max(np.abs(seen))))
    z = np.sqrt(n * (estimate - theta) @ fisher @ (estimate - theta))
    assert z <= np.sqrt(family.dim) + 6
    stream_equals_batch(family, x, t)


def statistics(family, x):
    with jax.enable_x64(True):
        return np.asarray(family.statistics(jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), x)))


def stream_equals_batch(family, x, t):
    """A stream equals the batch, in any order, and stochastic mirror descent with steps 1 / (n0 + n)."""
    prior = fam.ConjugatePrior(mean=family.to_mean(cases.member(family, 13)), strength=2.5)
    batch, part = family.map(x, prior), N // 4

    def streamed(*order):
        stream = fam.StreamingMAP(family, prior)
        for i in order:
            stream = stream.update(jax.tree.map(lambda leaf: leaf[part * i : part * (i + 1)], x))  # noqa: B023
        return stream

    forward, backward = streamed(0, 1, 2, 3), streamed(2) + streamed(3, 1, 0)
    scale = np.max(np.abs(batch)) + 1
    assert_allclose(forward.theta, batch, atol=1e-9 * scale)
    assert_allclose(backward.theta, batch, atol=1e-9 * scale)
    mu = np.asarray(prior.mean)
    for n, row in enumerate(t, start=1):
        mu = mu - (mu - row) / (2.5 + n)
    assert_allclose(forward.mu, mu, rtol=1e-9, atol=1e-9)


@EACH
def test_parameters_outside_the_domain_are_refused_with_a_sentence(family):
    with pytest.raises(DomainError, match="entries on its last axis"):
        family.log_partition(np.zeros(family.dim + 1))
    with pytest.raises(DomainError, match="natural parameter of"):
        family.log_partition(np.full(family.dim, np.nan))
    with pytest.raises(DomainError, match="mean parameter of"):
        family.to_natural(np.full(family.dim, np.nan))
    with pytest.raises(ValueError, match="no observations"):
        family.mle(jax.tree.map(lambda leaf: leaf[:0], family.sample(cases.member(family, 1), N, rng=0)))


@EACH
def test_a_seed_names_its_draws(family):
    theta = cases.member(family, 2)
    first, again, other = (jax.tree.leaves(family.sample(theta, N, rng=s))[0] for s in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@EACH
def test_families_are_values(family):
    leaves, structure = jax.tree.flatten(family)
    assert jax.tree.unflatten(structure, leaves) == family
    assert hash(jax.tree.unflatten(structure, leaves)) == hash(family)
    assert family != fam.Poisson() or isinstance(family, fam.Poisson)
    assert type(family).__name__ in repr(family)


@EACH
def test_every_family_satisfies_the_protocol(family):
    assert isinstance(family, fam.Family)
    assert not isinstance(jax.tree, fam.Family)


@ENUMERATED
def test_finite_sums_agree_with_a_sum_over_all_states(name):
    family, states, T = discrete.CASES[name]
    assert_allclose(family.statistics(states), T, atol=0)
    theta, other = cases.members(family, cases.cube(20)), cases.members(family, cases.cube(21))
    theta, other = theta.reshape(3, 4, -1), other.reshape(3, 4, -1)
    scores, others = theta @ T.T, other @ T.T
    log_z, log_z_other = (np.log(np.exp(s).sum(axis=-1)) for s in (scores, others))
    log_p, log_q = scores - log_z[..., None], others - log_z_other[..., None]
    p = np.exp(log_p)
    mean = p @ T
    centred = T - mean[..., None, :]
    covariance = np.einsum("...s,...si,...sj->...ij", p, centred, centred)
    assert_allclose(family.log_partition(theta), log_z, rtol=1e-13)
    assert_allclose(family.to_mean(theta), mean, atol=1e-13)
    assert_allclose(family.fisher(theta), covariance, atol=1e-13)
    assert_allclose(family.entropy(theta), -(p * log_p).sum(axis=-1), rtol=1e-12)
    assert_allclose(family.kl(theta, other), (p * (log_p - log_q)).sum(axis=-1), rtol=1e-10)
    assert_allclose(family.kl(theta, other[0, 0]), (p * (log_p - log_q[0, 0])).sum(axis=-1), rtol=1e-10)
    assert_allclose(family.log_prob(states, theta[1, 2]), log_p[1, 2], rtol=1e-12, atol=1e-13)
    assert_allclose(family.log_prob(states[:, None, None], theta), np.moveaxis(log_p, -1, 0), rtol=1e-12, atol=1e-13)
    assert_allclose(family.conjugate(mean[0]), (p[0] * log_p[0]).sum(axis=-1), rtol=1e-10)
    drawn = family.sample(theta, 5, rng=3)
    assert drawn.shape == (5, 3, 4, states.shape[1])
    # Draws from one member have the frequencies of its states, by a chi-squared test at 1e-3.
    x = family.sample(theta[0, 0], N, rng=4)
    seen = (x[:, None, :] == states).all(axis=-1).sum(axis=0)
    expected = N * p[0, 0]
    from scipy import stats

    assert stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), len(states) - 1) > 1e-3


@ENUMERATED
def test_statistics_add_up_across_files(name, tmp_path):
    family, states, T = discrete.CASES[name]
    first, second = family.collect(states[:3]), family.collect(states[3:7], weights=[1.0, 2.0, 0.0, 1.0])
    again = fam.Statistics.load(first.save(tmp_path / "first.npz")) + second
    assert again.family == family
    assert again.count == 7.0
    assert_allclose(again.sum, T[:3].sum(axis=0) + [1.0, 2.0, 0.0, 1.0] @ T[3:7], rtol=1e-14)
    batches = family.collect(np.stack([states[:4], states[2:6]], axis=1))
    assert_allclose(batches.mean, [T[:4].mean(axis=0), T[2:6].mean(axis=0)], rtol=1e-14)


@ENUMERATED
def test_fisher_by_conditioning_is_that_of_enumeration(name, monkeypatch):
    from cumulant.graphical.exact import covariance

    family = discrete.CASES[name].family
    theta = cases.member(family, 22)
    expected = family.fisher(theta)
    monkeypatch.setattr(covariance, "_FEW_STATES", 0)
    assert_allclose(family.fisher(theta), expected, atol=1e-14)


@ENUMERATED
def test_means_on_and_outside_the_boundary_are_refused_with_a_reason(name):
    family, states, T = discrete.CASES[name]
    vertex, centre = T[3], T.mean(axis=0)
    edge = (T[3] + T[4]) / 2 if len(T) > 4 else vertex
    for mu in (vertex, edge, centre + 1.5 * (vertex - centre)):
        assert not family.in_mean_domain(mu)
        with pytest.raises(DomainError, match=r"must be inside the marginal polytope; .*(certain|no state|impossible)"):
            family.to_natural(mu)
    with pytest.raises(NoEstimateError, match="no finite maximum-likelihood estimate"):
        family.mle(states[3:4])
    assert family.in_mean_domain(centre)
    near = vertex + 1e-3 * (centre - vertex)  # inside, if barely
    assert_allclose(family.to_mean(family.to_natural(near)), near, atol=1e-12)
    assert np.all(np.isnan(jax.jit(family.to_natural)(jnp.asarray(vertex))))


@ENUMERATED
def test_maximum_likelihood_runs_and_is_certified(name):
    family, _, T = discrete.CASES[name]
    theta = cases.member(family, 23)
    p = np.exp(T @ theta)
    problem = optim.NegativeLogLikelihood(family, p @ T / p.sum())
    least = problem.value(theta)
    assert problem.smoothness >= np.linalg.eigvalsh(family.fisher(theta))[-1]
    for solver, steps in ((optim.LBFGS(), 1), (optim.GradientDescent(), 40)):
        result = optim.run(solver, problem, np.zeros(family.dim), max_steps=steps, tol=None)
        gap = problem.value(result.x) - least
        fresh = result.certificate.verify(result.subject)
        assert gap <= fresh.upper + 1e-14 * abs(least)
        assert fresh.upper <= 1.5 * gap + 1e-12 * abs(least)
        assert result.certificate.lower <= gap
    far = np.full(family.dim, 2.0) * (-1.0) ** np.arange(family.dim)
    claim = problem.certify(far)
    assert_allclose(claim.bound, problem.value(far) - least, rtol=1e-9)
    penalised = optim.NegativeLogLikelihood(family, p @ T / p.sum(), l2=0.1)
    found = optim.run(optim.LBFGS(), penalised, np.zeros(family.dim), tol=1e-10)
    assert found.status == "converged"
    assert_allclose(penalised.gradient(found.x), 0, atol=1e-5)
    assert found.certificate.verify(found.subject).upper <= 1e-10 * found.scale
