"""Numba's compiler for the kernels of this library: the same programs, in two thirds of the time.

What this rests on is not public. Importing this module fails where a version of Numba has moved it; `kernels` then
compiles as Numba does.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

__all__ = ["KernelCompiler", "PartCompiler"]

_DEFAULTS, _HASH = Flags().values(), hash(Flags())
_KEPT_IN = Flags()._values  # the options that were set, by name; looked up here so that a change is noticed on import


class _Flags(Flags):
    """Options of the compiler that are quickly compared, as they are part of every key under which it looks up how to
    add two numbers. The hash is that of the names of the options, which is what Numba's is.
    """

    def values(self) -> dict[str, Any]:
        """All options, by name."""
        return _DEFAULTS | self._values

    def __hash__(self):
        return _HASH

    def __eq__(self, other):
        return self is other or super().__eq__(other)


class KernelCompiler(Compiler):
    """Numba's, with options that are quickly compared."""

    def __init__(self, typing, target, library, arguments, answer, flags, variables):
        super().__init__(typing, target, library, arguments, answer, _Flags(flags), variables)


class PartCompiler(KernelCompiler):
    """Of kernels that only kernels call: these are put into their callers, and optimised there."""

    def __init__(self, typing, target, library, *settings):
        super().__init__(typing, target, library or _Part(target.codegen(), "part"), *settings)


class _Part(JITCodeLibrary):
    """Code without optimised and without machine code of its own: that is half the time of compiling it."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalized = True

    def get_pointer_to_function(self, name):
        """Of a function in machine code: there is none."""
        return 0

    @property
    def codegen(self):
        """Asked for by Numba to set the environment of the function, which lies in machine code."""
        return self

    def set_env(self, name, environment):
        """Nowhere to set it."""
