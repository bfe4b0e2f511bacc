"""Interventions on the effect: the ball of new effects for which the causal model is nearer than the anticausal one."""

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.causal.categorical import CategoricalSCM, centred
from cumulant.causal.matrices import check_batches


class EffectBall(NamedTuple):
    """Where the causal model is nearer: new logits of the effect within a ball, for each model of a batch."""

    centre: np.ndarray
    radius_squared: np.ndarray


def row_log_partitions(model: CategoricalSCM) -> np.ndarray:
    """``A(x) = log sum_y exp s_{y|x}`` of each row, logits of mean zero: ``(..., K_x)``.

    The value of the cumulant function of the family of a row; as the logits add up to zero it is also
    ``-mean_y log p(y | x) = log K_y + KL(uniform || p(. | x))``.
    """
    checks.instance("model", model, CategoricalSCM, "a CategoricalSCM")
    return -model.log_effect.mean(axis=-1)


def effect_advantage_ball(reference: CategoricalSCM) -> EffectBall:
    """The ball of new effects ``s*_Y`` for which the causal model has the smaller initial distance.

    ``c = (K_x m - s_Y) / (K_x - 1)`` with ``m = mean_x s_{Y|x}``, and

        R^2 = K_x K_y / (K_x - 1) [ Var_x A(x) + Var_y B(y) / (K_x - 1) ],

    ``A``, ``B`` the log-partitions of the rows ``p(. | x)`` and of ``p(. | y)``, variances with divisors ``K_x`` and
    ``K_y``. With ``K_x = K_y`` this is proposition 4.5.2 of Le Priol (2021) in a form without differences. An
    independent reference has ``R = 0``: the anticausal model is never further.

    >>> model = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
    >>> ball = effect_advantage_ball(model)
    >>> ball.centre.round(6), round(float(ball.radius_squared), 8)
    (array([-0.178337,  0.178337]), 0.00357025)
    """
    checks.instance("reference", reference, CategoricalSCM, "a CategoricalSCM")
    backwards = reference.reverse()
    causes, effects = reference.sizes
    mean = reference.to_logit().effect.mean(axis=-2)
    centre = (causes * mean - backwards.to_logit().cause) / (causes - 1)
    forward = np.var(row_log_partitions(reference), axis=-1)
    backward = np.var(row_log_partitions(backwards), axis=-1)
    return EffectBall(centre, causes * effects / (causes - 1) * (forward + backward / (causes - 1)))


def advantage_gap(reference: CategoricalSCM, effect_logits: Any) -> np.ndarray:
    """``|theta_0 - theta*|^2`` of the causal model minus that of the anticausal one, for an intervention on the effect.

    ``(K_x - 1) (|s*_Y - c|^2 - R^2)``: negative inside `effect_advantage_ball`, where the causal model is nearer.
    `effect_logits` are logits ``(..., K_y)`` of the new effect; a constant does not matter.
    """
    ball = effect_advantage_ball(reference)
    logits = checks.real_array("effect_logits", effect_logits)
    if logits.ndim < 1 or logits.shape[-1] != reference.sizes[1]:
        raise ValueError(f"effect_logits must have {reference.sizes[1]} entries on the last axis; got {logits.shape}")
    check_batches("effect_logits", reference.shape, logits.shape[:-1])
    off = np.sum((centred(logits) - ball.centre) ** 2, axis=-1)
    return (reference.sizes[0] - 1) * (off - ball.radius_squared)
