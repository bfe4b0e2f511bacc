"""The one loop: stopping, tracing, progress, checkpoints, Ctrl-C and the clock live here, once for all solvers."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from cumulant import checks
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, DomainError
from cumulant.optim.driver import checkpoints
from cumulant.optim.driver.checkpoints import Checkpoint, Position
from cumulant.optim.driver.compiled_engine import CompiledEngine
from cumulant.optim.driver.display import Display
from cumulant.optim.driver.fingerprint import fingerprint
from cumulant.optim.driver.flattening import flatten
from cumulant.optim.driver.host_engine import HostEngine
from cumulant.optim.driver.interruption import InterruptedWarning, Interruption
from cumulant.optim.driver.result import Result, Snapshot, Status
from cumulant.optim.driver.trace import Recorder, Trace
from cumulant.optim.driver.window import Window, is_still
from cumulant.optim.problems.base import widen
from cumulant.optim.protocol import Problem, Solver
from cumulant.precision import any_tracer

_CALL = 0.1  # seconds one compiled call should last: short enough for Ctrl-C, the clock and the progress bar
_DEFAULT_STEPS = 1000
_GROWS = 512  # records until, by default, the interval between them begins to double


def run(
    solver: Any,
    problem: Any,
    x0: Any,
    *,
    max_steps: int | None = None,
    tol: float | tuple[float, float] | None = 1e-6,
    residual_tol: float | None = None,
    callback: Callable[[Snapshot], Any] | None = None,
    progress: bool | str | Console | None = None,
    time_limit: float | None = None,
    checkpoint: str | PathLike | Checkpoint | None = None,
    rng: Any = None,
    every: int | None = None,
) -> Result:
    """Run a solver on a problem until it is certified to be close enough, or until a budget is spent.

    Parameters
    ----------
    solver, problem
        See `cumulant.optim.protocol` for what they are. Running the same kind of solver on problems of the same shape
        compiles once.
    x0 : array or pytree of arrays
        The starting point. NumPy or Python numbers: everything is computed in float64 and `result.x` is NumPy. A JAX
        array (or a problem made of them): the caller's own precision. A dictionary, a tuple of arrays or another
        pytree: ``problem.value`` takes such a tree, `result.x` is one, and solvers see one vector of all its leaves
        (a list is an array).
    max_steps : int, optional
        1000 unless `time_limit` says when to end. With ``tol=None``, `Result.work` of a run that the clock, Ctrl-C or a
        callback ended gives its answer again.
    tol : float, pair of floats or None
        The run has converged when the certified bound is at most ``tol * max(|f(x)|, |f(x0)|)``: a *relative*
        distance to the optimum, unchanged when the objective is multiplied by a constant. A pair ``(tol, scale)`` has
        another number in place of ``|f(x0)|``; 0 never converges where the optimum is 0. The bound that the solver
        measures is looked at every `every` steps; only when it is small enough is the certificate computed, in
        float64 from the data, and it decides. Where no further step makes progress (the gradient is zero within
        rounding, a line search finds no step, the solver says that it is stuck, or only the slack of the certificate
        is above `tol`), the run ends as ``"rounding"``, or as ``"stationary"`` where there is no certificate. None:
        the run takes all its steps.
    residual_tol : float, optional
        Also end, as ``"stationary"``, when the residual that the solver measures is at most this: ``|grad f(x)|``, or
        ``|x - prox(x - tau grad f(x))| / tau`` where there is a penalty. It needs no constants, and so no certificate:
        the rule for objectives of which nothing is known. The certificate is still attached where there is one, and
        the run has ``"converged"`` where that is within `tol`.
    callback : callable, optional
        Called with a `Snapshot` at each record. Returning True ends the run as ``"stopped"``, and ``"max_steps"`` as
        that: a budget on something that the solver measures.
    progress : bool, str or rich console, optional
        A bar on the terminal; a string is its title. By default it appears once a run has lasted a second; never where
        there is no terminal.
    time_limit : float, optional
        Seconds, in this process. Checked between compiled calls of about a tenth of a second; compiling is not
        interrupted, and at least one step is taken.
    checkpoint : path or Checkpoint, optional
        Where the run is saved as it goes. If the file is there, the run is resumed, and ends in the
        same answer as if it had never stopped, bit for bit. A checkpoint of another problem, solver, start or seed is
        refused.
    rng : int, numpy.random.Generator or None
        For solvers that draw.
    every : int, optional
        Steps between two records of the trace. By default what the solver suggests, else 1, for the first 1024 records,
        and then twice as many each time that the number of steps has doubled: long runs of cheap steps are not slowed
        down by their records. What is computed does not depend on it, but when it is looked at does.
    Returns
    -------
    Result
        Also when the run is interrupted by Ctrl-C (with an `InterruptedWarning`; for two seconds after it another
        Ctrl-C raises `KeyboardInterrupt`, so that a search over many runs can be ended), and when it diverges (status
        ``"diverged"``, with the best iterate it recorded).

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [1.0, 10.0])
    >>> result = optim.run(optim.GradientDescent(), problem, [0.0, 0.0], tol=1e-10)
    >>> result.status, result.x.round(4)
    ('converged', array([1., 1.]))
    >>> result.certificate.verify(result.subject).bound <= 1e-10 * result.scale
    True
    """
    if time_limit is not None:
        checks.positive("time_limit, in seconds,", time_limit, finite=False)
    if max_steps is None and time_limit is None:
        max_steps = _DEFAULT_STEPS
    budget = None if max_steps is None else checks.whole("max_steps", max_steps, least=0)
    name = f"{type(solver).__name__} on {type(problem).__name__}"
    problem, x0, restore = flatten(problem, x0)
    engine = engine_for(solver, problem, x0)
    x0 = _starting_point(x0)
    if problem.shape is not None and x0.shape != problem.shape:
        raise ValueError(f"x0 must have shape {problem.shape} for this {type(problem).__name__}; got {x0.shape}")
    if isinstance(tol, tuple) and len(tol) != 2:
        raise ValueError(f"tol must be a number, a pair (tol, scale) or None; got {tol}")
    tol, scale = tol if isinstance(tol, tuple) else (tol, None)
    for what, number in (("tol", tol), ("the scale of tol", scale), ("residual_tol", residual_tol)):
        if number is not None:
            checks.not_negative(what, number)
    loop = _Loop(
        engine=engine,
        name=name,
        x0=x0,
        restore=restore,
        rng=rng,
        every=checks.whole("every", every if every is not None else solver.every or 1),
        grows=_GROWS if every is None else 0,
        tol=tol,
        given_scale=scale,
        residual_tol=residual_tol,
        budget=budget,
        time_limit=time_limit,
        callback=callback,
        checkpoint=Checkpoint(checkpoint) if isinstance(checkpoint, str | PathLike) else checkpoint,
    )
    with Interruption() as interruption, Display(progress, loop.name, budget) as display:
        try:
            loop.start()
            status = loop.go(interruption, display) or "max_steps"
        except KeyboardInterrupt:
            if not loop.started or interruption.final:
                raise
            loop.roll_back()
            status = "interrupted"
        loop.save()
        result = loop.result(status)
    if result.status == "interrupted":
        warnings.warn(
            f"{name} was interrupted after {loop.steps} steps: the answer is the best so far. Another Ctrl-C within "
            "two seconds ends the program",
            InterruptedWarning,
            stacklevel=2,
        )
    return result


@dataclass
class _Loop:
    """The settings of a run and its position."""

    engine: CompiledEngine | HostEngine
    name: str
    x0: Any
    restore: Callable[[Any], Any]  # the vector that solvers see as what `x0` was
    rng: Any
    every: int
    grows: int
    tol: float | None
    given_scale: float | None
    residual_tol: float | None
    budget: int | None
    time_limit: float | None
    callback: Callable[[Snapshot], Any] | None
    checkpoint: Checkpoint | None

    recorder: Recorder = field(default_factory=Recorder)
    latest: tuple[int, float, float] = (0, 0.0, math.inf)  # steps, value and bound of the last record
    measures: dict[str, float] = field(default_factory=dict)  # all of that record
    before_call: Any = None  # what to go back to if a call is torn
    steps: int = 0
    scale: float = 0.0
    patience: float = 1.0  # the factor by which the measured bound must undercut `tol` before it is certified again
    still: float = -1.0  # the residual at which the gradient may be zero within rounding
    message: str = ""
    certificate: Certificate | None = None
    started: bool = False
    healthy: bool = False

    def __post_init__(self):
        self.solver, self.problem = self.engine.solver, self.engine.problem
        self.identity = {} if self.checkpoint is None else self._identity()
        self.call_steps = float(self.solver.every or 1)
        self.clock = self.began = time.perf_counter()  # when this process began; `clock` counts earlier ones too
        self.saved_at = self.clock

    def _identity(self) -> dict[str, str]:
        seed = str(int(self.rng)) if isinstance(self.rng, int | np.integer) else "left open"
        parts = {"solver": self.solver, "problem": self.problem, "starting point": self.x0}
        digests = {name: fingerprint(part) for name, part in parts.items()}
        return digests | {
            "seed": seed,
            "precision": self.engine.precision_name,
            "interval of records": f"{self.every} {self.grows}",
        }

    # Going ------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """From the checkpoint if there is one, else from `x0`."""
        self.engine.start(self.x0, self.rng)
        position = None if self.checkpoint is None else checkpoints.load(self.checkpoint, self.identity)
        if position is None:
            out = self.engine.advance(Window(0, 0, self.every, -1.0, 0.0, fresh=True, grows=self.grows), lambda: False)
            if out.diverged or not np.isfinite(out.rows["value"][0]):
                raise DomainError(
                    f"the objective or its gradient is not finite at x0 = {_short(self.x0)}: start inside the domain"
                )
            self.scale = abs(float(out.rows["value"][0])) if self.given_scale is None else self.given_scale
            self._keep(out.rows, 0.0, 0)
        else:
            self.engine.restore(position.state, position.best)
            self.recorder = Recorder(position.trace)
            self.latest = tuple(position.trace[name][-1] for name in ("steps", "value", "bound"))
            self.steps, self.scale, self.patience = position.steps, position.scale, position.patience
            self.clock -= position.seconds
            self.measures = {name: float(column[-1]) for name, column in position.trace.items() if name != "steps"}
            if self.budget is not None and self.steps > self.budget:
                raise ValueError(
                    f"the checkpoint is at step {self.steps} already, beyond the {self.budget} asked for: "
                    "ask for more steps, delete it or choose another path"
                )
        if self.residual_tol is not None and "residual" not in self.measures:
            raise ValueError(f"residual_tol: {type(self.solver).__name__} measures no residual; use tol or a callback")
        if self.tol is not None:
            self.still = self._gradient_rounding() if position is None else position.still
        self.started = self.healthy = True

    def go(self, interruption: Interruption, display: Display) -> Status | None:
        """Until something ends the run; None when the budget did."""
        if self.latest[0] == self.steps and (status := self._ended(self._at_target(), self._at_rest())):
            return status
        first = True  # one call is made in every process, however long compiling took
        while self.budget is None or self.steps < self.budget:
            if interruption.requested:
                return "interrupted"
            if self._time_left() <= 0 and not first:
                return "time_limit"
            first = False
            deadline = time.perf_counter() + min(_CALL, self._time_left())
            before = self.seconds
            self.before_call = (self.engine.state, self.engine.best)
            window = Window(self.steps, 0, self.every, self._target(), self.scale, self.still, False, self.grows)
            window = window._replace(length=self._call_size(window), small=self._small())
            out = self.engine.advance(window, lambda at=deadline: interruption.requested or time.perf_counter() > at)
            self._keep(out.rows, before, out.done)
            self._pace(out.done, self.seconds - before)
            if out.diverged:
                self.healthy = False
                return "diverged"
            if len(out.rows["steps"]):
                display.update(self.steps, self.seconds, *self.latest[1:])
                if status := self._called_back():
                    return status
                if status := self._ended(out.reached, out.still):
                    return status
            if self.checkpoint is not None and time.perf_counter() - self.saved_at >= self.checkpoint.seconds:
                self.save()
        return None

    @property
    def seconds(self) -> float:
        """Since the start, over all processes."""
        return time.perf_counter() - self.clock

    def _time_left(self) -> float:
        return math.inf if self.time_limit is None else self.time_limit - (time.perf_counter() - self.began)

    def _target(self) -> float:
        return -1.0 if self.tol is None else self.tol * self.patience

    def _call_size(self, window: Window) -> int:
        size = int(self.call_steps)
        if self.budget is not None:
            size = min(size, self.budget - self.steps)
        if self.callback is not None:  # which wants to see each record
            size = min(size, window.to_next_record(self.steps))
        return max(size, 1)

    def _pace(self, done: int, seconds: float) -> None:
        """Steps for the next call, so that it lasts about `_CALL`. The answer does not depend on it."""
        ratio = min(_CALL, max(self._time_left(), 0.0)) / max(seconds, 1e-9)
        self.call_steps = min(max(done, 1) * min(max(ratio, 0.5), 32.0), 2.0**23)

    def _keep(self, rows: dict[str, np.ndarray], before: float, done: int) -> None:
        share = (rows["steps"] - self.steps) / max(done, 1)
        self.recorder.add(rows | {"seconds": before + (self.seconds - before) * share})
        if len(rows["steps"]):
            self.latest = (int(rows["steps"][-1]), float(rows["value"][-1]), float(rows["bound"][-1]))
            self.measures = {name: float(column[-1]) for name, column in rows.items() if name != "steps"}
        self.steps += done
        self.before_call = None

    def roll_back(self) -> None:
        """After a Ctrl-C that tore a call: to where the run stood before it, or to nothing if that was consumed."""
        if self.before_call is not None:
            state, best = self.before_call
            self.engine.state, self.engine.best = (None if self.engine.consumes else state), best
            self.recorder.forget_after(self.steps)

    def _called_back(self) -> Status | None:
        if self.callback is None:
            return None
        x = self.engine.solution(self.engine.state)
        snapshot = Snapshot(self.steps, self.seconds, self.latest[1], self.latest[2], self.restore(x), self.measures)
        answer = self.callback(snapshot)
        return (
            "stopped" if answer is True else "max_steps" if isinstance(answer, str) and answer == "max_steps" else None
        )

    # Stopping ---------------------------------------------------------------------------------------------------------

    def _at_target(self) -> bool:
        """Whether the measured bound of the last record is good enough."""
        _, value, bound = self.latest
        return self._target() >= 0 and bound <= self._target() * max(abs(value), self.scale)

    def _at_rest(self) -> bool:
        """Whether the last record says that the run may end before its target."""
        return self._has_small_residual() or bool(is_still(self.measures, self.still))

    def _small(self) -> float:
        return -1.0 if self.residual_tol is None else self.residual_tol

    def _has_small_residual(self) -> bool:
        return self.measures.get("residual", math.inf) <= self._small()

    def _ended(self, reached: bool, still: bool) -> Status | None:
        """What the last record means for the run; None where it continues."""
        if still and (status := self._at_an_end()):
            return status
        return self._confirmed() if reached else None

    def _enough(self) -> float:
        assert self.tol is not None
        return self.tol * max(abs(self.latest[1]), self.scale)

    def _confirmed(self) -> Status | None:
        """What the certificate, computed in float64 from the data, says where the measured bound is small enough.

        It may be larger than the measured one, by rounding or by the precision of the run. Then the loop continues,
        and the measured bound must be half as large before it is certified again; unless the slack alone is more than
        `tol` allows, and most of what is certified.
        """
        try:
            certificate = self.engine.certify(self.engine.state)
        except CertificateError:
            self.patience = -1.0  # it will not be certified however small the bound
            return None
        if certificate.upper <= self._enough():
            self.certificate = certificate
            return "converged"
        if certificate.slack > max(self._enough(), 8 * (certificate.upper - certificate.slack)):
            self.certificate = certificate
            self.message = f"what rounding may add to the bound, {certificate.slack:.2g}, is more than tol allows"
            return "rounding"
        self.patience *= 0.5
        return None

    def _at_an_end(self) -> Status | None:
        """The status of a run that may end before its target; None where the residual is not zero after all."""
        stuck = self.measures.get("stuck", 0.0) != 0
        small = self._has_small_residual()
        if small:
            self.message = f"the residual, {self.measures['residual']:.2g}, is at most residual_tol"
        elif not stuck:
            residual, rounding = self.measures["residual"], self._gradient_rounding()
            if residual > rounding:  # it was not: the rounding at x0 was larger
                self.still = rounding
                return None
            self.message = f"the residual, {residual:.2g}, is zero within rounding ({rounding:.2g})"
        else:
            self.message = "no step makes progress: the values along it differ by no more than rounding"
        try:
            certificate = self.engine.certify(self.engine.state)
        except CertificateError:
            return "stationary"
        self.certificate = certificate
        if self.tol is not None and certificate.upper <= self._enough():
            self.message = ""
            return "converged"
        return "stationary" if small else "rounding"

    def _gradient_rounding(self) -> float:
        """What rounding may have added to the residual at this iterate; 0 where none is measured."""
        if "residual" not in self.measures:
            return 0.0
        x = self.engine.solution(self.engine.state)
        rounding = float(widen(self.problem).gradient_rounding(np.asarray(x, dtype=np.float64)))
        return rounding * max(float(np.finfo(np.asarray(x).dtype).eps) / 2.0**-52, 1.0)

    def save(self) -> None:
        """Write the checkpoint. A run that diverged keeps the last one, from before it did."""
        if self.checkpoint is None or not self.healthy or (self.engine.consumes and self.engine.state is None):
            return
        state, best = self.engine.export()
        trace = self.recorder.table()
        position = Position(state, best, trace, self.steps, self.seconds, self.scale, self.patience, self.still)
        checkpoints.save(self.checkpoint, position, self.identity)
        self.saved_at = time.perf_counter()

    # Ending -----------------------------------------------------------------------------------------------------------

    def result(self, status: Status) -> Result:
        """What the run has to show."""
        engine = self.engine
        table = self.recorder.table()
        state = engine.state
        if status != "diverged" and state is not None and table["steps"][-1] != self.steps:
            row = engine.measure_now()
            if len(row["steps"]):
                row |= {"steps": np.array([self.steps]), "seconds": np.array([self.seconds])}
                table = {name: np.append(table[name], row[name]) for name in table}
            else:
                status = "diverged"
        x = None if state is None else engine.solution(state)
        value = float(table["value"][-1])
        if status != "diverged" and x is not None and not np.all(np.isfinite(x)):
            status = "diverged"
        # An answer that ended the run is certified.
        wants_best = self.solver.returns == "best" and status not in ("converged", "rounding", "stationary")
        if status == "diverged" or x is None or wants_best:
            state, x, value = engine.best_record(table["steps"], table["value"])
        certificate, refusal = self._certificate(state)
        scale = max(abs(value), self.scale)
        if (
            status == "max_steps"
            and certificate is not None
            and self.tol is not None
            and certificate.upper <= self.tol * scale
        ):
            status = "converged"
        return Result(
            x=self.restore(x),
            value=value,
            trace=Trace.from_columns(table),
            certificate=certificate,
            status=status,
            refusal=refusal,
            work=self.steps,
            seconds=self.seconds,
            scale=scale,
            name=self.name,
            state=None if state is None else engine.public(state),
            subject=self._subject(x, state),
            message=self.message,
        )

    def _subject(self, x: Any, state: Any) -> Subject:
        """What the certificate speaks of: the problem and the answer, unless the solver's certificate needs more."""
        own = None if state is None else self.solver.subject(self.problem, self.engine.public(state))
        return Subject(self.problem, x) if own is None else own

    def _certificate(self, state: Any) -> tuple[Certificate | None, str]:
        if state is None:
            return None, "no certificate: the state it needs was consumed by a step that did not end well"
        if self.certificate is not None and state is self.engine.state:
            return self.certificate, ""
        try:
            return self.engine.certify(state), ""
        except CertificateError as refusal:
            return None, str(refusal)


def engine_for(solver: Any, problem: Any, x0: Any) -> CompiledEngine | HostEngine:
    """The engine a solver asks for by its `backend`: many steps in one compiled call, or one at a time on the host.

    An engine holds the state of the run and the best recorded state; `advance` takes some steps and returns the rows it
    recorded on the way. What is computed does not depend on how the steps are cut into calls.
    """
    if not isinstance(solver, Solver):
        raise TypeError(f"solver must be an optim.Solver, such as optim.LBFGS(); got {type(solver).__name__}")
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem must be an optim.Problem, which declares its constants; got {type(problem).__name__}: inherit "
            "from optim.Problem"
        )
    engines = {"jax": CompiledEngine, "host": HostEngine}
    if solver.backend not in engines:
        raise TypeError(f"solver.backend of {type(solver).__name__} must be 'jax' or 'host'; got {solver.backend!r}")
    return engines[solver.backend](solver, problem, x0)


def _starting_point(x0: Any) -> Any:
    if any_tracer(x0):
        raise TypeError("run has a loop of its own and cannot be traced: call solver.step inside jit instead")
    if isinstance(x0, jax.Array):
        x0 = x0 if jnp.issubdtype(x0.dtype, jnp.floating) else x0.astype(float)
    else:
        x0 = checks.real_array("x0", x0, finite=False)
    if not np.all(np.isfinite(np.asarray(x0))):
        raise DomainError(f"x0 must be finite; got {_short(x0)}")
    return x0


def _short(x: Any) -> str:
    return np.array2string(np.asarray(x), threshold=6)
