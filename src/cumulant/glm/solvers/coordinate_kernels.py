"""Coordinate descent on the quadratic model of an objective with an l1 penalty.

The model of the losses around weights `x` is ``|r|^2 / 2`` with ``r = r_0 + X (w - x)`` in the metric of the
curvatures; `slopes` is its gradient ``q = X^T r`` in the weights `w`. Where there is an intercept it is minimised over,
which is the same as columns less their weighted means.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import soft

_FAST = {"contract", "nsz", "reassoc"}
_ACTIVE = 9  # sweeps over the weights that are not zero between two over all


@kernel(called_by="python")
def descend_gram(hessian, gradient, x, l1, penalised, sweeps, precision, step):
    """Minimise ``<gradient, d> + <d, H d>/2 + l1 |x + d|_1`` over ``d``, from `step`, in place; returns sweeps made.

    Coordinates are visited in order, those at zero only in every tenth sweep and the last. Ends when no coordinate
    moves by more than `precision` in the units of the objective (``H_jj change^2``).
    """
    p = len(x)
    image = np.zeros(p)  # H d
    for j in range(p):
        if step[j] != 0.0:
            for k in range(p):
                image[k] += step[j] * hessian[j, k]
    made, full = 0, True
    for sweep in range(sweeps):
        largest = 0.0
        for j in range(p):
            curvature = hessian[j, j]
            here = x[j] + step[j]
            if curvature <= 0.0 or not (full or here != 0.0):
                continue
            slope = gradient[j] + image[j]
            wanted = soft(here - slope / curvature, (l1 if penalised[j] else 0.0) / curvature)
            change = wanted - here
            if change != 0.0:
                step[j] += change
                row = hessian[j]
                for k in range(p):
                    image[k] += change * row[k]
                largest = max(largest, curvature * change * change)
        made += 1
        if largest <= precision:
            if full:
                break
            full = True
        else:
            full = sweep % 10 == 9
    return made


@kernel(called_by="kernels")
def model_gap(slopes, w, l1, l2, energy):
    """The duality gap of the model at `w`, with ``energy = |r|^2``, for the residual times ``s`` as dual variable:

    ``(1 - s)^2 energy / 2 + sum_j (l1 |w_j| + l2 w_j^2 / 2 + s q_j w_j + (s |q_j| - l1)_+^2 / (2 l2))``. With ``s =
    min(1, l1 / max |q|)`` the last term is zero, as it must be for ``l2 = 0``; else ``s = 1`` is tried too.
    """
    top = l1
    for j in range(len(w)):
        top = max(top, abs(slopes[j]))
    shrink = l1 / top
    penalty, product, beyond = 0.0, 0.0, 0.0
    for j in range(len(w)):
        penalty += l1 * abs(w[j]) + 0.5 * l2 * w[j] * w[j]
        product += slopes[j] * w[j]
        beyond += max(abs(slopes[j]) - l1, 0.0) ** 2
    gap = penalty + shrink * product
    if shrink < 1.0:
        gap += 0.5 * (1.0 - shrink) * (1.0 - shrink) * energy
        if l2 > 0.0:
            gap = min(gap, penalty + product + 0.5 * beyond / l2)
    return gap


@kernel(called_by="python")
def descend_model(gram, slopes, w, l1, l2, energy, enough, wanted, spare, sweeps):
    """Descend by the Gram matrix of the columns; `slopes` and `w` in place; returns sweeps made, gap and energy.

    Ends when the gap of the model, which is known after each sweep, is at most `wanted`, or nothing moves any more;
    after `spare` sweeps `enough` will do.
    """
    p, made = len(w), 0
    gap = model_gap(slopes, w, l1, l2, energy)
    while made < sweeps and gap > (wanted if made < spare else enough):
        moved = False
        for j in range(p):
            curvature = gram[j, j] + l2
            if curvature <= 0.0:
                continue
            here = w[j]
            target = soft(here - (slopes[j] + l2 * here) / curvature, l1 / curvature)
            change = target - here
            if change != 0.0:
                energy += change * (2.0 * slopes[j] + change * gram[j, j])
                w[j] = target
                row = gram[j]
                for k in range(p):
                    slopes[k] += change * row[k]
                moved = moved or abs(change) > 1e-15 * abs(target)
        made += 1
        gap = model_gap(slopes, w, l1, l2, energy)
        if not moved:
            break
    return made, gap, energy


@kernel(called_by="kernels", fastmath=_FAST)
def _product(dense, indptr, indices, values, j, weights, image):
    """``<column j, weights * image>``. Columns are `dense`, or sparse; what is None is left out by the compiler."""
    total = 0.0
    if dense is not None:
        column = dense[j]
        for i in range(len(column)):
            total += column[i] * weights[i] * image[i]
    if indices is not None:
        for e in range(indptr[j], indptr[j + 1]):
            total += values[e] * weights[indices[e]] * image[indices[e]]
    return total


@kernel(called_by="kernels")
def _add(dense, indptr, indices, values, j, amount, image):
    """Add ``amount`` times column ``j`` to `image`."""
    if dense is not None:
        column = dense[j]
        for i in range(len(column)):
            image[i] += amount * column[i]
    if indices is not None:
        for e in range(indptr[j], indptr[j + 1]):
            image[indices[e]] += amount * values[e]


@kernel(called_by="python")
def descend_columns(
    dense, indptr, indices, values, weights, sums, total, diagonal, gradient, x, l1, l2, energy, enough, wanted, spare,
    sweeps, w, image, slopes,
):  # fmt: skip
    """Descend by columns: `dense`, one after the other in memory, or sparse (CSC). The others are None.

    `w`, ``image = X (w - x)`` and `slopes` are changed in place; returns sweeps made and gap. `gradient` is the model's
    at `x`, `sums` the columns' products with `weights`, or zero without an intercept, `total` the sum of `weights`. The
    gap costs a sweep: it is computed after a sweep over all weights and some over those that are not zero, sooner
    where these change little.
    """
    p, made, gap, shift, brought = len(w), 0, np.inf, 0.0, 0.0
    for j in range(p):
        shift -= sums[j] * (w[j] - x[j]) / total
    while made < sweeps:
        for sweep in range(1 + _ACTIVE):
            brought = 0.0
            for j in range(p):
                here = w[j]
                if diagonal[j] <= 0.0 or not (sweep == 0 or here != 0.0):
                    continue
                slope = gradient[j] + shift * sums[j] + l2 * here
                slope += _product(dense, indptr, indices, values, j, weights, image)
                curvature = diagonal[j] + l2
                change = soft(here - slope / curvature, l1 / curvature) - here
                if change != 0.0:
                    w[j] = here + change
                    _add(dense, indptr, indices, values, j, change, image)
                    shift -= sums[j] * change / total
                    brought += curvature * change * change
            made += 1
            if brought <= 0.1 * (wanted if made < spare else enough):
                break
        now = energy
        for j in range(p):
            slopes[j] = gradient[j] + shift * sums[j] + _product(dense, indptr, indices, values, j, weights, image)
            now += (w[j] - x[j]) * (gradient[j] + slopes[j])
        gap = model_gap(slopes, w, l1, l2, now)
        if gap <= (wanted if made < spare else enough) or brought <= 1e-30:
            break
    return made, gap
