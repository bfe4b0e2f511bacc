"""Certified intervals for log Z: how wide they are, and that they contain the truth.

Method and settings, fixed before the run. Every interval is deterministic (no sampling) and may use 16 MiB of tables.

* The complete spin glass of 26 spins (fields uniform in [-1, 1], couplings +-1/2): over 100 seeds the interval must
  contain the exact value, found by elimination in 2 GiB.
* A 24 x 24 grid of the same kind, 60 seconds, bar 10 nats. The truth is from elimination in 128 MiB or more. Rivals on
  the same model: naive mean field below, and above the tree-reweighted bound at the edge probabilities of the uniform
  spanning tree (effective resistances), its messages damped and run to convergence.
* A 40 x 40 grid of the same kind, 60 seconds, bar 25 nats; and with no field, where the truth is from Kac and Ward.

In a row of the table the ratio is the promised width over ours, or the share of intervals that contain the truth; its
columns are widths in nats, or counts. Parts by themselves: `python -m benchmarks.bounds 24 40`, or
`python -m benchmarks.bounds complete seeds=90-99`.
"""

import sys
import time

import numpy as np

from benchmarks.timing import Row
from cumulant.graphical import Ising, bound_log_partition, complete, grid, mean_field, tree_reweighted
from cumulant.graphical.exact.lattices import kac_ward

MEMORY, SECONDS = 2**24, 60.0


def instance(edges, n: int, seed: int, field: float = 1.0) -> Ising:
    rng = np.random.default_rng(seed)
    fields = field * rng.uniform(-1, 1, n)
    return Ising(edges, rng.choice([-0.5, 0.5], len(edges)), fields)


def row(name: str, model: Ising, truth: float | None, bar: float) -> Row:
    """One interval: the ratio is the width that is promised over ours."""
    begin = time.perf_counter()
    interval = bound_log_partition(model, max_memory=MEMORY, time_limit=SECONDS)
    taken = time.perf_counter() - begin
    assert truth is None or truth in interval, (name, truth, interval)
    known = "truth unknown" if truth is None else f"truth {truth:.4f}"
    ratio = bar / interval.width
    out = Row(name, f"{bar:g} nats promised", interval.width, bar, ratio, (ratio, ratio), 1.0)
    print(
        f"{name:34s} [{interval.lower:.4f}, {interval.upper:.4f}] width {interval.width:.3f} nats, {known}, "
        f"{taken:.0f} s   bar {bar:g} {'reached' if out.reached else 'MISSED'}",
        flush=True,
    )
    return out


def contained(seeds: range) -> Row:
    """How many intervals of the complete spin glass contain the exact value: the ratio is their share."""
    inside, begin = 0, time.perf_counter()
    for seed in seeds:
        model = instance(complete(26), 26, seed)
        inside += model.log_partition() in bound_log_partition(model, max_memory=MEMORY, time_limit=SECONDS)
    taken, share = time.perf_counter() - begin, inside / len(seeds)
    print(
        f"complete, 26 spins, seeds {seeds.start} to {seeds.stop - 1}: {inside} of {len(seeds)} contain the exact "
        f"value, {taken:.0f} s",
        flush=True,
    )
    return Row("complete, 26 spins", "all intervals contain log Z", inside, len(seeds), share, (share, share), 1.0)


def run(names: list[str] | None = None, seeds: range = range(100)) -> list[Row]:
    names, rows = names or ["complete", "24", "40", "zero"], []
    if "complete" in names:
        rows.append(contained(seeds))
    if "24" in names:
        model = instance(grid(24, 24), 576, 0)
        rows.append(row("grid 24 x 24, random fields", model, model.log_partition(), 10.0))
        below, above = mean_field(model).bound, tree_reweighted(model, "uniform").bound
        print(f"  naive mean field {below:.4f}, uniform tree-reweighted {above:.4f}: {above - below:.2f} nats apart")
    if "40" in names:
        rows.append(row("grid 40 x 40, random fields", instance(grid(40, 40), 1600, 0), None, 25.0))
    if "zero" in names:
        model = instance(grid(40, 40), 1600, 0, field=0.0)
        where = [(i // 40, i % 40) for i in range(1600)]
        rows.append(row("grid 40 x 40, no field", model, kac_ward(model, where), 25.0))
    return rows


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if not name.startswith("seeds=")]
    first, last = next((name[6:].split("-") for name in sys.argv[1:] if name.startswith("seeds=")), (0, 99))
    sys.exit(0 if all(each.reached for each in run(chosen, range(int(first), int(last) + 1))) else 1)
