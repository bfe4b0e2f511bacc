"""Bounds on the expected divergence that hold for every ``n``, each with the conditions under which it is a theorem.

With an exact risk in `exact`, what these are good for is the order of growth they show, and the formulas one can
reason with. All are evaluated with ``a = n0 r`` (``r = mu0/mu*``), so that they stay finite as the prior strength
``n0`` goes to zero.

References
----------
Le Priol (2021), thesis, chapter 5 and appendix 5.A; corrections where noted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.families.risk._arguments import grid, integers


@dataclass(frozen=True)
class Bound:
    """A bound on a grid of arguments.

    `value` is the bound (infinite where the theorem says nothing), `valid` whether its conditions hold, `theorem` its
    name and conditions.
    """

    value: Any
    valid: Any
    theorem: str


def _upper(value, valid, theorem) -> Bound:
    return Bound(np.where(valid, value, np.inf)[()], np.asarray(valid)[()], theorem)


def bound_mle_gamma(n: Any, alpha: Any) -> Bound:
    """``1/(2n) + 1/(n (n alpha - 1))`` bounds `risk_mle_gamma` from above for ``n alpha > 1`` (5.36).

    >>> bound_mle_gamma([1, 2, 10], 1.0).value.round(6)
    array([     inf, 0.75    , 0.061111])
    """
    n, alpha = grid(positive=("alpha",), n=n, alpha=alpha)
    valid = n * alpha > 1
    m = np.where(valid, n, 2 / alpha)
    return _upper(1 / (2 * m) + 1 / (m * (m * alpha - 1)), valid, "Le Priol (2021), theorem 5.4.1, (5.36): n alpha > 1")


def bound_mle_variance(n: Any) -> Bound:
    """``1/(2n) + 2/(n (n - 2))`` for the variance of a normal, ``n >= 3``: (5.18), that is (5.36) with ``alpha = 1/2``.

    >>> bound_mle_variance([2, 3, 100]).value.round(6)
    array([     inf, 0.833333, 0.005204])
    """
    bound = bound_mle_gamma(n, 0.5)
    return Bound(bound.value, bound.valid, "Le Priol (2021), theorem 5.4.1, (5.18): n >= 3")


def lower_bound_mle_gamma(n: Any, alpha: Any, *, sharp: bool = True) -> Bound:
    """Below `risk_mle_gamma`: ``1/(2n) + 1/(n (n alpha - 1)) - 1/(12 alpha n^2)``, infinite where the risk is.

    From ``digamma(x) - log x >= -1/(2x) - 1/(12 x^2)``; it is within ``1/(12 alpha n^2)`` of the upper bound (5.36).
    With ``sharp=False``, the weaker ``1/(n (n alpha - 1))`` of (5.52).

    >>> lower_bound_mle_gamma([2, 3, 10], 0.5).value.round(6)
    array([     inf, 0.814815, 0.073333])
    """
    n, alpha = grid(positive=("alpha",), n=n, alpha=alpha)
    finite = n * alpha > 1
    m = np.where(finite, n, 2 / alpha)
    tail = 1 / (m * (m * alpha - 1))
    value = tail + 1 / (2 * m) - 1 / (12 * alpha * m**2) if sharp else tail
    theorem = "digamma(x) - log x >= -1/(2x) - 1/(12 x^2) in (5.49)" if sharp else "Le Priol (2021), (5.52)"
    return Bound(np.where(finite, value, np.inf)[()], np.ones(n.shape, dtype=bool)[()], theorem)


def bound_mle_covariance(n: Any, d: Any, *, sharp: bool = True) -> Bound:
    """``p/(2n) + p c/(n (n - d - 1))`` bounds `risk_mle_covariance` for ``n >= d + 2``, ``p = d(d+1)/2``.

    ``c = d + 1 + 1/(2d)`` (5.70), or ``d + 2`` (5.53) with ``sharp=False``.

    >>> bound_mle_covariance([3, 4, 15], 2).value.round(6)
    array([     inf, 2.8125  , 0.154167])
    """
    n, d = integers(n=n, d=d)
    valid = n > d + 1
    m = np.where(valid, n, d + 2)
    p = d * (d + 1) / 2
    constant = d + 1 + 1 / (2 * d) if sharp else d + 2
    theorem = f"Le Priol (2021), theorem 5.A.2, ({'5.70' if sharp else '5.53'}): n >= d + 2"
    return _upper(p / (2 * m) + p * constant / (m * (m - d - 1)), valid, theorem)


def bound_map_variance(n: Any, n0: Any, ratio: Any) -> Bound:
    """The bound (5.19) on the symmetrised risk, hence on the risk, of the posterior mode of a normal variance.

    ``1/(2(n0+1)) + b`` for ``n = 1`` and ``1/(n0 r + n - 2) + b`` for ``n >= 2``, with
    ``b = (n0 + 1 - n0 r)^2 / (2 (n0 r + (n-2)_+) (n0 + n))``; at ``n = 0`` the exact symmetrised divergence to the
    prior mean. Asymptotically twice the risk. `bound_map_gamma` is never worse.

    >>> bound_map_variance([1, 5, 100], 1.0, 2.0).value.round(6)
    array([0.25, 0.2 , 0.01])
    """
    (n,) = integers(n=n)
    n, n0, ratio = grid(n=n, n0=n0, ratio=ratio)
    a = n0 * ratio
    later = np.maximum(n - 2, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = (n0 + 1 - a) ** 2 / (2 * (a + later) * (n0 + n))
        value = np.where(n == 1, 1 / (2 * (n0 + 1)), 1 / (a + later)) + bias
        value = np.where(n == 0, 0.5 * (ratio - 1) ** 2 / ratio, value)
    # With a = 0 the prior does not keep mu_n away from 0: up to two observations give no finite bound.
    valid = np.where(n == 0, a > 0, a + later > 0)
    return _upper(value, valid, "Le Priol (2021), theorem 5.4.2, (5.19): n0 r > 0, or n >= 3")


def bound_map_gamma_weak_prior(n: Any, n0: Any, ratio: Any, alpha: Any) -> Bound:
    """The bound (5.98) on the symmetrised risk, hence on `risk_map_gamma`, for ``n alpha >= 1``.

    ``1/(n0+n) + alpha (n0 r - n0 - 1/alpha)^2 / ((n0+n) (n0 r + n - 1/alpha))``.

    >>> bound_map_gamma_weak_prior([5, 10], 1.0, 1.0, 0.5).value.round(6)
    array([0.25    , 0.111111])
    """
    n, n0, ratio, alpha = grid(positive=("alpha",), n=n, n0=n0, ratio=ratio, alpha=alpha)
    a = n0 * ratio
    valid = (n * alpha >= 1) & (a + n - 1 / alpha > 0)
    rest = np.where(valid, a + n - 1 / alpha, 1.0)
    total = np.where(valid, n0 + n, 1.0)
    value = 1 / total + alpha * (a - n0 - 1 / alpha) ** 2 / (total * rest)
    return _upper(value, valid, "Le Priol (2021), theorem 5.A.5, (5.98): n alpha >= 1")


def bound_map_gamma_strong_prior(n: Any, n0: Any, ratio: Any, alpha: Any) -> Bound:
    """The bound (5.99), corrected, on the symmetrised risk, hence on `risk_map_gamma`: any ``n > 0``, ``n0 r > 0``.

    ``alpha [ (n0+n)/(a+n+1/alpha) (1 + 1/(a alpha)) - 1 + (a - n0)/(n0+n) ]`` with ``a = n0 r``. The factor ``alpha``
    is missing in print, and without it the bound is violated for ``alpha = 2``, ``n = n0 = r = 1``.

    >>> float(bound_map_gamma_strong_prior(1, 1, 1, 2.0).value.round(6))
    0.4
    """
    n, n0, ratio, alpha = grid(positive=("alpha",), n=n, n0=n0, ratio=ratio, alpha=alpha)
    a = n0 * ratio
    valid = (n > 0) & (a > 0)
    prior, total = np.where(valid, a, 1.0), np.where(valid, n0 + n, 1.0)
    value = alpha * (total / (prior + n + 1 / alpha) * (1 + 1 / (prior * alpha)) - 1 + (prior - n0) / total)
    return _upper(value, valid, "Le Priol (2021), theorem 5.A.5, (5.99) with its factor alpha: n > 0, n0 r > 0")


def bound_map_gamma(n: Any, n0: Any, ratio: Any, alpha: Any) -> Bound:
    """The smaller of (5.98) and (5.99): an upper bound on the symmetrised risk, hence on `risk_map_gamma`.

    (5.99) is the smaller one exactly where ``n0 r > n - 1/alpha``, a prior stronger than the data.

    >>> bound_map_gamma([1, 5, 10], 1.0, 1.0, 0.5).value.round(6)
    array([0.25    , 0.25    , 0.111111])
    """
    weak = bound_map_gamma_weak_prior(n, n0, ratio, alpha)
    strong = bound_map_gamma_strong_prior(n, n0, ratio, alpha)
    theorem = "Le Priol (2021), theorem 5.A.5: the smaller of (5.98) and (5.99), the latter with its factor alpha"
    return Bound(np.minimum(weak.value, strong.value), weak.valid | strong.valid, theorem)


def bound_inverse(n: Any, n0: Any, ratio: Any, alpha: Any) -> Bound:
    """``E[mu*/mu_n] <= (n0 + n) / (n0 r + (n - 1/alpha)_+)`` (lemma 5.A.3, 5.72).

    >>> float(bound_inverse(5, 1, 2, 0.5).value)
    1.2
    """
    n, n0, ratio, alpha = grid(positive=("alpha",), n=n, n0=n0, ratio=ratio, alpha=alpha)
    rest = n0 * ratio + np.maximum(n - 1 / alpha, 0.0)
    valid = rest > 0
    return _upper((n0 + n) / np.where(valid, rest, 1.0), valid, "Le Priol (2021), lemma 5.A.3, (5.72)")


def lower_bound_inverse(n: Any, n0: Any, ratio: Any) -> Bound:
    """``E[mu*/mu_n] >= mu*/E mu_n = (n0 + n) / (n0 r + n)``: Jensen's inequality (lemma 5.A.3).

    >>> float(lower_bound_inverse(5, 1, 2).value.round(6))
    0.857143
    """
    n, n0, ratio = grid(n=n, n0=n0, ratio=ratio)
    rest = n0 * ratio + n
    some = rest > 0
    value = np.where(some, (n0 + n) / np.where(some, rest, 1.0), np.inf)
    return Bound(value[()], np.ones(n.shape, dtype=bool)[()], "Le Priol (2021), lemma 5.A.3: Jensen")


def strong_prior_bound_inverse(n: Any, n0: Any, ratio: Any, alpha: Any) -> Bound:
    """``E[mu*/mu_n] <= (n0+n)/(a+n+1/alpha) (1 + 1/(a alpha))``, ``a = n0 r > 0`` (5.83): better for a strong prior.

    >>> float(strong_prior_bound_inverse(1, 10, 1, 0.5).value.round(6))
    1.015385
    """
    n, n0, ratio, alpha = grid(positive=("alpha",), n=n, n0=n0, ratio=ratio, alpha=alpha)
    a = n0 * ratio
    valid = a > 0
    prior = np.where(valid, a, 1.0)
    value = (n0 + n) / (prior + n + 1 / alpha) * (1 + 1 / (prior * alpha))
    return _upper(value, valid, "Le Priol (2021), (5.83): n0 r > 0")


def bound_smooth(n: Any, n0: Any, smoothness: Any, variance: Any, distance: Any) -> Bound:
    """``L (n V + n0^2 D^2) / (2 (n + n0)^2)`` where ``A*`` is ``L``-smooth: ``L`` times the quadratic case (5.27-5.29).

    ``V = E |T - mu*|^2`` and ``D = |mu* - mu0|`` in the norm in which ``A*`` is smooth.

    >>> float(bound_smooth(3, 1, 1.0, 2.0, 1.0).value)
    0.21875
    """
    n, n0, smoothness, variance, distance = grid(
        n=n, n0=n0, smoothness=smoothness, variance=variance, distance=distance
    )
    valid = n + n0 > 0
    total = np.where(valid, n + n0, 1.0)
    value = 0.5 * smoothness * (n * variance + (n0 * distance) ** 2) / total**2
    return _upper(value, valid, "Le Priol (2021), section 5.5: A* is L-smooth")


def bound_lipschitz(lipschitz: Any, distance: Any) -> Bound:
    """``KL(p_mu* || p_mu) <= 2 L |mu* - mu|`` where ``A*`` is ``L``-Lipschitz (5.27-5.29).

    >>> float(bound_lipschitz(3.0, 0.1).value.round(6))
    0.6
    """
    lipschitz, distance = grid(lipschitz=lipschitz, distance=distance)
    theorem = "Le Priol (2021), section 5.5: A* is L-Lipschitz"
    return Bound((2 * lipschitz * distance)[()], np.ones(distance.shape, dtype=bool)[()], theorem)


def bound_variance_term(n: Any, n0: Any, constant: Any) -> Bound:
    """``n C / (n0 + n)^2``: the variance part of the risk, where (5.31) holds in expectation with the constant ``C``.

    The variance is at most ``E S_{A*}(mu_n, E mu_n) = n E S_{A*}(mu_n, E_n mu_n)``, ``E_n`` over the last observation
    alone, and that last step has size ``1/(n0 + n)`` (5.120, 5.128).

    >>> float(bound_variance_term(10, 0, 1.0).value)
    0.1
    """
    n, n0, constant = grid(n=n, n0=n0, constant=constant)
    valid = n + n0 > 0
    return _upper(n * constant / np.where(valid, n + n0, 1.0) ** 2, valid, "Le Priol (2021), (5.128) with (5.31)")
