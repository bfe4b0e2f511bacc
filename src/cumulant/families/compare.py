"""Several families fitted to the same data, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from cumulant.families.base import ExponentialFamily
from cumulant.families.estimate import Estimate
from cumulant.families.goodness import Goodness, goodness_of_fit
from cumulant.families.profile import Profile, profile


class Candidate(NamedTuple):
    """One family of a `Comparison`."""

    name: str
    estimate: Estimate
    weight: float
    goodness: Goodness | None

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return float(self.estimate.aic)

    @property
    def bic(self) -> float:
        """Schwarz's criterion."""
        return float(self.estimate.bic)


@dataclass(frozen=True, eq=False)
class Comparison(Sequence):
    """Families fitted to the same data, the best by Akaike's criterion first; it prints as a table.

    ``comparison[0]`` is the best `Candidate`, ``comparison["Gamma"]`` the one of that name.
    """

    candidates: tuple[Candidate, ...]

    def __len__(self):
        return len(self.candidates)

    def __getitem__(self, which: Any) -> Any:
        if not isinstance(which, str):
            return self.candidates[which]
        found = [each for each in self.candidates if each.name == which]
        if not found:
            raise KeyError(f"no family is called {which!r}: there are {', '.join(each.name for each in self)}")
        return found[0]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def rows(self) -> list[dict[str, Any]]:
        """The table as data: a dictionary for each family."""
        best, best_bic = self[0].aic, min(each.bic for each in self)
        return [
            {
                "family": each.name,
                "parameters": each.estimate.n_parameters,
                "log likelihood": float(each.estimate.log_likelihood),
                "AIC - best": each.aic - best,
                "BIC - best": each.bic - best_bic,
                "weight": each.weight,
                "distance": None if each.goodness is None else each.goodness.distance,
                "p": None if each.goodness is None else each.goodness.p_value,
            }
            for each in self
        ]

    def to_frame(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        import pandas

        return pandas.DataFrame(self.rows()).set_index("family")

    def _cells(self) -> list[tuple[str, ...]]:
        formats = {"log likelihood": ".1f", "AIC - best": ".1f", "BIC - best": ".1f", "weight": ".3f"}
        formats |= {"distance": ".3g", "p": ".3g"}
        rows = self.rows()
        shown = [name for name in rows[0] if any(row[name] is not None for row in rows)]

        def cell(name, value):
            return "-" if value is None else format(value, formats.get(name, ""))

        return [tuple(shown), *(tuple(cell(name, row[name]) for name in shown) for row in rows)]

    def __str__(self):
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in cells
        )

    __repr__ = __str__

    def _repr_html_(self):
        head, *body = self._cells()
        heading = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
        return f"<table><thead><tr>{heading}</tr></thead><tbody>{rows}</tbody></table>"


def compare(x: Any, families: Sequence[Any] | Mapping[str, Any], *, simulations: int = 0, rng: Any = 0) -> Comparison:
    """Fit several families to the same data by maximum likelihood, and rank them.

    Parameters
    ----------
    x : array (n, ...)
        The observations. Every family must be able to describe them.
    families : sequence, or mapping from names
        Families; classes whose constant is then fitted by `profile` (``NegativeBinomial``, ``WeibullKnownShape``...);
        or an `Estimate` or `Profile` of the same data.
    simulations : int
        How many data sets to simulate for the p-value of each goodness of fit. Without any, the table has the distance
        of Anderson and Darling alone, and so it has for a family whose constant was chosen from the data. Vectors have
        neither.
    rng : int or numpy.random.Generator
        Seeds the simulations and the randomised transforms of discrete families.

    Returns
    -------
    Comparison
        With the log likelihood, AIC, BIC, Akaike weight ``exp(-AIC / 2)``, normalised, and goodness of fit of each.
        Weights compare the families with each other; goodness of fit says whether the best is any good.

    Examples
    --------
    >>> from cumulant.families import Exponential, Gamma
    >>> waits = np.random.default_rng(0).gamma(3.0, 2.0, size=200)
    >>> table = compare(waits, [Exponential(), Gamma()])
    >>> table[0].name
    'Gamma'
    """
    named = families.items() if isinstance(families, Mapping) else [(None, each) for each in families]
    fits = {}
    for name, each in named:
        fit = _fitted(x, each)
        fits[_label(fit, fits) if name is None else name] = fit
    if not fits:
        raise ValueError("families must name at least one family to fit")
    kinds = {fit.family.discrete for fit in fits.values()}
    if len(kinds) > 1:
        raise ValueError("families must be all discrete or all continuous: densities and probabilities do not compare")
    counts = {float(fit.count) for fit in fits.values()}
    if len(counts) > 1:
        raise ValueError(f"families must be fitted to the same data; got estimates from {sorted(counts)} observations")
    order = sorted(fits, key=lambda name: float(fits[name].aic))
    odds = np.exp(-0.5 * np.array([float(fits[name].aic - fits[order[0]].aic) for name in order]))
    return Comparison(
        tuple(
            Candidate(name, fits[name], float(odd / odds.sum()), _goodness(fits[name], x, simulations, rng))
            for name, odd in zip(order, odds, strict=True)
        )
    )


def _label(fit: Estimate, taken: Mapping) -> str:
    """The name of the class, with what was chosen from the data; with all constants where the name is taken."""
    values = ", ".join(f"{name}={getattr(fit.family, name):.4g}" for name in fit.chosen)
    label = type(fit.family).__name__ + (f"({values})" if values else "")
    return repr(fit.family) if label in taken else label


def _fitted(x, family) -> Estimate:
    if isinstance(family, Profile):
        return family.estimate
    if isinstance(family, type) and issubclass(family, ExponentialFamily):
        return profile(family, x).estimate
    if not isinstance(family, Estimate | ExponentialFamily):
        raise TypeError(f"families must hold families, classes of them, estimates or profiles; got {family!r}")
    return family if isinstance(family, Estimate) else family.estimate(x)


def _goodness(fit: Estimate, x, simulations, rng) -> Goodness | None:
    """Of the fitted member. Simulated data sets must be fitted in the same way: under a prior, or with a constant
    chosen from the data, there is a distance and no p-value.
    """
    if fit.family.event_shape:
        return None
    if fit.prior is not None or fit.chosen:
        return goodness_of_fit(fit.family, x, fit.theta, rng=rng)
    return goodness_of_fit(fit.family, x, simulations=simulations, rng=rng)
