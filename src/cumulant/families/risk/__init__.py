"""How good is an estimate with ``n`` samples? The expected divergence ``E KL(truth || estimate)``.

`expected_kl` answers for the MLE and the posterior mode of any family: exactly where a theorem allows (`exact`,
`normal1d`, `counts`), by finite-sample bounds (`bounds`), by simulation with honest error bars (`monte_carlo`) or by
the limit ``d/(2n)`` (`asymptotics`); `theories` says what is known of each family. `bias_variance` splits it, `priors`
chooses the prior mean, `concordance` certifies the quadratic regime, `diagnostics` and `analyses` say which
analyses of stochastic mirror descent apply. After Le Priol (2021), thesis, chapter 5.
"""

import cumulant.families.risk.multivariate  # noqa: F401  (registers with `theories`, exports nothing)
from cumulant.families.risk.analyses import Analysis, smd_analyses
from cumulant.families.risk.asymptotics import asymptote, fisher_distance, samples_to_quadratic, second_order_risk
from cumulant.families.risk.bias_variance import BiasVariance, bias_variance, bias_variance_quadratic
from cumulant.families.risk.bounds import (
    Bound,
    bound_inverse,
    bound_lipschitz,
    bound_map_gamma,
    bound_map_gamma_strong_prior,
    bound_map_gamma_weak_prior,
    bound_map_variance,
    bound_mle_covariance,
    bound_mle_gamma,
    bound_mle_variance,
    bound_smooth,
    bound_variance_term,
    lower_bound_inverse,
    lower_bound_mle_gamma,
    strong_prior_bound_inverse,
)
from cumulant.families.risk.concordance import (
    QUADRATIC_RADIUS,
    Concordance,
    LocalQuadratic,
    certify_local_quadratic,
    check_self_concordance,
    omega,
    omega_star,
    self_concordance_constant,
)
from cumulant.families.risk.counts import risk_map_categorical, risk_map_poisson
from cumulant.families.risk.diagnostics import (
    MonteCarloConstant,
    gap_batch,
    gap_constant,
    monte_carlo_smd,
    smd_assumption,
    smd_assumption_gamma,
)
from cumulant.families.risk.exact import (
    Split,
    bias_variance_gamma,
    expected_inverse,
    risk_map_gamma,
    risk_map_quadratic,
    risk_mle_covariance,
    risk_mle_gamma,
    risk_mle_isotropic,
    risk_mle_normal,
    symmetrised_risk_map_gamma,
)
from cumulant.families.risk.expected import Risk, RiskProblem, certify_risk, expected_kl
from cumulant.families.risk.monte_carlo import MonteCarloRisk, monte_carlo_risk, sample_mean_statistic, tail_index
from cumulant.families.risk.normal1d import NormalRisk, risk_map_normal1d
from cumulant.families.risk.priors import Landscape, best_prior_mean, prior_mean_rule, risk_landscape

__all__ = [
    "QUADRATIC_RADIUS",
    "Analysis",
    "BiasVariance",
    "Bound",
    "Concordance",
    "Landscape",
    "LocalQuadratic",
    "MonteCarloConstant",
    "MonteCarloRisk",
    "NormalRisk",
    "Risk",
    "RiskProblem",
    "Split",
    "asymptote",
    "best_prior_mean",
    "bias_variance",
    "bias_variance_gamma",
    "bias_variance_quadratic",
    "bound_inverse",
    "bound_lipschitz",
    "bound_map_gamma",
    "bound_map_gamma_strong_prior",
    "bound_map_gamma_weak_prior",
    "bound_map_variance",
    "bound_mle_covariance",
    "bound_mle_gamma",
    "bound_mle_variance",
    "bound_smooth",
    "bound_variance_term",
    "certify_local_quadratic",
    "certify_risk",
    "check_self_concordance",
    "expected_inverse",
    "expected_kl",
    "fisher_distance",
    "gap_batch",
    "gap_constant",
    "lower_bound_inverse",
    "lower_bound_mle_gamma",
    "monte_carlo_risk",
    "monte_carlo_smd",
    "omega",
    "omega_star",
    "prior_mean_rule",
    "risk_landscape",
    "risk_map_categorical",
    "risk_map_gamma",
    "risk_map_normal1d",
    "risk_map_poisson",
    "risk_map_quadratic",
    "risk_mle_covariance",
    "risk_mle_gamma",
    "risk_mle_isotropic",
    "risk_mle_normal",
    "sample_mean_statistic",
    "samples_to_quadratic",
    "second_order_risk",
    "self_concordance_constant",
    "smd_analyses",
    "smd_assumption",
    "smd_assumption_gamma",
    "strong_prior_bound_inverse",
    "symmetrised_risk_map_gamma",
    "tail_index",
]
