"""The ledger: a Markdown page that says of each published claim whether it came out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cumulant.experiments import Experiment, Report
from cumulant.files import write_atomically

__all__ = ["Run", "text", "write"]


@dataclass(frozen=True)
class Run:
    """One experiment and what its run found; `failure` says why there is no report."""

    experiment: Experiment
    report: Report | None = None
    seconds: float = 0.0
    failure: str = ""


def write(path: Path, runs: Sequence[Run], command: str) -> None:
    """Write the ledger of these runs to `path`; `command` is what makes it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text(runs, command).encode())


def text(runs: Sequence[Run], command: str) -> str:
    """The ledger as Markdown: totals first, then one table of claims for each experiment. No time, no date."""
    verdicts = Counter(claim.verdict for run in runs if run.report for claim in run.report.claims)
    failed = sum(run.report is None for run in runs)
    lines = [
        "# Reproduction ledger",
        "",
        "Each published claim that has been run again, what was printed, what comes out here, and the verdict.",
        "*Corrected* means that the claim is wrong as printed and holds in the form given here. The page is written by",
        f"`{command}`: change the experiments, not the page.",
        "",
        f"{len(runs)} experiment{'s' if len(runs) != 1 else ''}: {verdicts['reproduced']} claims reproduced,"
        f" {verdicts['corrected']} corrected, {verdicts['not reproduced']} not reproduced"
        + (f"; {failed} experiment{'s' if failed > 1 else ''} failed to run." if failed else "."),
    ]
    for run in runs:
        lines += [
            "",
            f"## {_line(run.experiment.title)}",
            "",
            f"`{run.experiment.name}`. {_line(run.experiment.source)}",
            "",
        ]
        if run.report is None:
            lines.append(f"**Failed to run**: {_line(run.failure)}")
            continue
        lines += ["| claim | published | ours | verdict |", "|---|---|---|---|"]
        for claim in run.report.claims:
            verdict = claim.verdict if claim.verdict == "reproduced" else f"**{claim.verdict}**"
            lines.append(f"| {_cell(claim.statement)} | {_cell(claim.published)} | {_cell(claim.ours)} | {verdict} |")
        if run.report.notes:
            lines += ["", _line(run.report.notes)]
    return "\n".join(lines) + "\n"


def _line(words: str) -> str:
    """One line of plain text: what Markdown would take for markup is escaped."""
    for mark in "\\`*_[]<>#$~^":
        words = words.replace(mark, "\\" + mark)
    return " ".join(words.split())


def _cell(words: str) -> str:
    return _line(words).replace("|", "\\|")
