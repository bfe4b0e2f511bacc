"""Problems and solvers the tests share: among them a host solver that consumes its state, and one with no `measure`."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from cumulant import families, optim
from cumulant.geometry import Burg, Euclidean, Shannon
from cumulant.optim.certify.strong_convexity import certify_strong_convexity
from cumulant.pytrees import pytree
from tests.optim.host import CoordinateDescent

RNG = np.random.default_rng(5)
A = RNG.normal(size=(12, 4))
Y = RNG.normal(size=12)
RIDGE = optim.LeastSquares(A, Y, l2=0.3)
LOGISTIC = optim.Logistic(sparse.csr_array(A), np.sign(Y), l2=0.01)
LASSO = optim.Composite(optim.LeastSquares(A, Y), optim.L1(0.02))
LAPLACIAN = optim.Quadratic(2 * np.eye(30) - np.eye(30, k=1) - np.eye(30, k=-1), np.ones(30))
SAMPLE = families.Exponential().sample([-0.5], 40, rng=1)


def log_sum_exp(x, data):
    return jax.scipy.special.logsumexp(data @ x) + 0.05 * jnp.vdot(x, x)


def poisson_fit(x, data):
    """``sum (A x)_i - b_i log (A x)_i``, smooth relative to Burg's entropy with constant ``sum b``."""
    matrix, counts = data
    rate = matrix @ x
    return jnp.sum(rate - counts * jnp.log(rate))


def ridge_term(x, row):
    a, y = row
    return (a @ x - y) ** 2 / 2


class BareState(NamedTuple):
    x: Any


@pytree
@dataclasses.dataclass(frozen=True)
class BareDescent(optim.Solver):
    """Gradient descent with nothing but the three required methods."""

    tau: float = 0.1
    backend: ClassVar[str] = "jax"

    def init(self, problem, x0, rng):
        return BareState(x0)

    def step(self, problem, state):
        return BareState(state.x - self.tau * problem.gradient(state.x))

    def certify(self, problem, state):
        return certify_strong_convexity(problem, state.x)


class NoisyState(NamedTuple):
    x: Any
    key: Any
    step: Any


@pytree
@dataclasses.dataclass(frozen=True)
class NoisyDescent(optim.Solver):
    """Gradient descent with random noise: a solver that draws, and that asks for its best iterate."""

    tau: float = 0.1
    backend: ClassVar[str] = "jax"
    returns: ClassVar[str] = "best"

    def init(self, problem, x0, rng):
        from cumulant import randomness

        return NoisyState(x0, randomness.key(rng), 0)

    def step(self, problem, state):
        key, now = jax.random.split(state.key)
        noise = jax.random.normal(now, state.x.shape, state.x.dtype)
        return NoisyState(state.x - self.tau * (problem.gradient(state.x) + 0.2 * noise), key, state.step + 1)

    def measure(self, problem, state):
        return {"value": problem.value(state.x)}

    def certify(self, problem, state):
        return certify_strong_convexity(problem, state.x)


_POISSON = np.abs(RNG.normal(size=(6, 3))) + 0.1
_COUNTS = np.array([1.0, 4.0, 2.0, 3.0, 1.0, 2.0])
EXPONENTIAL = families.Exponential()

# name: (solver, problem, x0)
CASES = {
    "gradient descent": (optim.GradientDescent(), RIDGE, np.zeros(4)),
    "gradient descent, best step": (optim.GradientDescent("2/(L+mu)"), RIDGE, np.ones(4)),
    "gradient descent, exact": (optim.GradientDescent(optim.ExactLineSearch()), RIDGE, np.zeros(4)),
    "gradient descent, Armijo": (
        optim.GradientDescent(optim.Armijo()),
        optim.Objective(log_sum_exp, A, strong_convexity=0.1),
        np.ones(4),
    ),
    "accelerated gradient": (optim.AcceleratedGradient(restart=True), LOGISTIC, np.zeros(4)),
    "heavy ball": (optim.HeavyBall(), RIDGE, np.zeros(4)),
    "conjugate gradient": (optim.ConjugateGradient(), LAPLACIAN, np.zeros(30)),
    "Newton": (optim.Newton(shift=0.5), LOGISTIC, np.ones(4)),
    "proximal gradient": (optim.ProximalGradient(), LASSO, np.ones(4)),
    "accelerated proximal gradient": (
        optim.AcceleratedProximalGradient(),
        optim.Composite(optim.LeastSquares(A[:3], Y[:3]), optim.L1Ball(0.5)),
        np.ones(4),
    ),
    "mirror descent, Euclidean": (optim.MirrorDescent(Euclidean()), RIDGE, np.zeros(4)),
    "mirror descent, Burg": (
        optim.MirrorDescent(Burg()),
        optim.Objective(
            poisson_fit, (_POISSON, _COUNTS), convex=True, reference=Burg(), relative_smoothness=float(_COUNTS.sum())
        ),
        np.ones(3),
    ),
    "mirror descent, simplex": (
        optim.MirrorDescent(Shannon(), constraint="simplex"),
        optim.Quadratic(A.T @ A, A.T @ Y),
        np.full(4, 0.25),
    ),
    "mirror descent, implicit": (
        optim.MirrorDescent(Shannon(), step_size=0.5, implicit=True, radius=3.0),
        optim.Quadratic(np.diag([1.0, 2.0]), np.array([1.0, 3.0])),
        np.array([0.5, 0.5]),
    ),
    "mirror descent, likelihood": (
        optim.MirrorDescent(optim.CumulantEntropy(EXPONENTIAL), step_size=0.5),
        optim.NegativeLogLikelihood(EXPONENTIAL, np.array([2.0])),
        np.array([-3.0]),
    ),
    "stochastic mirror descent": (
        optim.StochasticMirrorDescent(EXPONENTIAL, optim.InverseTime(0.5, 5.0), order="random"),
        optim.SampleLikelihood.of(EXPONENTIAL, SAMPLE),
        np.array([-3.0]),
    ),
    "host coordinate descent": (CoordinateDescent(), RIDGE, np.zeros(4)),
    "SGA": (optim.SGA(gradients=optim.gradients.ByRows("random", 2)), LOGISTIC, np.ones(4)),
    "SAG": (optim.SAG(updates=5), RIDGE, np.ones(4)),
    "SVRG, any function": (
        optim.SVRG(snapshot="random"),
        optim.FiniteSum(ridge_term, (A, Y), l2=0.3, term_smoothness=np.sum(A**2, axis=1), convex=True),
        np.ones(4),
    ),
    "dual coordinate ascent": (optim.DualCoordinateAscent(), LOGISTIC, np.zeros(4)),
    "L-BFGS": (optim.LBFGS(memory=2, iterations=1), LOGISTIC, np.ones(4)),
    "bare": (BareDescent(), RIDGE, np.zeros(4)),
    "noisy": (NoisyDescent(), RIDGE, np.zeros(4)),
}
