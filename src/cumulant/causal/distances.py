"""How far a model is from where an intervention sends it, in each direction."""

from typing import Any, NamedTuple

import numpy as np


class Distances(NamedTuple):
    """Squared distances of parameters, for each model of a batch."""

    causal: np.ndarray
    anticausal: np.ndarray
    joint: np.ndarray


def initial_distances(reference: Any, transfer: Any, space: str | None = None) -> Distances:
    """``|theta_0 - theta*|^2`` of the causal, the anticausal and the joint model.

    `reference` is where each model starts and `transfer` where it has to go, two models of one class, written along the
    arrow; the anticausal distance is that of their `reverse`. After an intervention on the cause, ``anticausal =
    K_y causal + |s_Y - s_Y*|^2`` for categorical models: the causal model is nearer by a factor of at least ``K_y``
    (Le Priol 2021, proposition 4.5.1). After one on the effect `advantage_gap` has the difference.

    Parameters
    ----------
    reference, transfer : models
        With `reverse`, `squared_distance` and `joint_squared_distance`.
    space : str, optional
        The coordinates; the model's own by default (logits of categorical models).

    Examples
    --------
    >>> from cumulant.causal import CategoricalSCM
    >>> model = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
    >>> found = initial_distances(model, model.intervene("cause", [0.8, 0.2]))
    >>> round(float(found.causal), 6), round(float(found.anticausal), 6)
    (0.960906, 1.942405)
    """
    if type(reference) is not type(transfer) or not hasattr(reference, "squared_distance"):
        raise TypeError(
            "reference and transfer must be models of one class; got "
            f"{type(reference).__name__} and {type(transfer).__name__}"
        )
    where = {} if space is None else {"space": space}
    return Distances(
        reference.squared_distance(transfer, **where),
        reference.reverse().squared_distance(transfer.reverse(), **where),
        reference.joint_squared_distance(transfer, **where),
    )
