"""What a page is made of: plain data, with no HTML in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cumulant.certificates import Certificate


@dataclass(frozen=True)
class Table:
    """A table of text: as many cells in each row as there are headings.

    >>> Table(("family", "parameter"), [("Poisson", 3.0)]).rows
    (('Poisson', '3.0'),)
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""

    def __post_init__(self):
        object.__setattr__(self, "headings", tuple(map(str, self.headings)))
        object.__setattr__(self, "rows", tuple(tuple(map(str, row)) for row in self.rows))
        for i, row in enumerate(self.rows):
            if len(row) != len(self.headings):
                raise ValueError(f"row {i} of a table with {len(self.headings)} headings has {len(row)} cells")


@dataclass(frozen=True)
class Section:
    """A part of a page: a title, what there is to say, tables, certificates, and pictures with their captions."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    certificates: Sequence[Certificate] = ()
    pictures: Sequence[tuple[Path, str]] = field(default=())
