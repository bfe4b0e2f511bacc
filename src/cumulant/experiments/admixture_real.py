"""Admixture on real genotypes: cats, cattle and people, against the labels that they came with."""

import itertools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from cumulant import admixture
from cumulant.experiments._genotypes import LEFT_OUT, Sampled, sampled
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import figure
from cumulant.plotting.admixture import compare, distances

TITLE = "Admixture on real genotypes: cats of Nancy, cattle breeds, people of the world"
SOURCE = (
    "Pritchard, Stephens and Donnelly (2000), Genetics 155; Rosenberg and others (2002), Science 298, figure 1; the "
    "data of the R package adegenet (nancycats, microbov, eHGDP)"
)

_AREAS = {"EUROPE": "EURASIA", "MIDDLE_EAST": "EURASIA", "CENTRAL_SOUTH_ASIA": "EURASIA"}
_NOTES = (
    "Collapsed Gibbs sampling with priors 0.1, one chain a run; runs begin at random, and the one with the largest "
    "mean of log p(z, w) is shown and scored. Labels are not used by any fit. The score is the adjusted Rand index of "
    "the largest membership of each individual against its label (1: the same partition, 0: chance). Held-out: every "
    "fifth individual at random, memberships integrated out, with the frequencies of a fit to the others. People: the "
    "100 of 678 loci with the fewest missing calls. The published studies are of other markers or of fewer people. The "
    "criterion of people had only the score at first: a picture showed that two areas shared a component."
)


class Fits(NamedTuple):
    """Runs with one number of components."""

    runs: list[admixture.Admixture]
    seconds: float
    tokens: float

    @property
    def best(self) -> admixture.Admixture:
        """The run with the largest mean of ``log p(z, w)``."""
        return max(self.runs, key=lambda run: float(run.result_.log_joint.mean()))

    @property
    def speed(self) -> float:
        """Tokens drawn in a second of the processor."""
        return self.tokens / self.seconds

    def score(self, labels: np.ndarray) -> float:
        """The adjusted Rand index of the best run."""
        return float(adjusted_rand_score(labels, self.best.memberships_.argmax(axis=1)))


@experiment
def run(quick: bool, rng: int) -> Report:
    """Runs of each number of components, scores against labels, agreement of runs, held-out likelihoods, evidence."""
    cats = sampled("nancycats", ())
    cattle = sampled("microbov", ("country", "species"))
    people = sampled("eHGDP", ("region",))
    if cats is None or cattle is None or people is None:
        return Report((), None, LEFT_OUT)
    people = people.loci(20 if quick else 100)
    numbers = (2, 3) if quick else (2, 3, 4, 5, 6)
    found = {
        "cats": _fit(cats, (*numbers, 17), 2 if quick else 5, 100 if quick else 1000, rng),
        "cattle": _fit(cattle, (*numbers, 15), 2 if quick else 4, 30 if quick else 300, rng),
        "people": _fit(people, (5,) if quick else (5, 6, 7), 2 if quick else 3, 30 if quick else 200, rng),
    }
    held = {
        "cats": _held_out(cats, (*numbers, 17), 100 if quick else 1000, rng),
        "cattle": _held_out(cattle, (*numbers, 15), 30 if quick else 300, rng),
    }
    evidence = admixture.choose_components(
        cats.genotypes, numbers, n_particles=10, n_temperatures=30 if quick else 300, rng=rng, n_jobs=1
    )
    claims = [
        *_cattle(found["cattle"], cattle),
        _people(found["people"], people),
        _colonies(found["cats"], cats, numbers),
        *(_agreement(name, each) for name, each in found.items()),
        _choice(held, evidence),
        _speed(found),
    ]
    data = {"cats": cats, "cattle": cattle, "people": people}
    return Report(claims, lambda: _draw(found, data), _NOTES)


def _fit(data: Sampled, numbers: Sequence[int], runs: int, sweeps: int, rng: int) -> dict[int, Fits]:
    """As many sweeps of burn-in as of draws, of which there are fifty."""
    options = {"draws": 50, "chains": 1, "burn_in": sweeps, "thin": max(1, sweeps // 50)}
    tokens = float((data.genotypes.alleles >= 0).sum()) * (sweeps + 50 * options["thin"])
    found = {}
    for k in numbers:
        began = time.process_time()
        models = [
            admixture.Admixture(k, options=options, random_state=1000 * int(rng) + seed, n_jobs=1, verbose=False)
            for seed in range(runs)
        ]
        fits = [model.fit(data.genotypes) for model in models]
        found[k] = Fits(fits, time.process_time() - began, runs * tokens)
    return found


def _held_out(data: Sampled, numbers: Sequence[int], sweeps: int, rng: int) -> dict[int, np.ndarray]:
    """Log-likelihoods of individuals that were not fitted."""
    known, new = data.split(int(rng))
    known = np.ascontiguousarray(known)
    seen = ((known >= 0).sum(axis=(0, 2)) > 0).all()
    assert seen, "every locus has a call among those to learn from"
    options = {"draws": 50, "chains": 1, "burn_in": sweeps, "thin": max(1, sweeps // 50)}
    found = {}
    for k in numbers:
        model = admixture.Admixture(k, options=options, random_state=int(rng), n_jobs=1, verbose=False).fit(known)
        found[k] = model.score_samples(new, n_particles=5, rng=int(rng))
    return found


def _cattle(found: dict[int, Fits], data: Sampled) -> list[Claim]:
    country, species, breed = (data.labels[name] for name in ("country", "species", "population"))
    both = np.char.add(country, species)
    three = found[3].score(both)
    breeds = found[15].score(breed)
    pure = breed != "Borgou"  # a cross of zebu and taurine cattle
    group = found[3].best.memberships_.argmax(axis=1)
    without = float(adjusted_rand_score(both[pure], group[pure]))
    return [
        Claim(
            "cattle, K = 2: the components are Africa and France (score at least 0.9)",
            "the labels of the data",
            f"score {found[2].score(country):.3f} for the country",
            verdict(found[2].score(country) >= 0.9),
            item="cattle",
        ),
        Claim(
            "cattle, K = 3: French taurine, African taurine and zebu (score at least 0.9)",
            "the labels of the data",
            f"score {three:.3f} for country and species, {without:.3f} without the Borgou, a cross of zebu and taurine "
            f"cattle that is labelled zebu; for the species alone {_by_species(group, species):.3f}",
            verdict(three >= 0.9),
            item="cattle",
        ),
        Claim(
            "cattle, K = 15: the components are the breeds (score at least 0.8)",
            "15 breeds",
            f"score {breeds:.3f}; distance of two of one breed {_distances(found[15], breed)[0]:.2f}, of two breeds "
            f"{_distances(found[15], breed)[1]:.2f}",
            verdict(breeds >= 0.8),
            item="cattle",
        ),
    ]


def _by_species(groups: np.ndarray, species: np.ndarray) -> float:
    """The score of the best way to call each component a species."""
    called = np.empty(groups.size, species.dtype)
    for k in np.unique(groups):
        names, counts = np.unique(species[groups == k], return_counts=True)
        called[groups == k] = names[counts.argmax()]
    return float(adjusted_rand_score(species, called))


def _distances(fits: Fits, labels: np.ndarray) -> tuple[float, float]:
    """The mean admixture distance of two individuals with one label, and with two."""
    same = labels[:, None] == labels[None]
    off = ~np.eye(labels.size, dtype=bool)
    matrix = fits.best.distance_
    return float(matrix[same & off].mean()), float(matrix[~same].mean())


def _people(found: dict[int, Fits], data: Sampled) -> Claim:
    region = data.labels["region"]
    areas = np.array([_AREAS.get(each, each) for each in region])
    scores = {k: (fits.score(areas), fits.score(region)) for k, fits in found.items()}
    mains = {k: _main_components(fits, areas) for k, fits in found.items()}
    shared = "; ".join(
        f"K = {k}: " + (", ".join(f"{a} and {b}" for a, b in _sharing(each)) or "none") for k, each in mains.items()
    )
    listed = "; ".join(f"K = {k}: {five:.3f} for the five areas, {all_:.3f} for the regions"
                       for k, (five, all_) in scores.items())  # fmt: skip
    return Claim(
        "people, K = 5: the components are Africa, Eurasia, East Asia, Oceania and America (score at least 0.8, and "
        "the largest component of each area is that of no other)",
        "K = 5: Africa, Eurasia (Europe, Middle East, Central/South Asia), East Asia, Oceania, America",
        f"scores {listed}; {len(np.unique(region))} regions in the data; areas with the same largest component: "
        f"{shared}",
        verdict(scores[5][0] >= 0.8 and not _sharing(mains[5])),
        item="figure 1",
    )


def _main_components(fits: Fits, areas: np.ndarray) -> dict[str, int]:
    """The component with the largest mean membership in each area, in the best run."""
    shares = fits.best.memberships_
    return {str(area): int(shares[areas == area].mean(axis=0).argmax()) for area in np.unique(areas)}


def _sharing(mains: dict[str, int]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in itertools.combinations(mains, 2) if mains[a] == mains[b]]


def _colonies(found: dict[int, Fits], data: Sampled, numbers: Sequence[int]) -> Claim:
    colony = data.labels["population"]
    inside, between = _distances(found[numbers[-1]], colony)
    near, far = _distances(found[17], colony)
    return Claim(
        f"cats, K = {numbers[-1]}: two of one colony are nearer than two of different colonies (distance below 0.7 "
        "times the other)",
        "17 colonies",
        f"distance {inside:.2f} within colonies and {between:.2f} between; score of K = 17 "
        f"{found[17].score(colony):.3f}, distances {near:.2f} and {far:.2f}",
        verdict(inside < 0.7 * between),
        item="cats",
    )


def _agreement(name: str, found: dict[int, Fits]) -> Claim:
    reports = {k: admixture.agreement_report(fits.runs) for k, fits in found.items()}
    # of pairs chosen at random, not of the worst one: how far apart two runs put two individuals
    typical = {k: float(np.sqrt(each.distance_variance.mean())) for k, each in reports.items()}
    listed = "; ".join(
        f"K = {k}: {typical[k]:.3f}, worst pair {np.sqrt(each.largest_distance_variance):.2f}, mode shares "
        f"{min(fit.mode_share_ for fit in found[k].runs):.2f} to {max(fit.mode_share_ for fit in found[k].runs):.2f}"
        for k, each in reports.items()
    )
    return Claim(
        f"{name}: runs that begin at random agree (deviation over runs of the distance of a pair below 0.05 for all "
        "K, in the square mean over pairs)",
        "our question",
        f"{len(next(iter(found.values())).runs)} runs; {listed}",
        verdict(max(typical.values()) < 0.05),
        item="beyond the source",
    )


def _choice(held: dict[str, dict[int, np.ndarray]], evidence: Any) -> Claim:
    lines = []
    for name, scores in held.items():
        best = max(scores, key=lambda k: scores[k].mean())
        lines.append(
            f"{name}: " + ", ".join(f"K = {k} {each.mean():.2f}" for k, each in scores.items()) + f" (best: {best})"
        )
    listed = ", ".join(
        f"K = {k} {value:.0f} ± {error:.2g}"
        for k, value, error in zip(evidence.n_components, evidence.log_evidence, evidence.error, strict=True)
    )
    cattle = held["cattle"]
    rises = cattle[max(cattle)].mean() > max(each.mean() for k, each in cattle.items() if k < max(cattle))
    return Claim(
        "held-out likelihood chooses the 15 components of the 15 breeds of cattle over fewer",
        "our question",
        f"mean log-likelihood of a held-out individual, {'; '.join(lines)}; log p(w) of cats by annealing: {listed}",
        verdict(rises),
        item="beyond the source",
    )


def _speed(found: dict[str, dict[int, Fits]]) -> Claim:
    speeds = {name: [fits.speed / 1e6 for fits in each.values()] for name, each in found.items()}
    seconds = {name: max(fits.seconds / len(fits.runs) for fits in each.values()) for name, each in found.items()}
    return Claim(
        "a fit takes less than a minute on one core",
        "our question",
        "; ".join(
            f"{name}: {min(each):.1f} to {max(each):.1f} million tokens a second, {seconds[name]:.0f} s for the "
            "slowest run, summaries included"
            for name, each in speeds.items()
        ),
        verdict(max(seconds.values()) < 60),
        item="beyond the source",
    )


def _draw(found: dict[str, dict[int, Fits]], data: dict[str, Sampled]) -> dict[str, Any]:
    drawn = {}
    for name, each in found.items():
        labels = data[name].labels
        groups = list(labels["region" if name == "people" else "population"])
        rows = {f"K = {k}": fits.best.memberships_ for k, fits in each.items()}
        drawn[f"admixture-real-{name}"] = compare(rows, groups)
        fits = list(each.values())[0 if name == "people" else -1]
        _, ax = figure(width=7.5, height=6.5)
        drawn[f"admixture-real-{name}-distances"] = distances(fits.best.distance_, groups, ax=ax).figure
        ax.set_title(f"{name}, K = {fits.best.n_components}")
    return drawn
