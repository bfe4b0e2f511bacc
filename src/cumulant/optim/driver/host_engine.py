"""Steps on the host, each of which consumes the state it is given."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from cumulant.certificates import Certificate
from cumulant.optim.driver.window import Advance, Window, certified_bound, judge
from cumulant.optim.protocol import Solver


class HostEngine:
    """Steps of a `backend = "host"` solver: each consumes the state it is given."""

    consumes = True
    wide = True
    precision_name = "float64"

    def __init__(self, solver: Any, problem: Any, x0: Any):
        self.solver, self.problem = solver, problem
        self.state: Any = None
        self.best: tuple[float, Any] = (np.inf, None)  # value and answer of the best record

    def start(self, x0: Any, rng: Any) -> None:
        """Make the state of step 0."""
        self.state = self.solver.init(self.problem, np.array(x0, dtype=np.float64), rng)

    def advance(self, window: Window, halted: Callable[[], bool]) -> Advance:
        """Take the steps of a window, one at a time; `halted` is asked before each."""
        rows: list[dict[str, float]] = []
        done, reached, diverged, still = 0, False, False, False
        if window.fresh:
            reached, diverged, still = self._record(0, window, rows)
        due = window.to_next_record(window.first)
        while done < window.length and not (reached or diverged or still or (done and halted())):
            state, self.state = self.state, None  # consumed: if the step is torn, the state is gone and known to be
            self.state = self.solver.step(self.problem, state)
            done += 1
            due -= 1
            if due == 0:
                here = window.first + done
                reached, diverged, still = self._record(here, window, rows)
                due = window.to_next_record(here)
        names = rows[0].keys() if rows else ("steps", "value", "bound")
        columns = {name: np.array([row[name] for row in rows]) for name in names}
        columns["steps"] = columns["steps"].astype(np.int64)
        return Advance(columns, done, reached, diverged, still)

    def _record(self, here: int, window: Window, rows: list) -> tuple[bool, bool, bool]:
        row, x = self._measure()
        fine, reached, still = judge(row | {"healthy": np.all(np.isfinite(x))}, window)
        if not fine:
            return False, True, False
        if row["value"] < self.best[0]:
            self.best = (row["value"], np.array(x))
        rows.append({"steps": here} | row)
        return bool(reached), False, bool(still)

    def _measure(self) -> tuple[dict[str, float], Any]:
        x = self.solution(self.state)
        found = dict(self.solver.measure(self.problem, self.state))
        if type(self.solver).measure is Solver.measure:
            found["bound"] = certified_bound(lambda: self.certify(self.state))
        found.setdefault("bound", np.inf)
        return {name: float(number) for name, number in found.items()}, x

    def measure_now(self) -> dict[str, np.ndarray]:
        """One row for the state as it is."""
        row, x = self._measure()
        if np.isnan(row["value"]) or np.isnan(row["bound"]) or not np.all(np.isfinite(x)):
            return {"steps": np.zeros(0, np.int64)}
        return {name: np.array([number]) for name, number in ({"steps": 0} | row).items()}

    def solution(self, state: Any) -> Any:
        """The answer in a state."""
        return self.solver.solution(self.problem, state)

    def certify(self, state: Any) -> Certificate:
        """The certificate of a state."""
        return self.solver.certify(self.problem, state)

    def best_record(self, steps: np.ndarray, values: np.ndarray) -> tuple[Any, Any, float]:
        """The best answer and its value. States are consumed step by step, so its state was not kept."""
        value, x = self.best
        return None, x, value

    def public(self, state: Any) -> Any:
        """A state to hand out: the state itself."""
        return state

    def export(self) -> tuple[list, list]:
        """Leaves of the state, not copied, and the best answer with its value."""
        value, x = self.best
        return jax.tree.leaves(self.state), [np.float64(value), np.asarray(x)]

    def restore(self, state: Sequence, best: Sequence) -> None:
        """Put back what `export` gave; the engine must have been started."""
        old, structure = jax.tree.flatten(self.state)
        if len(old) != len(state):
            raise ValueError("the arrays in the checkpoint are not those of this solver's state")
        self.state = jax.tree.unflatten(structure, [_as_was(new, was) for new, was in zip(state, old, strict=True)])
        self.best = (float(best[0]), best[1])


def _as_was(new: Any, was: Any) -> Any:
    """A stored leaf in the Python type the solver works with."""
    if isinstance(was, bool | int | float):
        return type(was)(new)
    if isinstance(was, np.generic):
        return was.dtype.type(new)
    return new
