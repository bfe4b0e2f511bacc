"""SamplingPlans and bounds of learning by sampling: published numbers, and each bound against what it bounds."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical.learning.planner import (
    SamplingPlan,
    _convex_forms,
    bound_convex,
    bound_strongly_convex,
    gradient_error_bound,
    lipschitz,
    lower_bound_work_convex,
    lower_bound_work_strongly_convex,
    plan_convex,
    plan_strongly_convex,
    total_error_bound,
)
from cumulant.graphical.mixing.certificates import Mixing

R = math.sqrt(24)
LOG_RATE = -(1 - 4 * math.tanh(0.2)) / 16
MIXING = Mixing(16.0, LOG_RATE)


def sizes(plan):
    return plan.iterations, plan.chains, plan.updates


def test_schedules_of_the_four_by_four_grid():
    known = {"R": R, "L": 10.0, "l2": 1.0, "distance": 0.4 * R, "betas": (0.01, 0.9, 0.09)}
    printed = Mixing(math.log(16), LOG_RATE)
    assert sizes(plan_strongly_convex(2, 0.1, mixing=printed, mode="published", updates="gap", **known)) == (
        46,
        1533,
        561,
    )
    assert plan_strongly_convex(2, 0.1, mixing=MIXING, mode="published", updates="gap", **known).updates == 695
    assert sizes(plan_strongly_convex(2, 0.1, mixing=MIXING, updates="gap", **known)) == (46, 151, 518)
    assert sizes(plan_strongly_convex(2, 0.1, mixing=MIXING, **known)) == (46, 151, 515)
    known |= {"L": 25.0, "distance": 0.2 * R}
    assert sizes(plan_strongly_convex(0.25, 0.1, mixing=MIXING, **known)) == (150, 11035, 673)


def test_convex_schedules():
    for L, expected in ((96.0, (232, 4261, 795)), (24.0, (226, 16603, 846))):
        plan = plan_convex(1.0, 0.1, R=R, L=L, distance=0.2 * R, mixing=MIXING)
        assert sizes(plan) == expected
        forms = _convex_forms(plan, R, L, 0.2 * R, 0.1, MIXING)
        published = {96.0: (0.99867, 0.69612, 1.61318), 24.0: (0.99792, 0.69550, 1.10085)}[L]
        assert_allclose([forms[k] for k in ("published", "tight", "union")], published, atol=6e-6)
    plan = plan_convex(1.0, 0.1, R=R, L=96.0, distance=0.2 * R, mixing=MIXING)
    assert_allclose(plan.real, (231.62, 4253.8, 794.07), rtol=1e-4)
    assert_allclose(np.prod(plan.real), 7.8236e8, rtol=1e-4)
    assert_allclose(plan.work_bound, 2.7041e9, rtol=1e-4)


def test_a_plan_reaches_what_was_asked_and_no_less_than_the_lower_bound():
    rng = np.random.default_rng(0)
    for _ in range(50):
        eps, delta, l2 = rng.uniform(0.01, 0.5), rng.uniform(0.01, 0.5), rng.uniform(0.05, 2)
        size, distance = rng.uniform(1, 20), rng.uniform(0.6, 5)
        mixing = Mixing(rng.uniform(2, 100), -rng.uniform(0.001, 0.5))
        known = {"R": size, "L": lipschitz(size, l2), "distance": distance, "mixing": mixing}
        plan = plan_strongly_convex(eps, delta, l2=l2, **known)
        assert bound_strongly_convex(plan, l2=l2, delta=delta, **known) <= eps * (1 + 1e-12)
        contraction = 1 - l2 / known["L"]
        lower = lower_bound_work_strongly_convex(
            distance, size / l2, 2 * size * mixing.constant / l2, eps, delta, contraction, mixing
        )
        assert 0 < lower <= plan.work
        plan = plan_convex(eps, delta, **known)
        assert bound_convex(plan, delta=delta, **known) <= eps
        a, target = known["L"] * distance / (4 * size) + math.log(1 / delta), eps * known["L"] / (8 * size**2)
        if a * mixing.constant > target:
            assert lower_bound_work_convex(a, 1.0, mixing.constant, target, mixing) <= plan.work
    work = [plan_convex(e, 0.1, R=R, L=24.0, distance=1.0, mixing=MIXING).work for e in (1e-3, 1e-4)]
    assert_allclose(math.log10(work[1] / work[0]), 3, atol=0.15)
    known = {"R": R, "L": 25.0, "l2": 1.0, "distance": 1.0, "mixing": MIXING}
    work = [plan_strongly_convex(e, 0.1, **known).work for e in (1e-4, 1e-5)]
    assert_allclose(math.log10(work[1] / work[0]), 2, atol=0.2)


def test_the_concentration_bound_holds_and_the_printed_one_does_not():
    rng = np.random.default_rng(1)
    for size, M in ((R, 100), (100.0, 50)):
        error = np.abs(size * (2 * rng.binomial(M, 0.5, 20_000) / M - 1))
        assert (error > gradient_error_bound(M, 0.1, size)).mean() <= 0.1
        printed = math.sqrt(size / (2 * M)) * (1 + math.sqrt(2 * math.log(10)))
        assert (error > printed).mean() > 0.15
    assert gradient_error_bound(100, 0.1, R, MIXING, 0) > gradient_error_bound(100, 0.1, R, MIXING, 500)


def test_the_bound_on_total_errors_inverts_bernstein():
    for K, M, delta in ((46, 1533, 0.1), (10, 5, 0.01)):
        eps = total_error_bound(K, M, delta, R)
        # exp(-K eps^2 / (2 variance + 2 c eps / 3)), variance 2 R^2 / M and differences c = 2 R
        assert_allclose(math.exp(-K * eps**2 / (4 * R**2 / M + 4 * R * eps / 3)), delta, rtol=1e-12)


def test_errors_leave_a_distance_of_r_over_l2():
    """Gradients off by the whole bias of short chains, always to the same side: the corrected bound is attained, the
    printed one, ``r L / l2``, is violated where ``L < 1`` and loose where ``L > 1``.
    """
    K, M, v, delta, mixing = 400, 10**24, 20, 0.1, Mixing(2.0, -0.2)
    r = gradient_error_bound(M, delta / K, 1.0, mixing, v)
    for L, l2 in ((0.1, 0.05), (10.0, 5.0)):
        x = -1.0
        for _ in range(K):
            x -= (l2 * x - r) / L
        known = {"R": 1.0, "L": L, "l2": l2, "distance": 1.0, "delta": delta, "mixing": mixing}
        bound = bound_strongly_convex(SamplingPlan(K, M, v), **known)
        assert abs(x) <= bound * (1 + 1e-12)
        assert_allclose(bound, x, rtol=1e-9)
        printed = bound_strongly_convex(SamplingPlan(K, M, v), **known, mode="published")
        assert printed < 0.2 * x if L < 1 else printed > 5 * x


def test_exact_gradients_contract_as_claimed():
    """``f = x^2 / 2 + 3 y^2 / 2``: the slower coordinate needs the whole of the bound at every step."""
    known = {"R": 1.0, "L": 4.0, "l2": 1.0, "distance": 2.0, "delta": 0.1, "mixing": None}
    x = np.array([2.0, 0.0])
    for k in range(1, 31):
        x = x - np.array([1.0, 3.0]) * x / 4.0
        bound = bound_strongly_convex(SamplingPlan(30, 10**30, 1), done=k, **known)
        assert_allclose(np.linalg.norm(x), bound, rtol=1e-9)


def test_refusals():
    known = {"R": R, "L": 25.0, "l2": 1.0, "distance": 1.0, "mixing": MIXING}
    for wrong in ({"eps": 0.0}, {"delta": 1.0}, {"l2": -1.0}, {"betas": (0.5, 0.5, 0.5)}, {"mode": "printed"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            plan_strongly_convex(**{"eps": 0.1, "delta": 0.1, **known, **wrong})
    with pytest.raises(ValueError, match="chains"):
        SamplingPlan(1, 0, 1)
    for done in (0, 6):
        with pytest.raises(ValueError, match="done must be"):
            bound_strongly_convex(SamplingPlan(5, 1, 1), delta=0.1, done=done, **known)


def test_a_smoothness_below_the_strong_convexity_is_refused_by_every_planner_and_bound():
    """0.01 was promised after one iteration."""
    known = {"R": 1.0, "L": 0.05, "l2": 1.0, "distance": 0.5, "mixing": Mixing(2.0, -0.2)}
    with pytest.raises(ValueError, match=r"L must be at least l2.* L = 0\.05, l2 = 1\.0"):
        plan_strongly_convex(0.01, 0.1, **known)
    with pytest.raises(ValueError, match="L must be at least l2"):
        bound_strongly_convex(SamplingPlan(5, 10, 10), delta=0.1, **known)


def test_a_run_that_ends_early_has_the_bound_of_the_iterations_it_made():
    plan, known = SamplingPlan(40, 100_000, 2000), {"R": R, "L": 25.0, "distance": 1.0, "delta": 0.1, "mixing": MIXING}
    for bound, more in ((bound_convex, {}), (bound_strongly_convex, {"l2": 1.0})):
        bounds = [bound(plan, done=k, **known, **more) for k in range(1, 41)]
        assert (np.diff(bounds) < 0).all()
        assert bounds[-1] == bound(plan, **known, **more)
        exact = bound(plan, **{**known, **more, "mixing": None})  # draws without a bias
        assert exact <= bounds[-1]
    assert _convex_forms(plan, R, 25.0, 1.0, 0.1, MIXING, 39).keys() == {"union"}  # the others hold at the end only
