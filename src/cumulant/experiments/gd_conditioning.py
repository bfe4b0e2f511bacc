"""Figures 9 and 10 of the course: what the conditioning of a quadratic does to gradient descent."""

import jax.numpy as jnp
import numpy as np

from cumulant import optim
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator

TITLE = "Gradient descent on quadratics: step sizes, conditioning, and the worst function"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, sections 4 and 5, figures 9 and 10"


def huber(x, slope):
    """Half a square up to `slope`, a line of that slope beyond."""
    size = jnp.abs(x[0])
    return jnp.where(size < slope, size**2 / 2, slope * size - slope**2 / 2)


@experiment
def run(quick: bool, rng: int) -> Report:
    """The factor of one step by its size, the zig-zag, the cost of conditioning, and three rates."""
    generate = generator(rng)
    contraction, measured = _contraction()
    zigzag, paths = _zigzag()
    claims = (
        contraction, zigzag, _conditioning(), _conjugate(20 if quick else 100), _degenerate(generate, quick), _worst(),
        _greedy_on_the_worst((10, 30) if quick else (10, 100, 1000)),
    )  # fmt: skip
    return Report(claims, lambda: _draw(measured, paths))


def _iterates(solver, problem, x0, steps):
    points = [np.asarray(x0, dtype=np.float64)]
    optim.run(solver, problem, x0, max_steps=steps, tol=None, every=1, callback=lambda s: points.append(np.array(s.x)))
    return np.array(points[-steps - 1 :])


def _contraction():
    """Figure 10: the worst factor by which a step shrinks the distance, with mu = 1 and L = 10."""
    problem = optim.Quadratic(np.diag([1.0, 10.0]), [0.0, 0.0])
    sizes = np.concatenate([np.linspace(0.02, 0.2, 10), [2 / 11]])
    factors = [
        max(np.linalg.norm(_iterates(optim.GradientDescent(float(t)), problem, x, 1)[1]) for x in np.eye(2))
        for t in sizes
    ]
    expected = optim.rates.gd_contraction(10.0, 1.0, sizes)
    best = sizes[int(np.argmin(factors))]
    agreement = float(np.max(np.abs(np.array(factors) - expected)))
    claim = Claim(
        "a step contracts the distance by h(tau) = max(|1 - tau mu|, |1 - tau L|), least at 2 / (L + mu)",
        "V-shaped, least at 2 / (L + mu)",
        f"mu = 1, L = 10: measured within {agreement:.0e} of h; best of the grid {best:.4f} (2/11 = {2 / 11:.4f}), "
        f"factor {min(factors):.4f}",
        verdict(agreement < 1e-12 and abs(best - 2 / 11) < 1e-12),
        item="Figure 10",
    )
    return claim, (sizes, np.array(factors))


def _zigzag():
    """Figure 9: exact line search from the worst start."""
    problem = optim.Quadratic(np.diag([1.0, 10.0]), [0.0, 0.0])
    points = _iterates(optim.GradientDescent(optim.ExactLineSearch()), problem, [10.0, 1.0], 12)
    gradients = points * [1.0, 10.0]
    cosines = np.sum(gradients[1:] * gradients[:-1], axis=1) / (
        np.linalg.norm(gradients[1:], axis=1) * np.linalg.norm(gradients[:-1], axis=1)
    )
    values = np.sum(points * gradients, axis=1) / 2
    ratios = values[1:] / values[:-1]
    claim = Claim(
        "with the greedy step successive directions are orthogonal; from the worst start f shrinks by "
        "((L - mu) / (L + mu))^2 at each step and no faster",
        "orthogonal directions, zig-zag",
        f"largest cosine {np.max(np.abs(cosines)):.0e}; factors of f {ratios.min():.6f} to {ratios.max():.6f}, "
        f"(9/11)^2 = {(9 / 11) ** 2:.6f}",
        verdict(np.max(np.abs(cosines)) < 1e-9 and np.ptp(ratios) < 1e-9),
        item="Figure 9; Remark 4",
    )
    fixed = {tau: _iterates(optim.GradientDescent(tau), problem, [10.0, 1.0], 12) for tau in (0.05, 0.15)}
    return claim, {"greedy": points} | {f"tau = {tau:.2f}": path for tau, path in fixed.items()}


def _conditioning() -> Claim:
    """Steps to divide the distance by a million, over four condition numbers."""
    needed = {}
    for condition in (10.0, 100.0, 1000.0, 10_000.0):
        problem = optim.Quadratic(np.diag([1.0, condition]), [0.0, 0.0])
        factor = optim.rates.gd_contraction(condition, 1.0, 2 / (condition + 1))
        expected = int(np.ceil(-6 * np.log(10) / np.log(factor)))
        x = optim.run(
            optim.GradientDescent("2/(L+mu)"), problem, [1.0, 1.0], max_steps=expected, tol=None, every=expected
        ).x
        needed[condition] = expected, float(np.linalg.norm(x) / np.sqrt(2))
    logs = np.log([steps for steps, _ in needed.values()])
    power = float(np.polyfit(np.log(list(needed)), logs, 1)[0])
    reached = all(0.9e-6 < distance <= 1.0e-6 * (1 + 1e-9) for steps, distance in needed.values() if steps > 100)
    return Claim(
        "the number of steps grows in proportion to the condition number L / mu",
        "rate 1 - 2 mu / L",
        "steps to 1e-6: "
        + ", ".join(f"{condition:g}: {steps}" for condition, (steps, _) in needed.items())
        + f"; power {power:.2f}",
        verdict(reached and 0.9 < power < 1.1),
        item="(17)",
    )


def _conjugate(n: int) -> Claim:
    matrix = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    problem, target = optim.Quadratic(matrix, np.ones(n)), np.linalg.solve(matrix, np.ones(n))
    spectrum = np.linalg.eigvalsh(matrix)
    points = _iterates(optim.ConjugateGradient(), problem, np.zeros(n), n)
    error = np.linalg.norm(points - target, axis=1) / np.linalg.norm(target)
    ours = int(np.argmax(error <= 1e-6))
    # Gradient descent in the eigenbasis, exactly.
    values, vectors = np.linalg.eigh(matrix)
    parts, tau, steps = (vectors.T @ target) ** 2, 2 / (values[0] + values[-1]), 1
    while np.sqrt(np.sum((1 - tau * values) ** (2 * steps) * parts) / np.sum(parts)) > 1e-6:
        steps += 1
    return Claim(
        "conjugate gradients are far better on the same system",
        "far better",
        f"Laplacian of {n} points, condition number {spectrum[-1] / spectrum[0]:.0f}: relative error 1e-6 after {ours} "
        f"steps against {steps}",
        verdict(0 < 20 * ours < steps),
        item="Section 7.2, conjugate gradients",
    )


def _degenerate(generate, quick: bool) -> Claim:
    """Proposition 5: quadratics whose smallest eigenvalues may be anything."""
    worst = beyond = 0.0
    k = np.arange(1, 200)
    for _ in range(100 if quick else 1000):
        spectrum, start, tau = 10.0 ** generate.uniform(-4, 0, 5), generate.normal(size=5), generate.uniform(0.1, 1.0)
        gaps = 0.5 * ((1 - tau * spectrum) ** (2 * k[:, None]) * spectrum) @ start**2
        worst = max(worst, float(np.max(gaps * tau * k / np.sum(start**2))))
        bound = optim.rates.gd_degenerate_quadratic(tau, k, float(np.sum(start**2)))
        beyond = max(beyond, float(np.max(gaps / bound)))
    return Claim(
        "without strong convexity f(x_k) - f* <= dist^2 / (4 e tau k): eleven times less than printed",
        "dist^2 / (tau k)",
        f"largest gap tau k / dist^2 {worst:.4f}, 1 / (4 e) = {1 / (4 * np.e):.4f}; largest share of the exact worst "
        f"case {beyond:.4f}",
        verdict(0.9 < 4 * np.e * worst <= 1 and 0.9 < beyond <= 1, loose=True),
        item="Proposition 5",
    )


def _worst() -> Claim:
    """A parabola that turns into a line just so that k steps of size 1/L stay on the line."""
    ratios = []
    for k in (1, 10, 49):
        problem = optim.Objective(huber, 1.0 / (2 * k + 1), smoothness=1.0, convex=True)
        value = optim.run(optim.GradientDescent("1/L"), problem, [1.0], max_steps=k, tol=None, every=k).value
        ratios.append(value / float(optim.rates.gd_convex(1.0, 1.0, k)))
    return Claim(
        "for convex functions f(x_k) - f* <= L |x_0 - x*|^2 / (4 k + 2), and a function attains it",
        "L |x_0 - x*|^2 / (2 (k + 1))",
        "gap over the bound on a Huber function, k = 1, 10, 49: " + listed(ratios, ".9f"),
        verdict(np.max(np.abs(np.array(ratios) - 1)) < 1e-9, loose=True),
        item="(21)",
    )


def _greedy_on_the_worst(steps) -> Claim:
    """The start of the zig-zag, with a condition number of 4 k for k steps; then the share tends to 1 / (8 e)."""
    shares = {}
    for k in steps:
        problem, start = optim.Quadratic(np.diag([1.0, 4.0 * k]), [0.0, 0.0]), np.array([4.0 * k, 1.0])
        solver = optim.GradientDescent(optim.ExactLineSearch())
        value = optim.run(solver, problem, start, max_steps=k, tol=None, every=k).value
        shares[k] = k * value / (4.0 * k * float(start @ start))
    return Claim(
        "a line search does not beat 1/k in the worst case: for each k there is a quadratic on which the best step "
        "along the gradient leaves k (f(x_k) - f*) / (L |x_0 - x*|^2) at about 1 / (8 e) = 0.046",
        "does not improve the rate",
        f"k (f(x_k) - f*) / (L |x_0 - x*|^2) at k = {', '.join(map(str, steps))}: {listed(shares.values(), '.5f')}",
        verdict(all(0.9 < 8 * np.e * share < 1.1 for share in shares.values())),
        item="Section 5.3, line search",
    )


def _draw(measured, paths):
    fig, (left, right) = figure(1, 2)
    grid = np.linspace(-11, 11, 200)
    x, y = np.meshgrid(grid, np.linspace(-3, 3, 200))
    left.contour(x, y, (x**2 + 10 * y**2) / 2, levels=12, colors="#bbbbbb", linewidths=0.7)
    for i, (name, path) in enumerate(paths.items()):
        left.plot(path[:, 0], path[:, 1], "o-", ms=3, color=COLOURS[i], label=name)
    left.set(xlabel="$x_1$", ylabel="$x_2$", title="steps on a quadratic, $L / \\mu = 10$", xlim=(-3, 11), ylim=(-2, 2))
    sizes, factors = measured
    line = np.linspace(0.0, 0.205, 300)
    right.plot(line, optim.rates.gd_contraction(10.0, 1.0, line), color=COLOURS[0], label="$h(\\tau)$")
    right.plot(sizes, factors, "o", color=COLOURS[1], label="measured")
    right.axvline(2 / 11, ls="--", color=COLOURS[6], lw=1.0, label="$2/(L + \\mu)$")
    right.set(xlabel="step size $\\tau$", ylabel="factor of one step", title="contraction", ylim=(0.75, 1.05))
    return fig
