"""Pedigrees, formulas and random models in which most states are impossible."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.graphical import FactorGraph, Ising, bound_log_partition, bound_marginals, grid, read_uai
from cumulant.graphical.bounds.around import sum_around
from cumulant.graphical.bounds.feasible import possible_state
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.exact.sparse import sparse_log_partition
from cumulant.graphical.exact.support import reduce
from tests.graphical.models import distribution, joint, marginal
from tests.graphical.networks import formula, hard_model, linkage


def test_propagation_removes_only_what_no_possible_state_has():
    """400 random models against enumeration: values, marginals and beliefs of what is left are those of the whole."""
    shrunk = proved = 0
    for seed in range(400):
        model = hard_model(np.random.default_rng(seed))
        truth, p = distribution(joint(model.cardinalities.tolist(), model.factors))
        structure, theta, free = model.restricted()
        found = reduce(structure, theta, smaller_scopes=seed % 2 == 0)
        if found is None:
            assert truth == -np.inf
            proved += 1
            continue
        value, marginals, flat = Elimination.of(found.structure, found.theta).beliefs()
        assert value == truth or abs(value - truth) < 1e-11
        shrunk += found.left.size < structure.n_variables
        if truth == -np.inf:
            continue
        for v, ours in zip(free.tolist(), found.marginals(marginals), strict=True):
            assert_allclose(ours, marginal(p, (v,)), atol=1e-12)
        if seed % 2:
            wide = found.beliefs(flat)
            for f in range(structure.n_factors):
                expected = marginal(p, tuple(free[v] for v in structure.scope(f)))
                assert_allclose(structure.table(f, wide), expected, atol=1e-12)
    assert shrunk > 80
    assert proved > 50


def test_models_answer_through_propagation_as_by_enumeration(monkeypatch):
    """Wide models leave impossible states out first; here all of them do."""
    monkeypatch.setattr("cumulant.graphical.discrete_model._WIDE", -1.0)
    for seed in range(100):
        model = hard_model(np.random.default_rng(seed))
        scores = joint(model.cardinalities.tolist(), model.factors)
        truth, p = distribution(scores)
        if truth == -np.inf:
            assert model.log_partition() == -np.inf
            for question in (model.marginals, model.beliefs, model.map):
                with pytest.raises(DomainError, match="every state is impossible"):
                    question()
            continue
        assert_allclose(model.log_partition(), truth, atol=1e-11)
        for v, ours in enumerate(model.marginals()):
            assert_allclose(ours, marginal(p, (v,)), atol=1e-12)
        for (scope, _), ours in zip(model.factors, model.beliefs(), strict=True):
            assert_allclose(ours, marginal(p, scope), atol=1e-12)
        state, score = model.map()
        assert_allclose([score, scores[tuple(state)]], scores.max(), atol=1e-11)
        best, score = model.marginal_map([0])
        single = marginal(p, (0,))
        assert_allclose([score - truth, np.log(single[best[0]])], np.log(single.max()), atol=1e-11)


def test_elimination_on_possible_entries_is_elimination():
    for seed in range(300):
        model = hard_model(np.random.default_rng(seed))
        structure, theta, _ = model.restricted()
        truth = distribution(joint(model.cardinalities.tolist(), model.factors))[0]
        order = np.random.default_rng(seed).permutation(structure.n_variables)
        value = sparse_log_partition(structure, theta, order, 1e6)
        assert value == truth or abs(value - truth) < 1e-11


def test_too_many_possible_entries_are_no_answer():
    model = FactorGraph([4] * 6, [((i, j), np.zeros((4, 4))) for i in range(6) for j in range(i)])
    structure, theta, _ = model.restricted()
    assert sparse_log_partition(structure, theta, np.arange(6), 1e5) == pytest.approx(6 * np.log(4))
    assert sparse_log_partition(structure, theta, np.arange(6), 1e3) is None


def test_a_sum_around_a_state_is_a_part_of_the_whole():
    """Against enumeration of the states that agree with it; the draw is one of those that are summed over."""
    parts = 0
    for seed in range(200):
        model = hard_model(np.random.default_rng(seed))
        scores = joint(model.cardinalities.tolist(), model.factors)
        if not np.isfinite(scores).any():
            continue
        structure, theta, free = model.restricted()
        state = np.array(np.unravel_index(int(scores.argmax()), scores.shape))
        found = sum_around(structure, theta, state[free], 4.0, 2**20, seed)
        where = [slice(None)] * scores.ndim
        for v, x in found.given.items():
            where[free[v]] = x
            assert x == state[free[v]]
        assert_allclose(found.value, distribution(scores[tuple(where)])[0], atol=1e-11)
        whole = state.copy()
        whole[free] = found.drawn
        assert np.isfinite(scores[tuple(whole)])
        parts += len(found.given) > 0
    assert parts > 30


def holds(seeds):
    """The truth is inside, the lower end is finite where there is a possible state, and both ends are minus infinity
    where there is none.
    """
    impossible = 0
    for seed in seeds:
        model = hard_model(np.random.default_rng(seed))
        truth = distribution(joint(model.cardinalities.tolist(), model.factors))[0]
        work = (3, 6, 12, 40)[seed // 2 % 4]
        interval = bound_log_partition(model, max_memory=8, time_limit=None, max_work=work, exact=seed % 2 == 0)
        assert interval.lower <= truth <= interval.upper, seed
        assert np.isfinite(interval.lower) == np.isfinite(truth), seed
        assert np.isfinite(interval.upper) == np.isfinite(truth), seed
        if seed % 50 == 0:
            assert model.verify(interval).bound == interval.certificate.bound
        impossible += truth == -np.inf
    return impossible / len(seeds)


def test_no_interval_misses_the_truth_where_most_states_are_impossible():
    assert 0.2 < holds(range(300)) < 0.8


def test_no_bound_on_a_marginal_misses_the_truth_and_impossible_states_are_named():
    zeros = 0
    for seed in range(120):
        model = hard_model(np.random.default_rng(seed))
        truth, p = distribution(joint(model.cardinalities.tolist(), model.factors))
        settings = {"time_limit": None, "max_work": 8, "max_memory": 8, "exact": False}
        if truth == -np.inf:
            with pytest.raises(DomainError, match="no distribution"):
                bound_marginals(model, **settings)
            continue
        for v, (low, high) in enumerate(bound_marginals(model, **settings)):
            expected = marginal(p, (v,))
            assert (low <= expected + 1e-12).all()
            assert (expected <= high + 1e-12).all()
            assert ((high == 0.0) <= (expected == 0.0)).all()
            zeros += int((high == 0.0).sum())
    assert zeros > 50


@pytest.mark.slow
def test_no_interval_misses_the_truth_on_3000_models():
    holds(range(1000, 4000))


@pytest.mark.parametrize("seed", range(4))
def test_a_possible_state_of_a_formula_is_found_and_none_is_proved(seed):
    rng = np.random.default_rng(seed)
    model = formula(rng, 100, 410)
    structure, theta, _ = model.restricted()
    state, settled = possible_state(structure, theta, seed)
    assert settled
    assert np.isfinite(model.family.score(state, model.theta))
    never = formula(rng, 30, 240, planted=False)
    structure, theta, _ = never.restricted()
    assert possible_state(structure, theta, seed) == (None, True)
    interval = bound_log_partition(never, exact=False)
    assert interval.lower == interval.upper == -np.inf
    assert interval.certificate.details["found_exact"] == 1.0
    with pytest.raises(DomainError, match="impossible"):
        bound_marginals(never, [0], exact=False)


def test_a_formula_is_counted():
    """log Z of a formula is the logarithm of its number of solutions."""
    model = formula(np.random.default_rng(5), 12, 44)
    scores = joint([2] * 12, model.factors)
    interval = bound_log_partition(model)
    assert_allclose(np.exp(interval.estimate), np.isfinite(scores).sum())


def test_eight_queens_have_92_places():
    rows = range(8)
    attack = {d: np.array([[-np.inf if abs(a - b) in (0, d) else 0.0 for b in rows] for a in rows]) for d in rows}
    model = FactorGraph([8] * 8, [((i, j), attack[j - i]) for j in rows for i in range(j)])
    interval = bound_log_partition(model)
    assert np.log(92) in interval
    assert interval.width < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_small_pedigree_has_the_value_of_plain_elimination(seed):
    model, truth = linkage(np.random.default_rng(seed), 8, 2)
    structure, theta, _ = model.restricted()
    plain = Elimination.of(structure, theta).log_partition()
    assert np.isfinite(model.family.score(truth, model.theta))
    assert_allclose(model.log_partition(), plain, rtol=1e-12)
    assert plain in bound_log_partition(model)
    wide = bound_log_partition(model, exact=False, max_memory=2**12, max_work=30)
    assert plain in wide
    assert np.isfinite(wide.lower)
    assert wide.certificate.details["found_exact"] == 0.0


def test_contradicting_phenotypes_are_certain_to_be_impossible():
    """A child whose alleles neither parent has: both ends are minus infinity, without elimination."""
    model, _ = linkage(np.random.default_rng(0), 3, 1, founders=0.67, typed=0.0)
    sizes = model.cardinalities.tolist()
    phenotypes = [v for v, size in enumerate(sizes) if size == 6]  # unordered pairs of three alleles
    given = model.given(dict(zip(phenotypes, [0, 0, 5], strict=True)))  # 1/1 and 1/1 have a child 3/3
    interval = bound_log_partition(given, exact=False)
    assert interval.lower == interval.upper == given.log_partition() == -np.inf
    assert "propagation" in interval.certificate.theorem
    with pytest.raises(DomainError, match="probability zero"):
        given.marginals()


def test_a_pedigree_too_wide_for_elimination_has_a_finite_lower_end_within_its_time():
    model, truth = linkage(np.random.default_rng(1), 60, 6, n_alleles=4)
    bound_log_partition(model, time_limit=0.5, max_memory=2**24)  # compiles
    begin = time.process_time()  # on one thread, at most what the clock shows, which a busy machine may delay
    interval = bound_log_partition(model, time_limit=2.0, max_memory=2**24, n_jobs=1)
    assert time.process_time() - begin < 4.0
    assert model.family.score(truth, model.theta) <= interval.upper
    assert np.isfinite(interval.lower)
    again = bound_log_partition(
        model, time_limit=2.0, max_memory=2**24, max_work=int(interval.certificate.details["work"])
    )
    assert (again.lower, again.upper) == (interval.lower, interval.upper)


def test_the_details_of_a_certificate_say_what_was_done():
    wide = bound_log_partition(formula(np.random.default_rng(0), 60, 240), max_memory=2**9, max_work=3)
    assert wide.width > 1.0
    assert "found_exact = 0" in str(wide.certificate)
    assert " exact = 1" not in str(wide.certificate)


DATA = os.environ.get("CUMULANT_DATA")


@pytest.mark.skipif(DATA is None, reason="CUMULANT_DATA names no folder with the UAI problems")
def test_a_published_pedigree_is_exact_after_propagation():
    """log Z and marginals of a problem of the 2014 competition; its tables become 200 times smaller."""
    folder = Path(DATA) / "uai"
    model = read_uai(folder / "Pedigree_11.uai", folder / "Pedigree_11.uai.evid")
    published = json.loads((folder / "Pedigree_11.json").read_text())
    structure, theta, _ = model.restricted()
    assert fast_order(reduce(structure, theta).structure).entries < 0.01 * fast_order(structure).entries
    interval = bound_log_partition(model, time_limit=4.0)
    assert published["log_partition_given_evidence"] in interval
    assert interval.width < 1e-8
    for ours, theirs in zip(model.marginals(), published["marginals_given_evidence"], strict=True):
        assert_allclose(ours, theirs, atol=1e-9)


def test_marginals_whose_digits_are_lost_are_refused():
    """At couplings of 1e20 a message that comes back is off by thousands of nats; marginals were NaN."""
    rng = np.random.default_rng(0)
    models = [Ising(grid(2, 3), 1e20 * rng.normal(size=7)) for _ in range(100)]
    found = [_marginals_or_refusal(model) for model in models]
    assert 0 < sum(each is None for each in found) < 30
    assert_allclose([each for each in found if each is not None], 0.5)


def _marginals_or_refusal(model):
    try:
        return np.array(model.marginals(method="elimination"))
    except DomainError:
        return None
