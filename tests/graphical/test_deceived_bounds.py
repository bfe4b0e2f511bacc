"""Models on which bounds were once false: strong couplings, large constants, tiny probabilities, cold lattices.

The truth is a closed form or a sum over all states, in logarithms and with exact summation.
"""

import dataclasses
import itertools
import math
import time

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Interval
from cumulant.errors import CertificateError, DomainError
from cumulant.graphical import (
    FactorGraph,
    Ising,
    bound_log_partition,
    bound_marginals,
    complete,
    grid,
    kac_ward,
    mean_field,
    mini_bucket_bound,
    spin_glass,
    structured_mean_field,
    torus,
    torus_log_partition,
    tree_reweighted,
)
from cumulant.graphical.bounds.reweighted import Combination, Tables
from cumulant.graphical.messages.simple_bounds import simple_bounds
from cumulant.graphical.structure import Structure


def log_sum(logs):
    """``log sum exp``, the sum without rounding."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(a - top) for a in logs))


def antiferromagnet(n, strength):
    """``log Z`` of `n` spins, all pairs coupled by ``-strength``: by the number of spins that point up."""
    choose = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)]
    return log_sum([choose[k] - strength * ((n - 2 * k) ** 2 - n) / 2 for k in range(n + 1)])


def switch(n, strength, field):
    """Variable 0 is 0 with weight ``exp(field)``; where it is 1, the others are an antiferromagnet."""
    factors: list = [((0,), [field, 0.0])]
    for pair in itertools.combinations(range(1, n), 2):
        table = np.zeros((2, 2, 2))
        table[1] = strength * np.array([[-1, 1], [1, -1]])
        factors.append(((0, *pair), table))
    return FactorGraph([2] * n, factors)


@pytest.mark.parametrize(("n", "strength"), [(10, 500.0), (8, 1000.0), (9, 41.0)])
def test_strong_antiferromagnets_have_a_finite_upper_end(n, strength):
    model, truth = Ising(complete(n), -strength), antiferromagnet(n, strength)
    interval = bound_log_partition(model, exact=False, max_memory=4096, max_work=30)
    assert interval.lower <= truth <= interval.upper < 2.0 * truth
    model.verify(interval)


def test_a_hard_core_model_with_large_fields():
    """Of nine places around a ring, with chords, no two neighbours are taken."""
    edges = [(i, (i + 1) % 9) for i in range(9)] + [(i, (i + 4) % 9) for i in range(9)]
    fields = np.linspace(10.0, 41.0, 9)
    forbidden = np.array([[0.0, 0.0], [0.0, -np.inf]])
    model = FactorGraph([2] * 9, [*((e, forbidden) for e in edges), *(((v,), [0.0, fields[v]]) for v in range(9))])
    states = itertools.product((0, 1), repeat=9)
    allowed = [math.fsum(fields[np.array(x) == 1]) for x in states if not any(x[i] and x[j] for i, j in edges)]
    for work in (3, 10, 40):
        interval = bound_log_partition(model, exact=False, max_memory=1024, max_work=work)
        assert interval.lower <= log_sum(allowed) <= interval.upper < np.inf


def test_weights_of_copies_never_reach_zero():
    wide = Structure([2, 2, 2], [(0, 1), (1, 2), (0, 2)])
    tables = Tables(wide, np.arange(18.0), 0.0)
    halves = [np.array([0, 1]), np.array([1, 2])]
    parts = [Structure([2, 2, 2], [*(wide.scope(f) for f in kept), (0,), (1,), (2,)]) for kept in halves]
    combination = Combination(tables, [], list(zip(halves, parts, strict=True)), 2**20)
    truth = FactorGraph([2] * 3, [(wide.scope(f), wide.table(f, tables.theta)) for f in range(3)] + [
        ((v,), tables.theta[12 + 2 * v : 14 + 2 * v]) for v in range(3)
    ]).log_partition()  # fmt: skip
    x = np.zeros(combination.dim)
    for far in (0.0, 100.0, 1e4, 1e8):
        x[-1] = far
        value, gradient, slack = combination.bound(x)
        assert truth <= value + slack < np.inf
        assert np.isfinite(gradient).all()
    x[-1] = np.inf
    assert combination.bound(x)[0] == np.inf


@pytest.mark.parametrize(("n", "strength", "field"), [(15, 30.0, 300.0), (40, 3.0, 250.0)])
def test_probabilities_that_underflow_are_not_zero(n, strength, field):
    model = switch(n, strength, field)
    odds = antiferromagnet(n - 1, strength) - field - (n - 1) * math.log(2.0)
    p = math.exp(odds) if odds < 0 else 1.0
    low, high = bound_marginals(model, [0], exact=False, max_memory=2**10, max_work=8)[0]
    assert low[1] <= p <= high[1]
    assert low[0] <= 1.0 - p <= high[0]
    assert high[1] > 0.0


def test_a_probability_below_the_smallest_number_is_neither_zero_nor_certain():
    model = FactorGraph([2, 2], [((0,), [0.0, -800.0]), ((0, 1), np.zeros((2, 2)))])
    low, high = bound_marginals(model, [0])[0]
    assert low[0] < 1.0 == high[0]
    assert low[1] == 0.0 < high[1]
    impossible = FactorGraph([2, 2], [((0,), [0.0, -np.inf]), ((0, 1), np.zeros((2, 2)))])
    low, high = bound_marginals(impossible, [0])[0]
    assert (low[0], high[0], low[1], high[1]) == (1.0, 1.0, 0.0, 0.0)


def test_where_nothing_is_left_to_compute_the_value_is_inside():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.normal(size=6) * 10.0 ** rng.integers(-3, 13, 6)
        one = FactorGraph([1, 1], [((), values[0]), ((0,), [values[1]]), ((0, 1), [[values[2]]])])
        none = FactorGraph([1], [((), value) for value in values])
        for model, those in ((one, values[:3]), (none, values)):
            with mpmath.workdps(60):
                truth = mpmath.fsum(map(mpmath.mpf, those))
            interval = bound_log_partition(model)
            assert interval.lower <= truth <= interval.upper
            assert interval.width <= 1e-12 * np.abs(those).max()
            for found in (mean_field(model), structured_mean_field(model), mini_bucket_bound(model, sense="lower")):
                assert found.bound <= truth
            for found in (mini_bucket_bound(model), tree_reweighted(model)):
                assert truth <= found.bound


def test_sums_of_many_equal_parts_by_conditioning():
    for constant in (0.0, 1e12):
        model = FactorGraph([2] * 12, [(tuple(range(12)), np.zeros((2,) * 12)), ((), constant)])
        interval = bound_log_partition(model, max_memory=64)
        with mpmath.workdps(40):
            truth = mpmath.mpf(constant) + 12 * mpmath.log(2)
        assert "elimination given" in interval.certificate.theorem
        assert interval.lower <= truth <= interval.upper
        assert interval.width < 1e-9 + 1e-14 * constant


def test_tables_too_large_to_add_up_are_refused():
    model = Ising(complete(4), 1e308)
    for bound in (bound_log_partition, bound_marginals, mini_bucket_bound, mean_field, structured_mean_field,
                  tree_reweighted):  # fmt: skip
        with pytest.raises(DomainError, match=r"up to 1e\+308"):
            bound(model)
    with pytest.raises(DomainError, match="too large to be added up"):
        model.log_partition()
    assert np.isfinite(bound_log_partition(Ising(complete(4), 1e130)).upper)


def test_blocks_without_pairs_in_little_memory():
    model = FactorGraph([2] * 30, [((v,), [0.0, 1.0]) for v in range(30)])
    truth = 30 * math.log(1.0 + math.e)
    assert truth - 1e-9 < structured_mean_field(model, max_memory=64).bound <= truth


def test_bounds_on_marginals_of_many_variables_keep_to_their_time():
    model = spin_glass(grid(250, 250), couplings=0.5, fields=0.5, rng=0)
    bound_marginals(model, [0], time_limit=0.1)
    begin = time.process_time()
    assert len(bound_marginals(model, time_limit=0.5, n_jobs=1)) == 62500
    assert time.process_time() - begin < 1.0


def test_cold_frustrated_grids_are_refused_by_the_determinant_and_never_wrong():
    rng, refused = np.random.default_rng(0), 0
    for rows, columns in ((8, 8), (3, 4)):
        edges = grid(rows, columns)
        signs, where = rng.choice([-1.0, 1.0], len(edges)), [divmod(v, columns) for v in range(rows * columns)]
        for strength in (0.3, 1.0, 2.0, 4.0, 8.0, 10.0, 30.0, 400.0):
            model = Ising(edges, strength * signs)
            try:
                assert_allclose(kac_ward(model, where), model.log_partition(), rtol=0, atol=1e-6)
            except DomainError as refusal:
                assert strength > 2.0, refusal  # noqa: PT017
                refused += 1
        cold = Ising(edges, 30.0 * np.abs(signs))  # without frustration nothing cancels
        assert_allclose(kac_ward(cold, where), cold.log_partition(), rtol=1e-12)
    assert refused >= 6


@pytest.mark.parametrize("coupling", [1e-320, 1e-9, 2e-6, 0.2, 0.44068679350977147, 3.0, 21.0, 355.0, 356.0, 1e5, 1e12])
def test_a_torus_at_any_temperature(coupling):
    truth = Ising(torus(4, 5), coupling).log_partition(method="elimination")
    assert_allclose(torus_log_partition(4, 5, coupling), truth, rtol=1e-14)


def test_an_interval_that_a_single_state_contradicts_is_refused():
    model = Ising(complete(8), -3.0)
    interval = bound_log_partition(model, exact=False, max_memory=4096, max_work=10)
    low, high = simple_bounds(*model.restricted()[:2])
    assert low <= antiferromagnet(8, 3.0) <= high
    with pytest.raises(CertificateError, match="at least"):  # both ends are compared
        model.verify(dataclasses.replace(interval, certificate=dataclasses.replace(
            interval.certificate, bound=Interval(interval.lower + 0.1, interval.upper)
        )))  # fmt: skip
    with pytest.raises(CertificateError, match="at most"):
        model.verify(dataclasses.replace(interval, certificate=dataclasses.replace(
            interval.certificate, bound=Interval(interval.lower, interval.upper - 0.1)
        )))  # fmt: skip
    with pytest.raises(CertificateError, match="no certificate"):
        model.verify(Interval(0.0, 1.0))
