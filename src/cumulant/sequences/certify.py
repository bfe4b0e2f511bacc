"""Certificates of weights: the duality gap to given marginals, and the duality gap to the weights' own marginals."""

from typing import Any

import numpy as np

from cumulant.certificates import Certificate, by_construction, issuer
from cumulant.errors import CertificateError
from cumulant.sequences.regularised import UNIT, Regularised, dot

__all__ = ["certify_gap", "certify_weights", "gap_certificate"]

_DISTRIBUTION = "the dual variables are a distribution over labellings, built from its conditional probabilities"


@issuer
def certify_gap(given: Regularised, answer: tuple[Any, Any]) -> Certificate:
    """``P(w) - P* <= P(w) - D(mu)`` for ``answer = (w, mu)``: any weights, and any numbers in the place of marginals.

    The dual is computed at the distribution that has the conditional probabilities of `mu` (weak duality, Le Priol
    2021, equation 3.11).
    """
    w, mu = given._weights(answer[0]), answer[1]
    return gap_certificate(given, w, *given.loss(w), *given.dual_terms(mu))


def gap_certificate(
    problem: Any, w: np.ndarray, loss: float, loss_slack: float, entropy: float, entropy_slack: float,
    residual: np.ndarray, errors: np.ndarray,
) -> Certificate:  # fmt: skip
    """The certificate of the duality gap from sums over all sequences: those of `Regularised.loss` and `dual_terms`."""
    n, l2 = problem.n_terms, problem.l2
    own = problem.weights_of(residual / n)
    penalty, conjugate = problem.penalty(w), 0.5 * l2 * dot(own, own)
    bound = penalty + (loss - entropy) / n + conjugate
    # soft(v)^2 / (2 l2) changes with v by its slope own, and by at most a parabola of curvature 1 / l2
    with np.errstate(over="ignore"):
        moved = (dot(np.abs(own), errors) + 0.5 * dot(errors, errors) / (l2 * n)) / n
        sizes = penalty + conjugate + (abs(loss) + entropy) / n
        slack = (loss_slack + entropy_slack) / n + moved + UNIT * 600 * sizes
    return _certificate(
        problem,
        bound,
        slack,
        "weak duality, Le Priol 2021, (3.11)",
        (by_construction(_DISTRIBUTION), by_construction("both objectives are computed from the data in float64")),
    )


@issuer
def certify_weights(given: Regularised, answer: Any) -> Certificate:
    """``P(w) - P* <= P(w) - D(mu(w))``, where ``mu(w)`` are the marginals at `w`: what weights prove on their own.

    With ``v = (1/n) sum_i [F(x_i, y_i) - E_w F(x_i, y)]`` and ``s = soft(v, l1)`` the gap is
    ``sum_j (l2 w_j - s_j)^2 / (2 l2) + l1 |w_j| - w_j (v_j - s_j)``, of which no term is negative (Fenchel and Young).
    Without an l1 penalty it is ``|grad P(w)|^2 / (2 l2)`` (strong convexity, Le Priol 2021, section 3.2.5).
    """
    w = given._weights(answer)
    n, l1, l2 = given.n_terms, given.l1, given.l2
    residual, errors = given.residual_at(w)
    v, errors = residual / n, errors / n
    clipped = np.clip(v, -l1, l1)
    s = v - clipped
    apart = l2 * w - s
    errors = errors + UNIT * 4 * (np.abs(v) + l2 * np.abs(w))
    with np.errstate(over="ignore"):
        bound = dot(apart, apart) / (2 * l2)
        slack = (dot(np.abs(apart), errors) + 0.5 * dot(errors, errors)) / l2 + UNIT * 600 * bound
        if l1:
            size = l1 * float(np.abs(w).sum())
            bound += float(np.sum(l1 * np.abs(w) - w * clipped))
            slack += UNIT * 600 * size
    return _certificate(
        given,
        bound,
        slack,
        "strong convexity, Le Priol 2021, section 3.2.5" if l1 == 0 else "the Fenchel-Young gap, Le Priol 2021, (3.11)",
        (by_construction("the marginals of the weights are computed from the data in float64"),),
    )


def _certificate(problem: Any, bound: float, slack: float, theorem: str, assumptions: tuple) -> Certificate:
    if not np.isfinite(bound + slack):
        raise CertificateError(
            "no certificate: the objective at these weights overflows, or rounding may change it by any amount",
            assumption="the objective is finite",
        )
    bound = max(bound, 0.0)
    return Certificate(
        "P(w) - P*",
        bound,
        theorem,
        assumptions,
        slack=float(slack),
        details={"|w - w*|": float(np.sqrt(2 * (bound + slack) / problem.strong_convexity))},
    )
