"""Figures 4.5, 4.8 and 4.9: adaptation of categorical models after interventions on the cause and on the effect."""

import numpy as np

from cumulant import causal
from cumulant.experiments._causal import BUDGET, K, adapt, as_recomputed, distances, lead, lower, means
from cumulant.experiments._causal import SOURCE as _SOURCE
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import causal as pictures
from cumulant.plotting import figure

TITLE = "Adaptation speed of categorical models: dense and sparse priors, cause, effect and pooled"
SOURCE = f"{_SOURCE}, sections 4.5.3 to 4.5.4 and appendix 4.B.4, figures 4.5, 4.8, 4.9"


@experiment
def run(quick: bool, rng: int) -> Report:
    """100 problems with 20 values, seven step sizes, 1,500 observations."""
    n, T, groups = (40, 400, 4) if quick else (100, 1500, 20)
    runs = {(p, t): adapt(p, t, n, T, rng) for p in ("dense", "sparse") for t in ("cause", "effect")}
    best = {key: causal.tune(each, BUDGET) for key, each in runs.items()}
    pooled = {
        p: causal.tune(causal.pool([runs[p, "cause"], runs[p, "effect"]], groups), BUDGET) for p in ("dense", "sparse")
    }
    notes = (
        f"K = {K}, {n} problems for each prior, the same references for both targets, steps 0.03 to 30, horizon {T}. "
        "KL(400) and step sizes of causal, anticausal, joint: "
        + "; ".join(f"{p} {t} {means(each, 400)}" for (p, t), each in best.items())
        + "; "
        + "; ".join(f"{p} pooled {means(each, 400)}" for p, each in pooled.items())
        + ". Figure 4.5 shows panels of figures 4.8 and 4.9. Criteria: a lead is a paired difference of means of more "
        "than three standard errors, a tie one of less than 5 per cent."
    )
    return Report(_claims(runs, best, pooled), lambda: _draw(best, pooled), notes)


def _claims(runs, best, pooled) -> list[Claim]:
    dense, sparse = pooled["dense"], pooled["sparse"]
    cause, effect = best["dense", "cause"], best["dense", "effect"]
    few, many = best["sparse", "cause"], best["sparse", "effect"]
    ratio = cause.distances.anticausal.mean() / cause.distances.causal.mean()
    between = {" ".join(key): _outside(each) for key, each in best.items()}
    follows = {" ".join(key): _correlation(each) for key, each in best.items()}
    sizes = [len(each.distances.causal) for each in best.values()]  # of problems, which count once
    starts = max(float(np.ptp(each.kl[:, 0, :, 0], axis=0).max()) for each in runs.values())
    apart = abs(many.at_budget("causal").mean() / many.at_budget("anticausal").mean() - 1)
    split = abs(sparse.at_budget("causal").mean() / sparse.at_budget("anticausal").mean() - 1)
    reached = [np.mean(getattr(many.distances, model)) for model in many.models]
    gaps = {
        t: abs(float(np.diff([each.at_budget(model).mean() for model in ("causal", "anticausal")])[0]))
        for t, each in (("cause", cause), ("effect", effect))
    }
    return [
        as_recomputed(best, "Figures 4.5, 4.8, 4.9"),
        Claim(
            "dense prior, cause: the causal model is far closer (by a factor of at least K) and much faster (less than "
            "half the divergence after 100 observations, in 95 % of problems lower)",
            "far closer, much faster",
            f"squared distances {distances(cause)}; KL(100) {means(cause)}; lower in {lower(cause):.0%}",
            verdict(
                ratio >= K
                and 2 * cause.at_budget("causal").mean() < cause.at_budget("anticausal").mean()
                and lower(cause) >= 0.95
            ),
            item="Figure 4.5 a, b; Figure 4.8, column 1",
        ),
        Claim(
            "dense prior, effect: the anticausal model is closer and faster, against the hypothesis",
            "anticausal closer and faster",
            f"squared distances {distances(effect)}; KL(100) {means(effect)}; causal lower in {lower(effect):.0%}",
            verdict(
                effect.distances.anticausal.mean() < effect.distances.causal.mean()
                and lead(effect, "anticausal", "causal") > 3
            ),
            item="Figure 4.5 d, e; Figure 4.8, column 2",
        ),
        Claim(
            "dense prior, pooled: the causal model is the fastest (lowest mean, and below the anticausal one in every "
            "group)",
            "causal fastest",
            f"KL(100) {means(dense)}; causal lower in {lower(dense):.0%} of {len(dense.of('causal'))} groups",
            verdict(lower(dense) == 1.0 and dense.at_budget("causal").mean() < dense.at_budget("joint").mean()),
            item="Figure 4.8, column 3",
        ),
        Claim(
            "sparse prior, cause: the causal model is ahead",
            "slightly ahead",
            f"KL(100) {means(few)}: {1 - few.at_budget('causal').mean() / few.at_budget('anticausal').mean():.0%} "
            f"lower, which is more than slightly; in {lower(few):.0%} of problems",
            verdict(lead(few, "causal", "anticausal") > 3),
            item="Figure 4.5 c; Figure 4.9, column 1",
        ),
        Claim(
            "sparse prior, effect: a tie of the two directions (less than 5 per cent apart), with divergences around "
            "10 (between 5 and 20)",
            "a tie, around 10",
            f"KL(100) {means(many)}: {apart:.1%} apart, in pairs of problems {lead(many, 'anticausal', 'causal'):.1f} "
            f"standard errors in favour of the anticausal model; at the start {many.mean('causal')[0]:.3g}, "
            f"{many.mean('causal')[0] / few.mean('causal')[0]:.0f} times that of the cause",
            verdict(apart < 0.05 and all(5 < many.at_budget(model).mean() < 20 for model in many.models)),
            item="Figure 4.5 f; Figure 4.9, column 2",
        ),
        Claim(
            "sparse prior, effect: all models have the same initial distance (means within 10 per cent)",
            "the same",
            distances(many),
            verdict(max(reached) < 1.1 * min(reached)),
            item="Figure 4.9, column 2",
        ),
        Claim(
            "dense prior: the gap between the directions is wider after an intervention on the cause than after one on "
            "the effect",
            "wider",
            f"{gaps['cause']:.3f} and {gaps['effect']:.3f} after 100 observations",
            verdict(gaps["cause"] > gaps["effect"]),
            item="Figure 4.5 b, e",
        ),
        Claim(
            "sparse prior, pooled: no signal of the causal direction, and directions less than 5 per cent apart",
            "no signal",
            f"KL(100) {means(sparse)}: causal and anticausal {split:.1%} apart, in pairs of groups "
            f"{lead(sparse, 'anticausal', 'causal'):.1f} standard errors in favour of the anticausal one; causal lower "
            f"in {lower(sparse):.0%} of groups",
            verdict(split < 0.05 and lead(sparse, "causal", "anticausal") < 3),
            item="Figure 4.9, column 3",
        ),
        Claim(
            "the joint model lies between the causal and the anticausal one (to within 5 per cent)",
            "in between",
            "outside of the two means by " + ", ".join(f"{key} {value:.1%}" for key, value in between.items()),
            verdict(max(between.values()) < 0.05),
            item="Figures 4.5, 4.8, 4.9",
        ),
        Claim(
            "dense prior: the initial distance is well correlated with the divergence after 100 observations (their "
            "logarithms, over the two directions: above 0.8)",
            "well correlated",
            listed({key: value for key, value in follows.items() if key.startswith("dense")}, ".2f"),
            verdict(min(value for key, value in follows.items() if key.startswith("dense")) > 0.8),
            item="Figure 4.8, row 2",
        ),
        Claim(
            "the correlation of the initial distance with the divergence is positive in each setting (by more than two "
            "standard errors)",
            "positive",
            listed(follows, ".2f"),
            verdict(all(np.arctanh(r) * np.sqrt(n - 3) > 2 for r, n in zip(follows.values(), sizes, strict=True))),
            item="Figure 4.5 a, d; Figure 4.9, row 2",
        ),
        Claim(
            "all models have the same divergence at the start",
            "the same",
            f"at most {starts:.1e} apart",
            verdict(starts < 1e-11),
            item="Section 4.5.4",
        ),
    ]


def _outside(best) -> float:
    """How far the mean of the joint model is outside of those of the other two, as a share."""
    low, high = sorted(best.at_budget(model).mean() for model in ("causal", "anticausal"))
    joint = best.at_budget("joint").mean()
    return float(max(low / joint - 1, joint / high - 1, 0.0))


def _correlation(best) -> float:
    """Of logarithms, over the problems of both directions."""
    x, y = (
        np.log(np.concatenate([of(model) for model in ("causal", "anticausal")]))
        for of in (lambda model: getattr(best.distances, model), best.at_budget)
    )
    return float(np.corrcoef(x, y)[0, 1])


def _draw(best, pooled):
    drawn = {}
    for prior in ("dense", "sparse"):
        fig, axes = figure(2, 3, width=12.0, height=6.6)
        columns = {"cause": best[prior, "cause"], "effect": best[prior, "effect"], "pooled": pooled[prior]}
        for (name, each), column in zip(columns.items(), axes.T, strict=True):
            pictures.adaptation(each, until=400, ax=column[0])
            pictures.distance_and_speed(each, ax=column[1])
            column[0].set_title(f"{prior} prior, {name}")
        drawn[f"causal-categorical-{prior}"] = fig
    return drawn
