"""Annealed particles of a 20 x 20 Ising torus against a vectorised NumPy program and the Gibbs sampler of pyGMs.

The work: 1,000 particles, one Gibbs sweep at each of 1,000 temperatures, coupling 0.4. The NumPy program
(`tests/reference/annealing.py`) moves all particles at once, one colour of the chequerboard after the other, with the
same Rao-Blackwellised weights, and looks probabilities up in tables. pyGMs anneals particles one by one and builds a
model for each of their temperatures; only its sweeps are timed, a few of them, and scaled up in proportion. The same
answer: our ``log Z`` and that of NumPy must be within five standard errors of the exact one.
"""

import numpy as np
from tests.reference.annealing import anneal_torus

from benchmarks.timing import Row, race, seconds
from cumulant.graphical import Ising, torus
from cumulant.particles import anneal

_ROWS, _COUPLING, _PARTICLES, _STEPS = 20, 0.4, 1000, 1000


def run() -> list[Row]:
    model = Ising(torus(_ROWS, _ROWS), _COUPLING)
    exact = model.log_partition()

    def ours():
        return anneal(model, _PARTICLES, _STEPS, rng=0, progress=False)

    result = ours()
    agree("ours", result.log_partition(), exact, result.log_partition_error)
    agree("NumPy", anneal_torus(_ROWS, _ROWS, _COUPLING, _PARTICLES, _STEPS, 0)[0], exact, result.log_partition_error)
    rows = [
        race(
            "torus 20 x 20, 1,000 particles and steps",
            "vectorised NumPy",
            ours,
            lambda: anneal_torus(_ROWS, _ROWS, _COUPLING, _PARTICLES, _STEPS, 1),
            bar=10.0,
            repeats=3,
        )
    ]
    return [*rows, *against_pygms(model, seconds(ours))]


def agree(name: str, found: float, exact: float, error: float) -> None:
    if not abs(found - exact) < 5 * error:
        raise AssertionError(f"{name}: log Z is {found:.4f}, exact {exact:.4f}, standard error {error:.2g}")


def against_pygms(model: Ising, mine: float, chains: int = 2, sweeps: int = 3) -> list[Row]:
    try:
        import pygms
        from pygms.montecarlo import GibbsSampler
    except ImportError:
        print("annealing: pyGMs is left out, as it is not installed: pip install pyGMs")
        return []
    table = np.exp(_COUPLING * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    variables = [pygms.Var(i, 2) for i in range(model.n_variables)]
    factors = [pygms.Factor([variables[i], variables[j]], table) for i, j in model.edges.tolist()]
    sampler = GibbsSampler(pygms.GraphModel(factors), chains=chains)
    its = seconds(lambda: sampler.sample(sweeps)) * (_PARTICLES * _STEPS) / (chains * sweeps)
    row = Row("the same, scaled from 6 sweeps", "pyGMs, sweeps alone", mine, its, its / mine, (its / mine,) * 2, 10.0)
    print(row, flush=True)
    return [row]


if __name__ == "__main__":
    run()
