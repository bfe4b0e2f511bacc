import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import CertificateError, TooWide
from cumulant.graphical import FactorGraph, Ising, grid, spin_glass
from cumulant.graphical.bounds.covering_tree import covering
from cumulant.graphical.bounds.mini_bucket import mini_bucket_bound
from cumulant.graphical.bounds.reweighted import Tables
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.enumeration import joint_scores
from cumulant.graphical.structure import Structure
from tests.graphical.models import random_model


def log_sum(scores):
    top = scores.max()
    return top + np.log(np.exp(scores - top).sum()) if top > -np.inf else -np.inf


def tiny(seed):
    """Five variables of two or three states, six factors of up to four of them, some states impossible."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, 5)
    scopes = [rng.permutation(5)[: rng.integers(1, 5)].tolist() for _ in range(6)]
    structure = Structure(sizes, scopes)
    theta = rng.choice([0.3, 1.0, 4.0]) * rng.normal(size=int(structure.table_starts[-1]))
    if seed % 4 == 0:
        theta[rng.random(theta.size) < 0.1] = -np.inf
    return structure, theta, rng


def mini_buckets(structure, theta, rng, sign, most):
    tables = Tables.of(structure, theta)
    return covering(tables, rng.permutation(structure.n_variables), lambda scope: len(scope) <= most, sign)


def check(seeds):
    """Random orders, limits from 1 to 5, shifts and weights; the truth by enumeration. How many were loose, and by how
    much.
    """
    loose = {1: [], -1: []}
    for seed in seeds:
        structure, theta, rng = tiny(seed)
        truth = log_sum(joint_scores(structure, theta))
        for sign in (1, -1):
            made = mini_buckets(structure, theta, rng, sign, int(rng.integers(1, 6)))
            x = rng.normal(size=made.dim) * rng.choice([0.0, 0.3, 3.0])
            value, gradient, slack = made.bound(x)
            assert value + slack >= sign * truth, (seed, sign)
            # Weights are exponentials of x: large ones of both signs cancel, and the allowance grows with them.
            assert slack < 1e-12 * (100 + np.exp(np.abs(x).max(initial=0.0)))
            assert np.isfinite(gradient).all()
            if made.exact and np.isfinite(truth):
                assert abs(value - sign * truth) <= slack
            elif np.isfinite(truth):
                loose[sign].append(value - sign * truth)
    return loose


def test_no_bound_is_on_the_wrong_side():
    """2,000 bounds of 1,000 models. Those that split a bucket are not tight by accident, and many are finite."""
    loose = check(range(1000))
    for sign in (1, -1):
        assert len(loose[sign]) > 500
        assert np.median(loose[sign]) > 1e-3
        assert np.isfinite(loose[sign]).mean() > 0.8


@pytest.mark.slow
def test_no_bound_is_on_the_wrong_side_of_20000_models():
    check(range(10_000, 30_000))


def test_odd_models_with_single_states_constants_and_doubled_factors():
    for seed in range(150):
        model = random_model(seed)
        truth = model.log_partition(method="enumeration")
        below = mini_bucket_bound(model, i_bound=1 + seed % 4, sense="lower", max_steps=3)
        above = mini_bucket_bound(model, i_bound=1 + seed % 4, max_steps=3)
        assert below.bound <= truth <= above.bound, seed
        if above.exact and np.isfinite(truth):
            assert above.bound - below.bound < 1e-11
        assert (below.certificate is None) == (below.bound == -np.inf)


def test_two_mini_buckets_are_hoelder_by_hand():
    """Two tables about variable 0, kept apart: ``sum_r w_r log sum_0 exp(f_r / w_r)``, then sums over 1 and 2."""
    rng = np.random.default_rng(1)
    first, second, shift = rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), rng.normal(size=(2, 2))
    tables = Tables.of(Structure([2, 3, 3], [(0, 1), (0, 2)]), np.concatenate([first.ravel(), second.ravel()]))
    for sign, logs in ((1, np.array([0.3, -0.4])), (-1, np.array([0.0, 0.7]))):
        made = covering(tables, np.arange(3), lambda scope: len(scope) <= 2, sign)
        weights = np.exp(logs) / np.exp(logs).sum() if sign > 0 else np.array([1 + np.exp(-1.3), -np.exp(-1.3)])
        moved = shift - shift.mean(0)
        truth = 0.0
        for table, w, d in zip((first, second), weights, moved, strict=True):
            message = w * np.log(np.exp((table + d[:, None]) / w).sum(0))
            truth += np.log(np.exp(message).sum())
        value, _, _ = made.bound(np.concatenate([shift.ravel(), logs]))
        assert_allclose(sign * value, truth, rtol=1e-14)


def test_the_gradient_is_the_derivative():
    structure, theta, rng = tiny(1)
    for sign in (1, -1):
        made = mini_buckets(structure, theta, rng, sign, 3)
        assert made.dim > 10
        x = 0.5 * rng.normal(size=made.dim)
        gradient = made.bound(x)[1]
        for j in range(made.dim):
            e = np.zeros(made.dim)
            e[j] = 1e-5
            slope = (made.bound(x + e)[0] - made.bound(x - e)[0]) / 2e-5
            assert_allclose(gradient[j], slope, atol=1e-8)


def test_from_above_the_bound_is_convex_in_shifts_and_weights():
    """At the middle of two points; the weights themselves are averaged, not their logarithms."""
    structure, theta, rng = tiny(3)
    made = mini_buckets(structure, theta, rng, 1, 2)
    assert made.dim > 10
    for _ in range(50):
        x, y = rng.normal(size=(2, made.dim))
        middle = 0.5 * (x + y)
        for split in made.splits:
            middle[split.weights] = np.log(0.5 * (made.weights(x) + made.weights(y))[split.nodes])
        assert made.bound(middle)[0] <= 0.5 * (made.bound(x)[0] + made.bound(y)[0]) + 1e-12


@pytest.fixture(scope="module")
def glass():
    model = spin_glass(grid(7, 7), couplings=0.5, fields=0.5, rng=0)
    return model, model.log_partition()


def test_wider_mini_buckets_and_more_steps_help_here_and_the_width_is_exact(glass):
    model, truth = glass
    order = Elimination.of(*model.restricted()[:2], order="frontier").order
    width = int(order.log2_largest)
    gaps = []
    for i_bound in (2, 4, width):
        above = mini_bucket_bound(model, i_bound=i_bound, order=order.order, max_steps=25)
        below = mini_bucket_bound(model, i_bound=i_bound, order=order.order, max_steps=25, sense="lower")
        assert below.bound <= truth <= above.bound
        assert (np.diff(above.trace) <= 0).all()  # of the best so far
        assert above.exact == below.exact == (i_bound == width)
        gaps.append((above.bound - truth, truth - below.bound, above.trace[0] - truth, truth - below.trace[0]))
    assert gaps[0][0] < 0.7 * gaps[0][2]
    assert gaps[0][1] < 0.5 * gaps[0][3]
    assert gaps[1][0] < gaps[0][0]
    assert gaps[1][1] < gaps[0][1]
    assert max(gaps[2]) < 1e-10


def test_memory_and_time_are_kept_and_the_certificate_is_recomputed(glass):
    model, truth = glass
    for sense in ("upper", "lower"):
        found = mini_bucket_bound(model, max_memory=2**16, sense=sense, max_steps=20)
        assert not found.exact
        assert truth in found.interval
        assert found.certificate is not None
        assert model.verify(found).bound == found.certificate.bound
        other = Ising(model.edges, model.couplings, model.fields + (2.0 if sense == "upper" else 0.0))
        other = other if sense == "upper" else Ising(model.edges, model.couplings * 0.5, model.fields * 0.0)
        with pytest.raises(CertificateError):
            other.verify(found)
        once = mini_bucket_bound(model, max_memory=2**16, sense=sense, time_limit=0.0)
        assert len(once.trace) == 1
    with pytest.raises(TooWide, match="lower i_bound"):
        mini_bucket_bound(model, i_bound=7, max_memory=2**12)


def test_evidence_and_impossible_models():
    chain = FactorGraph([2, 2, 2], [((0, 1), [[0.0, 1.0], [2.0, -np.inf]]), ((1, 2), [[0.5, 0.0], [0.0, 1.0]])])
    given = chain.given({1: 1})
    assert_allclose(mini_bucket_bound(given).bound, given.log_partition(), rtol=1e-14)
    never = FactorGraph([2, 2], [((0, 1), np.full((2, 2), -np.inf))])
    assert mini_bucket_bound(never).bound == -np.inf
    below = mini_bucket_bound(never, sense="lower")
    assert (below.bound, below.certificate) == (-np.inf, None)
    nothing = FactorGraph([1], [((), 1.5)])
    assert_allclose(mini_bucket_bound(nothing).bound, 1.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"i_bound": 0}, "i_bound must be"),
        ({"max_steps": 1.5}, "max_steps must be"),
        ({"max_memory": 0}, "max_memory must be"),
        ({"sense": "both"}, "sense must be one of 'upper', 'lower'"),
        ({"time_limit": -1.0}, "time_limit must be"),
        ({"order": [0, 0, 1, 2]}, "order must name each"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        mini_bucket_bound(spin_glass(grid(2, 2), rng=0), **settings)
