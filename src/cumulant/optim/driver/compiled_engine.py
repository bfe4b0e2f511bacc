"""Many pure steps in one compiled call."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import precision
from cumulant.certificates import Certificate
from cumulant.optim.driver.stepping import Program, healthy, join, measure, one_step, split, typed
from cumulant.optim.driver.window import Advance, Window, certified_bound, is_still
from cumulant.optim.protocol import Solver

__all__ = ["CompiledEngine"]

_CAPACITY = 256  # rows one compiled call can bring home
_GOING, _REACHED, _DIVERGED, _STILL = 0, 1, 2, 3


class _Best(NamedTuple):
    """The recorded state of smallest value."""

    state: Any
    value: Any


@functools.partial(jax.jit, static_argnames=("program",))
def _advance(program: Program, data: list, state: Any, best: _Best, window: Window):
    """The steps of a window, in one compiled call.

    Numbers in `window` are data: one program serves every cut of a run. The loop ends early when the target is
    reached, when something is no longer finite, or when the table of rows is full.
    """
    solver, problem = join(program, data)
    names = sorted(jax.eval_shape(functools.partial(measure, solver, problem), state))
    rows = jnp.zeros((_CAPACITY, 1 + len(names)), dtype=float)

    def going(carry):
        done, _, _, _, filled, verdict = carry
        todo = (done < window.length) | (window.fresh & (filled == 0))
        return todo & (filled < _CAPACITY) & (verdict == _GOING)

    def record(done, state, best, rows, filled):
        found = measure(solver, problem, state)
        value, bound = found["value"], found["bound"]
        fine = healthy(state) & ~jnp.isnan(value) & ~jnp.isnan(bound)
        best = jax.lax.cond(fine & (value < best.value), lambda: _Best(state, value), lambda: best)
        row = jnp.stack([jnp.asarray(done, dtype=rows.dtype), *(found[name] for name in names)])
        rows = jax.lax.dynamic_update_slice(rows, row[None], (filled, 0))
        reached = (window.tol >= 0) & (bound <= window.tol * jnp.maximum(jnp.abs(value), window.scale))
        still = jnp.where(is_still(found, window.still), _STILL, _GOING)
        verdict = jnp.where(fine, jnp.where(reached, _REACHED, still), _DIVERGED)
        return best, rows, filled + fine, verdict  # the row of a diverged state is not kept

    def body(carry):
        done, state, best, rows, filled, _ = carry
        jump = jnp.minimum(window.every - (window.first + done) % window.every, window.length - done)
        state = jax.lax.fori_loop(0, jump, lambda _, s: one_step(solver, problem, s), state)
        done = done + jump
        due = (window.first + done) % window.every == 0
        best, rows, filled, verdict = jax.lax.cond(
            due, record, lambda _, __, *rest: (*rest, jnp.asarray(_GOING)), done, state, best, rows, filled
        )
        return done, state, best, rows, filled, verdict

    done, state, best, rows, filled, verdict = jax.lax.while_loop(going, body, (0, state, best, rows, 0, _GOING))
    # Steps are counted from the start of the window: small enough to be exact as floats of any width.
    return state, best, {name: rows[:, i] for i, name in enumerate(["offset", *names])}, filled, done, verdict


@functools.partial(jax.jit, static_argnames=("program",))
def _solution(program: Program, data: list, state: Any):
    solver, problem = join(program, data)
    return solver.solution(problem, state)


class CompiledEngine:
    """Steps of a `backend = "jax"` solver. NumPy problems and starting points are computed in float64."""

    consumes = False

    def __init__(self, solver: Any, problem: Any, x0: Any):
        if precision.any_tracer(solver, problem, x0):
            raise TypeError("run has a loop of its own and cannot be traced: call solver.step inside jit instead")
        self.solver, self.problem = solver, problem
        self.wide = not precision.any_jax(solver, problem, x0)
        with self._precision():
            data, self.program = split((solver, problem))
            self.data = [None if leaf is None else jnp.asarray(self._widened(leaf)) for leaf in data]
        self.state: Any = None
        self.best: Any = None
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
            self.state = typed(state)
            self.best = _Best(self.state, jnp.asarray(jnp.inf, dtype=float))

    def advance(self, window: Window, halted: Callable[[], bool]) -> Advance:
        """Take the steps of a window. `halted` is not asked: a compiled call is short and runs to its end."""
        if self.one_record:
            window = window._replace(length=min(window.length, window.every - window.first % window.every))
        with self._precision():
            state, best, rows, filled, done, verdict = _advance(self.program, self.data, self.state, self.best, window)
            rows, filled, done, verdict = jax.device_get((rows, filled, done, verdict))
        self.state, self.best = state, best
        rows: dict[str, Any] = {name: np.array(column[:filled], dtype=np.float64) for name, column in rows.items()}
        rows["steps"] = window.first + rows.pop("offset").astype(np.int64)
        reached = verdict == _REACHED
        if self.one_record and filled:
            rows["bound"][-1] = certified_bound(lambda: self.certify(self.state))
            reached = window.tol >= 0 and rows["bound"][-1] <= window.tol * max(abs(rows["value"][-1]), window.scale)
        return Advance(rows, int(done), bool(reached), bool(verdict == _DIVERGED), bool(verdict == _STILL))

    def measure_now(self) -> dict[str, np.ndarray]:
        """One row for the state as it is."""
        window = Window(0, 0, 1, -1.0, 0.0, fresh=True)
        best = self.best
        rows = self.advance(window, lambda: False).rows
        self.best = best
        return rows

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

    def best_record(self) -> tuple[Any, Any, float]:
        """The recorded state of smallest value, the answer in it, and the value."""
        return self.best.state, self.solution(self.best.state), float(self.best.value)

    def public(self, state: Any) -> Any:
        """A state to hand out, by the rule of precision."""
        with self._precision():
            return precision.to_numpy(state) if self.wide else state

    def export(self) -> tuple[list, list]:
        """Leaves of the state and of the best state, as NumPy."""
        with self._precision():
            return jax.device_get((jax.tree.leaves(self.state), jax.tree.leaves(self.best)))

    def restore(self, state: Sequence, best: Sequence) -> None:
        """Put back what `export` gave; the engine must have been started."""
        with self._precision():
            self.state = _like(self.state, state)
            self.best = _like(self.best, best)


def _like(template: Any, leaves: Sequence) -> Any:
    old, structure = jax.tree.flatten(template)
    if len(old) != len(leaves) or any(np.shape(a) != np.shape(b) for a, b in zip(old, leaves, strict=True)):
        raise ValueError("the arrays in the checkpoint do not have the shapes of this solver's state")
    return jax.tree.unflatten(structure, [jnp.array(new, dtype=a.dtype) for a, new in zip(old, leaves, strict=True)])
