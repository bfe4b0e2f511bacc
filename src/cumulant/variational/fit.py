"""`fit`: the Gaussian nearest to a target in ``KL(q | p)``, how far it can be from the best one, and a verdict."""

import dataclasses
import math
from typing import Any

import numpy as np

from cumulant import checks, optim, randomness
from cumulant.certificates import Certificate, Interval, Subject
from cumulant.errors import CertificateError
from cumulant.sampling import Target
from cumulant.variational.diagnostics import diagnose, judge
from cumulant.variational.gaussians import Diagonal, FullRank, Gaussian, Isotropic
from cumulant.variational.low_rank import LowRank
from cumulant.variational.regression import NaturalGradient, RegressionELBO, certify_regression
from cumulant.variational.result import GaussianFit
from cumulant.variational.stochastic import ESTIMATORS, stochastic_steps
from cumulant.variational.targets import Regression

_FAMILIES = {"full": FullRank, "diagonal": Diagonal, "isotropic": Isotropic, "low_rank": LowRank}
_METHODS = ("auto", "quadrature", "prox", "proj")


def fit(
    target: Target,
    family: str | Gaussian = "full",
    *,
    method: str | optim.RobbinsMonro = "auto",
    estimator: Any = None,
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
    family : str or Gaussian
        ``"full"`` covariance, ``"diagonal"``, ``"isotropic"``, or ``"low_rank"``: a diagonal plus rank 5;
        ``LowRank(dim, rank)`` for another rank.
    method : str or RobbinsMonro
        ``"quadrature"``: natural gradient steps with exact expectations, for regressions and full covariances.
        ``"prox"``: proximal stochastic gradient steps in the coordinates of Laplace's approximation, for any target
        (Domke, Garrigos and Gower 2023, algorithm 1). ``"proj"``: projected steps, full covariances by their symmetric
        factor (algorithms 2 and 3). ``"auto"``: the first that is possible. A solver with its own schedule, average and
        estimator is used as it is, in those coordinates.
    estimator : str or estimator
        ``"energy"`` for proximal steps; ``"entropy"`` or ``"stl"`` (the default) for projected ones; or an object such
        as ``EnergyGradient(batch=8, rows=100)``, which takes 100 rows of the data for each draw.
    accuracy : float
        How large ``KL(q | p) - min KL`` may be, in nats: certified by quadrature, estimated elsewhere.
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
    checks.instance("target", target, Target, "a Target, as Target(log_density, dim) makes")
    checks.positive("accuracy", accuracy)
    if start is not None and checks.real_array("start", start).shape not in ((), (target.dim,)):
        raise ValueError(f"start must have shape ({target.dim},); got {np.shape(start)}")
    gaussian = _family(family, target.dim)
    exact = isinstance(target, Regression) and isinstance(gaussian, FullRank)
    if not isinstance(method, optim.RobbinsMonro) and (not isinstance(method, str) or method not in _METHODS):
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, or a solver; got {method!r}")
    if method == "quadrature" and not exact:
        raise ValueError("method='quadrature' is for regressions (logistic_regression and so on) and family='full'")
    settings: dict[str, Any] = {"time_limit": time_limit, "progress": progress}
    if exact and method in ("auto", "quadrature") and estimator is None:
        return _by_quadrature(target, accuracy, start, max_steps, settings, rng)
    route, gradients = _route(gaussian, method, estimator)
    if isinstance(gaussian, FullRank):
        gaussian = FullRank(target.dim, "symmetric" if route == "proj" else "triangular")
    solver = method if isinstance(method, optim.RobbinsMonro) else None
    found = stochastic_steps(target, gaussian, route, gradients, solver, accuracy, start, max_steps, settings, rng)
    certificate, subject, refusal = _certified(target, found.gaussian, found.w)
    return _finished(
        target, found.gaussian, found.w, certificate, subject, refusal, None, found.result,
        {"prox": "proximal steps", "proj": "projected steps"}[route], rng,
        excess=math.nan if certificate else found.excess, smoothness=found.smoothness,
    )  # fmt: skip


def _family(family: Any, dim: int) -> Gaussian:
    if isinstance(family, Gaussian):
        if family.dim != dim:
            raise ValueError(f"family must have the {dim} coordinates of the target; got {family}")
        return family
    if not isinstance(family, str) or family not in _FAMILIES:
        raise ValueError(f"family must be one of {', '.join(_FAMILIES)}, or a Gaussian; got {family!r}")
    return LowRank(dim, min(5, dim)) if family == "low_rank" else _FAMILIES[family](dim)


def _route(gaussian: Gaussian, method: Any, estimator: Any) -> tuple[str, Any]:
    """``"prox"`` or ``"proj"`` and the estimator, or why not."""
    if isinstance(method, optim.RobbinsMonro):
        if estimator is not None:
            raise ValueError("a solver has its own estimator: give method or estimator, not both")
        estimator = method.gradients
        method = "prox" if getattr(estimator, "estimates", "") == "grad l" else "proj"
    low = isinstance(gaussian, LowRank)
    if method == "prox" and low:
        raise ValueError("method='prox' needs a proximal map, which low rank has not: use method='proj'")
    if isinstance(estimator, str) and estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, or an estimator; got {estimator!r}")
    if isinstance(estimator, str):
        estimator = ESTIMATORS[estimator]
    if method == "auto":
        energy = getattr(estimator, "estimates", "grad l") == "grad l"
        method = "proj" if low or not energy else "prox"
    if estimator is None:
        estimator = ESTIMATORS["energy" if method == "prox" else "stl"]
    if not hasattr(estimator, "estimates"):
        raise TypeError(
            f"estimator must be a name or an object such as EnergyGradient(); got {type(estimator).__name__}"
        )
    if method == "prox" and estimator.estimates != "grad l":
        raise ValueError(
            "proximal steps take the entropy into account by their proximal map: with entropy or stl gradients it "
            "would count twice; use estimator='energy' or method='proj'"
        )
    if method == "proj" and estimator.estimates == "grad l":
        raise ValueError(
            "energy gradients leave the entropy out, and projected steps do not add it: use estimator='entropy' or "
            "'stl', or method='prox'"
        )
    return method, estimator


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
    slack = problem.evaluate(result.x).value_error
    interval = Interval(-result.value - slack, -result.value + slack, -result.value)
    return _finished(
        target, problem.gaussian, np.asarray(result.x), result.certificate, result.subject, result.refusal, interval,
        result, "quadrature", rng,
    )  # fmt: skip


def _value(problem: RegressionELBO, w0: np.ndarray) -> float:
    return max(abs(float(problem.value(w0))), 1e-300)


def _modest_scale(target: Regression) -> float:
    """A scale at which scores have standard deviations of at most about one: a start that overflows nowhere."""
    X, _, P = target.data[:3]
    widest = float(np.sqrt(np.max(np.sum(X**2, axis=1), initial=1e-300)))
    return float(min(1 / widest, 1 / math.sqrt(float(np.max(np.diagonal(P))))))


def _certified(target: Target, gaussian: Gaussian, w: np.ndarray) -> tuple[Certificate | None, Subject | None, str]:
    """The gradient of a regression's objective is known exactly wherever the answer came from."""
    if isinstance(target, Regression) and isinstance(gaussian, FullRank):
        subject = Subject(RegressionELBO(target), w)
        try:
            return certify_regression(*subject), subject, ""
        except CertificateError as refusal:
            return None, None, str(refusal)
    known = "the gradient of the objective is known by sampling alone, and no certificate is computed for such fits"
    return None, None, f"no certificate: {known}; see diagnostics"


def _finished(
    target, gaussian, w, certificate, subject, refusal, interval, result, method, rng, **estimates
) -> GaussianFit:
    seed = randomness.seed(rng) if not isinstance(rng, np.random.Generator) else 0
    found = dataclasses.replace(diagnose(target, gaussian, w, seed), **estimates)
    if interval is None:
        reach = 4 * found.elbo_error if math.isfinite(found.elbo_error) else math.inf
        interval = Interval(found.elbo - reach, found.elbo + reach, found.elbo)
    elif interval.estimate is not None:
        found = dataclasses.replace(found, elbo=interval.estimate)
    verdict, reasons = judge(target, found, result.status)
    return GaussianFit(
        target, gaussian, w, found.elbo, interval, certificate, refusal, found, verdict, reasons,
        result.status, result.work, result.seconds, method, result.trace, subject if certificate is not None else None,
    )  # fmt: skip
