"""How a solver's steps are taken: many in one compiled call (JAX), or one at a time on a state that is consumed (host).

Both engines have the same face, and `run` knows nothing else of the difference. An engine holds the state of the run
and the best recorded state; `advance` takes some steps and returns the rows it recorded on the way. What is computed
does not depend on how the steps are cut into calls: the clock may cut them anywhere.
"""

from typing import Any

from cumulant.optim.driver.compiled_engine import CompiledEngine
from cumulant.optim.driver.host_engine import HostEngine
from cumulant.optim.protocol import Problem, Solver

__all__ = ["engine_for"]


def engine_for(solver: Any, problem: Any, x0: Any) -> "CompiledEngine | HostEngine":
    """The engine a solver asks for by its `backend`."""
    if not isinstance(solver, Solver):
        raise TypeError(f"solver must be an optim.Solver, such as optim.LBFGS(); got {type(solver).__name__}")
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem must be an optim.Problem, which declares its constants; got {type(problem).__name__}: inherit "
            "from optim.Problem"
        )
    if solver.backend == "jax":
        return CompiledEngine(solver, problem, x0)
    if solver.backend == "host":
        return HostEngine(solver, problem, x0)
    raise TypeError(f"solver.backend of {type(solver).__name__} must be 'jax' or 'host'; got {solver.backend!r}")
