"""`cumulant families`: a table of the exponential families, read off the families themselves."""

import dataclasses
import inspect
import re
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_WIDE = 130  # columns of a terminal that hold the five columns of the table


class Row(NamedTuple):
    """What the table says of one family."""

    name: str
    support: str
    dim: int
    parameters: str
    cumulant: str


def rows() -> list[Row]:
    """One row for each family, in alphabetical order."""
    from cumulant.families import all_families

    described = [
        Row(type(family).__name__, family.support, family.dim, _parameters(family), cumulant_formula(family))
        for family in all_families()
    ]
    return sorted(described)


def cumulant_formula(family: Any) -> str:
    """What follows ``A(theta) =`` or ``A`` is in the docstring of the family, or of the one it is made from."""
    for kind in type(family).__mro__:
        found = re.search(r"``A(?:\(theta\))?\s*=\s*(.+?)``|``A`` is ([^.;]+)", kind.__doc__ or "", flags=re.DOTALL)
        if found:
            return " ".join((found.group(1) or found.group(2)).split())
    return ""


def _parameters(family: Any) -> str:
    """The usual parameters, and in brackets what is known beforehand: the arguments of the class."""
    unknown = [name for name in inspect.signature(family.natural).parameters if name != "self"]
    known = [field.name for field in dataclasses.fields(family) if field.name not in unknown]
    return ", ".join(unknown) + (f" ({', '.join(known)} known)" if known else "")


def show(console: Console | None = None) -> None:
    """Print the table: five columns where there is room for them, else two lines for each family."""
    console = console or Console()
    table = Table(title="Exponential families", title_justify="left")
    table.add_column("family", style="bold", no_wrap=console.width >= _WIDE, overflow="fold")
    if console.width >= _WIDE:
        table.add_column("support")
        table.add_column("dim", justify="right")
        table.add_column("parameters")
        table.add_column("A(theta)", overflow="fold")
        for row in rows():
            table.add_row(*(escape(str(cell)) for cell in row))
    else:
        table.add_column("support, parameters, cumulant function", overflow="fold")
        for row in rows():
            table.add_row(
                escape(row.name), escape(f"{row.support}; dim {row.dim}: {row.parameters}\nA = {row.cumulant}")
            )
    console.print(table)
