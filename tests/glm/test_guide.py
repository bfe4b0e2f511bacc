"""What the guides show is what their code prints."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["glm.md", "coming_from_scikit_learn.md"])
def test_the_guide_prints_what_it_shows(page, capsys):
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", (DOCS / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    names, compared = {}, 0
    for kind, block in blocks:
        if kind == "python":
            exec(block, names)
            printed = capsys.readouterr().out
        else:
            assert printed == block
            compared += 1
    assert compared
