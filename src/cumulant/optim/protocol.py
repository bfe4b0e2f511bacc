"""What a problem and a solver are: the contract between `run` and everything it runs.

A **problem** is a frozen dataclass that JAX knows as a pytree: data arrays are leaves, functions are module-level and
take the data as arguments. It knows its constants. A **solver** is a frozen dataclass of settings, with

* ``init(problem, x0, rng) -> state``: called once, on concrete arrays; looks up constants, fixes step sizes, refuses
  what it cannot solve;
* ``step(problem, state) -> state``: one step. With ``backend = "jax"`` it is pure and is traced: `run` compiles many of
  them into one call. With ``backend = "host"`` it is a NumPy or Numba function that may advance many updates and
  *consumes* its state: the state passed in must not be used again, so gigabytes of dual variables are never copied;
* ``certify(problem, state) -> Certificate``: called on NumPy arrays, in float64, or raises `CertificateError` naming
  the assumption that fails;

and, where they help,

* ``measure(problem, state) -> dict``: scalars for the trace, with ``value`` among them. `run` looks at three more by
  name: ``bound``, an upper bound on the distance to the optimum (infinity where none is known); ``residual``, the norm
  of the gradient or of whatever else is zero exactly at the solutions; ``stuck``, not zero where no further step
  makes progress. Traced when the backend is JAX, so that a dense trace costs no round trip. A solver without it is
  measured by ``problem.value`` and ``certify`` at each record;
* ``solution(problem, state) -> x``: where the answer is not simply ``state.x``;
* ``subject(problem, state) -> Subject``: where the certificate speaks of more than the problem and the answer, such as
  dual variables;
* ``every``: how many steps between two records, where measuring is expensive;
* ``returns = "best"``: to answer with the recorded iterate of smallest value instead of the last (JAX backend; a host
  solver keeps its best itself, since its states are consumed).

`Problem` and `Solver` are base classes that declare all of this with its defaults: inherit from them.

Numbers among the settings of a JAX solver are data of the compiled program, so that a sweep over step sizes compiles
once; strings, flags and functions, and fields registered as static, are part of it.

A state is a pytree whose leaves are arrays and numbers (for the host also `numpy.random.Generator`), all of it:
whatever randomness a solver uses is in there, which is what makes a resumed run equal to an uninterrupted one. The
floating-point leaves of a healthy state are finite: infinity or NaN in one of them is how `run` knows that a run
diverged.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import numpy as np

from cumulant.certificates import Certificate, Subject
from cumulant.optim.problems.trees import as_floats
from cumulant.precision import precise


class Problem:
    """A function to be minimised, and what is known about it.

    A problem defines `value`; the rest has the defaults below, and derivatives are those of `value` by JAX.

    Attributes
    ----------
    smoothness : float or None
        ``L`` with ``|grad f(x) - grad f(y)| <= L |x - y|``; None where unknown.
    strong_convexity : float
        ``mu`` with ``f - mu |x|^2 / 2`` convex; 0 where unknown.
    convex, quadratic : bool
        Whether ``f`` is known to be.
    differentiable : bool
        Whether `gradient` is that of the whole objective, so that zero gradients are solutions.
    estimated : bool
        Whether `value` and `gradient` are estimates, from a sample: no certificate is issued from them.
    n_terms : int
        The number of terms of a finite sum.
    shape : tuple or None
        The shape of ``x``, where it is fixed.
    constants_are : str
        How they are known: ``"checked"`` (computed from the data), ``"by construction"`` or ``"assumed"`` (your
        word).
    constant_rounding : float
        How far the computed ``mu`` may be from the exact one.
    reference, relative_smoothness, relative_strong_convexity
        ``relative_strong_convexity * D_psi <= D_f <= relative_smoothness * D_psi`` for the entropy ``psi = reference``.
    largest_entry : float
        The largest entry of the Hessian of a quadratic function in absolute value; 0 where unknown.
    self_concordance : float or None
        ``c`` that bounds the third derivative of each row's loss by its second, over the scores; None where unknown.

    Examples
    --------
    >>> from cumulant import optim
    >>> isinstance(optim.Quadratic([[1.0]], [0.0]), Problem), isinstance(3.0, Problem)
    (True, False)
    """

    smoothness: Any = None
    strong_convexity: Any = 0.0
    convex: Any = False
    quadratic: Any = False
    differentiable: Any = True
    estimated: Any = False
    n_terms: Any = 1
    shape: Any = None
    constants_are: Any = "assumed"
    constant_rounding: Any = 0.0
    reference: Any = None
    relative_smoothness: Any = None
    relative_strong_convexity: Any = 0.0
    largest_entry: Any = 0.0
    self_concordance: Any = None

    def value(self, x: Any) -> Any:
        """``f(x)``."""
        raise NotImplementedError(f"{type(self).__name__} must define value(x)")

    def gradient(self, x: Any) -> Any:
        """``grad f(x)``."""
        return self.value_and_gradient(x)[1]

    @precise
    def value_and_gradient(self, x: Any) -> Any:
        """``f(x)`` and ``grad f(x)``, in one pass."""
        return jax.value_and_grad(self.value)(as_floats(x))

    @precise
    def hessian_apply(self, x: Any, v: Any) -> Any:
        """``hess f(x) v``."""
        return jax.jvp(self.gradient, (x,), (v,))[1]

    def gradient_rounding(self, x: Any) -> float:
        """How far the computed gradient may be off in float64, in Euclidean norm: an allowance, not a theorem.

        64 units in the last place of the gradient, and of ``x``: through ``L``, or through how much the gradient
        changes along ``x`` where ``L`` is unknown.
        """
        gradient, x = np.asarray(self.gradient(x)), np.asarray(x)
        if self.smoothness is None:
            change = 2.0**20 * float(np.linalg.norm(np.asarray(self.gradient(x * (1 + 2.0**-20))) - gradient))
        else:
            change = float(self.smoothness) * float(np.linalg.norm(x))
        return 64 * 2.0**-52 * (float(np.linalg.norm(gradient)) + (change if np.isfinite(change) else 0.0))


class DerivedProblem(Problem):
    """A problem made of another, `problem`, whose constants it has."""

    problem: Any

    smoothness = property(lambda self: self.problem.smoothness)
    strong_convexity = property(lambda self: self.problem.strong_convexity)
    convex = property(lambda self: self.problem.convex)
    constants_are = property(lambda self: self.problem.constants_are)
    constant_rounding = property(lambda self: self.problem.constant_rounding)
    differentiable = property(lambda self: self.problem.differentiable)
    quadratic = property(lambda self: self.problem.quadratic)
    n_terms = property(lambda self: self.problem.n_terms)
    estimated = property(lambda self: self.problem.estimated)


@runtime_checkable
class CertifiedProblem(Protocol):
    """A problem that knows more about the distance to its minimum than constants say: a likelihood, for instance."""

    def certify(self, x: Any) -> Certificate:
        """How far ``f(x)`` can be from the minimum, or `CertificateError`."""
        ...


class Solver:
    """A method: settings, `init`, `step`, `certify`. No loop, no printing, no stopping rule, no timing: see `run`.

    >>> from cumulant import optim
    >>> isinstance(optim.SAGA(), Solver), optim.SAGA().backend
    (True, 'host')
    """

    backend: ClassVar[str] = ""
    every: ClassVar[int | None] = None  # `run` decides
    returns: ClassVar[str] = "last"

    def init(self, problem: Any, x0: Any, rng: Any) -> Any:
        """The state before the first step."""
        raise NotImplementedError(f"{type(self).__name__} must define init(problem, x0, rng)")

    def step(self, problem: Any, state: Any) -> Any:
        """The state one step later."""
        raise NotImplementedError(f"{type(self).__name__} must define step(problem, state)")

    def certify(self, problem: Any, state: Any) -> Certificate:
        """How far ``state`` can be from a minimiser."""
        raise NotImplementedError(f"{type(self).__name__} must define certify(problem, state)")

    def measure(self, problem: Any, state: Any) -> Any:
        """Scalars for the trace."""
        return {"value": problem.value(self.solution(problem, state))}

    def solution(self, problem: Any, state: Any) -> Any:
        """The answer in a state."""
        return state.x

    def subject(self, problem: Any, state: Any) -> Subject | None:
        """What the certificate speaks of; None for the problem and the answer."""
        return None


def require_gradient(solver: Solver, problem: Any) -> None:
    """Refuse a problem whose gradient is missing or does not belong to the whole objective."""
    if not (isinstance(problem, Problem) and problem.differentiable):
        raise TypeError(
            f"{type(solver).__name__} needs a problem with a gradient, which {type(problem).__name__} does not have: "
            "where there is a penalty use AcceleratedProximalGradient"
        )
