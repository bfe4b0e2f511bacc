"""How noisy the gradients of variational inference are, against the bounds that the convergence theorems rest on."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import variational as vi
from cumulant.experiments._bbvi import SOURCE as _SOURCE
from cumulant.experiments._bbvi import constants
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator
from cumulant.variational.whitening import laplace

TITLE = "Variational inference: second moments of gradient estimators against their bounds"
SOURCE = f"{_SOURCE}, theorems 1 to 4 and 30, lemma 29, and the discussion"


@experiment
def run(quick: bool, rng: int) -> Report:
    """Second moments on a logistic regression, with dimension, and by rows; path against score gradients."""
    generate = generator(rng)
    draws = 4000 if quick else 20_000
    grown = _with_dimension(generate, draws, (2, 4, 8) if quick else (2, 4, 8, 16, 32))
    claims = [
        _moment_identity(generate, draws * 50),
        _equality(generate, draws * 50),
        *_ratios(generate, draws, 10 if quick else 30),
        _gaussian_target(generate),
        _subsampling(generate, draws),
        _path_and_score(generate, draws * 50),
        *grown[0],
    ]
    return Report(claims, lambda: _draw(grown[1]))


def _moment_identity(generate, n) -> Claim:
    d = 3
    A, b, u = generate.normal(size=(d, d)), generate.normal(size=d), generate.normal(size=(n, d))
    values = (1 + np.sum(u**2, axis=1)) * np.sum((u @ A.T + b) ** 2, axis=1)
    exact = (d + 1) * np.sum(b**2) + (d + 3) * np.sum(A**2)
    error = values.std() / np.sqrt(n)
    return Claim(
        "lemma 29: E (1 + |u|^2) |A u + b|^2 = (d + 1) |b|^2 + (d + 3) |A|_F^2",
        f"{exact:.4g}",
        f"{values.mean():.4g} ± {error:.2g}",
        verdict(abs(values.mean() - exact) <= 4 * error),
    )


def _equality(generate, n) -> Claim:
    """Theorem 1 for ``phi = M |z|^2 / 2`` with any factor: the pull-back is the whole outer product."""
    d, M = 3, 2.0
    m, C, u = generate.normal(size=d), generate.normal(size=(d, d)), generate.normal(size=(n, d))
    g = M * (m + u @ C.T)
    values = np.sum(g**2, axis=1) * (1 + np.sum(u**2, axis=1))
    exact = M**2 * ((d + 1) * np.sum(m**2) + (d + 3) * np.sum(C**2))
    error = values.std() / np.sqrt(n)
    return Claim(
        "theorem 1: the first inequality is an equality for phi = M |z - z'|^2 / 2 and any matrix as factor",
        f"{exact:.5g}",
        f"{values.mean():.5g} ± {error:.2g}",
        verdict(abs(values.mean() - exact) <= 4 * error),
    )


def _posterior(generate, n=30, d=4):
    X = generate.normal(size=(n, d))
    y = (generate.random(n) < 1 / (1 + np.exp(-X @ generate.normal(size=d)))).astype(int)
    target = vi.logistic_regression(X, y)
    best = vi.fit(target, accuracy=1e-8)
    return target, best


def _in_family(q, m, S):
    values, vectors = np.linalg.eigh(S)
    root = (vectors * np.sqrt(values)) @ vectors.T
    return q.pack(m, np.linalg.cholesky(S) if q.kind == "triangular" else (root + root.T) / 2)


def _second_moment(estimator, target, q, w, u) -> float:
    with jax.enable_x64(True):
        problem = vi.NegativeELBO(target, q, np.zeros((1, q.dim)))
        each = jax.jit(jax.vmap(lambda row: jnp.sum(estimator.at(problem, jnp.asarray(w), row[None]) ** 2)))
        return float(jnp.mean(each(jnp.asarray(u))))


def _ratios(generate, n, points) -> list[Claim]:
    target, best = _posterior(generate)
    (mu, M), d = constants(target), target.dim
    mode = laplace(target, best.mean).mode
    u = generate.normal(size=(n, d))
    S = best.covariance
    # A residual smoothness that is certainly enough: the Hessian of log p is between -M and -mu.
    precision = np.linalg.eigvalsh(np.linalg.inv(S))
    K = max(M - precision[0], precision[-1] - mu)
    still = _stationary_residual(target, best)
    claims = []
    for name, estimator in (
        ("theorem 2, energy", vi.EnergyGradient()),
        ("theorem 3, entropy", vi.EntropyGradient()),
        ("theorem 4, sticking the landing", vi.StickingTheLanding()),
    ):
        worst = {}
        for kind in ("symmetric", "triangular"):
            q = vi.FullRank(d, kind)
            w_best = _in_family(q, best.mean, S)
            ratios = []
            for _ in range(points):
                A = generate.normal(size=(d, d)) * generate.uniform(0.1, 1.0)
                w = _in_family(q, best.mean + generate.normal(size=d), A @ A.T + np.eye(d) / M)
                apart = float(np.sum((w - w_best) ** 2))
                around = np.zeros_like(w)
                if isinstance(estimator, vi.StickingTheLanding):
                    around[:, 0] = still
                    bound = 8 * (d + 3) * M**2 * apart + 2 * (d + 3) * K**2 * float(np.sum((w - around) ** 2))
                else:
                    around[:, 0] = mode
                    bound = (d + 3) * M**2 * float(np.sum((w - around) ** 2))
                    if isinstance(estimator, vi.EntropyGradient):
                        bound = 2 * bound + 2 * d * M
                ratios.append(_second_moment(estimator, target, q, w, u) / bound)
            worst[kind] = max(ratios)
        claims.append(
            Claim(
                f"{name}: E |g|^2 is below its bound on a logistic regression, d = 4, n = 30",
                "at most 1",
                f"largest ratio over {points} points: " + listed(worst, ".3f"),
                verdict(max(worst.values()) <= 1),
            )
        )
    return claims


def _stationary_residual(target, best) -> np.ndarray:
    """A point where ``grad log p = grad log q*``, by Newton's method on the residual."""
    P = np.linalg.inv(best.covariance)
    z = best.mean.copy()
    X = target.data[0]
    for _ in range(100):
        r = np.asarray(target.gradient(z)) + P @ (z - best.mean)
        s = 1 / (1 + np.exp(-X @ z))
        H = -(X.T * (s * (1 - s))) @ X - target.data[2] + P
        step = np.linalg.lstsq(H, r, rcond=None)[0]
        while np.linalg.norm(np.asarray(target.gradient(z - step)) + P @ (z - step - best.mean)) > np.linalg.norm(r):
            step /= 2
            if np.linalg.norm(step) < 1e-14:
                break
        z = z - step
    return z


def _gaussian_target(generate) -> Claim:
    target = vi.gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]])
    u, worst = generate.normal(size=(200, 2)), 0.0
    for kind in ("symmetric", "triangular"):
        q = vi.FullRank(2, kind)
        w = _in_family(q, [1.0, -1.0], np.array([[1.0, 0.3], [0.3, 0.5]]))
        worst = max(worst, _second_moment(vi.StickingTheLanding(), target, q, w, u))
    return Claim(
        "theorem 4, K = 0: at the best fit to a Gaussian the sticking-the-landing gradient is zero for every draw",
        "0",
        f"mean square {worst:.0e} over 200 draws, both factors",
        verdict(worst < 1e-25),
    )


def _subsampling(generate, n) -> Claim:
    """Each row with its share of the prior is a term; its stationary point exists."""
    target, best = _posterior(generate)
    X, y, P = target.data[:3]
    rows, d = X.shape
    smooth = np.sum(X**2, axis=1) / 4 + P[0, 0] / rows
    stationary = np.zeros((rows, d))
    for i in range(rows):  # -y x sigmoid(-y <x, z>) + z / rows = 0 along x
        t = 0.0
        for _ in range(200):
            slope = -y[i] / (1 + np.exp(y[i] * t * np.sum(X[i] ** 2)))
            t -= 0.5 * rows / (1 + rows * np.sum(X[i] ** 2) / 4) * (slope + t * P[0, 0] / rows)
        stationary[i] = t * X[i]
    C = np.linalg.cholesky(best.covariance)
    m = best.mean + 0.3
    u, chosen = generate.normal(size=(n, d)), generate.integers(rows, size=n)
    z = m + u @ C.T
    scores = np.sum(X[chosen] * z, axis=1)
    g = rows * (-(y[chosen] / (1 + np.exp(y[chosen] * scores)))[:, None] * X[chosen] + z @ P / rows)
    pulled = np.sum(g**2, axis=1) + np.sum(np.tril(g[:, :, None] * u[:, None, :]) ** 2, axis=(1, 2))
    bound = rows * np.sum(smooth**2 * ((d + 1) * np.sum((m - stationary) ** 2, axis=1) + (d + 3) * np.sum(C**2)))
    return Claim(
        "discussion: with one of n terms drawn at random, E |g|^2 <= n sum M_i^2 ((d + 1) |m - z_i|^2 + (d + 3) |C|^2)",
        f"{bound:.3g}",
        f"{pulled.mean():.3g} ± {pulled.std() / np.sqrt(n):.1g}",
        verdict(pulled.mean() + 3 * pulled.std() / np.sqrt(n) <= bound),
    )


def _path_and_score(generate, n) -> Claim:
    u = generate.normal(size=n)
    found = {}
    for eps in (1.0, 0.1, 0.01, 0.001):
        path = u + np.cos(u / eps) / np.sqrt(eps)
        score = (u**2 / 2 + np.sqrt(eps) * np.sin(u / eps)) * u
        found[eps] = float(path.var()), float(score.var())
    tiny = found[0.001]
    return Claim(
        "discussion: adding sqrt(eps) sin(z / eps) to the potential hardly changes the posterior or the score gradient,"
        " and the noise of the path gradient grows as 1 / (2 eps)",
        "path 1.20, 6.00, 51.0, 501; score 4.08, 3.80, 3.75, 3.748",
        "; ".join(f"eps {eps:g}: path {a:.3g}, score {b:.3g}" for eps, (a, b) in found.items()),
        verdict(abs(tiny[0] / 501 - 1) < 0.05 and abs(tiny[1] / 3.75 - 1) < 0.05),
    )


def _with_dimension(generate, n, sizes) -> tuple[list[Claim], dict]:
    """Noise of the three estimators near the best fit as the dimension grows: a Gaussian and a logistic target."""
    curves: dict[str, list[float]] = {"energy": [], "entropy": [], "sticking the landing": []}
    for d in sizes:
        target, best = _posterior(generate, n=20 * d, d=d)
        q = vi.FullRank(d)
        w = _in_family(q, best.mean, best.covariance)
        u = generate.normal(size=(max(n // d, 500), d))
        for name, estimator in zip(
            curves, (vi.EnergyGradient(), vi.EntropyGradient(), vi.StickingTheLanding()), strict=True
        ):
            curves[name].append(_second_moment(estimator, target, q, w, u))
    ratio = [a / b for a, b in zip(curves["energy"], curves["sticking the landing"], strict=True)]
    claim = Claim(
        "at the best fit of a logistic regression sticking the landing has far less noise than the energy gradient",
        "less, at most K^2 against M^2",
        f"energy over sticking the landing at d = {', '.join(map(str, sizes))}: " + listed(ratio, ".1f"),
        verdict(min(ratio) > 2),
    )
    return [claim], {"sizes": sizes, **curves}


def _draw(curves):
    fig, ax = figure()
    for colour, name in zip(COLOURS, ("energy", "entropy", "sticking the landing"), strict=False):
        ax.loglog(curves["sizes"], curves[name], "o-", color=colour, label=name)
    ax.set(xlabel="dimension", ylabel="E |g|^2 at the best fit")
    return fig
