"""Gibbs sampling of Ising models against the simulated annealer of dwave-samplers at a fixed temperature.

The peer runs with `proposal_acceptance_criteria="Gibbs"` and one temperature for all its sweeps, in one of its calls
for all its sweeps (its best setting); its time is the `sampling_ns` that it reports, without reading its model. Its
sampler runs on one thread, ours on all cores, and a row of one chain uses one. Work is counted in single-spin updates:
both sides run for long enough that starting does not count, and a time is that of a thousand million updates. The same
answer: the mean energy of both, from many sweeps at the same temperature, must agree within five standard errors.
"""

import numpy as np

from benchmarks.timing import Row, seconds
from cumulant.graphical import Ising, random_regular, torus

_REPEATS = 5


def run() -> list[Row]:
    try:
        import dimod  # noqa: F401
        import dwave.samplers  # noqa: F401
    except ImportError:
        print("gibbs: left out; dwave-samplers is not installed: pip install dwave-samplers")
        return []
    n = 10_000
    edges = random_regular(n, 4, rng=0)
    glass = Ising(edges, 0.3 * (2.0 * np.random.default_rng(1).integers(0, 2, len(edges)) - 1.0))
    lattice = Ising(torus(1024, 1024), 0.4)
    graph, square = Annealer(glass), Annealer(lattice)
    agree(glass, graph, "systematic", "random 4-regular graph", sweeps=500)
    agree(lattice, square, "multi_spin", "torus", sweeps=60)
    return [
        compare("random graph, 10,000 spins, 1 chain", glass, graph, "systematic", 1, 3000, 1000, 1.0),
        compare("random graph, 10,000 spins, 32 chains", glass, graph, "systematic", 32, 1000, 1000, 5.0),
        compare("torus 1,024 x 1,024, 2 chains", lattice, square, "multi_spin", 2, 5000, 20, 80.0),
    ]


class Annealer:
    """The peer, with its model read once."""

    def __init__(self, model: Ising):
        import dimod
        from dwave.samplers import SimulatedAnnealingSampler

        pairs = map(tuple, model.edges.tolist())
        # It minimises the energy: couplings have the other sign.
        self.model = dimod.BinaryQuadraticModel.from_ising(
            dict.fromkeys(range(model.n_variables), 0.0), dict(zip(pairs, (-model.couplings).tolist(), strict=True))
        )
        self.sampler = SimulatedAnnealingSampler()

    def __call__(self, sweeps: int, seed: int):
        found = self.sampler.sample(
            self.model,
            num_reads=1,
            num_sweeps=sweeps,
            num_sweeps_per_beta=sweeps,
            beta_range=(1.0, 1.0),
            beta_schedule_type="linear",
            proposal_acceptance_criteria="Gibbs",
            randomize_order=False,
            seed=seed,
        )
        return found, found.info["timing"]["sampling_ns"] * 1e-9


def agree(model: Ising, peer: Annealer, method: str, name: str, sweeps: int) -> None:
    """The energies for each edge at the end of a few separate runs."""

    def energy(x):
        return (x[..., model.edges[:, 0]] * x[..., model.edges[:, 1]] * np.sign(model.couplings)).mean(axis=-1)

    ours = energy(model.sample(1, rng=0, method=method, chains=4, burn_in=sweeps - 1).flat)
    theirs = [energy(np.asarray(peer(sweeps, seed)[0].record.sample[0])) for seed in range(4)]
    error = np.sqrt(np.var(ours, ddof=1) / 4 + np.var(theirs, ddof=1) / 4)
    gap = abs(np.mean(ours) - np.mean(theirs))
    if not gap < 5.0 * error + 1e-3:
        raise AssertionError(f"{name}: the energies of the two sides differ by {gap:.2g}, standard error {error:.2g}")


def compare(name, model, peer, method, chains, ours, theirs, bar) -> Row:
    """Seconds for a thousand million updates on both sides, alternating."""
    work = {"rng": 0, "method": method, "chains": chains}
    model.sample(1, burn_in=1, **work)
    updates = model.n_variables * 1e-9
    mine, its = [], []
    for repeat in range(_REPEATS):
        taken = seconds(lambda: model.sample(1, burn_in=ours - 1, **work))
        mine.append(taken / (ours * chains * updates))
        its.append(peer(theirs, repeat)[1] / (theirs * updates))
    ratios = np.array(its) / np.array(mine)
    row = Row(
        name,
        "dwave-samplers, 1 thread",
        float(np.median(mine)),
        float(np.median(its)),
        float(np.median(ratios)),
        (ratios.min(), ratios.max()),
        bar,
    )
    print(row, flush=True)
    return row


if __name__ == "__main__":
    run()
