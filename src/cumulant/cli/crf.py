"""`cumulant crf`: the commands for chain CRFs and their options; what they do lives in `tagging`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Label sequences by a chain CRF: train, tag, evaluate, show.", no_args_is_help=True)


class Format(StrEnum):
    """How a file of sequences is written."""

    conll = "conll"
    crfsuite = "crfsuite"


class Solver(StrEnum):
    """The solvers of `ChainCRF`."""

    auto = "auto"
    sdca = "sdca"
    lbfgs = "lbfgs"


_Model = Annotated[Path, typer.Option("--model", "-m", help="File of the model (.npz).")]
_Encoding = Annotated[str, typer.Option(help="Encoding of text files.")]


@app.command()
def train(
    data: Annotated[str, typer.Argument(help="Labelled sequences: a file, gzipped if it ends in .gz, or - for input.")],
    model: _Model,
    template: Annotated[
        str | None,
        typer.Option("--template", "-t", help="For conll: a template file, or one of the names chunking and ner."),
    ] = None,
    dev: Annotated[str | None, typer.Option(help="Stop when the accuracy on these sequences no longer rises.")] = None,
    l2: Annotated[
        float | None,
        typer.Option(
            help="Penalty l2/2 |w|^2 beside the mean loss; CRFsuite's c2 is l2 * sequences / 2.",
            show_default="1 / sequences",
        ),
    ] = None,
    l1: Annotated[float, typer.Option(help="Penalty l1 |w|_1: makes weights exactly zero.")] = 0.0,
    tol: Annotated[float, typer.Option(help="Stop when the gap is at most this share of the objective.")] = 1e-3,
    max_epochs: Annotated[int, typer.Option(help="Passes over the data at most.")] = 100,
    solver: Annotated[Solver, typer.Option(help="Dual coordinate ascent (sdca) or L-BFGS.")] = Solver.auto,
    float32: Annotated[bool, typer.Option("--float32", help="Half the memory for dual variables.")] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Threads; the answer does not depend on it.", show_default="all cores")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 0,
    format: Annotated[Format, typer.Option(help="How the files are written.")] = Format.conll,
    time_limit: Annotated[float | None, typer.Option(help="Seconds of training at most.")] = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Fit a chain CRF to labelled sequences and save it with its certificate.

    In CoNLL files a token is a line of columns, the last one its label, and a blank line ends a sequence. Ctrl-C ends
    training early: the model so far is saved, and the exit code is 130.
    """
    from cumulant.cli import tagging

    if format is Format.conll and template is None:
        raise typer.BadParameter(
            "a CoNLL file needs --template: a file, or one of the names chunking and ner (attributes that are written "
            "out need --format crfsuite instead)"
        )
    if format is Format.crfsuite and template is not None:
        raise typer.BadParameter("a CRFsuite file has its attributes written out: leave --template away")
    settings = {
        "l2": l2,
        "l1": l1,
        "tol": tol,
        "max_epochs": max_epochs,
        "solver": solver.value,
        "marginals": "float32" if float32 else "float64",
        "n_jobs": jobs,
        "random_state": seed,
        "time_limit": time_limit,
    }
    if not tagging.train(data, model, source=template, dev=dev, encoding=encoding, settings=settings):
        raise typer.Exit(130)


@app.command()
def tag(
    data: Annotated[str, typer.Argument(help="Sequences, with or without labels: a file, or - for input.")],
    model: _Model,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", show_default="print")] = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Label sequences: the predicted label becomes one more column, at the end of each line.

    Of a file in CRFsuite's format, whose first column is the label, that column is replaced.
    """
    from cumulant.cli import tagging

    tagging.tag(data, model, output, encoding)


@app.command()
def evaluate(
    data: Annotated[str, typer.Argument(help="Labelled sequences: a file, or - for input.")],
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="File of the model (.npz).", show_default="the file has predictions"),
    ] = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Compare predicted labels with true ones: tokens, chunks by the rules of CoNLL, and which are confused.

    Without a model, the last two columns of the file are the true and the predicted label, as `cumulant crf tag` and
    `crfsuite tag -r` write them and conlleval reads them.
    """
    from cumulant.cli import tagging

    tagging.evaluate(data, model, encoding)


@app.command()
def show(
    model: _Model,
    top: Annotated[int, typer.Option(min=1, help="How many features and transitions.")] = 20,
) -> None:
    """Print what is in a model: its largest weights, how it was fitted, and its certificate."""
    from cumulant.cli import tagging

    tagging.show(model, top)


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")] = Path("crf-demo-output"),
) -> None:
    """Read words of handwritten digits with and without their grammar, and write a page with pictures."""
    from cumulant.cli.demo import show
    from cumulant.report import sequences

    show(output, sequences)
