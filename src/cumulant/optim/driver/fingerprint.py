"""A short name for the contents of a problem, a solver or a starting point, the same in every process.

It decides whether a checkpoint belongs to the run that would resume it. Arrays count by type, shape and content,
dataclasses by class and fields, functions by name and code, so that an edited objective is another objective.
"""

import dataclasses
import hashlib
import types
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from scipy import sparse


def fingerprint(thing: Any) -> str:
    """A hexadecimal digest of the contents.

    >>> fingerprint(np.arange(3)) == fingerprint(np.array([0, 1, 2]))
    True
    >>> fingerprint({"l2": 0.1}) == fingerprint({"l2": 0.2})
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, thing)
    return digest.hexdigest()


def _feed(digest: Any, thing: Any) -> None:
    def tag(*words: object) -> None:
        digest.update(("\x1f".join(map(str, words)) + "\x1e").encode())

    if thing is None or isinstance(thing, str | bool | int | float | complex | bytes):
        tag(type(thing).__name__, repr(thing))
    elif isinstance(thing, np.ndarray | np.generic | jax.Array):
        array = np.asarray(thing)
        if array.dtype.hasobject:
            raise TypeError(
                "an array of Python objects has no fingerprint, so a run that uses it cannot be checkpointed"
            )
        tag("array", array.dtype.str, array.shape)
        digest.update(np.ascontiguousarray(array).data)
    elif sparse.issparse(thing):
        rows = sparse.csr_array(thing)
        tag("sparse", rows.shape)
        for part in (rows.indptr, rows.indices, rows.data):
            _feed(digest, part)
    elif isinstance(thing, jax.tree_util.PyTreeDef):
        tag("structure", thing)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        tag("dataclass", type(thing).__module__, type(thing).__qualname__)
        for field in dataclasses.fields(thing):
            tag(field.name)
            _feed(digest, getattr(thing, field.name))
    elif isinstance(thing, types.FunctionType):
        tag("function", thing.__module__, thing.__qualname__)
        _feed_code(digest, thing.__code__)
        for cell in thing.__closure__ or ():
            _feed(digest, cell.cell_contents)
        _feed(digest, thing.__defaults__)
    elif isinstance(thing, Mapping):
        tag("mapping", len(thing))
        for name in sorted(thing):
            tag(name)
            _feed(digest, thing[name])
    elif isinstance(thing, list | tuple):
        tag("sequence", type(thing).__name__, len(thing))
        for item in thing:
            _feed(digest, item)
    elif callable(own := getattr(thing, "fingerprint", None)):
        tag("own", type(thing).__qualname__, own())
    elif isinstance(thing, type) or hasattr(thing, "__qualname__"):
        tag("name", thing.__module__, thing.__qualname__)
    elif hasattr(thing, "__wrapped__"):  # a jitted or otherwise decorated function
        _feed(digest, thing.__wrapped__)
    else:
        raise TypeError(
            f"a {type(thing).__name__} has no fingerprint, so a run that uses it cannot be checkpointed: "
            "give its class a method fingerprint() that returns a string"
        )


def _feed_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code)
    digest.update("\x1f".join(code.co_names).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _feed_code(digest, constant)
        elif isinstance(constant, frozenset):
            _feed(digest, sorted(map(repr, constant)))
        elif not isinstance(constant, types.EllipsisType):
            _feed(digest, constant)
