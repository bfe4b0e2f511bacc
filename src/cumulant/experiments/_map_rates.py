"""Rates of posterior modes and of mirror descent, exact and asymptotic."""

import math

import numpy as np
from scipy.special import digamma

from cumulant.experiments.base import Claim, listed, verdict
from cumulant.families import (
    Bernoulli,
    Exponential,
    Normal,
    NormalKnownMean,
    risk,
)


def mirror_descent(draw) -> list[Claim]:
    fam, prior = Normal(), np.array([1.0, 2.0])
    x = draw.normal(0.3, 1.4, 400)
    T = np.stack([x, x**2], axis=1)
    mu, off, late = prior.copy(), 0.0, 0.0
    for n, t in enumerate(T, start=1):
        gamma = 1 / (2.5 + n)
        wrong = mu - 1 / (2.5 + n - 1) * (mu - t)  # the step of (5.135), one behind
        mu = mu - gamma * (mu - t)
        batch = (2.5 * prior + T[:n].sum(axis=0)) / (2.5 + n)
        off = max(off, float(np.abs(mu - batch).max()))
        late = max(late, float(np.abs(wrong - batch).max()))
    theta = fam.to_natural(mu)
    gradient = fam.to_mean(theta) - T.mean(axis=0)
    landed = fam.to_natural(fam.to_mean(theta) - gradient)
    confused = float(np.abs(np.asarray(theta) - T[-1] - gradient).max())
    step = float(np.abs(np.asarray(landed) - np.asarray(fam.mle(x))).max())
    f = float(fam.bregman(landed, theta))
    relative = abs(
        float(fam.log_partition(landed) - fam.log_partition(theta) - fam.to_mean(theta) @ (np.asarray(landed) - theta))
        - f
    )
    return [
        Claim(
            "the posterior mode is stochastic mirror descent with steps 1/(n0 + n): grad A(theta_n) = grad "
            "A(theta_{n-1}) - gamma_n g_n; (5.16) prints grad A*(theta_n)",
            "grad A*(theta_n)",
            f"off from the batch formula by {off:.0e} over 400 observations; g with theta in place of grad A(theta) is "
            f"off by {confused:.2f}",
            verdict(off < 1e-12 and confused > 0.1, corrected=True),
            item="(5.15), (5.16)",
        ),
        Claim(
            "the recursion of appendix 5.F has the step 1/(n0 + n) for the n-th observation; (5.135) is one behind",
            "indices of (5.135)",
            f"with the index as printed it leaves the batch formula by {late:.3f}, as corrected by {off:.0e}",
            verdict(off < 1e-12 and late > 0.01, corrected=True),
            item="(5.135)",
        ),
        Claim(
            "one step of mirror descent of length 1 on a likelihood is the MLE: f is 1-smooth and 1-strongly convex "
            "relative to A",
            "(5.131) to (5.134)",
            f"off by {step:.0e}; Breg_f = Breg_A to {relative:.0e}",
            verdict(step < 1e-9 and relative < 1e-9),
            item="Appendix 5.F",
        ),
    ]


def asymptotics(quick) -> list[Claim]:
    n = 10_000
    limits = {
        "variance": 2 * n * float(risk.risk_mle_gamma(n, 0.5)),
        "rate": 2 * n * float(risk.risk_mle_gamma(n, 1.0)),
        "3 x 3 covariance": n * float(risk.risk_mle_covariance(n, 3)) / 3,
        "mean and variance": n * float(risk.risk_mle_normal(n)),
        "posterior mode of a variance": 2 * n * float(risk.risk_map_gamma(n, 1, 2, 0.5)),
        "3 classes": n * float(risk.risk_map_categorical(n, 3.0, [0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3])),
    }
    sizes = np.array([1000, 2000])
    remainder = np.abs(2 * sizes * risk.risk_mle_gamma(sizes, 0.5) - 1) / (2 * sizes)
    slope = float(np.log2(remainder[0] / remainder[1]))
    proxy = []
    for size in (5, 20, 100):
        exact = float(risk.risk_map_gamma(size, 1, 2, 0.5))
        second = (size + 1 * 0.5 * 1.0) / (2 * (size + 1) ** 2)  # n d + n0^2 |mu* - mu0|_F^2, F = 1/2 at the truth 1
        proxy.append((exact, second, 1 / (2 * size)))
    p = np.concatenate([np.geomspace(1e-3, 0.5, 60 if quick else 200)])
    worst = {}
    for size in (50, 500):
        for n0 in (1.0, 1.5, 2.0):
            values = [2 * size * float(risk.risk_map_categorical(size, n0, [q, 1 - q], [0.5, 0.5])) for q in p]
            worst[size, n0] = max(values)
    endless = np.isinf(risk.risk_map_categorical([1, 100], 0.0, [0.5, 0.5], [0.5, 0.5])).all()
    return [
        Claim(
            "the risk of MLE and posterior mode tends to d/(2n), with a remainder O(n^-3/2); not for the MLE of "
            "classes, whose risk is infinite",
            "O(n^-3/2)",
            f"2n risk / d at n = 10^4: {listed(limits, '.4f')}; the remainder falls as n^-{slope:.2f} for a variance; "
            f"MLE of classes infinite: {bool(endless)}",
            verdict(all(abs(value - 1) < 0.01 for value in limits.values()) and slope > 1.5 and endless, loose=True),
            item="(5.23), (5.110)",
        ),
        Claim(
            "with the prior to second order: (n d + n0^2 |mu* - mu0|_F^2) / (2 (n + n0)^2)",
            "(5.111) to (5.113)",
            "; ".join(f"{a:.5f} ({b:.5f}, and d/(2n) {c:.5f})" for a, b, c in proxy) + " at n = 5, 20, 100",
            verdict(abs(proxy[-1][0] - proxy[-1][1]) < abs(proxy[-1][0] - proxy[-1][2]) and proxy[-1][0] < 1 / 200),
            item="(5.111) to (5.113)",
        ),
        Claim(
            "for classes d/(2n) is the minimax risk in the limit (cited): the worst case of posterior modes comes "
            "down to it",
            "d/(2n)",
            "worst 2n risk for two classes, p from 0.001: "
            + "; ".join(f"n = {size}, n0 = {n0:g}: {value:.4f}" for (size, n0), value in worst.items()),
            verdict(
                min(worst[500, n0] for n0 in (1.0, 1.5, 2.0)) > 0.98
                and abs(worst[500, 1.0] - 1) < 0.03 < worst[50, 2.0] - 1
            ),
            item="(5.23), minimax",
        ),
    ]


def quadratic(draw) -> list[Claim]:
    d, n, n0 = 2, 3, 1.0
    shift = np.array([0.6, 0.8])
    means = draw.normal(size=(200_000, n, d)).mean(axis=1)
    values = 0.5 * np.sum(((n * means + n0 * shift) / (n + n0)) ** 2, axis=1)
    exact = float(risk.risk_map_quadratic(n, n0, d, 1.0))
    off = abs(values.mean() - exact) / (values.std() / math.sqrt(values.size))
    # A* of a Bernoulli on [.2, .8]: its curvature 1/(p(1-p)) is at most 6.25, its slope log 4.
    p = np.linspace(0.2, 0.8, 61)
    a, b = (axis.ravel() for axis in np.meshgrid(p, p))
    kl = a * np.log(a / b) + (1 - a) * np.log((1 - a) / (1 - b))
    smooth = 0.5 * 6.25 * (a - b) ** 2
    steep = risk.bound_lipschitz(math.log(4), np.abs(a - b)).value
    return [
        Claim(
            "where A* is quadratic the risk is (n Var T + n0^2 |mu* - mu0|^2) / (2 (n + n0)^2), Var T / (2n) for the "
            "MLE",
            "(5.25), (5.26)",
            f"n = 3, n0 = 1, d = 2: {exact:.5f}; simulation off by {off:.2f} standard errors",
            verdict(exact == 0.21875 and off < 4 and float(risk.risk_map_quadratic(n, 0, d, 0)) == d / (2 * n)),
            item="(5.25), (5.26)",
        ),
        Claim(
            "where A* is L-smooth the divergence is at most L/2 |mu* - mu|^2, and where it is L-Lipschitz at most 2 "
            "L |mu* - mu|",
            "(5.27) to (5.29)",
            f"Bernoulli between 0.2 and 0.8: largest ratios {np.nanmax(kl / np.where(smooth > 0, smooth, np.nan)):.3f} "
            f"and {np.nanmax(kl / np.where(steep > 0, steep, np.nan)):.3f}",
            verdict(np.all(kl <= smooth + 1e-15) and np.all(kl <= steep + 1e-15)),
            item="(5.27) to (5.29)",
        ),
    ]


def concordance() -> list[Claim]:
    needed = float(risk.samples_to_quadratic(1, 10.0, 3.0))
    printed = 25 + 5 * 3.0 - 10.0

    def norm(n):
        return math.sqrt((n + 100 * 9.0) / (n + 10.0) ** 2)  # E |.|_F^2 with d = 1, n0 = 10, D = 3

    # Five times the constant, alpha = 0.1: the printed form of the rule is about norms, the radius is M times them.
    constant = risk.self_concordance_constant(NormalKnownMean())
    scaled = float(risk.samples_to_quadratic(1, 0.0, 0.0, constant))
    ratios = {}
    for fam, point in ((NormalKnownMean(), 0.7), (Exponential(), 0.7), (Bernoulli(), 0.1)):
        ratios[type(fam).__name__] = float(risk.check_self_concordance(fam.conjugate, [[point]], [[1.0]]).constant)
    return [
        Claim(
            "25 d + 5 n0 |mu* - mu0|_F - n0 observations bring E |mu* - mu_n|_F below 0.2; printed without the "
            "factor n0, and M = 1",
            "25 d + 5 |mu* - mu0| - n0",
            f"d = 1, n0 = 10, distance 3: after {printed:.0f} as printed the norm is {norm(printed):.3f}, after "
            f"{needed:.0f} {norm(needed):.3f}; with M = sqrt 2 of a variance, 25 becomes {scaled:.0f}",
            verdict(norm(printed) > 0.2 >= norm(needed) and abs(scaled - 50) <= 1, corrected=True),
            item="Proposition 5.5.1, samples",
        ),
        Claim(
            "entropies of normals, exponentials and classes are self-concordant with the standard constant; true of "
            "the exponential, sqrt 2 for a variance, and false for classes",
            "all of them",
            f"|f'''| / (2 f''^1.5): {listed(ratios, '.4f')} (Bernoulli at 0.1)",
            verdict(
                abs(ratios["NormalKnownMean"] - math.sqrt(2)) < 1e-6
                and abs(ratios["Exponential"] - 1) < 1e-6
                and ratios["Bernoulli"] > 1,
                corrected=True,
            ),
            item="Appendix 5.D, list",
        ),
    ]


def bias_variance() -> list[Claim]:
    n = np.array([3, 5, 10, 100, 1000])
    split = risk.bias_variance_gamma(n, 0.0, 1.0, 0.5)
    bias = 1 / (n - 2) + 0.5 * np.log1p(-2 / n)
    spread = 0.5 * (digamma(n / 2) - np.log(n / 2 - 1))
    total = risk.risk_mle_gamma(n, 0.5)
    off = float(np.max(np.abs(np.array([split.bias / bias, split.variance / spread, (bias + spread) / total]) - 1)))
    slope = float(np.log10(bias[3] / bias[4]))
    quad = risk.bias_variance_quadratic(3, 1.0, 2, 1.0)
    return [
        Claim(
            "the risk is a bias Breg(mu*; mu~) and a variance E Breg(mu~; mu_n) about the member of E theta_n",
            "(5.30)",
            f"for a variance both closed forms and their sum are right to {off:.0e}",
            verdict(off < 1e-9),
            item="Theorem 5.5.2",
        ),
        Claim(
            "the bias of the MLE of a variance is at most 2/(n(n - 2)): O(1/n^2)",
            "(5.115) to (5.117)",
            f"largest ratio {np.max(bias * n * (n - 2) / 2):.4f}; it falls as n^-{slope:.3f}",
            verdict(np.all(bias <= 2 / (n * (n - 2))) and abs(slope - 2) < 0.02),
            item="(5.115) to (5.117)",
        ),
        Claim(
            "where A* is quadratic the bias is 1/2 |mu* - mu0|^2 / (1 + n/n0)^2 exactly; printed as a bound without "
            "the half",
            "|mu* - mu0|^2 / (1 + n/n0)^2",
            f"n = 3, n0 = 1, distance 1: {float(quad.bias):.5f}, printed {1 / 16:.5f}",
            verdict(abs(float(quad.bias) - 1 / 32) < 1e-12, loose=True),
            item="(5.118)",
        ),
    ]
