"""Calls that are right, of the packages of particles, causes, networks and admixtures and of spin glasses, plans and
barriers: see `valid_calls`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant import (
    admixture,
    causal,
    families,
    geometry,
    graphical,
    layers,
    optim,
    particles,
    relational,
    sampling,
    sequences,
)
from cumulant.optim import interior_point


class Call(NamedTuple):
    """A function under the name that a user knows, and arguments that it takes."""

    name: str
    function: Callable
    arguments: dict[str, Any]


def call(name: str, function: Callable, /, **arguments: Any) -> Call:
    return Call(name, function, arguments)


_RNG = np.random.default_rng(0)
A, Y = _RNG.normal(size=(12, 3)), _RNG.normal(size=12)
SQUARE, BLOCKS = [(0, 1), (1, 2), (2, 3), (3, 0)], [[0, 1], [2, 3]]
THIRDS, SPINS = [0.2, 0.3, 0.5], [[1, 1], [-1, -1], [1, 1]]
TABLE = [[0.10, 0.15, 0.05], [0.20, 0.05, 0.05], [0.05, 0.05, 0.30]]


def standard(x):
    return -jnp.sum(x**2) / 2


def particle_calls() -> Iterator[Call]:
    model, small = graphical.Ising(SQUARE, 0.3, 0.1), {"n_particles": 20, "rng": 0}
    normal = families.MultivariateNormal(2)
    begin = normal, normal.natural(mean=[0.0, 0.0], covariance=np.eye(2))
    islands = {"n_islands": 2, "delta": 0.1, "chain_length": 2, "resampling": "systematic"}
    yield call("particles.anneal", particles.anneal, model=model, temperatures=5, weights="rb", **islands, **small)
    yield call("particles.anneal(share)", particles.anneal, model=model, share=0.9, pilot=True, **small)
    yield call(
        "particles.anneal(Target)",
        particles.anneal,
        model=sampling.Target(standard, 2),
        temperatures=[0.0, 0.5, 1.0],
        sampler=sampling.RandomWalk(0.5),
        start=begin,
        **small,
    )
    yield call("particles.hot_coupling", particles.hot_coupling, model=model, order=[0], steps_per_group=3, **small)
    yield call(
        "particles.variational_smc",
        particles.variational_smc,
        model=model,
        n_steps=5,
        step_size=0.7,
        finish=2,
        safeguard="exact",
        **small,
    )
    yield call(
        "particles.conditional_mean_field",
        particles.conditional_mean_field,
        model=model,
        temperatures=3,
        partition="halve",
        start="mean_field",
        **small,
    )
    yield call("particles.overlap_distribution", particles.overlap_distribution, particles=SPINS, weights=THIRDS)
    yield call("particles.has_both_modes", particles.has_both_modes, particles=SPINS, weights=THIRDS, least=0.05)
    yield call("particles.free_energy", particles.free_energy, log_z=3.0, temperature=1.0, n_spins=4)
    for function in (particles.halve, particles.peel, particles.split_largest):
        yield call(f"particles.{function.__name__}", function, blocks=BLOCKS, edges=SQUARE)
    yield call("particles.check_refinement", particles.check_refinement, old=BLOCKS, new=[[0], [1], [2, 3]])
    yield call(
        "particles.safeguarded_step",
        particles.safeguarded_step,
        weights=THIRDS,
        projections=[1.0, 0.0, -1.0],
        cap=1.0,
        safeguard=particles.Safeguard(),
    )
    yield call("particles.weight_model", particles.weight_model, weights=THIRDS, projections=THIRDS, curvatures=THIRDS)
    result = particles.anneal(model, 20, 3, rng=0)
    yield call("ParticleResult.interval", result.interval, level=0.9)
    yield call("particles.conditional_means", particles.conditional_means, result=result, sweeps=2, rng=0)
    yield call("particles.run", particles.run, bridge=result.bridge, n_islands=2, delta=0.1, ancestry=True, **small)


def causal_calls() -> Iterator[Call]:
    model = causal.CategoricalSCM.from_probabilities([0.5, 0.5], [[0.5, 0.5], [1 / 3, 2 / 3]])
    changed = model.intervene("cause", [0.8, 0.2])
    yield call("SCM.from_joint", causal.CategoricalSCM.from_joint, table=TABLE)
    yield call("SCM.from_logits", causal.CategoricalSCM.from_logits, cause=[0.5, 0.1], effect=[[0.5, 0.5], [1.0, 2.0]])
    yield call("SCM.intervene", model.intervene, target="single", value=[0.5, 0.5], x0=1)
    yield call("SCM.squared_distance", model.squared_distance, other=changed, space="logit")
    pair = {"reference": model, "transfer": changed}
    yield call(
        "causal.adapt_categorical",
        causal.adapt_categorical,
        T=20,
        step_sizes=[0.1, 0.3],
        models=("causal",),
        times=[0, 5],
        rng=0,
        **pair,
    )
    yield call("causal.adaptation_bound", causal.adaptation_bound, T=100, step_size=0.1, model="joint", **pair)
    yield call("causal.direction_log_odds", causal.direction_log_odds, P=TABLE, prior=(1.0, 2.0))
    yield call("causal.bayes_error", causal.bayes_error, K=3, n_mc=100, prior="dense", rng=0)
    yield call("causal.advantage_gap", causal.advantage_gap, reference=model, effect_logits=[0.1, 0.2])
    yield call("causal.row_log_partitions", causal.row_log_partitions, model=model)
    yield call("causal.log_dirichlet", causal.log_dirichlet, concentration=[1.0, 2.0], shape=3, rng=0)
    yield call("causal.expected_squared_radius", causal.expected_squared_radius, K=3, prior="dense", method="corrected")
    many = causal.sample_reference(3, 6, rng=0)
    found = causal.adapt_categorical(many, many.intervene("cause", rng=1), 20, rng=0)
    yield call("causal.tune", causal.tune, trajectories=found, budget=10, diverged="mean")
    yield call("causal.pool", causal.pool, parts=[found, found], groups=2)
    first = causal.sample_normal_reference(2, 3, rng=0)
    yield call(
        "causal.adapt_normal",
        causal.adapt_normal,
        reference=first,
        transfer=first.intervene("cause", rng=1),
        T=20,
        step_sizes=[0.01],
        prox=True,
        models=("causal",),
        rng=0,
    )
    yield call("causal.Bins.learn", causal.Bins.learn, values=[1.0, 2.0, 3.0, 4.0], n_bins=2, strategy="quantile")


def relational_calls() -> Iterator[Call]:
    model = relational.SmokersModel()
    network = model.sample(5, rng=0).without_latents()
    answers, scores = [0, 1, 1, 0, 1], [0.1, 0.8, 0.6, 0.3, 0.4]
    yield call("relational.SmokersModel", relational.SmokersModel, theta=[0.5] * 14, influence="independent")
    yield call("SmokersModel.posterior", model.posterior, network=network, method="loopy")
    yield call("SmokersModel.log_likelihood", model.log_likelihood, network=network, method="exact")
    yield call("SmokersModel.bound_log_likelihood", model.bound_log_likelihood, network=network, time_limit=1.0)
    yield call("Network.with_tie", network.with_tie, x=1, y=2, value=True)
    yield call("relational.loo_scores", relational.loo_scores, model=model, net=network, people=[0], pairs=[(0, 1)])
    yield call("relational.predict_tie", relational.predict_tie, model=model, net=network, x=1, y=2)
    yield call("relational.fit_em", relational.fit_em, nets=[network], e_step="exact", max_iter=2, alpha=4.0, rng=0)
    fitted = relational.MarkovLogic(l2=0.1).fit([network])
    yield call("MarkovLogic.predict_tie", fitted.predict_tie, net=network, pairs=[(0, 1)])
    yield call("MarkovLogic.verify", fitted.verify, nets=[network])
    yield call("relational.auc", relational.auc, labels=answers, scores=scores, level=0.9)
    yield call(
        "relational.auc_difference",
        relational.auc_difference,
        labels=answers,
        first=scores,
        second=scores[::-1],
        level=0.9,
        draws=20,
    )
    yield call("relational.mean_interval", relational.mean_interval, values=scores, level=0.9)
    program = relational.smokers_program([0.5] * 14).ground(["a", "b"])
    atom = next(iter(program.marginals()))
    yield call("GroundProgram.probability", program.probability, query=atom, evidence={})


def admixture_calls() -> Iterator[Call]:
    counts = _RNG.integers(0, 4, (6, 5))
    counts[:, 0] += 1
    corpus, genotypes = admixture.Corpus.from_counts(counts), _RNG.integers(0, 2, (5, 4, 2))
    model = admixture.AdmixtureModel(admixture.Corpus.from_counts(counts[:2, :3]), 2)
    yield call("Corpus.from_counts", admixture.Corpus.from_counts, counts=counts)
    yield call("Corpus.from_genotypes", admixture.Corpus.from_genotypes, genotypes=genotypes, n_alleles=[2] * 4)
    yield call("admixture.AdmixtureModel", admixture.AdmixtureModel, corpus=corpus, n_components=2, allele_prior=0.1)
    yield call("admixture.mean_field", admixture.mean_field, model=model, n_starts=2, max_sweeps=20, tol=1e-3, rng=0)
    yield call("admixture.annealed_evidence", admixture.annealed_evidence, model=model, n_particles=5, n_temperatures=4)
    result = admixture.collapsed_gibbs(corpus, 2, n_sweeps=4, burn_in=2, thin=2, n_chains=2, rng=0)
    yield call("CollapsedResult.memberships", result.memberships, chain=0)
    yield call(
        "admixture.held_out_likelihood",
        admixture.held_out_likelihood,
        corpus=corpus,
        frequencies=np.full((2, 5), 0.2),
        document_prior=0.1,
        n_particles=3,
    )
    fitted = admixture.LDA(2, n_sweeps=3, burn_in=2, thin=1, random_state=0).fit(counts)
    yield call("LDA.top_words", fitted.top_words, n=2, names=list("abcde"))
    yield call("admixture.mean_distance", admixture.mean_distance, draws=[[[0.3, 0.7], [0.5, 0.5]]], weights=[1.0])


def spin_calls() -> Iterator[Call]:
    model, still = (graphical.Ising(graphical.grid(2, 3), 0.3, field) for field in (0.1, 0.0))
    path = graphical.Ising([(0, 1), (1, 2)], 0.8, 0.1)
    net = graphical.BayesNet({"a": [0.4, 0.6], "b": [[0.3, 0.7], [0.8, 0.2]]}, {"b": ["a"]})
    box, R = graphical.FastMixing(0.4, "box"), [[0.0, 0.1], [0.1, 0.0]]
    yield call("graphical.prune", graphical.prune, net=net, query="b", evidence={"a": 1})
    yield call("graphical.spin_glass_log_partition", graphical.spin_glass_log_partition, model=still)
    yield call("DensityOfStates.count", graphical.density_of_states(still).count, energy=1.0)
    yield call("graphical.transfer_matrix", graphical.transfer_matrix, model=model, rows=2, columns=3)
    yield call("graphical.subgraphs_mixing", graphical.subgraphs_mixing, edges=5, least=0.3)
    yield call("graphical.SubgraphsWorld", graphical.SubgraphsWorld, edges=SQUARE, beta=[0.3] * 4, field=[0.5] * 4)
    yield call("graphical.gibbs_mixing", graphical.gibbs_mixing, R=R, norm="spectral", n_sites=2)
    yield call("graphical.project_kl", graphical.project_kl, model=path, mixing=box, divergence="kl", tol=1e-3)
    yield call(
        "graphical.project_reverse_kl",
        graphical.project_reverse_kl,
        model=path,
        mixing=box,
        plan=graphical.SamplingPlan(3, 20, 5),
        step_size=0.2,
        rng=0,
    )
    yield call(
        "graphical.project_couplings", graphical.project_couplings, edges=SQUARE, couplings=[0.3] * 4, radius=0.9
    )
    yield call("graphical.lipschitz", graphical.lipschitz, R=2.0, l2=0.1, kind="tight")
    known = {"eps": 1.0, "delta": 0.1, "R": 2.0, "distance": 1.0, "mixing": None}
    yield call("graphical.plan_convex", graphical.plan_convex, L=4.0, **known)
    yield call("graphical.plan_strongly_convex", graphical.plan_strongly_convex, L=5.0, l2=1.0, **known)
    problem = graphical.learning_problem([0.1, 0.2], path.edges, mixing=box, l2=1.0, fields=False)
    yield call("graphical.largest_curvature", graphical.largest_curvature, problem=problem, starts=1, steps=2)
    yield call("graphical.structured_mean_field", graphical.structured_mean_field, model=model, n_starts=1, tol=1e-3)
    yield call("graphical.mini_bucket_bound", graphical.mini_bucket_bound, model=model, i_bound=2, sense="upper")
    yield call("graphical.double_loop", graphical.double_loop, model=model, max_loops=3, tol=1e-3)
    yield call("graphical.max_product", graphical.max_product, model=model, max_sweeps=5, damping=0.1)
    yield call("graphical.normaliser", graphical.normaliser, model=model, time_limit=1.0)


def barrier_calls() -> Iterator[Call]:
    squares = optim.LeastSquares(A, Y)
    under = interior_point.ConstrainedProblem(squares, interior_point.Bounds(0.0))
    yield call("interior_point.certify_constrained", interior_point.certify_constrained, problem=under, x=THIRDS)
    yield call("interior_point.check_licq", interior_point.check_licq, problem=under, x=THIRDS, tol=1e-6)
    yield call("interior_point.log_barrier", interior_point.log_barrier, problem=under, mu=0.1)
    yield call("interior_point.on_simplex", interior_point.on_simplex, loss=squares, total=1.0)
    yield call("interior_point.l1_regularize", interior_point.l1_regularize, loss=squares, weight=0.1)
    yield call("interior_point.inertia", interior_point.inertia, matrix=np.eye(2))
    pair = {"dx": [1.0, 0.0], "dy": [1.0, 0.1]}
    yield call("interior_point.damped_bfgs", interior_point.damped_bfgs, B=np.eye(2), gamma=0.75, **pair)
    points = [[0.1, 0.2, 0.3], [1.0, 1.0, 1.0]]
    yield call(
        "optim.relative_constants", optim.relative_constants, problem=squares, entropy=geometry.Shannon(), points=points
    )
    yield call("optim.penalised_path", optim.penalised_path, smooth=squares, penalty=optim.L1, lams=[1.0, 0.5])
    cost = [[0.0, 1.0], [1.0, 0.0]]
    yield call("layers.sinkhorn_unrolled", layers.sinkhorn_unrolled, cost=cost, a=[0.5, 0.5], b=[0.3, 0.7], epsilon=0.1)
    yield call("layers.chain_cost", layers.chain_cost, dims=[2, 3, 4], order="optimal")
    yield call("layers.gaussian_barron_constant", layers.gaussian_barron_constant, dimension=2, width=1.0)
    data = sequences.SequenceData(_RNG.integers(0, 3, (5, 1)), [0, 2, 5], [0, 1, 1, 0, 1])
    chain = sequences.ChainProblem(data, 2, l2=0.1)
    yield call("sequences.ChainProblem", sequences.ChainProblem, data=data, n_labels=2, l2=0.1, l1=0.0)
    yield call("sequences.exact_radii", sequences.exact_radii, problem=chain, max_labellings=100)
    nodes, pairs, _ = sequences.sum_product(np.zeros((3, 2)), np.zeros((2, 2)))
    yield call("sequences.tree_kl", sequences.tree_kl, mu=(nodes, pairs), nu=(nodes, pairs))


MODELS: dict[str, Callable[[], Iterator[Call]]] = {
    "particles": particle_calls,
    "causal": causal_calls,
    "relational": relational_calls,
    "admixture": admixture_calls,
    "spins": spin_calls,
    "barriers": barrier_calls,
}
