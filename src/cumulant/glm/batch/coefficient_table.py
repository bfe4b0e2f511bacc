"""The table that `GLM.summary` returns: printed as text, shown as HTML in a notebook, or taken as a data frame."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class CoefficientTable:
    """Coefficients with their errors, tests and intervals; a row for the intercept and one for each feature.

    Printing gives text, a notebook shows HTML, `to_frame` gives a `pandas.DataFrame`.

    Parameters
    ----------
    terms : tuple of str
        The names of the rows. For several classes these repeat for each class but the first.
    classes : tuple of str
        For several classes the class of each row: its coefficients are the differences from those of `reference`,
        the first class. Empty for others.
    coef, error : arrays (rows,)
        The coefficients and their standard errors, or posterior standard deviations where the fit has an l2 penalty.
    statistic, p_value : arrays (rows,) or None
        Wald's statistic ``coef / error`` and the two-sided probability of a larger one where the coefficient is zero:
        normal, or Student's t where the dispersion is estimated. None where the fit has an l2 penalty.
    lower, upper : arrays (rows,)
        The ends of intervals at the given `level`.
    facts : mapping of str to str or float
        Family, observations, degrees of freedom, dispersion, deviance.
    notes : tuple of str
        What the errors mean, and how far the coefficients are from the minimiser.

    Examples
    --------
    >>> from cumulant.glm import GLM
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 2.0, 4.0])
    >>> table = GLM("normal", l2=0.0).fit(X, y).summary(X, y)
    >>> table.terms, table.coef.round(4), table.error.round(4)
    (('(intercept)', 'x0'), array([0.9, 0.9]), array([0.495 , 0.2646]))
    """

    terms: tuple[str, ...]
    classes: tuple[str, ...]
    reference: str
    coef: np.ndarray
    error: np.ndarray
    statistic: np.ndarray | None
    p_value: np.ndarray | None
    lower: np.ndarray
    upper: np.ndarray
    level: float
    names: tuple[str, str]  # of the columns `error` and `statistic`
    facts: dict[str, str | float]
    notes: tuple[str, ...]

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns of numbers by their headings."""
        tail = 50 * (1 - self.level)
        found = {"coef": self.coef, self.names[0]: self.error}
        if self.statistic is not None and self.p_value is not None:
            found |= {self.names[1]: self.statistic, "p": self.p_value}
        return found | {f"{tail:g} %": self.lower, f"{100 - tail:g} %": self.upper}

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings, and rows of text."""
        labels = [self.classes, self.terms] if self.classes else [self.terms]
        numbers = [[f"{value:.4g}" for value in column] for column in self.columns.values()]
        headings = [*(["class", ""] if self.classes else [""]), *self.columns]
        return headings, [list(row) for row in zip(*labels, *numbers, strict=True)]

    def _facts(self) -> str:
        shown = {name: value if isinstance(value, str) else f"{value:.6g}" for name, value in self.facts.items()}
        return ", ".join(f"{name} {value}" for name, value in shown.items())

    def _remarks(self) -> list[str]:
        against = [f"coefficients are differences from those of class {self.reference}"] if self.classes else []
        return [*against, *self.notes]

    def __str__(self) -> str:
        headings, rows = self._cells()
        widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
        labels = 2 if self.classes else 1

        def line(cells):
            left = [cell.ljust(width) for cell, width in zip(cells[:labels], widths[:labels], strict=True)]
            right = [cell.rjust(width) for cell, width in zip(cells[labels:], widths[labels:], strict=True)]
            return "  ".join(left + right)

        return "\n".join([self._facts(), line(headings), *(line(row) for row in rows), *self._remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        headings, rows = self._cells()
        head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
        labels = 2 if self.classes else 1
        body = "".join(
            "<tr>"
            + "".join(f"<th>{escape(cell)}</th>" for cell in row[:labels])
            + "".join(f"<td>{escape(cell)}</td>" for cell in row[labels:])
            + "</tr>"
            for row in rows
        )
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in self._remarks())
        return (
            f"<div><table><caption>{escape(self._facts())}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"{remarks}</div>"
        )

    def to_frame(self) -> Any:
        """A `pandas.DataFrame`: the terms are its index, with the classes before them where there are several."""
        try:
            import pandas as pd
        except ImportError as missing:
            raise ImportError("to_frame needs pandas, which is not installed") from missing
        index = pd.Index(self.terms, name="term")
        if self.classes:
            index = pd.MultiIndex.from_arrays([self.classes, self.terms], names=["class", "term"])
        return pd.DataFrame(self.columns, index=index)
