"""Principal axes of a cloud of points, and the level sets of the least-squares problem it makes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.optim.problems.base import array


@dataclass(frozen=True)
class PrincipalAxes:
    """The axes of a cloud: ``covariance = axes^T diag(variances) axes``, largest variance first.

    Pearson (1901); the links with least squares are in Peyré (2021, section 3.4).

    Attributes
    ----------
    axes : array (m, p)
        Orthonormal rows; of each the entry of largest absolute value is positive.
    variances : array (m,)
        Of the points along the axes.
    half_widths : array (m,)
        Of the ellipsoid drawn: ``sqrt(variance)`` for the cloud, ``1 / sqrt(variance)`` for the level set.
    scores : array (n, m)
        The coordinates of the centred points.
    mean : array (p,)
        What was subtracted.

    Examples
    --------
    >>> axes = pca([[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]], 1)
    >>> axes.project([[3.0, 1.0]]).round(12)
    array([[2., 2.]])
    """

    axes: np.ndarray
    variances: np.ndarray
    half_widths: np.ndarray
    scores: np.ndarray
    mean: np.ndarray

    def project(self, points: Any) -> np.ndarray:
        """The nearest points of the plane through the mean that the axes span."""
        moved = np.asarray(points, dtype=np.float64) - self.mean
        return self.mean + moved @ self.axes.T @ self.axes


def pca(A: Any, m: int | None = None) -> PrincipalAxes:
    """The first `m` principal axes of the rows of ``A``, from the singular values of the centred matrix.

    The covariance is ``C / n``, ``C = (A - mean)^T (A - mean)``; ``C / n`` is also the Hessian of the mean squared
    error of a regression on the centred columns. So the condition number of gradient descent on it is the ratio of the
    extreme variances, and its level sets have the same axes with inverse widths: `level_axes`.

    Pearson (1901); Peyré (2021, section 3.4, figure 7).

    Examples
    --------
    >>> axes = pca([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0]])
    >>> axes.variances.round(8), axes.half_widths.round(8)
    (array([11.65532587,  0.03217413]), array([3.41398973, 0.17937149]))
    """
    points = np.asarray(array(A, "A", 2), dtype=np.float64)
    n, p = points.shape
    if n == 0 or p == 0:
        raise ValueError(f"A must not be empty; got shape {points.shape}")
    kept = p if m is None else m
    if not 1 <= kept <= p:
        raise ValueError(f"m, the number of axes, must be between 1 and {p}; got {m}")
    mean = points.mean(axis=0)
    _, s, Vt = np.linalg.svd(points - mean, full_matrices=n < p)
    variances = np.zeros(p)
    variances[: s.size] = s**2 / n
    signs = np.sign(Vt[np.arange(p), np.argmax(np.abs(Vt), axis=1)])
    axes, variances = (signs[:, None] * Vt)[:kept], variances[:kept]
    return PrincipalAxes(axes, variances, np.sqrt(variances), (points - mean) @ axes.T, mean)


def level_axes(A: Any) -> PrincipalAxes:
    """The axes of the level set ``{<C x, x> / n <= 1}`` of least squares on the centred columns of ``A``.

    Those of the cloud, with half-widths ``1 / sqrt(variance)``: long where the cloud is thin, infinite where it is
    flat.

    Peyré (2021, section 3.4, figure 7).

    >>> level_axes([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0]]).half_widths.round(8)
    array([0.29291242, 5.57502188])
    """
    cloud = pca(A)
    with np.errstate(divide="ignore"):
        widths = 1 / cloud.half_widths
    return PrincipalAxes(cloud.axes, cloud.variances, widths, cloud.scores, cloud.mean)
