"""Figure 4.10: adaptation after an intervention on a single row of the conditional distribution."""

from cumulant import causal
from cumulant.experiments._causal import BUDGET, K, adapt, as_recomputed, distances, lead, lower, means
from cumulant.experiments._causal import SOURCE as _SOURCE
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import causal as pictures
from cumulant.plotting import figure

TITLE = "Adaptation speed after an intervention on one row of the conditional distribution"
SOURCE = f"{_SOURCE}, appendix 4.B.5, figure 4.10"


@experiment
def run(quick: bool, rng: int) -> Report:
    """The row of the most likely cause, on the problems of figures 4.8 and 4.9."""
    n, T = (20, 400) if quick else (100, 1500)
    best = {prior: causal.tune(adapt(prior, "single", n, T, rng), BUDGET) for prior in ("dense", "sparse")}
    dense, sparse = best["dense"], best["sparse"]
    falls = {
        prior: max(1 - each.at_budget(model).mean() / each.mean(model)[0] for model in ("causal", "anticausal"))
        for prior, each in best.items()
    }
    joint = {prior: 1 - each.at_budget("joint").mean() / each.mean("joint")[0] for prior, each in best.items()}
    beside = sparse.at_budget("causal").mean() / sparse.at_budget("joint").mean() - 1
    claims = (
        as_recomputed({(prior, "single"): each for prior, each in best.items()}, "Figure 4.10"),
        Claim(
            "dense prior: no advantage for the causal model (not ahead by three standard errors), the joint one is "
            "slightly best",
            "no advantage, joint slightly best",
            f"KL(100) {means(dense)}; causal below anticausal in {lower(dense):.0%}",
            verdict(
                lead(dense, "causal", "anticausal") < 3
                and lead(dense, "joint", "causal") > 0
                and lead(dense, "joint", "anticausal") > 0
            ),
            item="Figure 4.10, rows 1 and 2",
        ),
        Claim(
            "sparse prior: a slight advantage of the causal model over the anticausal one (three standard errors)",
            "slight advantage",
            f"KL(100) {means(sparse)}; causal below anticausal in {lower(sparse):.0%}",
            verdict(lead(sparse, "causal", "anticausal") > 3),
            item="Figure 4.10, rows 3 and 4",
        ),
        Claim(
            "sparse prior: the causal model performs comparably to the joint one (means within 15 per cent)",
            "comparably",
            f"{beside:+.1%}, in pairs {lead(sparse, 'joint', 'causal'):.1f} standard errors in favour of the joint one",
            verdict(abs(beside) < 0.15),
            item="Figure 4.10, rows 3 and 4",
        ),
        Claim(
            "divergences of both directions hardly decrease (by less than a third in 100 observations)",
            "hardly decrease",
            f"by at most {falls['dense']:.0%} (dense) and {falls['sparse']:.0%} (sparse); that of the joint model by "
            f"{joint['dense']:.0%} and {joint['sparse']:.0%}",
            verdict(max(falls.values()) < 1 / 3),
            item="Figure 4.10",
        ),
        Claim(
            "initial distances of both directions have the same scale, although the causal model has K parameters to "
            "change and the anticausal one K^2 + K (means within a factor of 2)",
            "same scale",
            f"causal / anticausal / joint {distances(dense)} (dense), {distances(sparse)} (sparse)",
            verdict(
                all(0.5 < each.distances.anticausal.mean() / each.distances.causal.mean() < 2 for each in best.values())
            ),
            item="Appendix 4.B.5",
        ),
    )
    notes = (
        f"K = {K}, {n} problems, seven step sizes; the new row is uniform on the simplex. KL(400) and step sizes of "
        + "; ".join(f"{prior} {means(each, 400)}" for prior, each in best.items())
        + ". Under the sparse prior two "
        "step sizes of the causal model tie, and the share of problems in which it is ahead depends on which of them "
        "is chosen."
    )
    return Report(claims, lambda: _draw(best), notes)


def _draw(best):
    fig, axes = figure(2, 2, width=8.6, height=6.6)
    for (prior, each), column in zip(best.items(), axes.T, strict=True):
        pictures.adaptation(each, until=400, ax=column[0])
        pictures.distance_and_speed(each, ax=column[1])
        column[0].set_title(f"{prior} prior, one row")
    return fig
