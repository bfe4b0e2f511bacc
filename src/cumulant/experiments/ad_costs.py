"""Section 10 of the course: what derivatives cost, counted on programs, and the formulas that print got wrong."""

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import layers
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.layers import autodiff
from cumulant.plotting import COLOURS, figure
from cumulant.precision import float64

TITLE = "Automatic differentiation: operations and memory of each mode, and three corrected formulas"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, section 10"

CHAINS = ((784, 100, 100, 10, 1), (100, 5, 200, 5, 100))


@experiment
def run(quick: bool, rng: int) -> Report:
    """Count, compile and compare; nothing here is random, `rng` is not used."""
    sizes = (5, 20, 80) if quick else (5, 10, 20, 50, 100, 200, 500)
    modes, ratios = _modes(sizes)
    claims = (
        _chains(),
        *modes,
        _swell(),
        _checkpoints(128 if quick else 1024),
        _reversible(1000 if quick else 10_000),
        _implicit_memory(100 if quick else 1000),
        _fixed_point(),
        _transport(),
        _adjoint(),
    )
    notes = (
        "Operations of the modes are counted while they are done, those of Jacobians of chains on the jaxpr; memory is "
        "what the compiled program asks for. No times are measured. Constant means: the largest is less than half as "
        "much again as the smallest."
    )
    return Report(claims, lambda: _draw(sizes, ratios), notes)


def _apply_chain(matrices, x):
    for matrix in matrices:
        x = jnp.tanh(matrix @ x)
    return x


def _chains() -> Claim:
    found, exact = [], True
    for dims in CHAINS:
        chain = functools.partial(_apply_chain, [jnp.ones((m, n)) for n, m in itertools.pairwise(dims)])
        x = jnp.ones(dims[0])
        value = layers.operations(chain, x).products
        # JAX starts from the identity, and multiplies by it; the formulas start from the first Jacobian.
        forward = layers.operations(jax.jacfwd(chain), x).products - value - dims[0] ** 2 * dims[1]
        backward = layers.operations(jax.jacrev(chain), x).products - value - dims[-1] ** 2 * dims[-2]
        exact &= (forward, backward) == (layers.chain_cost(dims, "forward"), layers.chain_cost(dims, "backward"))
        found.append(f"{dims}: forward {forward}, backward {backward}, best order {layers.chain_cost(dims)}")
    return Claim(
        "a Jacobian costs n_0 sum n_k n_{k+1} forward and n_t sum n_k n_{k+1} backward",
        "8631840 and 89400; 250000 both ways, best order 57500",
        "; ".join(found),
        verdict(exact),
        item="Section 10.5",
    )


def _modes(sizes):
    """Each mode does its work with counted numbers: nothing is multiplied by a number of inputs here."""
    ratios: dict[str, list[float]] = {"reverse": [], "forward": [], "differences": []}
    for p in sizes:
        W, u, x = np.full((10, p), 0.1), np.ones(10), np.linspace(-1.0, 1.0, p)

        def network(x, W=W, u=u):
            return autodiff.total(autodiff.tanh(W @ autodiff.tanh(x)) * u)

        alone = autodiff.count(network, x)[1].total
        gradients = {
            "reverse": lambda x, f=network: autodiff.reverse_vjp(f, x)[1],
            "forward": lambda x, f=network: autodiff.forward_grad(f, x),
            "differences": lambda x, f=network: autodiff.fd_grad(f, x),
        }
        for name, gradient in gradients.items():
            ratios[name].append(autodiff.count(gradient, x)[1].total / alone)
    per_input = {name: np.array(found) / sizes for name, found in ratios.items()}
    claims = [
        Claim(
            "backward mode: a gradient costs a constant times one evaluation",
            "a constant, the same for any number of inputs",
            f"{min(ratios['reverse']):.2f} to {max(ratios['reverse']):.2f} times, for {sizes[0]} to {sizes[-1]} inputs",
            verdict(max(ratios["reverse"]) <= 4 and max(ratios["reverse"]) < 1.5 * min(ratios["reverse"])),
            item="Backward mode",
        )
    ]
    for name, title in (("forward", "forward mode"), ("differences", "finite differences")):
        least, most = per_input[name].min(), per_input[name].max()
        claims.append(
            Claim(
                f"{title}: a gradient costs a number of evaluations proportional to the inputs",
                "p times a constant",
                f"{least:.2f} to {most:.2f} evaluations for each input, for {sizes[0]} to {sizes[-1]} inputs",
                verdict(most < 1.5 * least),
                item=title.capitalize(),
            )
        )
    return claims, ratios


def _swell() -> Claim:
    """The derivative of an iterated map as a formula written out, and as a graph that shares its parts."""
    x = autodiff.Expression.variable("x")
    iterated = x
    for _ in range(12):
        iterated = 3.7 * iterated * (1 - iterated)
    slope = autodiff.symbolic_grad(iterated, x)
    written, shared = slope.operations(shared=False), slope.operations()
    return Claim(
        "symbolic differentiation ignores the order of evaluation: without sharing, formulas swell",
        "stated",
        f"12 iterations of a quadratic map: {written} operations written out, {shared} as a graph",
        verdict(written > 100 * shared),
        item="Symbolic mode",
    )


def _wave(x, theta, k):
    return jnp.sin(theta * x)


def _temporary(function, *arguments):
    analysis: Any = jax.jit(function).lower(*arguments).compile().memory_analysis()
    return analysis.temp_size_in_bytes


def _checkpoints(length: int) -> Claim:
    costs = [layers.checkpoint_cost(t) for t in (8, 64, 1024)]
    x0, state = jnp.ones(1000), 4000
    memory = {}
    for kind in (None, "bisection"):

        def loss(theta, kind=kind):
            return jnp.sum(layers.recurrent(_wave, x0, theta, length, checkpoint=kind))

        memory[kind] = _temporary(jax.grad(loss), 1.0) / state
    fine = costs == [(12, 4), (192, 7), (5120, 11)] and memory["bisection"] < 4 * np.log2(length) < memory[None]
    return Claim(
        "checkpoints by bisection: log2 t + 1 states, (t/2) log2 t steps done again",
        "memory log t, time t log t",
        f"t = 8, 64, 1024: {', '.join(f'{c.extra_steps} steps, {c.stored_states} states' for c in costs)}; compiled "
        f"for t = {length}: room for {memory['bisection']:.0f} states, for {memory[None]:.0f} without",
        verdict(fine),
        item="Section 10.7, checkpoints",
    )


def _position(s, theta, t):
    return s


def _force(r, theta, t):
    return -theta * r


def _reversible(steps: int) -> Claim:
    r, s = layers.leapfrog(_position, _force, 1.0, 0.0, 1.0, 0.1, steps)
    back = layers.leapfrog_back(_position, _force, r, s, 1.0, 0.1, steps)
    error = max(abs(float(back[0]) - 1), abs(float(back[1])))

    def loss(r, n):
        return jnp.sum(layers.leapfrog(_position, _force, r, r, 1.0, 0.1, n)[0])

    memory = [_temporary(jax.grad(functools.partial(loss, n=n)), jnp.ones(1000)) for n in (10, 1000)]
    return Claim(
        "the leapfrog scheme can be undone, so that its gradient stores no state",
        "memory independent of t",
        f"{steps} steps and back: off by {error:.1e}; memory of the gradient for 10 and 1000 steps: "
        f"{memory[0]} and {memory[1]} bytes",
        verdict(error < 1e-13 and memory[0] == memory[1]),
        item="Section 10.7, leapfrog",
    )


def _map(x, theta):
    return jnp.tanh(theta @ x + 1.0)


def _implicit_memory(length: int) -> Claim:
    theta = jnp.eye(50) * 0.5

    def unrolled(theta):
        x = jax.lax.scan(lambda x, _: (_map(x, theta), None), jnp.zeros(50), None, length=length)[0]
        return jnp.sum(x)

    def implicit(theta):
        return jnp.sum(layers.fixed_point(_map, jnp.zeros(50), theta, max_steps=length))

    plain, ours = (_temporary(jax.grad(f), theta) for f in (unrolled, implicit))
    same = float(jnp.max(jnp.abs(jax.grad(unrolled)(theta) - jax.grad(implicit)(theta))))
    return Claim(
        "implicit differentiation trades memory for a linear solve",
        "stated",
        f"{length} iterations in dimension 50: {plain / 1024:.0f} kB unrolled, {ours / 1024:.0f} kB implicit, "
        f"gradients {same:.0e} apart",
        verdict(ours < plain and same < 1e-4),
        item="Section 10.7, memory",
    )


def _cosine(x, theta):
    return jnp.cos(theta * x)


def _fixed_point() -> Claim:
    with float64():
        found = float(jax.grad(lambda t: layers.fixed_point(_cosine, 0.5, t))(1.0))
    h = 1e-5
    difference = float(layers.fixed_point(_cosine, 0.5, 1 + h) - layers.fixed_point(_cosine, 0.5, 1 - h)) / (2 * h)
    return Claim(
        "the derivative of a fixed point is (I - d_x h)^-1 d_theta h",
        "-(d_x h)^-1 d_theta h (equation 66): -0.739085 for cos(theta x) at 1",
        f"{found:.6f}, finite differences {difference:.6f}",
        verdict(abs(found - difference) < 1e-6 and abs(found + 0.297474) < 1e-6, corrected=True),
        item="(66)",
    )


def _transport() -> Claim:
    cost, a, b = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]]), np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4])
    da, db, h, epsilon = np.array([1.0, -2.0, 1.0]), np.array([1.0, -1.0]), 1e-5, 0.5
    found = layers.sinkhorn(cost, a, b, epsilon)
    along = float(found.f @ da + found.g @ db)
    ahead, behind = (layers.sinkhorn(cost, a + s * h * da, b + s * h * db, epsilon).value for s in (1, -1))
    difference = float(ahead - behind) / (2 * h)
    return Claim(
        "the gradient of entropic transport in the histograms is eps log u",
        f"log u: {along / epsilon:.6f} along (1, -2, 1; 1, -1)",
        f"{along:.6f}, finite differences {difference:.6f}",
        verdict(abs(along - difference) < 1e-6, corrected=True),
        item="Section 10.7, transport",
    )


def _decay(x, theta, t):
    return -theta * x


def _adjoint() -> Claim:
    exact, found = -2 * 1.5**2 * np.exp(-2.8), []
    with float64():
        for steps in (10, 100, 1000):

            def loss(theta, steps=steps):
                return layers.neural_ode(_decay, 1.5, theta, 2.0, steps, method="euler") ** 2 / 2

            found.append(float(jax.grad(loss)(0.7)))
    errors = np.abs(np.array(found) - exact)
    order = float(np.log10(errors[0] / errors[-1]) / 2)
    return Claim(
        "the discrete adjoint converges to the continuous one, which starts from the end: z(T) = grad L(x(T))",
        "z(0) = grad L (equation 65)",
        f"Euler with 10, 100, 1000 steps: {listed(found, '.6f')}; exact {exact:.6f}; order {order:.2f}",
        verdict(0.9 < order < 1.1, corrected=True),
        item="(65)",
    )


def _draw(sizes, ratios):
    fig, (left, right) = figure(1, 2)
    for (name, found), colour in zip(ratios.items(), COLOURS, strict=False):
        left.loglog(
            sizes,
            found,
            "o-",
            color=colour,
            label={"reverse": "backward mode", "forward": "forward mode"}.get(name, "finite differences"),
        )
    left.set(xlabel="inputs", ylabel="operations / those of the function", title="the gradient of a network")
    lengths = 2 ** np.arange(1, 13)
    bisection = [layers.checkpoint_cost(int(t)) for t in lengths]
    binomial = [layers.checkpoint_cost(int(t), "binomial") for t in lengths]
    for costs, label in ((bisection, "bisection: steps again / $t$"), (binomial, "binomial, as many states")):
        right.loglog(lengths, [cost.extra_steps for cost in costs] / lengths, "o-", label=label)
    right.loglog(lengths, [c.stored_states for c in bisection], "--", color=COLOURS[2], label="states kept")
    right.loglog(lengths, lengths, ":", color=COLOURS[6], label="states without checkpoints")
    right.set(xlabel="steps $t$", title="checkpointing")
    return fig
