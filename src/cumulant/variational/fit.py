"""`fit`: the Gaussian nearest to a target in ``KL(q | p)``, how far it can be from the best one, and a verdict."""

import dataclasses
import math
import os
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from cumulant import files, optim, randomness
from cumulant.certificates import Certificate, Interval, Subject
from cumulant.optim.schedules import InverseSqrt
from cumulant.precision import float64, precise, to_numpy
from cumulant.sampling import ConstrainedTarget, Draws, Target
from cumulant.sampling.pareto import pareto_shape
from cumulant.variational.estimators import EnergyGradient, StickingTheLanding
from cumulant.variational.gaussians import Diagonal, FullRank, Gaussian
from cumulant.variational.objective import NegativeELBO, proximal_problem
from cumulant.variational.regression import NaturalGradient, RegressionELBO
from cumulant.variational.targets import Regression
from cumulant.variational.whitening import laplace, whitened

Verdict = Literal["trust", "check", "do not trust"]
_FAMILIES = {"full": FullRank, "diagonal": Diagonal}
_METHODS = ("auto", "quadrature", "prox")
_BATCH = 16  # draws a step
_CHECKS = 4000  # draws of the diagnostics
_TEST = 512  # draws of the test that ends a stochastic run


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
    """

    elbo: float
    elbo_error: float
    pareto_k: float
    log_evidence: float
    weighted_share: float
    mean_shift: float
    scale_shift: float
    excess: float = math.nan


@dataclasses.dataclass(frozen=True, eq=False)
class GaussianFit:
    """A Gaussian approximation of a target, and how much it is worth.

    Attributes
    ----------
    mean, scale, covariance
        Of the Gaussian, in the target's coordinates; ``scale`` is lower triangular, ``covariance = scale scale^T``.
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
    """

    target: Target
    gaussian: Gaussian
    mean: np.ndarray
    scale: np.ndarray
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
    subject: Subject | None = None

    @property
    def covariance(self) -> np.ndarray:
        """``scale scale^T``."""
        return self.scale @ self.scale.T

    def sample(self, n: int = 1, rng: Any = None) -> Draws:
        """Independent draws by the names of the target's variables, constrained ones in their own spaces."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a whole number, at least 1; got {n!r}")
        u = randomness.generator(rng).normal(size=(n, len(self.mean)))
        z = self.mean + u @ self.scale.T
        if not isinstance(self.target, ConstrainedTarget):
            return Draws(z[None], "variational", variables=self.target.shapes)
        parts = [value.reshape(n, -1) for value in self.target.constrain(z).values()]
        return Draws(np.concatenate(parts, axis=1)[None], "variational", variables=self.target.constrained_shapes)

    def log_prob(self, z: Any) -> Any:
        """``log q(z)`` at coordinates ``(..., dim)``."""
        z = np.asarray(z, dtype=np.float64)
        if z.shape[-1:] != self.mean.shape:
            raise ValueError(f"z must have {len(self.mean)} coordinates on its last axis; got shape {z.shape}")
        u = solve_triangular(self.scale, (z - self.mean).reshape(-1, len(self.mean)).T, lower=True)
        constant = np.sum(np.log(np.diagonal(self.scale))) + len(self.mean) / 2 * math.log(2 * math.pi)
        return (-np.sum(u**2, axis=0) / 2 - constant).reshape(z.shape[:-1])[()]

    def to_arviz(self, n: int = 1000, rng: Any = 0) -> Any:
        """Draws of the Gaussian for ArviZ."""
        return self.sample(n, rng).to_arviz()

    def save(self, path: str | os.PathLike) -> Any:
        """Write the Gaussian, the certificate and the diagnostics to a file; `load_gaussian` reads the Gaussian."""
        settings = {
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
        return files.save(path, "variational fit", {"mean": self.mean, "scale": self.scale}, settings)

    def __str__(self):
        lines = [
            f"Gaussian of {len(self.mean)} coordinates by {self.method}: {self.verdict}",
            *(f"  {reason}" for reason in self.reasons),
            f"  ELBO {self.elbo:.6g} in {self.elbo_interval}, Pareto k {self.diagnostics.pareto_k:.2f}, "
            f"{self.status} after {self.work} steps, {self.seconds:.2f} s",
        ]
        return "\n".join([*lines, *(str(self.certificate) if self.certificate else self.refusal).splitlines()])


def fit(
    target: Target,
    family: str = "full",
    *,
    method: str = "auto",
    accuracy: float = 0.01,
    start: Any = None,
    max_steps: int | None = None,
    time_limit: float | None = None,
    progress: Any = None,
    rng: Any = 0,
) -> GaussianFit:
    """The Gaussian ``q`` that minimises ``KL(q | p)``.

    Parameters
    ----------
    target : Target
        Any log-density. Regressions (`logistic_regression` and so on) are fitted by quadrature, with a certificate.
    family : str
        ``"full"`` covariance or ``"diagonal"``.
    method : str
        ``"quadrature"``: natural gradient steps with exact expectations, for regressions and full covariances.
        ``"prox"``: proximal stochastic gradient steps in the coordinates of Laplace's approximation, for any target
        (Domke, Garrigos and Gower 2023, algorithm 1). ``"auto"``: the first where it is possible.
    accuracy : float
        How large ``KL(q | p) - min KL`` may be, in nats: certified by quadrature, estimated in ``"prox"``.
    start : array, optional
        Where the search for the mode begins; zero by default.
    max_steps, time_limit, progress, rng
        As in `optim.run`.

    Examples
    --------
    >>> from cumulant import variational as vi
    >>> posterior = fit(vi.logistic_regression([[1.0], [2.0], [-1.0]], [1, 1, 1]))
    >>> posterior.verdict, posterior.mean.round(3), posterior.certificate.upper < 0.01
    ('trust', array([0.435]), True)
    """
    if not isinstance(target, Target):
        raise TypeError(f"target must be a Target, as Target(log_density, dim) makes; got {type(target).__name__}")
    if family not in _FAMILIES:
        raise ValueError(f"family must be one of {', '.join(_FAMILIES)}; got {family!r}")
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {method!r}")
    if not (math.isfinite(accuracy) and accuracy > 0):
        raise ValueError(f"accuracy must be a positive number of nats; got {accuracy}")
    exact = isinstance(target, Regression) and family == "full"
    if method == "quadrature" and not exact:
        raise ValueError("method='quadrature' is for regressions (logistic_regression and so on) and family='full'")
    settings: dict[str, Any] = {"time_limit": time_limit, "progress": progress}
    if exact and method != "prox":
        return _by_quadrature(target, accuracy, start, max_steps, settings, rng)
    return _by_proximal_steps(target, _FAMILIES[family](target.dim), accuracy, start, max_steps, settings, rng)


def _by_quadrature(target, accuracy, start, max_steps, settings, rng) -> GaussianFit:
    problem = RegressionELBO(target)
    w0 = problem.gaussian.pack(0.0 if start is None else start, _modest_scale(target))
    result = optim.run(
        NaturalGradient(),
        problem,
        w0,
        tol=accuracy / _value(problem, w0),
        max_steps=200 if max_steps is None else max_steps,
        rng=0,
        **settings,
    )
    m, C = result.x[:, 0], result.x[:, 1:]
    certificate = result.certificate
    slack = problem.evaluate(result.x).value_error
    interval = Interval(-result.value - slack, -result.value + slack, -result.value)
    return _finished(
        target, problem.gaussian, m, C, certificate, result.refusal, interval, math.nan, result, "quadrature", rng
    )


def _value(problem: RegressionELBO, w0: np.ndarray) -> float:
    return max(abs(float(problem.value(w0))), 1e-300)


def _modest_scale(target: Regression) -> float:
    """A scale at which scores have standard deviations of at most about one: a start that overflows nowhere."""
    X, _, P = target.data[:3]
    widest = float(np.sqrt(np.max(np.sum(X**2, axis=1), initial=1e-300)))
    return float(min(1 / widest, 1 / math.sqrt(float(np.max(np.diagonal(P))))))


def _by_proximal_steps(target, family, accuracy, start, max_steps, settings, rng) -> GaussianFit:
    at_mode = laplace(target, start, settings["time_limit"])
    root = (
        at_mode.root
        if isinstance(family, FullRank)
        else np.diag(1 / np.linalg.norm(np.linalg.inv(at_mode.root), axis=0))
    )
    near = whitened(target, at_mode.mode, root)
    seed = randomness.seed(rng)
    draws = np.random.default_rng([seed, 1]).normal(size=(64, target.dim))
    problem = proximal_problem(near, family, np.concatenate([draws, -draws]))
    test = _GradientTest(near, family, accuracy, np.random.default_rng([seed, 2]))
    # Near the mode the whitened target has a Hessian about one, and d + 3 times that in noise, shared by the batch.
    size = 0.5 / (1 + (target.dim + 3) / _BATCH)
    result = None
    for shorter in (1.0, 0.1, 0.01):  # where the target bends much more away from its mode
        result = optim.run(
            optim.RobbinsMonro(
                InverseSqrt(shorter * size, 100.0),
                EnergyGradient(_BATCH, antithetic=True, standardised=True),
                average=True,
                burn_in=20,
            ),
            problem,
            family.pack(0.0, 1.0),
            tol=None,
            callback=test,
            max_steps=20_000 if max_steps is None else max_steps,
            rng=seed,
            **settings,
        )
        if result.status != "diverged":
            break
    assert result is not None
    w = np.asarray(result.x)
    m, C = at_mode.mode + root @ np.asarray(family.mean(w)), root @ np.asarray(family.factor(w))
    refusal = "no certificate: the noise of stochastic gradients is not bounded for this target; see diagnostics"
    result = dataclasses.replace(result, status="accurate") if test.passed else result  # pyright: ignore[reportArgumentType]
    return _finished(target, family, m, C, None, refusal, None, test.excess(w), result, "proximal steps", rng)


class _GradientTest:
    """Ends a run where ``|grad f|^2 / 2``, in coordinates where the Hessian is about one, is below the accuracy.

    The gradient is estimated by sticking the landing at the average of the iterates; two standard errors are added.
    """

    def __init__(self, target, family, accuracy, generator):
        self.problem = NegativeELBO(target, family, np.zeros((1, family.dim)))
        self.accuracy, self.generator, self.passed = accuracy, generator, False
        self.next = 100

    def excess(self, w: np.ndarray) -> float:
        u = self.generator.normal(size=(_TEST // 2, self.problem.gaussian.dim))
        mean, error = _mean_gradient(self.problem, w, np.concatenate([u, -u]))
        return (float(mean) + 2 * float(error)) ** 2 / 2

    def __call__(self, snapshot) -> bool:
        if snapshot.step < self.next:
            return False
        self.next = 2 * snapshot.step
        self.passed = self.excess(np.asarray(snapshot.x)) <= self.accuracy
        return self.passed


@precise
def _mean_gradient(problem, w, u):
    """The norm of the mean gradient of pairs ``u, -u``, and the standard error of the mean in norm."""
    half = u.shape[0] // 2
    estimator = StickingTheLanding()
    pairs = jnp.stack([u[:half], u[half:]], axis=1)
    each = jax.vmap(lambda pair: estimator.at(problem, w, pair))(pairs)
    spread = jnp.sum(jnp.var(each, axis=0)) / half
    return jnp.linalg.norm(jnp.mean(each, axis=0)), jnp.sqrt(spread)


def _finished(target, family, m, C, certificate, refusal, interval, excess, result, method, rng) -> GaussianFit:
    generator = np.random.default_rng([randomness.seed(rng) if not isinstance(rng, np.random.Generator) else 0, 3])
    u = generator.normal(size=(_CHECKS, len(m)))
    z = m + u @ C.T
    with float64():
        log_p = np.asarray(to_numpy(jax.vmap(target.at)(jnp.asarray(z))))
    log_q = -np.sum(u**2, axis=1) / 2 - np.sum(np.log(np.diagonal(C))) - len(m) / 2 * math.log(2 * math.pi)
    ratios = np.where(np.isnan(log_p), -np.inf, log_p) - log_q
    tail = pareto_shape(ratios)
    weights = np.exp(tail.log_weights - tail.log_weights.max())
    weights /= weights.sum()
    deviations = np.sqrt(np.sum(C**2, axis=1))
    centred = (z - m) / deviations
    moved = weights @ centred
    stretched = np.log(np.sqrt(np.maximum(weights @ centred**2 - moved**2, 1e-300)))
    evidence = float(np.log(np.mean(np.exp(tail.log_weights - tail.log_weights.max()))) + ratios.max())
    error = float(np.std(ratios) / math.sqrt(_CHECKS))
    elbo = float(np.mean(ratios)) if interval is None else float(interval.estimate)
    share = float(1 / (_CHECKS * np.sum(weights**2)))
    shifts = float(np.max(np.abs(moved))), float(np.max(np.abs(stretched)))
    found = FitDiagnostics(elbo, error, tail.shape, evidence, share, *shifts, excess)
    if interval is None:
        interval = Interval(elbo - 4 * error, elbo + 4 * error, elbo)
    verdict, reasons = _verdict(target, certificate, found, result.status)
    subject = result.subject if certificate is not None else None
    return GaussianFit(
        target, family, m, C, elbo, interval, certificate, refusal, found, verdict, reasons,
        result.status, result.work, result.seconds, method, subject,
    )  # fmt: skip


def _verdict(target, certificate, found: FitDiagnostics, status: str) -> tuple[Verdict, tuple[str, ...]]:
    """Whether to believe the fit: the worst of what is known about it, and why."""
    if found.pareto_k > 0.7 and found.weighted_share < 0.9:
        return "do not trust", (
            f"Pareto k is {found.pareto_k:.2f}, above 0.7: no Gaussian of this family is near the target; transform "
            "variables that are bounded or skewed, or sample",
        )
    if status not in ("converged", "accurate"):
        return "do not trust", (f"the run ended as {status!r}: allow more steps or time",)
    moved = f"importance sampling moves a mean by {found.mean_shift:.2f} and a scale by {found.scale_shift:.2f}"
    if max(found.mean_shift, found.scale_shift) > 0.25:
        return "do not trust", (f"{moved} standard deviations: the target is not nearly Gaussian",)
    if max(found.mean_shift, found.scale_shift) > 0.1:
        return "check", (f"{moved} standard deviations: use weighted draws",)
    if not target.strong_convexity > 0:
        return "check", ("the target is not known to be log-concave: a mode far away would go unseen",)
    return "trust", (f"log-concave, Pareto k {found.pareto_k:.2f}, means within {found.mean_shift:.2f} deviations",)
