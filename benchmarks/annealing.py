"""Annealed particles of a 20 x 20 Ising torus against a vectorised NumPy program and the sampler of pyGMs.

The work: 1,000 particles, one Gibbs sweep at each of 1,000 temperatures, coupling 0.4. The NumPy program
(`tests/reference/annealing.py`) moves all particles at once, one colour of the chequerboard after the other, with the
same Rao-Blackwellised weights, and looks probabilities up in tables. pyGMs anneals one particle after the other in
Python; it is given a fraction of the work, and its time is scaled up in proportion. The same answer: each ``log Z`` must
be within five standard errors of the exact one.
"""

import numpy as np

from benchmarks.timing import Row, race, seconds
from cumulant.graphical import Ising, torus
from cumulant.particles import anneal
from tests.reference.annealing import anneal_torus

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


def against_pygms(model: Ising, mine: float, particles: int = 1, steps: int = 10) -> list[Row]:
    try:
        import pyGMs
        from pyGMs.draw import gibbsSample
    except ImportError:
        print("annealing: pyGMs is left out, as it is not installed: pip install pyGMs")
        return []
    table = np.exp(_COUPLING * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    variables = [pyGMs.Var(i, 2) for i in range(model.n_variables)]
    factors = [pyGMs.Factor([variables[i], variables[j]], table) for i, j in model.edges.tolist()]

    def theirs():
        for _ in range(particles):
            state = np.random.default_rng(0).integers(0, 2, model.n_variables)
            for k in range(1, steps + 1):
                tempered = pyGMs.GraphModel([factor ** (k / steps) for factor in factors])
                state = gibbsSample(tempered, state=list(state), stopSamples=1)[1][-1]

    its = seconds(theirs) * (_PARTICLES * _STEPS) / (particles * steps)
    row = Row("the same, scaled from 10 sweeps", "pyGMs, Gibbs sweeps", mine, its, its / mine, (its / mine,) * 2, 10.0)
    print(row, flush=True)
    return [row]


if __name__ == "__main__":
    run()
