"""Two posteriors of posteriordb, read from the folder ``posteriordb`` in the folder that CUMULANT_DATA names."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant.experiments._crf import folder
from cumulant.sampling import Target, constrained

LEFT_OUT = " The two posteriors were left out: set CUMULANT_DATA to the folder that holds posteriordb/."
SCHOOLS, REGRESSION = "eight_schools-eight_schools_noncentered", "sblrc-blr"


def posteriors() -> dict[str, Target]:
    """The posteriors by name; none where the data are not there."""
    if any(folder(f"posteriordb/{name}.npz") is None for name in (SCHOOLS, REGRESSION)):
        return {}
    schools, regression = _data(SCHOOLS), _data(REGRESSION)
    spaces = {"eta": (8,), "mu": (), "tau": ()}, {"tau": "positive"}
    given = {name: schools[name] for name in ("y", "sigma")}
    shapes = {"beta": (regression["X"].shape[1],), "sigma": ()}, {"sigma": "positive"}
    return {
        "eight schools": constrained(_schools, *spaces, given),
        "regression": constrained(_regression, *shapes, {name: regression[name] for name in ("X", "y")}),
    }


def _data(name: str) -> dict[str, np.ndarray]:
    where = folder(f"posteriordb/{name}.npz")
    assert where is not None
    with np.load(where / "posteriordb" / f"{name}.npz", allow_pickle=False) as file:
        return {key[5:]: np.asarray(file[key], dtype=float) for key in file.files if key.startswith("data_")}


def _schools(x: Any, data: Any) -> Any:
    """Effects of coaching in eight schools, in the coordinates of the standardised effects."""
    off = (data["y"] - x["mu"] - x["tau"] * x["eta"]) / data["sigma"]
    prior = -jnp.sum(x["eta"] ** 2) / 2 - x["mu"] ** 2 / 50 - jnp.log1p((x["tau"] / 5.0) ** 2)
    return prior - jnp.sum(off**2) / 2 - jnp.sum(jnp.log(data["sigma"]))


def _regression(x: Any, data: Any) -> Any:
    """Normal errors; normal priors of coefficients and, on the positive numbers, of the deviation, with scale 10."""
    off = (data["y"] - data["X"] @ x["beta"]) / x["sigma"]
    prior = -(jnp.sum(x["beta"] ** 2) + x["sigma"] ** 2) / 200
    return prior - jnp.sum(off**2) / 2 - data["y"].size * jnp.log(x["sigma"])
