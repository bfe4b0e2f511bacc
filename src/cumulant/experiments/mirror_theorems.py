"""Section 6 of the course: entropies, divergences, mirror flows, and each printed formula that is wrong."""

import numpy as np
import scipy.linalg
from scipy.optimize import minimize

from cumulant import optim
from cumulant.experiments.base import Report, claim, experiment, listed
from cumulant.geometry import Burg, LogDet, Power, Shannon, VonNeumann, csiszar
from cumulant.optim import flows
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator

TITLE = "Entropies, mirror flows and their corrections; the flow of positive semi-definite matrices"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, section 6"


@experiment
def run(quick: bool, rng: int) -> Report:
    """Random points for what is claimed of all, single examples for what is wrong."""
    generate = generator(rng)
    claims = (
        _square_entropy(),
        _burg(generate),
        _log_det(),
        _divergence_of_matrices(),
        _csiszar(generate),
        *_psd(),
        _dual_parametrisation(),
        _projections(generate, 1 if quick else 5),
    )
    return Report(claims, _draw)


def _square_entropy():
    x, h = 1.7, 1e-6
    slopes = [((x + h) ** 2 * c - (x - h) ** 2 * c) / (2 * h) for c in (0.5, 1.0)]
    return claim(
        item="Section 6.1",
        statement="the entropy whose gradient is the identity is |x|^2 / 2",
        published="psi = |.|^2, grad psi = Id",
        ours=f"slopes at 1.7: {slopes[0]:.4f} of x^2 / 2, {slopes[1]:.4f} of x^2",
        holds=abs(slopes[0] - x) < 1e-8 and abs(slopes[1] - x) > 1,
        corrected=True,
    )


def _burg(generate):
    x, y = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    printed = float(np.sum(-np.log(y / x) - x / y + 1))
    ours = float(Burg().divergence(x, y))
    a, b = generate.exponential(size=(2, 1000, 3))
    least = float(np.min(Burg().divergence(a, b)))
    return claim(
        item="(27)",
        statement="the divergence of Burg's entropy is x/y - log(x/y) - 1; the gradient of -log x + x - 1 is 1 - 1/x",
        published="-log(y/x) - x/y + 1; -1/x",
        ours=f"x = (1, 2), y = (2, 1): {ours:g}, printed {printed:g}, which is negative; least of 1000 {least:.1e}; "
        f"gradient at 2: {float(Burg().gradient([2.0])[0]):g}",
        holds=abs(ours - 0.5) < 1e-12 and printed < 0 <= least and float(Burg().gradient([2.0])[0]) == 0.5,
        corrected=True,
    )


def _log_det():
    X, S, h = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 0.3], [0.3, -0.5]]), 1e-5
    inverse = np.linalg.inv(X)
    difference = (-np.linalg.inv(X + h * S) + np.linalg.inv(X - h * S)) / (2 * h)  # of the gradient, -X^-1
    ours = np.asarray(LogDet().hessian_apply(X, S))
    off = [float(np.max(np.abs(difference - each))) for each in (ours, -inverse @ S @ inverse)]
    moved = float(np.max(np.abs(X @ ours @ X - S)))
    step = np.asarray(VonNeumann().hessian_apply(X, S))
    ahead, behind = (np.asarray(scipy.linalg.logm(X + sign * h * S)) for sign in (1, -1))
    logarithms = (ahead - behind) / (2 * h)
    closed = float(np.max(np.abs(step - logarithms)))
    return claim(
        item="Section 6.3, -log det",
        statement="the Hessian of -log det X is S -> +X^-1 S X^-1, with inverse S -> X S X; the derivative of the "
        "matrix logarithm has a closed form too (Daleckii and Krein)",
        published="-X^-1 S X^-1; no closed form for the derivative of log",
        ours=f"differences of the gradient: {off[0]:.0e} away, {off[1]:.2f} from the printed one; X hess[S] X - S "
        f"{moved:.0e}; the derivative of log {closed:.0e} from differences",
        holds=off[0] < 1e-8 and off[1] > 0.1 and moved < 1e-12 and closed < 1e-8,
        corrected=True,
    )


def _divergence_of_matrices():
    X, Y = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 0.5], [0.5, 2.0]])
    ratio = X @ np.linalg.inv(Y)
    expected = float(np.trace(ratio) - np.log(np.linalg.det(ratio)) - 2)
    ours, same = float(LogDet().divergence(X, Y)), float(LogDet().divergence(X, X))
    printed = float(-np.log(np.linalg.det(X)))
    return claim(
        item="Remark 8",
        statement="the divergence of -log det is tr(X Y^-1) - log det(X Y^-1) - d",
        published="D(X) = -log det X",
        ours=f"{ours:.6f} (formula {expected:.6f}), D(X|X) = {same:.0e}; printed {printed:.6f}, negative",
        holds=abs(ours - expected) < 1e-12 and abs(same) < 1e-12 and printed < 0,
        corrected=True,
    )


def _csiszar(generate):
    x, y = generate.exponential(size=(2, 500, 3))
    same = float(np.max(np.abs(np.asarray(csiszar(Shannon(), x, y)) - np.asarray(Shannon().divergence(x, y)))))
    others = {
        str(entropy): float(np.max(np.abs(np.asarray(csiszar(entropy, x, y)) - np.asarray(entropy.divergence(x, y)))))
        for entropy in (Burg(), Power(0.5), Power(2.0))
    }
    return claim(
        item="Remark 9",
        statement="among the entropies only that of Shannon has one divergence for both constructions, Bregman's and "
        "Csiszár's",
        published="only for KL",
        ours=f"500 pairs, largest difference: Shannon {same:.0e}; " + listed(others, ".1f"),
        holds=same < 1e-12 and min(others.values()) > 0.1,
    )


def _psd():
    """X = Z Z^T: the velocity by the chain rule, and whether its metric is a field of Hessians."""
    target = np.array([[1.0, 0.3], [0.3, 2.0]])
    Z = np.array([[0.8, -0.2], [0.5, 1.1]])

    def slope(X):
        return X - target  # of |X - target|^2 / 2

    X = Z @ Z.T
    S = slope(X) + slope(X).T
    velocity = -(slope(X) + slope(X).T) @ Z
    exact = velocity @ Z.T + Z @ velocity.T
    problem = optim.Objective(_distance_to, target, convex=True)
    h = 1e-4
    flow = flows.reparametrised_flow(problem, flows.PositiveSemidefinite(), Z, [0.0, h, 2 * h]).x
    measured = (-3 * flow[0] + 4 * flow[1] - flow[2]) / (2 * h)
    off = [float(np.max(np.abs(exact - sign * (X @ S + S @ X)))) for sign in (-1, 1)]
    asymmetry = {
        "Z Z^T": _third_order_asymmetry(lambda X: _lyapunov(X), X),
        "-log det": _third_order_asymmetry(lambda X: np.kron(X, X), X),
    }
    return (
        claim(
            item="(32)",
            statement="the flow of X = Z Z^T is X' = -(X S + S X), S = grad f + (grad f)^T",
            published="X' = X S + S X",
            ours=f"by the chain rule {off[0]:.0e} away, {off[1]:.1f} from the printed one; integrated "
            f"{float(np.max(np.abs(measured - exact))):.0e} away",
            holds=off[0] < 1e-12 and off[1] > 1 and np.max(np.abs(measured - exact)) < 1e-4,
            corrected=True,
        ),
        claim(
            item="Section 6.3, counter-example",
            statement="the flow of X = Z Z^T is no mirror flow: its metric is not a field of Hessians, whose "
            "derivatives would be symmetric in all three directions",
            published='"most likely" not',
            ours="largest asymmetry of the derivative of the metric: "
            + ", ".join(f"{name} {value:.1e}" for name, value in asymmetry.items()),
            holds=asymmetry["Z Z^T"] > 1e-2 and asymmetry["-log det"] < 1e-5,
        ),
    )


def _distance_to(X, target):
    return ((X - target) ** 2).sum() / 2


def _lyapunov(X):
    """``S -> 2 (X S + S X)`` on symmetric matrices, as a matrix of stacked columns."""
    eye = np.eye(len(X))
    return 2 * (np.kron(X, eye) + np.kron(eye, X))


_SYMMETRIC = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, np.sqrt(0.5), np.sqrt(0.5), 0]])


def _third_order_asymmetry(inverse_metric, X, h=1e-5):
    """Of ``d_k G_ij`` under exchange of i and k, G the inverse of the metric's operator in symmetric coordinates."""

    def metric(at):
        return np.linalg.inv(_SYMMETRIC @ inverse_metric(at) @ _SYMMETRIC.T)

    basis = [row.reshape(2, 2) for row in _SYMMETRIC]
    slopes = np.stack([(metric(X + h * B) - metric(X - h * B)) / (2 * h) for B in basis])
    return float(np.max(np.abs(slopes - np.swapaxes(slopes, 0, 1))))


def _dual_parametrisation():
    z = np.log(np.array([0.5, 2.0]))
    jacobian = np.diag(np.exp(z))
    Q, x = jacobian @ jacobian.T, np.exp(z)
    burg = np.diag(1 / np.asarray(Burg().hessian_apply(x, np.ones(2))))
    return claim(
        item="Section 6.3, exponential",
        statement="for x = exp z, Q = diag(x^2), the inverse of the Hessian diag(1 / x^2) of Burg's entropy",
        published="Q = diag(1 / x^2)",
        ours=f"x = (0.5, 2): Q = diag({Q[0, 0]:g}, {Q[1, 1]:g}), printed diag({1 / x[0] ** 2:g}, {1 / x[1] ** 2:g})",
        holds=np.allclose(Q, burg, atol=1e-12) and not np.allclose(Q, np.diag(1 / x**2)),
        corrected=True,
    )


def _projections(generate, systems):
    worst = 0.0
    for _ in range(systems):
        A = generate.uniform(0.2, 2.0, size=(2, 5))
        y, x0 = A @ generate.exponential(size=5), generate.uniform(0.5, 1.5, size=5)
        problem = optim.LeastSquares(A, y, reduction="sum")
        for entropy in (Shannon(), Burg()):
            limit = optim.mirror_flow(problem, entropy, x0, [0.0, 1e4]).last
            found = minimize(
                lambda x, e=entropy, start=x0: float(e.divergence(x, start)), limit + 0.01, bounds=[(1e-9, None)] * 5,
                constraints={"type": "eq", "fun": lambda x, A=A, y=y: A @ x - y}, options={"ftol": 1e-15},
            ).x  # fmt: skip
            worst = max(worst, float(np.max(np.abs(limit - found))))
    return claim(
        item="Proposition 8",
        statement="a mirror flow on a loss of A x that vanishes at A x = y ends at the point of that set nearest to "
        "its start in Bregman divergence",
        published="(33)",
        ours=f"{systems} random systems 2 x 5, two entropies: {worst:.1e} from a constrained minimisation",
        holds=worst < 1e-4,
    )


def _draw():
    fig, (left, right) = figure(1, 2)
    x = np.linspace(0.15, 4, 300)
    left.plot(x, x - np.log(x) - 1, color=COLOURS[0], label="$x/y - \\log(x/y) - 1$")
    left.plot(x, np.log(x) - x + 1, "--", color=COLOURS[1], label="as printed")
    left.set(xlabel="$x$, at $y = 1$", title="the divergence of Burg's entropy")
    target, Z = np.array([[1.0, 0.3], [0.3, 2.0]]), np.array([[0.8, -0.2], [0.5, 1.1]])
    problem, times = optim.Objective(_distance_to, target, convex=True), np.linspace(0, 1.5, 60)
    X = flows.reparametrised_flow(problem, flows.PositiveSemidefinite(), Z, times).x
    mirror = flows.mirror_flow(problem, LogDet(), Z @ Z.T, times).x
    for each, name, style in ((X, "$X = ZZ^T$", "-"), (mirror, "mirror flow of $-\\log\\det$", "--")):
        right.plot(each[:, 0, 0], each[:, 1, 1], style, color=COLOURS[style == "--"], label=name)
    right.plot(*np.diag(target), "o", color=COLOURS[6], label="minimum")
    right.set(xlabel="$X_{11}$", ylabel="$X_{22}$", title="flows of matrices")
    return fig
