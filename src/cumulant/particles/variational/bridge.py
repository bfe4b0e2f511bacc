"""The bridge that designs itself: each parameter is a safeguarded quasi-Newton step on a KL divergence."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.errors import CumulantError
from cumulant.optim.interior_point.constraints import Bounds
from cumulant.particles.bridges import Population, Start, Step
from cumulant.particles.engine import Outcome
from cumulant.particles.variational.directions import GRADIENTS, Curvature, kl_gradient, search, weighted_covariance
from cumulant.particles.variational.family import TwoBlockFamily
from cumulant.particles.variational.path import ParameterPath, redraw, straight, weigh
from cumulant.particles.variational.safeguards import AllowedStep, Safeguard, safeguarded_step, variance_gradient

RULES = ("schedule", "variance", "ess", "boundary", "finish")  # what set the length of a step; the trace has the number


class Memory(NamedTuple):
    """Where a run is: the parameter, what is known of the Hessian, the multipliers of the bounds, all parameters so
    far, those still to come at the end, and the estimates made at the last variational step.
    """

    theta: np.ndarray
    curvature: Curvature
    multipliers: np.ndarray | None
    path: tuple[np.ndarray, ...]
    finish: np.ndarray | None = None
    bound: float = np.nan
    jump: float = np.nan
    jump_ess: float = np.nan


@dataclasses.dataclass(frozen=True, eq=False)
class VariationalBridge:
    """Descend ``KL(p_theta | p_target)`` over the particles themselves (Carbonetto 2009, figure 3.4).

    See `variational_smc` for what the settings mean.
    """

    family: TwoBlockFamily
    n_steps: int
    schedule: Callable[[int], float]
    safeguard: Safeguard = dataclasses.field(default_factory=Safeguard)
    gradient: str = "plain"
    curvature: str = "bfgs"
    finish: int = 0
    damping: float = 0.75
    penalty: float = 0.0
    fixed: bool = dataclasses.field(default=False, init=False)

    def __post_init__(self):
        checks.whole("n_steps", self.n_steps)
        checks.whole("finish", self.finish, 0)
        checks.instance("safeguard", self.safeguard, Safeguard, "a Safeguard")
        checks.choice("gradient", self.gradient, GRADIENTS)
        checks.fraction("damping", self.damping)
        checks.not_negative("penalty", self.penalty)

    @property
    def default_kind(self) -> str:
        """The product of mean weights speaks of the target only where the path ends there."""
        return "smc" if self.finish else "bound"

    @property
    def exact(self) -> bool:
        """Whether all states have the same weights."""
        return self.family.exact

    @property
    def total(self) -> int:
        """The number of steps."""
        return self.n_steps + self.finish

    @property
    def bounds(self) -> Bounds | None:
        """The constraints on the parameter."""
        lower = self.family.lower
        return None if lower is None or np.isneginf(lower).all() else Bounds(lower)

    def begin(self, n: int, seed: int) -> Start:
        """Exact draws of the start."""
        theta = np.array(self.family.start, dtype=np.float64)
        bounds = self.bounds
        z = None if bounds is None else np.ones(np.asarray(bounds.value(theta)).size)
        memory = Memory(theta, Curvature.begin(self.curvature, theta.size, self.n_steps, z is not None), z, (theta,))
        x = self.family.begin(n, np.random.default_rng([seed, 0, 0]))
        return Start(x, self.family.log_partition_at_start, memory)

    def advance(self, population: Population) -> Step:
        """The next parameter, and the weights of the particles where they are."""
        memory: Memory = population.memory
        if population.step > self.n_steps:
            assert memory.finish is not None
            theta, allowed = memory.finish[population.step - self.n_steps], AllowedStep(np.nan, "finish")
        else:
            theta, allowed, memory = self._choose(population, memory)
        increments = weigh(self.family, population.x[0], memory.theta, theta)
        logs = population.log_weights + increments
        gain = np.logaddexp.reduce(logs)
        with np.errstate(invalid="ignore"):
            weights, log_z = np.exp(logs - gain), population.log_z + gain
        away = theta - self.family.target
        bound = -np.inf
        if np.isfinite(gain):  # else the engine ends the run
            bound = float(log_z - (weights @ self.family.block_means(population.x[0], theta)) @ away)
            self._require_number("block_means", bound, theta)
        memory = memory._replace(theta=theta, path=(*memory.path, theta))
        if population.step == self.n_steps and np.isfinite(gain):
            memory = self._settle(memory, population, logs - gain, log_z, bound)
        last = population.step == self.total
        x = redraw(self.family, population.x, theta, population) if last else population.x
        record = {
            "bound": bound,
            "distance": float(np.linalg.norm(away)),
            "step_size": allowed.step,
            "rule": float(RULES.index(allowed.rule)),
        }
        return Step(x, increments, last, memory, record)

    def _choose(self, population: Population, memory: Memory) -> tuple[np.ndarray, AllowedStep, Memory]:
        """A gradient, a direction, and how far to go."""
        family, theta, weights = self.family, memory.theta, population.weights
        x_A, x_B = population.x
        cap = float(checks.positive(f"step_size({population.step - 1})", self.schedule(population.step - 1)))
        t = family.statistics(x_A, x_B)
        if self.gradient == "rb":
            gradient = kl_gradient(weights, x_A, x_B, theta, family, rao_blackwell=True)
        else:
            gradient = weighted_covariance(weights, t, theta - family.target)
        if self.penalty:
            gradient = gradient + self.penalty * variance_gradient(weights, t)
        if not np.isfinite(gradient).all():
            raise CumulantError(f"the gradient of step {population.step} is not finite, at theta = {theta!r:.120}")
        curvature = memory.curvature.update(self.curvature, theta, gradient, cap, self.damping)
        found = search(theta, gradient, curvature, self.bounds, memory.multipliers, population.step)
        allowed = self._bounded(population, theta, t, found.along, min(cap, found.longest))
        if allowed.rule == "schedule" and found.longest < cap:
            allowed = AllowedStep(allowed.step, "boundary")
        z = memory.multipliers
        if z is not None and found.multipliers is not None:
            z = z + min(cap, found.longest_multipliers) * found.multipliers
        return theta + allowed.step * found.along, allowed, memory._replace(curvature=curvature, multipliers=z)

    def _bounded(
        self, population: Population, theta: np.ndarray, t: np.ndarray, along: np.ndarray, cap: float
    ) -> AllowedStep:
        family, x_A = self.family, population.x[0]
        if self.safeguard.on_weights:
            now = family.block_values(x_A, theta)

            def ratios(step: float) -> np.ndarray:
                return family.block_values(x_A, theta + step * along) - now

            return safeguarded_step(population.weights, t @ along, cap, self.safeguard, log_ratios=ratios)
        if self.safeguard.mode == "rb-quadratic":
            means, spread = family.block_means(x_A, theta) @ along, family.block_products(x_A, theta, along) @ along
            return safeguarded_step(population.weights, means, cap, self.safeguard, curvatures=spread)
        return safeguarded_step(population.weights, t @ along, cap, self.safeguard)

    def _settle(self, memory: Memory, population: Population, logs: np.ndarray, log_z: float, bound: float) -> Memory:
        """What is known at the last variational step: the bound, a jump to the target, and the way there."""
        family = self.family
        jumped = logs + weigh(family, population.x[0], memory.theta, family.target)
        self._require_number("log_block", jumped.sum(), family.target)
        top = np.logaddexp.reduce(jumped)
        ess = float(np.exp(-np.logaddexp.reduce(2 * (jumped - top))))
        finish = straight(memory.theta, family.target, self.finish) if self.finish else None
        return memory._replace(bound=bound, jump=float(log_z + top), jump_ess=ess, finish=finish)

    def _require_number(self, what: str, value: float, theta: np.ndarray) -> None:
        if np.isnan(value):
            raise FloatingPointError(f"{what} of {type(self.family).__name__} is NaN at theta = {theta!r:.120}")

    def move(self, population: Population) -> Any:
        """The move of the family; both blocks are kept, as the safeguard needs whole particles."""
        return self.family.move(population.x, population.memory.theta, population.generator())

    def kinds(self, population: Population) -> dict[str, float]:
        """The lower bound on the target's log-normaliser at the last variational step, and the jump from there."""
        return {"bound": population.memory.bound, "jump": population.memory.jump}

    def draws(self, x: Any) -> np.ndarray:
        """Those of the family."""
        return self.family.draws(*x)

    def frozen(self, outcome: Outcome) -> ParameterPath:
        """The path of a finished run, for runs with fresh particles: unbiased, with a certificate."""
        if not self.finish:
            raise ValueError("the path must end at the target to be run again: give finish, a number of steps")
        found = outcome.population
        return ParameterPath(self.family, np.array(found.memory.path), designed_by=(found.seed,))
