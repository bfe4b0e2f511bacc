"""Markov random fields shown: exact inference on a noisy picture, an interval for log Z, chains at a critical point."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cumulant import plotting
from cumulant.certificates import Interval
from cumulant.graphical import Ising, bound_log_partition, grid, mean_field, torus, torus_log_partition
from cumulant.plotting import graphical as pictures
from cumulant.report.fits import with_error
from cumulant.report.section import Section, Table
from cumulant.sampling import Draws

_FLIPPED = 0.15  # of the pixels
_COUPLINGS = (0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.6)
_WORK = (2, 3, 6, 7, 8, 10, 14, 24)
CRITICAL = 0.5 * np.log(1 + np.sqrt(2))  # of the square lattice (Kramers and Wannier 1941)


class Restoration(NamedTuple):
    """A picture of ink, what was seen of it, and the probability of ink at each pixel given that."""

    ink: np.ndarray
    seen: np.ndarray
    couplings: np.ndarray
    evidence: np.ndarray
    best: float
    probability: np.ndarray
    log_partition: float


def restore(couplings: Any = _COUPLINGS, height: int = 14, digits: tuple[int, ...] = (10, 13, 14, 17)) -> Restoration:
    """Flip pixels in images of digits, and restore them by an Ising model with the most probable coupling.

    With ``x`` the ink (-1 or 1), ``y`` what is seen, ``h = log((1 - p) / p) / 2`` and ``x`` an Ising model with one
    coupling ``J``, the posterior has the fields ``h y``, and the evidence is ``log p(y | J) = log Z(J, h y) -
    log Z(J, 0) - n log(2 cosh h)``: two exact log-partition functions. It is given relative to ``J = 0``, where it is
    ``-n log 2``.
    """
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    table: Any = load_digits()
    enlarged = [np.asarray(zoom(table.images[i] / 16, height / 8, order=1)) for i in digits]
    ink = np.hstack([np.pad(image > 0.5, ((0, 0), (1, 1))) for image in enlarged])
    rng = np.random.default_rng(0)
    seen = ink ^ (rng.random(ink.shape) < _FLIPPED)
    edges = grid(*ink.shape)
    strength = 0.5 * np.log((1 - _FLIPPED) / _FLIPPED)
    fields = strength * np.where(seen, 1.0, -1.0).ravel()
    with_data = np.array([Ising(edges, coupling, fields).log_partition() for coupling in couplings])
    without = np.array([Ising(edges, coupling, 0.0).log_partition() for coupling in couplings])
    evidence = with_data - without - ink.size * np.log(np.cosh(strength))
    best = int(np.argmax(evidence))
    posterior = Ising(edges, couplings[best], fields)
    probability = posterior.marginals()[:, 1].reshape(ink.shape)
    return Restoration(
        ink, seen, np.asarray(couplings), evidence, float(couplings[best]), probability, float(with_data[best])
    )


def noise(output: Path) -> Section:
    """Exact inference on a picture: the most probable ink under heavy noise."""
    found = restore()
    fig, axes = plotting.figure(2, 2, width=10.4, height=4.0)
    for ax, values, title in (
        (axes[0, 0], found.ink, "the ink"),
        (axes[0, 1], found.seen, "what is seen"),
        (axes[1, 0], found.probability, "exact probability of ink"),
    ):
        pictures.pixels(values, ax=ax, title=title)
    curve = axes[1, 1]
    curve.plot(found.couplings, found.evidence, "o-")
    curve.axvline(found.best, color=plotting.COLOURS[-1], linewidth=0.8, linestyle=":")
    curve.set(xlabel="coupling J", ylabel="nats", title="evidence for J over independent pixels")
    guess = found.probability > 0.5
    doubtful = np.abs(found.probability - 0.5) < 0.4
    before, after = (float(np.mean(picture != found.ink)) for picture in (found.seen, guess))
    sure = float(np.mean((guess != found.ink)[~doubtful]))
    model = Ising(grid(*found.ink.shape), found.best)
    rows = [
        ("as seen", f"{100 * before:.1f}", ""),
        ("most probable ink", f"{100 * after:.1f}", "100"),
        ("where it is 90 % sure", f"{100 * sure:.1f}", f"{100 * np.mean(~doubtful):.0f}"),
    ]
    return Section(
        "Noise: exact inference on a picture",
        [
            f"Four digits on a grid of {found.ink.shape[0]} by {found.ink.shape[1]} pixels, each of which was flipped "
            f"with probability {100 * _FLIPPED:.0f} %. Neighbours tend to agree: an Ising model. Its log-partition "
            f"function, a sum over 2^{found.ink.size} pictures, is computed exactly, by elimination in tables of at "
            f"most 2^{model.cost().log2_largest:.0f} entries, and so is the probability of each pixel: no chain, no "
            "approximation.",
            "How strongly neighbours agree was not told. The evidence, a difference of two log-partition functions, "
            f"has its maximum at J = {found.best:g}, {found.evidence.max():.0f} nats above independent pixels; there "
            f"log Z = {found.log_partition:.6f}.",
        ],
        [Table(("", "wrong pixels, %", "of all pixels, %"), rows)],
        pictures=[
            (
                plotting.save(fig, output / "noise.png"),
                "Above: the ink, and what is seen of it. Below: the probability of ink given what is seen, and the "
                "evidence for the coupling.",
            )
        ],
    )


class Closing(NamedTuple):
    """A spin glass with its exact answer, and the intervals for its ``log Z`` found in little memory."""

    model: Ising
    shape: tuple[int, int]
    exact: float
    means: np.ndarray
    work: tuple[int, ...]
    intervals: list[Interval]
    naive: float
    memory: int


def squeeze(side: int = 18, memory: int = 2**18, work: tuple[int, ...] = _WORK) -> Closing:
    """Bound ``log Z`` of a spin glass within `memory` bytes, with more and more work; and compute it in all memory."""
    rng = np.random.default_rng(0)
    edges = grid(side, side)
    model = Ising(edges, rng.choice([-0.5, 0.5], len(edges)), rng.uniform(-1.0, 1.0, side * side))
    means = model.mean()[: side * side].reshape(side, side)
    intervals = [
        bound_log_partition(model, max_memory=memory, max_work=pieces, time_limit=None, exact=False) for pieces in work
    ]
    naive = mean_field(model, n_starts=5, rng=0).bound
    return Closing(model, (side, side), model.log_partition(), means, tuple(work), intervals, naive, memory)


def glass(output: Path) -> Section:
    """An interval that closes around log Z of a model which does not fit into the memory given."""
    found = squeeze()
    fig, (left, right) = plotting.figure(1, 2, width=11.0, height=4.6)
    pictures.spins(found.means, found.model.edges, found.model.couplings, ax=left, title="the glass, solved exactly")
    pictures.closing(found.work, found.intervals, truth=found.exact, ax=right, label="log Z, nats")
    right.set_title(f"what {found.memory / 2**10:.0f} KiB can say")
    right.set_xscale("log")
    right.set_xticks(found.work, labels=[str(pieces) for pieces in found.work])
    right.set_xticks([], minor=True)
    last = found.intervals[-1]
    shown = [
        (pieces, each)
        for pieces, each in zip(found.work, found.intervals, strict=True)
        if pieces in (2, 8, found.work[-1])
    ]
    rows = [
        (
            pieces,
            f"{each.lower:.3f}",
            f"{each.upper:.3f}",
            f"{each.width:.3f}",
            "yes" if found.exact in each else "no",
        )
        for pieces, each in shown
    ]
    return Section(
        "Glass: an interval for log Z where memory ends",
        [
            f"A spin glass of {found.shape[0]} by {found.shape[1]} spins: couplings of 1/2 of either sign, fields "
            f"between -1 and 1. Exact elimination needs {found.model.cost().memory / 2**20:.1f} MiB, and here it is "
            f"given {found.memory / 2**20:.2g} MiB. Bounds from above and from below take its place. They hold "
            "whenever they are stopped, and they close as work goes on.",
            f"With all memory the exact value is {found.exact:.6f}: a check, which the interval did not know of. It "
            f"ends {last.width:.2f} nats wide. Naive mean field, the usual lower bound, is "
            f"{found.exact - found.naive:.1f} nats below, and has nothing to say from above. Work is counted in pieces "
            "and not in seconds, so that the same numbers come out on every machine.",
        ],
        [Table(("pieces of work", "log Z at least", "log Z at most", "width", "exact value inside"), rows)],
        [] if last.certificate is None else [last.certificate],
        [
            (
                plotting.save(fig, output / "glass.png"),
                "Left: the glass; a spin is red where it is up, blue where it is down, pale where it is undecided. "
                "Right: the interval for log Z against work.",
            )
        ],
    )


def critical_chains(side: int = 64, draws: int = 1000) -> tuple[Ising, dict[str, Draws]]:
    """Four chains by single spins and four by clusters, on a torus at its critical coupling."""
    model = Ising(torus(side, side), CRITICAL)
    methods = {"single spins": "chromatic", "clusters": "swendsen_wang"}
    return model, {
        name: model.sample(draws, rng=0, method=method, chains=4, burn_in=200) for name, method in methods.items()
    }


def magnet(output: Path) -> Section:
    """Draws of a magnet at its critical point, and what the chains are worth."""
    model, found = critical_chains()
    side = round(np.sqrt(model.n_variables))
    exact = torus_energy(side, CRITICAL)
    ends = model.edges

    def energy(x):  # the share of agreement between neighbours, from -1 to 1
        return (x[:, ends[:, 0]] * x[:, ends[:, 1]]).mean(axis=1, dtype=np.float64)

    def magnetisation(x):
        return np.abs(x.mean(axis=1, dtype=np.float64))

    fig, (first, middle, right) = plotting.figure(1, 3, width=12.0, height=3.9)
    state = found["clusters"].values[0, -1].reshape(side, side)
    pictures.pixels(state, ax=first, low=-1.0, title="a draw by clusters")
    rows = []
    for ax, (name, draws) in zip((middle, right), found.items(), strict=True):
        pictures.chains(draws.of(magnetisation), ax=ax, title=f"four chains by {name}", label="|magnetisation|")
        ax.set_ylim(0.0, 1.0)
        mean, error = float(draws.mean(energy)), float(draws.standard_error(energy))
        rows.append(
            (
                name,
                f"{draws.r_hat(magnetisation):.2f}",
                f"{draws.effective_sample_size(magnetisation):.0f} of {len(draws)}",
                with_error(mean, error),
                f"{abs(mean - exact) / error:.1f}",
            )
        )
    return Section(
        "Magnet: are these draws worth anything?",
        [
            f"{side} by {side} spins on a torus, at the coupling log(1 + √2) / 2 at which the magnet is about to "
            "choose a side, and at which chains are slowest. Four chains turn spins one by one, four turn whole "
            "clusters (Swendsen and Wang 1987). Chains that have forgotten where they began have an R-hat near 1; well "
            "above 1.01 they have not.",
            f"The answer is known here: neighbours agree by {exact:.5f} on average (Kaufman 1949). The chains of "
            "single spins do not know that they are wrong, but R-hat does.",
        ],
        [
            Table(
                ("chains by", "R-hat", "effective draws", "agreement ± s.e.", "s.e. from the truth"),
                rows,
                "R-hat and effective draws of the absolute magnetisation",
            )
        ],
        pictures=[
            (
                plotting.save(fig, output / "magnet.png"),
                "Left: a state at the critical point has clusters of all sizes. Then the magnetisation of each chain, "
                "draw by draw.",
            )
        ],
    )


def torus_energy(side: int, coupling: float, step: float = 1e-4) -> float:
    """``E x_i x_j`` of neighbours on a square torus: the derivative of Kaufman's ``log Z`` for each edge."""
    above, below = (torus_log_partition(side, side, coupling + change) for change in (step, -step))
    return (above - below) / (2 * step) / (2 * side * side)
