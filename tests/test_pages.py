"""The built pages in a real browser: nothing is wider than the page, on a phone and on a desk.

Needs Chromium and the pages of `make docs`; skipped without either.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILT = Path(__file__).parent.parent / "docs" / "_build" / "html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--allow-file-access-from-files", "--virtual-time-budget=20000",
)  # fmt: skip

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium"),
    pytest.mark.skipif(not BUILT.is_dir(), reason=f"no pages in {BUILT}: make docs"),
]

FRAME = """<!doctype html><iframe id="frame" style="border: 0; width: %dpx; height: 900px"></iframe>
<pre id="found"></pre>
<script>
const pages = %s, frame = document.getElementById("frame"), found = {};
function next() {
  const page = pages.pop();
  if (!page) { document.getElementById("found").textContent = JSON.stringify(found); return; }
  frame.onload = () => { found[page] = frame.contentDocument.documentElement.scrollWidth; next(); };
  frame.src = page;
}
next();
</script>"""


@pytest.mark.parametrize("width", [400, 1100])
def test_nothing_is_wider_than_the_page(width, tmp_path):
    pages = [page.as_uri() for page in sorted(BUILT.glob("*.html")) if page.stem not in ("genindex", "search")]
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME % (width, json.dumps(pages)))
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", frame.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', seen, flags=re.DOTALL).group(1))
    assert len(found) == len(pages)
    assert {page: wide for page, wide in found.items() if wide > width} == {}
