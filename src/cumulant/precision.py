"""The one rule of precision.

* NumPy or Python input is computed in float64 inside `jax.enable_x64` and returned as NumPy.
* JAX arrays and tracers are computed in the caller's own precision and returned as JAX arrays.

So no float64 JAX array leaves a context (outside one it would silently turn into float32), no global setting is
changed, and every thread enters its own context (the flag is not inherited by threads). `call_precisely` is the rule;
`precise` applies it to a function, `families` to the methods of a family and `geometry` to functions that test their
arguments. Inside such a function all is plain JAX.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from cumulant.programs import kept_on_disk

__all__ = [
    "any_jax", "any_tracer", "as_jax", "call_on_host", "call_precisely", "float64", "precise", "to_jax", "to_numpy",
]  # fmt: skip


@contextmanager
def float64() -> Iterator[None]:
    """A context in which JAX computes in float64, eagerly even where somebody else is tracing.

    What is computed inside must be turned into NumPy (`to_numpy`) before the context ends. Programs compiled inside are
    kept on disk (`cumulant.programs`).
    """
    # Not `ensure_compile_time_eval`: it would also run each `zeros_like` of a program compiled inside while tracing it,
    # and freeze the answer into a constant.
    with jax.enable_x64(True), jax.core.eval_context(), kept_on_disk():
        yield


def any_jax(*trees: Any) -> bool:
    """Whether any leaf is a JAX array or tracer: then the caller's own precision rules."""
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(trees))


def any_tracer(*trees: Any) -> bool:
    """Whether any leaf is being traced, so that no value can be looked at."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def as_jax(tree: Any) -> Any:
    """Every leaf as a JAX array in the caller's precision.

    Compiled programs must not be given NumPy leaves beside JAX ones: a float64 constant that was compiled for with the
    flag on is then passed as it is to the program compiled with the flag off.
    """
    return jax.tree.map(jnp.asarray, tree)


def to_jax(value: Any, name: str = "argument") -> Any:
    """Turn one argument into what JAX takes: numbers, sequences and array-likes become arrays, the rest is left
    alone.
    """
    if value is None or isinstance(value, jax.Array | np.ndarray | bool | int | float | np.generic):
        array = value
    elif isinstance(value, tuple) and (type(value) is not tuple or any(not _numeric(item) for item in value)):
        items = (to_jax(item, name) for item in value)  # a tuple of arrays is a structure, a list of them a stack
        return tuple(items) if type(value) is tuple else type(value)(*items)
    elif isinstance(value, list | tuple) or hasattr(value, "__array__"):
        if any_jax(value):
            return jnp.asarray(value)
        try:
            array = np.asarray(value)
        except ValueError:
            raise ValueError(f"{name} must be an array of real numbers: its rows have different lengths") from None
    elif isinstance(value, str | bytes | complex) or type(value) is object:
        raise TypeError(f"{name} must be an array of real numbers; got {value!r:.60}")
    else:
        return value  # a pytree of its own: a family, an entropy, a problem
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of real numbers; got dtype {array.dtype}")
    return array


def _numeric(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return all(_numeric(each) for each in item)
    return isinstance(item, bool | int | float | np.generic) or (
        isinstance(item, np.ndarray | jax.Array) and item.ndim == 0
    )


def _widen(tree: Any) -> Any:
    """NumPy floats of any width become float64; integers and flags stay what they are."""

    def widen(leaf):
        narrow = isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind == "f" and leaf.dtype != np.float64
        return leaf.astype(np.float64) if narrow else leaf

    return jax.tree.map(widen, tree)


def to_numpy(tree: Any) -> Any:
    """JAX leaves become NumPy: arrays that may be written to, and NumPy scalars for zero dimensions."""
    return jax.tree.map(lambda leaf: np.array(leaf)[()] if isinstance(leaf, jax.Array) else leaf, tree)


def call_precisely(compiled: Callable, data: Any, *static: Any, wide: bool | None = None) -> Any:
    """``compiled(data, *static)`` by the rule of precision, for concrete data: a pytree, tested leaf by leaf.

    `wide` says that no argument of the caller was a JAX array, where `data` holds others beside them.
    """
    if not any_jax(data) if wide is None else wide:
        with float64():
            return to_numpy(compiled(_widen(data), *static))
    return compiled(as_jax(data), *static)


def call_on_host(function: Callable, shape: tuple[int, ...], *arguments: Any, vmap_method: str) -> Any:
    """``function(*arguments)`` on the host from a compiled program: NumPy arrays in float64 in, an array out.

    The answer has this shape, in the precision of the first argument. Under `vmap`, `vmap_method` is as for
    `jax.pure_callback`.
    """
    arguments = tuple(jnp.asarray(each) for each in arguments)
    kind = arguments[0].dtype
    # The thread that runs a callback has its own flags: float64 would arrive there, and come back, as float32. Words
    # of 32 bits are left alone.
    wide = kind == jnp.float64
    words = [jax.lax.bitcast_convert_type(each.astype(kind), jnp.uint32) if wide else each for each in arguments]

    def call(*words):
        arrays = [np.ascontiguousarray(each) for each in words]
        found = function(*(each.view(np.float64)[..., 0] if wide else each.astype(np.float64) for each in arrays))
        found = np.asarray(found, dtype=kind)
        return np.ascontiguousarray(found[..., None]).view(np.uint32) if wide else found

    out = jax.ShapeDtypeStruct((*shape, 2) if wide else shape, jnp.uint32 if wide else kind)
    found = jax.pure_callback(call, out, *words, vmap_method=vmap_method)
    return jax.lax.bitcast_convert_type(found, kind) if wide else found


def precise(function: Callable | None = None, *, static: tuple[str, ...] = ()) -> Any:
    """Make a function of JAX arrays obey the rule of precision.

    The function is compiled once per shape. Arguments named in `static` are part of the program, not data: flags,
    sizes, names. Everything else may be a number, a sequence, a NumPy or JAX array, or a pytree (a family, an entropy).
    While something is being traced the function is called as it is.
    """
    if function is None:
        return functools.partial(precise, static=static)
    signature = inspect.signature(function)

    @functools.partial(jax.jit, static_argnums=1)
    def compiled(data, settings):
        return function(**data, **dict(settings))

    @functools.wraps(function)
    def call(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        settings = tuple((name, value) for name, value in given.items() if name in static)
        data = {name: to_jax(value, name) for name, value in given.items() if name not in static}
        if any_tracer(data):
            return function(**data, **dict(settings))
        return call_precisely(compiled, data, settings)

    return call
