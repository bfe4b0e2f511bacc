"""How large the ball of `effect_advantage_ball` is on average over random models."""

from typing import Any

from scipy.special import polygamma

from cumulant import checks
from cumulant.causal.categorical_prior import concentrations


def log_partition_variance(concentration: float, size: int) -> float:
    """``Var A = psi_1(b) / K - psi_1(K b)`` of a row ``Dir(b 1_K)``, logits of mean zero.

    ``A = -mean log p``, and ``log p`` is the difference of log-gamma variates and the logarithm of their sum, whose
    covariance with their mean is ``psi_1(K b)`` exactly.

    >>> round(log_partition_variance(1.0, 20), 7), round(log_partition_variance(1 / 20, 20), 4)
    (0.0309759, 18.4317)
    """
    b, size = float(checks.positive("concentration", concentration)), checks.whole("size", size, 2)
    return float(polygamma(1, b) / size - polygamma(1, size * b))


def expected_squared_radius(K: int, prior: Any = "dense", *, method: str = "corrected") -> float:
    """The mean of ``R^2`` over `sample_reference(K, n, prior)`.

    With rows ``Dir(b)``, the first term of ``R^2`` has the mean ``psi_1(b) - K psi_1(K b)``. Under a prior symmetric in
    cause and effect (``p_X ~ Dir(K b)``, as the sparse one) the second term is known too, and the answer is

        K^2 / (K - 1) (psi_1(b) / K - psi_1(K b)),

    exactly. Otherwise the answer is the mean of the first term alone, a lower bound.

    Parameters
    ----------
    K : int
    prior : {"dense", "sparse"} or pair of float
        As in `sample_reference`.
    method : {"corrected", "document"}
        ``"document"`` is the estimate ``K psi_1(K b) + psi_1(b)`` of Le Priol (2021, appendix 4.B.3), which takes the
        log-partition and the mean of the logits as independent. They are not, and it is too large: for K = 20 it gives
        2.67 where the mean is 0.69 (dense), and 434 where it is 388 (sparse).

    Examples
    --------
    >>> round(expected_squared_radius(20, "sparse"), 2), round(expected_squared_radius(20, "dense"), 4)
    (388.04, 0.6195)
    """
    K = checks.whole("K", K, 2)
    a, b = concentrations(prior, K)
    if checks.choice("method", method, ("corrected", "document")) == "document":
        return float(K * polygamma(1, K * b) + polygamma(1, b))
    leading = K * log_partition_variance(b, K)
    symmetric = abs(a - K * b) <= 1e-12 * a
    return leading * K / (K - 1) if symmetric else leading
