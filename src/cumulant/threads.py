"""Threads over fixed parts: compiled kernels release the GIL, and sums are taken in an order that no thread changes."""

import functools
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = ["cores", "in_parts", "one_blas_thread", "side_by_side"]

_PARTS = 32  # fixed, so that sums do not depend on the number of threads


def cores(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: None all cores, -1 too."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None or (isinstance(n_jobs, int | np.integer) and n_jobs == -1):
        return available
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs < 1:
        raise ValueError(f"n_jobs must be a positive whole number, -1 or None; got {n_jobs!r}")
    return int(n_jobs)


def side_by_side(work: Callable[[int], Any], n: int, n_jobs: int | None) -> list:
    """``work(0), ..., work(n - 1)`` by several threads; the answers in order.

    Work that asks for threads itself gets none: threads of a pool that wait for others of it would wait for ever.
    """
    threads = min(cores(n_jobs), n)
    if n == 0 or _within.pool:
        return [work(i) for i in range(n)]
    return list(_pool(threads).map(work, range(n)))


def in_parts(work: Callable[[int, int], Any], n: int, n_jobs: int | None) -> list:
    """``work(first, last)`` on fixed parts of ``range(n)``, by several threads; the answers in order."""
    spans = _spans(n)
    threads = min(cores(n_jobs), len(spans))
    if threads == 1 or _within.pool:
        return [work(first, last) for first, last in spans]
    return list(_pool(threads).map(lambda span: work(*span), spans))


@functools.cache
def _spans(n: int) -> list[tuple[int, int]]:
    edges = np.linspace(0, n, min(_PARTS, max(n, 1)) + 1).astype(int).tolist()
    return list(itertools.pairwise(edges))


def one_blas_thread() -> Any:
    """A context in which BLAS and LAPACK stay on one thread: for matrices of some hundreds of rows.

    A factorisation of that size hands work to other threads many times and waits for each. Where other programs want
    the cores too, that takes hundreds of times as long as the work itself.
    """
    return _blas().limit(limits=1, user_api="blas")


@functools.cache
def _blas() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (so that its BLAS is among those that are found)

    return ThreadpoolController()


class _Within(threading.local):
    """Whether this thread is one of a pool."""

    pool = False


_within = _Within()


def _enter_pool() -> None:
    _within.pool = True


def _forget_pools() -> None:
    _pool.cache_clear()  # the threads of a pool do not live on in a forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="cumulant", initializer=_enter_pool)
