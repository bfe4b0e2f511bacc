"""What stochastic dual coordinate ascent guarantees, by the way its blocks are drawn.

The problem is ``P(w) = l2/2 |w|^2 + 1/n sum_i phi_i(-A_i^T w)``, with dual ``D(alpha) = -l2/2 |w(alpha)|^2 - 1/n sum_i
phi_i*(alpha_i)`` and ``w(alpha) = 1/(l2 n) sum_i A_i alpha_i``. One update moves one block by ``step * (beta_i -
alpha_i)`` towards ``beta_i = grad phi_i(-A_i^T w)``. The constants of the theorems are

- ``R_i = max |A_i x|^2`` over ``|x| <= 1``, the *squared* radius of block i. For log-loss over labels (the norm of the
  blocks is the l1 norm) it is the largest squared length of a column, and ``2 |x_i|^2`` for multiclass features;
- the smoothness of the losses ``phi_i`` for the dual norm of that one: 1 for log-loss, a for ``a/2 (z - y)^2``;
- ``c_i = 1 + smoothness * R_i / (n l2)``, the condition number of block i (`block_conditions`);
- ``g_i``, the duality gap of block i, whose mean is ``P(w(alpha)) - D(alpha)``, and ``d_i = |beta_i - alpha_i|``.

Each theorem gives a *rate*: one update gains, in expectation, at least ``rate * mean(g)``, and therefore
``E[D* - D(alpha_k)] <= (1 - rate)^k (D* - D(alpha_0))``. They are for fixed steps; an exact line search on the block
gains at least as much in one update from the same state.

Reference: Le Priol 2021, thesis, appendices 3.D and 3.F; Shalev-Shwartz and Zhang 2013; Csiba, Qu and Richtárik 2015.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cumulant.optim.rates._constants import constants, positive, steps

# The constants of a problem


def block_conditions(squared_radii: Any, l2: float, loss_smoothness: float = 1.0) -> np.ndarray:
    """``c_i = 1 + loss_smoothness * R_i / (n l2)``: the condition number of each block, shape (n,).

    Parameters
    ----------
    squared_radii : array, shape (n,)
        ``R_i``; squared lengths.
    l2 : float
        The strength of the regulariser ``l2/2 |w|^2``.
    loss_smoothness : float
        The smoothness of every loss ``phi_i``; 1 for log-loss.

    Examples
    --------
    >>> block_conditions([28.0, 10.0, 10.0], l2=1 / 3)
    array([29., 11., 11.])
    """
    R = _blocks("squared_radii", squared_radii)
    positive(l2=l2, loss_smoothness=loss_smoothness)
    return 1 + loss_smoothness * R / (R.size * l2)


class SafeSteps(NamedTuple):
    """Three means of the steps ``1/c_i``, smallest first: ``uniform <= lipschitz_gap <= importance``.

    >>> safe_steps([1.0, 1.0])
    SafeSteps(uniform=1.0, lipschitz_gap=1.0, importance=1.0)
    """

    uniform: float
    lipschitz_gap: float
    importance: float


def safe_steps(conditions: Any) -> SafeSteps:
    """The step constants of the three schemes: ``1/max c``, ``1/sqrt(mean c^2)`` and ``1/mean c``.

    The first is the largest step that is safe for every block; the last is the harmonic mean of the safe steps of the
    blocks.

    >>> safe_steps([1.0, 7.0])
    SafeSteps(uniform=0.142857..., lipschitz_gap=0.2, importance=0.25)
    """
    c = _conditions(conditions)
    return SafeSteps(1 / float(c.max()), 1 / float(np.sqrt(np.mean(c**2))), 1 / float(c.mean()))


def nonuniformity(gaps: Any) -> float:
    """``chi^2 = mean(g^2) / mean(g)^2``, between 1 (all gaps equal) and n (all but one closed).

    By this factor drawing blocks by their gaps beats drawing them uniformly. It is ``n/k`` for k equal gaps and the
    others zero, and ``2/3 (2n + 1)/(n + 1)`` for gaps a, 2a, ..., na.

    >>> round(nonuniformity([3.0, 1.0, 0.5, 0.5]), 12)
    1.68
    """
    g = _blocks("gaps", gaps)
    if not g.max() > 0:
        raise ValueError("gaps must not all be zero: at the optimum no block is ahead of another")
    g = g / g.max()
    return float(np.mean(g**2) / np.mean(g) ** 2)


def primal_smoothness(squared_radii: Any, l2: float, loss_smoothness: float = 1.0) -> float:
    """``l2 + loss_smoothness * mean(R)``: a smoothness constant of the primal ``P``.

    >>> primal_smoothness([28.0, 10.0, 10.0], l2=1.0)
    17.0
    """
    R = _blocks("squared_radii", squared_radii)
    positive(l2=l2, loss_smoothness=loss_smoothness)
    return float(l2 + loss_smoothness * R.mean())


# What one update gains


def ascent_lower_bound(
    gap: Any,
    residual: Any,
    step: Any,
    condition: Any,
    n: int,
    loss_smoothness: float = 1.0,
    *,
    quadratic: bool = False,
) -> Any:
    """``D(alpha+) - D(alpha) >= (s g_i + s (1 - s c_i) d_i^2 / (2 loss_smoothness)) / n`` for a step ``s`` in [0, 1].

    The ascent lemma (Le Priol 2021, lemma 3.F.6), from which every rate follows. For quadratic losses it holds at
    every real step, and with equality if a block is a single number.

    Parameters
    ----------
    gap, residual, condition : float or array
        ``g_i``, ``d_i`` (not squared) and ``c_i`` of the block that moves.
    step : float or array
        The share of the way from ``alpha_i`` to ``beta_i``.
    n : int
        The number of blocks.
    loss_smoothness : float
        The smoothness of every loss ``phi_i``; 1 for log-loss.
    quadratic : bool
        Whether the losses are quadratic, so that steps outside [0, 1] are allowed.

    Examples
    --------
    >>> float(ascent_lower_bound(gap=0.5, residual=1.0, step=0.25, condition=4.0, n=10))
    0.0125
    """
    constants(gap=gap, residual=residual, condition=condition)
    positive(n=n, loss_smoothness=loss_smoothness)
    g, d, s, c = (np.asarray(v, dtype=np.float64) for v in (gap, residual, step, condition))
    if not np.all(c >= 1):
        raise ValueError(f"condition, the condition number of a block, must be at least 1; got {condition}")
    if not np.all(np.isfinite(s) if quadratic else (s >= 0) & (s <= 1)):
        raise ValueError(f"step must be {'finite' if quadratic else 'in [0, 1]'}; got {step}")
    return ((s * g + s * (1 - s * c) * d**2 / (2 * loss_smoothness)) / n)[()]


def expected_ascent_lower_bound(
    probabilities: Any,
    gaps: Any,
    residuals: Any,
    step_sizes: Any,
    conditions: Any,
    loss_smoothness: float = 1.0,
    *,
    quadratic: bool = False,
) -> float:
    """``E D(alpha+) - D(alpha) >= 1/n sum_i p_i (s_i g_i + s_i (1 - s_i c_i) d_i^2 / (2 loss_smoothness))``.

    The ascent lemma averaged over the block that is drawn (Le Priol 2021, equation 3.61); vectors over the blocks.

    >>> expected_ascent_lower_bound([0.5, 0.5], [1.0, 3.0], [1.0, 1.0], [0.25, 0.25], [4.0, 4.0])
    0.25
    """
    p, c = _blocks("probabilities", probabilities), _conditions(conditions)
    if abs(p.sum() - 1) > 1e-8:
        raise ValueError(f"probabilities must sum to one; their sum is {p.sum()}")
    gains = ascent_lower_bound(gaps, residuals, step_sizes, c, c.size, loss_smoothness, quadratic=quadratic)
    return float(p @ gains)


def lipschitz_gap_ascent(gaps: Any, conditions: Any) -> float:
    """``E D(alpha+) - D(alpha) >= 1/n sum g_i^2 / sum c_i g_i``: ``p_i`` proportional to ``g_i c_i``, steps ``1/c_i``.

    The one-step form behind `sdca_lipschitz_gap`, before the Cauchy-Schwarz inequality, hence sharper: it is at least
    ``safe_steps(c).lipschitz_gap * sqrt(nonuniformity(g)) * mean(g) / n``.

    >>> lipschitz_gap_ascent([1.0, 3.0], [4.0, 2.0])
    0.5
    """
    g, c = _blocks("gaps", gaps), _conditions(conditions)
    return float(g @ g / (c @ g) / g.size) if g.max() > 0 else 0.0


def adaptive_rate(residuals: Any, conditions: Any, probabilities: Any = None) -> float:
    """``theta = sum d_i^2 / sum_{p_i > 0} c_i d_i^2 / p_i``: one update gains at least ``theta * mean(g)``.

    With steps ``theta / p_i``, on quadratic losses; on others if moreover ``theta <= min p_i``, so that no step is
    longer than one (Csiba, Qu and Richtárik 2015; Le Priol 2021, theorem 3.F.3, where the constant is theta and not
    theta/n). Blocks with a residual must have a positive probability.

    Parameters
    ----------
    residuals : array, shape (n,)
        ``d_i = |beta_i - alpha_i|``, not squared.
    conditions : array, shape (n,)
        ``c_i``.
    probabilities : array, shape (n,), optional
        ``p_i``; by default the best, proportional to ``d_i sqrt(c_i)``, for which ``theta = sum d_i^2 / (sum d_i
        sqrt(c_i))^2``.

    Examples
    --------
    >>> adaptive_rate([1.0, 1.0], [4.0, 4.0])
    0.125
    """
    d, c = _blocks("residuals", residuals), _conditions(conditions)
    if not d.max() > 0:
        raise ValueError("residuals must not all be zero: at the optimum there is nothing to gain")
    d = d / d.max()
    if probabilities is None:
        return float(d @ d / (d @ np.sqrt(c)) ** 2)
    p = _blocks("probabilities", probabilities)
    if np.any((p == 0) & (d > 0)):
        raise ValueError(f"probabilities must be positive where the residual is; got {p} for residuals {residuals}")
    seen = d > 0
    return float(d @ d / np.sum(c[seen] * d[seen] ** 2 / p[seen]))


# Linear rates


def sdca_uniform(k: Any, conditions: Any, h0: float = 1.0) -> Any:
    """``E[D* - D_k] <= (1 - s/n)^k h0``, ``s = 1/max c``: uniform blocks, steps ``s`` (Le Priol 2021, theorem 3.F.1).

    Here ``n/s = n + loss_smoothness * max R / l2``.

    Parameters
    ----------
    k : int or array of int
        Numbers of updates, of one block each.
    conditions : array, shape (n,)
        ``c_i``, from `block_conditions`.
    h0 : float
        ``D* - D(alpha_0)``, or a bound on it, such as the duality gap at the start.

    Examples
    --------
    >>> sdca_uniform([0, 1, 10], [2.0, 5.0]).round(6)
    array([1.      , 0.9     , 0.348678])
    """
    c = _conditions(conditions)
    return _linear(k, safe_steps(c).uniform / c.size, h0)


def sdca_importance(k: Any, conditions: Any, h0: float = 1.0) -> Any:
    """``E[D* - D_k] <= (1 - s/n)^k h0``, ``s = 1/mean c``: ``p_i`` proportional to ``c_i``, steps ``1/c_i``.

    Le Priol 2021, theorem 3.F.2. Here ``n/s = n + loss_smoothness * mean R / l2``.

    >>> float(sdca_importance(1, [2.0, 6.0]))
    0.875
    """
    c = _conditions(conditions)
    return _linear(k, safe_steps(c).importance / c.size, h0)


def sdca_gap(k: Any, conditions: Any, h0: float = 1.0, chi_squared: float = 1.0) -> Any:
    """``E[D* - D_k] <= (1 - s chi^2 / n)^k h0``, ``s = 1/max c``: ``p_i`` proportional to ``g_i``, steps ``s``.

    Le Priol 2021, theorem 3.F.4. The gaps that weigh the draws must be exact at every update; gaps of the last visit,
    as a solver keeps them, carry no guarantee. `chi_squared` is a lower bound on `nonuniformity` of the gaps along
    every trajectory; 1 always is one, and gives the rate of uniform draws.

    >>> float(sdca_gap(1, [2.0, 5.0], chi_squared=1.5))
    0.85
    """
    c = _conditions(conditions)
    return _linear(k, safe_steps(c).uniform * _chi_squared(chi_squared, c.size) / c.size, h0)


def sdca_lipschitz_gap(k: Any, conditions: Any, h0: float = 1.0, chi_squared: float = 1.0) -> Any:
    """``E[D* - D_k] <= (1 - s chi / n)^k h0``, ``s = 1/sqrt(mean c^2)``: ``p_i`` as ``g_i c_i``, steps ``1/c_i``.

    Le Priol 2021, theorem 3.F.5; note ``chi`` and not its square. As in `sdca_gap` the gaps must be exact, and
    `chi_squared` a lower bound along every trajectory.

    >>> round(float(sdca_lipschitz_gap(1, [1.0, 7.0], chi_squared=1.44)), 12)
    0.88
    """
    c = _conditions(conditions)
    return _linear(k, safe_steps(c).lipschitz_gap * math.sqrt(_chi_squared(chi_squared, c.size)) / c.size, h0)


def sdca_adaptive(k: Any, theta: float, h0: float = 1.0) -> Any:
    """``E[D* - D_k] <= (1 - theta)^k h0``: ``p_i`` proportional to ``d_i sqrt(c_i)``, steps ``theta_k / p_i``.

    AdaSDCA, for quadratic losses (Csiba, Qu and Richtárik 2015; Le Priol 2021, theorem 3.F.3). `theta` is the smallest
    over the updates of ``E[theta_k mean(g)] / E[mean(g)]``, for which a lower bound on `adaptive_rate` along every
    trajectory serves.

    >>> float(sdca_adaptive(2, 0.5))
    0.25
    """
    return _linear(k, theta, h0)


def iterations_to(epsilon: Any, rate: float, h0: float = 1.0) -> Any:
    """The smallest k with ``(1 - rate)^k h0 <= epsilon``; it is at most ``ceil(log(h0/epsilon) / rate)``.

    The rates of the schemes are ``s/n`` (uniform, importance), ``s chi^2/n`` (gap), ``s chi/n`` (Lipschitz-gap) with
    the ``s`` of `safe_steps`, and ``theta`` (adaptive).

    Parameters
    ----------
    epsilon : float or array
        The dual sub-optimality to reach, in expectation.
    rate : float
        In (0, 1].
    h0 : float
        The dual sub-optimality at the start, or a bound on it.

    Examples
    --------
    >>> iterations_to([1.0, 0.1, 0.01], rate=0.1)
    array([ 0, 22, 44])
    """
    _rate(rate)
    constants(h0=h0)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    if not np.all(epsilon > 0):
        raise ValueError(f"epsilon must be positive; got {epsilon}")
    if rate == 1:
        return (h0 > epsilon).astype(np.int64)[()]
    ratio = np.maximum(h0 / epsilon, 1.0)
    return np.ceil(np.log(ratio) / -math.log1p(-rate)).astype(np.int64)[()]


# From sub-optimality to gaps and distances


def gap_from_primal(suboptimality: Any, L: float, l2: float) -> Any:
    """``P(w) - D(alpha(w)) <= L/l2 (P(w) - P*)`` with ``alpha_i(w) = grad phi_i(-A_i^T w)``.

    ``L`` is a smoothness constant of ``P``, such as `primal_smoothness`; the gap is ``|grad P(w)|^2 / (2 l2)`` (Le
    Priol 2021, appendix 3.D).

    >>> float(gap_from_primal(1e-3, L=17.0, l2=1.0))
    0.017
    """
    constants(L, suboptimality=suboptimality)
    positive(l2=l2)
    return (L / l2 * np.asarray(suboptimality, dtype=np.float64))[()]


def gap_from_dual(suboptimality: Any, conditions: Any) -> Any:
    """``P(w(alpha)) - D(alpha) <= n mean(c) (D* - D(alpha))``, where ``n mean(c) = n + loss_smoothness * mean R / l2``.

    One update with importance sampling gains at least ``mean(g) / (n mean(c))``, and cannot gain more than what is
    missing. Sharper than the same with ``max(c)``, which follows from uniform sampling (Le Priol 2021, appendix 3.D).

    >>> float(gap_from_dual(1e-3, [2.0, 5.0]))
    0.007
    """
    c = _conditions(conditions)
    constants(suboptimality=suboptimality)
    return (c.sum() * np.asarray(suboptimality, dtype=np.float64))[()]


def weights_distance(gap: Any, l2: float) -> Any:
    """``|w - w*| <= sqrt(2 gap / l2)``: how far the weights can be from the optimum, from any duality gap at ``w``.

    As ``P`` is ``l2``-strongly convex, ``l2/2 |w - w*|^2 <= P(w) - P* <= gap``.

    >>> float(weights_distance(0.02, l2=1.0))
    0.2
    """
    constants(gap=gap)
    positive(l2=l2)
    return np.sqrt(2 * np.asarray(gap, dtype=np.float64) / l2)[()]


# The primal method it is compared with


def sgd_strongly_convex(L: float, mu: float, gamma: float, k: Any, distance_squared: float, noise: float) -> Any:
    """``E F(x_k) - F* <= L/2 (1 - gamma mu)^k |x_0 - x*|^2 + gamma L/mu noise (1 - (1 - gamma mu)^k)``.

    Stochastic gradient descent with a constant step ``0 < gamma <= 1/(2L)``, where every sampled function is convex
    and ``L``-smooth, ``F`` is their mean and ``mu``-strongly convex, and ``noise = E |grad f(x*)|^2``. The last factor
    makes it slightly sharper than the usual form (Moulines and Bach 2011; Le Priol 2021, equation 2.21).

    Twice the bound over ``L`` bounds ``E |x_k - x*|^2``.

    >>> sgd_strongly_convex(L=1.0, mu=0.5, gamma=0.5, k=[0, 1], distance_squared=4.0, noise=1.0)
    array([2.  , 1.75])
    """
    constants(L, mu, distance_squared=distance_squared, noise=noise)
    positive(mu=mu)
    if not 0 < gamma <= 1 / (2 * L):
        raise ValueError(f"gamma, the step size, must be in (0, 1/(2L)] = (0, {1 / (2 * L):g}]; got {gamma}")
    kept = (1 - gamma * mu) ** steps(k)
    return (L / 2 * kept * distance_squared + gamma * L / mu * noise * (1 - kept))[()]


# Checks


def _linear(k: Any, rate: float, h0: float) -> Any:
    _rate(rate)
    constants(h0=h0)
    return ((1 - rate) ** steps(k) * h0)[()]


def _rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise ValueError(f"a linear rate must be in (0, 1]; got {rate}")


def _chi_squared(chi_squared: float, n: int) -> float:
    if not 1 <= chi_squared <= n:
        raise ValueError(f"chi_squared must be between 1 and n = {n}; got {chi_squared}")
    return float(chi_squared)


def _blocks(name: str, values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, one number per block; got shape {values.shape}")
    constants(**{name: values})
    return values


def _conditions(conditions: Any) -> np.ndarray:
    c = _blocks("conditions", conditions)
    if not c.min() >= 1:
        raise ValueError(f"conditions, the condition numbers of the blocks, must be at least 1; got {c.min()}")
    return c
