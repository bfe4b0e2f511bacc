"""Random-scan block Gibbs between two approximations, with the weight of the exact mixture backward kernel."""

import dataclasses
import functools

import numpy as np

from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.particles.annealing_kernels import draw_spins
from cumulant.particles.conditional.block_gibbs_kernels import log_ratios, redraw_block
from cumulant.particles.conditional.objective import Parameters
from cumulant.particles.conditional.partitions import Blocks
from cumulant.threads import in_parts


@dataclasses.dataclass(frozen=True, eq=False)
class BlockGibbs:
    """The kernel ``K_b``: draw a block ``B`` with probability ``rho_B = |B| / n`` and redraw it given the rest.

    Weights of particles from ``p_a``, ``x`` before the move and ``x'`` after it:

    * mixture, at ``x'``: ``u = f_b(x') / f_a(x') / sum_B rho_B p_b(x'_B | x'_-B) / p_a(x'_B | x'_-B)``, for the
      backward kernel that reverses ``K_b`` exactly when ``x`` is from ``p_a``;
    * reversal, at ``x``: ``u = f_b(x) / f_a(x)``.

    Both have ``E u = Z_b / Z_a``. The mixture sums over all blocks, whichever was redrawn, and holds for one
    application of ``K_b``; both ``a`` and ``b`` must have no couplings inside the blocks (Carbonetto 2009, 4.12, 4.23).
    """

    edges: np.ndarray
    blocks: Blocks
    n_jobs: int | None = None

    def redraw(self, x: np.ndarray, new: Parameters, seed: int, step: int) -> np.ndarray:
        """The states after the kernel of `new`; `x` stays as it is."""
        x = x.copy()
        block, starts, members = self._layout
        graph = self.graph
        flat = (block, starts, members, graph.indptr, graph.neighbours, new.couplings[graph.edge], new.fields, seed)

        def work(first, last):
            redraw_block(x[first:last], *flat, first, step)

        in_parts(work, len(x), self.n_jobs)
        return x

    def log_weights(self, x: np.ndarray, old: Parameters, new: Parameters, backward: str = "mixture") -> np.ndarray:
        """``log u`` at the states `x`: those after the move for the mixture, those before it for the reversal."""
        ratios, mixtures = np.empty(len(x)), np.empty(len(x))
        graph = self.graph
        flat = (*self._layout[1:], graph.indptr, graph.neighbours)
        both = (old.couplings[graph.edge], old.fields, new.couplings[graph.edge], new.fields)

        def work(first, last):
            log_ratios(np.ascontiguousarray(x[first:last].T), *flat, *both, ratios[first:last], mixtures[first:last])

        in_parts(work, len(x), self.n_jobs)
        return ratios - mixtures if backward == "mixture" else ratios

    @functools.cached_property
    def graph(self) -> Neighbours:
        """The neighbours of each spin."""
        return Neighbours.of(sum(block.size for block in self.blocks), self.edges)

    @functools.cached_property
    def _layout(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The block of each spin, and the spins block by block."""
        sizes, members = [block.size for block in self.blocks], np.concatenate(self.blocks)
        block = np.empty(members.size, np.int64)
        block[members] = np.repeat(np.arange(len(sizes)), sizes)
        return block, np.concatenate([[0], np.cumsum(sizes)]), members


def sweep(
    x: np.ndarray, graph: Neighbours, at: Parameters, sweeps: int, seed: int, begin: int, n_jobs: int | None
) -> np.ndarray:
    """The states after Gibbs sweeps over all spins in order; in an approximation without couplings inside blocks that
    is a sweep over blocks too. Sweeps are numbered from `begin` on. `x` stays as it is.
    """
    out, sites, couplings = np.empty_like(x), np.arange(at.fields.size), at.couplings[graph.edge]

    def work(first, last):
        lanes = np.ascontiguousarray(x[first:last].T)
        for k in range(begin, begin + sweeps):
            flat = (graph.indptr, graph.neighbours, couplings, couplings, at.fields, None)
            draw_spins(lanes, sites, *flat, seed, first, k)
        out[first:last] = lanes.T

    in_parts(work, len(x), n_jobs)
    return out
