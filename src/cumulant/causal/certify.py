"""A certificate of adaptation: how far a model will be from the transfer distribution after so many observations."""

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.causal.adaptation import MODELS, same_problems
from cumulant.causal.categorical import CategoricalSCM
from cumulant.causal.distances import initial_distances
from cumulant.certificates import Assumption, Certificate, assume, by_construction, check, issuer, rounding
from cumulant.optim import rates

GRADIENT_BOUNDS = {"causal": 2.0, "anticausal": 2.0, "joint": float(np.sqrt(2.0))}


class Schedule(NamedTuple):
    """A model, how many observations it gets, and its step size."""

    model: str
    T: int
    step_size: float


def adaptation_bound(
    reference: Any, transfer: Any, T: int, step_size: float | None = None, model: str = "causal"
) -> Certificate:
    """``E KL(p* || p_theta) <= |theta_0 - theta*|^2 / (2 step T) + step B^2 / 2`` for `adapt_categorical`.

    ``theta`` is the average of the first `T` iterates; the gradient of the log-probability of an observation has a norm
    of at most ``sqrt(2)`` for each mechanism, so that ``B = 2`` for the causal and the anticausal model and ``sqrt(2)``
    for the joint one (Le Priol 2021, theorem 4.A.1). Of the points that give the transfer distribution, the one whose
    logits add up to zero is nearest to the start.

    Parameters
    ----------
    reference, transfer : CategoricalSCM
        For a batch, the bound is on the mean divergence over its models.
    T : int
    step_size : float, optional
        The best one for the bound unless given: ``|theta_0 - theta*| / (B sqrt(T))``.
    model : {"causal", "anticausal", "joint"}

    Examples
    --------
    >>> from cumulant.causal import CategoricalSCM
    >>> model = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
    >>> changed = model.intervene("cause", [0.8, 0.2])
    >>> forward = adaptation_bound(model, changed, 1000)
    >>> backward = adaptation_bound(model, changed, 1000, model="anticausal")
    >>> round(forward.bound, 4), round(backward.bound, 4)
    (0.062, 0.0881)
    """
    checks.choice("model", model, MODELS)
    T = checks.whole("T", T)
    if step_size is None:
        distance = float(np.mean(_squared_distances(reference, transfer, model)))
        # Where nothing has changed every step is too long: the bound is then that of a tiny one.
        step_size = float(rates.sga_best_step(GRADIENT_BOUNDS[model], distance, T)) or float(np.finfo(float).eps)
    return certify_adaptation((reference, transfer), Schedule(model, T, step_size))


@issuer
def certify_adaptation(given: Any, answer: Schedule) -> Certificate:
    """The certificate of `adaptation_bound`, from ``(reference, transfer)`` and a `Schedule`."""
    reference, transfer = given
    model, T, step = answer
    checks.choice("model", model, MODELS)
    checks.whole("T", T)
    checks.positive("step_size", step)
    B = GRADIENT_BOUNDS[model]
    distances = _squared_distances(reference, transfer, model)
    distance = float(np.mean(distances))
    # Each logit is a difference of numbers up to the largest logarithm, and enters squared.
    largest = np.max([np.abs(each.log_joint).max() for each in (reference, transfer)])
    cells = reference.sizes[0] * reference.sizes[1]
    with np.errstate(over="ignore"):
        bound = float(rates.sga_constant(B, np.float64(distance), T, step))
        error = rounding(8 * largest * np.sqrt(np.max(distances) * cells), 8 * largest**2 * 2.0**-53, terms=cells)
        slack = error / np.float64(2 * step * T) + rounding(bound, terms=8)
    possible = check(
        np.isfinite(slack), "the bound is finite with this step size", f"{step:.4g}, logarithms up to {largest:.4g}"
    )
    return Certificate(
        "E KL(transfer || model)" if not reference.shape else "E mean KL(transfer || model)",
        bound,
        "Le Priol 2021, theorem 4.A.1 (averaged stochastic gradient descent, constant step)",
        (
            by_construction("minus the log-likelihood is convex in the logits", "exponential family"),
            by_construction("stochastic gradients are bounded", f"B = {B:.4g}"),
            _finite(distance),
            possible,
            assume("observations are independent draws of the transfer distribution"),
        ),
        kind="in expectation",
        slack=float(slack),
        details={"distance": distance, "step_size": step, "observations": T},
    )


def _squared_distances(reference: Any, transfer: Any, model: str) -> np.ndarray:
    """Of each problem. Gradients of other models than categorical ones are not bounded."""
    for name, each in (("reference", reference), ("transfer", transfer)):
        checks.instance(name, each, CategoricalSCM, "a CategoricalSCM")
    same_problems(reference, transfer)
    with np.errstate(over="ignore"):
        found = np.asarray(getattr(initial_distances(reference, transfer), model))
        _finite(float(np.sum(found)))  # as their mean is taken
    return found


def _finite(distance: float) -> Assumption:
    return check(np.isfinite(distance), "the transfer distribution is that of finite logits", f"{distance:.6g}")
