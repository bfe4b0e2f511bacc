"""Calls of the public interface that are right, one argument of which `test_wrong_calls` makes wrong.

Each is a small job; together they reach every package. Arguments are given by name.
"""

from collections.abc import Callable, Iterator

import jax.numpy as jnp
import numpy as np

from cumulant import (
    certificates,
    families,
    geometry,
    glm,
    graphical,
    layers,
    optim,
    particles,
    plotting,
    sampling,
    sequences,
)
from cumulant import variational as vi
from cumulant.families import risk
from cumulant.geometry import norms, projections, proximal, symmetric
from cumulant.plotting.glm import coefficient_path
from cumulant.plotting.graphical import pixels
from tests.laws.valid_calls_of_models import MODELS, Call, call

_RNG = np.random.default_rng(0)
A, Y = _RNG.normal(size=(12, 3)), _RNG.normal(size=12)
SIGNS, COUNTS = np.where(Y > 0, 1, -1), np.arange(12) % 4
X3, C33 = [0.2, 0.3, 0.5], [[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]]
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0)]


def bowl(x, data):
    return jnp.sum((x - data) ** 2)


def half(x, theta):
    return theta + x / 2


def standard(x):
    return -jnp.sum(x**2) / 2


def optimisation() -> Iterator[Call]:
    squares, zero = optim.LeastSquares(A, Y, l2=0.1), np.zeros(3)
    yield call("optim.run", optim.run, solver=optim.GradientDescent(), problem=squares, x0=zero, max_steps=20, tol=1e-3)
    yield call(
        "optim.run by residual",
        optim.run,
        solver=optim.LBFGS(),
        problem=squares,
        x0=zero,
        residual_tol=1e-3,
        time_limit=5.0,
        every=2,
    )
    yield call("optim.solve", optim.solve, solver=optim.Newton(), problem=squares, x0=zero, max_steps=5, tol=1e-3)
    yield call("optim.lasso", optim.lasso, A=A, y=Y, lam=1.0, tol=1e-2)
    yield call("optim.lasso_path", optim.lasso_path, A=A, y=Y, lams=[2.0, 1.0])
    yield call("optim.ridge", optim.ridge, A=A, y=Y, lam=1.0)
    yield call("optim.pinv_solution", optim.pinv_solution, A=A, y=Y)
    yield call("optim.pca", optim.pca, A=A)
    yield call("optim.LeastSquares", optim.LeastSquares, A=A, y=Y, l2=0.1, reduction="mean")
    yield call("optim.Logistic", optim.Logistic, A=A, y=SIGNS, l2=0.1, reduction="sum")
    yield call("optim.MultinomialLogistic", optim.MultinomialLogistic, A=A, y=COUNTS, n_classes=4, l2=0.1)
    yield call("optim.Quadratic", optim.Quadratic, C=C33, b=X3)
    yield call("optim.Objective", optim.Objective, function=bowl, data=X3, smoothness=2.0, strong_convexity=1.0)
    yield call("optim.Composite", optim.Composite, smooth=squares, penalty=optim.L1(0.1))
    yield call("optim.L1", optim.L1, weight=1.0)
    yield call("optim.ElasticNet", optim.ElasticNet, l1=1.0, l2=2.0)
    yield call("optim.GroupLasso", optim.GroupLasso, labels=[0, 0, 1], weight=1.0)
    yield call("optim.Box", optim.Box, lower=0.0, upper=1.0)
    yield call("optim.Simplex", optim.Simplex, radius=1.0)
    yield call("optim.GradientDescent", optim.GradientDescent, step_size=0.1)
    yield call("optim.ProximalGradient", optim.ProximalGradient, step_size=0.1)
    yield call("optim.AcceleratedGradient", optim.AcceleratedGradient, step_size=0.1, momentum=0.5)
    yield call("optim.HeavyBall", optim.HeavyBall, step_size=0.1, momentum=0.5)
    yield call("optim.Newton", optim.Newton, shift=0.1)
    yield call("optim.LBFGS", optim.LBFGS, memory=5, iterations=10)
    yield call("optim.Armijo", optim.Armijo, alpha=0.3, beta=0.5, initial=1.0)
    yield call("optim.Backtracking", optim.Backtracking, beta=0.5, initial=1.0)
    yield call("optim.MirrorDescent", optim.MirrorDescent, entropy=geometry.Shannon(), step_size=0.1)
    yield call("optim.DualCoordinateAscent", optim.DualCoordinateAscent, sampling="gap", step_rule="bounded")
    yield call("optim.SAGA", optim.SAGA)
    yield call("optim.Checkpoint", optim.Checkpoint, path="run", seconds=1.0)
    yield call("optim.soft_threshold", optim.soft_threshold, v=X3, amount=0.1)
    yield call("optim.lambda_max", optim.lambda_max, smooth=squares)
    yield call("optim.is_separable", optim.is_separable, A=A, y=SIGNS)
    yield call("optim.rates.gd_convex", optim.rates.gd_convex, L=2.0, R2=1.0, k=3)
    yield call("optim.rates.ista", optim.rates.ista, tau=0.5, R2=1.0, k=[1, 2])
    yield call("optim.rates.gd_contraction", optim.rates.gd_contraction, L=2.0, mu=1.0, tau=0.5)
    yield call("optim.certify_optimality", optim.certify_optimality, problem=squares, x=zero)
    yield call("LeastSquares.value", squares.value, x=zero)
    yield call("LeastSquares.gradient", squares.gradient, x=zero)


def geometries() -> Iterator[Call]:
    yield call("projections.box", projections.box, x=X3, lower=0.0, upper=1.0)
    yield call("projections.simplex", projections.simplex, x=X3, radius=1.0)
    yield call("projections.l1_ball", projections.l1_ball, x=X3, radius=1.0)
    yield call("projections.l2_ball", projections.l2_ball, x=X3, radius=1.0)
    yield call("projections.affine", projections.affine, x=X3, A=[[1.0, 1.0, 1.0]], b=[1.0])
    yield call("projections.positive_semidefinite", projections.positive_semidefinite, X=C33, floor=0.1)
    yield call("projections.kl_simplex", projections.kl_simplex, x=X3, radius=1.0)
    yield call("proximal.l1", proximal.l1, v=X3, step=1.0, weight=0.1)
    yield call("proximal.group", proximal.group, v=X3, step=1.0, labels=[0, 0, 1], weight=0.1)
    yield call("proximal.nuclear", proximal.nuclear, V=C33, step=1.0, weight=0.1)
    yield call("proximal.negative_log_det", proximal.negative_log_det, V=C33, step=1.0, structure="symmetric")
    yield call("proximal.entropy", proximal.entropy, v=X3, step=1.0)
    yield call("geometry.Power", geometry.Power, alpha=1.5)
    yield call("geometry.Hypentropy", geometry.Hypentropy, beta=1.0)
    yield call("Shannon.divergence", geometry.Shannon().divergence, x=X3, y=[0.3, 0.3, 0.4])
    yield call("Shannon.gradient", geometry.Shannon().gradient, x=X3)
    yield call("geometry.csiszar", geometry.csiszar, entropy=geometry.Shannon(), x=X3, y=[0.3, 0.3, 0.4])
    yield call("norms.operator_norm", norms.operator_norm, A=C33)
    yield call(
        "norms.operator_norm_interval", norms.operator_norm_interval, A=np.array(C33), steps=20, delta=0.1, rng=0
    )
    yield call("symmetric.vech", symmetric.vech, matrix=C33)
    yield call("symmetric.unvech", symmetric.unvech, vector=[1.0, 2.0, 3.0])


def layer_calls() -> Iterator[Call]:
    yield call("layers.argmin", layers.argmin, objective=bowl, x0=[0.0, 0.0], theta=[1.0, 2.0], tol=1e-6, max_steps=50)
    yield call(
        "layers.argmin with a penalty",
        layers.argmin,
        objective=bowl,
        x0=[0.0, 0.0],
        theta=[1.0, 2.0],
        penalty=optim.L1(0.1),
        linear_solver="dense",
    )
    yield call("layers.envelope", layers.envelope, objective=bowl, x0=[0.0, 0.0], theta=[1.0, 2.0], tol=1e-6)
    yield call("layers.fixed_point", layers.fixed_point, function=half, x0=[0.0, 0.0], theta=[1.0, 2.0], tol=1e-6)
    yield call(
        "layers.sinkhorn", layers.sinkhorn, cost=[[0.0, 1.0], [1.0, 0.0]], a=[0.5, 0.5], b=[0.3, 0.7], epsilon=0.1
    )
    yield call("layers.binomial_steps", layers.binomial_steps, n_steps=8, slots=3)
    yield call("layers.barron_bound", layers.barron_bound, constant=1.0, radius=1.0, units=10)
    yield call("layers.kantorovich_radius", layers.kantorovich_radius, step=0.1, inverse_norm=1.0, lipschitz=1.0)


def family_calls() -> Iterator[Call]:
    gamma, poisson, normal = families.Gamma(), families.Poisson(), families.Normal()
    theta, data = gamma.natural(shape=2.0, rate=3.0), [0.5, 1.0, 2.0]
    prior = families.ConjugatePrior(mean=[1.0], strength=2.0)
    yield call("Gamma.natural", gamma.natural, shape=2.0, rate=3.0)
    yield call("Gamma.usual", gamma.usual, theta=theta)
    yield call("Gamma.log_prob", gamma.log_prob, x=data, theta=theta)
    yield call("Gamma.kl", gamma.kl, theta=theta, other=gamma.natural(shape=1.0, rate=1.0))
    yield call("Gamma.to_mean", gamma.to_mean, theta=theta)
    yield call("Gamma.sample", gamma.sample, theta=theta, n=5, rng=0)
    yield call("Gamma.mle", gamma.mle, x=data)
    yield call("Gamma.entropy", gamma.entropy, theta=theta)
    yield call("Gamma.fisher", gamma.fisher, theta=theta)
    yield call("Poisson.natural", poisson.natural, rate=3.0)
    yield call("Poisson.mle", poisson.mle, x=COUNTS, weights=np.ones(12))
    yield call("Poisson.map", poisson.map, x=COUNTS, prior=prior)
    yield call("Poisson.estimate", poisson.estimate, x=COUNTS, prior=prior)
    yield call("Poisson.collect", poisson.collect, x=COUNTS)
    yield call("Normal.natural", normal.natural, mean=0.0, variance=1.0)
    yield call("Normal.estimate", normal.estimate, x=Y)
    yield call("Categorical", families.Categorical, categories=3)
    yield call("Categorical.natural", families.Categorical(3).natural, probabilities=X3)
    yield call("Binomial", families.Binomial, trials=5)
    yield call("Dirichlet.natural", families.Dirichlet(3).natural, concentration=X3)
    yield call("MultivariateNormal", families.MultivariateNormal, size=3)
    yield call("MultivariateNormal.natural", families.MultivariateNormal(3).natural, mean=X3, covariance=C33)
    yield call("NormalKnownVariance", families.NormalKnownVariance, variance=2.0)
    yield call("ParetoKnownMinimum", families.ParetoKnownMinimum, minimum=2.0)
    yield call("Product", families.Product, parts=(gamma, poisson))
    yield call("ConjugatePrior", families.ConjugatePrior, mean=[1.0], strength=2.0)
    yield call(
        "risk.expected_kl", risk.expected_kl, family=families.NormalKnownMean(), theta_star=[-0.5], n=10, method="auto"
    )


def sampling_calls() -> Iterator[Call]:
    target = sampling.Target(standard, 2)
    yield call("sampling.Target", sampling.Target, function=standard, variables=2, smoothness=1.0, strong_convexity=1.0)
    yield call(
        "sampling.sample",
        sampling.sample,
        sampler=sampling.RandomWalk(0.5),
        target=target,
        n=5,
        chains=2,
        burn_in=3,
        rng=0,
    )
    yield call("sampling.RandomWalk", sampling.RandomWalk, scale=0.5)
    yield call("sampling.HMC", sampling.HMC, step_size=0.5, n_leapfrog=3)
    yield call("sampling.resample", sampling.resample, log_weights=[0.0, -1.0], n=5, method="systematic", rng=0)
    yield call("sampling.split_r_hat", sampling.split_r_hat, draws=_RNG.normal(size=(2, 20)))
    yield call("sampling.effective_sample_size", sampling.effective_sample_size, draws=_RNG.normal(size=(2, 20)))
    yield call("sampling.weighted_sample_size", sampling.weighted_sample_size, log_weights=[0.0, -1.0])
    yield call("sampling.log_mean_exp", sampling.log_mean_exp, log_weights=[0.0, -1.0])
    yield call("sampling.pareto_shape", sampling.pareto_shape, log_weights=_RNG.normal(size=200))
    yield call("sampling.lower_from_estimates", sampling.lower_from_estimates, estimates=[0.1, 0.2], delta=0.1)
    yield call("sampling.next_temperature", sampling.next_temperature, log_ratio=[0.1, 0.5], t=0.2, share=0.5)


def particle_calls() -> Iterator[Call]:
    model = graphical.Ising(EDGES, 0.3, [0.1, 0.0, -0.1, 0.2])
    family = particles.IsingFamily(model)
    x_A, x_B = family.begin(4, np.random.default_rng(0))
    result = particles.anneal(model, 20, 3, rng=0)
    spins, W = [[1, 1], [1, -1], [-1, 1]], [0.2, 0.3, 0.5]
    common = {
        "n_particles": 20,
        "resampling": "stratified",
        "ess_threshold": 0.5,
        "n_islands": 2,
        "delta": 0.1,
        "rng": 0,
    }
    yield call(
        "particles.anneal",
        particles.anneal,
        model=model,
        temperatures=3,
        weights="rb",
        sweeps=1,
        pilot=False,
        chain_length=1,
        exchange=2,
        **common,
    )
    yield call(
        "particles.hot_coupling",
        particles.hot_coupling,
        model=model,
        order=[0],
        groups=1,
        steps_per_group=2,
        weights="rb",
        sweeps=1,
        **common,
    )
    yield call(
        "particles.variational_smc",
        particles.variational_smc,
        model=model,
        n_steps=3,
        family="global",
        step_size=0.65,
        safeguard="exact",
        gradient="plain",
        curvature="bfgs",
        finish=2,
        pilot=False,
        penalty=0.5,
        **common,
    )
    yield call(
        "particles.conditional_mean_field",
        particles.conditional_mean_field,
        model=model,
        temperatures=2,
        partition="halve",
        sweeps=1,
        free_edges=False,
        start="uniform",
        backward="mixture",
        pilot=False,
        **common,
    )
    yield call("particles.conditional_means", particles.conditional_means, result=result, sweeps=2, rng=0)
    yield call("ParticleResult.interval", result.interval, level=0.9)
    yield call("ParticleResult.expect", result.expect, function=_first)
    yield call("ParticleResult.log_partition", result.log_partition, kind="smc")
    yield call("ParticleResult.bayes_factor", result.bayes_factor, other=result, kind="smc")
    yield call("particles.overlap_distribution", particles.overlap_distribution, particles=spins, weights=W, bins=5)
    yield call("particles.up_share", particles.up_share, particles=spins, weights=W)
    yield call(
        "particles.safeguarded_step", particles.safeguarded_step, weights=W, projections=[0.0, 1.0, 2.0], cap=1.0
    )
    yield call("particles.check_refinement", particles.check_refinement, old=[[0, 1], [2]], new=[[0], [1], [2]])
    yield call("particles.ParameterPath.tempered", particles.ParameterPath.tempered, family=family, n_steps=3)
    yield call(
        "particles.Settings",
        particles.Settings,
        n_particles=10,
        resampling="stratified",
        ess_threshold=0.5,
        chain_length=1,
    )
    yield call(
        "particles.kl_gradient", particles.kl_gradient, weights=[0.25] * 4, x_A=x_A, x_B=x_B, theta=[0.2], family=family
    )


def _first(states):
    return states[:, 0]


def graphical_calls() -> Iterator[Call]:
    ising = graphical.Ising(EDGES, 0.3, [0.1, 0.0, -0.1, 0.2])
    net = graphical.BayesNet({"a": [0.4, 0.6], "b": [[0.3, 0.7], [0.8, 0.2]]}, {"b": ["a"]})
    data = np.where(_RNG.random((30, 4)) > 0.5, 1, -1)
    yield call("graphical.Ising", graphical.Ising, edges=EDGES, couplings=0.3, fields=[0.1, 0.0, -0.1, 0.2])
    yield call("graphical.Potts", graphical.Potts, edges=EDGES, couplings=0.3, n_states=3)
    yield call("Ising.log_partition", ising.log_partition, max_memory=2**20)
    yield call("Ising.marginals", ising.marginals)
    yield call("Ising.marginal", ising.marginal, variables=[0, 1])
    yield call("Ising.log_prob", ising.log_prob, x=[1, -1, 1, 1])
    yield call("Ising.sample", ising.sample, n=3, rng=0, method="systematic", chains=2, burn_in=3)
    yield call("Ising.given", ising.given, evidence={0: 1})
    yield call("Ising.kl", ising.kl, other=graphical.Ising(EDGES, 0.1))
    yield call("Ising.mixing_time", ising.mixing_time, eps=0.01)
    yield call("graphical.bound_log_partition", graphical.bound_log_partition, model=ising, time_limit=2.0, delta=0.01)
    yield call("graphical.mean_field", graphical.mean_field, model=ising, n_starts=2, max_sweeps=50, tol=1e-4)
    yield call(
        "graphical.belief_propagation",
        graphical.belief_propagation,
        model=ising,
        schedule="parallel",
        damping=0.1,
        tol=1e-4,
    )
    yield call("graphical.tree_reweighted", graphical.tree_reweighted, model=ising, max_trees=3, tol=1e-4)
    yield call("graphical.project", graphical.project, model=ising, radius=0.9, norm="inf")
    yield call("graphical.FastMixing", graphical.FastMixing, radius=0.9, norm="spectral")
    yield call("graphical.grid", graphical.grid, rows=2, columns=3)
    yield call("graphical.torus", graphical.torus, rows=3, columns=3)
    yield call("graphical.complete", graphical.complete, n=3)
    yield call("graphical.random_regular", graphical.random_regular, n=6, degree=2, rng=0)
    yield call("graphical.spin_glass", graphical.spin_glass, edges=EDGES, couplings=1.0, fields=0.1, rng=0)
    yield call("graphical.BayesNet", graphical.BayesNet, tables={"a": [0.4, 0.6]})
    yield call("BayesNet.given", net.given, evidence={"a": 1})
    yield call("BayesNet.sample", net.sample, n=3, rng=0)
    yield call("BayesNet.conditional", net.conditional, names="b", given={"a": 0})
    yield call("BayesNet.do", net.do, values={"a": 1})
    yield call(
        "graphical.backdoor_criterion",
        graphical.backdoor_criterion,
        graph=[("z", "x"), ("z", "y")],
        x="x",
        y="y",
        z=["z"],
    )
    yield call("graphical.fit", graphical.fit, data=data, structure=EDGES, method="exact", l2=0.1)
    yield call("graphical.chow_liu", graphical.chow_liu, data=data, smoothing=0.1)
    yield call(
        "FactorGraph.from_tables",
        graphical.FactorGraph.from_tables,
        cardinalities=[2, 2],
        factors=[((0, 1), [[1.0, 2.0], [3.0, 4.0]])],
    )
    yield call("graphical.colouring", graphical.colouring, n=4, edges=EDGES)
    yield call("graphical.mixing_from_tau", graphical.mixing_from_tau, a=1.0, b=2.0)
    yield call("graphical.read_uai", graphical.read_uai, path="missing.uai")
    yield call("IsingEstimator.fit", graphical.IsingEstimator(EDGES, method="exact", l2=0.1).fit, X=data)


def regression_calls() -> Iterator[Call]:
    binary = (Y > 0).astype(int)
    fitted = glm.GLM(family="poisson", l2=0.1).fit(A, COUNTS)
    yield call("GLM.fit", glm.GLM(family="bernoulli", l2=0.1).fit, X=A, y=binary, sample_weight=np.ones(12))
    yield call("GLM.fit with exposure", glm.GLM(family="poisson", l2=0.1).fit, X=A, y=COUNTS, exposure=np.ones(12))
    yield call("GLM.predict", fitted.predict, X=A)
    yield call("GLM.score", fitted.score, X=A, y=COUNTS)
    for name, value in (("family", "normal"), ("l2", 0.1), ("l1", 0.1), ("tol", 1e-3), ("solver", "auto")):
        yield call(f"GLM({name})", lambda **s: glm.GLM(**s).fit(A, Y), **{name: value})
    yield call("OnlineL1Logistic.partial_fit", glm.OnlineL1Logistic().partial_fit, X=A, y=binary, classes=[0, 1])
    yield call("OnlineLasso.partial_fit", glm.OnlineLasso().partial_fit, X=A, y=Y)
    yield call("glm.loss_of", glm.loss_of, family="poisson", y=np.array([1.0, 2.0]))


def sequence_calls() -> Iterator[Call]:
    X, y = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}]], [["N", "V"], ["V"]]
    tagger = sequences.ChainCRF(l2=0.1, tol=0.1).fit(X, y)
    yield call("ChainCRF.fit", sequences.ChainCRF(l2=0.1, tol=0.1).fit, X=X, y=y)
    yield call("ChainCRF.predict", tagger.predict, X=X)
    yield call("ChainCRF.score", tagger.score, X=X, y=y)
    for name, value in (("l2", 0.1), ("tol", 0.1), ("solver", "sdca"), ("max_epochs", 3)):
        yield call(f"ChainCRF({name})", lambda **s: sequences.ChainCRF(**s).fit(X, y), **{name: value})
    yield call("sequences.chunks", sequences.chunks, labels=["B-A", "I-A", "O"], scheme="IOB2")
    yield call("sequences.chunk_scores", sequences.chunk_scores, y_true=[["B-A", "O"]], y_pred=[["O", "O"]])
    yield call("sequences.token_accuracy", sequences.token_accuracy, y_true=[["B-A", "O"]], y_pred=[["O", "O"]])


def other_calls() -> Iterator[Call]:
    target = vi.Target(standard, 2, smoothness=1.0, strong_convexity=1.0)
    yield call("variational.fit", vi.fit, target=target, family="diagonal", accuracy=0.5, max_steps=50, rng=0)
    yield call("variational.logistic_regression", vi.logistic_regression, X=A, y=(Y > 0).astype(int), prior_scale=1.0)
    yield call("plotting.figure", plotting.figure, rows=1, columns=2, width=4.0, height=3.0)
    yield call("plotting.pixels", pixels, values=C33)
    yield call(
        "plotting.coefficient_path", coefficient_path, penalties=[2.0, 1.0], coefficients=[[0.0, 1.0], [1.0, 2.0]]
    )
    yield call("Interval", certificates.Interval, lower=0.0, upper=1.0, estimate=0.5)
    yield call("Certificate", certificates.Certificate, quantity="f(x) - f*", bound=0.1, theorem="a theorem", slack=0.0)
    yield call("Assumption", certificates.Assumption, text="it holds", status="checked")


PACKAGES: dict[str, Callable[[], Iterator[Call]]] = {
    "optim": optimisation,
    "geometry": geometries,
    "layers": layer_calls,
    "families": family_calls,
    "sampling": sampling_calls,
    "graphical": graphical_calls,
    "particles": particle_calls,
    "glm": regression_calls,
    "sequences": sequence_calls,
    "others": other_calls,
    **MODELS,
}
