"""Learning Ising models: closed forms, enumeration, and each certificate against the true distance."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError, FileFormatError, NoEstimateError
from cumulant.graphical import (
    MCMC,
    ContrastiveDivergence,
    Ising,
    MaximumLikelihood,
    PairwiseMRF,
    PersistentChains,
    SamplingPlan,
    grid,
    spin_glass,
)
from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.conditional_likelihood import composite_likelihood, pseudo_likelihood
from cumulant.graphical.learning.fit import fit, learning_problem
from cumulant.graphical.learning.mcmc import replay
from cumulant.graphical.mixing.fast_mixing import CouplingSet, FastMixing

BOX = FastMixing(0.2, "box")


@pytest.fixture(scope="module")
def data():
    return spin_glass(grid(3, 3), couplings=0.5, fields=0.3, rng=0).sample(400, rng=1)


def test_one_edge_in_closed_form():
    edge = Ising([(0, 1)], 0.0)
    free = fit([0.6], edge, method="exact", fields=False)
    assert_allclose(free.model.couplings, np.arctanh(0.6), atol=1e-8)
    assert free.certificate is None
    assert "l2" in free.refusal
    assert_allclose(fit([0.6], edge, method="exact", fields=False, l2=1.0).model.couplings, 0.304539, atol=1e-6)
    boxed = fit([0.6], edge, method="exact", fields=False, l2=1.0, mixing=BOX)
    assert_allclose(boxed.model.couplings, 0.2)


@pytest.mark.parametrize("mixing", [None, BOX, FastMixing(0.6)], ids=["free", "box", "spectral"])
def test_the_exact_fit_is_optimal_and_its_gap_is_true(data, mixing):
    problem = learning_problem(data, grid(3, 3), mixing=mixing, l2=0.1)
    found = fit(data, grid(3, 3), method="exact", mixing=mixing, l2=0.1)
    theta = found.model.theta
    _, gradient = problem.value_and_gradient(theta)
    stationary = problem.project(theta - gradient)[0]  # any step length: theta is optimal where it does not move
    assert_allclose(stationary, theta, atol=2e-4)
    rough = fit(data, grid(3, 3), method=MaximumLikelihood(max_steps=3), mixing=mixing, l2=0.1)
    assert rough.status == "max_steps"
    assert rough.certificate.upper >= problem.value_and_gradient(rough.model.theta)[0] - found.value >= -1e-9
    assert found.status == "converged"
    for each in (found, rough):
        each.certificate.verify(each.subject)
        each.certificate.verify(Subject(problem, each))
    if mixing is not None:
        found.model.mixing_time(norm="inf" if mixing is BOX else "spectral", bound="tanh")


def test_learning_by_sampling_is_as_near_as_certified(data):
    exact = fit(data, grid(3, 3), method="exact", mixing=BOX, l2=1.0, fields=False)
    settings = {"mixing": BOX, "l2": 1.0, "fields": False}
    found = fit(data, grid(3, 3), method=MCMC(eps=0.5), rng=0, **settings)
    assert found.status == "converged"
    certificate = found.certificate
    assert certificate.kind == "with probability"
    assert certificate.upper <= 0.5
    distance = np.linalg.norm(found.model.theta - exact.model.theta)
    assert distance <= certificate.upper
    assert distance < 0.1  # the bound is far from tight
    assert found.path.shape == (found.plan.iterations + 1, 12)
    again = fit(data, grid(3, 3), method=MCMC(eps=0.5), rng=0, n_jobs=1, **settings)
    assert (again.model.theta == found.model.theta).all()
    assert "mcmc" in str(found)
    problem = learning_problem(data, grid(3, 3), mixing=BOX, l2=1.0, fields=False)
    found.certificate.verify(found.subject)
    found.certificate.verify(Subject(problem, found))
    coarse = fit(data, grid(3, 3), method=MCMC(eps=1.5), rng=np.random.default_rng(3), **settings)
    assert (replay(coarse, problem=problem).path == coarse.path).all()
    small = fit(data, grid(3, 3), method=MCMC(plan=SamplingPlan(5, 4000, 400)), rng=0, **settings)
    assert small.status == "max_steps"
    far = 0.2 * np.sqrt(12) + np.linalg.norm(exact.model.theta)  # no point of the box is known to be nearer
    assert np.linalg.norm(small.model.theta - exact.model.theta) < small.certificate.upper < 0.6 * far


def test_the_convex_guarantee_without_l2(data):
    mixing = FastMixing(0.5, "inf")
    exact = fit(data, grid(3, 3), method=MaximumLikelihood(max_steps=100), mixing=mixing, fields=False, l2=1e-6)
    problem = learning_problem(data, grid(3, 3), mixing=mixing, fields=False)
    method = MCMC(plan=SamplingPlan(40, 20_000, 250))
    found = fit(data, grid(3, 3), method=method, mixing=mixing, fields=False, rng=0)
    found.certificate.verify(found.subject)
    least = problem.value_and_gradient(exact.model.couplings)[0]
    gap = problem.value_and_gradient(found.model.couplings)[0] - least
    assert gap <= found.certificate.upper
    assert found.certificate.quantity == "f(theta) - f*"
    ends = [problem.project(10 * way)[0] for way in np.random.default_rng(0).choice([-1.0, 1.0], size=(50, 12))]
    worst = max(problem.value_and_gradient(end)[0] for end in ends) - least
    assert found.certificate.upper < 0.5 * worst  # the bound says more than that the point is in the set


@pytest.mark.parametrize("norm", ["spectral", "inf"])
def test_projections_of_couplings_that_are_nearly_in_the_set(norm):
    members = CouplingSet(FastMixing(0.5, norm), grid(3, 3), 9)
    rng = np.random.default_rng(0)
    inside, _ = members.project(rng.normal(size=12))
    for away in (1e-3, 1e-5, 1e-7, 1e-12):
        for direction in (inside, rng.normal(size=12)):
            given = inside + away * direction
            point, error = members.project(given)
            assert members.size(point) <= 0.5 * (1 + 1e-9)
            assert error <= np.linalg.norm(point - given) * (1 + 1e-9)  # whatever stopped the solver
            assert away < 1e-3 or error < 1e-7
            assert np.linalg.norm(point - given) <= np.linalg.norm(inside - given) + error


def test_a_smaller_constant_is_called_assumed(data):
    method = MCMC(smoothness=3.0, plan=SamplingPlan(2, 9, 9))
    found = fit(data, grid(3, 3), method=method, mixing=BOX, l2=1.0, fields=False, rng=0)
    assert any(a.status == "assumed" and "Lipschitz" in a.text for a in found.certificate.assumptions)


def test_a_run_that_ends_early_is_certified_for_what_it_did(data):
    settings = {"mixing": BOX, "l2": 1.0, "fields": False, "rng": 0}
    exact = fit(data, grid(3, 3), method="exact", mixing=BOX, l2=1.0, fields=False)
    clock = fit(data, grid(3, 3), method=MCMC(eps=0.05), time_limit=0.2, **settings)
    assert clock.status == "time_limit"
    made = len(clock.path) - 1
    assert 1 <= made < clock.plan.iterations
    clock.certificate.verify(clock.subject)
    assert np.linalg.norm(clock.model.theta - exact.model.theta) <= clock.certificate.upper
    again = replay(clock)
    assert (again.path == clock.path).all()
    assert again.certificate == clock.certificate
    values = []
    stopped = fit(
        data, grid(3, 3), method="exact", mixing=BOX, l2=0.1, callback=lambda s: values.append(s.value) or s.step == 4
    )
    assert stopped.status == "stopped"
    assert len(values) == 4
    assert stopped.certificate.upper > 0


def test_an_exact_fit_is_resumed_from_its_checkpoint(data, tmp_path):
    settings = {"method": "exact", "mixing": FastMixing(0.6), "l2": 0.1, "checkpoint": tmp_path / "fit"}
    part = fit(data, grid(3, 3), callback=lambda snapshot: snapshot.step == 3, **settings)
    assert part.status == "stopped"
    whole = fit(data, grid(3, 3), method="exact", mixing=FastMixing(0.6), l2=0.1)
    resumed = fit(data, grid(3, 3), **settings)
    assert resumed.status == whole.status == "converged"
    assert (resumed.model.theta == whole.model.theta).all()
    with pytest.raises(FileFormatError, match="another problem"):
        fit(data[:200], grid(3, 3), **settings)


def test_a_learning_problem_is_one_of_optim(data):
    problem = learning_problem(data, grid(3, 3), l2=0.1)
    result = optim.run(optim.LBFGS(), problem, np.zeros(problem.shape), tol=1e-9)
    assert result.status == "converged"
    result.certificate.verify(result.subject)
    assert_allclose(result.x, fit(data, grid(3, 3), method="exact", l2=0.1).model.theta, atol=1e-6)


def test_values_recorded_by_a_sampled_run_are_near_to_the_objective(data):
    settings = {"l2": 1.0, "fields": False}
    method = MCMC(plan=SamplingPlan(30, 2000, 300))
    found = fit(data, grid(3, 3), method=method, mixing=BOX, rng=0, **settings)
    truth = [found.problem.value(theta) for theta in found.path]
    assert_allclose(found.trace.value, truth, atol=0.02)
    assert truth[0] - truth[-1] > 0.3


def by_enumeration(model, x, blocks):
    """``-mean log p(x_B | rest)`` summed over blocks, from the joint table."""
    states = np.array(list(itertools.product((-1, 1), repeat=x.shape[1])))
    log_p = model.log_prob(states)
    total = 0.0
    for row in x:
        own = model.log_prob(row)
        for block in blocks:
            rest = np.delete(np.arange(x.shape[1]), block)
            same = (states[:, rest] == row[rest]).all(axis=1)
            total -= own - np.log(np.exp(log_p[same]).sum())
    return total / len(x)


def test_conditional_likelihoods_against_enumeration(data):
    edges, x = grid(2, 3), data[:6, :6]
    model = spin_glass(edges, couplings=0.7, fields=0.4, rng=4)
    for make, blocks in ((pseudo_likelihood, [[i] for i in range(6)]), (composite_likelihood, edges.tolist())):
        objective = make(x, edges)
        value, gradient = objective(model.theta)
        assert_allclose(value, by_enumeration(model, x, blocks), rtol=1e-10)
        for k in (0, 5, 6, 12):
            shift = 1e-6 * (np.arange(model.theta.size) == k)
            slope = (objective(model.theta + shift)[0] - objective(model.theta - shift)[0]) / 2e-6
            assert_allclose(gradient[k], slope, atol=1e-7)


@pytest.mark.parametrize("method", ["pseudo_likelihood", "composite"])
def test_conditional_fits_are_consistent_and_certified(data, method):
    found = fit(data, grid(3, 3), method=method, l2=0.01)
    exact = fit(data, grid(3, 3), method="exact", l2=0.01)
    assert np.linalg.norm(found.model.theta - exact.model.theta) < 0.5
    assert found.certificate.upper < 1e-8
    found.certificate.verify(found.subject)
    assert "likelihood" in found.certificate.quantity


def test_methods_without_guarantees_say_so(data):
    exact = fit(data, grid(3, 3), method="exact", l2=0.1)
    for method in (ContrastiveDivergence(150, chains=300), PersistentChains(150, chains=300)):
        found = fit(data, grid(3, 3), method=method, l2=0.1, rng=0)
        assert found.certificate is None
        assert "no certificate" in str(found)
        assert np.linalg.norm(found.model.theta - exact.model.theta) < 0.5


def test_exact_learning_of_general_tables():
    x = np.random.default_rng(0).integers(0, [2, 3, 2], (50, 3))
    found = fit(
        x,
        PairwiseMRF([np.zeros(2), np.zeros(3), np.zeros(2)], [(0, 1), (1, 2)], [np.zeros((2, 3)), np.zeros((3, 2))]),
        method="exact",
        l2=0.05,
    )
    assert found.certificate.upper < 1e-8
    problem = learning_problem(x, found.model, l2=0.05)
    other = minimize(lambda t: problem.value_and_gradient(t)[0], np.zeros(found.model.theta.size), method="BFGS")
    assert_allclose(found.value, other.fun, atol=1e-7)


def test_chow_liu_is_the_best_tree():
    rng = np.random.default_rng(2)
    x = spin_glass(grid(2, 2), couplings=0.5, fields=0.3, rng=3).sample(500, rng=rng)
    model = chow_liu(x)
    best = -np.inf
    for edges in itertools.combinations(itertools.combinations(range(4), 2), 3):
        if len(set(itertools.chain(*edges))) == 4:
            tree = fit(x, np.array(edges), method="exact").model
            best = max(best, tree.log_prob(x).mean())
    assert_allclose(model.log_prob(x).mean(), best, atol=1e-9)
    states = chow_liu((x + 1) // 2)
    assert isinstance(states, PairwiseMRF)
    assert_allclose(states.log_prob((x + 1) // 2), model.log_prob(x), atol=1e-10)
    with pytest.raises(NoEstimateError, match="smoothing"):
        chow_liu(np.array([[1, 1], [-1, -1]]))
    assert np.isfinite(chow_liu(np.array([[1, 1], [-1, -1]]), smoothing=1.0).theta).all()


def test_refusals(data):
    edges = grid(3, 3)
    with pytest.raises(ValueError, match="FastMixing"):
        fit(data, edges)
    with pytest.raises(CertificateError, match="kappa"):
        fit(data, edges, mixing=FastMixing(0.5, "box"), l2=1.0)
    with pytest.raises(CertificateError, match="max_work"):
        fit(data, edges, method=MCMC(eps=1e-4), mixing=BOX, l2=0.001)
    with pytest.raises(CertificateError, match="fields=False"):
        fit(data, edges, mixing=BOX)
    with pytest.raises(ValueError, match="method must be"):
        fit(data, edges, method="em")
    with pytest.raises(ValueError, match="finite"):
        fit(data * np.nan, edges, method="exact")
    with pytest.raises(ValueError, match="distinct"):
        fit(data, [(0, 1), (1, 0)], method="exact")
    with pytest.raises(ValueError, match="l2"):
        fit(data, edges, method="exact", l2=-1.0)
    with pytest.raises(ValueError, match="themselves"):
        fit(np.zeros(21), Ising(edges, 0.0), method="pseudo_likelihood")
