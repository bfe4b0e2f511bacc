"""Section 6.4 of the course: which solution of ``A x = y`` a descent picks, and how its parametrisation decides it."""

import itertools

import numpy as np

from cumulant import optim
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.geometry import Burg, Euclidean, Hypentropy, Power, Shannon
from cumulant.optim import flows
from cumulant.plotting import COLOURS, figure

TITLE = "Implicit bias: the solution that gradient descent, mirror flows and re-parameterised flows pick"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, sections 6.3 and 6.4"

A, Y = np.array([[1.0, 2.0]]), np.array([2.0])
LINE = optim.LeastSquares(A, Y, reduction="sum")
SIGNED_A, SIGNED_Y = np.array([[1.0, -2.0, 0.5]]), np.array([1.0])
SIGNED = optim.LeastSquares(SIGNED_A, SIGNED_Y, reduction="sum")


@experiment
def run(quick: bool, rng: int) -> Report:
    """Flows and their predicted limits on two small systems; nothing here is random, `rng` is not used."""
    claims = (
        _plain(),
        _powers(quick),
        _exponential(),
        _sparse(quick),
        _not_always_sparse(),
        _signed(quick),
        _hadamard(),
    )
    return Report(claims, _draw)


def _plain() -> Claim:
    found = optim.run(optim.GradientDescent(), LINE, np.zeros(2), max_steps=200, tol=None, every=200).x
    predicted = optim.implicit_bias(A, Y, np.zeros(2), Euclidean()).x
    error = float(np.max(np.abs(found - predicted)))
    return Claim(
        "gradient descent from zero ends at the solution of least norm",
        "A^+ y = (0.4, 0.8)",
        f"({found[0]:.6f}, {found[1]:.6f}), {error:.1e} from the prediction",
        verdict(error < 1e-10 and np.allclose(predicted, (0.4, 0.8), atol=1e-12)),
        item="Proposition 7",
    )


def _powers(quick: bool) -> Claim:
    x0, worst = np.array([0.3, 0.4]), 0.0
    for b in (2.0,) if quick else (2.0, 3.0, 4.0):
        entropy, factor = flows.equivalent_entropy(flows.PowerMap(b))
        through = flows.reparametrised_flow(LINE, flows.PowerMap(b), flows.PowerMap(b).start(x0), [0.05]).last
        worst = max(worst, float(np.max(np.abs(through - flows.mirror_flow(LINE, entropy, x0, [0.05 * factor]).last))))
    return Claim(
        "the flow of x = z^b is the mirror flow of the power entropy with alpha = 2/b, b^2 times faster",
        "the same flow (the factor b^2 of time is left out)",
        f"largest distance {worst:.1e} once time is multiplied by b^2",
        verdict(worst < 1e-7, corrected=True),
        item="Section 6.3, powers",
    )


def _exponential() -> Claim:
    x0 = np.array([0.3, 0.4])
    through = flows.reparametrised_flow(LINE, flows.Exponential(), np.log(x0), [0.3]).last
    error = float(np.max(np.abs(through - flows.mirror_flow(LINE, Burg(), x0, [0.3]).last)))
    return Claim(
        "the flow of x = exp z is the mirror flow of Burg's entropy: its metric has inverse diag(x^2)",
        "Q = diag(1 / x^2)",
        f"largest distance {error:.1e} with Q = diag(x^2)",
        verdict(error < 1e-7, corrected=True),
        item="Section 6.3, exponential",
    )


def _sparse(quick: bool) -> Claim:
    starts = (1e-2, 1e-8) if quick else (1e-1, 1e-2, 1e-4, 1e-8)
    wrong = [optim.implicit_bias(A, Y, np.full(2, start), Shannon()).x[0] for start in starts]
    limit = optim.small_start_limit(A, Y, Shannon()).x
    falling = all(later < earlier for earlier, later in itertools.pairwise(wrong))
    return Claim(
        "with x = z^2 and a small start the limit has least l1 norm; the approach is slow",
        "(0, 1) as the start goes to zero",
        "first entry "
        + ", ".join(f"{w:.2g} from {s:g}" for w, s in zip(wrong, starts, strict=True))
        + f"; limit {limit}",
        verdict(falling and wrong[-1] < 2e-4 and np.allclose(limit, (0, 1), atol=1e-9)),
        item="Section 6.4, sparsity",
    )


def _not_always_sparse() -> Claim:
    power = flows.PowerMap(4 / 3)
    found = flows.reparametrised_flow(LINE, power, power.start(np.full(2, 1e-7)), [200.0]).last
    limit = optim.small_start_limit(A, Y, Power(1.5)).x
    error = float(np.max(np.abs(found - limit)))
    return Claim(
        "the bias is that of the l1 norm for x = z^b only if b >= 2; for b = 4/3 it is that of l^1.5",
        "l1 for every b > 0",
        f"flow ({found[0]:.4f}, {found[1]:.4f}), l^1.5 projection ({limit[0]:.4f}, {limit[1]:.4f}), l1 solution (0, 1)",
        verdict(error < 1e-3 and found[0] > 0.2, corrected=True),
        item="Section 6.4, b > 0",
    )


def _signed(quick: bool) -> Claim:
    z0 = np.full((2, 3), 1e-2 if quick else 1e-3)
    flow = flows.reparametrised_flow(SIGNED, flows.Signed(), z0, [40.0])
    entropy = flows.equivalent_entropy(flows.Signed(), z0).entropy
    predicted = optim.implicit_bias(SIGNED_A, SIGNED_Y, np.zeros(3), entropy)
    error = float(np.max(np.abs(flow.last - predicted.x)))
    drift = float(np.max(np.abs(flow.z[-1][0] * flow.z[-1][1] / (z0[0] * z0[1]) - 1)))
    sparse = optim.small_start_limit(SIGNED_A, SIGNED_Y, Hypentropy(1e-6)).x
    near = float(np.max(np.abs(flow.last - sparse)))
    return Claim(
        "with x = u^2 - v^2 the flow ends at the hypentropy projection, near the solution of least l1 norm",
        "least l1 norm for a small start",
        f"({listed(flow.last, '.4g')}): {error:.1e} from the projection, {near:.1g} from {sparse}; "
        f"u v conserved to {drift:.0e}",
        verdict(error < 1e-7 and near < (1e-2 if quick else 1e-3) and drift < 1e-2),
        item="Section 6.4, signed",
    )


def _hadamard() -> Claim:
    z0 = np.array([[0.5, 0.4, 0.6], [0.1, 0.3, -0.2]])
    through = flows.reparametrised_flow(SIGNED, flows.Hadamard(), z0, [0.7]).last
    entropy, factor = flows.equivalent_entropy(flows.Hadamard(), z0)
    error = float(np.max(np.abs(through - flows.mirror_flow(SIGNED, entropy, z0[0] * z0[1], [0.7 * factor]).last)))
    return Claim(
        "the flow of x = u v is a hypentropy flow too, with beta = |u_0^2 - v_0^2| / 2, twice as fast",
        "not stated",
        f"largest distance {error:.1e}",
        verdict(error < 1e-7),
        item="Section 6.3, products",
    )


def _draw():
    fig, (left, right) = figure(1, 2)
    line = np.linspace(0, 1.2, 50)
    left.plot(line, (2 - line) / 2, color=COLOURS[6], linewidth=1, label="$x_1 + 2 x_2 = 2$")
    x0 = np.array([0.05, 0.05])
    named = (("Euclidean", Euclidean()), ("Shannon", Shannon()), ("power 1/2", Power(0.5)), ("Burg", Burg()))
    for colour, (name, entropy) in zip(COLOURS, named, strict=False):
        times = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 300)])
        flow = flows.mirror_flow(LINE, entropy, x0, times).x
        limit = optim.implicit_bias(A, Y, x0, entropy).x
        left.plot(*flow.T, color=colour, label=name)
        left.plot(*limit, "o", color=colour)
    left.set(
        xlabel="$x_1$", ylabel="$x_2$", title="mirror flows and their predicted limits", xlim=(0, 1), ylim=(0, 1.1)
    )
    starts = np.geomspace(1e-8, 1e-1, 30)
    for colour, (name, entropy) in zip(COLOURS[1:], named[1:], strict=False):
        wrong = [optim.implicit_bias(A, Y, np.full(2, s), entropy).x[0] for s in starts]
        right.plot(starts, wrong, color=colour, label=name)
    dense = [optim.implicit_bias(A, Y, np.full(2, s), Power(1.5)).x[0] for s in starts]
    right.plot(starts, dense, color=COLOURS[4], label="power 3/2 ($x = z^{4/3}$)")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="start",
        ylabel="$x_1$ of the limit",
        title="the solution of least $\\ell^1$ norm has $x_1 = 0$",
    )
    return fig
