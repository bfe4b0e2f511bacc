"""Messages between regions against the convergent double loop, to the same stationary point.

Method and settings, fixed before the run. Spin glasses on 10 x 10 and 20 x 20 grids (fields uniform in [-1, 1],
couplings +-1/2, seed 0), with the squares of the grid as regions. Generalised belief propagation at its defaults but a
tolerance of 1e-8; the double loop with 1e-8 for outer loops, 10 inner sweeps (fewer than its default, and faster) and
at most 1000 outer loops. Both must converge, to values of log Z within 1e-6 and marginals within 1e-5 of one another.
The bar is a factor of 10. The peer is our own: no package that could be installed has region graphs.
"""

import sys

import numpy as np

from benchmarks.timing import Row, race
from cumulant.graphical import Ising, RegionGraph, double_loop, grid, plaquettes
from cumulant.graphical.messages.generalised import generalised_belief_propagation


def run(sides: tuple[int, ...] = (10, 20)) -> list[Row]:
    rows = []
    for side in sides:
        rng, edges = np.random.default_rng(0), grid(side, side)
        fields = rng.uniform(-1, 1, side * side)
        model = Ising(edges, rng.choice([-0.5, 0.5], len(edges)), fields)
        regions = RegionGraph.of(model, plaquettes(side, side))

        def messages(model=model, regions=regions):
            return generalised_belief_propagation(model, regions, tol=1e-8)

        def loops(model=model, regions=regions):
            return double_loop(model, regions, tol=1e-8, inner_sweeps=10)

        one, two = messages(), loops()
        assert one.converged, one
        assert two.converged, two
        assert abs(one.log_partition - two.log_partition) < 1e-6
        assert np.abs(one.marginals - two.marginals).max() < 1e-5
        print(
            f"  {side} x {side}: {len(one.trace)} sweeps, {len(two.trace)} outer loops, log Z ~ {one.log_partition:.6f}"
        )
        name = f"squares of a {side} x {side} grid"
        rows.append(race(name, "double loop (ours)", messages, loops, bar=10.0, repeats=3))
    return rows


if __name__ == "__main__":
    sys.exit(0 if all(row.reached for row in run()) else 1)
