"""Sections 2.1 to 2.3 of the thesis: what is proved, what is conjectured, and what is false as printed."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import optim
from cumulant.experiments._ipsa import SOURCE as SOURCE
from cumulant.experiments.base import Report, claim, experiment, listed
from cumulant.experiments.ipsa_central_path import PROBLEM as FIACCO
from cumulant.optim import interior_point as ip
from cumulant.plotting import COLOURS, figure
from cumulant.precision import float64
from cumulant.randomness import generator

TITLE = "Interior-point stochastic approximation: what is proved, and what is conjectured"
_NOTES = (
    "That the iterates converge is a conjecture in the thesis, whose proof has a gap at points of the boundary that "
    "are not minimisers; runs can only fail to contradict it. Corrections of indices only are left out: n for m in "
    "(2.14), z_k for z_{k-1} in step 5 of figure 2.1, f for grad f in part IV, (2.74) for (2.75); and of signs: in "
    "(2.31), for steps x - a g, and `positive` for the constraints of a strictly feasible point in part III."
)

# min |x - (-1, 1)|^2 / 2 over x >= 0: solution (0, 1), multipliers (1, 0).
CORNER = ip.ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), ip.Bounds(0.0))
MARKS = (100, 1000, 5000)


@experiment
def run(quick: bool, rng: int) -> Report:
    """Runs under noise, the central path, and linear algebra on random matrices."""
    generate = generator(rng)
    convergence, paths = _convergence(20 if quick else 200, int(rng))
    stability, conditioning = _stability()
    claims = (
        *convergence,
        _step_sizes(),
        _monotone(generate),
        _bounded_minimisers(),
        _barrier_is_not_lipschitz(),
        *_barrier_minimisers(),
        _descent(generate),
        _dual(),
        _surrogate_gap(generate),
        _domain_of_the_dual(),
        _unique_dual(),
        _centrality(),
        _routes(generate),
        _inertia(generate),
        _tangent(),
        _curved_tangent(),
        stability,
        _neighbourhood(),
    )
    return Report(claims, lambda: _draw(paths, conditioning), _NOTES)


def _runs(power, first, seeds, start):
    """States of `seeds` runs with unit normal noise and sigma = first k^-power, at the marks."""

    def go(key):
        solver = ip.InteriorPointSA(ip.Harmonic(0), _Falling(first, power), optim.gradients.Noisy(1.0))
        state, found, done = solver.init(CORNER, jnp.ones(2), key), [], 0
        for mark in MARKS:
            state = jax.lax.fori_loop(done, mark, lambda _, s: solver.step(CORNER, s), state)
            found.append(jnp.concatenate([state.x, state.z, jnp.array([jnp.vdot(state.slack, state.z), state.bias,
                                                                       state.total, state.allowed])]))  # fmt: skip
            done = mark
        return jnp.stack(found)

    with float64():
        return np.asarray(jax.jit(jax.vmap(go))(jax.random.split(jax.random.key(start), seeds)))


class _Falling:
    def __init__(self, first, power):
        self.first, self.power = first, power

    def __call__(self, k):
        return self.first * (k + 1.0) ** -self.power


def _convergence(seeds, start):
    falling, constant = _runs(0.9, 1.0, seeds, start), _runs(0.0, 0.5, seeds, start)
    distance = np.sqrt(np.mean(np.sum((falling[:, :, :2] - [0.0, 1.0]) ** 2, axis=2), axis=0))
    gaps = {"falling": falling[:, :, 4].mean(axis=0), "constant": constant[:, :, 4].mean(axis=0)}
    slopes = {name: float(np.polyfit(np.log(MARKS), np.log(gap), 1)[0]) for name, gap in gaps.items()}
    order = float(np.polyfit(np.log(MARKS), np.log(distance), 1)[0])
    bias = {
        name: np.diff(found[:, :, 5].mean(axis=0)) for name, found in (("falling", falling), ("constant", constant))
    }
    expected = 0.5 * np.log(np.divide(MARKS[1:], MARKS[:-1]))
    claims = (
        claim(
            item="Section 2.3.1, proposition",
            statement="the iterates converge to the solution under assumptions 1 to 8 (conjectured)",
            published="x_k -> x* almost surely; the proof has a gap",
            ours=f"|x - (-1, 1)|^2 / 2 over x >= 0 with unit noise, {seeds} runs: root mean squared distance "
            f"{listed(distance, '.4f')} after {listed(MARKS, 'g')} steps, power of k {order:.2f}",
            holds=order < -0.4 and np.all(np.diff(distance) < 0),
        ),
        claim(
            item="(2.18)",
            statement="the gap falls as 1/k with steps 1/k and sigma_k -> 0, and as k^(sigma - 1) with a constant "
            "sigma",
            published="sigma_k must tend to zero",
            ours=f"powers of k: {slopes['falling']:.2f} with sigma = k^-0.9, {slopes['constant']:.2f} with sigma = 1/2",
            holds=abs(slopes["falling"] + 1) < 0.15 and abs(slopes["constant"] + 0.5) < 0.1,
        ),
        claim(
            item="(2.40)",
            statement="sum a_k |grad f_mu_k(x_k) - grad f(x_k)| is bounded along the iterates where sigma_k -> 0; "
            "where a constraint is active and sigma is constant, it grows as sigma z* log k, since mu_k / x_k tends "
            "to sigma z*",
            published="bounded where steps and barrier terms are of order 1/k; safe to ignore in practice",
            ours=f"what is added from 100 to 1000 and to 5000 steps: {listed(bias['falling'], '.4f')} with sigma = "
            f"k^-0.9; {listed(bias['constant'], '.3f')} with sigma = 1/2, where (1/2) log k would add "
            f"{listed(expected, '.3f')}",
            holds=bias["falling"][-1] < 0.01 and np.all(np.abs(bias["constant"] / expected - 1) < 0.1),
        ),
    )
    return claims, (falling, constant)


def _step_sizes():
    """A gradient that always pulls to the boundary, with sigma = 0: each step is cut to 0.995 of the way."""
    problem = ip.ConstrainedProblem(None, ip.Bounds(0.0))
    solver = ip.InteriorPointSA(ip.Harmonic(0), ip.PowerSigma(0.9))
    k = np.arange(1, 60)
    halves = np.sum(2.0**-k)
    with float64():
        state = ip.ipsa_init(solver, problem, jnp.array([1.0]))
        step = jax.jit(lambda s: ip.ipsa_step(solver, problem, s, 50.0 * jnp.ones(1)))
        for _ in range(60):
            state = step(state)
        budget = ip.rm_budget(state)
    return claim(
        item="Assumption 2; (2.24)",
        statement="conditions (2.24) must hold for the realised steps; on the longest steps allowed they are not "
        "enough",
        published="imposing them on the maximum step sizes will guarantee them for all a_k <= a^_k",
        ours=f"a_k = 2^-k <= 1/k sums to {halves:.6f}; a run under a constant pull of 50 realises "
        f"{float(budget.steps):.3f} of {float(budget.allowed):.3f} in 60 steps",
        holds=abs(halves - 1) < 1e-12 and budget.steps < 0.9 * budget.allowed,
        corrected=True,
    )


def _monotone(generate):
    least, zero = np.inf, 0.0
    for _ in range(10):
        A, y = generate.normal(size=(6, 3)), np.sign(generate.normal(size=6))
        f = optim.Logistic(A, y, l2=0.1)
        best = optim.run(optim.Newton(), f, np.zeros(3), tol=1e-14).x
        for x in best + generate.normal(size=(50, 3)) * 3:
            least = min(least, float(f.gradient(x) @ (x - best)))
    flat = optim.Quadratic(np.diag([1.0, 0.0]), np.zeros(2))
    zero = float(flat.gradient([0.0, 1.0]) @ np.array([0.0, 1.0]))
    return claim(
        item="(2.34)",
        statement="F(x)^T (x - x*) >= 0 for the gradient of a convex function, and > 0 at points that are no "
        "minimisers",
        published="F(x)^T (x - x*) > 0 whenever f is convex and differentiable",
        ours=f"10 logistic losses, 500 points: at least {least:.2e}; x_1^2 / 2 at (0, 1) from x* = 0: {zero:g}",
        holds=least > 0 and zero == 0,
        corrected=True,
    )


def _bounded_minimisers():
    values = [float(np.log1p(np.exp(-x))) for x in (0.0, 10.0, 100.0)]
    return claim(
        item="Section 2.3.1, part I",
        statement="a convex function that is bounded below need not have a minimiser",
        published="the set of minimisers is bounded where f is bounded below",
        ours=f"log(1 + exp(-x)) >= 0 at 0, 10, 100: {listed(values, '.0e')}, falling for ever; a constant has all "
        f"points",
        holds=values[0] > values[1] > values[2] > 0,
        corrected=True,
    )


def _barrier_is_not_lipschitz():
    barrier = ip.log_barrier(ip.ConstrainedProblem(optim.Quadratic([[1.0]], [0.0]), ip.Bounds(0.0)), 1.0)
    x = np.array([1.0, 1e-2, 1e-4])
    slopes = [abs(float((barrier.gradient([at * 1.01]) - barrier.gradient([at]))[0])) / (0.01 * at) for at in x]
    return claim(
        item="Section 2.3.1, part I, barrier",
        statement="the gradient of the barrier function is Lipschitz-continuous on each level set only",
        published="Lipschitz-continuous where objective and constraints are",
        ours=f"x^2 / 2 over x >= 0, mu = 1: slope of the gradient at 1, 0.01, 0.0001: {listed(slopes, '.0e')}",
        holds=slopes[2] > 1e3 * slopes[1] > 1e6,
        corrected=True,
    )


def _barrier_minimisers():
    mus = 10.0 ** -np.arange(0.0, 9.0)
    path = ip.central_path(FIACCO, mus, [1.0, 2.0])
    values = path.x.sum(axis=1)
    barrier = values - mus * (np.log(path.x[:, 0]) + np.log(path.x[:, 1] - path.x[:, 0] ** 2))
    size, excess = float(np.max(np.linalg.norm(path.x, axis=1))), float(np.max(values - 2 * mus))
    return (
        claim(
            item="Theorem (Wright 1992), (a)",
            statement="all minimisers of the barrier functions are strictly feasible and in one bounded set",
            published="the same",
            ours=f"x_1 + x_2 over x_1 >= 0, x_2 >= x_1^2, mu from 1 to 1e-8: norms at most {size:.3f}, smallest slack "
            f"{float(np.min(np.minimum(path.x[:, 0], path.x[:, 1] - path.x[:, 0] ** 2))):.0e}",
            holds=size < 1.5 and np.all(path.x[:, 0] > 0) and np.all(path.x[:, 1] > path.x[:, 0] ** 2),
        ),
        claim(
            item="Theorem (Wright 1992), (b) and (c)",
            statement="as mu -> 0 they tend to a minimiser, and f_mu(x_mu) tends to f(x*): to f, in part IV, not its "
            "gradient",
            published="lim f_mu_k(x_k) = f(x*); lim grad f_mu(x_k) = f(x*) in part IV",
            ours=f"|x_mu| {listed(np.linalg.norm(path.x[[0, 4, 8]], axis=1), '.0e')} and f_mu(x_mu) "
            f"{listed(barrier[[0, 4, 8]], '.1e')} for mu = 1, 1e-4, 1e-8; f(x*) = 0; f - f* - 2 mu is at most "
            f"{excess:.0e} (the path is computed to 1e-10)",
            holds=abs(barrier[-1]) < 1e-5 and np.linalg.norm(path.x[-1]) < 1e-7 and excess <= 1e-10,
            corrected=True,
        ),
    )


def _random_point(generate, n=4, m=6, definite=True):
    root = generate.normal(size=(n, n))
    W = root @ root.T / n if definite else (root + root.T) / 2
    J, c, z = generate.normal(size=(m, n)), -generate.exponential(size=m), generate.exponential(size=m)
    return W, J, c, z, generate.normal(size=n), float(generate.exponential())


def _descent(generate):
    largest = -np.inf
    for _ in range(200):
        W, J, c, z, g, mu = _random_point(generate)
        step = ip.solve_primal_dual(W, J, c, z, g, mu)
        gradient = g - mu * J.T @ (1 / c)
        largest = max(largest, float(step.dx @ gradient / (np.linalg.norm(step.dx) * np.linalg.norm(gradient))))
    return claim(
        item="(2.27)",
        statement="the primal-dual direction descends on the barrier function: grad f_mu^T dx < 0",
        published="the same",
        ours=f"200 random convex points: largest cosine with the gradient {largest:.1e}",
        holds=largest < 0,
    )


def _dual():
    mus = np.array([1.0, 0.5, 0.25, 0.1])
    path = ip.central_path(FIACCO, mus, [1.0, 2.0])
    gap = path.x.sum(axis=1) + (1 - path.z[:, 0]) ** 2 / 4
    weak = -((1 - np.linspace(0, 4, 50)) ** 2) / 4
    return claim(
        item="(2.12), (2.13)",
        statement="on the central path the duality gap is m mu, and q(z) <= f* everywhere (weak duality)",
        published="eta = m mu",
        ours=f"x_1 + x_2 over x_1 >= 0, x_2 >= x_1^2: gap - 2 mu at most {float(np.max(np.abs(gap - 2 * mus))):.0e}; "
        f"largest q {weak.max():.1e}, f* = 0",
        holds=np.max(np.abs(gap - 2 * mus)) < 1e-8 and weak.max() <= 0,
    )


def _surrogate_gap(generate):
    """-c^T z against f - q, both in closed form for a quadratic over x >= 0."""
    target = np.array([-1.0, 1.0])
    below, on_it = 0, 0.0
    for _ in range(500):
        x, z = generate.exponential(size=2), generate.exponential(size=2)
        y = target + z  # the minimiser of the Lagrangian
        gap = np.sum((x - target) ** 2) / 2 - (np.sum((y - target) ** 2) / 2 - z @ y)
        below += z @ x < gap - 1e-12
        at = np.sum((y - target) ** 2) / 2 - (np.sum((y - target) ** 2) / 2 - z @ y)
        on_it = max(on_it, abs(at - z @ y))
    return claim(
        item="(2.13), surrogate",
        statement="-c(x)^T z is the duality gap where grad f + J^T z = 0, and below it elsewhere: it certifies nothing "
        "there",
        published="eta(x, z) = -c(x)^T z",
        ours=f"500 random points: too small at {below} of them; equal to {on_it:.0e} where the Lagrangian is "
        f"stationary",
        holds=below > 400 and on_it < 1e-12,
        corrected=True,
    )


def _domain_of_the_dual():
    """min x^2 over x >= 1: q(z) = z - z^2 / 4 with maximum 1 at z = 2, the only multiplier."""
    x, z = np.linspace(-5, 5, 10_001), np.linspace(0, 4, 401)
    lagrangian = x**2 + z[:, None] * (1 - x)
    q = {name: lagrangian[:, where].min(axis=1) for name, where in (("all", x == x), ("feasible", x >= 1 - 1e-12))}
    best = {name: z[values >= values.max() - 1e-6] for name, values in q.items()}
    return claim(
        item="(2.10)",
        statement="the dual function is the infimum of the Lagrangian over the domain of f and c",
        published="over feasible x",
        ours=f"x^2 over x >= 1, whose one multiplier is 2: over all x the dual function is largest at z = "
        f"{best['all'].min():g}; over feasible x at every z from {best['feasible'].min():g} to "
        f"{best['feasible'].max():g}",
        holds=np.allclose(best["all"], 2.0, atol=0.02) and np.ptp(best["feasible"]) > 1.9,
        corrected=True,
    )


def _unique_dual():
    """min x over x >= 0 and 2 x >= 0: q(z) = 0 where z_1 + 2 z_2 = 1, minus infinity else."""
    z = np.array([[1.0, 0.0], [0.0, 0.5], [0.5, 0.25]])
    stationary = np.max(np.abs(1 - z @ [1.0, 2.0]))
    problem = ip.ConstrainedProblem(
        optim.Quadratic(np.eye(1), [-1.0]), ip.LinearConstraints([[-1.0], [-2.0]], [0.0, 0.0])
    )
    report = ip.check_licq(problem, [0.0], [0.5, 0.25])
    return claim(
        item="Section 2.2.1",
        statement="the dual function is concave; its maximiser need not be unique where LICQ fails",
        published="always has a unique maximum",
        ours=f"x over x >= 0, 2 x >= 0: three multipliers with q = 0 (stationary to {stationary:g}); LICQ "
        f"{'holds' if report else 'fails'} there, rank {report.rank} of 2",
        holds=stationary == 0 and not report,
        corrected=True,
    )


def _centrality():
    with float64():
        x, z = jnp.array([0.5, 1.25]), jnp.array([2.0, 1.0])
        c = np.asarray(FIACCO.constraints_at(x))
    products, printed = -c * np.asarray(z), np.asarray(x) * np.asarray(z)
    return claim(
        item="Section 2.2.3",
        statement="the pairwise products that centrality compares are -c_i z_i",
        published="x_i z_i",
        ours=f"on the path at mu = 1: -c_i z_i = {listed(products, 'g')}; x_i z_i = {listed(printed, 'g')}",
        holds=np.allclose(products, 1.0) and np.ptp(printed) > 0.1,
        corrected=True,
    )


def _routes(generate):
    worst = 0.0
    for _ in range(100):
        W, J, c, z, g, mu = _random_point(generate)
        full = np.concatenate(ip.solve_primal_dual(W, J, c, z, g, mu, "full"))
        for route in ("cholesky", "ldl", "sparse_cholesky"):
            step = np.concatenate(ip.solve_primal_dual(W, J, c, z, g, mu, route))
            worst = max(worst, float(np.linalg.norm(step - full) / np.linalg.norm(full)))
    return claim(
        item="(2.16), (2.20), (2.22)",
        statement="the full, the reduced and the symmetric system have one solution",
        published="equivalent",
        ours=f"100 random points: largest relative difference {worst:.0e}",
        holds=worst < 1e-8,
    )


def _inertia(generate):
    right, indefinite = 0, 0
    for definite in (True, False):
        for _ in range(100):
            W, J, c, z, _, _ = _random_point(generate, definite=definite)
            weights = -z / c
            found = ip.inertia(np.block([[W, J.T], [J, np.diag(c / z)]]))
            reduced = int(np.sum(np.linalg.eigvalsh(W + (J.T * weights) @ J) > 0))
            right += found == (reduced, 6 + 4 - reduced, 0)
            indefinite += found != (4, 6, 0)
    return claim(
        item="Section 2.2.4",
        statement="the symmetric matrix has n positive and m negative eigenvalues exactly where the reduced one is "
        "positive definite, always so for convex problems",
        published="quasi-definite",
        ours=f"counts agree at {right} of 200 random points; {indefinite} of 100 indefinite W leave it otherwise",
        holds=right == 200 and 0 < indefinite < 100,
    )


def _tangent():
    """From mu = 0.1 towards mu = 0.09 and a gradient error of 0.01, a half and a quarter of that."""
    start = ip.central_path(CORNER, [0.1], [1.0, 1.0])
    x, z, errors = start.x[0], start.z[0], []
    for share in (1.0, 0.5, 0.25):
        mu, noise = 0.1 - 0.01 * share, 0.01 * share * np.ones(2)
        step = ip.solve_primal_dual(np.eye(2), -np.eye(2), -x, z, x - [-1.0, 1.0] + noise, mu)
        exact = ip.noisy_central_path(CORNER, [mu], noise, [1.0, 1.0])
        error = np.concatenate([x + step.dx - exact.x[0], z + step.dz - exact.z[0]])
        errors.append(float(np.linalg.norm(error)))
    return claim(
        item="(2.41) to (2.43)",
        statement="a Newton step from a point of the noisy central path is its tangent: the error is of second order",
        published="tangent, as mu -> mu* and eps -> eps*",
        ours=f"errors for the whole, half and quarter displacement {listed(errors, '.2e')}: ratios "
        f"{errors[0] / errors[1]:.2f} and {errors[1] / errors[2]:.2f}",
        holds=3.8 < errors[0] / errors[1] < 4.3 and 3.8 < errors[1] / errors[2] < 4.3,
    )


def _curved_tangent():
    """Of x_1 + x_2 over x_1 >= 0, x_2 >= x_1^2, whose objective has no curvature; the path is known in closed form."""

    def path(mu):
        first = (np.sqrt(1 + 8 * mu) - 1) / 4
        return np.array([first, first**2 + mu]), np.array([mu / first, 1.0])

    (x, z), errors = path(0.5), {}
    for name, matrix in (("W", np.diag([2 * z[1], 0.0])), ("H", np.zeros((2, 2)))):
        found = []
        for share in (1.0, 0.5, 0.25):
            mu = 0.5 - 0.1 * share
            J, c = np.array([[-1.0, 0.0], [2 * x[0], -1.0]]), np.array([-x[0], x[0] ** 2 - x[1]])
            step, exact = ip.solve_primal_dual(matrix, J, c, z, np.ones(2), mu), np.concatenate(path(mu))
            found.append(float(np.linalg.norm(np.concatenate([x + step.dx, z + step.dz]) - exact)))
        errors[name] = found
    ratios = {name: found[0] / found[1] for name, found in errors.items()}
    return claim(
        item="(2.41) to (2.43), matrix",
        statement="the matrix of the tangent is W = H + sum z_i hess c_i, the Hessian of the Lagrangian; H will do for "
        "affine constraints alone",
        published="H",
        ours="x_1 + x_2 over x_1 >= 0, x_2 >= x_1^2, mu = 0.5, errors for displacements of 0.1, 0.05, 0.025: with W "
        f"{listed(errors['W'], '.1e')}, of second order; with H {listed(errors['H'], '.1e')}, of first order",
        holds=3.5 < ratios["W"] < 4.5 and 1.8 < ratios["H"] < 2.2,
        corrected=True,
    )


def _stability():
    """How much a perturbation of the gradient changes the step, on the path of the same problem."""
    mus = 10.0 ** -np.arange(1.0, 9.0)
    path = ip.central_path(CORNER, mus, [1.0, 1.0])
    condition, along, across, dual, rounding = [], [], [], [], []
    for mu, x, z in zip(mus, path.x, path.z, strict=True):
        base, moved = (
            ip.solve_primal_dual(np.eye(2), -np.eye(2), -x, z, x - [-1.0, 1.0] + eps, mu, "cholesky")
            for eps in (0.0, 1e-3)
        )
        condition.append(float(np.linalg.cond(np.eye(2) + np.diag(z / x))))
        across.append(abs(moved.dx[0] - base.dx[0]) / 1e-3)
        along.append(abs(moved.dx[1] - base.dx[1]) / 1e-3)
        dual.append(abs(moved.dz[0] - base.dz[0]) / 1e-3)
        rounding.append(float(abs(base.dx[0])))
    share = np.array(across) / mus
    found = claim(
        item="Section 2.3.2",
        statement="the reduced matrix has a condition number of order 1/mu, yet a gradient error eps moves the part "
        "of dx across the active constraints by O(mu eps) only; dz and the rest of dx by O(eps)",
        published="O(delta eps) in the range space of the active constraints",
        ours=f"mu = 1e-2 to 1e-8: condition {condition[1]:.0e} to {condition[-1]:.0e}; across {across[1]:.1e} to "
        f"{across[-1]:.1e} of eps, along {along[-1]:.4f}, dz {dual[-1]:.4f}; dx on the path within "
        f"{max(rounding):.0e} of 0",
        holds=condition[-1] > 0.5 / mus[-1] and np.all(share[1:] < 1.1) and np.all(share[1:] > 0.9)
        and abs(along[-1] - 1) < 1e-4 and abs(dual[-1] - 1) < 1e-4,
    )  # fmt: skip
    return found, (mus, condition, across, along)


def _neighbourhood():
    """Exact gradients, many steps of full length: float32 stays at a distance, float64 goes on."""
    solver, distances = ip.InteriorPointSA(1.0, ip.ConstantSigma(0.1), optim.gradients.Exact()), {}
    for name in ("float32", "float64"):

        def go(name=name):
            state = solver.init(CORNER, jnp.ones(2, name), jax.random.key(0))
            step = jax.jit(lambda s: solver.step(CORNER, s))
            found = []
            for _ in range(40):
                state = step(state)
                found.append(float(jnp.max(jnp.abs(state.x - jnp.array([0.0, 1.0], state.x.dtype)))))
            return found

        if name == "float64":
            with float64():
                distances[name] = go()
        else:
            distances[name] = go()
    stalled = max(distances["float32"][-5:]) / min(distances["float32"][-5:])
    return claim(
        item="Section 2.6",
        statement="in finite precision only a neighbourhood of the solution is reached",
        published="numerical bias of the directions: convergence to a neighbourhood",
        ours=f"exact gradients, 40 steps: {distances['float32'][-1]:.0e} from the solution in single precision (mu "
        f"is kept above 1e-5), the same for the last five steps to a factor {stalled:.1f}; "
        f"{distances['float64'][-1]:.0e} in double precision",
        holds=distances["float32"][-1] > 1e-7 and stalled < 1.5 and distances["float64"][-1] < 1e-12,
    )


def _draw(paths, conditioning):
    fig, (left, right) = figure(1, 2)
    for found, colour, name in zip(paths, COLOURS, ("$\\sigma_k = k^{-0.9}$", "$\\sigma = 1/2$"), strict=False):
        left.loglog(MARKS, found[:, :, 4].mean(axis=0), "o-", color=colour, label=name)
    left.set(xlabel="steps", ylabel="$-c(x)^T z$", title="the gap under unit noise")
    mus, condition, across, along = conditioning
    right.loglog(mus, condition, "o-", color=COLOURS[2], label="condition number")
    right.loglog(mus, across, "o-", color=COLOURS[0], label="change of $dx$ across the constraint")
    right.loglog(mus, along, "o-", color=COLOURS[1], label="along it")
    right.set(xlabel="$\\mu$", ylim=(None, 1e13), title="effect of an error of the gradient")  # room for the legend
    return fig
