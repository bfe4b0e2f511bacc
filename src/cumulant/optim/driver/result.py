"""What a run gives back."""

from dataclasses import dataclass, field
from typing import Any, Literal

from cumulant.certificates import Certificate, Subject
from cumulant.optim.driver.trace import Trace

Status = Literal["converged", "max_steps", "time_limit", "stopped", "interrupted", "stationary", "rounding", "diverged"]

_WORDS = {
    "converged": "converged",
    "max_steps": "stopped at max_steps",
    "time_limit": "stopped by the clock",
    "stopped": "stopped by the callback",
    "interrupted": "interrupted",
    "stationary": "stationary",
    "rounding": "stopped by rounding",
    "diverged": "diverged; this is the best finite iterate it recorded",
}


@dataclass(frozen=True)
class Result:
    """The answer of `run`, and how far it can be from the truth.

    Attributes
    ----------
    x : array
        The answer: NumPy in float64 where `x0` was NumPy, a JAX array where it was one.
    value : float
        The objective there.
    trace : Trace
        One row per record.
    certificate : Certificate or None
        What is guaranteed. None where nothing can be: then `refusal` says which assumption failed.
    status : str
        ``"converged"`` (the certified relative bound is at most `tol`), ``"stationary"`` (the residual is at
        most `residual_tol`, or zero within rounding where no certificate can be given), ``"rounding"`` (no
        further step brings the certified bound down to `tol`), ``"max_steps"``, ``"time_limit"``,
        ``"stopped"`` (by the callback), ``"interrupted"`` (Ctrl-C) or ``"diverged"``.
    message : str
        Why a run ended as ``"stationary"`` or ``"rounding"``; else empty.
    refusal : str
        Why there is no certificate; empty when there is one.
    work : int
        The number of steps taken. ``run(..., max_steps=result.work, tol=None)`` takes exactly these again.
    seconds : float
        Wall-clock time, over all processes of a run that was resumed.
    scale : float
        What `tol` is relative to: ``max(|f(x)|, |f(x0)|)``, unless `run` was told otherwise.
    state : Any
        The solver's state at `x`: dual variables, for instance.
    subject : Subject
        What the certificate speaks of: ``result.certificate.verify(result.subject)`` issues it again from the data.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [1.0, 10.0])
    >>> result = optim.run(optim.GradientDescent("2/(L+mu)"), problem, [0.0, 0.0], tol=1e-6)
    >>> result.status, result.x.round(3), result.relative_bound <= 1e-6
    ('converged', array([1., 1.]), True)
    """

    x: Any
    value: float
    trace: Trace = field(repr=False)
    certificate: Certificate | None
    status: Status
    refusal: str = ""
    work: int = 0
    seconds: float = 0.0
    scale: float = 1.0
    name: str = ""
    state: Any = field(default=None, repr=False)
    subject: Subject | None = field(default=None, repr=False)
    message: str = ""

    @property
    def relative_bound(self) -> float:
        """The certified bound divided by `scale`: what `tol` is compared with. Infinity without a certificate."""
        if self.certificate is None:
            return float("inf")
        upper = self.certificate.upper
        return upper / self.scale if self.scale > 0 else (0.0 if upper <= 0 else float("inf"))

    def __str__(self):
        steps = "1 step" if self.work == 1 else f"{self.work} steps"
        lines = [
            f"{self.name}: {_WORDS[self.status]} after {steps}, {self.seconds:.2g} s",
            f"  value {self.value:.10g}",
        ]
        if self.message:
            lines.append("  " + self.message)
        if self.certificate is None:
            lines.append("  " + self.refusal)
        else:
            lines.append("  " + str(self.certificate).replace("\n", "\n  "))
            lines.append(f"  relative to {self.scale:.3g}: {self.relative_bound:.2g}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Snapshot:
    """What a callback sees at each record: where the run is, and all that its solver measured there.

    Returning True from the callback ends the run.

    >>> from cumulant import optim
    >>> def enough(snapshot):
    ...     return snapshot.value < -5.0
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [1.0, 10.0])
    >>> optim.run(optim.GradientDescent("2/(L+mu)"), problem, [0.0, 0.0], callback=enough).status
    'stopped'
    """

    step: int
    seconds: float
    value: float
    bound: float
    x: Any
    measures: dict[str, float] = field(default_factory=dict)
