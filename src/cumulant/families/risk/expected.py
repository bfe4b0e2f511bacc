"""How good is my estimate with ``n`` samples? One question, answered exactly where theory allows."""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, Certificate, Interval, Subject, assume, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.families.base import ExponentialFamily
from cumulant.families.risk._arguments import natural_parameter
from cumulant.families.risk.asymptotics import second_order_risk
from cumulant.families.risk.monte_carlo import monte_carlo_risk
from cumulant.families.risk.theories import Theorem, strength_of, theory
from cumulant.families.statistics import ConjugatePrior

Kind = Literal["exact", "upper bound", "monte carlo", "asymptotic"]
_METHODS = ("auto", "exact", "upper bound", "monte carlo", "asymptotic")


@dataclass(frozen=True)
class Risk:
    """The expected divergence ``E KL(p_{theta*} || p_{theta_n})``, and in which sense.

    Attributes
    ----------
    value : float or array
        One number for each sample size asked about; infinite where the expectation is.
    kind : str
        ``"exact"``, ``"upper bound"``, ``"monte carlo"`` (see `standard_error`) or ``"asymptotic"``.
    standard_error : float or array
        Of a simulated value; 0 where nothing was simulated; infinite where the divergence has no finite variance.
    theorem : str
    certificate : Certificate or None
        Issued where the value is a theorem, finite, and about one sample size; never for simulations and limits.
    subject : Subject or None
        What the certificate speaks of: ``(RiskProblem(family, n, prior, kind), theta_star)``.
    """

    value: Any
    kind: Kind
    standard_error: Any
    theorem: str
    certificate: Certificate | None = None
    subject: Subject | None = None

    def __str__(self):
        if self.certificate is not None:
            return str(self.certificate)
        error = f" ± {np.asarray(self.standard_error)}" if self.kind == "monte carlo" else ""
        return f"E KL(truth || estimate) = {np.asarray(self.value)}{error}  [{self.kind}]\n  by {self.theorem}"


def expected_kl(
    family: ExponentialFamily,
    theta_star: Any,
    n: Any,
    prior: ConjugatePrior | None = None,
    method: str = "auto",
    *,
    trials: int = 10_000,
    rng: Any = None,
) -> Risk:
    """The expected divergence of the truth from its estimate after ``n`` observations.

    Parameters
    ----------
    family, theta_star
        The family and the natural parameter of the truth, shape ``(dim,)``. At an estimate of it the answer is a
        plug-in, except for the families (gamma-type and normal, without a prior) whose risk is the same for every
        truth.
    n : int or array of int
        Sample sizes.
    prior : ConjugatePrior, optional
        None or strength 0: the maximum-likelihood estimate; else the mode of the posterior in natural coordinates.
    method : str
        ``"exact"``: closed form or quadrature; ``"upper bound"``: a finite-sample bound; ``"monte carlo"``:
        simulation with a standard error; ``"asymptotic"``: the second-order form of ``d/(2n)``; ``"auto"``: exact
        where it exists, else simulation.
    trials, rng
        For simulation.

    Examples
    --------
    >>> from cumulant.families import ConjugatePrior, NormalKnownMean
    >>> print(expected_kl(NormalKnownMean(), [-0.5], 10))
    E KL(p_theta* || p_theta_n) = 0.0733399  [in expectation, rounding 7e-14]
      by exact risk of the MLE, Le Priol (2021), (5.49)
      n = 10
      ? the data are i.i.d. from the family (assumed)
      = the risk is the same for every truth (by construction)
    >>> expected_kl(NormalKnownMean(), [-0.5], [1, 10], ConjugatePrior([2.0], strength=1.0)).value.round(6)
    array([0.044418, 0.036106])
    """
    checks.choice("method", method, _METHODS)
    theta_star = natural_parameter(family, theta_star)
    if strength_of(prior) == 0:
        prior = None
    if prior is not None:
        prior.as_statistics(family)  # refuses a mean that is not one of the family
    if method in ("auto", "exact"):
        theorem = theory(family).exact(theta_star, n, prior)
        if theorem is not None:
            return _proved(theorem, RiskProblem(family, n, prior, "exact"), theta_star)
        if method == "exact":
            estimate = "maximum-likelihood estimate" if prior is None else "posterior mode"
            raise NotImplementedError(
                f"no exact risk is known for the {estimate} of {family}: use method='monte carlo'"
            )
    if method == "upper bound":
        theorem = theory(family).bound(theta_star, n, prior)
        if theorem is None:
            raise CertificateError(
                f"no finite-sample bound is known for {family}: use method='monte carlo'", "a theorem"
            )
        return _proved(theorem, RiskProblem(family, n, prior, "upper bound"), theta_star)
    if method == "asymptotic":
        value = second_order_risk(family, theta_star, n, prior)
        return Risk(
            value, "asymptotic", np.zeros(np.shape(value))[()], "second-order expansion, Le Priol (2021), (5.111)"
        )
    simulated = monte_carlo_risk(family, theta_star, n, prior, trials=trials, rng=rng)
    text = f"simulation, {simulated.trials} data sets per sample size"
    if not np.all(simulated.reliable):
        text += "; the divergence is too heavy-tailed for its error bar to mean what it says"
    return Risk(simulated.value, "monte carlo", simulated.standard_error, text)


class RiskProblem(NamedTuple):
    """An estimate of the parameter of a family from `n` observations, and the kind of theorem on its risk."""

    family: ExponentialFamily
    n: Any
    prior: ConjugatePrior | None = None
    kind: Literal["exact", "upper bound"] = "exact"


def _proved(theorem: Theorem, problem: RiskProblem, theta_star: np.ndarray) -> Risk:
    value, subject = theorem.value, Subject(problem, theta_star)
    risk = Risk(value, problem.kind, np.zeros(np.shape(value))[()], theorem.text)
    if np.ndim(value) > 0 or not np.isfinite(value):
        return risk
    return replace(risk, certificate=certify_risk(*subject), subject=subject)


@issuer
def certify_risk(given: RiskProblem, answer: Any) -> Certificate:
    """The certificate of `expected_kl` at the truth ``theta_star = answer``, for one sample size."""
    family, n, prior, kind = given
    known = theory(family).exact if kind == "exact" else theory(family).bound
    theorem = known(natural_parameter(family, answer), n, prior)
    value = np.inf if theorem is None else theorem.value
    check(np.ndim(value) == 0 and np.isfinite(value), "a theorem gives a finite risk for one sample size")
    assert theorem is not None
    truth: Assumption = (
        by_construction("the risk is the same for every truth")
        if theorem.any_truth
        else assume("the truth is the given parameter")
    )
    return Certificate(
        quantity="E KL(p_theta* || p_theta_n)",
        bound=Interval(value, value, value) if kind == "exact" else float(value),
        theorem=theorem.text,
        assumptions=(assume("the data are i.i.d. from the family"), truth),
        kind="in expectation",
        slack=1e-12 * float(value),
        details={"n": float(np.asarray(n))},
    )
