"""Copies of a model cut into blocks: each block is solved by itself, and blocks of one shape share all plans."""

from collections.abc import Callable, Sequence

import numpy as np

from cumulant.graphical.bounds.partition import Block, Partition, good_order, outside, with_fields
from cumulant.graphical.bounds.reweighted import Combination, Tables
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.messages.incidence import ranges
from cumulant.graphical.structure import Structure

__all__ = ["BlockCombination"]


class BlockCombination(Combination):
    """A combination of copies, the first of which are cut into the blocks of `cuts`, and the others as they are.

    `alive` is called between blocks, from several threads, and raises where the time has ended.
    """

    def __init__(
        self,
        tables: Tables,
        cuts: Sequence[Partition],
        others: Sequence[tuple[np.ndarray, Structure]],
        max_memory: int,
        alive: Callable[[], None],
        n_jobs: int | None = None,
    ):
        own = [(cut.kept, with_fields(tables.structure, cut.kept)) for cut in cuts]
        super().__init__(tables, [*own, *others], max_memory, n_jobs)
        self.cuts, self.alive = list(cuts), alive
        self.inner = [
            [(block, _places(part, cut, block)) for block in cut.blocks]
            for cut, (_, part) in zip(cuts, own, strict=True)
        ]

    def solve(self, k: int, scaled: np.ndarray) -> tuple[float, np.ndarray]:
        """``log Z`` of a copy with these tables, and its marginals: block by block where it is cut."""
        self.alive()
        if k >= len(self.cuts):
            return super().solve(k, scaled)
        total, mean = 0.0, np.empty(scaled.size)
        for block, place in self.inner[k]:
            self.alive()
            memory = max(self.memory - outside(block.part), 256 * place.size)
            solver = Elimination(block.part, scaled[place], good_order(block.part), memory, 1)
            log_z, _, own = solver.beliefs()
            if log_z == -np.inf:
                return -np.inf, np.zeros(0)
            total += log_z
            mean[place] = own
        return total, mean

    def from_shares(self, earlier: "Combination", x: np.ndarray) -> np.ndarray:
        """A point at which the first copies have what they have in `earlier` at `x`, in proportion, and each copy that
        is new an equal share.

        Copies are the same where they keep the same factors.
        """
        known = {kept.tobytes(): (z, log_w) for (kept, _), z, log_w in zip(
            earlier.copies, earlier.shares(x), np.log(earlier.weights(x)), strict=True
        )}  # fmt: skip
        out, share = np.zeros(self.dim), earlier.n_copies / self.n_copies
        finite = np.isfinite(self.tables.theta)
        for k, (kept, _) in enumerate(self.copies):
            if kept.tobytes() in known:
                z, log_w = known[kept.tobytes()]
                place = self.places[k]
                with np.errstate(invalid="ignore"):  # an impossible entry stays as it is in all copies
                    moved = share * z - self.shared[place]
                out[self.ends[k] : self.ends[k + 1]] = np.where(finite[place], moved, 0.0)
                out[self.ends[-1] + k] = np.log(share) + log_w
            else:
                out[self.ends[-1] + k] = -np.log(self.n_copies)
        return out


def _places(part: Structure, cut: Partition, block: Block) -> np.ndarray:
    """Where the tables of a block are among those of its copy: factors inside, and then single variables."""
    starts = part.table_starts
    which = np.concatenate([np.searchsorted(cut.kept, block.factors), cut.kept.size + block.variables])
    return ranges(starts[:-1][which], np.diff(starts)[which])
