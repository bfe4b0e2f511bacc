"""Several classes as one problem for each, against all others: the objective of an on-line learner and its gap."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cumulant.certificates import Certificate, issuer, rounding
from cumulant.glm.objective.certify import certify_glm_gap
from cumulant.glm.objective.design import Design
from cumulant.glm.objective.problem import GLMProblem
from cumulant.optim.protocol import Problem


@dataclass(frozen=True, eq=False)
class OneVsRest(Problem):
    """The sum of the objectives of several classes, each told from all others, on the same rows.

    ``P(x) = sum_k P_k(x_k)``, ``x_k`` the parameters of class ``k`` alone. The problems do not share parameters, so
    that the minimum of the sum is the sum of the minima, and so is the gap. Parameters have the shape (classes,
    columns).

    Rifkin and Klautau (2004).

    Examples
    --------
    >>> from cumulant.glm import design_of, loss_of
    >>> design, weights = design_of(np.eye(3), False), np.full(3, 1 / 3)
    >>> part = GLMProblem(design, loss_of("bernoulli", np.array([1.0, 0.0, 0.0])), weights, np.zeros(3), l1=0.1)
    >>> round(OneVsRest((part, part)).value(np.zeros((2, 3))), 6)                       # 2 log 2
    1.386294
    """

    parts: tuple[GLMProblem, ...]

    differentiable: ClassVar[bool] = False

    @property
    def design(self) -> Design:
        """The features, which all problems share."""
        return self.parts[0].design

    @property
    def n_terms(self) -> int:
        """Rows."""
        return self.parts[0].n_terms

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the parameters."""
        return (len(self.parts), *self.parts[0].shape)

    def value(self, x: Any) -> float:
        """The sum of the objectives."""
        return sum(part.value(own) for part, own in zip(self.parts, np.asarray(x), strict=True))


def parts_of(problem: GLMProblem | OneVsRest) -> tuple[GLMProblem, ...]:
    """The problems of one output each."""
    return problem.parts if isinstance(problem, OneVsRest) else (problem,)


def with_l1(problem: GLMProblem | OneVsRest, l1: float) -> Any:
    """The same problem with another penalty."""
    posed = tuple(replace(part, l1=l1) for part in parts_of(problem))
    return OneVsRest(posed) if isinstance(problem, OneVsRest) else posed[0]


@issuer
def certify_one_vs_rest(problem: OneVsRest, x: Any) -> Certificate:
    """The sum of the duality gaps of all classes, each as in `certify_glm_gap`; `x` has a row for each class.

    Rockafellar (1970, theorem 31.1), once for each class.

    >>> from cumulant.glm import design_of, loss_of
    >>> design, weights = design_of(np.eye(3), False), np.full(3, 1 / 3)
    >>> part = GLMProblem(design, loss_of("bernoulli", np.array([1.0, 0.0, 0.0])), weights, np.zeros(3), l1=0.2)
    >>> certify_one_vs_rest(OneVsRest((part, part)), np.zeros((2, 3))).upper < 1e-12          # l1 is large: all zero
    True
    """
    gaps = [certify_glm_gap(part, own) for part, own in zip(problem.parts, np.asarray(x), strict=True)]
    bounds, slacks = np.array([gap.bound for gap in gaps], dtype=np.float64), [gap.slack for gap in gaps]
    return replace(
        gaps[0],
        bound=float(bounds.sum()),
        slack=sum(slacks) * (1 + 1e-12) + rounding(bounds, terms=len(gaps)),
        details={"largest of a class": max(gap.upper for gap in gaps)},
        recipe="",
    )


def certify_rows(problem: GLMProblem | OneVsRest, x: np.ndarray) -> Certificate:
    """The gap on the rows of a problem, of one output or of several."""
    return certify_one_vs_rest(problem, x) if isinstance(problem, OneVsRest) else certify_glm_gap(problem, x)
