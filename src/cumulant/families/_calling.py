"""How a public method of a family is called: the rule of precision, one compiled program, and checked arguments.

A family's methods are written as plain JAX. `public_method` wraps each of them, so that

* NumPy and Python arguments are computed in float64 and returned as NumPy, JAX arguments in the caller's precision;
* the method and the tests of its arguments are one compiled program per shape, and a failed test costs a readable error
  rather than a NaN;
* while something is being traced, the plain method runs.

What an argument means is read off its name: `theta` and `other` are natural parameters, `mu` and `nu` are means, `x`
is data, `p` are probabilities.
"""

import functools
import inspect
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.precision import any_jax, any_tracer, call_precisely, to_jax

_NATURAL, _MEANS, _DATA, _PROBABILITIES = ("theta", "other"), ("mu", "nu"), ("x",), ("p",)


def public_method(method: Callable, *, checks: bool = True) -> Callable:
    """Wrap one method of a family. With `checks=False` arguments may lie anywhere (membership tests themselves)."""
    signature = inspect.signature(method)
    makes_theta = method.__name__ in ("natural", "to_natural")

    def bundle(data):
        family, arguments = data
        answer = method(family, **arguments)
        fine = {}
        for name, value in arguments.items() if checks else ():
            test = family.in_domain if name in _NATURAL else family.in_mean_domain if name in _MEANS else None
            if test is not None:
                fine[name] = jnp.all(test(value))
            elif name in _PROBABILITIES:
                fine[name] = jnp.all((value >= 0) & (value <= 1))
            elif name in _DATA:
                fine[name] = jnp.all(jnp.asarray([jnp.all(~jnp.isnan(leaf)) for leaf in jax.tree.leaves(value)]))
        if checks and makes_theta:
            fine["natural"] = jnp.all(family.in_domain(answer))
        return answer, fine

    bundle.__name__ = bundle.__qualname__ = method.__name__  # what profiles and logs of compilation call the program
    bundle = jax.jit(bundle)

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            bound = signature.bind(self, *args, **kwargs).arguments
        except TypeError as problem:
            raise TypeError(f"{type(self).__name__}.{method.__name__}: {problem}") from None
        for name, value in bound.items():
            parameter = signature.parameters[name]
            several = parameter.kind is parameter.VAR_KEYWORD  # `natural(**usual)`, where a family does not define it
            missing = value is None and parameter.default is not None
            if missing or (isinstance(value, dict) and not several):
                raise TypeError(f"{name} of {type(self).__name__}.{method.__name__} must be numbers; got {value!r:.60}")
        arguments = {name: _prepared(self, name, value) for name, value in bound.items() if name != "self"}
        if any_tracer(arguments, self):
            return method(self, **jax.tree.map(jnp.asarray, arguments))
        answer, fine = call_precisely(bundle, (self, arguments), wide=not any_jax(arguments))
        for name, ok in fine.items():
            if not ok:
                raise self._refusal(name, answer if name == "natural" else arguments[name], arguments)
        # JAX sorts the keys of a dictionary; people expect the order of `natural`.
        return {key: answer[key] for key in self.usual_names} if method.__name__ == "usual" else answer

    return call


def _prepared(family, name, value):
    """Array-likes as arrays of floats; parameters of the right length."""
    shape = () if name in _PROBABILITIES else family.event_shape
    value = observations(value, shape) if name in _DATA + _PROBABILITIES else to_jax(value, name)
    if name in _NATURAL or name in _MEANS:
        shape = np.shape(value)
        if len(shape) == 0 or shape[-1] != family.dim:
            kind = "natural parameter" if name in _NATURAL else "mean parameter"
            raise DomainError(
                f"{name}, a {kind} of {family}, must have {family.dim} entries on its last axis; got shape {shape}"
            )
    if name in _DATA:
        family._check_event(value)
    return value


def observations(x, event_shape):
    """Data as arrays of floats: float64 for NumPy, the caller's default float for JAX integers.

    Where an event is a tuple, part by part, so that a tuple of numbers does not become one array.
    """
    if isinstance(x, tuple) and event_shape and isinstance(event_shape[0], tuple) and len(x) == len(event_shape):
        return tuple(observations(part, shape) for part, shape in zip(x, event_shape, strict=True))
    return jax.tree.map(_floats, to_jax(x, "x"))


def _floats(leaf):
    if isinstance(leaf, jax.Array):
        return leaf if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf.astype(jnp.result_type(float))
    return np.asarray(leaf, dtype=np.float64)
