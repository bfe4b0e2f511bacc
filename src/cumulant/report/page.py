"""One HTML file that needs nothing else: words, tables and certificates escaped, pictures embedded."""

import base64
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path

from cumulant.files import write_atomically
from cumulant.report.section import Section, Table

_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #262626; background: #fff; max-width: 54rem;
       margin: 2rem auto 4rem; padding: 0 1.2rem; }
h1 { font-size: 1.8rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.25rem; margin-top: 2.6rem; border-top: 1px solid #ddd; padding-top: 1.2rem; }
.lead { font-size: 1.1rem; color: #555; margin-top: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; color: #555; padding-bottom: .3rem; }
th, td { text-align: left; padding: .3rem 1.1rem .3rem 0; border-bottom: 1px solid #e4e4e4; vertical-align: top; }
th { border-bottom: 2px solid #262626; }
pre { background: #f3f7fa; border-left: 3px solid #0072b2; padding: .7rem 1rem; overflow-x: auto; font-size: .85rem;
      line-height: 1.45; }
figure { margin: 1.2rem 0; }
img { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .92rem; }
"""

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(title: str, sections: Iterable[Section], lead: str = "") -> str:
    """The HTML text of a page. All text is escaped; pictures are read from their files and embedded.

    >>> "1 &lt; 2" in page("Numbers", [Section("Order", ["1 < 2"])])
    True
    """
    body = [f"<h1>{escape(title)}</h1>"]
    if lead:
        body.append(f'<p class="lead">{escape(lead)}</p>')
    for section in sections:
        body.append(f"<h2>{escape(section.title)}</h2>")
        body += [f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs]
        body += [_table(table) for table in section.tables]
        body += [f"<pre>{escape(str(certificate))}</pre>" for certificate in section.certificates]
        body += [_picture(path, caption) for path, caption in section.pictures]
    return _FRAME.format(title=escape(title), style=_STYLE, body="\n".join(body))


def save_page(path: str | os.PathLike, title: str, sections: Iterable[Section], lead: str = "") -> Path:
    """Write a page to `path`, whole or not at all; missing folders are made. Returns the path."""
    path = Path(path)
    text = page(title, sections, lead)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


def _table(table: Table) -> str:
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.headings)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'


def _picture(path: Path, caption: str) -> str:
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"a page shows pictures of the kinds {', '.join(_KINDS)}; got {path.name}")
    data = base64.b64encode(path.read_bytes()).decode()
    words = escape(caption)
    return f'<figure><img alt="{words}" src="data:{kind};base64,{data}"><figcaption>{words}</figcaption></figure>'
