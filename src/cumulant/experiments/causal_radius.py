"""Figure 4.7: how large the ball is in which the causal model has the advantage, and how far interventions go."""

import numpy as np

from cumulant import causal
from cumulant.experiments._causal import SOURCE as _SOURCE
from cumulant.experiments._causal import K
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import COLOURS, figure, legend
from cumulant.plotting.causal import few_ticks
from cumulant.plotting.style import style

TITLE = "Interventions on the effect: squared radii of the ball of causal advantage, and deviations from its centre"
SOURCE = f"{_SOURCE}, section 4.5.3 and appendix 4.B.3, figure 4.7 b"
SIZES = (5, 10, 20, 40)
RECOMPUTED = {"dense": (0.69, 33, 0.0), "sparse": (391, 454, 0.37)}  # R^2, deviation, how often that is the smaller


@experiment
def run(quick: bool, rng: int) -> Report:
    """Random references and uniform new effects, K = 20; radii for K from 5 to 40."""
    n = 500 if quick else 5000
    streams = np.random.SeedSequence(rng).generate_state(3).tolist()
    found, grown = {}, {}
    for prior in ("dense", "sparse"):
        reference = causal.sample_reference(K, n, prior, rng=streams[0])
        centre, radius = causal.effect_advantage_ball(reference)
        new = reference.intervene("effect", rng=streams[1]).reverse().to_logit().cause
        found[prior] = radius, np.sum((new - centre) ** 2, axis=-1)
        grown[prior] = [_radius(size, n // 5, prior, streams[2]) for size in SIZES]
    return Report(_claims(found, grown, n), lambda: _draw(found), _notes(found, n))


def _radius(size, n, prior, rng) -> float:
    """The mean ``R^2``."""
    return float(causal.effect_advantage_ball(causal.sample_reference(size, n, prior, rng=rng)).radius_squared.mean())


def _claims(found, grown, n) -> list[Claim]:
    inside = {prior: float(np.mean(deviation < radius)) for prior, (radius, deviation) in found.items()}
    means = {prior: float(radius.mean()) for prior, (radius, _) in found.items()}
    spread = {prior: float(radius.std() / np.sqrt(n)) for prior, (radius, _) in found.items()}
    printed = {prior: causal.expected_squared_radius(K, prior, method="document") for prior in found}
    corrected = {prior: causal.expected_squared_radius(K, prior) for prior in found}
    growth = {p: np.polyfit(np.log(SIZES), 0.5 * np.log(each), 1)[0] for p, each in grown.items()}
    return [
        _as_recomputed(found, inside, n),
        Claim(
            "dense prior: every intervention on the effect falls outside of the ball, so that the anticausal model is "
            "closer",
            "always outside",
            f"R^2 {means['dense']:.2f}, deviation {found['dense'][1].mean():.3g} on average; inside in "
            f"{inside['dense']:.1%} of {n}",
            verdict(inside["dense"] == 0),
            item="Figure 4.7 b",
        ),
        Claim(
            "sparse prior: radii and deviations are of one size, so that neither direction has the advantage (20 to "
            "50 % of draws are inside)",
            "comparable",
            f"R^2 {means['sparse']:.3g}, deviation {found['sparse'][1].mean():.3g} on average; inside in "
            f"{inside['sparse']:.0%}",
            verdict(0.2 < inside["sparse"] < 0.5),
            item="Figure 4.7 b",
        ),
        Claim(
            "the expected R^2 is K^2/(K-1) (psi_1(1/K)/K - psi_1(1)) under the sparse prior, exactly; printed is "
            "psi_1(1/K) + K psi_1(1), which takes correlated terms as independent",
            f"{printed['sparse']:.1f}",
            f"{means['sparse']:.1f} on average, formula {corrected['sparse']:.2f}",
            verdict(
                abs(means["sparse"] - corrected["sparse"]) < 4 * spread["sparse"]
                and abs(means["sparse"] - printed["sparse"]) > 4 * spread["sparse"],
                corrected=True,
            ),
            item="Appendix 4.B.3",
            spread=f"standard error {spread['sparse']:.1f}",
        ),
        Claim(
            "the expected R^2 under the dense prior is O(1): psi_1(1) - K psi_1(K) for its first term, a lower bound; "
            "printed is psi_1(1) + K psi_1(K)",
            f"{printed['dense']:.2f}",
            f"{means['dense']:.3f} on average, lower bound {corrected['dense']:.4f}",
            verdict(
                corrected["dense"] < means["dense"] < 1.3 * corrected["dense"]
                and abs(means["dense"] - printed["dense"]) > 4 * spread["dense"],
                corrected=True,
            ),
            item="Appendix 4.B.3",
            spread=f"standard error {spread['dense']:.3f}",
        ),
        Claim(
            "the radius grows linearly with K under the sparse prior and is bounded under the dense one (the text says "
            "dense; exponents of R in K between 0.9 and 1.1, and below 0.1)",
            "linear for the dense prior",
            f"R ~ K^{growth['sparse']:.2f} (sparse), K^{growth['dense']:.2f} (dense); mean R^2 for K = "
            f"{', '.join(map(str, SIZES))}: {listed(grown['sparse'], '.3g')} and {listed(grown['dense'], '.2f')}",
            verdict(0.9 < growth["sparse"] < 1.1 and growth["dense"] < 0.1, corrected=True),
            item="Appendix 4.B.3",
        ),
        _variance(n),
    ]


def _as_recomputed(found, inside, n) -> Claim:
    """Means of radii and deviations, and the share of deviations inside."""
    off = [
        abs(values.mean() - expected) / (4 * values.std() / np.sqrt(n) + 0.01 * expected)
        for prior in found
        for values, expected in zip(found[prior], RECOMPUTED[prior][:2], strict=True)
    ]
    share = RECOMPUTED["sparse"][2]
    off.append(abs(inside["sparse"] - share) / (4 * np.sqrt(share * (1 - share) / n) + 0.005))
    return Claim(
        "means of R^2 and of deviations, and how often the causal model is nearer, are those of another program "
        "(within four standard errors and the last digit)",
        "; ".join(f"{prior} {r} and {d}, {s:.0%}" for prior, (r, d, s) in RECOMPUTED.items()) + " (recomputed)",
        "; ".join(f"{p} {r.mean():.3g} and {d.mean():.3g}, {inside[p]:.0%}" for p, (r, d) in found.items()),
        verdict(max(off) <= 1 and inside["dense"] == RECOMPUTED["dense"][2]),
        item="Figure 4.7 b",
    )


def _variance(n) -> Claim:
    """The variance of a log-partition."""
    ours, exact, printed, off = {}, {}, {}, 0.0
    for prior, b in (("dense", 1.0), ("sparse", 1.0 / K)):
        A = causal.row_log_partitions(causal.sample_reference(K, n, prior, rng=n)).ravel()
        squares = (A - A.mean()) ** 2
        ours[prior], exact[prior] = float(squares.mean()), causal.log_partition_variance(b, K)
        printed[prior] = causal.expected_squared_radius(K, prior, method="document") / K
        off = max(off, abs(ours[prior] - exact[prior]) / (squares.std() / np.sqrt(A.size)))
    return Claim(
        "the variance of the log-partition of a row is psi_1(b)/K - psi_1(K b) for rows Dir(b); printed is a sum",
        listed(printed, ".4g"),
        f"{listed(ours, '.4g')} by simulation, {listed(exact, '.4g')} by the formula, {off:.1f} standard errors apart",
        verdict(off < 4, corrected=True),
        item="Appendix 4.B.3",
    )


def _notes(found, n) -> str:
    quantiles = {
        prior: " against ".join("[{:.3g}, {:.3g}]".format(*np.quantile(each, (0.05, 0.95))) for each in pair)
        for prior, pair in found.items()
    }
    return f"K = {K}, {n} draws. 5th to 95th percentiles of R^2 and of deviations: " + "; ".join(
        f"{prior} {text}" for prior, text in quantiles.items()
    )


def _draw(found):
    fig, axes = figure(1, 2, width=8.4, height=3.6)
    with style():
        for (prior, pair), ax in zip(found.items(), axes, strict=True):
            boxes = ax.boxplot(
                pair, tick_labels=["$R^2$", r"$\|s_Y^* - c\|^2$"], whis=(5, 95), showfliers=False, widths=0.5
            )
            for name in ("boxes", "whiskers", "caps", "medians"):
                for line in boxes[name]:
                    line.set_color(COLOURS[0])
            for method, colour, look in (("document", COLOURS[1], "-"), ("corrected", COLOURS[2], "--")):
                value = causal.expected_squared_radius(K, prior, method=method)
                words = "expected $R^2$, as printed" if method == "document" else "expected $R^2$, corrected"
                ax.axhline(value, color=colour, linestyle=look, label=words)
            ax.set(yscale="log", title=f"{prior} prior")
            few_ticks(ax.yaxis)
        legend(axes[0], loc="upper left")
    return fig
