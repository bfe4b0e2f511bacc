"""The code in the README and in the guides runs as it stands, and the pages agree with the package."""

import re
from pathlib import Path

import pytest

import cumulant
from cumulant import families
from cumulant.experiments import catalogue

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))


def blocks(path):
    """The Python blocks of a Markdown page, each with the number of its first line."""
    text = path.read_text()
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text[: match.start(1)].count("\n") + 1, match.group(1)) for match in found]


@pytest.mark.parametrize("path", [page for page in PAGES if blocks(page)], ids=lambda path: path.name)
def test_the_code_of_a_page_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, source in blocks(path):
        # Blank lines in front put the true line numbers into a traceback.
        exec(compile("\n" * (line - 1) + source, str(path), "exec"), names)


def test_the_first_screen_of_the_readme_has_code_and_the_two_commands():
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:45])
    assert "```python" in screen
    assert "make demo" in screen
    assert "make test" in screen


def test_the_readme_prints_what_it_says(capsys):
    text = (ROOT / "README.md").read_text()
    ((_, source),) = blocks(ROOT / "README.md")
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
    page = (ROOT / "docs" / "ledger.md").read_text()
    missing = [name for name in catalogue() if f"`{name}`" not in page]
    assert not missing
