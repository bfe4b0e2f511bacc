"""The certificate that the guide shows is the one that its code prints."""

import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "glm.md"


def test_the_guide_prints_what_it_shows(capsys):
    text = GUIDE.read_text()
    source, shown = (
        re.search(rf"^```{kind}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL).group(1)
        for kind in ("python", "text")
    )
    exec(source, {})
    assert capsys.readouterr().out == shown
