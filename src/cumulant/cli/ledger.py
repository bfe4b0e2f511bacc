"""The ledger: a Markdown page that says of each published claim whether it came out."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cumulant.experiments import Experiment, Report
from cumulant.files import write_atomically


@dataclass(frozen=True)
class Run:
    """One experiment and what its run found; `failure` says why there is no report."""

    experiment: Experiment
    report: Report | None = None
    seconds: float = 0.0
    failure: str = ""


def write(path: Path, runs: Sequence[Run], command: str, keep: bool = False) -> None:
    """Write the ledger of these runs to `path`; `command` is what makes it again.

    With `keep`, what a ledger that is there says of other experiments stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = sections(path.read_text()) if keep and path.exists() else {}
    write_atomically(path, text(runs, command, kept).encode())


def sections(page: str) -> dict[str, str]:
    """The sections of a ledger by the names of their experiments."""
    found = {}
    for section in re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]:
        name = re.search(r"^`([^`]+)`\. ", section, flags=re.MULTILINE)
        if name:
            found[name.group(1)] = section.rstrip("\n") + "\n"
    return found


def text(runs: Sequence[Run], command: str, kept: Mapping[str, str] | None = None) -> str:
    """The ledger as Markdown: totals first, then one table of claims for each experiment. No time, no date."""
    found = {**(kept or {}), **{run.experiment.name: _section(run) for run in runs}}
    names = sorted(found)
    rows = [line for name in names for line in found[name].splitlines() if line.startswith("| ")]
    verdicts = Counter(line.rsplit("|", 2)[1].strip(" *") for line in rows)
    failed = sum("**Failed to run**" in found[name] for name in names)
    head = [
        "# Reproduction ledger",
        "",
        "Each published claim that has been run again, what was printed, what comes out here, and the verdict.",
        "*Corrected* means that the claim is wrong as printed and holds in the form given here. The page is written by",
        f"`{command}`: change the experiments, not the page.",
        "",
        f"{len(names)} experiment{'s' if len(names) != 1 else ''}: {verdicts['reproduced']} claims reproduced,"
        f" {verdicts['corrected']} corrected, {verdicts['not reproduced']} not reproduced"
        + (f"; {failed} experiment{'s' if failed > 1 else ''} failed to run." if failed else "."),
    ]
    return "\n".join([*head, *(f"\n{found[name].rstrip()}" for name in names)]) + "\n"


def _section(run: Run) -> str:
    lines = [
        f"## {_line(run.experiment.title)}",
        "",
        f"`{run.experiment.name}`. {_line(run.experiment.source)}",
        "",
    ]
    if run.report is None:
        return "\n".join([*lines, f"**Failed to run**: {_line(run.failure)}"])
    lines += ["| claim | published | ours | verdict |", "|---|---|---|---|"]
    for claim in run.report.claims:
        verdict = claim.verdict if claim.verdict == "reproduced" else f"**{claim.verdict}**"
        lines.append(f"| {_cell(claim.statement)} | {_cell(claim.published)} | {_cell(claim.ours)} | {verdict} |")
    return "\n".join([*lines, "", _line(run.report.notes)] if run.report.notes else lines)


def _line(words: str) -> str:
    """One line of plain text: what Markdown would take for markup is escaped."""
    for mark in "\\`*_[]<>#$~^":
        words = words.replace(mark, "\\" + mark)
    return " ".join(words.split())


def _cell(words: str) -> str:
    return _line(words).replace("|", "\\|")
