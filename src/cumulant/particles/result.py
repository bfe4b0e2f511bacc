"""What particles say: draws, expectations, estimates of ``log Z`` with their errors, a certificate."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, Interval, Subject, rounding
from cumulant.errors import CumulantError
from cumulant.particles.bridges import Bridge
from cumulant.particles.engine import NO_SPREAD, Outcome, Settings
from cumulant.sampling.diagnostics import log_mean_exp
from cumulant.sampling.draws import Draws
from cumulant.sampling.resampling import resample

if TYPE_CHECKING:
    from cumulant.particles.islands import Runs

_LARGEST_ERROR = 0.5  # of log Z: beyond it a spread of weights says little of the weights that were not seen


def rounding_slack(outcomes: Sequence[Outcome], bridge: Bridge) -> float:
    """What rounding may have done to estimates of ``log Z``, from the largest number on their way. Where large terms of
    a bridge may cancel, its `magnitude` says how large they were.
    """
    logs = np.concatenate([each.trace["log_z"] for each in outcomes])
    size = float(np.abs(logs[np.isfinite(logs)]).max(initial=1.0)) + getattr(bridge, "magnitude", 0.0)
    return rounding(size, terms=1e3) + 1e-9 * size


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ParticleResult:
    """Weighted particles, and estimates of ``log Z``.

    Attributes
    ----------
    method : str
    bridge : Bridge
        The sequence of distributions.
    outcomes : list of Outcome
        One for each island.
    certificate : Certificate or None
        A lower bound on ``log Z`` with probability ``1 - delta``; None where the path was designed by the particles
        themselves (see `Bridge.fixed`) or the run was stopped.
    """

    method: str
    bridge: Bridge
    settings: Settings
    seed: int
    outcomes: Sequence[Outcome]
    certificate: Certificate | None
    runs: "Runs"

    @property
    def status(self) -> str:
        """``"converged"`` where every island reached the end of its path; ``"time_limit"``, ``"interrupted"``."""
        return next((each.status for each in self.outcomes if each.status != "converged"), "converged")

    @property
    def lost(self) -> int:
        """How many islands were lost with their workers; the answer is that of the others."""
        return self.runs.lost

    @property
    def subject(self) -> Subject:
        """What the certificate speaks of: ``result.certificate.verify(result.subject)`` runs every island again."""
        return Subject(self.runs, self.runs.estimates(self.outcomes))

    def log_partition(self, kind: str | None = None) -> float:
        """An estimate of ``log Z``; of several islands, the logarithm of the mean of ``Z``.

        `kind` is ``"smc"``, the product of mean weights, or another that the method offers (`kinds`); by default the
        one that the method recommends.
        """
        self._require_end()
        values = [self._kind(each, kind) for each in self.outcomes]
        if max(values) == -math.inf:
            return -math.inf
        return log_mean_exp(values)[0]

    @property
    def default_kind(self) -> str:
        """The kind of estimate that `log_partition` gives when it is not told which."""
        return getattr(self.bridge, "default_kind", "smc")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of estimates of ``log Z`` there are."""
        found = max((each.kinds for each in self.outcomes), key=len)  # an island whose weights are all zero has none
        return tuple(dict.fromkeys(("smc", self.default_kind, *found)))

    def _kind(self, outcome: Outcome, kind: str | None) -> float:
        """That of an island; zero is the estimate of ``Z`` where none of its particles was possible."""
        name = checks.choice("kind", self.default_kind if kind is None else kind, self.kinds)
        if name == "smc":
            return outcome.log_z
        return outcome.kinds[name] if outcome.log_z > -math.inf else -math.inf

    @property
    def log_partition_error(self) -> float:
        """The standard error of ``log Z`` by ``"smc"``: from the ancestors of the particles (see `Outcome`), or, where
        they do not say it, from the spread of the islands.

        Infinite where that is not known either: where there is no spread at all, although the weights of other states
        may differ (particles that are all in one frozen state weigh the same), where islands communicate, and where it
        would be above 0.5, which is to say that a few particles have most of the weight.
        """
        return self._error[0]

    @property
    def _error(self) -> tuple[float, int]:
        """The standard error and its degrees of freedom."""
        logs = np.array([each.log_z for each in self.outcomes])
        if logs.max() == -math.inf or self.runs.exchange is not None:
            return math.inf, 1
        shares = np.exp(logs - logs.max())
        variances = np.array([each.variance for each in self.outcomes])
        if not np.isfinite(variances).all():
            error, freedom = self.replicate_error, max(len(self.outcomes) - 1, 1)
        else:
            error = float(np.sqrt(np.sum(shares**2 * variances)) / shares.sum())
            freedom = sum(each.freedom for each in self.outcomes)
        return (error if error <= _LARGEST_ERROR else math.inf), freedom

    @property
    def replicate_error(self) -> float:
        """The standard error of the same from the spread of the islands; infinite for a single one, where they
        communicate, and where they have no spread although the path has weights that can differ.
        """
        return self._spread([each.log_z for each in self.outcomes])

    def _spread(self, logs: Sequence[float]) -> float:
        if max(logs) == -math.inf or self.runs.exchange is not None:
            return math.inf
        error = log_mean_exp(logs)[1]
        return error if error > NO_SPREAD or getattr(self.bridge, "exact", False) else math.inf

    def interval(self, level: float = 0.95) -> Interval:
        """Where ``log Z`` is with about this probability: an approximation for many particles, not a certificate.

        It is the whole line where the error is not known. It does not know of modes that no particle has reached, nor
        of tails that few have: on targets with heavier tails than the start it is too low. It holds a little less
        often than it says, 0.92 in place of 0.95 on small lattices, where 200 particles chose their own temperatures
        or approximations, and where the weights of 500 that were never resampled are very uneven (an effective size of
        a fifth).
        """
        from scipy.special import stdtrit

        checks.fraction("level", level)
        error, freedom = self._error
        if not math.isfinite(error):
            return Interval(-math.inf, math.inf)
        # log Z-hat is about normal with mean log Z - error^2 / 2: a logarithm of a mean is too small on average.
        centre = self.log_partition("smc") + error**2 / 2
        half = float(stdtrit(freedom, (1 + level) / 2)) * error + rounding_slack(self.outcomes, self.bridge)
        return Interval(centre - half, centre + half, centre)

    @property
    def draws(self) -> Draws:
        """All particles with their weights, an island in each row."""
        self._require_weights()
        logs = np.stack([each.population.log_weights + each.log_z for each in self.outcomes])
        values = np.stack([self.bridge.draws(each.population.x) for each in self.outcomes])
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise CumulantError(f"particles of {type(self.bridge).__name__} are NaN: its draws or moves made them so")
        kept = [each.ancestors for each in self.outcomes if each.ancestors is not None]
        settings = {"seed": self.seed, "n_particles": self.settings.n_particles, "n_islands": len(self.outcomes)}
        return Draws(
            values,
            self.method,
            settings,
            getattr(self.bridge, "shapes", None),
            logs,
            self.log_partition("smc") if self.status == "converged" else None,
            self.log_partition_error,
            np.stack(kept, axis=1) if len(kept) == len(self.outcomes) else None,
        )

    def mean(self) -> np.ndarray:
        """The weighted mean of the particles."""
        return self.draws.mean()

    def expect(self, function: Callable[[np.ndarray], Any]) -> Any:
        """The weighted mean of a function of the particles: it gets all states ``(n, ...)`` and returns a row each."""
        draws = self.draws
        found = np.asarray(checks.takes("function", function, "states")(draws.flat))
        if found.shape[:1] != (len(draws),) or found.dtype.kind not in "biufc":
            raise ValueError(
                f"function must give a number, or a row of them, for each of the {len(draws)} states; got an array of "
                f"{found.dtype} of shape {found.shape}"
            )
        return draws.mean(lambda _: found)

    @property
    def ess(self) -> float:
        """The effective number of particles at the end, over all islands, zero where every weight is zero. It does not
        see modes that none reached.
        """
        return self.draws.effective_sample_size() if self._possible else 0.0

    @property
    def trace(self) -> dict[str, np.ndarray]:
        """Step by step: `ess`, `log_z`, `resampled`, `weight_variance` and what the bridge records, ``(islands, steps +
        1)``; of a single island ``(steps + 1,)``. `weight_variance` is the squared coefficient of variation of what the
        weights were multiplied by in that one step.
        """
        if len(self.outcomes) == 1:
            return self.outcomes[0].trace
        longest = max(each.trace["ess"].size for each in self.outcomes)
        return {
            name: np.stack([
                np.pad(each.trace[name].astype(float), (0, longest - each.trace[name].size), constant_values=np.nan)
                for each in self.outcomes
            ])
            for name in self.outcomes[0].trace
        }  # fmt: skip

    def bayes_factor(self, other: "ParticleResult", kind: str | None = None) -> tuple[float, float]:
        """``log Z - log Z'`` against another result, and its standard error.

        Both must be of one kind. For kinds other than ``"smc"`` the error is that of the spread of the islands; of a
        bound it does not hold what the bound is low by.
        """
        checks.instance("other", other, ParticleResult, "a ParticleResult")
        if kind is None and self.default_kind != other.default_kind:
            raise ValueError(
                f"the estimates are of different kinds, {self.default_kind!r} and {other.default_kind!r}, which differ "
                "by what a bound is low by: give kind, or a finish to the method with a bound"
            )
        one, two = self.log_partition(kind), other.log_partition(kind)
        if max(one, two) == -math.inf:
            raise CumulantError("both estimates of Z are zero: they have no ratio")
        return one - two, math.hypot(self._kind_error(kind), other._kind_error(kind))

    def _kind_error(self, kind: str | None) -> float:
        if (self.default_kind if kind is None else kind) == "smc":
            return self.log_partition_error
        return self._spread([self._kind(each, kind) for each in self.outcomes])

    def to_arviz(self, name: str = "x", *, rng: Any = 0) -> Any:
        """The particles for ArviZ, resampled to equal weights, an island as a chain.

        Chains count alike there, where `mean` and `expect` weigh islands by their estimates of ``Z``. Islands where no
        particle was possible are left out.
        """
        draws, rng = self.draws, np.random.default_rng(rng)
        assert draws.log_weights is not None
        possible = draws.log_weights.max(axis=1) > -np.inf
        rows = [
            values[resample(logs, rng=rng)]
            for values, logs in zip(draws.values[possible], draws.log_weights[possible], strict=True)
        ]
        return Draws(np.stack(rows), self.method, draws.settings, draws.variables).to_arviz(name)

    def _error_in_words(self) -> str:
        error = self.log_partition_error
        return f" ± {error:.2g}" if math.isfinite(error) else ", error not known (see log_partition_error)"

    @property
    def _possible(self) -> bool:
        """Whether any particle has a weight."""
        return any(each.log_z > -math.inf for each in self.outcomes)

    def _require_weights(self) -> None:
        if not self._possible:
            raise CumulantError(
                "every particle has weight zero, so that there are no draws: the estimate of Z is 0, and more "
                "particles or more steps may find states that are possible"
            )

    def _require_end(self) -> None:
        if self.status != "converged":
            raise CumulantError(
                f"the run was stopped ({self.status}) before its end, so that there is no estimate of log Z; "
                "result.trace['log_z'] has those of the distributions on the way"
            )

    def __repr__(self):
        islands = f", {len(self.outcomes)} islands" if len(self.outcomes) > 1 else ""
        islands += f", {self.lost} lost" if self.lost else ""
        return f"ParticleResult({self.method}, {self.settings.n_particles} particles{islands}, {self.status})"

    def __str__(self):
        if self.status != "converged":
            return repr(self)
        lines = [
            f"{self.method}: log Z = {self.log_partition():.6g}"
            + (self._error_in_words() if self.default_kind == "smc" else f" ({self.default_kind})"),
            f"  {self.ess:.0f} of {self.settings.n_particles * len(self.outcomes)} particles count, "
            f"{int(np.nansum(self.trace['resampled']))} resamplings",
        ]
        if self.lost:
            lines.append(f"  {self.lost} of {self.lost + len(self.outcomes)} islands were lost with their workers")
        lines += [f"  {kind}: {self.log_partition(kind):.6g}" for kind in self.kinds if kind != self.default_kind]
        if self.certificate is not None:
            lines.append("  " + str(self.certificate).splitlines()[0])
        return "\n".join(lines)
