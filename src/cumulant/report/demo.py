"""The demonstration: families and models fitted to tables that ship with scikit-learn, and Markov random fields.

Each function makes one section of the page and, where it is given a folder, writes its pictures there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import families as fam
from cumulant import plotting
from cumulant.families import risk
from cumulant.report.fits import comparison, parameters, with_error
from cumulant.report.glm import measurements
from cumulant.report.graphical import glass, magnet, noise
from cumulant.report.section import Section, Table
from cumulant.report.sequences import words

TITLE = "Cumulant: a demonstration"
LEAD = (
    "Exponential families, from single distributions to models of words, pictures and magnets. Every answer comes with "
    "what is known about its distance from the truth: a standard error, a bound, an interval, the health of a chain. "
    "The tables ship with scikit-learn."
)


def sections(output: Path) -> Iterator[Section]:
    """The sections of the page, one at a time; pictures are written below `output`."""
    makers: tuple[Callable[[Path], Section], ...] = (
        tumours,
        irises,
        wines,
        digits,
        diabetes,
        measurements,
        words,
        noise,
        glass,
        magnet,
    )
    for make in makers:
        yield make(output)


def tumours(output: Path) -> Section:
    """Which family describes the size of tumours? (Wisconsin breast cancer, 569 tumours.)"""
    table = _dataset("breast_cancer")
    area = table.data[:, list(table.feature_names).index("mean area")]
    positive = [
        fam.Gamma(),
        fam.LogNormal(),
        fam.InverseGamma(),
        fam.WeibullKnownShape,
        fam.Normal(),
        fam.Exponential(),
    ]
    fits = fam.compare(area, positive)
    _, ax = plotting.figure()
    for colour, each in zip(plotting.COLOURS[1:], fits[:3], strict=False):
        plotting.density(each.estimate.family, each.estimate.theta, area, ax=ax, label=each.name, color=colour)
    ax.set_xlabel("area of the nuclei")
    picture = plotting.save(ax.figure, output / "tumours.png")
    benign, malignant = (fam.LogNormal().mle(area[table.target == label]) for label in (1, 0))
    apart = fam.LogNormal().kl(malignant, benign)
    return Section(
        "Tumours: which family?",
        [
            f"The mean area of the cell nuclei in {area.size} breast tumours. The families are compared on the same "
            "data by likelihood; AIC charges one unit of log likelihood for each parameter. Anderson and Darling's "
            "distance A² says how far the data are from each fit: about one where a member is the truth.",
            f"Fitted apart by log-normals, the malignant tumours are {apart:.1f} nats of Kullback-Leibler divergence "
            "away from the benign ones: so much evidence, on average, is in the area of each malignant tumour.",
        ],
        [comparison(fits)],
        pictures=[(picture, "The areas and the three best of the fitted densities.")],
    )


def irises(output: Path) -> Section:
    """How much do fifty flowers tell? (Fisher's irises, four measurements, three species.)"""
    table = _dataset("iris")
    family = fam.MultivariateNormal(4)
    fits = {
        name: family.estimate(table.data[table.target == label])
        for label, name in enumerate(map(str, table.target_names))
    }
    divergences = Table(
        ("from \\ to", *fits),
        [
            (name, *(f"{family.kl(fit.theta, other.theta):.1f}" for other in fits.values()))
            for name, fit in fits.items()
        ],
        "Kullback-Leibler divergence between the fitted species, in nats",
    )
    setosa = fits["setosa"]
    certificate = setosa.risk.certificate
    first = int(
        np.argmax(np.isfinite(risk.risk_mle_normal(np.arange(20), 4)))
    )  # the smallest sample with a finite risk
    means = Table(
        ("species", *map(str, table.feature_names)),
        [
            (
                name,
                *(with_error(m, e) for m, e in zip(fit.usual["mean"], fit.usual_standard_errors["mean"], strict=True)),
            )
            for name, fit in fits.items()
        ],
        "Mean ± standard error, in cm",
    )
    return Section(
        "Irises: how far from the truth is a fit to fifty flowers?",
        [
            "Each species is fitted by a four-dimensional normal distribution with mean and covariance unknown: 14 "
            f"parameters from {setosa.count:g} flowers. If flowers are normal, the expected divergence of the fit from "
            "the truth is known exactly and is the same whatever the truth is. The certificate says so, and says what "
            "it rests on.",
            "The large-sample rule of thumb, parameters / (2 n), is optimistic here; the exact value is infinite for "
            f"{first - 1} flowers or fewer. Dots are simulations, drawn from the law fitted to setosa.",
        ],
        [means, divergences],
        [] if certificate is None else [certificate],
        [
            (
                _risk_picture(setosa, output / "irises.png"),
                "Expected divergence of the fit from the truth against sample size.",
            )
        ],
    )


def wines(output: Path) -> Section:
    """Colour of three cultivars: statistics that add up. (178 Italian wines.)"""
    table = _dataset("wine")
    colour = table.data[:, list(table.feature_names).index("color_intensity")]
    family = fam.Gamma()
    groups = {f"cultivar {label}": colour[table.target == label] for label in range(3)}
    fits = {name: family.estimate(group) for name, group in groups.items()}
    first = groups["cultivar 0"]
    shards = [family.collect(part) for part in np.array_split(first, 3)]
    joined = (shards[0] + shards[1] + shards[2]).mle()
    difference = float(np.max(np.abs(joined / fits["cultivar 0"].theta - 1)))
    fig, axes = plotting.figure(1, 3, width=10.5, height=3.2, sharex=True, sharey=True)
    for ax, (name, fit) in zip(axes, fits.items(), strict=True):
        plotting.density(family, fit.theta, groups[name], ax=ax, label="Gamma")
        ax.set(title=name, xlabel="colour intensity")
        ax.label_outer()
    rows = [
        (
            name,
            f"{fit.count:g}",
            parameters(fit),
            with_error(float(fit.mu[1]), float(np.sqrt(family.fisher(fit.theta)[1, 1] / fit.count))),
        )
        for name, fit in fits.items()
    ]
    return Section(
        "Wines: statistics add up",
        [
            f"The colour intensity of {colour.size} wines from three cultivars, each fitted by a gamma distribution.",
            f"The {first.size} wines of cultivar 0 were also fitted from three shards, none of which saw the others' "
            "data: their sufficient statistics were added up. The estimate is that of all data at once, to a relative "
            f"{difference:.0e}.",
        ],
        [Table(("", "wines", "gamma fit ± s.e.", "mean ± s.e."), rows)],
        pictures=[(plotting.save(fig, output / "wines.png"), "The wines of each cultivar and the fitted densities.")],
    )


def digits(output: Path) -> Section:
    """Counts that are too regular, and counts that are too wild. (1797 images of digits, 8 by 8 pixels.)"""
    images = _dataset("digits").images
    lit = np.sum(images > 0, axis=(1, 2)).astype(int)
    corner = images[:, 1, 1].astype(int)
    wild = [fam.NegativeBinomial, fam.Geometric(), fam.Binomial(16), fam.Poisson()]
    studies = {
        "pixels with ink, of 64": (lit, [fam.Binomial(64), fam.Poisson()]),
        "ink in pixel (1, 1), 0 to 16": (corner, wild),
    }
    fig, axes = plotting.figure(1, 2, width=9.4, height=3.4)
    tables, words = [], []
    for ax, (title, (counts, candidates)) in zip(axes, studies.items(), strict=True):
        fits = fam.compare(counts, candidates)
        tables.append(comparison(fits, title))
        for colour, each in zip(plotting.COLOURS[1:], fits[:2], strict=False):
            plotting.density(each.estimate.family, each.estimate.theta, counts, ax=ax, label=each.name, color=colour)
        ax.set_xlabel(title)
        best = fits[0].estimate
        spread = counts.var() / best.family.fisher(best.theta)[0, 0]
        words.append(f"{title}: the data vary {spread:.2f} times as much as the best of these families")
    return Section(
        "Digits: counts",
        [
            f"Two counts from {lit.size} images of handwritten digits. The best of a list need not be good: the "
            f"variance of the data is compared with that of the best fit. {'; '.join(words)}. Where the number is far "
            "from 1, standard errors from that family are wrong by about its square root.",
        ],
        tables,
        pictures=[(plotting.save(fig, output / "digits.png"), "The counts and the two best families of each list.")],
    )


def diabetes(output: Path) -> Section:
    """An estimate that is updated patient by patient. (Progression of diabetes in 442 patients.)"""
    table = _dataset("diabetes", scaled=False)
    progression = table.target
    order = np.random.default_rng(0).permutation(progression.size)
    family = fam.Gamma()
    stream, rows = fam.StreamingMAP(family), []
    for batch in order.reshape(-1, 17):  # batches of one size are one compiled program
        stream = stream.update(progression[batch])
        deviation = np.sqrt(family.fisher(stream.theta)[1, 1] / stream.count)
        rows.append((stream.count, stream.mu[1], deviation, stream.theta))
    n, mean, deviation = (np.array(column) for column in list(zip(*rows, strict=True))[:3])
    final = rows[-1][3]
    distance = np.array([float(family.kl(final, row[3])) for row in rows[:-1]])
    fig, (left, middle, right) = plotting.figure(1, 3, width=12.0, height=3.4)
    plotting.density(family, final, progression, ax=left)
    left.set_xlabel("progression after a year")
    middle.plot(n, mean)
    plotting.band(middle, n, mean - 1.96 * deviation, mean + 1.96 * deviation, label="95%")
    middle.axhline(mean[-1], color=plotting.COLOURS[-1], linewidth=0.8, linestyle="--")
    middle.set(xscale="log", xlabel="patients", ylabel="mean progression")
    plotting.legend(middle)
    right.loglog(n[:-1], distance, "o-", label="KL(all || first n)")
    right.loglog(n[:-1], 0.5 * family.dim * (1 / n[:-1] - 1 / n[-1]), "--", label="expected, to first order")
    right.set(xlabel="patients n", ylabel="nats")
    plotting.legend(right)
    for ax in (middle, right):
        ax.set_xticks([20, 50, 100, 200, 400], labels=["20", "50", "100", "200", "400"])
        ax.set_xticks([], minor=True)
    fits = fam.compare(progression, [family, fam.LogNormal(), fam.Normal()])
    return Section(
        "Diabetes: an estimate that follows the data",
        [
            f"Progression of the disease in {progression.size} patients, fitted by a gamma distribution as they come "
            "in, in random order. The estimate after each batch is exactly that of all data so far.",
        ],
        [comparison(fits)],
        pictures=[
            (
                plotting.save(fig, output / "diabetes.png"),
                "Left: all patients. Middle: the mean as patients come in, with 95% intervals. Right: how far the "
                "estimate from the first n patients is from the final one.",
            )
        ],
    )


def _risk_picture(fit: Any, path: Path) -> Path:
    """Exact expected divergence against sample size, the rule of thumb, and simulations."""
    family = fit.family
    side = family.event_shape[0]
    n = np.unique(np.geomspace(side + 3, 2000, 60).astype(int))
    some = np.array([10, 20, 50, 100, 200, 500, 1000])
    simulated = risk.monte_carlo_risk(family, fit.theta, some, trials=2000, rng=0)
    fig, ax = plotting.figure()
    ax.loglog(n, risk.risk_mle_normal(n, side), label="exact")
    ax.loglog(n, family.dim / (2 * n), "--", label="parameters / (2 n)")
    ax.errorbar(
        some,
        simulated.value,
        2 * simulated.standard_error,
        fmt="o",
        color=plotting.COLOURS[2],
        label="simulated, ± 2 s.e.",
    )
    ax.axvline(fit.count, color=plotting.COLOURS[-1], linewidth=0.8, linestyle=":")
    ax.annotate(
        f"n = {fit.count:g}", (fit.count, ax.get_ylim()[1]), xytext=(4, -12), textcoords="offset points", fontsize=9
    )
    ax.set(xlabel="flowers n", ylabel="expected KL(truth || fit), nats")
    plotting.legend(ax)
    return plotting.save(fig, path)


def _dataset(name: str, **options: Any) -> Any:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(**options)
