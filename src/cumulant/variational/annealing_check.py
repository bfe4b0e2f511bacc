"""A second opinion on a fit: short annealed importance sampling from the Gaussian to the target."""

import dataclasses
import math
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.families import MultivariateNormalIsotropic
from cumulant.sampling import HMC, Draws, GeometricPath, annealed_importance_sampling, lower_from_estimates
from cumulant.variational.result import GaussianFit
from cumulant.variational.whitening import whitened


@dataclasses.dataclass(frozen=True, eq=False)
class AnnealingCheck:
    """What particles that moved from the Gaussian to the target say: estimates with standard errors.

    Attributes
    ----------
    mean_shift, mean_error : array (dim,)
        How far the means of the target are from those of the fit, in standard deviations of the fit, and the standard
        errors.
    scale_ratio, scale_error : array (dim,)
        Standard deviations of the target over those of the fit, and the standard errors.
    log_evidence, log_evidence_error : float
        Of ``log Z``; the fit's ELBO is below it by ``KL(q | p)``.
    log_evidence_lower : float
        Below ``log Z`` with probability ``1 - delta`` (Markov's inequality on independent particles).
    effective_share : float
        The effective share of the particles under their weights.
    agrees : bool
        No mean is off by more than a quarter of a standard deviation and no scale by more than a quarter, each with
        two standard errors allowed, and at least a tenth of the particles count.
    draws : Draws
        The weighted particles, in the coordinates of the target.
    """

    mean_shift: np.ndarray
    mean_error: np.ndarray
    scale_ratio: np.ndarray
    scale_error: np.ndarray
    log_evidence: float
    log_evidence_error: float
    log_evidence_lower: float
    effective_share: float
    agrees: bool
    draws: Draws

    def __str__(self):
        worst, wide = int(np.argmax(np.abs(self.mean_shift))), int(np.argmax(np.abs(np.log(self.scale_ratio))))
        return (
            f"annealing {'agrees with' if self.agrees else 'contradicts'} the fit: a mean moves by up to "
            f"{self.mean_shift[worst]:.2f} ± {self.mean_error[worst]:.2f} standard deviations, a scale by a factor of "
            f"{self.scale_ratio[wide]:.2f} ± {self.scale_error[wide]:.2f}\n"
            f"  log Z {self.log_evidence:.6g} ± {self.log_evidence_error:.2g}, "
            f"{self.effective_share:.0%} of the particles count"
        )


def check_by_annealing(
    fit: GaussianFit,
    n: int = 500,
    *,
    temperatures: int = 20,
    leapfrog: int = 5,
    step_size: float | None = None,
    delta: float = 0.01,
    rng: Any = 0,
) -> AnnealingCheck:
    """Move `n` draws of a fit to its target by annealed importance sampling, and compare moments.

    Particles start at the Gaussian and move by Hamiltonian steps in the coordinates in which it is a standard normal.
    A mode that no particle can reach stays unseen: agreement is evidence, not proof.

    Parameters
    ----------
    fit : GaussianFit
    n : int
        Particles.
    temperatures : int
        Steps from the Gaussian to the target, with one trajectory of up to `leapfrog` steps at each.
    step_size : float, optional
        Of the leapfrog steps; ``dim^(-1/4)`` by default.

    Examples
    --------
    >>> from cumulant import variational as vi
    >>> posterior = vi.fit(vi.logistic_regression([[1.0], [2.0], [-1.0]], [1, 1, 1]))
    >>> check_by_annealing(posterior, 300, rng=0).agrees
    True
    """
    checks.instance("fit", fit, GaussianFit, "a GaussianFit, as vi.fit returns")
    checks.whole("temperatures", temperatures)
    checks.whole("leapfrog", leapfrog)
    if step_size is not None:
        checks.positive("step_size", step_size)
    d = len(fit.mean)
    family = MultivariateNormalIsotropic(d)
    theta = family.natural(mean=np.zeros(d), variance=1.0)
    path = GeometricPath(family, theta, whitened(fit.target, fit.mean, fit.scale))
    sampler = HMC(d**-0.25 if step_size is None else step_size, leapfrog)
    seed = randomness.seed(rng)
    particles = annealed_importance_sampling(path, sampler, n, temperatures=temperatures, rng=seed)
    logs = particles.log_weights
    assert logs is not None
    deviations = fit.deviations
    v = particles.flat @ (fit.scale / deviations[:, None]).T  # standard deviations of the fit from its mean
    weights = particles.weights.ravel()
    shift = weights @ v
    centred = v - shift
    variance = weights @ centred**2
    error = np.sqrt(weights**2 @ centred**2)
    scale = np.sqrt(variance)
    scale_error = np.sqrt(weights**2 @ (centred**2 - variance) ** 2) / (2 * scale)
    volume = float(np.sum(np.log(np.diagonal(fit.scale))))
    share = float(1 / (n * np.sum(weights**2)))
    off = np.abs(shift) - 2 * error
    stretched = np.abs(np.log(scale)) - 2 * scale_error / scale
    agrees = bool(np.all(off <= 0.25) and np.all(stretched <= 0.25) and share >= 0.1)
    assert particles.log_normaliser is not None
    return AnnealingCheck(
        shift, error, scale, scale_error,
        particles.log_normaliser + volume, float(particles.log_normaliser_error or math.inf),
        lower_from_estimates(logs.ravel(), delta) + volume, share, agrees,
        Draws(fit.mean + particles.values @ fit.scale.T, "annealed", dict(particles.settings), fit.target.shapes, logs),
    )  # fmt: skip
