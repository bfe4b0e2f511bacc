"""`cumulant ising`: the commands for models of binary variables and their options; what they do lives in `spins`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Ising models of binary tables: fit, sample, bound, mixing.", no_args_is_help=True)


class Method(StrEnum):
    """The methods of `graphical.fit`."""

    pseudo_likelihood = "pseudo-likelihood"
    composite = "composite"
    exact = "exact"
    mcmc = "mcmc"
    contrastive_divergence = "contrastive-divergence"
    persistent = "persistent"


class Sampler(StrEnum):
    """The samplers of discrete models."""

    exact = "exact"
    perfect = "perfect"
    mcmc = "mcmc"
    systematic = "systematic"
    random = "random"
    chromatic = "chromatic"
    blocked = "blocked"
    swendsen_wang = "swendsen-wang"
    wolff = "wolff"
    multi_spin = "multi-spin"


class Norm(StrEnum):
    """The norms of a dependency matrix."""

    spectral = "spectral"
    one = "one"
    inf = "inf"
    degree = "degree"


_Model = Annotated[Path, typer.Argument(help="A model: the .npz file of fit or of model.save, or a .uai file.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of every random number.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.command()
def fit(
    data: Annotated[
        Path,
        typer.Argument(help="Binary data, a row for each observation: .csv (with or without a header), .npy, .npz."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File of the model: .npz, or .uai.")],
    structure: Annotated[
        str,
        typer.Option(
            "--structure",
            "-s",
            help="sparse, complete, chow-liu, grid:4x4, torus:4x4, or a .csv file of pairs of columns.",
        ),
    ] = "sparse",
    method: Annotated[
        Method | None, typer.Option(help="What is maximised, and how.", show_default="pseudo-likelihood")
    ] = None,
    l2: Annotated[
        float, typer.Option(help="Penalty l2/2 |theta|^2; for chow-liu the number of observations added as smoothing.")
    ] = 0.01,
    mixing: Annotated[
        str,
        typer.Option(
            help="Stay in a fast-mixing set (mcmc, exact): spectral:0.9, one:0.9, inf:0.9, box:0.2, or none.",
        ),
    ] = "none",
    eps: Annotated[float, typer.Option(help="For mcmc: the certified accuracy.")] = 0.25,
    delta: Annotated[float, typer.Option(help="For mcmc: the probability that the accuracy is missed.")] = 0.1,
    max_work: Annotated[float, typer.Option(help="For mcmc: refuse plans of more updates than this.")] = 5e8,
    fields: Annotated[bool, typer.Option(help="Learn a field for each spin beside the couplings.")] = True,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which the fit ends with its result so far.", show_default="none")
    ] = None,
    seed: _Seed = 0,
    top: Annotated[int, typer.Option(min=0, help="How many of the largest couplings to print.")] = 10,
    json: _Json = False,
) -> None:
    """Fit an Ising model to binary data, save it, and print its couplings and its certificate.

    Data are 0 and 1, or -1 and +1; of an .npz file with several arrays the one called data or values is taken. Methods
    that sample show a bar on standard error, where that is a terminal.
    """
    from cumulant.cli import spins

    spins.fit_table(
        data, output, structure=structure, method=None if method is None else method.value.replace("-", "_"), l2=l2,
        mixing=mixing, eps=eps, delta=delta, max_work=max_work, fields=fields, seed=seed, time_limit=time_limit,
        top=top, as_json=json,
    )  # fmt: skip


@app.command()
def sample(
    model: _Model,
    n: Annotated[int, typer.Option("-n", min=1, help="Draws, of each chain.")] = 1000,
    method: Annotated[Sampler, typer.Option(help="Independent draws (exact, perfect), or chains.")] = Sampler.exact,
    chains: Annotated[int, typer.Option(min=1, help="How many chains.")] = 4,
    burn_in: Annotated[int, typer.Option(min=0, help="Sweeps of each chain that are discarded.")] = 1000,
    thin: Annotated[int, typer.Option(min=1, help="Keep one sweep in this many.")] = 1,
    zero_one: Annotated[bool, typer.Option("--zero-one", help="Write 0 and 1 instead of -1 and +1.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File of the draws: .npz or .csv.", show_default="none")
    ] = None,
    seed: _Seed = 0,
    json: _Json = False,
) -> None:
    """Draw from a model, and print R-hat and effective sample sizes, which are diagnostics and no proof of mixing."""
    from cumulant.cli import spins

    spins.draw(
        model, n, method.value.replace("-", "_"), chains=chains, burn_in=burn_in, thin=thin, zero_one=zero_one,
        output=output, seed=seed, as_json=json,
    )  # fmt: skip


@app.command()
def bound(
    model: _Model,
    time: Annotated[float, typer.Option("--time", "-t", min=0.0, help="Seconds for the bounds on log Z.")] = 10.0,
    memory: Annotated[int, typer.Option(min=1, help="MiB that tables may take.")] = 2048,
    sampling: Annotated[
        bool, typer.Option("--sampling", help="Allow a lower end that holds with probability.")
    ] = False,
    delta: Annotated[float, typer.Option(help="With --sampling: how likely the lower end fails.")] = 1e-6,
    work: Annotated[
        int | None, typer.Option(min=0, help="Do this many pieces of work, for the same answer on any machine.")
    ] = None,
    seed: _Seed = 0,
    json: _Json = False,
) -> None:
    """Print log Z with its certificate: exactly where memory allows, else as an interval that contains it."""
    from cumulant.cli import spins

    spins.bound(model, seconds=time, memory=memory, sampling=sampling, delta=delta, work=work, seed=seed, as_json=json)


@app.command()
def mixing(
    model: _Model,
    eps: Annotated[float, typer.Option(help="Total variation distance to the model to be reached.")] = 0.01,
    norm: Annotated[
        Norm | None, typer.Option(help="Norm of the dependency matrix.", show_default="the one with the shortest time")
    ] = None,
    json: _Json = False,
) -> None:
    """Print how many updates are proved enough for random-scan Gibbs sampling, or the norms that prevent a proof.

    A refusal is exit code 1. It is no proof that the chain is slow.
    """
    from cumulant.cli import spins

    spins.mixing(model, eps, None if norm is None else norm.value, as_json=json)
