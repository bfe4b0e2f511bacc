"""Which of two columns is the cause? `python examples/causes.py [BEFORE.csv AFTER.csv ...]`.

Tables have two columns, with a header: one table from before and one or more from after unknown changes; columns of
numbers are cut into five bins. Without files, a simulated drug and its effect: first the doses change, then the effect
is set by something else. Prints which direction adapts faster, by how much, what appears to have changed, and where
speed does not point to the cause. Needs pandas.
"""

import sys
import warnings

import numpy as np
import pandas as pd

from cumulant.causal import AdaptationSpeed


def simulated(kind: str, n: int, seed: int) -> pd.DataFrame:
    """Doses and effects before a change (``"none"``), and after one of the doses or of the effect."""
    rng = np.random.default_rng(seed)
    shares = [0.1, 0.2, 0.7] if kind == "dose" else [0.5, 0.3, 0.2]
    dose = rng.choice(3, n, p=shares)
    effect = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]])[dose]
    if kind == "effect":
        effect = np.tile([0.2, 0.2, 0.6], (n, 1))
    response = (rng.random(n)[:, None] > np.cumsum(effect, axis=1)).sum(axis=1)
    return pd.DataFrame({"dose": np.array(["low", "middle", "high"])[dose], "response": response})


def bins(table: pd.DataFrame) -> tuple[int | None, int | None]:
    """Five for a column of many numbers; categories stay what they are."""
    first, second = (pd.Series(table[name]) for name in table)
    return _bins_of(first), _bins_of(second)


def _bins_of(column: pd.Series) -> int | None:
    return 5 if pd.api.types.is_numeric_dtype(column.dtype) and column.nunique() > 10 else None


def main(arguments: list[str]) -> None:
    """Run the example."""
    if arguments:
        before, *after = (pd.read_csv(each) for each in arguments)
        jobs = {"the files": (before, after)}
    else:
        before = simulated("none", 2000, 0)
        jobs = {
            "a change of the dose": (before, [simulated("dose", 2000, 1)]),
            "a change of the response": (before, [simulated("effect", 2000, 2)]),
        }
    warnings.filterwarnings("ignore", "faster adaptation does not mean cause")  # the summary has it
    for name, (reference, transfers) in jobs.items():
        model = AdaptationSpeed(n_bins=bins(reference), random_state=0).fit(reference, transfers)
        print(f"After {name}:\n{model.summary()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
