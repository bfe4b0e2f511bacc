"""Table 4.1: how often the cause cannot be told from the effect in a joint table of the dense prior."""

import numpy as np

from cumulant import causal
from cumulant.experiments._causal import SOURCE as _SOURCE
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import figure, legend

TITLE = "The Bayes error of the direction of the arrow under the dense prior"
SOURCE = f"{_SOURCE}, appendix 4.C.1, table 4.1"
PRINTED = {
    2: 0.4, 3: 0.2, 4: 0.1, 5: 0.07, 6: 0.03, 7: 0.01, 8: 0.005, 9: 0.002, 10: 7e-4, 11: 3e-4, 12: 7e-5, 13: 3e-5,
    14: 4e-6,
}  # fmt: skip
DRAWS = 1_000_000  # of the source


@experiment
def run(quick: bool, rng: int) -> Report:
    """The mean posterior probability of the wrong direction, K = 2 to 14."""
    n = 20_000 if quick else DRAWS
    found = {K: causal.bayes_error(K, n, rng=rng + K) for K in PRINTED}
    off = {K: _off(K, found[K]) for K in PRINTED}
    tables = causal.sample_reference(6, 2000, "dense", rng=rng)
    p_x, p_y = tables.log_cause, tables.reverse().log_cause
    score = -p_x.mean(axis=-1) + p_y.mean(axis=-1)  # KL(u || p_X) - KL(u || p_Y)
    exact = causal.direction_log_odds(tables, (np.ones(6), np.ones((6, 6))), (np.ones(6), np.ones((6, 6))))
    gap = float(np.max(np.abs(exact - 30 * score)))
    sparse = causal.sample_reference(20, 500, "sparse", rng=rng)
    flat = float(np.max(np.abs(causal.direction_log_odds(sparse, "sparse"))))
    largest = float(np.max(np.abs(causal.direction_log_odds(sparse, "dense"))))
    claims = (
        Claim(
            "errors for K = 2 to 14 (printed digits, or three standard deviations of a million guesses and of ours)",
            ", ".join(f"{value:g}" for value in PRINTED.values()),
            ", ".join(f"{each.error:.2g}" for each in found.values()),
            verdict(max(off.values()) <= 1),
            item="Table 4.1",
            spread=f"relative standard errors up to {max(e.standard_error / e.error for e in found.values()):.1%}",
        ),
        Claim(
            "the best guess is that the more uniform marginal is the effect",
            "optimal",
            f"the sign of the exact log-odds in {np.mean(np.sign(exact) == np.sign(score)):.1%} of {len(score)} tables",
            verdict(np.all(np.sign(exact) == np.sign(score))),
            item="Appendix 4.C.1",
        ),
        Claim(
            "the log-odds are K (K - 1) [KL(u || p_X) - KL(u || p_Y)] (left as an exercise)",
            "exercise",
            f"{gap:.1e} off the Dirichlet densities with their Jacobian, K = 6",
            verdict(gap < 1e-9),
            item="Appendix 4.C.1",
        ),
        Claim(
            "under the sparse prior no table says anything of the direction",
            "symmetric",
            f"log-odds at most {flat:.1e} on 500 tables, K = 20 (the dense prior would give up to {largest:.0f})",
            verdict(flat < 1e-6),
            item="Theorem 4.C.1",
        ),
    )
    notes = (
        f"{n:,} tables for each K. The estimate averages the posterior probability of the wrong direction over tables "
        "whose cause is more uniform than under the prior, with weights: a million of the prior hold about eight "
        "wrong guesses at K = 14, where the source counted four."
    )
    return Report(claims, lambda: _draw(found), notes)


def _off(K: int, found: causal.BayesError) -> float:
    """The difference from the printed number over what rounding to one digit and chance allow."""
    digit = 10.0 ** np.floor(np.log10(PRINTED[K]))
    chance = 3 * np.hypot(np.sqrt(found.error / DRAWS), found.standard_error)
    return float(abs(found.error - PRINTED[K]) / (0.5 * digit + chance))


def _draw(found):
    fig, ax = figure()
    ax.errorbar(
        list(found),
        [each.error for each in found.values()],
        yerr=[2 * each.standard_error for each in found.values()],
        fmt="o-",
        label="ours, two standard errors",
    )
    ax.plot(list(PRINTED), list(PRINTED.values()), "x", markersize=7, label="table 4.1")
    ax.set(xlabel="number of values K", ylabel="Bayes error", yscale="log")
    legend(ax)
    return fig
