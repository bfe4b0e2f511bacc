"""The Lasso in one call, with its duality gap; paths of solutions for it and for any other penalty."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.geometry.proximal import l1 as _prox_l1
from cumulant.optim.driver.result import Result
from cumulant.optim.driver.run import run
from cumulant.optim.problems.composite import Composite
from cumulant.optim.problems.least_squares import LeastSquares
from cumulant.optim.problems.penalties import L1
from cumulant.optim.protocol import Problem
from cumulant.optim.solvers.accelerated_gradient import AcceleratedProximalGradient
from cumulant.optim.solvers.proximal_gradient import ProximalGradient
from cumulant.precision import any_tracer


def soft_threshold(v: Any, amount: Any) -> Any:
    """``sign(v) max(|v| - amount, 0)``, entry by entry: the minimiser of ``(x - v)^2 / 2 + amount |x|``.

    Donoho and Johnstone (1994); Peyré (2021, section 7.4).

    >>> soft_threshold([3.0, -0.5, -2.0], 1.0)
    array([ 2.,  0., -1.])
    """
    if not any_tracer(v, amount):
        host = checks.real_array("amount", amount)
        if np.any(host < 0):
            raise DomainError(f"amount must not be negative; got {host.min()}")
        if host.ndim and host.shape != np.shape(v)[-1:]:
            raise ValueError(f"amount must be a number, or one for each entry of v; got shape {host.shape}")
    return _prox_l1(v, 1.0, amount)


def lasso(
    A: Any,
    y: Any,
    lam: float,
    *,
    x0: Any = None,
    method: Literal["fista", "ista"] = "fista",
    tol: float = 1e-8,
    max_steps: int = 100_000,
    **settings: Any,
) -> Result:
    """Minimise ``|A x - y|^2 / 2 + lam |x|_1``: scikit-learn's ``Lasso(alpha=lam / n, fit_intercept=False)``.

    Zero is the solution from ``lam = lambda_max(LeastSquares(A, y, reduction="sum")) = |A^T y|_inf`` on.

    The Lasso of Tibshirani (1996) by the methods of Beck and Teboulle (2009).

    Parameters
    ----------
    A : array or SciPy sparse matrix (n, p)
    y : array (n,)
    lam : float
        Not negative.
    x0 : array, optional
        Where to start, zero by default; the solution for a larger `lam`, say.
    method : str
        ``"fista"``: `AcceleratedProximalGradient` with restarts; ``"ista"``: `ProximalGradient`.
    tol : float
        The run stops when the certified gap is at most `tol` times the larger of the values at `x0` and at the end.
    max_steps, **settings
        For `run`.

    Returns
    -------
    Result
        Its certificate is the duality gap, or the bound from strong convexity where that is smaller.

    Examples
    --------
    >>> result = lasso([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], 1.0)
    >>> result.status, result.x.round(6), result.certificate.upper < 1e-6
    ('converged', array([0.      , 0.482143]), True)
    """
    checks.not_negative("lam", lam)
    return lasso_path(A, y, [lam], x0=x0, method=method, tol=tol, max_steps=max_steps, **settings)[0]


def lasso_path(
    A: Any, y: Any, lams: Any, *, x0: Any = None, method: Literal["fista", "ista"] = "fista", **settings: Any
) -> list[Result]:
    """The Lasso for many penalties, largest first, each started from the solution before it.

    As ``lam -> 0`` the solutions approach those of ``A x = y`` with the least ``|x|_1``, if there are any:
    ``|A x_lam - y| <= sqrt(2 lam |x|_1)`` for each of them (`rates.penalised_residual`).

    Warm starts as in Friedman, Hastie and Tibshirani (2010).

    Parameters
    ----------
    lams : array
        In any order; the results come in the same.
    x0, method, **settings
        As for `lasso`.

    Examples
    --------
    >>> path = lasso_path([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], [28.0, 10.0, 1.0])
    >>> [result.x.round(4).tolist() for result in path]
    [[0.0, 0.0], [0.0, 0.3214], [0.0, 0.4821]]
    """
    smooth = LeastSquares(A, y, reduction="sum")  # once: it keeps the singular values
    return penalised_path(smooth, L1, lams, x0=x0, method=method, **settings)


def penalised_path(
    smooth: Any,
    penalty: Callable[[float], Any],
    lams: Any,
    *,
    x0: Any = None,
    method: Literal["fista", "ista"] = "fista",
    **settings: Any,
) -> list[Result]:
    """Minimise ``f(x) + lam R(x)`` for many ``lam``, largest first, each started from the solution before it.

    ``f`` is any smooth problem and ``R`` anything with a proximal map. For least squares (``reduction="sum"``) and
    ``R >= 0``, if ``A x_0 = y`` for some ``x_0``: ``R(x_lam) <= R(x_0)`` and ``|A x_lam - y| <= sqrt(2 lam R(x_0))``,
    so that as ``lam -> 0`` the solutions approach those of ``A x = y`` with the least ``R`` (Peyré 2021, proposition 9,
    with the square root put right; `rates.penalised_residual`).

    Parameters
    ----------
    smooth : problem
        `LeastSquares`, `Logistic`, an `Objective` with its smoothness...
    penalty : callable
        ``lam R`` from ``lam``: `L1` itself, or a function such as ``lambda lam: GroupLasso(labels, lam)`` or
        ``lambda lam: ElasticNet(0.5 * lam, 0.5 * lam)``.
    lams : array
        Not negative, in any order; the results come in the same.
    x0 : array, optional
        Where the first one starts, zero by default.
    method : str
        ``"fista"``: `AcceleratedProximalGradient` with restarts; ``"ista"``: `ProximalGradient`.
    **settings
        For `run`.

    Returns
    -------
    list of Result
        Each with the certificate that its problem allows.

    Examples
    --------
    >>> from cumulant import optim
    >>> smooth = optim.LeastSquares([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]], [1.0, 1.0], reduction="sum")
    >>> path = penalised_path(smooth, lambda lam: optim.GroupLasso([0, 0, 1], lam), [1.0, 1e-3])
    >>> [float(np.linalg.norm(smooth.A @ result.x - smooth.y).round(3)) for result in path]
    [0.65, 0.001]
    """
    checks.instance("smooth", smooth, Problem, "a smooth problem of cumulant.optim")
    lams = checks.real_array("lams", lams, ndim=1)
    if np.any(lams < 0):
        raise ValueError(f"lams must not be negative; got {lams.min()}")
    checks.choice("method", method, ("fista", "ista"))
    checks.takes("penalty", penalty, "lam")
    solver = AcceleratedProximalGradient(restart=True) if method == "fista" else ProximalGradient()
    if x0 is None and smooth.shape is None:
        raise ValueError(f"x0 is needed: {type(smooth).__name__} does not know how many coordinates it has")
    x, found = np.zeros(smooth.shape) if x0 is None else x0, {}
    for i in np.argsort(-lams, kind="stable"):
        problem = Composite(smooth, penalty(float(lams[i])))
        found[i] = run(solver, problem, x, **({"tol": 1e-8, "max_steps": 100_000} | settings))
        x = found[i].x
    return [found[i] for i in range(lams.size)]
