"""What a variational fit returns: a Gaussian, how far it can be from the best one, and what draws say about it."""

import dataclasses
import math
import os
from typing import Any, Literal

import numpy as np

from cumulant import files, randomness
from cumulant.certificates import Certificate, Interval, Subject
from cumulant.optim import Trace
from cumulant.sampling import ConstrainedTarget, Draws, Target
from cumulant.variational.gaussians import FullRank, Gaussian

Verdict = Literal["trust", "check", "do not trust"]
_DENSE = 5000  # coordinates up to which a covariance matrix is formed


@dataclasses.dataclass(frozen=True)
class FitDiagnostics:
    """What draws of the fit say about it: estimates, not certificates.

    Attributes
    ----------
    elbo, elbo_error : float
        The mean of ``log p - log q`` over draws of ``q``, and its standard error.
    pareto_k : float
        The shape of the tail of the importance weights ``p / q``: above 0.7 the two differ too much.
    log_evidence : float
        The importance-sampling estimate of ``log Z``, with smoothed weights.
    weighted_share : float
        The effective share of the draws under the weights ``p / q``: one where the two agree.
    mean_shift, scale_shift : float
        How far importance sampling moves a mean, in standard deviations, and the logarithm of one; the largest.
    excess : float
        An estimate of ``KL(q | p) - min KL`` from the gradient at the answer; NaN where the certificate says it.
    smoothness : float
        The largest curvature of ``-log p`` seen at draws, in the coordinates of the steps, by power iteration: the
        assumption behind their size. NaN where no steps were taken.
    """

    elbo: float
    elbo_error: float
    pareto_k: float
    log_evidence: float
    weighted_share: float
    mean_shift: float
    scale_shift: float
    excess: float = math.nan
    smoothness: float = math.nan


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianFit:
    """A Gaussian approximation of a target, and how much it is worth.

    Attributes
    ----------
    gaussian, parameters
        The family and its parameters ``w``, in the target's coordinates.
    mean, deviations, scale, covariance
        Of the Gaussian; ``covariance = scale scale^T`` with ``scale`` lower triangular.
    elbo : float
        ``E log p - E log q``: a lower bound on ``log Z``.
    elbo_interval : Interval
        Where the exact value of `elbo` is: certain for regressions, four standard errors of sampling elsewhere.
    certificate : Certificate or None
        A bound on ``KL(q | p) - min KL``; None where no theorem gives one: then `refusal` says why.
    diagnostics : FitDiagnostics
    verdict : str
        ``"trust"``, ``"check"`` or ``"do not trust"``, with `reasons`.
    status : str
        How the run ended: that of `optim.run`, or ``"accurate"`` where its test, an estimate, was passed.
    trace : Trace
        The objective, minus the ELBO, at each record; by stochastic steps an estimate from draws that are the same at
        every record. Certified bounds where there are any.
    """

    target: Target
    gaussian: Gaussian
    parameters: np.ndarray
    elbo: float
    elbo_interval: Interval
    certificate: Certificate | None
    refusal: str
    diagnostics: FitDiagnostics
    verdict: Verdict
    reasons: tuple[str, ...]
    status: str
    work: int
    seconds: float
    method: str
    trace: Trace
    subject: Subject | None = None

    @property
    def mean(self) -> np.ndarray:
        """The mean."""
        return np.asarray(self.gaussian.mean(self.parameters))

    @property
    def deviations(self) -> np.ndarray:
        """The standard deviations of the coordinates."""
        return np.asarray(self.gaussian.deviations(self.parameters))

    @property
    def covariance(self) -> np.ndarray:
        """``scale scale^T``."""
        if len(self.mean) > _DENSE:
            raise ValueError(
                f"the covariance of {len(self.mean)} coordinates is not formed: see deviations and parameters"
            )
        return np.asarray(self.gaussian.covariance(self.parameters))

    @property
    def scale(self) -> np.ndarray:
        """The lower triangular factor of the covariance."""
        if isinstance(self.gaussian, FullRank):
            return self.parameters[:, 1:]
        return np.linalg.cholesky(self.covariance)

    def sample(self, n: int = 1, rng: Any = None) -> Draws:
        """Independent draws by the names of the target's variables, constrained ones in their own spaces."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a whole number, at least 1; got {n!r}")
        u = randomness.generator(rng).normal(size=(n, self.gaussian.noise_dim))
        z = np.asarray(self.gaussian.place(self.parameters, u))
        if not isinstance(self.target, ConstrainedTarget):
            return Draws(z[None], "variational", variables=self.target.shapes)
        parts = [value.reshape(n, -1) for value in self.target.constrain(z).values()]
        return Draws(np.concatenate(parts, axis=1)[None], "variational", variables=self.target.constrained_shapes)

    def log_prob(self, z: Any) -> Any:
        """``log q(z)`` at coordinates ``(..., dim)``."""
        z = np.asarray(z, dtype=np.float64)
        if z.shape[-1:] != self.mean.shape:
            raise ValueError(f"z must have {len(self.mean)} coordinates on its last axis; got shape {z.shape}")
        found = self.gaussian.log_prob(self.parameters, z.reshape(-1, len(self.mean)))
        return np.asarray(found).reshape(z.shape[:-1])[()]

    def to_arviz(self, n: int = 1000, rng: Any = 0) -> Any:
        """Draws of the Gaussian for ArviZ."""
        return self.sample(n, rng).to_arviz()

    def save(self, path: str | os.PathLike) -> Any:
        """Write the Gaussian, the certificate and the diagnostics to a file."""
        settings = {
            "family": {"kind": type(self.gaussian).__name__, **dataclasses.asdict(self.gaussian)},
            "elbo": self.elbo,
            "interval": [self.elbo_interval.lower, self.elbo_interval.upper],
            "certificate": None if self.certificate is None else self.certificate.to_json(),
            "diagnostics": dataclasses.asdict(self.diagnostics),
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "status": self.status,
            "method": self.method,
            "variables": {name: list(shape) for name, shape in self.target.shapes.items()},
        }
        return files.save(path, "variational fit", {"mean": self.mean, "parameters": self.parameters}, settings)

    def __str__(self):
        lines = [
            f"{type(self.gaussian).__name__} Gaussian of {len(self.mean)} coordinates by {self.method}: {self.verdict}",
            *(f"  {reason}" for reason in self.reasons),
            f"  ELBO {self.elbo:.6g} in {self.elbo_interval}, Pareto k {self.diagnostics.pareto_k:.2f}, "
            f"{self.status} after {self.work} steps, {self.seconds:.2f} s",
        ]
        lines += (str(self.certificate) if self.certificate else self.refusal).splitlines()
        if self.certificate:
            lines.append("  not bounded: the distance of the best Gaussian from the target (see the verdict)")
        return "\n".join(lines)
