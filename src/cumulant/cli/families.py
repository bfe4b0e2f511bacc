"""`cumulant families`: a table of the exponential families, read off the families themselves."""

import inspect
import re
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["Row", "rows", "show"]


class Row(NamedTuple):
    """What the table says of one family."""

    name: str
    support: str
    dim: int
    parameters: str
    cumulant: str


def rows() -> list[Row]:
    """One row for each family, in alphabetical order."""
    from cumulant import families

    described = [
        Row(repr(family), family.support, family.dim, ", ".join(_parameters(family)), cumulant_formula(family))
        for family in families.all_families()
    ]
    return sorted(described, key=lambda row: row.name)


def cumulant_formula(family: Any) -> str:
    """The right-hand side of ``A(theta) = ...`` in the docstring of the family."""
    found = re.search(r"``A\(theta\)\s*=\s*(.+?)``", inspect.getdoc(type(family)) or "", flags=re.DOTALL)
    return " ".join(found.group(1).split()) if found else ""


def _parameters(family: Any) -> list[str]:
    return [name for name in inspect.signature(family.natural).parameters if name != "self"]


def show() -> None:
    """Print the table."""
    table = Table(title="Exponential families", title_justify="left", row_styles=["", "dim"])
    table.add_column("family", style="bold", overflow="fold")
    table.add_column("support", overflow="fold")
    table.add_column("dim", justify="right")
    table.add_column("parameters", overflow="fold")
    table.add_column("A(theta)", overflow="fold")
    for row in rows():
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)
