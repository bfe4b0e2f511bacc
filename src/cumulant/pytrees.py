"""Frozen dataclasses as pytrees.

`jax.tree_util.register_dataclass` (up to jax 0.10 at least) compares the structure of two registered dataclasses by
their static fields alone, not by their class. Programs compiled by `jit` are looked up by that comparison, so that now
and then one family or entropy would silently be answered by the program of another. Custom nodes compare classes too.
"""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import jax

__all__ = ["pytree"]

T = TypeVar("T", bound=type)


def pytree(cls: T, static: Sequence[str] | None = None) -> T:
    """Register a frozen dataclass: static fields are part of the compiled program, the others are its leaves.

    Static are the fields named, by default those with ``metadata={"static": True}``.

    Fields are put back as they are, without another call to ``__init__``: what JAX puts there while it works is not to
    be validated.
    """
    fields = dataclasses.fields(cls)
    names = static if static is not None else [field.name for field in fields if field.metadata.get("static")]
    fixed = tuple(field.name for field in fields if field.name in names)
    leaves = tuple(field.name for field in fields if field.name not in names)

    def settings(tree):
        return tuple(getattr(tree, name) for name in fixed)

    def flatten(tree):
        return tuple(getattr(tree, name) for name in leaves), settings(tree)

    def flatten_with_keys(tree):
        return tuple((jax.tree_util.GetAttrKey(name), getattr(tree, name)) for name in leaves), settings(tree)

    def unflatten(values, children):
        tree = object.__new__(cls)
        for name, value in (*zip(fixed, values, strict=True), *zip(leaves, children, strict=True)):
            object.__setattr__(tree, name, value)
        return tree

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls
