"""How the functions of this package are called: the rule of precision, one compiled program, checked arguments.

A function marked `@public_function(...)` is written as plain JAX. NumPy and Python arguments are computed in float64
and returned as NumPy, JAX arguments in the caller's own precision. What is required of each argument is tested in the
same compiled program as the answer, so that a bad value gives an error message rather than a NaN. While something is
being traced, when no value is known, the plain function runs; shapes are checked always.
"""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import CumulantError, DomainError
from cumulant.precision import any_jax, any_tracer, call_precisely, float64, to_jax


class Requirement(NamedTuple):
    """What an argument must be, in words, and the test: a mask from the value and all the arguments."""

    words: str | Callable[[dict], str]
    holds: Callable[[Any, dict], Any]


def is_symmetric(matrix):
    """Whether each matrix equals its transpose, up to the root of the rounding unit times its largest entry."""
    size = jnp.max(jnp.abs(matrix), axis=(-2, -1), initial=0.0)
    skew = jnp.max(jnp.abs(matrix - jnp.swapaxes(matrix, -2, -1)), axis=(-2, -1), initial=0.0)
    return skew <= size * np.sqrt(jnp.finfo(matrix.dtype).eps)


FINITE = Requirement("finite", lambda value, _: jnp.isfinite(value))
NOT_NAN = Requirement("a number (not NaN)", lambda value, _: ~jnp.isnan(value))
POSITIVE = Requirement("positive and finite", lambda value, _: (value > 0) & jnp.isfinite(value))
NON_NEGATIVE = Requirement("non-negative and finite", lambda value, _: (value >= 0) & jnp.isfinite(value))
SYMMETRIC = Requirement("symmetric", lambda value, _: is_symmetric(value))


def _shapes_of(words: str, fine: Callable[[tuple], bool]) -> Callable[..., Callable[[dict], None]]:
    """A kind of `shapes`: a function of names, whose arguments must have fine shapes."""

    def of(*names: str):
        def shapes(arguments: dict) -> None:
            for name in names:
                shape = np.shape(arguments[name])
                if not fine(shape):
                    raise ValueError(f"{name} must be {words}; got shape {shape}")

        return shapes

    return of


vectors = _shapes_of("vectors on the last axis, with at least one entry", lambda s: len(s) >= 1 and s[-1] > 0)
matrices = _shapes_of("matrices on the last two axes", lambda s: len(s) >= 2)
square = _shapes_of("square matrices on the last two axes", lambda s: len(s) >= 2 and s[-1] == s[-2] > 0)


def public_function(
    *,
    static: tuple[str, ...] = (),
    integers: tuple[str, ...] = (),
    objects: tuple[str, ...] = (),
    shapes: Callable[[dict], None] | None = None,
    after: Callable[[dict, Any], None] | None = None,
    **requirements: Requirement | tuple[Requirement, ...],
) -> Callable[[Callable], Any]:
    """Mark a function of JAX arrays as public.

    `static` arguments are part of the compiled program; `integers` keep their type, all other numbers become floats;
    `objects` are no arrays (an entropy). `shapes` looks at the arguments before anything is computed, `after` at the
    arguments and the (concrete) answer.
    """
    tests = {name: (each,) if isinstance(each, Requirement) else each for name, each in requirements.items()}

    def decorate(function):
        signature = inspect.signature(function)

        @functools.partial(jax.jit, static_argnums=1)
        def plain(data, settings):
            with jax.default_matmul_precision("highest"):  # on a GPU the default keeps ten bits of a float32
                return function(**data, **dict(settings))

        @functools.partial(jax.jit, static_argnums=1)
        def bundle(data, settings):
            return plain(data, settings), _verdicts(tests, {**data, **dict(settings)})

        @functools.wraps(function)
        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            for name, a in bound.arguments.items():
                missing = a is None and signature.parameters[name].default is not None
                if name not in static + objects and (missing or isinstance(a, dict)):
                    raise TypeError(f"{name} of {function.__name__} must be an array of real numbers; got {a}")
            given = {name: a if name in static + objects else to_jax(a, name) for name, a in bound.arguments.items()}
            wide = not any_jax([a for name, a in given.items() if name not in static])
            arguments = {
                name: a if name in static or name in integers else _floats(a, wide) for name, a in given.items()
            }
            if shapes is not None:
                shapes(arguments)
            data = {name: a for name, a in arguments.items() if name not in static}
            settings = tuple((name, arguments[name]) for name in static)
            if any_tracer(data):
                return plain(data, settings)
            try:
                answer, fine = call_precisely(bundle, data, settings, wide=wide)
            except (TypeError, ValueError) as problem:
                raise _misfit(function, data, problem) from problem
            if any_tracer(answer, fine):  # constants of a program that is being traced
                return answer
            for name, verdicts in fine.items():
                for requirement, ok in zip(tests[name], verdicts, strict=True):
                    if not ok:
                        raise _refusal(function, name, requirement, arguments, wide)
            if after is not None:
                after(arguments, answer)
            return answer

        return call

    return decorate


def _misfit(function: Callable, data: dict, problem: Exception) -> Exception:
    """The error of a computation that could not be put together, with the names of the arguments."""
    if isinstance(problem, CumulantError) or any(re.search(rf"\b{name}\b", str(problem)) for name in data):
        return problem  # a sentence of its own
    shapes = ", ".join(f"{name} {np.shape(a)}" for name, a in data.items() if hasattr(a, "shape") or np.isscalar(a))
    return ValueError(f"the arguments of {function.__name__} do not fit together; they have the shapes {shapes}")


def _verdicts(tests, arguments):
    return {
        name: [jnp.all(each.holds(jnp.asarray(arguments[name]), arguments)) for each in requirements]
        for name, requirements in tests.items()
        if arguments[name] is not None
    }


def _floats(value, wide):
    """Numbers as floats: Python ones stay Python (they do not widen float32), NumPy ones are float64 unless mixed."""
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, jax.Array):
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.result_type(float))
    if isinstance(value, np.ndarray | np.generic):
        return value.astype(np.float64) if wide or value.dtype.kind != "f" else value
    return value  # None, an entropy, a sequence of matrices


def _refusal(function, name, requirement, arguments, wide):
    """The sentence: which argument, what it must be, and the first value that is not."""
    words = requirement.words if isinstance(requirement.words, str) else requirement.words(arguments)
    with float64() if wide else contextlib.nullcontext():
        mask = np.asarray(requirement.holds(jnp.asarray(arguments[name]), arguments))
    value = np.asarray(arguments[name])
    value = np.broadcast_to(value, mask.shape) if mask.ndim > value.ndim else value
    index = tuple(int(i) for i in np.unravel_index(np.argmin(mask), mask.shape))
    got = value[index]  # a number, or a whole vector or matrix where the requirement is of those
    where = f" at index {', '.join(map(str, index))}" if index else ""
    return DomainError(
        f"{name} of {function.__name__} must be {words}; got {np.array2string(got, separator=', ')}{where}"
    )
