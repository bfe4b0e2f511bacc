"""No certificate of optim is violated: known deceptions, and random problems against exact arithmetic."""

import dataclasses

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.geometry import Euclidean, Shannon
from cumulant.optim.analysis.implicit_bias import Interpolation, certify_projection
from cumulant.optim.certify.mirror_descent import certify_relative, certify_simplex
from cumulant.optim.certify.self_concordance import certify_self_concordance
from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from cumulant.optim.interior_point import (
    Bounds,
    ConstrainedProblem,
    Intersection,
    LinearConstraints,
    QuadraticConstraints,
    SimplexConstraints,
    SmoothConstraints,
    certify_constrained,
    l1_regularize,
    on_simplex,
)
from cumulant.optim.problems.enclosures import dot, enclose, smallest_eigenvalue
from cumulant.pytrees import pytree

mpf = mpmath.mpf


def statuses(certificate):
    return {each.text: each.status for each in certificate.assumptions}


# Known deceptions -----------------------------------------------------------------------------------------------------


def test_curvature_that_is_negative_within_a_tolerance_is_refused_or_paid_for():
    with pytest.raises(ValueError, match="positive semi-definite"):
        QuadraticConstraints([[[1.0, 0], [0, -9e-7]]], [[0.0, 0.0]], [-1.0])
    barely = QuadraticConstraints([[[1.0, 0], [0, -3e-16]]], [[0.0, 0.0]], [-1.0])
    problem = ConstrainedProblem(
        optim.Quadratic(np.zeros((2, 2)), [1.0, 0.0]), Intersection((barely, Bounds([-20.0, -1e9], [20.0, 1e9])))
    )
    x = np.array([2**0.5 * (1 - 1e-9), 0.0])
    # (x1, 1e9) is feasible with x1^2 = 2 + 300: the objective is -x1.
    assert certify_constrained(problem, x).upper >= 302**0.5 - 2**0.5
    flat = optim.Composite(optim.Quadratic(np.diag([1.0, -4e-16]), np.zeros(2)), optim.Box(-1e9, 1e9))
    assert optim.certify_optimality(flat, [0.0, 0.0]).upper >= 200
    with pytest.raises(CertificateError, match="convex"):
        certify_simplex(optim.Quadratic(np.diag([1.0, -1e-6]), np.zeros(2)), [0.5, 0.5])


@dataclasses.dataclass(frozen=True)
class Bell:
    """``1 / (1 + exp(m))``: not convex, and not as flat as it says."""

    largest_curvature = 0.1
    self_concordance = 1.0

    def value(self, m):
        return jax.nn.sigmoid(-m)

    def slope(self, m):
        return -jax.nn.sigmoid(m) * jax.nn.sigmoid(-m)

    def curvature(self, m):
        return 0.01 * jnp.ones_like(m)

    def conjugate(self, u):
        return 0.0 * u


def double_well(x, data):
    return jnp.sum((x**2 - 1) ** 2 + 0.3 * x)


@pytree
@dataclasses.dataclass(frozen=True)
class WrongPenalty(optim.L1):
    """An l1 penalty that claims a conjugate it does not have."""

    def dual_scale(self, u, doubt):
        return jnp.ones(())


def test_what_rests_on_the_word_of_the_user_is_assumed():
    A, y = np.array([[10.0], [-1.0], [-1.0], [-1.0]]), np.ones(4)
    own = optim.MarginLoss(A, y, Bell(), l2=1e-3)
    for certificate in (
        optim.run(optim.GradientDescent(), own, [1.0], max_steps=20_000, tol=1e-9).certificate,
        certify_strong_convexity(own, [1.0]),
        optim.certify_duality(own, (np.ones(1), own.slopes(np.ones(1)))),
        optim.certify_optimality(optim.Composite(own, optim.L1(0.1)), [1.0]),
        certify_self_concordance(optim.MarginLoss(A[1:] * 1e-3, y[1:], Bell(), l2=1.0), [1e-3]),
    ):
        assert "assumed" in statuses(certificate).values()
        assert "checked" not in {s for t, s in statuses(certificate).items() if "convex" in t or "loss" in t}
    well = optim.Objective(double_well, (), smoothness=50.0, convex=True)
    run = optim.run(optim.MirrorDescent(Euclidean(), radius=2.2), well, [1.0], max_steps=2000, tol=None)
    assert statuses(run.certificate)["the objective is convex"] == "assumed"
    run.certificate.verify(run.subject)
    penalised = optim.Composite(optim.LeastSquares(A, y, l2=0.1), WrongPenalty(0.5))
    assert "assumed" in statuses(optim.certify_optimality(penalised, [3.0])).values()
    ball = ConstrainedProblem(
        optim.Quadratic(np.eye(1), [1.0]), SmoothConstraints(lambda x, data: jnp.sin(x) - 0.9, ()), radius=1.0
    )
    assert statuses(certify_constrained(ball, [0.5]))["the constraints are convex"] == "assumed"


def test_contradicting_constants_are_refused():
    with pytest.raises(ValueError, match="smoothness must be at least strong_convexity"):
        optim.Objective(double_well, (), smoothness=0.05, strong_convexity=1.0)
    with pytest.raises(ValueError, match="relative_smoothness must be at least"):
        optim.Objective(double_well, (), reference=Shannon(), relative_smoothness=1.0, relative_strong_convexity=2.0)
    with pytest.raises(ValueError, match="smoothness must be at least"):
        optim.FiniteSum(lambda x, row: jnp.sum((x - row) ** 2), np.ones(3), mean_smoothness=0.5, curvature=1.0)


def test_a_matrix_that_is_not_quite_symmetric_is_symmetrised():
    C = np.array([[2.0, 1.0 + 4e-13], [1.0, 2.0]])
    problem = optim.Quadratic(C, [1.0, 0.0])
    assert np.array_equal(problem.C, problem.C.T)
    x = np.linalg.solve(C, [1.0, 0.0])
    assert gap_of_quadratic(C, np.array([1.0, 0.0]), x) <= certify_strong_convexity(problem, x).upper
    narrow = optim.Quadratic(jnp.asarray([[2.0, 1.000001], [1.0, 2.0]], jnp.float32), jnp.zeros(2, jnp.float32))
    assert bool(jnp.all(narrow.C == narrow.C.T))
    with pytest.raises(ValueError, match="symmetric"):
        optim.Quadratic([[2.0, 1.0], [1.1, 2.0]], [1.0, 0.0])


def test_rounding_of_scores_is_counted_to_second_order():
    problem = optim.Composite(optim.LeastSquares([[1e16, 1, -1e16]], [0.0], reduction="sum"), optim.L1(1e-9))
    assert optim.certify_optimality(problem, np.ones(3)).upper >= 0.5


def test_squares_that_underflow_are_no_proof_of_zero():
    tiny = optim.Composite(optim.LeastSquares([[1e-170]], [1e-170], reduction="sum"), optim.Box(0.0, 2.0))
    assert optim.certify_optimality(tiny, [0.5]).upper > 0
    flat = optim.Quadratic([[1e-300]], [1e-200])
    assert certify_strong_convexity(flat, [0.0]).upper >= 5e-101
    assert certify_strong_convexity(optim.LeastSquares([[0.0]], [0.0], l2=1e-10), [1e-170]).upper > 0
    # The longest row is zero: the bound is half the squared decrement, not zero.
    assert certify_self_concordance(optim.Logistic([[0.0]], [1.0], l2=1.0), [1.0]).upper >= 0.5


def test_a_box_that_the_gradient_does_not_point_to_counts_with_its_far_side():
    # The true gradient in the first coordinate is 1e-17 below the computed one; its far corner is at 1e12.
    A, y = np.array([[1.0, 1.0]]), np.array([0.3])
    problem = optim.Composite(optim.LeastSquares(A, y, reduction="sum"), optim.Box(0.0, np.array([1e12, 1.0])))
    x = np.array([0.1, 0.2])
    slope = mpf(x[0]) + mpf(x[1]) - mpf(y[0])
    assert float(slope**2 / 2) <= optim.certify_optimality(problem, x).upper


def test_the_certificate_of_a_float32_answer_on_a_simplex_speaks_of_that_answer():
    data = np.array([[3.0, 1.0, 2.0], [1.0, -1.0, 0.5]], np.float32)
    smooth = optim.LeastSquares(jnp.asarray(data), jnp.asarray([10.0, 5.0], jnp.float32), reduction="sum")
    problem = optim.Composite(smooth, optim.Simplex(0.3))
    x = jnp.asarray([0.3, 0.0, 0.0], jnp.float32) * np.float32(1 - 2e-7)
    best = exact_value(problem, [0.3, 0.0, 0.0])
    gap = float(exact_value(problem, x) - best)
    assert gap > 0
    assert gap <= optim.certify_optimality(problem, x).upper


def test_data_whose_squares_overflow_are_refused():
    X = np.random.default_rng(0).normal(size=(5, 2))
    for make in (optim.LeastSquares, lambda A, y: optim.Logistic(A, np.sign(y))):
        with pytest.raises(ValueError, match="squares add up"):
            make(X * 1e200, np.ones(5))


def test_the_logistic_conjugate_keeps_small_terms():
    for s in (1e-20, 1e-12, 1e-3, 0.5, 1 - 1e-12):
        with mpmath.workdps(60):
            exact = mpf(s) * mpmath.log(mpf(s)) + (1 - mpf(s)) * mpmath.log(1 - mpf(s))
        assert abs(float(optim.LogisticLoss().conjugate(-s)) - exact) <= 1e-15 * abs(exact)


def test_the_smallest_eigenvalue_is_a_lower_bound():
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = int(rng.integers(2, 6))
        root = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-5, 5, size=n)
        kept = int(rng.integers(1, n + 1))
        C = root[:, :kept] @ root[:, :kept].T
        C = (C + C.T) / 2
        with mpmath.workdps(60):
            exact = min(mpmath.eigsy(mpmath.matrix(C.tolist()), eigvals_only=True))
        least = smallest_eigenvalue(C)
        assert least <= exact
        assert exact - least <= 1e-12 * np.abs(C).max()


def test_enclosures_contain_the_exact_result():
    rng = np.random.default_rng(6)
    for _ in range(200):
        A = rng.normal(size=(3, 4)) * 10.0 ** rng.uniform(-150, 100, size=(3, 4))
        x = rng.normal(size=4) * 10.0 ** rng.uniform(-170, 30, size=4)
        found = dot(A, x).square().sum() / 3.0 - enclose(x).sum() * 0.1
        exact = mpmath.fsum(
            mpmath.fsum(mpf(a) * mpf(b) for a, b in zip(row, x, strict=True)) ** 2 for row in A
        ) / 3 - mpmath.fsum(map(mpf, x)) * mpf(0.1)
        assert abs(mpf(float(found.value)) - exact) <= mpf(float(found.error))


# Exact arithmetic -----------------------------------------------------------------------------------------------------


def gap_of_quadratic(C, b, x):
    """``f(x) - min f`` of ``<C x, x> / 2 - <b, x>``."""
    C = mpmath.matrix((np.asarray(C, np.float64) + 0).tolist())
    C = (C + C.T) / 2
    b, x = (mpmath.matrix([mpf(float(v)) for v in each]) for each in (b, x))
    r = C * x - b
    return (r.T * mpmath.lu_solve(C, r))[0] / 2


def numbers(array):
    return [mpf(float(v)) for v in np.ravel(np.asarray(array, dtype=np.float64))]


def exact_loss(smooth, x):
    x = np.asarray(x, dtype=object)
    if isinstance(smooth, optim.Quadratic):
        C, b = np.asarray(smooth.C, np.float64), numbers(smooth.b)
        n = len(b)
        square = mpmath.fsum(mpf(float(C[i, j])) * x[i] * x[j] for i in range(n) for j in range(n))
        return square / 2 - mpmath.fsum(b[i] * x[i] for i in range(n))
    A = np.asarray(smooth.A, np.float64)
    n, p = A.shape
    rows = [[mpf(float(v)) for v in row] for row in A]
    weight = mpf(1) / n if smooth.reduction == "mean" else mpf(1)
    ridge = mpf(float(smooth.l2)) * mpmath.fsum(v * v for v in np.ravel(x)) / 2
    if isinstance(smooth, optim.MultinomialLogistic):
        total = mpf(0)
        for row, label in zip(rows, np.asarray(smooth.y), strict=True):
            scores = [mpmath.fsum(row[j] * x[j, k] for j in range(p)) for k in range(x.shape[1])]
            top = max(scores)
            total += top + mpmath.log(mpmath.fsum(mpmath.exp(s - top) for s in scores)) - scores[label]
        return weight * total + ridge
    scores = [mpmath.fsum(row[j] * x[j] for j in range(p)) for row in rows]
    y = numbers(smooth.y)
    if isinstance(smooth, optim.LeastSquares):
        losses = [(s - t) ** 2 / 2 for s, t in zip(scores, y, strict=True)]
    else:
        margins = [s * t for s, t in zip(scores, y, strict=True)]
        if isinstance(smooth.loss, optim.LogisticLoss):
            losses = [mpmath.log1p(mpmath.exp(-m)) if m > -100 else -m + mpmath.log1p(mpmath.exp(m)) for m in margins]
        else:
            losses = [max(1 - m, mpf(0)) ** 2 / 2 for m in margins]
    return weight * mpmath.fsum(losses) + ridge


def exact_penalty(penalty, x):
    x = [mpf(v) for v in np.ravel(np.asarray(x, dtype=object))]
    if isinstance(penalty, optim.L1):
        weights = numbers(np.broadcast_to(np.asarray(penalty.weight, np.float64), len(x)))
        return mpmath.fsum(w * abs(v) for w, v in zip(weights, x, strict=True))
    if isinstance(penalty, optim.ElasticNet):
        squares = mpmath.fsum(v * v for v in x)
        return mpf(float(penalty.l1)) * mpmath.fsum(map(abs, x)) + mpf(float(penalty.l2)) * squares / 2
    if isinstance(penalty, optim.GroupLasso):
        labels, total = np.asarray(penalty.labels), mpf(0)
        for g in set(labels.tolist()):
            total += mpf(float(penalty.weight)) * mpmath.sqrt(
                mpmath.fsum(v * v for v, k in zip(x, labels, strict=True) if k == g)
            )
        return total
    return mpf(0)


def exact_value(problem, x):
    """The objective in exact arithmetic; sets count nothing."""
    if isinstance(x, jax.Array | np.ndarray):
        x = np.vectorize(lambda v: mpf(float(v)), otypes=[object])(np.asarray(x, dtype=np.float64))
    elif isinstance(x, list):
        x = np.array([mpf(v) for v in x], dtype=object)
    if isinstance(problem, optim.Composite):
        return exact_loss(problem.smooth, x) + exact_penalty(problem.penalty, x)
    return exact_loss(problem, x)


def feasible(penalty, z):
    """A point of the set near ``z``, exactly."""
    z = np.vectorize(lambda v: mpf(float(v)), otypes=[object])(np.asarray(z, dtype=np.float64))
    if isinstance(penalty, optim.Box):
        lower, upper = (np.broadcast_to(np.asarray(e, np.float64), z.shape) for e in (penalty.lower, penalty.upper))
        return np.array(
            [min(max(v, mpf(float(a))), mpf(float(b))) for v, a, b in zip(z, lower, upper, strict=True)], dtype=object
        )
    if isinstance(penalty, optim.Simplex):
        z = np.array([max(v, mpf(0)) for v in z], dtype=object)
        total = mpmath.fsum(z)
        return z * (mpf(float(penalty.radius)) / total) if total > 0 else None
    if isinstance(penalty, optim.L1Ball | optim.L2Ball):
        ball = isinstance(penalty, optim.L1Ball)
        size = mpmath.fsum(map(abs, z)) if ball else mpmath.sqrt(mpmath.fsum(v * v for v in z))
        radius = mpf(float(penalty.radius))
        return z if size <= radius else z * (radius / size)
    return z


# Random problems ------------------------------------------------------------------------------------------------------

SHAPES = [(1, 1), (1, 3), (4, 3), (2, 3), (4, 1)]


def scaled(rng, shape, wide):
    """Normal numbers, of one size or of many."""
    span = {0: 0.0, 1: 3.0, 2: 12.0}[wide]
    columns = 10.0 ** rng.uniform(-span / 2, span / 2, size=shape[-1:])
    return rng.normal(size=shape) * columns * 10.0 ** rng.uniform(-span, span)


def degenerate(rng, A):
    kind = int(rng.integers(5))
    A = A.copy()
    if kind == 0:
        A[:] = 0.0
    elif kind == 1:
        A[:, -1] = A[:, 0]
    elif kind == 2:
        A[-1] = A[0]
    elif kind == 3:
        A[:, 0] = 0.0
    return A


def random_smooth(rng):
    n, p = SHAPES[int(rng.integers(len(SHAPES)))]
    wide = int(rng.integers(3))
    A = scaled(rng, (n, p), wide)
    if rng.random() < 0.3:
        A = degenerate(rng, A)
    l2 = float(rng.choice([0.0, 0.0, 1e-12, 1e-3, 1.0, 1e6]))
    reduction = str(rng.choice(["mean", "sum"]))
    kind = str(rng.choice(["squares", "squares", "quadratic", "logistic", "hinge", "classes"]))
    y = scaled(rng, (n,), int(rng.integers(3)))
    narrow = rng.random() < 0.25 and wide < 2

    def cast(a):
        return jnp.asarray(a, jnp.float32) if narrow else a

    if narrow:
        A, y = np.float32(A).astype(float), np.float32(y).astype(float)
    if kind == "quadratic":
        C = A.T @ A / n
        C = (C + C.T) / 2
        barely = rng.random()
        if barely < 0.2:
            C = C + 1e-13 * np.triu(C, 1)  # not quite symmetric
        elif barely < 0.5:
            C = C - np.diag(np.full(p, 1e-15 * np.abs(C).max()))  # an eigenvalue of about -1e-15
        elif barely < 0.8:
            C = C + np.eye(p) * 10.0 ** rng.uniform(-12, 0) * max(np.abs(C).max(), 1e-300)
        if narrow:
            C = np.float32(C).astype(float)
        return optim.Quadratic(cast(C), cast(scaled(rng, (p,), wide)))
    if kind == "squares":
        return optim.LeastSquares(cast(A), cast(y), l2, reduction)
    if kind == "classes":
        return optim.MultinomialLogistic(cast(A), rng.integers(0, 3, n), 3, l2, reduction)
    signs = np.where(y > 0, 1.0, -1.0)
    if kind == "logistic":
        return optim.Logistic(cast(A), cast(signs), l2, reduction)
    return optim.MarginLoss(cast(A), cast(signs), optim.SquaredHingeLoss(), l2, reduction)


def random_penalty(rng, smooth):
    size = int(np.prod(smooth.shape))
    scale = float(10.0 ** rng.uniform(-6, 6)) if rng.random() < 0.5 else float(10.0 ** rng.uniform(-1, 1))
    if len(smooth.shape) == 2:
        return optim.L1(scale)
    kind = int(rng.integers(9))
    if kind == 0 and size > 1:
        return optim.L1(np.array([1e6, 1e-6, 1.0])[:size])
    if kind <= 1:
        return optim.L1(scale)
    if kind == 2:
        return optim.ElasticNet(scale, float(10.0 ** rng.uniform(-8, 3)))
    if kind == 3:
        return optim.GroupLasso(np.arange(size) // 2, scale)
    if kind == 4:
        return optim.Box(-scale, scale * float(rng.choice([0.0, 1.0, 1e9])))
    if kind == 5:
        return optim.NonNegative()
    return (optim.Simplex, optim.L1Ball, optim.L2Ball)[kind - 6](scale)


def descend(problem, x0):
    """A point near the minimum: coordinate-wise scaled proximal steps, in float64."""
    smooth, penalty = (problem.smooth, problem.penalty) if isinstance(problem, optim.Composite) else (problem, None)
    shape = smooth.shape
    if isinstance(smooth, optim.Quadratic):
        H = np.asarray(smooth.C, np.float64)
        steep = np.diagonal(H)
    else:
        A = np.asarray(smooth.A, np.float64)
        steep = smooth.weight * (A**2).sum(axis=0) + float(smooth.l2)
        H = smooth.weight * A.T @ A + float(smooth.l2) * np.eye(A.shape[1])
    x = np.array(x0, dtype=np.float64)
    separable = isinstance(penalty, optim.L1 | optim.Box | optim.ElasticNet) and len(shape) == 1
    if separable and isinstance(smooth, optim.Quadratic | optim.LeastSquares):
        squares = isinstance(smooth, optim.LeastSquares)
        b = smooth.weight * A.T @ np.asarray(smooth.y, np.float64) if squares else np.asarray(smooth.b, np.float64)
        for _ in range(60):
            for j in range(len(x)):
                if steep[j] > 0:
                    free = x[j] - (H[j] @ x - b[j]) / steep[j]
                    x[j] = one_prox(penalty, free, 1 / steep[j], j, len(x))
        return x
    from scipy.optimize import minimize

    if penalty is None:
        found = minimize(
            lambda w: float(smooth.value(w.reshape(shape))),
            x.ravel(),
            jac=lambda w: np.ravel(np.asarray(smooth.gradient(w.reshape(shape)), np.float64)),
            method="BFGS",
            options={"maxiter": 40},
        )
        return found.x.reshape(shape)
    top = max(float(np.max(np.abs(np.linalg.eigvalsh(H)))), 1e-300)
    for _ in range(60):
        moved = np.asarray(x) - np.asarray(smooth.gradient(x), np.float64) / top
        if not np.all(np.isfinite(moved)):
            break
        x = np.asarray(penalty.prox(moved, 1 / top), np.float64)
    return x


def one_prox(penalty, v, step, j, size):
    if isinstance(penalty, optim.Box):
        ends = (np.broadcast_to(np.asarray(end, np.float64), size)[j] for end in (penalty.lower, penalty.upper))
        return float(np.clip(v, *ends))
    if isinstance(penalty, optim.ElasticNet):
        return np.sign(v) * max(abs(v) - step * float(penalty.l1), 0.0) / (1 + step * float(penalty.l2))
    weight = float(np.broadcast_to(np.asarray(penalty.weight, np.float64), size)[j])
    return np.sign(v) * max(abs(v) - step * weight, 0.0)


def random_point(rng, problem, best):
    smooth = problem.smooth if isinstance(problem, optim.Composite) else problem
    kind = int(rng.integers(4))
    if kind == 0:
        x = scaled(rng, smooth.shape, int(rng.integers(2)))
    elif kind == 1:
        x = np.zeros(smooth.shape)
    else:
        x = best * (1 + 10.0 ** rng.uniform(-17, 0) * rng.normal(size=best.shape))
    if isinstance(problem, optim.Composite) and problem.penalty.is_set:
        x = np.asarray(problem.penalty.prox(x, 1.0), np.float64)
    leaf = jax.tree.leaves(smooth)[0]
    return jnp.asarray(x, jnp.float32) if isinstance(leaf, jax.Array) else x


def lower_bound_on_the_gap(problem, x, candidates):
    """``F(x) - min F(z)`` over some feasible ``z``, exactly: what no certificate may be below."""
    here = exact_value(problem, x)
    penalty = problem.penalty if isinstance(problem, optim.Composite) else None
    best = None
    for z in candidates:
        z = np.asarray(z, np.float64)
        if not np.all(np.isfinite(z)):
            continue
        point = feasible(penalty, z)
        if point is not None:
            there = exact_value(problem, point)
            best = there if best is None else min(best, there)
    return here - best if best is not None else mpf("-inf")


def polished(problem, z):
    """The exact minimiser on the face that ``z`` is on, for quadratic functions."""
    smooth = problem.smooth if isinstance(problem, optim.Composite) else problem
    if not isinstance(smooth, optim.Quadratic | optim.LeastSquares):
        return z
    if isinstance(smooth, optim.Quadratic):
        H, b = np.asarray(smooth.C, np.float64), np.asarray(smooth.b, np.float64)
    else:
        A = np.asarray(smooth.A, np.float64)
        H = smooth.weight * A.T @ A + float(smooth.l2) * np.eye(A.shape[1])
        b = smooth.weight * A.T @ np.asarray(smooth.y, np.float64)
    free = np.flatnonzero(z)
    if isinstance(problem, optim.Composite):
        penalty = problem.penalty
        if isinstance(penalty, optim.L1):
            b = b - np.broadcast_to(np.asarray(penalty.weight, np.float64), b.shape) * np.sign(z)
        elif isinstance(penalty, optim.ElasticNet):
            H, b = H + float(penalty.l2) * np.eye(len(b)), b - float(penalty.l1) * np.sign(z)
        else:
            return z
    if not free.size:
        return z
    out = np.array(z)
    out[free] = np.linalg.lstsq(H[np.ix_(free, free)], b[free], rcond=None)[0]
    return out


def attempt_smooth(rng):
    """A loss, with or without a penalty, at a point far from or near to its minimum: every certificate of it."""
    smooth = random_smooth(rng)
    problem = smooth if rng.random() < 0.3 else optim.Composite(smooth, random_penalty(rng, smooth))
    with np.errstate(all="ignore"):
        start = np.zeros(smooth.shape)
        if isinstance(problem, optim.Composite) and problem.penalty.is_set:
            start = np.asarray(problem.penalty.prox(start, 1.0), np.float64)
        best = descend(problem, start)
        best = np.where(np.isfinite(best), best, 0.0)
        x = random_point(rng, problem, best)
        issuers = [lambda: optim.certify_optimality(problem, x)]
        if problem is smooth:
            issuers.append(lambda: certify_strong_convexity(problem, x))
            if isinstance(smooth, optim.Logistic):
                issuers.append(lambda: certify_self_concordance(problem, x))
            if not isinstance(smooth, optim.Quadratic):
                theta = np.asarray(smooth.slopes(np.asarray(x, np.float64)), np.float64) * rng.choice([1.0, 0.5])
                issuers.append(lambda: optim.certify_duality(problem, (x, theta)))
        polish = polished(problem, best)
        candidates = [x, best, polish, start]
    return problem, issuers, lambda: lower_bound_on_the_gap(problem, x, candidates)


def attempt_constrained(rng):
    """A quadratic or least squares under constraints, at a strictly feasible point."""
    n, p = 4, 3
    A = scaled(rng, (n, p), int(rng.integers(2)))
    smooth = optim.LeastSquares(A, rng.normal(size=n), float(rng.choice([0.0, 1e-3]))) if rng.random() < 0.5 else None
    if smooth is None:
        C = A.T @ A
        smooth = optim.Quadratic((C + C.T) / 2, scaled(rng, (p,), 1))
    kind = int(rng.integers(6))
    size = float(10.0 ** rng.uniform(-4, 4))
    x = rng.uniform(0.05, 0.3, size=p) * size
    if kind == 0:
        constraints, check = Bounds(0.0, size), lambda z: all(0 <= v <= size for v in z)
    elif kind == 1:
        rows = np.vstack([rng.normal(size=(2, p)), np.eye(p), -np.eye(p)])
        limits = np.abs(rows) @ np.full(p, size)
        constraints = Intersection((LinearConstraints(rows, limits), Bounds(-2 * size, 2 * size)))

        def check(z):
            return np.all(rows @ z <= limits * (1 - 1e-12)) and np.all(np.abs(z) <= 2 * size)

    elif kind == 2:
        root = rng.normal(size=(p, int(rng.integers(1, 4))))
        P = (root @ root.T)[None] / size**2
        P = (P + P.transpose(0, 2, 1)) / 2
        level = -float(x @ P[0] @ x) - 1.0
        constraints = Intersection((QuadraticConstraints(P, np.zeros((1, p)), [level]), Bounds(-9 * size, 9 * size)))

        def check(z):
            return z @ P[0] @ z / 2 + level <= -1e-9 and np.all(np.abs(z) <= 9 * size)

    elif kind == 3:
        constraints, check = SimplexConstraints(size), lambda z: np.all(z >= 0) and z.sum() <= size * (1 - 1e-12)
    elif kind == 4:
        weight = float(10.0 ** rng.uniform(-3, 3))
        problem = l1_regularize(smooth, weight, str(rng.choice(["split", "bound"])))
        w = rng.normal(size=p) * 10.0 ** rng.uniform(-3, 1)
        split = isinstance(problem.constraints, Bounds)
        extra = 10.0 ** rng.uniform(-12, 0, size=p)
        x = np.concatenate([np.maximum(w, 0) + extra, np.maximum(-w, 0) + extra] if split else [w, np.abs(w) + extra])
        penalised = optim.Composite(smooth, optim.L1(weight))
        z = polished(penalised, descend(penalised, np.zeros(p)))

        def gap():
            first, second = (np.array(numbers(h), dtype=object) for h in np.split(x, 2))
            w_exact = first - second if split else first
            more = mpf(weight) * (mpmath.fsum([*first, *second]) if split else mpmath.fsum(second))
            return exact_loss(smooth, w_exact) + more - exact_value(penalised, z)

        return problem, [lambda: certify_constrained(problem, x)], gap
    else:
        problem = on_simplex(smooth, size)
        x = np.full(p - 1, size / p) * rng.uniform(0.5, 1.2)
        target = optim.Composite(smooth, optim.Simplex(size))
        z = descend(target, np.full(p, size / p))

        def gap():
            head = numbers(x)
            whole = np.array([*head, mpf(size) - mpmath.fsum(head)], dtype=object)
            return exact_loss(smooth, whole) - exact_value(target, feasible(target.penalty, z))

        return problem, [lambda: certify_constrained(problem, x)], gap
    problem = ConstrainedProblem(smooth, constraints)
    if not check(x):
        x = np.full(p, 1e-3 * size)
    points = [x]
    z = x.copy()
    top = max(float(smooth.smoothness), 1e-300)
    for _ in range(60):
        step = np.asarray(smooth.gradient(z)) / top
        while np.any(step) and not check(z - step):
            step = step / 2 if np.max(np.abs(step)) > 1e-10 * size else np.zeros(p)
        if not np.any(step):
            break
        z = z - step
    points.append(z)
    inside = x if rng.random() < 0.5 else z

    def gap():
        return exact_value(smooth, inside) - min(exact_value(smooth, each) for each in points)

    return problem, [lambda: certify_constrained(problem, inside)], gap


def attempt_simplex(rng):
    """Frank and Wolfe's gap on the simplex."""
    p = 3
    root = scaled(rng, (p, int(rng.integers(1, 4))), int(rng.integers(3)))
    C = root @ root.T
    C = (C + C.T) / 2
    if rng.random() < 0.3:
        C = C - np.eye(p) * 1e-15 * np.abs(C).max()
    problem = optim.Quadratic(C, scaled(rng, (p,), int(rng.integers(3))))
    x = rng.dirichlet(np.ones(p))
    target = optim.Composite(problem, optim.Simplex())
    with np.errstate(all="ignore"):
        z = descend(target, np.full(p, 1 / 3))
    points = [z, *np.eye(p), np.full(p, 1 / p)]
    if rng.random() < 0.5:
        x = np.asarray(optim.Simplex().prox(z, 1.0))
    return (
        problem,
        [lambda: certify_simplex(problem, x), lambda: optim.certify_optimality(target, x)],
        lambda: lower_bound_on_the_gap(target, x, points),
    )


def attempt_projection(rng):
    """The Euclidean projection on ``A x = y`` and the divergence of the Shannon entropy with one equation."""
    A, x0 = rng.normal(size=(2, 4)) * 10.0 ** rng.uniform(-3, 3), rng.uniform(0.1, 2.0, size=4)
    if rng.random() < 0.5:
        entropy, x = Euclidean(), x0 + rng.normal(size=4) * 10.0 ** rng.uniform(-8, 2)
        y = A @ (x0 + rng.normal(size=4))
    else:
        entropy, x = Shannon(), x0 * np.exp(rng.normal(size=4) * 10.0 ** rng.uniform(-8, 0))
        A = np.abs(A[:1])
        y = A @ x0 * np.exp(rng.normal())
    problem = Interpolation(A, y, x0, entropy)

    def gap():
        rows, start, here = (np.vectorize(lambda v: mpf(float(v)), otypes=[object])(a) for a in (A, x0, x))
        target = numbers(y)
        if isinstance(entropy, Euclidean):
            G = mpmath.matrix((rows @ rows.T).tolist())
            nu = mpmath.lu_solve(
                G, mpmath.matrix([t - mpmath.fsum(r * start) for r, t in zip(rows, target, strict=True)])
            )
            z = start + sum(nu[i] * rows[i] for i in range(len(rows)))
            half = lambda a: mpmath.fsum((a - start) ** 2) / 2  # noqa: E731
            return half(here) - half(z)
        nu = mpf(0)  # Newton's method from the right, on a function that is convex and increasing
        while mpmath.fsum(rows[0] * start * [mpmath.exp(a * nu) for a in rows[0]]) < target[0]:
            nu = 2 * nu + 1 / max(rows[0])
        for _ in range(200):
            terms = rows[0] * start * [mpmath.exp(a * nu) for a in rows[0]]
            step = (mpmath.fsum(terms) - target[0]) / mpmath.fsum(rows[0] * terms)
            nu -= step
            if abs(step) <= mpf(10) ** -50 * abs(nu):
                break
        z = [s * mpmath.exp(a * nu) for a, s in zip(rows[0], start, strict=True)]
        divergence = lambda q: mpmath.fsum(  # noqa: E731
            v * mpmath.log(v / s) - v + s for v, s in zip(q, start, strict=True)
        )
        return divergence(here) - divergence(z)

    return problem, [lambda: certify_projection(problem, x)], gap


def poisson_like(x, c):
    return jnp.sum(x - c * jnp.log(x))


def attempt_lie(rng):
    """Wrong constants and flags: a certificate may be false, but never without an assumption marked as such."""
    mu = float(10.0 ** rng.uniform(-6, 6))
    kind = int(rng.integers(4))
    x = rng.uniform(0.5, 2.0, size=2)
    if kind == 0:
        problem = optim.Objective(double_well, (), smoothness=mu * 2, strong_convexity=mu)
        issuers = [lambda: certify_strong_convexity(problem, x)]
    elif kind == 1:
        problem = optim.Objective(poisson_like, np.ones(2), reference=Shannon(), relative_strong_convexity=mu)
        issuers = [lambda: certify_relative((problem, Shannon()), x)]
    elif kind == 2:
        problem = optim.Objective(double_well, (), convex=True)
        point = x / x.sum()
        issuers = [
            lambda: certify_simplex(problem, point),
            lambda: optim.certify_optimality(optim.Composite(problem, optim.Box(-2.0, 2.0)), x),
        ]
    else:
        problem = optim.MarginLoss(rng.normal(size=(4, 2)), np.sign(rng.normal(size=4)), Bell(), l2=mu)
        issuers = [
            lambda: optim.certify_optimality(problem, x),
            lambda: optim.certify_duality(problem, (x, problem.slopes(x))),
        ]
    return problem, issuers, None


ATTEMPTS = {
    "smooth": (attempt_smooth, 8),
    "constrained": (attempt_constrained, 3),
    "simplex": (attempt_simplex, 1),
    "projection": (attempt_projection, 1),
    "lie": (attempt_lie, 1),
}


def try_to_deceive(seed, rounds):
    """How many certificates were issued, how many refused, and which were violated."""
    issued, refused, violated, tight = 0, 0, [], 0
    for name, (make, share) in ATTEMPTS.items():
        for number in range(rounds * share):
            rng = np.random.default_rng([seed, number, share])
            with mpmath.workdps(60):
                _, issuers, gap = make(rng)
                truth = None
                for issue in issuers:
                    try:
                        with np.errstate(all="ignore"):
                            certificate = issue()
                    except CertificateError:
                        refused += 1
                        continue
                    issued += 1
                    if gap is None:
                        assert "assumed" in statuses(certificate).values(), (name, number, certificate)
                        continue
                    truth = gap() if truth is None else truth
                    if truth > mpf(certificate.upper):
                        violated.append((name, number, float(truth), certificate))
                    elif truth > mpf(certificate.upper) / 100:
                        tight += 1
    return issued, refused, violated, tight


def test_no_certificate_is_violated():
    issued, _, violated, tight = try_to_deceive(0, 6)
    assert not violated, violated[0]
    assert issued > 50
    assert tight > 0.1 * issued  # the certificates are not idle


@pytest.mark.slow
def test_no_certificate_of_many_is_violated():
    issued, refused, violated, tight = try_to_deceive(1, 400)
    print(f"{issued} certificates issued, {refused} refused, {len(violated)} violated, {tight} within a factor 100")
    assert not violated, violated[0]
    assert issued + refused >= 5000


def test_certificates_verify_and_a_worse_answer_does_not():
    rng = np.random.default_rng(8)
    A, y = rng.normal(size=(4, 3)), rng.normal(size=4)
    problem = optim.LeastSquares(A, y, l2=0.1)
    x = np.linalg.lstsq(A, y, rcond=None)[0]
    certificate = optim.certify_duality(problem, (x, problem.slopes(x)))
    certificate.verify(Subject(problem, (x, problem.slopes(x))))
    with pytest.raises(CertificateError, match=r"does not hold|not shown"):
        certificate.verify(Subject(problem, (x + 1, problem.slopes(x))))
