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

* ``measure(problem, state) -> dict``: scalars for the trace, with ``value`` and, where there is one, ``bound`` (an
  upper bound on the distance to the optimum, infinity where none is known) among them. Traced when the backend is
  JAX, so that a dense trace costs no round trip. Without it, `run` calls ``problem.value`` and ``certify`` at each
  record;
* ``solution(problem, state) -> x``: where the answer is not simply ``state.x``;
* ``subject(problem, state) -> Subject``: where the certificate speaks of more than the problem and the answer, such as
  dual variables;
* ``every``: how many steps between two records, where measuring is dear;
* ``returns = "best"``: to answer with the recorded iterate of smallest value instead of the last (JAX backend; a host
  solver keeps its best itself, since its states are consumed).

Numbers among the settings of a JAX solver are data of the compiled program, so that a sweep over step sizes compiles
once; strings, flags and functions, and fields registered as static, are part of it.

A state is a pytree whose leaves are arrays and numbers (for the host also `numpy.random.Generator`), all of it:
whatever randomness a solver uses is in there, which is what makes a resumed run equal to an uninterrupted one. The
floating-point leaves of a healthy state are finite: infinity or NaN in one of them is how `run` knows that a run
diverged.
"""

from typing import Any, Protocol, runtime_checkable

from cumulant.certificates import Certificate

__all__ = ["CertifiedProblem", "Problem", "Solver"]


@runtime_checkable
class Problem(Protocol):
    """A function to be minimised.

    What a solver needs to know are attributes: `smoothness`, `strong_convexity`, `convex`, `n_terms`, and `shape`,
    the shape of ``x``, where it is fixed. `constants_are` says how they are known: ``"checked"`` (computed from the
    data), ``"by construction"`` or ``"assumed"`` (your word).

    >>> from cumulant import optim
    >>> isinstance(optim.Quadratic([[1.0]], [0.0]), Problem), isinstance(3.0, Problem)
    (True, False)
    """

    def value(self, x: Any) -> Any:
        """``f(x)``."""
        ...


@runtime_checkable
class CertifiedProblem(Protocol):
    """A problem that knows more about the distance to its minimum than constants say: a likelihood, for instance."""

    def certify(self, x: Any) -> Certificate:
        """How far ``f(x)`` can be from the minimum, or `CertificateError`."""
        ...


@runtime_checkable
class Solver(Protocol):
    """A method: settings, `init`, `step`, `certify`. No loop, no printing, no stopping rule, no timing: see `run`.

    >>> from cumulant import optim
    >>> isinstance(optim.SAGA(), Solver), optim.SAGA().backend
    (True, 'host')
    """

    backend: str

    def init(self, problem: Any, x0: Any, rng: Any) -> Any:
        """The state before the first step."""
        ...

    def step(self, problem: Any, state: Any) -> Any:
        """The state one step later."""
        ...

    def certify(self, problem: Any, state: Any) -> Certificate:
        """How far ``state`` can be from a minimiser."""
        ...
