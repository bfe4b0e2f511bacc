"""Densities on which estimates of ``log Z`` go wrong if anything can, and the truth about them in closed form."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from cumulant.sampling import Target

ROOT = float(np.log(2 * np.pi) / 2)  # log Z of exp(-x^2 / 2)


class Density(NamedTuple):
    """A target and its ``log Z``."""

    target: Target
    log_z: float


def _hidden(x):  # a second mode with e^5 times the mass, where no particle comes
    return jnp.logaddexp(-(x[0] ** 2) / 2, 5.0 + jnp.log(10.0) - 50.0 * (x[0] - 30.0) ** 2)


def _cauchy(x):
    return -jnp.log1p(x[0] ** 2)


def _barely(x):  # nine tenths of the mass beyond e^2
    return -1.05 * jnp.log1p(jnp.abs(x[0]))


def _box(x):
    return jnp.where((x[0] > 0.5) & (x[0] < 2.0), 0.0, -jnp.inf)


def _half(x):  # not a number on the left
    return jnp.log(x[0]) / 2 - x[0]


def _no_gradient(x):  # on the left the derivative of the square root that is not taken is not a number
    far = x[0] > 2.3
    return -(x[0] ** 2) / 2 + 3.0 * far + 1e-12 * jnp.where(far, jnp.sqrt(x[0] - 2.3), 0.0)


def _funnel(x):
    return -(x[0] ** 2) / 18 - x[0] / 2 - x[1] ** 2 * jnp.exp(-x[0]) / 2


def _spike(x):  # infinite at zero
    return -jnp.log(jnp.abs(x[0])) / 2 - x[0] ** 2 / 2


def _far(x):
    return -((x[0] - 50.0) ** 2) / 2


def _constant(x):
    return 1e8 - jnp.sum(x**2) / 2


def _narrow(x):
    return -(x[0] ** 2) * 5e11


def _ring(x):
    return -50.0 * (jnp.sqrt(jnp.sum(x**2)) - 6.0) ** 2


DENSITIES = {
    "hidden mode": Density(Target(_hidden, 1), ROOT + float(np.log1p(np.exp(5)))),
    "heavy tails": Density(Target(_cauchy, 1), float(np.log(np.pi))),
    "barely integrable": Density(Target(_barely, 1), float(np.log(40))),
    "box": Density(Target(_box, 1), float(np.log(1.5))),
    "not a number": Density(Target(_half, 1), float(gammaln(1.5))),
    "no gradient": Density(Target(_no_gradient, 1), ROOT + float(np.log(norm.cdf(2.3) + np.exp(3) * norm.sf(2.3)))),
    "funnel": Density(Target(_funnel, 2), 2 * ROOT + float(np.log(3))),
    "spike": Density(Target(_spike, 1), float(np.log(2) / 4 + gammaln(0.25))),
    "far": Density(Target(_far, 1), ROOT),
    "large constant": Density(Target(_constant, 2), 1e8 + 2 * ROOT),
    "narrow": Density(Target(_narrow, 1), ROOT - float(np.log(1e6))),
    "ring": Density(Target(_ring, 2), float(np.log(2 * np.pi * 6 * 0.1)) + ROOT),
}
