"""What arguments must be: each function returns the value, or refuses it with a sentence that names the argument.

A value of the wrong kind is a `TypeError`, a value out of range a `ValueError`. While something is being traced no
value is known, and a traced number is returned as it is.
"""

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

__all__ = [
    "about",
    "array",
    "choice",
    "fraction",
    "instance",
    "keywords",
    "not_negative",
    "number",
    "positive",
    "real_array",
    "takes",
    "whole",
]


@contextmanager
def about(name: str) -> Iterator[None]:
    """What is refused inside is part of the argument `name`: the refusal begins with it.

    >>> with about("evidence"):
    ...     whole("a state", -1, 0)
    Traceback (most recent call last):
    ...
    ValueError: evidence: a state must be a whole number of at least 0; got -1
    """
    try:
        yield
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"{name}: {problem}") from None


def choice(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """`value`, one of the choices.

    >>> choice("method", "exat", ("exact", "sampled"))
    Traceback (most recent call last):
    ...
    ValueError: method must be one of 'exact', 'sampled'; got 'exat'
    """
    choices = tuple(choices)
    if isinstance(value, np.str_):  # an entry of an array of names
        value = str(value)
    if not hasattr(value, "__array__") and any(value == each for each in choices):
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {_short(value)}")


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`: a Python or NumPy integer, not a flag.

    >>> whole("n", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: n must be a whole number of at least 1; got 2.5
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {_short(value)}")
    return int(value)


def number(name: str, value: Any) -> Any:
    """A real number: not a flag, a text, None or an array of several."""
    if _is_traced(value):
        return value
    if not isinstance(value, bool | np.bool_):
        if isinstance(value, int | float | np.number) and not isinstance(value, np.complexfloating):
            return value
        if hasattr(value, "__array__") and np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf":
            return value
    raise TypeError(f"{name} must be a number; got {_short(value)}")


def positive(name: str, value: Any, *, finite: bool = True) -> Any:
    """A number above zero, finite unless said otherwise.

    >>> positive("step_size", -1.0)
    Traceback (most recent call last):
    ...
    ValueError: step_size must be positive and finite; got -1.0
    """
    if not _is_traced(number(name, value)) and not (value > 0 and (math.isfinite(value) or not finite)):
        raise ValueError(f"{name} must be positive{' and finite' if finite else ''}; got {_short(value)}")
    return value


def not_negative(name: str, value: Any) -> Any:
    """A finite number, at least zero."""
    if not _is_traced(number(name, value)) and not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative; got {_short(value)}")
    return value


def fraction(name: str, value: Any) -> Any:
    """A number strictly between 0 and 1: a probability of failure, a level.

    >>> fraction("delta", 1.5)
    Traceback (most recent call last):
    ...
    ValueError: delta must be strictly between 0 and 1; got 1.5
    """
    if not _is_traced(number(name, value)) and not 0 < value < 1:
        raise ValueError(f"{name} must be strictly between 0 and 1; got {_short(value)}")
    return value


def instance(name: str, value: Any, kind: type | tuple[type, ...], words: str) -> Any:
    """`value`, an instance of `kind`, which `words` describe.

    >>> instance("problem", 3.0, dict, "a dictionary")
    Traceback (most recent call last):
    ...
    TypeError: problem must be a dictionary; got float
    """
    if not isinstance(value, kind):
        got = f"the class {value.__name__}: make one" if isinstance(value, type) else type(value).__name__
        raise TypeError(f"{name} must be {words}; got {got}")
    return value


def array(name: str, value: Any) -> np.ndarray:
    """An array of anything; lists of different lengths are none.

    >>> array("x", [[1.0, 2.0], [3.0]])
    Traceback (most recent call last):
    ...
    ValueError: x must be an array: its rows have different lengths
    """
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array: its rows have different lengths") from None


def real_array(name: str, value: Any, *, ndim: int | tuple[int, ...] | None = None, finite: bool = True) -> np.ndarray:
    """An array of real numbers in float64, with `ndim` axes, without NaN or infinity unless `finite` is False.

    >>> real_array("x", ["a", "b"])
    Traceback (most recent call last):
    ...
    TypeError: x must be an array of real numbers; got ['a', 'b']
    """
    found = array(name, value)
    if found.dtype == object and all(isinstance(each, Real) for each in found.flat):  # a column of a data frame
        found = found.astype(np.float64)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of real numbers; got {_short(value)}")
    wanted = (ndim,) if isinstance(ndim, int) else ndim
    if wanted is not None and found.ndim not in wanted:
        axes = " or ".join(map(str, wanted))
        raise ValueError(f"{name} must have {axes} {'axis' if axes == '1' else 'axes'}; got shape {found.shape}")
    if finite and not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must be finite; it holds NaN or infinity")
    return found.astype(np.float64, copy=False)


def keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a keyword that a function does not take, with those that it does.

    >>> keywords("log_partition", ["max_mem"], ["order", "max_memory"])
    Traceback (most recent call last):
    ...
    TypeError: max_mem is not an argument of log_partition, which takes order, max_memory
    """
    known = tuple(known)
    for name in given:
        if name not in known:
            raise TypeError(f"{name} is not an argument of {function}, which takes {', '.join(known)}")


def takes(name: str, function: Any, arguments: str) -> Callable:
    """`function`, if it can be called with these arguments: their names, separated by commas.

    >>> takes("function", lambda x: x, "x, data")
    Traceback (most recent call last):
    ...
    TypeError: function must be a function of (x, data); it takes (x)
    """
    if not callable(function):
        raise TypeError(f"{name} must be a function of ({arguments}); got {_short(function)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a builtin: what it takes is not known
        return function
    try:
        signature.bind(*arguments.split(", "))
    except TypeError:
        raise TypeError(f"{name} must be a function of ({arguments}); it takes {signature}") from None
    return function


def _is_traced(value: Any) -> bool:
    jax = sys.modules.get("jax")  # not imported here: what needs no JAX should start without it
    return jax is not None and isinstance(value, jax.core.Tracer)


def _short(value: Any) -> str:
    """What was given, in one line."""
    if isinstance(value, np.ndarray) or hasattr(value, "aval"):
        return f"an array of shape {tuple(value.shape)}" if value.ndim else repr(value[()])
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 80 else f"{text[:60]}... ({type(value).__name__})"
