"""`cumulant reproduce`: run experiments, print what each claim came to, keep the ledger."""

import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cumulant.cli.ledger import Run, write
from cumulant.experiments import Experiment, Report, catalogue, find

_COLOURS = {"reproduced": "green", "corrected": "yellow", "true, not tight": "cyan", "not reproduced": "red"}


def show_list() -> None:
    """Print the name, title and source of every experiment."""
    table = Table(title="Published figures and tables that can be run again", title_justify="left", expand=False)
    for heading in ("name", "title", "source"):
        table.add_column(heading, overflow="fold")
    for experiment in catalogue().values():
        table.add_row(f"[bold]{escape(experiment.name)}[/]", escape(experiment.title), escape(experiment.source))
    console = Console()
    console.print(table)
    console.print("Run one with [bold]cumulant reproduce NAME[/], all with [bold]cumulant reproduce --all[/].")


def show_runs(name: str | None, *, output: Path, pictures: bool, quick: bool, seed: int, ledger: Path | None) -> None:
    """Run one experiment, or all where `name` is None; print the verdicts; write pictures and the ledger.

    One that is run by itself replaces its own entries in a ledger that is there.

    With all, one that fails does not stop the others: the ledger says that it failed, and the exit code is 1.
    """
    experiments = list(catalogue().values()) if name is None else [find(name)]
    options = (" --quick" if quick else "") + (f" --seed {seed}" if seed else "")
    console, runs = Console(), []
    for experiment in experiments:
        folder = output / experiment.name if pictures else None
        try:
            runs.append(replace(_run(experiment, folder, quick, seed, console), options=options))
        except Exception as problem:
            if name is not None:
                raise
            runs.append(Run(experiment, failure=f"{type(problem).__name__}: {problem}"))
        _show(console, runs[-1])
    path = ledger or output / "ledger.json"
    write(path, runs, keep=name is not None)
    console.print(f"Ledger: {escape(str(path))}, {escape(str(path.with_suffix('.md')))}", soft_wrap=True)
    failed = [run.experiment.name for run in runs if run.failure]
    if failed:
        raise ValueError(f"{len(failed)} of {len(runs)} experiments failed: {', '.join(failed)}")


def _run(experiment: Experiment, folder: Path | None, quick: bool, seed: int, console: Console) -> Run:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with console.status(f"{escape(experiment.name)}: {escape(experiment.title)}"):
        report: Report = experiment.run(output=folder, quick=quick, rng=seed)
    return Run(experiment, report, time.perf_counter() - start)


def _show(console: Console, run: Run) -> None:
    experiment, report = run.experiment, run.report
    table = Table(
        title=f"{escape(experiment.title)}\n[not bold dim]{escape(experiment.source)}[/]",
        title_justify="left",
        show_lines=True,
    )
    for heading in ("claim", "published", "ours", "verdict"):
        table.add_column(heading, overflow="fold")
    if report is None:
        console.print(f"[bold]{escape(experiment.title)}[/]: [red]failed[/], {escape(run.failure)}", soft_wrap=True)
        return
    for claim in report.claims:
        verdict = f"[{_COLOURS[claim.verdict]}]{claim.verdict}[/]"
        statement = f"{claim.item}: {claim.statement}" if claim.item else claim.statement
        ours = f"{claim.ours} ({claim.spread})" if claim.spread else claim.ours
        table.add_row(escape(statement), escape(claim.published), escape(ours), verdict)
    console.print(table)
    if report.notes:
        console.print(escape(report.notes))
    for picture in report.pictures:
        console.print(f"Picture: {escape(str(picture))}", soft_wrap=True)
    console.print(f"[dim]{run.seconds:.1f} s[/]\n")
