"""Random members of every family, and an independent description of each by scipy.stats where it has one."""

import numpy as np
from scipy import stats

from cumulant import families as fam
from cumulant.geometry.symmetric import unvech

BATCH = 12
CUBE = 40  # numbers of the unit cube that a member may use


def _log_scale(u, low, high):
    return low * (high / low) ** u


def _simplex(u):
    weights = -np.log(1 - 0.98 * u)
    return (weights + 0.02) / np.sum(weights + 0.02, axis=-1, keepdims=True)


def _covariance(u, d):
    """A positive definite matrix with eigenvalues between 0.2 and 5 or so, from numbers in the unit cube."""
    factor = np.zeros((*u.shape[:-1], d, d))
    rows, columns = np.tril_indices(d)
    factor[..., rows, columns] = 2 * u[..., : rows.size] - 1
    diagonal = np.arange(d)
    factor[..., diagonal, diagonal] = _log_scale(u[..., rows.size : rows.size + d], 0.5, 2.0)
    return factor @ np.swapaxes(factor, -1, -2)


def _unit(u):
    v = 2 * u - 1 + 1e-3
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def _matrix_families(f, u):
    name, d = type(f).__name__, getattr(f, "size", 0)
    mean, tail = 4 * u[..., :d] - 2, u[..., d:]
    match name:
        case "MultivariateNormal":
            return {"mean": mean, "covariance": _covariance(tail, d)}
        case "MultivariateNormalDiagonal":
            return {"mean": mean, "variances": _log_scale(tail[..., :d], 0.2, 5.0)}
        case "MultivariateNormalIsotropic":
            return {"mean": mean, "variance": _log_scale(tail[..., 0], 0.2, 5.0)}
        case "MultivariateNormalKnownCovariance":
            return {"mean": 4 * u[..., : f.event_shape[0]] - 2}
        case "MultivariateNormalKnownMean":
            return {"covariance": _covariance(u, f.event_shape[0])}
        case "Wishart" | "InverseWishart":
            return {"dof": d + _log_scale(u[..., 0], 2.0, 20.0), "scale": _covariance(u[..., 1:], d)}
        case "NormalInverseWishart":
            dof = d + _log_scale(tail[..., 0], 2.0, 20.0)
            kappa = _log_scale(tail[..., 1], 0.3, 5.0)
            return {"mean": mean, "kappa": kappa, "dof": dof, "scale": _covariance(tail[..., 2:], d)}
        case "NormalInverseGamma":
            scale = {"shape": _log_scale(u[..., 2], 2.0, 20.0), "scale": _log_scale(u[..., 3], 0.2, 5.0)}
            return {"mean": 4 * u[..., 0] - 2, "kappa": _log_scale(u[..., 1], 0.3, 5.0), **scale}
    raise NotImplementedError(f"no random members for {name}: add them to tests/families/cases.py")


def usual_parameters(f, u):
    """Usual parameters of ``len(u)`` members of `f`, from numbers ``u`` in the unit cube, shape ``(batch, CUBE)``."""
    a, b = u[..., 0], u[..., 1]
    match type(f).__name__:
        case "Bernoulli" | "Binomial":
            return {"probability": 0.02 + 0.96 * a}
        case "Geometric" | "NegativeBinomial":
            return {"probability": 0.1 + 0.85 * a}
        case "Categorical" | "Multinomial":
            return {"probabilities": _simplex(u[..., : f.categories])}
        case "Poisson":
            return {"rate": _log_scale(a, 0.1, 60.0)}
        case "Exponential" | "GammaKnownShape":
            return {"rate": _log_scale(a, 0.05, 20.0)}
        case "Gamma":
            return {"shape": _log_scale(a, 0.3, 50.0), "rate": _log_scale(b, 0.1, 10.0)}
        case "InverseGamma":
            return {"shape": _log_scale(a, 0.3, 50.0), "scale": _log_scale(b, 0.1, 10.0)}
        case "InverseGaussian":
            return {"mean": _log_scale(a, 0.2, 5.0), "shape": _log_scale(b, 0.2, 20.0)}
        case "Beta":
            return {"a": _log_scale(a, 0.3, 30.0), "b": _log_scale(b, 0.3, 30.0)}
        case "Dirichlet":
            return {"concentration": _log_scale(u[..., : f.size], 0.3, 30.0)}
        case "Normal":
            return {"mean": 6 * a - 3, "variance": _log_scale(b, 0.1, 10.0)}
        case "LogNormal":
            return {"location": 2 * a - 1, "variance": _log_scale(b, 0.1, 2.0)}
        case "NormalKnownVariance":
            return {"mean": 6 * a - 3}
        case "NormalKnownMean":
            return {"variance": _log_scale(a, 0.1, 10.0)}
        case "VonMises":
            return {"direction": 6 * a - 3, "concentration": _log_scale(b, 0.05, 60.0)}
        case "VonMisesFisher":
            return {"direction": _unit(u[..., : f.size]), "concentration": _log_scale(u[..., f.size], 0.05, 60.0)}
        case "LaplaceKnownCentre" | "WeibullKnownShape" | "Rayleigh":
            return {"scale": _log_scale(a, 0.2, 5.0)}
        case "ParetoKnownMinimum":
            return {"exponent": _log_scale(a, 0.5, 10.0)}
        case "FiniteFamily":
            weights = np.exp((3 * u[..., : f.dim] - 1.5) @ np.asarray(f.T).T) * np.asarray(f.base_measure)
            return {"probabilities": weights / weights.sum(axis=-1, keepdims=True)}
        case "Product":
            step = CUBE // len(f.parts)
            return {"parts": tuple(usual_parameters(p, u[..., i * step :]) for i, p in enumerate(f.parts))}
    return _matrix_families(f, u)


def members(f, u):
    """Natural parameters of random members, shape ``(len(u), dim)``."""
    if not isinstance(f, fam.ExponentialFamily):
        return 3 * u[..., : f.dim] - 1.5
    return np.asarray(f.natural(**usual_parameters(f, u)))


def member(f, seed):
    """One random member; made from a whole batch, so that every test compiles the same program."""
    return members(f, cube(seed))[0]


def cube(seed, batch=BATCH):
    return np.random.default_rng(seed).uniform(size=(batch, CUBE))


def scipy_twin(f, **usual):
    """The same distribution in scipy.stats, or None."""
    g = {name: np.asarray(value) for name, value in usual.items()}
    match type(f).__name__:
        case "Bernoulli":
            return stats.bernoulli(g["probability"])
        case "Binomial":
            return stats.binom(f.trials, g["probability"])
        case "Geometric":
            return stats.geom(g["probability"], loc=-1)
        case "NegativeBinomial":
            return stats.nbinom(f.successes, g["probability"])
        case "Poisson":
            return stats.poisson(g["rate"])
        case "Exponential":
            return stats.expon(scale=1 / g["rate"])
        case "Gamma":
            return stats.gamma(g["shape"], scale=1 / g["rate"])
        case "GammaKnownShape":
            return stats.gamma(f.shape, scale=1 / g["rate"])
        case "InverseGamma":
            return stats.invgamma(g["shape"], scale=g["scale"])
        case "InverseGaussian":
            return stats.invgauss(g["mean"] / g["shape"], scale=g["shape"])
        case "Beta":
            return stats.beta(g["a"], g["b"])
        case "Normal":
            return stats.norm(g["mean"], np.sqrt(g["variance"]))
        case "LogNormal":
            return stats.lognorm(np.sqrt(g["variance"]), scale=np.exp(g["location"]))
        case "NormalKnownVariance":
            return stats.norm(g["mean"], np.sqrt(f.variance))
        case "NormalKnownMean":
            return stats.norm(f.mean, np.sqrt(g["variance"]))
        case "VonMises":
            return stats.vonmises(g["concentration"], loc=g["direction"])
        case "LaplaceKnownCentre":
            return stats.laplace(f.centre, g["scale"])
        case "ParetoKnownMinimum":
            return stats.pareto(g["exponent"], scale=f.minimum)
        case "WeibullKnownShape":
            return stats.weibull_min(f.shape, scale=g["scale"])
        case "Rayleigh":
            return stats.rayleigh(scale=g["scale"])
    return None


def scipy_log_density(f, x, usual):
    """The log density of one member at ``x`` by scipy.stats, for the families of vectors and matrices; None if it has
    none.
    """
    match type(f).__name__:
        case "Categorical":
            return stats.multinomial(1, usual["probabilities"]).logpmf(np.eye(f.categories)[x.astype(int)])
        case "Multinomial":
            return stats.multinomial(f.trials, usual["probabilities"]).logpmf(x)
        case "FiniteFamily":
            return stats.rv_discrete(values=(np.arange(f.n_states), usual["probabilities"])).logpmf(x)
        case "Dirichlet":
            return stats.dirichlet(usual["concentration"]).logpdf(x.T)
        case "VonMisesFisher":
            return stats.vonmises_fisher(usual["direction"], float(usual["concentration"])).logpdf(x)
        case "MultivariateNormal":
            return stats.multivariate_normal(usual["mean"], usual["covariance"]).logpdf(x)
        case "MultivariateNormalDiagonal":
            return stats.multivariate_normal(usual["mean"], np.diag(usual["variances"])).logpdf(x)
        case "MultivariateNormalIsotropic":
            return stats.multivariate_normal(usual["mean"], usual["variance"] * np.eye(f.size)).logpdf(x)
        case "MultivariateNormalKnownCovariance":
            return stats.multivariate_normal(usual["mean"], f.covariance).logpdf(x)
        case "MultivariateNormalKnownMean":
            return stats.multivariate_normal(f.mean, usual["covariance"]).logpdf(x)
        case "Wishart":
            return stats.wishart(float(usual["dof"]), usual["scale"]).logpdf(np.moveaxis(x, 0, -1))
        case "InverseWishart":
            return stats.invwishart(float(usual["dof"]), usual["scale"]).logpdf(np.moveaxis(x, 0, -1))
    return None


# Quadrature: nodes and weights that integrate smooth densities on the line, spectrally accurate after a change of
# variable.


def nodes(f):
    """Points ``x`` and weights ``w`` with ``sum w g(x) = int g`` (a sum, for counts); None for vectors."""
    if f.event_shape or isinstance(f, fam.Product):
        return None
    if f.discrete:
        top = {"Bernoulli": 2, "Binomial": getattr(f, "trials", 0) + 1, "Categorical": getattr(f, "categories", 0)}
        top["FiniteFamily"] = getattr(f, "n_states", 0)
        x = np.arange(top.get(type(f).__name__, 2000), dtype=float)
        return x, np.ones_like(x)
    if isinstance(f, fam.VonMises):
        x = np.linspace(-np.pi, np.pi, 2000, endpoint=False)
        return x, np.full_like(x, 2 * np.pi / 2000)
    if isinstance(f, fam.Beta):
        u = np.linspace(-110.0, 110.0, 40001)
        x = 1 / (1 + np.exp(-u))
        keep = (x > 0) & (x < 1)
        return x[keep], (x * (1 / (1 + np.exp(u))) * (u[1] - u[0]))[keep]
    if f.support.startswith("x real"):
        centre = {"NormalKnownMean": getattr(f, "mean", 0.0), "LaplaceKnownCentre": getattr(f, "centre", 0.0)}.get(
            type(f).__name__, 0.0
        )
        half = np.linspace(-45.0, 12.0, 20001)  # both sides apart: the Laplace density has a corner in the middle
        x = np.concatenate([centre - np.exp(half), centre + np.exp(half)])
        return x, np.tile(np.exp(half) * (half[1] - half[0]), 2)
    shift = f.minimum if isinstance(f, fam.ParetoKnownMinimum) else 0.0
    u = np.linspace(-110.0, 70.0, 60001)
    return shift + np.exp(u), np.exp(u) * (u[1] - u[0])


def half_vector_to_matrix(v):
    return unvech(v)
