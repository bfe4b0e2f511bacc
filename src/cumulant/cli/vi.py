"""`cumulant vi`: the Gaussian nearest to a posterior, from a file with a log-density."""

import importlib.util
import json as json_text
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Gaussian approximations of posteriors: fit, certificate, verdict.", no_args_is_help=True)


class Family(StrEnum):
    """The families of `variational.fit`."""

    full = "full"
    diagonal = "diagonal"
    isotropic = "isotropic"
    low_rank = "low-rank"


@app.callback()
def commands() -> None:
    """Gaussian approximations of posteriors: fit, certificate, verdict."""


@app.command()
def fit(
    model: Annotated[
        str,
        typer.Argument(
            help="FILE.py:NAME, a JAX function of a vector that returns a log-density (give --dim), or a Target."
        ),
    ],
    dim: Annotated[int | None, typer.Option(min=1, help="The number of coordinates of a function.")] = None,
    family: Annotated[Family, typer.Option(help="Form of the covariance.")] = Family.full,
    accuracy: Annotated[float, typer.Option(help="Aim at this divergence from the best Gaussian, in nats.")] = 0.01,
    time_limit: Annotated[float | None, typer.Option(help="Seconds of fitting at most.", show_default="none")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with annealed importance sampling.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Folder for a page with pictures (needs matplotlib).", show_default="none")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File of the Gaussian: .npz.", show_default="none")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Fit the Gaussian nearest to a posterior, and say how far it can be from the best one and whether to trust it.

    A verdict of "do not trust" is exit code 2.
    """
    for path in (output, page):
        if path is not None and not path.parent.is_dir():  # said now, not after the work
            raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    from cumulant import variational

    target = load(model, dim)
    found = variational.fit(target, family.value.replace("-", "_"), accuracy=accuracy, time_limit=time_limit, rng=seed)
    annealed = variational.check_by_annealing(found, rng=seed) if check or page is not None else None
    if output is not None:
        found.save(output)
    if page is not None:
        from cumulant.report.variational import write

        write(found, annealed, page)
    if json:
        print(json_text.dumps(_plain(found, annealed)))
    else:
        print(found)
        if annealed is not None:
            print(annealed)
    if found.verdict == "do not trust":
        raise typer.Exit(2)


def load(model: str, dim: int | None) -> Any:
    """The target of ``FILE.py:NAME``; only a file that the user names is run."""
    from cumulant.sampling import Target

    file, _, name = model.rpartition(":")
    if not file or not name.isidentifier():
        raise ValueError(f"the model must be given as FILE.py:NAME; got {model!r}")
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # so that dataclasses and pickles of the file find it
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if isinstance(found, Target):
        return found
    if not callable(found):
        raise ValueError(f"{path} has no function or Target called {name!r}")
    if dim is None:
        raise ValueError(f"{name} is a function: give the number of its coordinates by --dim")
    return Target(found, dim)


def _plain(found: Any, annealed: Any) -> dict[str, Any]:
    answer = {
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "mean": found.mean.tolist(),
        "deviations": found.deviations.tolist(),
        "elbo": found.elbo,
        "certified_excess": None if found.certificate is None else found.certificate.upper,
        "pareto_k": found.diagnostics.pareto_k,
        "status": found.status,
        "steps": found.work,
        "seconds": found.seconds,
    }
    if annealed is not None:
        answer |= {"annealing_agrees": annealed.agrees, "log_evidence": annealed.log_evidence}
    return answer
