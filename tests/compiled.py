"""Kernels that only kernels call have no wrapper: calling one from Python would end the process."""

from collections.abc import Callable

import numba


def from_python(part: Callable) -> Callable:
    """Such a kernel with a wrapper around it, for tests."""

    @numba.njit
    def call(*arguments):
        return part(*arguments)

    return call
