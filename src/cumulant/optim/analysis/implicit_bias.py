"""Which solution an algorithm picks when there are many: the implicit bias of descent on ``A x = y``.

For a loss of ``A x`` that vanishes on ``{A x = y}``, gradient descent from ``x_0``, mirror descent and the mirror
flow (and so the re-parameterised flows of `flows`) converge to the point of that set nearest to ``x_0`` in the
divergence of the entropy (Gunasekar et al. 2018; Peyré 2021, section 6.4). `implicit_bias` computes it without
running them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, Subject, assume, by_construction, check, issuer, rounding
from cumulant.errors import DomainError, NotConvergedError
from cumulant.geometry import Burg, Entropy, Euclidean, Hypentropy, NegativeLog, Power, Shannon
from cumulant.geometry.projections import bregman_affine
from cumulant.optim.problems.base import array, is_concrete, problem_type, widen
from cumulant.optim.protocol import Problem


@problem_type
class Interpolation(Problem):
    """``min D(x|x0)`` over ``{x : A x = y}``: the problem that a descent from ``x0`` solves without being asked.

    It is what `ImplicitBias.certificate` is verified against.
    """

    A: Any
    y: Any
    x0: Any
    entropy: Any

    def __post_init__(self):
        if not is_concrete(self.A, self.y, self.x0):
            return
        A, y, x0 = array(self.A, "A", 2), array(self.y, "y", 1), array(self.x0, "x0", 1)
        if A.shape != (y.size, x0.size):
            raise ValueError(f"A must have shape (len(y), len(x0)); got {A.shape}, {y.shape} and {x0.shape}")
        for name, value in (("A", A), ("y", y), ("x0", x0)):
            object.__setattr__(self, name, value)

    def value(self, x):
        """``D(x|x0)``."""
        return self.entropy.divergence(x, self.x0)


@dataclass(frozen=True)
class ImplicitBias:
    """Where the descent ends.

    Attributes
    ----------
    x : array
        The limit.
    multiplier : array
        ``nu`` with ``grad psi(x) - grad psi(x0) = A^T nu``.
    residual : float
        ``|A x - y|``.
    certificate : Certificate
        On ``D(x|x0)`` less its minimum over ``{A x = y}``.
    problem : Interpolation
        What was solved.
    """

    x: np.ndarray
    multiplier: np.ndarray
    residual: float
    certificate: Certificate
    problem: Interpolation

    @property
    def subject(self) -> Subject:
        """What the certificate speaks of: ``bias.certificate.verify(bias.subject)``."""
        return Subject(self.problem, self.x)

    def __str__(self):
        return f"limit {np.array2string(self.x, threshold=8)}, |A x - y| = {self.residual:.2g}\n  " + str(
            self.certificate
        ).replace("\n", "\n  ")


def implicit_bias(A: Any, y: Any, x0: Any, entropy: Entropy) -> ImplicitBias:
    """The limit of gradient descent (Euclidean entropy) or of mirror descent on a loss of ``A x - y``, from ``x0``.

    ``argmin D(x|x0)`` over ``{A x = y}``: in closed form ``x0 + A^+ (y - A x0)`` for the Euclidean entropy, else by
    Newton's method on the dual. For a re-parameterised flow, take the entropy from `flows.equivalent_entropy`.

    The certificate is weak duality: whatever ``nu``, with ``v = grad psi(x0) + A^T nu`` and ``z = grad psi*(v)``,
    ``min D >= D(z|x0) - <nu, A z - y>``.

    Gunasekar, Lee, Soudry and Srebro (2018); Peyré (2021, section 6.4).

    Examples
    --------
    >>> bias = implicit_bias([[1.0, 2.0]], [2.0], [0.1, 0.1], Shannon())
    >>> bias.x.round(8)
    array([0.29221444, 0.85389278])
    >>> bias.certificate.upper < 1e-12
    True
    """
    problem = widen(Interpolation(A, y, x0, entropy))
    A, y, x0 = problem.A, problem.y, problem.x0
    if isinstance(entropy, Euclidean):
        inverse = np.linalg.pinv(A, rcond=max(A.shape) * np.finfo(float).eps)
        x = x0 + inverse @ (y - A @ x0)
        miss = np.linalg.norm(A @ x - y)
        if miss > 1e-8 * (np.linalg.norm(A) * np.linalg.norm(x) + np.linalg.norm(y)):
            raise NotConvergedError(f"A x = y has no solution: the nearest point has |A x - y| = {miss:.3g}")
    else:
        found = bregman_affine(entropy, x0, A, y)
        x = np.asarray(found.point)
        if not np.all(entropy.in_domain(x)) or not found.dual_residual <= 1e-6:
            raise NotConvergedError(
                f"no projection was found: dual residual {float(found.dual_residual):.2g}; a larger x0 may help"
            )
    nu = _duality(problem, x)[1]
    return ImplicitBias(x, nu, float(np.linalg.norm(A @ x - y)), certify_projection(problem, x), problem)


@issuer
def certify_projection(problem: Any, x: Any) -> Certificate:
    """The duality gap of a point ``x``: how much larger ``D(x|x0)`` can be than its minimum over ``{A x = y}``."""
    problem, x = widen(problem), np.asarray(x, dtype=np.float64)
    inside = check(np.all(problem.entropy.in_domain(x)), "x is in the domain of the entropy")
    gap, _, spread, noise = _duality(problem, x)
    check(np.isfinite(gap + noise), "the divergences are finite")
    return Certificate(
        "D(x|x0) - min {D(z|x0) : A z = y}",
        gap,
        "weak duality for Bregman projections, Rockafellar 1970",
        (
            inside,
            by_construction("the multiplier need not be exact: any gives a lower bound"),
            assume("the rounding is within the slack", "a few units in the last place of what is added up"),
        ),
        slack=noise,
        details={
            "|A x - y|": float(np.linalg.norm(problem.A @ x - problem.y)),
            "distance of grad psi(x) - grad psi(x0) to Im A^T": spread,
        },
    )


def _duality(problem: Any, x: np.ndarray) -> tuple[float, np.ndarray, float, float]:
    """The gap, the multiplier of least squares, how far from the row space, and what rounding may add."""
    entropy, A, y, x0 = problem.entropy, problem.A, problem.y, problem.x0
    moved = np.asarray(entropy.gradient(x)) - np.asarray(entropy.gradient(x0))
    if not np.all(np.isfinite(moved)):
        raise DomainError("x and x0 must be inside the domain of the entropy, off its boundary")
    nu = np.linalg.lstsq(A.T, moved, rcond=None)[0]
    spread = float(np.linalg.norm(A.T @ nu - moved))
    z = np.asarray(entropy.conjugate_gradient(np.asarray(entropy.gradient(x0)) + A.T @ nu))
    here, there = float(entropy.divergence(x, x0)), float(entropy.divergence(z, x0))
    gap = here - there + float(nu @ (A @ z - y))
    # A divergence is a difference of two values of the entropy and of a product.
    slope = np.asarray(entropy.gradient(x0))
    parts = [np.asarray(entropy.value(at)) for at in (x, z, x0)] + [slope * (x - x0), slope * (z - x0)]
    noise = rounding(here, there, *parts, np.abs(nu) @ (np.abs(A) @ np.abs(z) + np.abs(y)), terms=8 + sum(A.shape))
    return max(gap, 0.0), nu, spread, noise


@dataclass(frozen=True)
class SmallStartLimit:
    """The limit of the limits: where the descent ends as its start goes to zero.

    `objective` says in words what the point minimises over ``{A x = y}``, and `weights` with which weights.
    """

    x: np.ndarray
    objective: str
    weights: np.ndarray


def small_start_limit(A: Any, y: Any, entropy: Any, x0: Any = None) -> SmallStartLimit:
    """What `implicit_bias` tends to as its starting point goes to zero in the proportions of ``x0``.

    ==================  ====================================================================
    entropy             minimised over ``{A x = y}``
    ==================  ====================================================================
    Shannon             ``sum |log x0_i| x_i``, ``x >= 0``: an l1 norm
    Power, alpha < 1    ``sum x0_i^(alpha - 1) x_i``, ``x >= 0``; Burg: ``sum x_i / x0_i``
    Power, alpha > 1    ``sum |x_i|^alpha``, whatever ``x0``: *not* an l1 norm
    Hypentropy          ``sum log(1 / beta_i) |x_i|`` (``x0`` is not used: it is ``beta`` that goes to zero)
    Euclidean           ``sum x_i^2``, whatever ``x0``
    ==================  ====================================================================

    (Peyré 2021, section 6.4, where the l1 bias is stated for every power ``x = z^b``; it holds for ``b >= 2``, that is
    ``alpha <= 1``.) Linear programmes are solved by HiGHS; where they have several solutions this is one of them. The
    approach is slow: for Shannon the weights differ from those of the limit by a factor ``1 + O(1 / |log x0|)``.

    Examples
    --------
    >>> small_start_limit([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]], [1.0, 1.0], Hypentropy(1e-6)).x.round(6)
    array([0.      , 0.333333, 0.666667])
    """
    A = np.asarray(array(A, "A", 2), dtype=np.float64)
    y = np.asarray(array(y, "y", 1), dtype=np.float64)
    p = A.shape[1]
    if isinstance(entropy, Hypentropy):
        beta = np.broadcast_to(np.asarray(entropy.beta, dtype=np.float64), p)
        if not np.all(beta < 1):
            raise ValueError(f"beta of Hypentropy must be below one for its small limit; got {beta}")
        weights = np.log(1 / beta)
        return SmallStartLimit(_programme(A, y, weights, signed=True), "sum log(1/beta_i) |x_i|", weights)
    alpha = {Euclidean: 2.0, Shannon: 1.0, Burg: 0.0, NegativeLog: 0.0}.get(type(entropy))
    if isinstance(entropy, Power):
        alpha = entropy.alpha
    if alpha is None:
        raise TypeError(f"the small limit is known for Euclidean, Shannon, Burg, Power and Hypentropy; got {entropy!r}")
    if alpha > 1:
        return SmallStartLimit(_power_projection(A, y, alpha), f"sum |x_i|^{alpha:g}", np.ones(p))
    x0 = np.full(p, 1e-6) if x0 is None else np.asarray(array(x0, "x0", 1), dtype=np.float64)
    if x0.shape != (p,) or not np.all((x0 > 0) & (x0 < 1)):
        raise ValueError(f"x0 must have {p} entries strictly between 0 and 1; got {x0}")
    weights = np.abs(np.log(x0)) if alpha == 1 else x0 ** (alpha - 1)
    words = "sum |log x0_i| x_i" if alpha == 1 else f"sum x0_i^{alpha - 1:g} x_i"
    return SmallStartLimit(_programme(A, y, weights, signed=False), words, weights)


def _programme(A: np.ndarray, y: np.ndarray, weights: np.ndarray, *, signed: bool) -> np.ndarray:
    """``min <weights, |x|>`` over ``{A x = y}``, with ``x >= 0`` unless `signed`."""
    from scipy.optimize import linprog  # here, because it takes long to import and few need it

    weights = weights / np.max(weights)
    cost, matrix = (np.concatenate([weights, weights]), np.hstack([A, -A])) if signed else (weights, A)
    solved = linprog(cost, A_eq=matrix, b_eq=y, bounds=(0, None), method="highs")
    if solved.x is None or not solved.success:
        raise DomainError(f"A x = y has no {'' if signed else 'non-negative '}solution: {solved.message}")
    p = A.shape[1]
    return solved.x[:p] - solved.x[p:] if signed else solved.x


def _power_projection(A: np.ndarray, y: np.ndarray, alpha: float) -> np.ndarray:
    """``min sum |x|^alpha / alpha`` over ``{A x = y}`` by its smooth dual, ``max <nu, y> - sum |A^T nu|^q / q``."""
    if alpha == 2:
        return np.linalg.pinv(A) @ y
    from scipy.optimize import minimize

    q = alpha / (alpha - 1)
    # Orthonormal combinations of the constraints make the dual well conditioned and its solution unique.
    left, values, right = np.linalg.svd(A, full_matrices=False)
    kept = values > max(A.shape) * np.finfo(float).eps * values[0]
    rows, target = right[kept], (left[:, kept].T @ y) / values[kept]
    scale = np.linalg.norm(target)
    if np.linalg.norm(left[:, kept] @ (left[:, kept].T @ y) - y) > 1e-8 * np.linalg.norm(y):
        raise DomainError("A x = y has no solution")
    if scale == 0:
        return np.zeros(A.shape[1])

    def point(nu):
        v = rows.T @ nu
        return np.sign(v) * np.abs(v) ** (q - 1)

    def dual(nu):
        return np.sum(np.abs(rows.T @ nu) ** q) / q - nu @ target / scale, rows @ point(nu) - target / scale

    start = target / scale
    solved = minimize(dual, start, jac=True, method="BFGS", options={"gtol": 1e-13, "maxiter": 10_000})
    x = scale * point(solved.x)
    miss = np.linalg.norm(rows @ x - target) / scale
    if miss > 1e-7:
        raise NotConvergedError(f"the projection in the l^{alpha:g} norm stopped at a relative residual of {miss:.2g}")
    return x
