"""Sweeps on an accelerator: uniform tori with 32 spins in a word, coloured graphs, annealed particles.

The peer of the torus is what most people write: twenty lines of JAX with a byte for a spin and a uniform number in
float32 for a decision. The same answer: the energy of a bond of both against Onsager's exact one of the infinite
lattice, from which a torus of thousands of rows differs by far less than a standard error away from the critical
coupling. Run it on a machine with an accelerator: ``python -m benchmarks accelerator``.
"""

import functools
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from benchmarks.timing import Row
from cumulant import particles, randomness
from cumulant.graphical import Ising, UniformTorus, random_regular
from cumulant.graphical.samplers import gibbs_jax, packed_torus
from cumulant.graphical.samplers.gibbs import IsingArrays

_COUPLING = 0.3
_REPEATS = 5


def run() -> list[Row]:
    if jax.default_backend() == "cpu":
        print("accelerator: left out; JAX sees no accelerator")
        return []
    print(f"accelerator: {jax.devices()[0].device_kind}")
    side = 8192
    packed = _packed(side)
    rows = [_compare("torus 8,192 x 8,192", side * side, 500.0, packed, _naive(side))]
    rows.append(_compare("2,000 spins of degree 4, 4,096 chains", 2_000 * 4_096, 10.0, _coloured(2_000, 4_096), None))
    _annealed()
    return rows


def _compare(name: str, sites: int, bar: float, ours: Callable, theirs: Callable | None) -> Row:
    """The seconds of a sweep of both sides, in turn; `bar` is in updates per nanosecond, not a ratio."""
    mine = np.array([ours() for _ in range(_REPEATS)])
    its = np.array([theirs() for _ in range(_REPEATS)]) if theirs else np.full(_REPEATS, sites / bar * 1e-9)
    rates = 1e-9 * sites / mine
    print(
        f"{name}: {np.median(rates):.4g} updates/ns (between {rates.min():.4g} and {rates.max():.4g}; bar {bar:g})"
        + (f", naive {1e-9 * sites / np.median(its):.4g}" if theirs else "")
    )
    row = Row(
        name,
        "naive JAX" if theirs else f"{bar:g} updates/ns",
        float(np.median(mine)),
        float(np.median(its)),
        float(np.median(its / mine)),
        (float((its / mine).min()), float((its / mine).max())),
        1.0,
    )
    print(row, flush=True)
    return row


def _packed(side: int) -> Callable:
    digits, bias = packed_torus.up_digits(_COUPLING, 0.0)
    masks = packed_torus.digit_masks(digits)
    key, chain = randomness.key(1), np.zeros(1, np.uint32)
    x = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, (1, 2, side, side // 64), dtype=np.uint32))
    state = {"x": x, "sweep": 0}

    def sweeps(n: int) -> None:
        last, _ = packed_torus.packed_sweeps(state["x"], masks, key, chain, *map(np.uint32, (state["sweep"], n, 0)), 0)
        state["x"], state["sweep"] = last.block_until_ready(), state["sweep"] + n

    sweeps(300)
    energies = []
    for _ in range(20):
        sweeps(20)
        counts = np.asarray(packed_torus.count_neighbours(state["x"], 1), dtype=float)[0]
        energies.append((counts[1] - counts[0]) @ np.arange(-4.0, 5.0, 2.0) / (2 * side * side))
    _agree("packed", energies, bias)
    return lambda: _time(lambda: sweeps(1_000)) / 1_000


def _naive(side: int) -> Callable:
    """Two colours kept apart as bytes, random numbers of JAX."""

    def sweep(t, x):
        for colour in (0, 1):
            other = x[1 - colour]
            even = (jnp.arange(side) % 2 == 0)[:, None]
            beside = jnp.where(even == (colour == 0), jnp.roll(other, 1, 1), jnp.roll(other, -1, 1))
            total = other + beside + jnp.roll(other, 1, 0) + jnp.roll(other, -1, 0)
            u = jax.random.uniform(jax.random.fold_in(jax.random.key(t), colour), other.shape)
            up = u < jax.nn.sigmoid(2.0 * _COUPLING * total)
            x = x.at[colour].set(jnp.where(up, 1, -1).astype(jnp.int8))
        return x

    @functools.partial(jax.jit, donate_argnums=0)
    def sweeps(x, first, n):
        return jax.lax.fori_loop(first, first + n, sweep, x)

    x = jnp.asarray(np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (2, side, side // 2)))
    state = {"x": sweeps(x, 0, 10).block_until_ready()}

    def timed() -> None:
        state["x"] = sweeps(state["x"], 10, 110).block_until_ready()

    return lambda: _time(timed) / 100


def _coloured(n: int, chains: int) -> Callable:
    edges = random_regular(n, 4, rng=0)
    model = Ising(edges, 0.2 * np.random.default_rng(0).choice([-1.0, 1.0], len(edges)))
    order, place, classes = gibbs_jax.coloured_classes(IsingArrays.of(model))
    classes = [tuple(map(jnp.asarray, (others, *map(np.float32, numbers)))) for others, *numbers in classes]
    start = jnp.asarray(np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (chains, n)))
    state = {"x": start}

    def sweeps(count: int) -> None:
        numbers = map(np.uint32, (0, count, 0))
        last, _ = gibbs_jax._coloured(classes, state["x"], order, place, randomness.key(0), *numbers, 0)
        state["x"] = last.block_until_ready()

    sweeps(10)
    return lambda: _time(lambda: sweeps(300)) / 300


def _annealed() -> None:
    """Particles from independent spins to the coupling, weights included: log Z beside the infinite lattice's."""
    torus = UniformTorus(256, 256, _COUPLING)
    for repeat in range(2):
        began = time.perf_counter()
        result = particles.anneal(torus, 1_024, temperatures=200, rng=repeat)
        took = time.perf_counter() - began
    updates = 256 * 256 * 1_024 * 200
    exact = 256 * 256 * _onsager_log_z(_COUPLING)
    print(
        f"annealed particles, torus 256 x 256, 1,024 particles, 200 temperatures: {took:.3g} s, "
        f"{1e-9 * updates / took:.3g} updates/ns; log Z {result.log_partition():.3f} +- "
        f"{result.log_partition_error:.3f}, infinite lattice {exact:.3f}"
    )


def _time(work: Callable) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _agree(name: str, energies: list[float], bias: float) -> None:
    mean, error = float(np.mean(energies)), float(np.std(energies, ddof=1) / np.sqrt(len(energies)))
    exact = _onsager_energy(_COUPLING)
    print(f"{name}: energy of a bond {mean:.7f} +- {error:.1e}, exact {exact:.7f}; probabilities off by {bias:.1e}")
    if not abs(mean - exact) < 5.0 * error + 10.0 * bias:
        raise AssertionError(f"{name}: the energy of a bond is {mean:.7f}, exact {exact:.7f}, error {error:.1e}")


def _onsager_energy(K: float) -> float:
    """``E[x_i x_j]`` of neighbours on the infinite square lattice (Onsager 1944)."""
    k = 2.0 * np.sinh(2.0 * K) / np.cosh(2.0 * K) ** 2
    return float((1.0 + 2.0 / np.pi * (2.0 * np.tanh(2.0 * K) ** 2 - 1.0) * scipy.special.ellipk(k * k))
                 / (2.0 * np.tanh(2.0 * K)))  # fmt: skip


def _onsager_log_z(K: float, points: int = 4_096) -> float:
    """``log Z`` for each site of the infinite square lattice."""
    angles = np.pi * (np.arange(points) + 0.5) / points
    k = 2.0 * np.sinh(2.0 * K) / np.cosh(2.0 * K) ** 2
    inner = np.log(0.5 * (1.0 + np.sqrt(1.0 - (k * np.sin(angles)) ** 2)))
    return float(np.log(2.0 * np.cosh(2.0 * K)) + 0.5 * inner.mean())
