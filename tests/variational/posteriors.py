"""Posteriors with reference draws (posteriordb). The data are not part of the project."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from cumulant.sampling import constrained

FOLDER = Path(os.environ.get("CUMULANT_POSTERIORDB", Path(__file__).parents[3] / "shared" / "data" / "posteriordb"))


def normal(x, mean, scale):
    return jnp.sum(-(((x - mean) / scale) ** 2) / 2 - jnp.log(scale))


def half_cauchy(x, scale):
    return -jnp.log1p((x / scale) ** 2)


def _regression(x, data):
    """Normal errors; flat priors unless `prior` says otherwise."""
    return normal(data["y"], data["X"] @ x["beta"], x["sigma"]) + _prior(x, data)


def _prior(x, data):
    scale = data["cauchy"]
    total = jnp.where(scale > 0, half_cauchy(x["sigma"], jnp.where(scale > 0, scale, 1.0)), 0.0)
    wide = data["normal"]
    squares = (jnp.sum(x["beta"] ** 2) + data["on_sigma"] * x["sigma"] ** 2) / 2
    return total - jnp.where(wide > 0, squares / jnp.where(wide > 0, wide, 1.0) ** 2, 0.0)


def _diamonds(x, data):
    mean = x["Intercept"] + data["X"] @ x["b"]
    total = normal(data["y"], mean, x["sigma"]) - jnp.sum(x["b"] ** 2) / 2
    total -= 2 * jnp.log1p(((x["Intercept"] - 8) / 10) ** 2 / 3)
    return total - 2 * jnp.log1p((x["sigma"] / 10) ** 2 / 3)


def _schools(x, data):
    """In the coordinates of the standardised effects."""
    theta = x["mu"] + x["tau"] * x["eta"]
    prior = -jnp.sum(x["eta"] ** 2) / 2 - x["mu"] ** 2 / 50 + half_cauchy(x["tau"], 5.0)
    return normal(data["y"], theta, data["sigma"]) + prior


def _mixture(x, data):
    each = [-((data["y"] - x["mu"][k]) ** 2) / (2 * x["sigma"][k] ** 2) - jnp.log(x["sigma"][k]) for k in range(2)]
    logs = jnp.stack([jnp.log(x["theta"]) + each[0], jnp.log1p(-x["theta"]) + each[1]])
    prior = -jnp.sum(x["mu"] ** 2) / 8 - jnp.sum(x["sigma"] ** 2) / 8
    return jnp.sum(logsumexp(logs, axis=0)) + prior + 4 * (jnp.log(x["theta"]) + jnp.log1p(-x["theta"]))


def _garch(x, data):
    """Variances feed on squares and on themselves; ``shares`` are what is left, alpha_1 and beta_1."""
    _, alpha, beta = x["shares"]

    def following(variance, y):
        variance = x["alpha0"] + alpha * (y - x["mu"]) ** 2 + beta * variance
        return variance, variance

    first = data["sigma1"] ** 2
    _, rest = jax.lax.scan(following, first, data["y"][:-1])
    return normal(data["y"], x["mu"], jnp.sqrt(jnp.concatenate([first[None], rest])))


def _linear(X, y, cauchy=0.0, wide=0.0, on_sigma=0.0):
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    data = {"X": X, "y": y, "cauchy": float(cauchy), "normal": float(wide), "on_sigma": float(on_sigma)}
    return constrained(_regression, {"beta": (X.shape[1],), "sigma": ()}, {"sigma": "positive"}, data)


def _columns(d, *names):
    return np.stack([np.ones(len(d[names[0]])), *(d[name] for name in names)], axis=1)


def load(name):
    """The target, and the reference means and standard deviations in the order of its variables."""
    file = np.load(FOLDER / f"{name}.npz", allow_pickle=False)
    d = {key[5:]: file[key] for key in file.files if key.startswith("data_")}
    mean, sd = file["mean"], file["sd"]
    if name == "kidiq-kidscore_momiq":
        target = _linear(_columns(d, "mom_iq"), d["kid_score"], 2.5)
    elif name == "kidiq-kidscore_interaction":
        target = _linear(
            _columns(d | {"both": d["mom_hs"] * d["mom_iq"]}, "mom_hs", "mom_iq", "both"), d["kid_score"], 2.5
        )
    elif name == "earnings-logearn_height":
        target = _linear(_columns(d, "height"), np.log(d["earn"]))
    elif name == "mesquite-logmesquite":
        logs = {k: np.log(d[k]) for k in ("diam1", "diam2", "canopy_height", "total_height", "density")}
        target = _linear(_columns(logs | {"group": d["group"]}, *logs, "group"), np.log(d["weight"]))
    elif name == "nes1988-nes":
        ages = {f"age{k}": (d["age_discrete"] == k).astype(float) for k in (2, 3, 4)}
        names = ("real_ideo", "race_adj", *ages, "educ1", "gender", "income")
        target = _linear(_columns(d | ages, *names), d["partyid7"])
    elif name == "sblrc-blr":
        target = _linear(d["X"], d["y"], 0.0, 10.0, 1.0)
    elif name == "arK-arK":
        y, K = np.asarray(d["y"], dtype=float), int(d["K"])
        lags = [y[K - k - 1 : len(y) - k - 1] for k in range(K)]
        target = _linear(np.stack([np.ones(len(y) - K), *lags], axis=1), y[K:], 2.5, 10.0)
    elif name == "diamonds-diamonds":
        X = d["X"][:, 1:] - d["X"][:, 1:].mean(axis=0)
        shapes = {"b": (24,), "Intercept": (), "sigma": ()}
        target = constrained(_diamonds, shapes, {"sigma": "positive"}, {"X": X, "y": np.asarray(d["Y"], dtype=float)})
    elif name == "eight_schools-eight_schools_noncentered":
        data = {"y": np.asarray(d["y"], dtype=float), "sigma": np.asarray(d["sigma"], dtype=float)}
        target = constrained(_schools, {"eta": (8,), "mu": (), "tau": ()}, {"tau": "positive"}, data)
        mean, sd = mean[8:], sd[8:]  # mu and tau; the effects are compared by neither
    elif name == "low_dim_gauss_mix-low_dim_gauss_mix":
        spaces = {"mu": "ordered", "sigma": "positive", "theta": ("bounded", 0.0, 1.0)}
        target = constrained(_mixture, {"mu": (2,), "sigma": (2,), "theta": ()}, spaces, {"y": np.asarray(d["y"])})
    elif name == "garch-garch11":
        data = {"y": np.asarray(d["y"], dtype=float), "sigma1": np.asarray(d["sigma1"], dtype=float)}
        shapes = {"shares": (3,), "mu": (), "alpha0": ()}
        target = constrained(_garch, shapes, {"shares": "simplex", "alpha0": "positive"}, data)
        mean, sd = mean[[2, 3, 0, 1]], sd[[2, 3, 0, 1]]
    else:
        raise KeyError(name)
    return target, mean, sd


NAMES = (
    "kidiq-kidscore_momiq", "kidiq-kidscore_interaction", "earnings-logearn_height", "mesquite-logmesquite",
    "nes1988-nes", "sblrc-blr", "arK-arK", "diamonds-diamonds", "eight_schools-eight_schools_noncentered",
    "low_dim_gauss_mix-low_dim_gauss_mix", "garch-garch11",
)  # fmt: skip
