"""However a fit ends, its weights are not worse than none, and their certificate is true."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cumulant.glm import GLM
from tests.glm.cases import features, observations


def interrupt(snapshot):
    raise KeyboardInterrupt


ENDS = {
    "max_steps": {"max_iter": 1},
    "time_limit": {"time_limit": 1e-9},
    "stopped": {"callback": lambda snapshot: True},
    "interrupted": {"callback": interrupt},
}
SOLVERS = {
    "newton": {"solver": "newton"},
    "conjugate gradients": {"solver": "newton", "columns": 600},
    "prox-newton": {"solver": "prox-newton", "l1": 1e-4},
    "sdca": {"solver": "sdca", "random_state": 0},
}


@pytest.mark.filterwarnings("ignore")  # that a fit ended early
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("end", ENDS)
def test_the_weights_are_not_worse_than_none(end, solver, scale):
    settings = dict(SOLVERS[solver])
    X = scale * features(n=120, p=settings.pop("columns", 30))
    for family in ("bernoulli", "poisson", "gamma"):
        y = observations(family, X / scale)
        for intercept in (True, False):
            model = GLM(family, l2=1e-5, tol=1e-12, fit_intercept=intercept, **settings, **ENDS[end]).fit(X, y)
            assert model.status_ in (end, "converged", "rounding")
            nothing = GLM(family, l1=1e9, l2=0.0, fit_intercept=intercept).fit(X, y)
            assert not nothing.coef_.any()
            assert model.objective_ <= nothing.objective_ * (1 + 1e-9)
            if model.certificate_ is not None:
                model.verify(X, y)


def test_dual_ascent_that_the_clock_ends():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 300))
    y = rng.random(5000) < 1 / (1 + np.exp(-X @ rng.normal(size=300) / 5))
    model = GLM("bernoulli", solver="sdca", l2=1e-5, time_limit=1.0, random_state=0).fit(X, y)
    assert model.status_ == "time_limit"
    assert model.objective_ <= np.log(2.0)
    assert model.verify(X, y).upper <= model.certificate_.upper


def test_a_loose_tolerance_does_not_make_weights_worse_than_none():
    # Many rows begin with the solution for a part of them, which for noise is worse than nothing.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 40)), rng.random(20_000) < 0.5
    model = GLM("bernoulli", tol=10.0).fit(X, y)
    assert model.status_ == "converged"
    share = np.mean(y)
    assert model.objective_ <= -(share * np.log(share) + (1 - share) * np.log(1 - share)) + 1e-12


def test_dual_ascent_of_counts_does_not_run_away():
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = observations("poisson", X)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = GLM("poisson", solver="sdca", max_iter=300, random_state=0).fit(X, y)
    best = GLM("poisson").fit(X, y)
    assert best.objective_ <= model.objective_ <= 1.01 * best.objective_
