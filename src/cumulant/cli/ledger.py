"""The ledger: what each published claim came to, as JSON, and as a Markdown page that is made from it."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cumulant.experiments import Experiment, Report
from cumulant.files import write_atomically

FIELDS = ("id", "source", "claim", "published", "measured", "spread", "verdict", "seconds", "command")
_VERDICTS = ("reproduced", "corrected", "true, not tight", "not reproduced")


@dataclass(frozen=True)
class Run:
    """One experiment and what its run found; `failure` says why there is no report."""

    experiment: Experiment
    report: Report | None = None
    seconds: float = 0.0
    failure: str = ""
    options: str = ""


def write(path: Path, runs: Sequence[Run], keep: bool = False) -> None:
    """Write the ledger of these runs to `path`, and its page to the same name with the ending ``.md``.

    With `keep`, what a ledger that is there says of other experiments stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    ledger = read(path) if keep and path.exists() else {"experiments": {}, "entries": []}
    for run in runs:
        name = run.experiment.name
        ledger["experiments"][name] = {
            "title": run.experiment.title,
            "source": run.experiment.source,
            "notes": run.report.notes if run.report else "",
            "failure": run.failure,
        }
        ledger["entries"] = [entry for entry in ledger["entries"] if entry["experiment"] != name] + entries(run)
    order = sorted(ledger["experiments"])
    ledger["experiments"] = {name: ledger["experiments"][name] for name in order}
    ledger["entries"].sort(key=lambda entry: order.index(entry["experiment"]))  # a stable sort: claims keep their order
    write_atomically(path, (json.dumps(ledger, indent=1, ensure_ascii=False) + "\n").encode())
    write_atomically(path.with_suffix(".md"), page(ledger, path.name).encode())


def read(path: Path) -> dict[str, Any]:
    """A ledger that `write` wrote: ``experiments`` by name, and ``entries``, one for each claim."""
    try:
        ledger = json.loads(path.read_text())
        missing = [field for entry in ledger["entries"] for field in ("experiment", *FIELDS) if field not in entry]
        unknown = {entry["experiment"] for entry in ledger["entries"]} - set(ledger["experiments"])
    except (ValueError, KeyError, TypeError) as problem:
        raise ValueError(f"{path} is not a ledger: {type(problem).__name__} {problem}") from problem
    if missing or unknown:
        raise ValueError(
            f"{path} is not a ledger: entries lack {sorted({*missing})} or an experiment {sorted(unknown)}"
        )
    return ledger


def entries(run: Run) -> list[dict[str, Any]]:
    """An entry for each claim of a run. Its `id` has the label of the source's item, or the number of the claim."""
    name, found, seen = run.experiment.name, [], Counter()
    for number, claim in enumerate(run.report.claims if run.report else (), 1):
        label = re.sub(r"[^\w.]+", "-", claim.item.lower()).strip("-") or str(number)
        seen[label] += 1
        label = label if seen[label] == 1 else f"{label}-{seen[label]}"
        found.append({
            "id": f"{name}/{label}",
            "experiment": name,
            "item": claim.item,
            "source": run.experiment.source,
            "claim": claim.statement,
            "published": claim.published,
            "measured": claim.ours,
            "spread": claim.spread,
            "verdict": claim.verdict,
            "seconds": round(run.seconds, 1),
            "command": f"cumulant reproduce {name}{run.options}",
        })  # fmt: skip
    return found


def page(ledger: dict[str, Any], data: str = "ledger.json") -> str:
    """The ledger as Markdown: totals first, then one table of claims for each experiment. No time, no date."""
    experiments, claims = ledger["experiments"], ledger["entries"]
    verdicts, failed = (
        Counter(entry["verdict"] for entry in claims),
        sum(bool(e["failure"]) for e in experiments.values()),
    )
    counts = ", ".join(f"{verdicts[v]} {v}" for v in _VERDICTS if verdicts[v])
    head = [
        "# Reproduction ledger",
        "",
        "Each published claim that has been run again, what was printed, what comes out here, and the verdict.",
        "*Corrected* means that the claim is wrong as printed and holds in the form given here; *true, not tight* that",
        "it holds, and a better one holds too. `cumulant reproduce NAME` runs an experiment again. The page is made",
        f"from `{data}`, which `cumulant reproduce --all --ledger PATH` writes: change the experiments, not the page.",
        "",
        f"{len(experiments)} experiment{'s' if len(experiments) != 1 else ''}, {len(claims)} claims: {counts or 'none'}"
        + (f"; {failed} experiment{'s' if failed > 1 else ''} failed to run." if failed else "."),
    ]
    return "\n".join([*head, *(f"\n{_section(name, each, claims)}" for name, each in experiments.items())]) + "\n"


def _section(name: str, experiment: dict[str, str], claims: Sequence[dict[str, Any]]) -> str:
    lines = [f"## {_line(experiment['title'])}", "", f"`{name}`. {_line(experiment['source'])}", ""]
    if experiment["failure"]:
        return "\n".join([*lines, f"**Failed to run**: {_line(experiment['failure'])}"])
    lines += ["| claim | published | ours | verdict |", "|---|---|---|---|"]
    for entry in claims:
        if entry["experiment"] == name:
            verdict = entry["verdict"] if entry["verdict"] == "reproduced" else f"**{entry['verdict']}**"
            statement = f"{entry['item']}: {entry['claim']}" if entry["item"] else entry["claim"]
            measured = f"{entry['measured']} ({entry['spread']})" if entry["spread"] else entry["measured"]
            lines.append(f"| {_cell(statement)} | {_cell(entry['published'])} | {_cell(measured)} | {verdict} |")
    return "\n".join([*lines, "", _line(experiment["notes"])] if experiment["notes"] else lines)


def _line(words: str) -> str:
    """One line of plain text: what Markdown would take for markup is escaped."""
    for mark in "\\`*_[]<>#$~^":
        words = words.replace(mark, "\\" + mark)
    return " ".join(words.split())


def _cell(words: str) -> str:
    return _line(words).replace("|", "\\|")
