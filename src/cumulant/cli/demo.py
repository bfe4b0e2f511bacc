"""`cumulant demo` and `cumulant crf demo`: print a demonstration as it goes and write its page."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as Grid

from cumulant.report import Section, demo, save_page


def show(output: Path, of: Any = demo) -> None:
    """Run a demonstration, print each section when it is ready, and write ``output/index.html``.

    It is a module with ``TITLE``, ``LEAD`` and ``sections(output)``.
    """
    console, done = Console(), []
    console.print(f"[bold]{escape(of.TITLE)}[/]\n{escape(of.LEAD)}\n")
    parts = of.sections(output)
    while True:
        with console.status("fitting"):
            section = next(parts, None)
        if section is None:
            break
        _print(console, section)
        done.append(section)
    path = save_page(output / "index.html", of.TITLE, done, of.LEAD)
    console.print(f"The page, with pictures: {escape(str(path.resolve()))}", soft_wrap=True)


def _print(console: Console, section: Section) -> None:
    console.rule(f"[bold]{escape(section.title)}[/]", align="left")
    for paragraph in section.paragraphs:
        console.print(escape(paragraph) + "\n")
    for table in section.tables:
        grid = Grid(title=escape(table.caption) or None, title_justify="left", title_style="italic")
        for heading in table.headings:
            grid.add_column(escape(heading), overflow="fold")
        for row in table.rows:
            grid.add_row(*map(escape, row))
        console.print(grid)
    for certificate in section.certificates:
        console.print(Padding(escape(str(certificate)), (1, 2)), style="cyan")
    console.print()
