"""Pages: what was found, as sections of words, tables and pictures, and one self-contained HTML file that shows them.

`demo` is the demonstration that `cumulant demo` runs.
"""

from cumulant.report.page import page, save_page
from cumulant.report.section import Section, Table

__all__ = ["Section", "Table", "page", "save_page"]
