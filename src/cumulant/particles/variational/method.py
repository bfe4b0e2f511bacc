"""`variational_smc`: particles that walk through a family by descending the KL divergence to the target."""

import dataclasses
import warnings
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Interval
from cumulant.errors import CumulantError
from cumulant.optim.interior_point.step_sizes import Harmonic, check_robbins_monro
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult
from cumulant.particles.variational.bridge import RULES, VariationalBridge
from cumulant.particles.variational.family import TwoBlockFamily, require_family
from cumulant.particles.variational.lattice import TYINGS, as_family
from cumulant.particles.variational.safeguards import MODES, Safeguard


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class VariationalResult(ParticleResult):
    """Particles of ``p(x; theta_K)``, which is not the target, and how far from it they stopped.

    Without a `finish` the particles have the distribution at ``theta_K``; `kl` estimates what is missing. With one
    they were annealed from there to the target. Besides what every result has, `trace` holds at each step `bound`,
    `distance` from the target, `step_size` and `rule`, the number in ``RULES`` of what set the step size.
    """

    @property
    def family(self) -> TwoBlockFamily:
        """The family of the bridge."""
        return self.bridge.family  # type: ignore[attr-defined]

    @property
    def path(self) -> list[np.ndarray]:
        """All parameters of each island, ``(steps + 1, dim)``."""
        return [np.array(each.population.memory.path) for each in self.outcomes]

    @property
    def theta(self) -> np.ndarray:
        """``theta_K`` of each island, ``(islands, dim)``: the last one before the finish."""
        return np.array([path[: self.bridge.n_steps + 1][-1] for path in self.path])  # type: ignore[attr-defined]

    @property
    def distance(self) -> np.ndarray:
        """``|theta_K - theta*|`` of each island."""
        return np.linalg.norm(self.theta - self.family.target, axis=1)

    def log_partition(self, kind: str | None = None) -> float:
        """An estimate of ``log Z``: see `variational_smc` for the kinds. Of several islands, the logarithm of the mean
        of ``Z``; of bounds their mean, which is a lower bound again.
        """
        if (kind or self.default_kind) == "bound" and self.status == "converged":
            return float(np.mean([self._kind(each, "bound") for each in self.outcomes]))
        return super().log_partition(kind)

    def interval(self, level: float = 0.95) -> Interval:
        """Refused: the bias of a path that looks at its particles is as large as the error that they show."""
        raise CumulantError(
            "particles that design their own path have a bias that their spread does not show, so that there is no "
            "interval for log Z; give finish, a number of steps, and pilot=True"
        )

    @property
    def kl(self) -> np.ndarray:
        """An estimate of ``KL(p_theta_K | p_target)`` of each island: ``log Z`` of the target minus the bound.

        ``log Z`` is that of the finish, or without one that of the jump; a jump with an effective size near one is too
        small, and so is the estimate then.
        """
        self._require_end()
        if any(each.log_z == -np.inf for each in self.outcomes):
            raise CumulantError("every particle of an island has weight zero: the estimate of its Z is 0")
        target = [self._kind(each, "smc" if self.default_kind == "smc" else "jump") for each in self.outcomes]
        return np.array(target) - np.array([self._kind(each, "bound") for each in self.outcomes])

    @property
    def jump_ess(self) -> np.ndarray:
        """The effective number of particles after a jump from ``theta_K`` to the target, of each island."""
        return np.array([each.population.memory.jump_ess for each in self.outcomes])

    @property
    def lost_variance(self) -> np.ndarray:
        """The sum of ``sum W^2 - 1/n`` over the resamplings of each island, which resampling turns into noise."""
        n = self.settings.n_particles
        return np.array([
            float(np.sum(each.trace["resampled"] * (1 / each.trace["ess"] - 1 / n))) for each in self.outcomes
        ])  # fmt: skip

    def active_rules(self) -> dict[str, int]:
        """How many steps each rule set the length of, over all islands."""
        numbers = np.concatenate([each.trace["rule"][1:] for each in self.outcomes]).astype(int)
        return {rule: int(np.sum(numbers == i)) for i, rule in enumerate(RULES)}

    def __str__(self):
        text = super().__str__()
        if self.status != "converged":
            return text
        where = "ended at the target" if self.bridge.finish else "the particles are those of theta_K"  # type: ignore[attr-defined]
        return (
            f"{text}\n  theta_K is {np.median(self.distance):.4g} from the target, KL about {np.median(self.kl):.3g} "
            f"nats; {where}"
        )


def variational_smc(
    model: Any,
    n_particles: int = 100,
    n_steps: int = 250,
    *,
    family: str = "global",
    step_size: Any = 0.65,
    safeguard: Safeguard | str = "joint-quadratic",
    gradient: str = "plain",
    curvature: str = "bfgs",
    finish: int | None = None,
    pilot: bool = False,
    penalty: float = 0.0,
    resampling: str = "stratified",
    ess_threshold: float = 0.5,
    n_islands: int = 1,
    delta: float = 0.05,
    rng: Any = None,
    progress: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    client: Any = None,
) -> ParticleResult:
    """Particles that design their own path to a target: variational sequential Monte Carlo.

    Weighted particles walk through ``p(x; theta_0), p(x; theta_1), ...`` inside an exponential family that holds the
    target ``p(x; theta*)``. The next parameter is a quasi-Newton step on ``F(theta) = KL(p_theta | p_theta*)``, whose
    gradient ``Cov_theta[t] (theta - theta*)`` is estimated from the particles; its length is cut so that the weights
    ``f_A(x_A; theta_k) / f_A(x_A; theta_(k-1))`` cannot degenerate. Both blocks are then drawn given each other.

    **What comes out is not the posterior.** Particles target ``p(x; theta_K)``. Where ``Cov_theta[t]`` is nearly zero
    the surface is flat, and the method stops far from ``theta*`` with a small divergence left; elsewhere the safeguard
    may stop it early. `VariationalResult.distance` and `kl` say how far. With `finish`, a straight path of that many
    steps leads on to the target.

    Kinds of `log_partition`: ``"smc"``, the product of mean weights, estimates ``c(theta_K)`` (with `finish`
    ``c(theta*)``); ``"bound"``, ``c(theta_K) - <mu, theta_K - theta*>``, estimates a lower bound on ``c(theta*)`` that
    is low by ``F(theta_K)``; ``"jump"`` weighs the particles at ``theta_K`` to the target in one step. By default the
    bound, and with `finish` the product.

    No guarantee comes with a path that looks at its particles: the estimates are biased, which standard errors do not
    show, and there is no certificate and no interval. With `pilot` another population designs the path and fresh
    particles run it: ``E exp(log_z) = Z`` then, with a certificate. That the steps converge is not proved: ``F`` is not
    convex in ``theta``.

    Parameters
    ----------
    model : Ising or TwoBlockFamily
    n_particles, n_steps : int
    family : str
        For an Ising model: couplings tied into one parameter (``"global"``), one for each sign (``"sign"``) or free
        (``"edge"``); see `IsingFamily`.
    step_size : float or schedule
        The longest steps: ``(1 + k)^-exponent`` for a number, which should be above 0.5 and at most 1 for the
        conditions of Robbins and Monro; or a function of ``k = 0, 1, ...``.
    safeguard : Safeguard or str
        The rule on the weights; see `Safeguard`. ``"exact"`` takes longer steps at the cost of 25 more evaluations.
    gradient : str
        ``"plain"``, or ``"rb"`` with one block summed out: less noise for more work.
    curvature : str
        ``"bfgs"`` (damped), ``"bb"`` (one number, damped) or ``"none"`` (steepest descent).
    finish : int, optional
        Steps of a straight path from ``theta_K`` to ``theta*``.
    pilot : bool
        Run a population of `n_particles` for its path, and then all islands on that path; needs `finish`.
    penalty : float
        Experimental: adds this times the gradient of the variance of the weights to the gradient.
    resampling, ess_threshold, n_islands, delta, rng, progress, time_limit, n_jobs, client
        As for `run`; `delta` is for the certificate of a `pilot`.

    References
    ----------
    Carbonetto (2009), PhD thesis, chapter 3; Carbonetto, King and Hamze (2009), "A stochastic approximation method for
    inference in probabilistic graphical models".

    Examples
    --------
    A ferromagnet far below its critical temperature, whose two modes a tempered path loses:

    >>> from cumulant.graphical import Ising, torus
    >>> result = variational_smc(Ising(torus(8, 8), 2.0), n_steps=100, finish=50, rng=0)
    >>> bool(abs(result.log_partition() - (256 + np.log(2))) < 1.0)
    True
    >>> result.distance.shape, result.kinds
    ((1,), ('smc', 'bound', 'jump'))
    """
    checks.choice("family", family, TYINGS)
    checks.instance("pilot", pilot, bool, "True or False")
    chosen = require_family(as_family(model, family))
    schedule = step_size
    if not callable(step_size):
        schedule = Harmonic(1.0, power=float(checks.positive("step_size", step_size)))
        report = check_robbins_monro(schedule)
        if not report:
            broken = "sum a_k = inf" if not report.sum_diverges else "sum a_k^2 < inf"
            warnings.warn(
                f"step sizes (1 + k)^-{step_size:g} break the condition {broken} of Robbins and Monro; exponents above "
                "0.5 and at most 1 satisfy both",
                stacklevel=2,
            )
    rule = Safeguard(checks.choice("safeguard", safeguard, MODES)) if isinstance(safeguard, str) else safeguard
    checks.instance("safeguard", rule, Safeguard, "a Safeguard, or the name of its mode")
    last = 0 if finish is None else checks.whole("finish", finish)
    bridge: Any = VariationalBridge(chosen, n_steps, schedule, rule, gradient, curvature, last, penalty=penalty)
    if pilot and finish is None:
        raise ValueError("pilot needs finish, a number of steps: the path that is kept must end at the target")
    found = run(
        bridge,
        n_particles,
        n_islands=n_islands,
        resampling=resampling,
        ess_threshold=ess_threshold,
        pilot=pilot,
        delta=delta,
        method="variational_smc",
        total=bridge.total,
        rng=rng,
        progress=progress,
        time_limit=time_limit,
        n_jobs=n_jobs,
        client=client,
    )
    if pilot:
        return found
    return VariationalResult(**{each.name: getattr(found, each.name) for each in dataclasses.fields(found)})
