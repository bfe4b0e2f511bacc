"""The pages on coverage name what exists: public names, tests, experiments and the labels of their claims."""

import importlib
import json
import re
from pathlib import Path

import pytest

from cumulant.experiments.base import names

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs" / "coverage").glob("*.md"))
LEDGER = json.loads((ROOT / "docs" / "ledger" / "ledger.json").read_text())
CLAIMS = {(entry["experiment"], entry["item"]) for entry in LEDGER["entries"]}
# The name of an experiment, or one with the label of a claim; names of a single word need the label.
EXPERIMENT = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)+|[a-z0-9]+(?= \())(?: \((.*)\))?")


def rows():
    """Heading, label, and the cells after the description of every row of every table."""
    heading, found = [], []
    for line in (line for page in PAGES for line in page.read_text().splitlines()):
        if line.startswith("# "):
            heading = [line[2:]]
        elif line.startswith("## "):
            heading = [heading[0], line[3:]]
        elif line.startswith("| ") and not line.startswith("| row "):
            label, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            found.append((" / ".join(heading), label, " ".join(cells)))
    return found


ROWS = rows()


def exists(path):
    """Whether a dotted name below `cumulant` is a module, an attribute, or a field of a class."""
    module, parts = "cumulant", path.split(".")
    while parts:
        try:
            importlib.import_module(f"{module}.{parts[0]}")
        except ModuleNotFoundError:
            break
        module = f"{module}.{parts.pop(0)}"
    value = importlib.import_module(module)
    for k, part in enumerate(parts):
        if part.startswith("_"):
            return False
        if not hasattr(value, part):
            fields = {name for cls in getattr(value, "__mro__", ()) for name in getattr(cls, "__annotations__", {})}
            return k == len(parts) - 1 and part in fields
        value = getattr(value, part)
    return True


def what_is_wrong(token):
    """Why a name in backticks does not stand for something that exists; None where it does."""
    if ".py::" in token:
        path, _, test = token.partition("::")
        file = ROOT / "tests" / path
        if not file.is_file():
            return f"there is no file tests/{path}"
        if not re.search(rf"^def {re.escape(test)}\(", file.read_text(), flags=re.MULTILINE):
            return f"tests/{path} has no test {test}"
        return None if test.startswith("test_") else f"{test} is not a test"
    match = EXPERIMENT.fullmatch(token)
    if match:
        name, item = match.groups()
        if name not in names():
            return f"there is no experiment {name}"
        if item is not None and (name, item) not in CLAIMS:
            return f"no claim of {name} in the ledger has the label {item}"
        return None
    return None if exists(token) else f"cumulant has no {token}"


@pytest.mark.parametrize("heading", sorted({row[0] for row in ROWS}))
def test_whatever_is_named_exists(heading):
    wrong = [
        f"{label}: {reason}"
        for where, label, text in ROWS
        if where == heading
        for token in re.findall(r"`([^`]+)`", text)
        if (reason := what_is_wrong(token))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_row_is_shown_by_something_or_says_why_not():
    for heading, label, text in ROWS:
        tokens = re.findall(r"`([^`]+)`", text)
        shown = [token for token in tokens if ".py::" in token or EXPERIMENT.fullmatch(token)]
        said = "Not done: " in text and len(text.split()) >= 10
        assert shown or said, f"{heading}, row {label}"


def test_numbered_rows_have_no_gap_and_no_row_stands_twice():
    for heading in {row[0] for row in ROWS}:
        labels = [label for where, label, _ in ROWS if where == heading]
        assert len(set(labels)) == len(labels), heading
        numbers = [int(label) for label in labels if label.isdigit()]
        assert numbers == list(range(1, len(numbers) + 1)), heading


@pytest.mark.parametrize(
    "token",
    [
        "particles/test_engine.py::test_nothing", "particles/test_nothing.py::test_it", "vsmc-nothing",
        "vsmc-demo (Figure 9.9)", "particles.nothing", "particles.ParticleResult.nothing", "nothing",
    ],
)  # fmt: skip
def test_what_does_not_exist_is_found_out(token):
    assert what_is_wrong(token)
