"""Many pure steps in one compiled call."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import precision
from cumulant.certificates import Certificate
from cumulant.optim.driver.stepping import Program, healthy, join, measure, one_step, split, typed
from cumulant.optim.driver.window import Advance, Window, certified_bound, judge
from cumulant.optim.protocol import Solver

_CAPACITY = 8192  # rows one compiled call can return


@functools.partial(jax.jit, static_argnames=("program",))
def _records(program: Program, data: list, state: Any, count: Any, every: Any, window: Window):
    """The steps up to `count` records, each after `every` steps, in one compiled call.

    All numbers are data: one program serves every cut of a run. The loop ends early when a record says so. Each pass
    makes one row, after a number of steps that does not change: a pass that decides anything else, or keeps a copy of
    the best state, costs several times what a cheap step does.
    """
    solver, problem = join(program, data)
    names = ["healthy", *sorted(jax.eval_shape(functools.partial(measure, solver, problem), state))]

    def going(carry):
        _, _, row, filled = carry
        fine, reached, still = judge(dict(zip(names, row, strict=True)), window)
        return (filled < count) & fine & ~reached & ~still

    def body(carry):
        state, rows, _, filled = carry
        state = _walk(solver, problem, state, every)
        found = {"healthy": healthy(state)} | measure(solver, problem, state)
        row = jnp.stack([jnp.asarray(found[name], dtype=rows.dtype) for name in names])
        rows = jax.lax.dynamic_update_slice(rows, row[None], (filled, 0))
        return state, rows, row, filled + 1

    rows = jnp.zeros((_CAPACITY, len(names)), dtype=float)
    nothing = jnp.asarray([_NOTHING.get(name, 0.0) for name in names], dtype=rows.dtype)
    state, rows, _, filled = jax.lax.while_loop(going, body, (state, rows, nothing, 0))
    return state, {tuple(names): rows}, filled  # names are part of the structure, so that they are returned too


_NOTHING = {"healthy": 1.0, "bound": np.inf, "residual": np.inf}  # a row that ends no loop


def _walk(solver: Any, problem: Any, state: Any, steps: Any) -> Any:
    return jax.lax.fori_loop(0, steps, lambda _, s: one_step(solver, problem, s), state)


@functools.partial(jax.jit, static_argnames=("program",))
def _steps(program: Program, data: list, state: Any, steps: Any):
    """Steps without a record."""
    solver, problem = join(program, data)
    return _walk(solver, problem, state, steps)


@functools.partial(jax.jit, static_argnames=("program",))
def _solution(program: Program, data: list, state: Any):
    solver, problem = join(program, data)
    return solver.solution(problem, state)


class CompiledEngine:
    """Steps of a `backend = "jax"` solver. NumPy problems and starting points are computed in float64."""

    consumes = False
    best = None  # nothing is kept: see `best_record`

    def __init__(self, solver: Any, problem: Any, x0: Any):
        if precision.any_tracer(solver, problem, x0):
            raise TypeError("run has a loop of its own and cannot be traced: call solver.step inside jit instead")
        self.solver, self.problem = solver, problem
        self.wide = not precision.any_jax(solver, problem, x0)
        with self._precision():
            data, self.program = split((solver, problem))
            self.data = [None if leaf is None else jnp.asarray(self._widened(leaf)) for leaf in data]
        self.state: Any = None
        self.origin: Any = None  # the state of step 0, from which any other can be computed again
        # Without `measure` the bound comes from `certify`, on the host: one record a call.
        self.one_record = type(solver).measure is Solver.measure

    def _precision(self):
        return precision.float64() if self.wide else contextlib.nullcontext()

    def _widened(self, leaf: Any) -> Any:
        leaf = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        return leaf.astype(np.float64) if self.wide and leaf.dtype.kind == "f" else leaf

    @property
    def precision_name(self) -> str:
        """A word for the precision of this run, so that a checkpoint of another one is not resumed."""
        return "float64" if self.wide else f"JAX arrays, {jnp.result_type(float)}"

    def start(self, x0: Any, rng: Any) -> None:
        """Make the state of step 0."""
        with self._precision():
            x0 = jnp.asarray(x0, dtype=None if isinstance(x0, jax.Array) else float)
            state = self.solver.init(self.problem, x0, rng)
            self.state = self.origin = typed(state)

    def advance(self, window: Window, halted: Callable[[], bool]) -> Advance:
        """Take the steps of a window. `halted` is not asked: a compiled call is short and runs to its end."""
        lead = 0 if window.fresh else window.to_next_record(window.first)
        with self._precision():
            if window.length < lead:
                self.state = jax.block_until_ready(_steps(self.program, self.data, self.state, window.length))
                return Advance({"steps": np.zeros(0, np.int64)}, window.length, False, False)
            every, same = window.interval(window.first)
            count = min((min(window.length, same)) // every, _CAPACITY)
            if self.one_record or lead < every:  # a record at x0, or the first one after a call that ended between two
                every, count = lead, 1
            self.state, rows, filled = _records(self.program, self.data, self.state, count, every, window)
            ((names, table),), filled = jax.device_get(rows).items(), int(filled)
        rows: dict[str, Any] = dict(zip(names, np.array(table[:filled].T, dtype=np.float64), strict=True))
        if self.one_record:
            rows["bound"][-1] = certified_bound(lambda: self.certify(self.state))
        fine, reached, still = judge({name: column[-1] for name, column in rows.items()}, window)
        rows["steps"] = window.first + every * np.arange(1, filled + 1, dtype=np.int64)
        del rows["healthy"]
        if not fine:  # the row of a diverged state is not kept
            rows = {name: column[:-1] for name, column in rows.items()}
        return Advance(rows, every * filled, bool(fine and reached), not fine, bool(fine and still))

    def measure_now(self) -> dict[str, np.ndarray]:
        """One row for the state as it is."""
        return self.advance(Window(0, 0, 1, -1.0, 0.0, fresh=True), lambda: False).rows

    def solution(self, state: Any) -> Any:
        """The answer in a state: NumPy if the run is wide."""
        with self._precision():
            own = type(self.solver).solution is not Solver.solution
            x = _solution(self.program, self.data, state) if own else state.x
            return precision.to_numpy(x) if self.wide else x

    def certify(self, state: Any) -> Certificate:
        """The certificate of a state, computed from NumPy arrays."""
        with self._precision():
            state = precision.to_numpy(state)
        return self.solver.certify(self.problem, state)

    def best_record(self, steps: np.ndarray, values: np.ndarray) -> tuple[Any, Any, float]:
        """The recorded state of smallest value, the answer in it, and the value: the steps up to it, taken again."""
        best = int(np.argmin(values))
        with self._precision():
            state = _steps(self.program, self.data, self.origin, int(steps[best]))
        return state, self.solution(state), float(values[best])

    def public(self, state: Any) -> Any:
        """A state to hand out, by the rule of precision."""
        with self._precision():
            return precision.to_numpy(state) if self.wide else state

    def export(self) -> tuple[list, list]:
        """Leaves of the state and of the state of step 0, as NumPy."""
        with self._precision():
            return jax.device_get((jax.tree.leaves(self.state), jax.tree.leaves(self.origin)))

    def restore(self, state: Sequence, origin: Sequence) -> None:
        """Put back what `export` gave; the engine must have been started."""
        with self._precision():
            self.state, self.origin = _like(self.state, state), _like(self.state, origin)


def _like(template: Any, leaves: Sequence) -> Any:
    old, structure = jax.tree.flatten(template)
    if len(old) != len(leaves) or any(np.shape(a) != np.shape(b) for a, b in zip(old, leaves, strict=True)):
        raise ValueError("the arrays in the checkpoint do not have the shapes of this solver's state")
    return jax.tree.unflatten(structure, [jnp.array(new, dtype=a.dtype) for a, new in zip(old, leaves, strict=True)])
