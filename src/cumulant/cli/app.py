"""The commands and their options; what they do lives in the modules beside this one."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cumulant._version import __version__
from cumulant.cli import admix, crf, ising, stream, vi
from cumulant.errors import CumulantError

app = typer.Typer(
    help="Learning and inference in exponential families, with certificates.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(admix.app, name="admix")
app.add_typer(crf.app, name="crf")
app.add_typer(ising.app, name="ising")
app.add_typer(stream.app, name="stream")
app.add_typer(vi.app, name="vi")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. A refusal is one red line and exit code 1; with ``--debug`` it is the whole traceback."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(args=arguments, prog_name="cumulant")
    except (CumulantError, ValueError, OSError, MemoryError, ModuleNotFoundError) as problem:
        foreign = isinstance(problem, ModuleNotFoundError) and problem.name != "matplotlib"
        if foreign or "--debug" in arguments:
            raise
        _complain(problem)
        raise SystemExit(1) from None


def _complain(problem: Exception) -> None:
    from rich.console import Console
    from rich.text import Text

    message = " ".join(str(problem).split()) or type(problem).__name__
    Console(stderr=True, soft_wrap=True).print(Text.assemble(("error: ", "bold red"), (message, "red")))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cumulant {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """Learning and inference in exponential families, with certificates."""


@app.command()
def families() -> None:
    """Print the exponential families: support, dimension, usual parameters, cumulant function."""
    from cumulant.cli.families import show

    show()


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")] = Path("demo-output"),
) -> None:
    """Fit families, regressions, a tagger and Markov random fields, and write a page with pictures."""
    from cumulant.cli.demo import show

    show(output)


@app.command("warm-up")
def warm_up() -> None:
    """Compile what first calls need, once per installation, for container images and CI; print where it is kept."""
    from cumulant.cli.warm_up import show

    show()


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="The experiment to run; without it, list them.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    output: Annotated[Path, typer.Option(help="Folder for the pictures and the ledger.")] = Path("reproduced"),
    pictures: Annotated[bool, typer.Option(help="Draw pictures (needs matplotlib).")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version of each run.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 0,
    ledger: Annotated[
        Path | None,
        typer.Option(help="Where to write the ledger, instead of OUTPUT/ledger.json; a page goes beside it."),
    ] = None,
) -> None:
    """Run published figures and tables again, and print each claim with the number found and a verdict."""
    from cumulant.cli.reproduce import show_list, show_runs

    if name is not None and everything:
        raise typer.BadParameter("give the name of one experiment or --all, not both")
    if listing or (name is None and not everything):
        show_list()
    else:
        show_runs(name, output=output, pictures=pictures, quick=quick, seed=seed, ledger=ledger)


@app.command()
def infer(
    model: Annotated[Path, typer.Argument(help="A UAI file, MARKOV or BAYES.")],
    evidence: Annotated[Path | None, typer.Option("--evidence", "-e", help="A UAI evidence file.")] = None,
    time: Annotated[float, typer.Option("--time", "-t", min=0.0, help="Seconds for the bounds on log Z.")] = 10.0,
    memory: Annotated[int, typer.Option(min=1, help="MiB that tables may take.")] = 2048,
    marginals: Annotated[bool, typer.Option("--marginals", help="Print the marginals as well.")] = False,
    sampling: Annotated[
        bool, typer.Option("--sampling", help="Allow a lower end that holds with probability.")
    ] = False,
    delta: Annotated[float, typer.Option(help="With --sampling: how likely the lower end fails.")] = 1e-6,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 0,
    work: Annotated[
        int | None, typer.Option(min=0, help="Do this many pieces of work, for the same answer on any machine.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a UAI result: PR (log Z), or MAR with --marginals.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Compute log Z of a UAI model, exactly where memory allows, else as a certified interval; and its marginals."""
    from cumulant.cli.infer import show

    show(
        model, evidence=evidence, seconds=time, memory=memory, marginals=marginals, sampling=sampling, delta=delta,
        seed=seed, work=work, output=output, as_json=json,
    )  # fmt: skip
