"""Whether a step of mirror descent can leave the mean domain, in closed form: a grid or draws miss what is rare."""

import functools

import numpy as np
from scipy.special import logsumexp

from cumulant.families.dirichlet import Beta, Dirichlet
from cumulant.families.gamma import Gamma
from cumulant.families.inverse_gaussian import InverseGaussian
from cumulant.families.von_mises import VonMises, VonMisesFisher


@functools.singledispatch
def can_leave(family, mu, truth, share) -> bool:
    """Whether ``mu + share (T(x) - truth)`` is outside the mean domain for some open set of ``x``.

    False as well where it is not known: then `in_mean_domain` has to be asked at every ``x``.
    """
    return False


@can_leave.register
def _(family: Gamma, mu, truth, share):
    """``log(b + share y) - share log y`` is least at ``y = b / (1 - share)``, ``y = x`` or ``1/x``."""
    a, b = mu - share * truth
    if share == 1:
        return bool(b < 0 or a > 0)
    if share > 1 or b <= 0:
        return True
    return bool((1 - share) * np.log(b / (1 - share)) < a)


@can_leave.register
def _(family: InverseGaussian, mu, truth, share):
    """``(a + share x)(b + share / x)`` is least where both sides of the sum ``a / x + b x`` are equal."""
    a, b = mu - share * truth
    return bool(a < 0 or b < 0 or np.sqrt(a * b) + share < 1)


@can_leave.register(Beta)
@can_leave.register(Dirichlet)
def _(family, mu, truth, share):
    """The largest ``sum_k c_k x_k^share`` over the simplex, by Hölder's inequality."""
    logs = mu - share * truth
    return bool((logs.max() if share >= 1 else (1 - share) * logsumexp(logs / (1 - share))) > 0)


@can_leave.register(VonMises)
@can_leave.register(VonMisesFisher)
def _(family, mu, truth, share):
    """Statistics are unit vectors."""
    return bool(np.linalg.norm(mu - share * truth) + share > 1)
