"""How far means, log-partition functions and distributions move with the parameter, and what objectives say of it.

`R` bounds the statistics about some centre, ``|T(x) - c| <= R`` for every state; for `log_partition_change_bound` the
centre must be zero.
"""

from cumulant import checks


def mean_change_bound(R: float, total_variation: float) -> float:
    """``|E_q T - E_p T| <= 2 R |q - p|_TV`` (Domke 2015, lemma 17); attained by two states a diameter apart.

    >>> mean_change_bound(3.0, 0.25)
    1.5
    """
    checks.positive("R", R)
    return 2.0 * R * checks.not_negative("total_variation", total_variation)


def log_partition_change_bound(R: float, distance: float) -> float:
    """``|A(theta) - A(phi)| <= R |theta - phi|``, where ``|T(x)| <= R`` (Domke 2015, lemma 18); a limit attains it.

    >>> log_partition_change_bound(3.0, 0.5)
    1.5
    """
    checks.positive("R", R)
    return R * checks.not_negative("distance", distance)


def total_variation_bound(R: float, distance: float) -> float:
    """``|p_theta - p_phi|_TV <= R |theta - phi| / 2``, and at most 1.

    Four times less than ``2 R |theta - phi|`` (Domke 2015, theorem 19): the divergence is ``(theta - phi)^T Cov (theta
    - phi) / 2`` at a point between, at most ``R^2 |theta - phi|^2 / 2``, and Pinsker's inequality has ``sqrt(KL / 2)``.
    The constant 1/2 is attained in the limit of a small distance, by two states a diameter apart.

    >>> total_variation_bound(3.0, 0.5)
    0.75
    """
    checks.positive("R", R)
    return min(1.0, 0.5 * R * checks.not_negative("distance", distance))


def distance_from_gap(gap: float, l2: float) -> float:
    """``|theta - theta*| <= sqrt(2 gap / l2)`` where ``f(theta) - f* <= gap``, also over a convex set (Domke 2015,
    section 5).

    >>> distance_from_gap(0.5, 1.0)
    1.0
    """
    checks.positive("l2", l2)
    return (2.0 * checks.not_negative("gap", gap) / l2) ** 0.5


def gap_from_distance(distance: float, L: float, slope: float = 0.0) -> float:
    """``f(theta) - f* <= slope distance + L/2 distance^2`` where ``|theta - theta*| <= distance``.

    Domke (2015), section 5. `slope` bounds ``|grad f(theta*)|``: zero at a minimum inside the set, and only there. With
    an active constraint the printed ``L/2 distance^2`` is false.

    >>> gap_from_distance(0.5, 4.0), gap_from_distance(0.5, 4.0, slope=1.0)
    (0.5, 1.0)
    """
    checks.positive("L", L)
    distance = checks.not_negative("distance", distance)
    return checks.not_negative("slope", slope) * distance + 0.5 * L * distance**2
