"""The social network of smokers as a program: habits, friendships, and who decides for himself."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.relational.program import Program

_HEAD = """\
# Who smokes, who is friends with whom, and who decides independently of his friends.
# Carbonetto (2009), equations 5.1 to 5.11, in the corrected form.
var X, Y: person
"""

_RULES = """
ind(X) <- phi0(X)

# friends among those who decide independently: none of two smokes, one does, both do
friends{X, Y} <- X < Y, ind(X), ind(Y), not smokes(X), not smokes(Y), phi1{X, Y}
friends{X, Y} <- ind(X), ind(Y), smokes(X), not smokes(Y), phi2{X, Y}
friends{X, Y} <- X < Y, ind(X), ind(Y), smokes(X), smokes(Y), phi3{X, Y}
# one of two decides independently, and does not smoke, or does
friends{X, Y} <- ind(X), not ind(Y), not smokes(X), phi4{X, Y}
friends{X, Y} <- ind(X), not ind(Y), smokes(X), phi5{X, Y}
friends{X, Y} <- X < Y, not ind(X), not ind(Y), phi6{X, Y}

# habits of one's own; of the others, by the advice of smoking and of non-smoking friends
smokes(X) <- ind(X), phi7(X)
smokes(X) <- not ind(X), not sa(X), not nsa(X), phi10(X)
smokes(X) <- not ind(X), not sa(X), nsa(X), phi11(X)
smokes(X) <- not ind(X), sa(X), not nsa(X), phi12(X)
smokes(X) <- not ind(X), sa(X), nsa(X), phi13(X)
sa(X) <- is(X, Y)
nsa(X) <- ins(X, Y)
"""

_ADVICE = {
    "independent": """
is(X, Y) <- friends{X, Y}, smokes(Y), ind(Y), phi8(X, Y)
ins(X, Y) <- friends{X, Y}, not smokes(Y), ind(Y), phi9(X, Y)
""",
    "ordered": """
is(X, Y) <- X < Y, friends{X, Y}, smokes(Y), ind(Y), phi8(X, Y)
is(X, Y) <- Y < X, friends{X, Y}, smokes(Y), phi8(X, Y)
ins(X, Y) <- X < Y, friends{X, Y}, not smokes(Y), ind(Y), phi9(X, Y)
ins(X, Y) <- Y < X, friends{X, Y}, not smokes(Y), phi9(X, Y)
""",
}

_ARGUMENTS = {**dict.fromkeys((0, 7, 10, 11, 12, 13), "(X)"), **dict.fromkeys((8, 9), "(X, Y)")}


def smokers_program(theta: Any, influence: str = "independent") -> Program:
    """The program of the smokers, whose distribution is that of `SmokersModel`.

    Parameters
    ----------
    theta : array of 14 probabilities
        Those of the choices ``phi0`` to ``phi13``.
    influence : str
        Whose advice counts: of friends who decide independently (``"independent"``), or also of friends who come before
        in the domain (``"ordered"``).

    Examples
    --------
    >>> theta = [0.6, 0.1, 0.2, 0.7, 0.15, 0.4, 0.05, 0.3, 0.5, 0.25, 0.2, 0.1, 0.8, 0.45]
    >>> ground = smokers_program(theta).ground(["anna", "bob"])
    >>> round(ground.probability("friends{anna, bob}"), 5), round(ground.probability("smokes(anna)"), 5)
    (0.18656, 0.26801)
    """
    values = checks.real_array("theta", theta, ndim=1)
    checks.choice("influence", influence, _ADVICE)
    if values.size != 14 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"theta must be 14 probabilities; got {np.array2string(values, threshold=20)}")
    choices = "\n".join(f"phi{k}{_ARGUMENTS.get(k, '{X, Y}')} ~ {p!r}" for k, p in enumerate(values.tolist()))
    return Program(f"{_HEAD}\n{choices}\n{_RULES}{_ADVICE[influence]}")
