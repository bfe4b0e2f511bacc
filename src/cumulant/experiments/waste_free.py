"""Waste-free particles: chains whose states are all kept, against ordinary moves with the same work."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cumulant import graphical, particles
from cumulant.experiments._posteriors import LEFT_OUT, posteriors
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.particles.ising_bridge import IsingBridge
from cumulant.plotting import COLOURS, figure

TITLE = "Waste-free particles against ordinary ones at equal work"
SOURCE = "Dau and Chopin (2022), Waste-free sequential Monte Carlo, J. R. Stat. Soc. B 84, sections 3 to 5"

_NOTES = (
    "Equal work: the same number of moves of single particles, counted in passes over one colour on the two-coloured "
    "lattices, where weights draw the second colour of all particles, and in Hamiltonian transitions for the "
    "posteriors, whose temperatures and coordinates were chosen by one run beforehand and are the same for all. Three "
    "settings of each kind on every problem; the better of each by the variance of log Z are compared. A claim holds "
    "if both variances, of log Z and of means, are smaller, each by more than two standard errors of its ratio. Means "
    "are those of products of neighbouring spins on lattices, and of parameters in units of their standard deviations; "
    "their variances are averaged."
)


class Setting(NamedTuple):
    """One way to spend the work: `scale` times fewer temperatures, `length` of the chains (1: ordinary), `sweeps`."""

    scale: int
    length: int
    sweeps: int = 1

    def __str__(self):
        kind = f"chains of {self.length}" if self.length > 1 else f"{self.sweeps} move{'s' * (self.sweeps > 1)}"
        return f"{kind}, temperatures / {self.scale}"


ORDINARY = (Setting(1, 1), Setting(4, 1), Setting(4, 1, 4))
WASTE_FREE = (Setting(1, 10), Setting(4, 10), Setting(4, 50))


class Found(NamedTuple):
    """Over replicates: log Z, its claimed variance, the means ``(replicates, statistics)``, seconds of a run."""

    logs: np.ndarray
    claimed: np.ndarray
    means: np.ndarray
    seconds: float


@experiment
def run(quick: bool, rng: int) -> Report:
    """A spin glass, a ferromagnet near its critical temperature, two posteriors."""
    budget = (200, 20) if quick else (1000, 100)
    glass = graphical.spin_glass(graphical.torus(8, 8), couplings=0.6, rng=int(rng))
    ferromagnet = graphical.Ising(graphical.torus(12, 12), 0.44)
    problems: dict[str, Callable[[Setting, int], particles.ParticleResult]] = {
        "8 x 8 spin glass": _lattice(glass, budget),
        "12 x 12 ferromagnet near T_c": _lattice(ferromagnet, budget),
    }
    targets = posteriors()
    problems |= {name: _posterior(target, budget[0] // 5, int(rng)) for name, target in targets.items()}
    many = dict.fromkeys(problems, 12 if quick else 100)
    many["regression"] = 4 if quick else 40  # its path is the longest
    tables = {
        name: {setting: _replicate(one, setting, many[name], int(rng)) for setting in (*ORDINARY, *WASTE_FREE)}
        for name, one in problems.items()
    }
    claims = [_judge(name, table) for name, table in tables.items()]
    claims.append(_errors(tables))
    notes = (
        "Replicates: "
        + ", ".join(f"{name} {many[name]}" for name in problems)
        + ". "
        + _NOTES
        + ("" if targets else LEFT_OUT)
    )
    return Report(claims, lambda: _draw(tables), notes)


def _lattice(model: graphical.Ising, budget: tuple[int, int]) -> Callable[[Setting, int], particles.ParticleResult]:
    """Passes over one colour: two for each particle and temperature, or one and those of its chain."""
    n, steps = budget

    def one(setting: Setting, seed: int) -> particles.ParticleResult:
        passes = 2 * n * setting.scale
        length = setting.length
        each = 3 - 3 / length if length > 1 else 2 * setting.sweeps
        size = int(passes / each / length) * length
        return particles.anneal(
            model, size, steps // setting.scale, chain_length=length, sweeps=setting.sweeps, rng=seed, n_jobs=1
        )

    return one


def _posterior(target: Any, n: int, rng: int) -> Callable[[Setting, int], particles.ParticleResult]:
    """Transitions: one for each particle and temperature, or those of its chain."""
    paths = {}
    for scale, share in ((1, 0.97), (4, 0.65)):
        chosen = particles.anneal(target, 2000, share=share, rng=10**9 + rng)
        paths[scale] = chosen.bridge.frozen(chosen.outcomes[0])  # type: ignore[attr-defined]
    longest = paths[1].temperatures.total

    def one(setting: Setting, seed: int) -> particles.ParticleResult:
        path, length = paths[setting.scale], setting.length
        each = 1 - 1 / length if length > 1 else setting.sweeps
        size = int(n * longest / path.temperatures.total / each / length) * length
        path = type(path)(
            path.path, path.sampler, path.temperatures, path.scaled, setting.sweeps, path.coordinates, n_jobs=1
        )
        return particles.run(path, size, chain_length=length, rng=seed)

    return one


def _replicate(one: Callable[[Setting, int], Any], setting: Setting, replicates: int, rng: int) -> Found:
    logs, claimed, means = [], [], []
    one(setting, 10**6 + rng)  # compiles
    began = time.process_time()
    for seed in range(replicates):
        result = one(setting, 1000 * rng + seed)
        logs.append(result.log_partition())
        claimed.append(result.log_partition_error**2)
        if isinstance(result.bridge, IsingBridge):
            i, j = result.bridge.model.edges.T
            means.append(result.expect(lambda x, i=i, j=j: x[:, i] * x[:, j]))
        else:
            means.append(result.mean())
    seconds = (time.process_time() - began) / replicates
    return Found(np.array(logs), np.array(claimed), np.array(means), seconds)


def _ratio(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The geometric mean over columns of the ratio of variances over rows, and the standard error of its logarithm."""
    first, second = (each.reshape(len(each), -1) for each in (first, second))
    rng = np.random.default_rng(0)

    def value(rows: Any, others: Any) -> float:
        return float(np.mean(np.log(first[rows].var(axis=0)) - np.log(second[others].var(axis=0))))

    again = [
        value(rng.integers(len(first), size=len(first)), rng.integers(len(second), size=len(second)))
        for _ in range(300)
    ]
    return float(np.exp(value(slice(None), slice(None)))), float(np.std(again))


def _best(table: dict[Setting, Found], settings: tuple[Setting, ...]) -> Setting:
    return min(settings, key=lambda setting: table[setting].logs.var())


def _judge(name: str, table: dict[Setting, Found]) -> Claim:
    ordinary, other = _best(table, ORDINARY), _best(table, WASTE_FREE)
    ratios = [_ratio(getattr(table[ordinary], what), getattr(table[other], what)) for what in ("logs", "means")]
    listed = "; ".join(f"{setting} {found.logs.std(ddof=1):.3g}" for setting, found in table.items())
    z, means = (
        f"{value:.2f} (within {np.exp(-2 * error):.2f} to {np.exp(2 * error):.2f} times)" for value, error in ratios
    )
    return Claim(
        f"{name}: waste-free particles have smaller variances at equal work",
        "smaller variances than ordinary particles, of log Z and of means, with chains that are long enough",
        f"variance of ordinary particles ({ordinary}) over that of waste-free ones ({other}): log Z {z}, means "
        f"{means}; CPU seconds of a run {table[ordinary].seconds:.2f} and {table[other].seconds:.2f}; deviations of "
        f"log Z: {listed}",
        verdict(all(np.log(value) > 2 * error for value, error in ratios)),
    )


def _errors(tables: dict[str, dict[Setting, Found]]) -> Claim:
    """Claimed standard errors of single runs against the spread of replicates, over all waste-free settings."""
    shares, unknown, runs = [], 0, 0
    for table in tables.values():
        for setting in WASTE_FREE:
            found = table[setting]
            known = np.isfinite(found.claimed)
            unknown, runs = unknown + int((~known).sum()), runs + known.size
            if known.mean() > 0.5:
                shares.append(float(np.sqrt(found.claimed[known].mean()) / found.logs.std(ddof=1)))
    return Claim(
        "one run says how far its log Z is off: the spread of its chains, with covariances over steps, is that of "
        "replicates (within 25 %)",
        "consistent estimates of the variance from one run",
        f"claimed over observed deviation: {np.median(shares):.2f}, from {min(shares):.2f} to {max(shares):.2f} over "
        f"{len(shares)} settings; unknown in {unknown} of {runs} runs",
        verdict(all(0.75 < share < 1.25 for share in shares)),
    )


def _draw(tables: dict[str, dict[Setting, Found]]) -> Any:
    fig, axes = figure(1, 2, width=11.0, height=4.0)
    for ax, what, title in zip(axes, ("logs", "means"), ("variance of log Z", "variance of means"), strict=True):
        for place, table in enumerate(tables.values()):
            base = getattr(table[_best(table, ORDINARY)], what)
            for k, setting in enumerate((*ORDINARY, *WASTE_FREE)):
                value, error = _ratio(getattr(table[setting], what), base)
                ax.errorbar(
                    place + 0.11 * (k - 2.5), value, yerr=[[value - value * np.exp(-2 * error)],
                    [value * np.exp(2 * error) - value]], color=COLOURS[k % len(COLOURS)],
                    marker="o" if setting.length == 1 else "s", label=None if place else str(setting), capsize=2,
                )  # fmt: skip
        ax.axhline(1.0, color="0.6", linewidth=0.8)
        ax.set_xticks(range(len(tables)), [name.replace(" near", "\nnear") for name in tables])
        ax.set(yscale="log", title=f"{title}, over that of the best ordinary setting")
    return fig
