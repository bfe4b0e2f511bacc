"""All states of a small model, one by one: the reference that every other method is compared with."""

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.structure import Structure
from cumulant.graphical.tables import LARGEST, require_room


def joint_scores(structure: Structure, theta: np.ndarray, max_states: int = LARGEST) -> np.ndarray:
    """The sum of the log tables at every state, one axis for each variable. `TooWide` beyond `max_states`."""
    shape = tuple(structure.cardinalities.tolist())
    require_room(shape, max_states, "use method='elimination'")
    if len(shape) > 64:
        raise DomainError("a joint table has at most 64 variables: use method='elimination'")
    total = np.zeros(shape)
    for f in range(structure.n_factors):
        scope = structure.scope(f)
        aligned = [1] * len(shape)
        for v in scope:
            aligned[v] = shape[v]
        total += structure.table(f, theta).transpose(np.argsort(scope)).reshape(aligned)
    return total


def enumerate_states(structure: Structure, theta: np.ndarray) -> tuple[float, list[np.ndarray], np.ndarray]:
    """``log Z``, the distribution of each variable and the marginal tables of all factors, by enumeration."""
    scores = joint_scores(structure, theta)
    top = scores.max()
    if top == -np.inf:
        return -np.inf, [], np.zeros(0)
    p = np.exp(scores - top)
    total = p.sum()
    p /= total
    axes = set(range(p.ndim))
    single = [p.sum(axis=tuple(axes - {v})) for v in range(p.ndim)]
    beliefs = [np.zeros(0)]
    for f in range(structure.n_factors):
        scope = structure.scope(f)
        beliefs.append(p.sum(axis=tuple(axes - set(scope))).transpose(np.argsort(np.argsort(scope))).ravel())
    return float(top + np.log(total)), single, np.concatenate(beliefs)
