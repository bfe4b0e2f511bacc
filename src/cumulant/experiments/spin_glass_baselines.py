"""Figures 4.5 and 4.6, the lines that sampling is compared with: mean field, Bethe, Kikuchi and tree-reweighted."""

import numpy as np

from cumulant import graphical
from cumulant.experiments._spin_glasses import exact, exact_by_halves, instance, means_of, tree_reweighted
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import COLOURS, figure

TITLE = "Variational baselines on two spin glasses: a grid of 12 x 12, and a complete graph of 26"
SOURCE = "Carbonetto (2009), thesis, figures 4.5 and 4.6 (Bethe, tree-reweighted), section 4.4"

SIDE, NODES = 12, 26


@experiment
def run(quick: bool, rng: int) -> Report:
    """``log Z`` and the means of the spins by each method, against exact answers, on several instances."""
    seeds = range(rng, rng + (1 if quick else 5))
    found: dict[str, dict[str, np.ndarray]] = {"grid": {}, "complete": {}}
    settled = 0
    for seed in seeds:
        lattice, dense = instance(seed, graphical.grid(SIDE, SIDE)), instance(seed, graphical.complete(NODES))
        _record(found["grid"], exact(lattice), _on_the_grid(lattice))
        _record(found["complete"], exact_by_halves(dense), _on_the_complete_graph(dense))
        settled += graphical.belief_propagation(dense, schedule="parallel").converged
    claims = _claims(found, settled, len(seeds))
    text = "; ".join(
        f"{place}: "
        + ", ".join(f"{name} {_range(rows[:, 0])} / {rows[:, 1].mean():.3f}" for name, rows in each.items())
        for place, each in found.items()
    )
    notes = (
        f"{len(seeds)} instance(s): fields uniform in [-1, 1], couplings +-1/2, free boundary. Errors of log Z (nats) "
        f"/ mean error of the means: {text}. The thesis prints curves and no numbers. Mean field by blocks: strips of "
        "three rows, and halves of the complete graph. Bethe on the complete graph by the double loop, as in the "
        "thesis. Tree-reweighted with the edge probabilities of a uniform spanning tree; it does not say which, "
        "nor how near is good; the limits were set before this run, with the numbers of two instances known."
    )
    return Report(claims, lambda: _draw(found), notes)


def _record(table, truth, answers) -> None:
    for name, (value, means) in answers.items():
        row = [value - truth[0], np.abs(means - truth[1]).mean(), truth[0]]
        table[name] = np.vstack([*([table[name]] if name in table else []), row])


def _on_the_grid(model: graphical.Ising):
    strips = np.split(np.arange(SIDE * SIDE), SIDE // 3)
    bethe = graphical.belief_propagation(model, damping=0.5)
    kikuchi = graphical.double_loop(
        model, graphical.RegionGraph.of(model, graphical.plaquettes(SIDE, SIDE)), max_loops=150, tol=1e-6
    )
    return {
        **_mean_fields(model, strips),
        "Bethe": (bethe.log_partition, means_of(bethe.marginals)),
        "Kikuchi": (kikuchi.log_partition, means_of(kikuchi.marginals)),
        "tree-reweighted": tree_reweighted(model),
    }


def _on_the_complete_graph(model: graphical.Ising):
    bethe = graphical.double_loop(model)
    return {
        **_mean_fields(model, np.split(np.arange(NODES), 2)),
        "Bethe": (bethe.log_partition, means_of(bethe.marginals)),
        "tree-reweighted": tree_reweighted(model),
    }


def _mean_fields(model: graphical.Ising, blocks):
    naive, wide = graphical.mean_field(model, n_starts=20), graphical.structured_mean_field(model, blocks=blocks)
    return {
        "mean field": (naive.bound, means_of(naive.marginals)),
        "mean field, blocks": (wide.bound, means_of(wide.marginals)),
    }


def _range(errors: np.ndarray) -> str:
    low, high = errors.min(), errors.max()
    return f"{low:+.3g}" if errors.size == 1 else f"{low:+.3g} to {high:+.3g}"


def _claims(found, settled: int, n: int) -> tuple[Claim, ...]:
    lattice, dense = found["grid"], found["complete"]
    worst = {name: float(np.abs(rows[:, 0]).max()) for name, rows in lattice.items()}
    least = {name: float(np.abs(rows[:, 0]).min()) for name, rows in dense.items()}
    bounds = [rows[name][:, 0] for rows in found.values() for name in ("mean field", "mean field, blocks")]
    share = float((lattice["tree-reweighted"][:, 0] / lattice["tree-reweighted"][:, 2]).max())
    upper = np.concatenate([rows["tree-reweighted"][:, 0] for rows in found.values()])
    return (
        Claim(
            "grid: the Bethe estimate of log Z is almost perfect (within 0.5 nats of about 150)",
            "almost perfect",
            f"off by {_range(lattice['Bethe'][:, 0])} nats; with squares as regions {_range(lattice['Kikuchi'][:, 0])}",
            verdict(worst["Bethe"] <= 0.5),
            item="Figure 4.5",
        ),
        Claim(
            "grid: the tree-reweighted bound is good (within 10 % of log Z)",
            "good",
            f"above by {_range(lattice['tree-reweighted'][:, 0])} nats, {share:.1%} at most",
            verdict(share <= 0.1),
            item="Figure 4.5",
        ),
        Claim(
            "complete graph: sum-product messages do not converge (on most instances, without damping)",
            "did not converge",
            f"{n - settled} of {n} did not",
            verdict(2 * settled < n),
            item="section 4.4",
        ),
        Claim(
            "complete graph: the Bethe estimate breaks down (off by more than 5 nats of about 50)",
            "breaks down",
            f"off by {_range(dense['Bethe'][:, 0])} nats; means off by {dense['Bethe'][:, 1].mean():.2f} on average",
            verdict(least["Bethe"] > 5.0),
            item="Figure 4.6",
        ),
        Claim(
            "complete graph: the tree-reweighted bound is too far to plot (more than 50 nats)",
            "not shown",
            f"above by {_range(dense['tree-reweighted'][:, 0])} nats",
            verdict(least["tree-reweighted"] > 50.0),
            item="Figure 4.6",
        ),
        Claim(
            "mean field is below log Z and the tree-reweighted bound above, on both",
            "by theorem",
            f"lower bounds off by {_range(np.concatenate(bounds))} nats, upper by {_range(upper)}",
            verdict(max(map(np.max, bounds)) <= 0 and upper.min() >= 0),
            item="Figures 4.5 and 4.6",
        ),
    )


def _draw(found):
    fig, axes = figure(2, 2, squeeze=False)
    names = list(found["grid"])
    titles = {"grid": f"grid, {SIDE} x {SIDE}", "complete": f"complete graph, {NODES} nodes"}
    for column, (place, rows) in enumerate(found.items()):
        shown = [name for name in names if name in rows]
        for k, name in enumerate(shown):
            colour = COLOURS[names.index(name) % len(COLOURS)]
            for row in range(2):
                axes[row, column].plot(np.full(len(rows[name]), k), rows[name][:, row], "o", color=colour, alpha=0.7)
        axes[0, column].axhline(0.0, color="0.6", linewidth=0.8)
        axes[0, column].set(title=titles[place])
        if place == "complete":
            axes[0, column].set_yscale("symlog", linthresh=1.0)
            axes[0, column].set_ylim(top=400.0)
        for row in range(2):
            axes[row, column].set_xticks(range(len(shown)), [] if row == 0 else shown, rotation=30, ha="right")
        axes[1, column].set_ylim(0.0)
    axes[0, 0].set_ylabel("error of log Z (nats)")
    axes[1, 0].set_ylabel("mean error of the means")
    return fig
