"""Figure 3.12 of Carbonetto (2009): variances over trials of distances and levels, from two to six populations."""

from typing import Any

import numpy as np

from cumulant import admixture
from cumulant.experiments._populations import NAMES, trials
from cumulant.experiments.base import Claim, Report, listed, verdict
from cumulant.plotting import COLOURS, figure, legend

SOURCE = "Carbonetto (2009), PhD thesis, section 3.5.2, figure 3.12"

_METHODS = ("gibbs", "collapsed_gibbs", "ais", "published")
_WHAT = {"distance": "largest_distance_variance", "level": "largest_level_variance"}


def study(theta: float, quick: bool, rng: int) -> Report:
    """Every method on one set of data for every number of populations, with equal numbers of sampling events."""
    events, count, numbers = (2_000, 3, (3,)) if quick else (10_000, 20, (2, 3, 4, 5, 6))
    corpus = admixture.simulate_microsatellites(theta, rng=rng + 1).corpus()
    models = {k: admixture.AdmixtureModel(corpus, k) for k in numbers}
    found = {
        k: {method: trials(method, model, count, events, rng) for method in _METHODS} for k, model in models.items()
    }
    of = {name: {k: _variances(each, what) for k, each in found.items()} for name, what in _WHAT.items()}
    unstable = {k: each for k, each in of["distance"].items() if min(each["gibbs"], each["collapsed_gibbs"]) > 0.01}
    lower = {name: sum(_half(each, _METHODS[:3]) for each in variances.values()) for name, variances in of.items()}
    powers = {k: float(-np.median(np.diff(each["published"]["last"], axis=1))) for k, each in found.items()}
    tables = {
        name: "; ".join(
            f"K = {k}: " + listed({NAMES[method]: value for method, value in each.items()}, ".2g")
            for k, each in variances.items()
        )
        for name, variances in of.items()
    }
    claims = (
        *(
            Claim(
                f"theta = {theta:g}: variational particles lower the largest variance of a {name} over trials, to less "
                "than half of that of chains and of annealing, in nearly all settings (all but one at most)",
                "significantly lower in almost all cases",
                f"in {lower[name]} of {len(found)}; {tables[name]}",
                verdict(lower[name] >= max(1, len(found) - 1)),
                item="Figure 3.12",
            )
            for name in _WHAT
        ),
        *(_where_chains_disagree(theta, unstable) if unstable else ()),
        Claim(
            f"theta = {theta:g}: variational particles end at the posterior (phi - gamma above 0.9, where 1 is the "
            "posterior, in all settings)",
            "our question; the source reports the agreement and not the distance from the target",
            "phi - gamma " + listed({f"K = {k}": value for k, value in powers.items()}, ".2f"),
            verdict(min(powers.values()) > 0.9),
            item="beyond the source",
        ),
    )
    spent = sum(each["seconds"] for setting in found.values() for each in setting.values())
    notes = (
        f"{count} trials of each method, as in the source, and {events} sampling events in each, where it has 50,000 "
        f"(one trial of everything took {spent:.0f} s of CPU, those of the source would take "
        f"{20 * 50_000 / events * spent / 3600:.1f} hours; `admixture-agreement` has half of them in one setting); "
        "sixty individuals of four simulated populations, ten microsatellites, independent genealogies. Variational "
        "particles have the settings of the source."
    )
    if not unstable:
        notes += " Chains agree here for every number of populations: the largest variance of a distance is below 0.01."
    return Report(claims, lambda: _draw(found, theta), notes)


def _where_chains_disagree(theta: float, unstable: dict[int, dict[str, float]]) -> list[Claim]:
    rescued = sum(_half(each, _METHODS[:2]) for each in unstable.values())
    gained = sum(each["ais"] < 0.5 * min(each["gibbs"], each["collapsed_gibbs"]) for each in unstable.values())
    return [
        Claim(
            f"theta = {theta:g}: where chains disagree (the largest variance of a distance above 0.01 for both "
            "samplers), variational particles lower it to less than half",
            "the failures of Markov chains are repaired",
            f"in {rescued} of {len(unstable)} such settings",
            verdict(rescued == len(unstable)),
            item="Figure 3.12",
        ),
        Claim(
            f"theta = {theta:g}: where chains disagree, annealing gives little over them (less than half in at most a "
            "quarter of settings)",
            "little improvement",
            f"less than half in {gained} of {len(unstable)}",
            verdict(gained <= 0.25 * len(unstable)),
            item="Figure 3.12",
        ),
    ]


def _half(variances: dict[str, float], others: tuple[str, ...]) -> bool:
    return variances["published"] < 0.5 * min(variances[name] for name in others)


def _variances(found: dict[str, dict[str, Any]], what: str) -> dict[str, float]:
    return {method: getattr(each["report"], what) for method, each in found.items()}


def _draw(found: dict[int, dict[str, dict[str, Any]]], theta: float) -> Any:
    fig, axes = figure(1, 2, width=8.0, height=3.4)
    for ax, (name, what) in zip(axes, _WHAT.items(), strict=True):
        for method, colour in zip(_METHODS, COLOURS, strict=False):
            values = [_variances(each, what)[method] for each in found.values()]
            ax.plot(list(found), np.maximum(values, 1e-8), "o-", color=colour, label=NAMES[method])
        ax.set_yscale("log")
        ax.set(xticks=list(found), xlabel="populations K", ylabel=f"largest variance of a {name}")
        ax.set_title(f"mutation rate {theta:g}")
    legend(axes[-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
