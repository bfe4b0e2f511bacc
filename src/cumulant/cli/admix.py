"""`cumulant admix`: population structure from genotypes."""

import json as json_text
import math
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Population structure: memberships, evidence, the number of populations.", no_args_is_help=True)
_SHOWN = 60  # rows of the table on the terminal


class Method(StrEnum):
    """The methods of `admixture.Admixture`."""

    collapsed_gibbs = "collapsed_gibbs"
    gibbs = "gibbs"
    mean_field = "mean_field"
    ais = "ais"
    variational_smc = "variational_smc"


Data = Annotated[
    Path, typer.Argument(help="Genotypes: .npz, .csv, PLINK's .bed (with .bim and .fam), else a STRUCTURE file.")
]


@app.command()
def fit(
    data: Data,
    components: Annotated[int, typer.Option("--components", "-K", min=1, help="The number of populations.")] = 2,
    method: Annotated[Method, typer.Option(help="How the posterior is computed.")] = Method.collapsed_gibbs,
    membership_prior: Annotated[float, typer.Option(help="Dirichlet parameter of memberships.")] = 0.1,
    allele_prior: Annotated[float, typer.Option(help="Dirichlet parameter of allele frequencies.")] = 0.1,
    plot: Annotated[Path | None, typer.Option(help="Picture of memberships (needs matplotlib).")] = None,
    distances: Annotated[Path | None, typer.Option(help="Picture of the distances between individuals.")] = None,
    table: Annotated[Path | None, typer.Option(help="Table of the memberships of every individual: .csv.")] = None,
    by: Annotated[str, typer.Option(help="The array of a .npz that groups individuals, such as region.")] = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File of the fit: .npz.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Fit an admixture; print the memberships by population, and the evidence with its error or bound."""
    for path in (plot, distances, table, output):
        if path is not None and not path.parent.is_dir():  # said now, not after the work
            raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    from cumulant.admixture import Admixture, read_genotypes
    from cumulant.files import write_atomically

    if by and data.suffix.lower() != ".npz":
        raise ValueError(f"--by names an array of a .npz file; {data} has none")
    genotypes = read_genotypes(data, **({"population": by} if by else {}))
    model = Admixture(
        components, method=str(method), membership_prior=membership_prior, allele_prior=allele_prior, random_state=seed
    ).fit(genotypes)
    if plot is not None:
        from cumulant.plotting import save
        from cumulant.plotting.admixture import memberships

        plot = save(memberships(model.memberships_, genotypes.populations).figure, plot)
    if distances is not None:
        from cumulant.plotting import admixture as pictures
        from cumulant.plotting import save

        distances = save(pictures.distances(model.distance_, genotypes.populations).figure, distances)
    if table is not None:
        write_atomically(table, _rows(model, genotypes).encode())
    if output is not None:
        output = model.save(output)
    if json:
        print(json_text.dumps(_plain(model, genotypes, plot, output)))
        return
    from rich.console import Console

    console = Console(soft_wrap=True, highlight=False)
    console.print(str(genotypes), markup=False)
    console.print(_table(model, genotypes))
    console.print(f"{model.mode_share_:.0%} of the draws are of the mode shown", markup=False)
    if model.evidence_ is not None:
        error = model.evidence_error_
        finite = error is not None and math.isfinite(error)
        known = f"± {error:.2g}" if finite else "(error not known: the particles have too few ancestors)"
        console.print(f"log p(w) = {model.evidence_:.2f} {known}", markup=False)
    if model.certificate_ is not None:
        console.print(str(model.certificate_), markup=False)
    for name, path in (("picture", plot), ("map of distances", distances), ("table", table), ("fit", output)):
        if path is not None:
            console.print(f"The {name}: {path}", markup=False)


@app.command()
def choose(
    data: Data,
    largest: Annotated[int, typer.Option("--largest", "-K", min=2, help="Compare 1, 2, ... up to this number.")] = 6,
    temperatures: Annotated[int, typer.Option(min=1, help="Steps from the prior to the posterior.")] = 1000,
    particles: Annotated[int, typer.Option(min=2, help="Particles of each of two islands.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 0,
) -> None:
    """Compare numbers of populations by their evidence."""
    from cumulant.admixture import choose_components, read_genotypes

    numbers = range(1, largest + 1)
    print(
        choose_components(read_genotypes(data), numbers, n_particles=particles, n_temperatures=temperatures, rng=seed)
    )


def _table(model: Any, genotypes: Any) -> Any:
    """Mean memberships of each population, or of the first individuals where none are named."""
    from rich.table import Table

    means = _means(model, genotypes)
    shown = means.items() if means else zip(_names(genotypes), model.memberships_, strict=True)
    table = Table(title="Mean memberships", title_justify="left")
    table.add_column("population" if means else "individual")
    for k in range(model.memberships_.shape[1]):
        table.add_column(str(k + 1), justify="right")
    for name, shares in islice(shown, _SHOWN):
        table.add_row(name, *(f"{share:.3f}" for share in shares))
    hidden = len(means or genotypes) - _SHOWN
    if hidden > 0:
        table.caption = f"and {hidden} more: --table writes all of them"
    return table


def _names(genotypes: Any) -> tuple[str, ...]:
    return genotypes.individuals or tuple(map(str, range(len(genotypes))))


def _means(model: Any, genotypes: Any) -> dict[str, Any]:
    """Mean memberships by population; none where no populations are named."""
    import numpy as np

    labels = np.array(genotypes.populations or ())
    return {str(name): model.memberships_[labels == name].mean(axis=0) for name in dict.fromkeys(labels)}


def _rows(model: Any, genotypes: Any) -> str:
    """A line for each individual: names, memberships, their standard deviations, the level of admixture."""
    import csv
    import io

    k, out = model.memberships_.shape[1], io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([
        "individual", "population", *(f"membership_{i + 1}" for i in range(k)), *(f"sd_{i + 1}" for i in range(k)),
        "level",
    ])  # fmt: skip
    groups = genotypes.populations or [""] * len(genotypes)
    for d, (name, group) in enumerate(zip(_names(genotypes), groups, strict=True)):
        numbers = (*model.memberships_[d], *model.memberships_sd_[d], model.level_[d])
        writer.writerow([name, group, *(f"{value:.5f}" for value in numbers)])
    return out.getvalue()


def _plain(model: Any, genotypes: Any, plot: Path | None, output: Path | None) -> dict[str, Any]:
    certificate, error = model.certificate_, model.evidence_error_
    return {
        "individuals": len(genotypes),
        "loci": genotypes.alleles.shape[1],
        "components": model.n_components,
        "method": model.method,
        "mode_share": model.mode_share_,
        "populations": {name: shares.tolist() for name, shares in _means(model, genotypes).items()},
        "memberships": [  # in the order of the file: names of individuals need not differ
            {"individual": name, "memberships": shares.tolist(), "sd": sd.tolist(), "level": float(level)}
            for name, shares, sd, level in zip(
                _names(genotypes), model.memberships_, model.memberships_sd_, model.level_, strict=True
            )
        ],
        "log_evidence": model.evidence_,
        "log_evidence_error": error if error is not None and math.isfinite(error) else None,
        "elbo": model.elbo_,
        "certificate": None if certificate is None else json_text.loads(certificate.to_json()),
        "plot": None if plot is None else str(plot),
        "output": None if output is None else str(output),
    }
