import itertools

import cvxpy
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from cumulant.certificates import Interval
from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.graphical import FactorGraph, Ising, complete, grid, spin_glass
from cumulant.graphical.bounds.conditioning import conditioned, cutset
from cumulant.graphical.bounds.feasible import possible_state
from cumulant.graphical.bounds.log_partition import bound_log_partition, bound_marginals
from cumulant.graphical.bounds.partition import Limits, fits, partitions, with_fields
from cumulant.graphical.bounds.reweighted import Combination, Tables, tighten
from cumulant.graphical.bounds.spanning import cover, spanning_subgraph
from cumulant.graphical.exact.enumeration import joint_scores
from cumulant.graphical.messages.structured_blocks import inside
from cumulant.graphical.structure import Structure
from tests.graphical.models import distribution, joint, random_model

SHAPES = {
    "grid": ([2] * 9, grid(3, 3).tolist()),
    "complete": ([2] * 5, complete(5).tolist()),
    "cycle": ([3, 2, 4, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
    "triples": ([2, 3, 2, 2, 3, 2], [(0, 1, 2), (2, 3, 4), (4, 5, 0), (1, 3, 5), (0, 3)]),
}


def log_sum(scores):
    top = scores.max()
    return top + np.log(np.exp(scores - top).sum()) if top > -np.inf else -np.inf


def trees(structure, strength):
    return cover(structure, strength, np.ones(structure.n_factors, bool), 2**20, 0.0)


def halves(structure, rng):
    """Two random cuts in halves, and trees for what both cut."""
    copies = []
    for _ in range(2):
        labels = rng.integers(0, 2, structure.n_variables)
        kept = np.flatnonzero(inside(structure, labels))
        copies.append((kept, with_fields(structure, kept)))
    missing = np.ones(structure.n_factors, bool)
    for kept, _ in copies:
        missing[kept] = False
    return copies + cover(structure, np.ones(structure.n_factors), missing, 2**20, 0.0)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_combination_is_above_log_z_for_all_shares_and_weights(shape):
    """2,400 random models over four graphs, with random shares and weights, against enumeration."""
    sizes, scopes = SHAPES[shape]
    rng = np.random.default_rng(len(shape))
    wide = Structure(sizes, scopes)
    whole = with_fields(wide, np.arange(wide.n_factors))
    ways = [trees(wide, np.ones(wide.n_factors)), halves(wide, rng)]
    for trial in range(600):
        scale = rng.choice([0.2, 1.0, 4.0])
        theta = scale * rng.normal(size=int(whole.table_starts[-1]))
        if trial % 5 == 0:
            theta[rng.random(theta.size) < 0.1] = -np.inf
        tables = Tables(wide, theta, 0.7)
        truth = log_sum(joint_scores(whole, theta)) + 0.7
        combination = Combination(tables, [], ways[trial % 2], 2**20, n_jobs=1)
        x = rng.normal(size=combination.dim) * rng.choice([0.0, 0.3, 2.0])
        value, _, slack = combination.bound(x)
        assert value + slack >= truth
        assert slack < 1e-9


def test_shares_add_up_and_the_gradient_is_the_derivative():
    sizes, scopes = SHAPES["triples"]
    rng = np.random.default_rng(3)
    wide = Structure(sizes, scopes)
    tables = Tables(wide, rng.normal(size=int(wide.table_starts[-1]) + sum(sizes)), 0.0)
    combination = Combination(tables, [], halves(wide, rng), 2**20)
    x = rng.normal(size=combination.dim)
    total = np.zeros(tables.theta.size)
    for place, share in zip(combination.places, combination.shares(x), strict=True):
        total[place] += share
    assert_allclose(total, tables.theta, atol=1e-14)
    assert_allclose(combination.weights(x).sum(), 1.0, rtol=1e-14)
    gradient, step = combination.bound(x)[1], 1e-5
    for j in [*rng.choice(combination.dim, 12, replace=False).tolist(), combination.dim - 1]:
        e = np.zeros(combination.dim)
        e[j] = step
        slope = (combination.bound(x + e)[0] - combination.bound(x - e)[0]) / (2 * step)
        assert_allclose(gradient[j], slope, atol=1e-8)


def test_over_spanning_trees_the_best_shares_give_the_tree_reweighted_optimum():
    """A cycle of four spins and its four spanning trees, against the convex program over pseudo-marginals of
    Wainwright, Jaakkola and Willsky (2005): the expected score plus the mean entropy of the trees.
    """
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    wide = Structure([2] * 4, edges)
    theta = 1.5 * rng.normal(size=16 + 8)
    copies = [(kept, with_fields(wide, kept)) for kept in (np.delete(np.arange(4), k) for k in range(4))]
    combination = Combination(Tables(wide, theta, 0.0), [], copies, 2**20)
    shares = combination.dim - 4

    def objective(x):
        value, gradient, _ = combination.bound(np.concatenate([x, np.zeros(4)]))
        return value, gradient[:shares]

    ours = minimize(objective, np.zeros(shares), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9}).fun
    pair = [cvxpy.Variable((2, 2), nonneg=True) for _ in edges]
    single = [cvxpy.Variable(2, nonneg=True) for _ in range(4)]
    constraints = [cvxpy.sum(p) == 1 for p in single]
    score = sum(theta[16 + 2 * v : 18 + 2 * v] @ p for v, p in enumerate(single))
    for e, (i, j) in enumerate(edges):
        constraints += [cvxpy.sum(pair[e], axis=1) == single[i], cvxpy.sum(pair[e], axis=0) == single[j]]
        score += cvxpy.sum(cvxpy.multiply(theta[4 * e : 4 * e + 4].reshape(2, 2), pair[e]))
    for k in range(4):  # without edge k the cycle is a path, which begins where that edge ends
        score += 0.25 * cvxpy.sum(cvxpy.entr(single[edges[k][1]]))
        for e in ((k + 1) % 4, (k + 2) % 4, (k + 3) % 4):
            i = edges[e][0]
            score -= 0.25 * sum(cvxpy.sum(cvxpy.rel_entr(pair[e][:, b], single[i])) for b in range(2))
    problem = cvxpy.Problem(cvxpy.Maximize(score), constraints)
    problem.solve(solver=cvxpy.CLARABEL)
    assert_allclose(ours, problem.value, atol=1e-6)
    seen = []
    tighten(combination, lambda best, value, slack: not seen.append(value))
    whole = with_fields(wide, np.arange(4))
    assert log_sum(joint_scores(whole, theta)) <= min(seen) <= ours + 1e-6  # the weights are free as well


def test_clusters_joined_by_trees_are_trees_and_cover_every_factor():
    wide = Structure([2] * 12, complete(12).tolist())
    rng = np.random.default_rng(0)
    kept = spanning_subgraph(wide, rng.random(wide.n_factors), 0.0)
    assert kept.sum() == 11  # a spanning tree has n - 1 edges, and Kruskal's leaves no cycle
    for bits in (0.0, 4.0):
        copies = cover(wide, rng.random(wide.n_factors), np.ones(wide.n_factors, bool), 2**20, bits)
        assert np.array_equal(np.unique(np.concatenate([k for k, _ in copies])), np.arange(wide.n_factors))
        assert all(fits(part, 2**20) for _, part in copies)


def test_a_grid_is_cut_along_rows_or_columns_into_blocks_that_fit():
    model = spin_glass(grid(12, 12), couplings=0.5, fields=0.5, kind="signs", rng=0)
    structure, theta, _ = model.restricted()
    tables = Tables.of(structure, theta)
    limits = Limits(2**17)
    found = partitions(tables.structure, tables.theta, limits, 4)
    assert len(found) == 4
    for each in found:
        assert all(fits(block.part, 2**17) for block in each.blocks)
        assert each.n_blocks == 2
        labels = each.labels.reshape(12, 12)
        assert (labels == labels[:1]).all() or (labels == labels[:, :1]).all()
    assert len({each.labels.tobytes() for each in found}) == 4
    assert len({id(block.part) for each in found for block in each.blocks}) < 8  # equal strips share their plans
    less = partitions(tables.structure, tables.theta, Limits(2**17, entries=0.1 * found[0].entries), 4)
    assert less[0].entries <= 0.1 * found[0].entries
    assert less[0].n_blocks > 2


def test_copies_solved_block_by_block_are_the_copies_solved_as_one():
    """The same bound and derivative as without the cut into blocks, at equal shares and at others; and shares of a
    combination with fewer copies carry over.
    """
    model = spin_glass(grid(6, 6), couplings=0.5, fields=0.5, rng=1)
    structure, theta, _ = model.restricted()
    tables = Tables.of(structure, theta)
    wide = tables.structure
    cuts = partitions(wide, tables.theta, Limits(2**20, entries=1200.0), 4)
    assert [cut.n_blocks > 1 for cut in cuts] == [True] * 4
    missing = np.ones(wide.n_factors, bool)
    for cut in cuts:
        missing[cut.kept] = False
    others = cover(wide, np.ones(wide.n_factors), missing, 2**20, 0.0)
    blocks = Combination(tables, cuts, others, 2**20)
    whole = Combination(tables, [], [*((cut.kept, with_fields(wide, cut.kept)) for cut in cuts), *others], 2**20)
    x = np.random.default_rng(0).normal(size=blocks.dim)
    for point in (np.zeros(blocks.dim), x):
        ours, theirs = blocks.bound(point), whole.bound(point)
        assert_allclose(ours[0], theirs[0], rtol=1e-12)
        assert_allclose(ours[1], theirs[1], atol=1e-12)
    few = Combination(tables, cuts[:2], cover(wide, np.ones(wide.n_factors), ~missing, 2**20, 0.0), 2**20)
    y = 0.1 * np.random.default_rng(1).normal(size=few.dim)
    start = blocks.from_shares(few, y)
    total = np.zeros(tables.theta.size)
    for place, share in zip(blocks.places, blocks.shares(start), strict=True):
        total[place] += share
    assert_allclose(total, tables.theta, atol=1e-13)
    assert blocks.bound(start)[0] >= model.log_partition()


def test_a_possible_state_is_found_where_most_are_not():
    """Colourings of a grid by three colours, a ring that needs the second of two, and a model without any."""
    different = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = FactorGraph([3] * 36, [(tuple(edge), different) for edge in grid(6, 6).tolist()])
    structure, theta, _ = model.restricted()
    state, settled = possible_state(structure, theta, 0)
    assert settled
    assert all(state[i] != state[j] for i, j in grid(6, 6))
    ring = FactorGraph([2] * 3, [((i, (i + 1) % 3), different[:2, :2]) for i in range(3)])  # an odd ring has none
    structure, theta, _ = ring.restricted()
    assert possible_state(structure, theta, 0) == (None, True)


def test_the_lower_end_is_finite_where_a_possible_state_can_be_found():
    """Random clauses of three variables, each satisfied by a planted state, against enumeration."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        planted, clauses = rng.integers(0, 2, 14), []
        while len(clauses) < 56:
            scope, bad = rng.permutation(14)[:3], rng.integers(0, 2, 3)
            if (bad != planted[scope]).any():
                table = np.zeros((2, 2, 2))
                table[tuple(bad)] = -np.inf
                clauses.append((tuple(scope.tolist()), table))
        model = FactorGraph([2] * 14, clauses)
        interval = bound_log_partition(model, max_memory=2**9, exact=False, max_work=10)
        assert np.isfinite(interval.lower)
        assert model.log_partition(method="enumeration") in interval


def test_sums_over_a_cutset_are_exact_and_parts_of_them_are_below():
    model = spin_glass(complete(9), couplings=0.5, fields=0.5, rng=2)
    structure, theta, _ = model.restricted()
    plan = cutset(structure, 2**11, 1e9)
    assert plan is not None
    assert len(plan[0]) >= 2
    truth = model.log_partition(method="enumeration")
    sums = list(conditioned(structure, theta, *plan, 2**11, lambda: None))
    assert len(sums) == 2 ** len(plan[0])
    assert all(a < b for (a, _), (b, _) in itertools.pairwise(sums))
    value, slack = sums[-1]
    assert abs(value - truth) <= slack < 1e-11
    assert sum(sums[2]) < truth
    assert cutset(structure, 2**11, 10.0) is None


def holds(seeds, **settings):
    widths = []
    for seed in seeds:
        model = random_model(seed)
        truth = distribution(joint(model.cardinalities.tolist(), model.factors))[0]
        interval = bound_log_partition(model, max_memory=8, time_limit=None, exact=seed % 2 == 0, **settings)
        assert interval.lower <= truth <= interval.upper, seed
        if np.isfinite(truth):
            widths.append(interval.width)
    return widths


def test_no_interval_misses_the_truth():
    """Random factor graphs: up to four states, up to four variables a factor, impossible states, evidence-free."""
    widths = holds(range(60), max_work=40)
    assert np.median(widths) < 1.0
    assert np.isfinite(widths).all()


@pytest.mark.slow
def test_no_interval_misses_the_truth_on_2000_models():
    holds(range(1000, 3000), max_work=40)


def test_more_work_never_widens_the_interval_and_no_work_is_still_valid():
    model = spin_glass(grid(6, 6), couplings=0.5, fields=0.5, rng=0)
    truth = model.log_partition()
    found = [bound_log_partition(model, max_memory=2**11, max_work=w, exact=False) for w in (0, 1, 3, 12)]
    for narrow, wide in itertools.pairwise(found[::-1]):
        assert wide.lower <= narrow.lower <= truth <= narrow.upper <= wide.upper
    assert found[-1].width < 0.2 * found[0].width
    assert "Hölder" in str(found[-1].certificate)


def test_time_used_up_before_the_work_begins_does_not_cost_the_exact_answer(monkeypatch):
    """Compiling can take longer than the limit; elimination predicted to take microseconds is done all the same."""
    model = spin_glass(grid(3, 3), couplings=0.5, fields=0.5, rng=0)
    clock = itertools.count(step=100.0)
    monkeypatch.setattr("cumulant.graphical.bounds.ledger.time.monotonic", lambda: next(clock))
    interval = bound_log_partition(model)
    assert interval.width < 1e-9
    assert model.log_partition() in interval
    assert bound_log_partition(model, max_work=0).width > 1.0


def test_a_run_ended_by_the_clock_can_be_replayed_and_verified():
    model = spin_glass(grid(8, 8), couplings=0.5, fields=0.5, rng=0)
    settings = {"max_memory": 2**13, "time_limit": 1.0, "exact": False}
    interval = bound_log_partition(model, **settings)
    assert interval.certificate.kind == "deterministic"
    again = bound_log_partition(model, max_work=int(interval.certificate.details["work"]), n_jobs=1, **settings)
    assert (again.lower, again.upper) == (interval.lower, interval.upper)
    assert model.verify(interval).bound == Interval(interval.lower, interval.upper, interval.estimate)
    other = Ising(model.edges, model.couplings + 0.3, model.fields)
    with pytest.raises(CertificateError):
        other.verify(interval)


def test_mini_buckets_join_in_where_factors_are_wide_and_are_replayed():
    """Factors of three variables: they are what the upper end rests on, and each prefix of the work is repeated."""
    rng = np.random.default_rng(0)
    scopes = [tuple(rng.permutation(26)[:3].tolist()) for _ in range(44)]
    model = FactorGraph([2] * 26, [(scope, rng.normal(size=(2, 2, 2))) for scope in scopes])
    truth = model.log_partition()
    settings = {"max_memory": 2**16, "exact": False}
    found = [bound_log_partition(model, max_work=w, **settings) for w in (2, 5, 25)]
    for narrow, wide in itertools.pairwise(found[::-1]):
        assert wide.lower <= narrow.lower <= truth <= narrow.upper <= wide.upper
    assert "by Hölder's inequality in mini-buckets" in str(found[-1].certificate)
    assert found[-1].upper - truth < 0.5 * (found[0].upper - truth)
    ended = bound_log_partition(model, time_limit=0.3, **settings)
    again = bound_log_partition(model, max_work=int(ended.certificate.details["work"]), n_jobs=1, **settings)
    assert (again.lower, again.upper) == (ended.lower, ended.upper)


@pytest.mark.parametrize(("seed", "published"), [(0, 48.451494), (1, 49.413736)])
def test_the_complete_spin_glass_of_26_spins_is_exact_in_16_mebibytes(seed, published):
    rng = np.random.default_rng(seed)
    fields, couplings = rng.uniform(-1, 1, 26), rng.choice([-0.5, 0.5], 325)
    interval = bound_log_partition(Ising(complete(26), couplings, fields), max_memory=2**24, time_limit=None)
    assert interval.width < 1e-9
    assert_allclose(interval.estimate, published, atol=5e-7)


def test_impossible_models_and_evidence():
    never = FactorGraph([2, 2], [((0, 1), np.full((2, 2), -np.inf))])
    assert bound_log_partition(never).upper == -np.inf
    chain = FactorGraph([2, 2, 2], [((0, 1), [[0.0, 1.0], [2.0, -np.inf]]), ((1, 2), [[0.5, 0.0], [0.0, 1.0]])])
    given = chain.given({1: 1})
    assert given.log_partition() in bound_log_partition(given)
    assert given.log_partition() in bound_log_partition(given, max_memory=8, max_work=5)
    constant = FactorGraph([1], [((), 1.5)])
    assert_allclose(bound_log_partition(constant).estimate, 1.5)
    with pytest.raises(DomainError, match="no distribution"):
        bound_marginals(never, [0])


def test_marginals_lie_within_their_bounds():
    model = spin_glass(grid(5, 5), couplings=0.6, fields=0.5, rng=4)
    truth = model.marginals()
    for v, (low, high) in zip([0, 12], bound_marginals(model, [0, 12], max_memory=2**10, max_work=6), strict=True):
        assert (low <= truth[v]).all()
        assert (truth[v] <= high).all()
        assert (high - low).max() < 0.6
    certain = bound_marginals(model.given({0: 1}), [0])[0]
    assert_allclose(certain, [[0.0, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="from 0 to 24"):
        bound_marginals(model, [25])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_limit": -1.0}, "time_limit must be"),
        ({"max_memory": 0}, "max_memory must be"),
        ({"max_work": 1.5}, "max_work must be"),
        ({"delta": 1.0}, "delta must be"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        bound_log_partition(spin_glass(grid(2, 2), rng=0), **settings)


def test_too_many_states_are_refused_before_any_work():
    with pytest.raises(TooWide, match="1000000000 states"):
        bound_log_partition(FactorGraph([10**9], []))
