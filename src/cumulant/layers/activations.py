"""Activation functions with their derivatives and, for the sigmoids, how far they are from a step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from cumulant import checks


def _sigmoid(r):
    return jnp.where(r >= 0, 1 / (1 + jnp.exp(-jnp.abs(r))), jnp.exp(-jnp.abs(r)) / (1 + jnp.exp(-jnp.abs(r))))


class Activation(NamedTuple):
    """``rho``, ``rho'`` and, where ``rho`` rises from 0 to 1 with ``rho(-r) = 1 - rho(r)``, the tail ``rho(-r)``."""

    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    tail: Callable[[Any], Any] | None = None


ACTIVATIONS = {
    "sigmoid": Activation(_sigmoid, lambda r: _sigmoid(r) * _sigmoid(-r), lambda r: expit(-r)),
    "atan": Activation(
        lambda r: jnp.arctan(r) / jnp.pi + 0.5,
        lambda r: 1 / (jnp.pi * (1 + r**2)),
        lambda r: np.arctan2(1.0, r) / np.pi,
    ),
    "tanh": Activation(jnp.tanh, lambda r: 1 - jnp.tanh(r) ** 2),
    # The slope at zero is zero, by convention.
    "relu": Activation(lambda r: jnp.maximum(r, 0.0), lambda r: jnp.where(r > 0, 1.0, 0.0)),
}


def activation(name: str) -> Activation:
    """The activation of that name.

    >>> print(activation("relu").value(-1.0))
    0.0
    """
    checks.choice("activation", name, ACTIVATIONS)
    return ACTIVATIONS[name]
