"""What particles say: draws, expectations, estimates of ``log Z`` with their errors, a certificate."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, Interval, Subject
from cumulant.errors import CumulantError
from cumulant.particles.bridges import Bridge
from cumulant.particles.engine import Outcome, Settings
from cumulant.sampling.diagnostics import log_mean_exp
from cumulant.sampling.draws import Draws
from cumulant.sampling.resampling import resample

if TYPE_CHECKING:
    from cumulant.particles.islands import Runs


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
        return Subject(self.runs, np.concatenate([outcome.independent for outcome in self.outcomes]))

    def log_partition(self, kind: str | None = None) -> float:
        """An estimate of ``log Z``; of several islands, the logarithm of the mean of ``Z``.

        `kind` is ``"smc"``, the product of mean weights, or another that the method offers (`kinds`); by default the
        one that the method recommends.
        """
        self._require_end()
        values = [
            each.log_z if (kind or self.default_kind) == "smc" else self._kind(each, kind) for each in self.outcomes
        ]
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
        return ("smc", *self.outcomes[0].kinds)

    def _kind(self, outcome: Outcome, kind: str | None) -> float:
        return outcome.kinds[checks.choice("kind", kind or self.default_kind, self.kinds)]

    @property
    def log_partition_error(self) -> float:
        """The standard error of ``log Z`` by ``"smc"``: from the ancestors of the particles (see `Outcome`), or, where
        they do not say it, from the spread of the islands; infinite where that is not known either.
        """
        return self._error[0]

    @property
    def _error(self) -> tuple[float, int]:
        """The standard error and its degrees of freedom."""
        logs = np.array([each.log_z for each in self.outcomes])
        if logs.max() == -math.inf:
            return math.inf, 1
        shares = np.exp(logs - logs.max())
        variances = np.array([each.variance for each in self.outcomes])
        if not np.isfinite(variances).all():
            return self.replicate_error, max(len(self.outcomes) - 1, 1)
        error = float(np.sqrt(np.sum(shares**2 * variances)) / shares.sum())
        return error, sum(each.freedom for each in self.outcomes)

    @property
    def replicate_error(self) -> float:
        """The standard error of the same from the spread of the islands; infinite for a single one."""
        return log_mean_exp([each.log_z for each in self.outcomes])[1]

    def interval(self, level: float = 0.95) -> Interval:
        """Where ``log Z`` is with about this probability: an approximation for many particles, not a certificate."""
        from scipy.special import stdtrit

        checks.fraction("level", level)
        error, freedom = self._error
        # log Z-hat is about normal with mean log Z - error^2 / 2: a logarithm of a mean is too small on average.
        centre = self.log_partition("smc") + error**2 / 2
        if not math.isfinite(error):
            return Interval(-math.inf, math.inf)
        half = float(stdtrit(freedom, (1 + level) / 2)) * error
        return Interval(centre - half, centre + half, centre)

    @property
    def draws(self) -> Draws:
        """All particles with their weights, an island in each row."""
        logs = np.stack([each.population.log_weights + each.log_z for each in self.outcomes])
        values = np.stack([self.bridge.draws(each.population.x) for each in self.outcomes])
        kept = [each.ancestors for each in self.outcomes if each.ancestors is not None]
        settings = {"seed": self.seed, "n_particles": self.settings.n_particles, "n_islands": len(self.outcomes)}
        return Draws(
            values,
            self.method,
            settings,
            getattr(self.bridge, "shapes", None),
            logs if np.isfinite(logs.max()) else np.zeros_like(logs),
            self.log_partition("smc") if self.status == "converged" else None,
            self.log_partition_error,
            np.stack(kept, axis=1) if len(kept) == len(self.outcomes) else None,
        )

    def mean(self) -> np.ndarray:
        """The weighted mean of the particles."""
        return self.draws.mean()

    def expect(self, function: Callable[[np.ndarray], Any]) -> Any:
        """The weighted mean of a function of the particles: it gets all states ``(n, ...)`` and returns a row each."""
        return self.draws.mean(function)

    @property
    def ess(self) -> float:
        """The effective number of particles at the end, over all islands. It does not see modes that none reached."""
        return self.draws.effective_sample_size()

    @property
    def trace(self) -> dict[str, np.ndarray]:
        """Step by step: `ess`, `log_z`, `resampled` and what the bridge records, ``(islands, steps + 1)``; of a single
        island ``(steps + 1,)``.
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
        """``log Z - log Z'`` against another result, and its standard error."""
        checks.instance("other", other, ParticleResult, "a ParticleResult")
        difference = self.log_partition(kind) - other.log_partition(kind)
        return difference, math.hypot(self.log_partition_error, other.log_partition_error)

    def to_arviz(self, name: str = "x", *, rng: Any = 0) -> Any:
        """The particles for ArviZ, resampled to equal weights, an island as a chain."""
        draws, rng = self.draws, np.random.default_rng(rng)
        assert draws.log_weights is not None
        rows = [values[resample(logs, rng=rng)] for values, logs in zip(draws.values, draws.log_weights, strict=True)]
        return Draws(np.stack(rows), self.method, draws.settings, draws.variables).to_arviz(name)

    def _error_in_words(self) -> str:
        error = self.log_partition_error
        return f" ± {error:.2g}" if math.isfinite(error) else ", error not known: run several islands"

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
