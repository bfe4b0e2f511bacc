"""Refusals: every mathematical failure has a name of its own, and all of them are `CumulantError`.

An error that comes from a bad value is a `ValueError` as well, so that code which knows nothing of Cumulant
can catch it.
"""


class CumulantError(Exception):
    """The base of every refusal that Cumulant makes on mathematical grounds."""


class DomainError(CumulantError, ValueError):
    """A parameter, a mean or a point lies outside the set where the question makes sense."""


class NoEstimateError(CumulantError, ValueError):
    """No finite maximum-likelihood estimate exists for these data; the message says why and what to do."""


class NotConvergedError(CumulantError):
    """An iteration that must converge did not; the message gives the residual it stopped at."""


class CertificateError(CumulantError):
    """A certificate was asked for whose assumptions do not hold, or did not survive verification.

    `assumption` names the one that failed.
    """

    def __init__(self, message: str, assumption: str = ""):
        super().__init__(message)
        self.assumption = assumption


class TooWide(CumulantError):  # noqa: N818  (the word of the field: a model is too wide for exact inference)
    """Exact inference would need more memory than allowed; the message names the interval-valued call."""


class FileFormatError(CumulantError, ValueError):
    """A file is not what it should be: foreign, truncated, corrupt, or written by a newer version."""
