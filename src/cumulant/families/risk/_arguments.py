"""Arguments: they become arrays of one shape, and bad values are refused."""

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.families.base import ExponentialFamily


def grid(*, positive: tuple[str, ...] = (), **arguments) -> list[np.ndarray]:
    """The arguments as float64 arrays of one common shape: finite, not negative, and positive where named."""
    arrays = []
    for name, value in arguments.items():
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be a number or an array of numbers; got {value!r}") from None
        rule = "positive" if name in positive else "at least 0"
        good = np.isfinite(array) & ((array > 0) if name in positive else (array >= 0))
        if not np.all(good):
            raise DomainError(f"{name} must be finite and {rule}; got {array[~good].flat[0]}")
        arrays.append(array)
    try:
        return [np.array(each) for each in np.broadcast_arrays(*arrays)]
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in arguments.items())
        raise ValueError(f"the arguments do not broadcast against each other: {shapes}") from None


def integers(**arguments) -> list[np.ndarray]:
    """As `grid`, for counts and dimensions: whole numbers, at least 1 for dimensions called ``d``."""
    arrays = grid(positive=("d",), **arguments)
    for name, array in zip(arguments, arrays, strict=True):
        if not np.all(array == np.floor(array)):
            raise DomainError(f"{name} must be a whole number; got {array[array != np.floor(array)].flat[0]}")
    return arrays


def whole(name: str, value: Any) -> int:
    """`value` as a positive int, or an error that names it."""
    if np.ndim(value) != 0 or not (np.isfinite(value) and value >= 1 and value == int(value)):
        raise ValueError(f"{name} must be a whole number of at least 1; got {value}")
    return int(value)


def natural_parameter(family: ExponentialFamily, theta: Any) -> np.ndarray:
    """One natural parameter of `family`, checked."""
    checks.instance("family", family, ExponentialFamily, "a family, such as Poisson()")
    theta = checks.real_array("theta_star", theta, finite=False)
    if theta.shape != (family.dim,):
        raise DomainError(
            f"theta_star must be one natural parameter of {family}, shape ({family.dim},); got shape {theta.shape}"
        )
    if not np.all(family.in_domain(theta)):
        raise DomainError(f"theta_star must be a natural parameter of {family}: {family.domain}; got {theta}")
    return theta
