"""What iterations over a model come to: the fields that all of their results have."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, Subject


@dataclass(frozen=True, eq=False)
class Answer:
    """An answer about a model, and how it was come by.

    Attributes
    ----------
    model : DiscreteModel
        The model that it is about.
    trace : array
        A number for each sweep or evaluation.
    certificate : Certificate or None
        How good the answer is; None is no statement.
    """

    model: Any = field(repr=False)
    trace: np.ndarray
    certificate: Certificate | None

    @property
    def subject(self) -> Subject:
        """What the certificate is about: ``result.certificate.verify(result.subject)``."""
        return Subject(self.model, self)


@dataclass(frozen=True, eq=False)
class Approximation(Answer):
    """Approximate marginals of a model, besides what an `Answer` has.

    Attributes
    ----------
    marginals : list of arrays, or an array
        A distribution for each variable, as `DiscreteModel.marginals` gives them.
    beliefs : array
        The tables of the factors, one after the other, for the model restricted to its free variables.
    converged : bool
        Whether the iteration settled within `tol`.
    """

    marginals: Any
    beliefs: np.ndarray
    converged: bool
