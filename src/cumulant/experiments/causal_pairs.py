"""Exploration on real data: does adaptation speed find causes, of the Tübingen pairs and among proteins?"""

import itertools

import numpy as np

from cumulant.experiments._causal_pairs import (
    EXPLORATION,
    METHOD,
    NOT_PUBLISHED,
    claims_of,
    compare,
    data_file,
    draw,
    guess,
    share,
    simulated,
)
from cumulant.experiments.base import Claim, Report, experiment, verdict

TITLE = "Adaptation speed on real pairs of cause and effect (an exploration)"
SOURCE = "Le Priol (2021), thesis, chapter 4; pairs of Mooij et al. (2016), cells of Sachs et al. (2005)"
_CELLS = (
    " The cells were observed under several interventions, but the file has all conditions in one table and does not "
    "say which cell had which: the changes that were made cannot be used, and environments are made by splitting, as "
    "for the pairs. Arcs are those of the graph in the file, its cycle included; they share proteins, so that their "
    "intervals are too short. Cells enter by logarithms."
)


@experiment
def run(quick: bool, rng: int) -> Report:
    """Splits on the cause, on the effect, on either at random, and on both; simulated pairs first."""
    seed, settings, repeats = int(rng), (10, 3) if quick else (50, 10), 1 if quick else 3
    control = simulated(4 if quick else 20, seed)
    on_split = [
        guess(*pair, split, seed + i, *settings).split
        for split in ("cause", "effect")
        for i, pair in enumerate(control)
    ]
    on_simulated = share([bool(each) for each in on_split], np.ones(len(on_split)))
    claims = [
        Claim(
            "simulated pairs: the direction with the variable that was split on as the cause adapts faster, whichever "
            "is the cause",
            NOT_PUBLISHED,
            f"{on_simulated} of {len(on_split)}",
            verdict(on_simulated.low > 0.5),
            EXPLORATION,
        )
    ]
    notes, found = METHOD, {}
    for name, file, kind in (
        ("pairs", "tuebingen_pairs.npz", "real pairs, with the weights of the collection"),
        ("proteins", "sachs.npz", "arcs between proteins"),
    ):
        path = data_file(file)
        if path is None:
            notes += f" The {name} were left out: set CUMULANT_DATA to the folder that holds {file}."
            continue
        pairs, weights = _read(path)
        if quick:
            pairs, weights = pairs[:6], weights[:6]
        found[f"causal-{name}"] = (*compare(pairs, repeats, settings, seed), weights, kind)
        claims += claims_of(*found[f"causal-{name}"])
        notes += _CELLS if name == "proteins" else ""
    return Report(claims, (lambda: {name: draw(*each) for name, each in found.items()}) if found else None, notes)


def _read(path):
    """Pairs of cause and effect, and their weights."""
    with np.load(path) as file:
        if "adjacency" in file:
            X = np.log(file["X"])
            pairs = [(X[:, i], X[:, j]) for i, j in zip(*np.nonzero(file["adjacency"]), strict=True)]
            return pairs, np.ones(len(pairs))
        x, y = file["x"], file["y"]
        return [(x[a:b], y[a:b]) for a, b in itertools.pairwise(file["offsets"])], file["weight"]
