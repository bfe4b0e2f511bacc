"""The code in the README and in the guides runs as it stands, and the pages agree with the package."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

import cumulant
from cumulant import families
from cumulant.cli.ledger import page, read
from cumulant.experiments import catalogue

ROOT = Path(__file__).parent.parent
_RUN = runpy.run_path(str(ROOT / "docs" / "extensions" / "run_code.py"))
answers, blocks = _RUN["answers"], _RUN["blocks"]
GUIDES = [page for page in sorted((ROOT / "docs").glob("*.md")) if blocks(page.read_text())]


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.name)
def test_the_code_of_a_page_runs_and_draws_a_picture(path):
    found = list(answers(path.read_text(), str(path)))
    assert any(answer.figures for answer in found)
    noise = [answer.text for answer in found if answer.text.count("\n") > 40 or " at 0x" in answer.text]
    assert not noise


def test_the_first_screen_of_the_readme_has_code_and_the_two_commands():
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:45])
    assert "```python" in screen
    assert "make demo" in screen
    assert "make test" in screen


def test_the_readme_prints_what_it_says(capsys):
    text = (ROOT / "README.md").read_text()
    ((_, source),) = blocks(text)
    exec(source, {})
    printed = capsys.readouterr().out.splitlines()
    shown = re.search(r"^```text\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL).group(1).splitlines()
    assert [line for line in shown[1:] if line not in printed] == []  # the first line has the time it took


def test_the_guide_names_every_family():
    guide = (ROOT / "docs" / "families.md").read_text()
    missing = [type(family).__name__ for family in families.all_families() if f"`{type(family).__name__}`" not in guide]
    assert not missing


def test_the_citation_has_the_version_of_the_package():
    assert f"version: {cumulant.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_page_can_be_reached_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    listed = set(re.findall(r"^([\w/-]+)$", index, flags=re.MULTILINE))
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= listed


def test_the_ledger_has_every_experiment():
    ledger = read(ROOT / "docs" / "ledger" / "ledger.json")
    assert sorted(ledger["experiments"]) == sorted(catalogue())
    assert not [name for name, each in ledger["experiments"].items() if each["failure"]]


def test_the_page_of_the_ledger_is_made_from_its_entries():
    folder = ROOT / "docs" / "ledger"
    assert (folder / "ledger.md").read_text() == page(read(folder / "ledger.json"))


@pytest.mark.parametrize(
    "package",
    [
        "admixture",
        "causal",
        "families",
        "families.risk",
        "geometry",
        "glm",
        "graphical",
        "layers",
        "optim",
        "particles",
        "relational",
        "sampling",
        "sequences",
        "variational",
    ],
)
def test_the_reference_lists_every_public_name_under_one_task(package):
    module = importlib.import_module(f"cumulant.{package}")
    page = (ROOT / "docs" / "api" / f"{package.replace('.', '-')}.md").read_text().split("## Reference")[0]
    listed = re.findall(r"^   (\w+)$", page, flags=re.MULTILINE)
    elsewhere = {"Target"} if package == "variational" else set()  # documented in `sampling`
    assert sorted(listed) == sorted(set(module.__all__) - elsewhere)
