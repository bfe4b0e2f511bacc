"""Shards of a problem on the workers of a Dask cluster: sent once, asked together, sent again when a worker is lost.

A shard is an object in the memory of its worker, scattered by the client and held by a future: it is dropped when the
client lets go of it, or dies. Tasks that ask it something run where it is and change it in place. Dask does not make
scattered data again, which is what we want: a lost shard is sent anew by us, with dual variables that say so.
"""

import asyncio
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from cumulant.optim.protocol import Problem
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.cluster.shard import Shard
from cumulant.sequences.solvers.dual_ascent import SequenceDualAscent, assign_blocks

__all__ = ["ClusterError", "LostShardWarning", "ShardedProblem", "current_client"]

_LOOK = 1.0  # seconds between two looks at which workers live, while one does not answer
_GRACE = 5.0  # seconds for a lost worker to be started again, before others take its shards over
_LOSSES = 5  # of the same shard, one after the other
_LOST = object()


class ClusterError(RuntimeError):
    """The cluster cannot do what it was asked: there is no client, or no worker is left."""


class LostShardWarning(UserWarning):
    """A worker was lost with the dual variables of its sequences, which begin anew: the duality gap may rise."""


def current_client() -> Any:
    """The current `distributed.Client`; an error that says how to make one where there is none."""
    try:
        import distributed
    except ImportError as problem:
        raise ImportError(
            "engine='dask' needs the package distributed, which is not installed: pip install 'cumulant[cluster]'"
        ) from problem
    try:
        client = distributed.get_client()
    except ValueError:
        raise ClusterError(
            "engine='dask' needs a Dask client and there is none: make one first, for two processes on this machine "
            "`from distributed import Client; client = Client(n_workers=2)`, or Client('address:8786') for a cluster"
        ) from None
    if client.asynchronous:
        raise ClusterError("engine='dask' needs a client with asynchronous=False: training waits for its answers")
    return client


class ShardedProblem(Problem):
    """A `ChainProblem` whose sequences, and their dual variables, are on the workers of a cluster.

    It is a context: at its end the workers forget the shards. `v` is the residual of all sequences by which the shards
    go, ``v(mu)`` unless `stale` says that a shard was lost since.

    Parameters
    ----------
    client : distributed.Client
    whole : ChainProblem
        All sequences. They are kept here too, so that a lost shard can be sent again.
    n_shards : int, optional
        As many as there are workers by default.
    patience : float
        Seconds to wait for a worker when there is none.
    interrupted : callable
        Whether the user asked for an end, so that there is no waiting for workers.
    """

    convex = True
    constants_are = "checked"

    def __init__(
        self,
        client: Any,
        whole: ChainProblem,
        n_shards: int | None = None,
        patience: float = 60.0,
        interrupted: Callable[[], bool] = lambda: False,
    ):
        self.client, self.whole, self.patience, self.interrupted = client, whole, patience, interrupted
        self.shape, self.n_terms, self.l1, self.l2 = whole.shape, whole.n_terms, whole.l1, whole.l2
        self.strong_convexity = whole.strong_convexity
        self.n_workers = len(self._workers())
        self.n_shards = min(n_shards or self.n_workers, self.n_terms)
        self.members = assign_blocks(whole.data.lengths, self.n_shards)
        self.v: np.ndarray | None = None
        self.stale = False
        self.lost = 0  # shards, in all
        self.sweep = 0  # where a shard that is sent again takes up the count
        self._homes = [""] * self.n_shards
        self._shards: list[Any] = [None] * self.n_shards
        self._losses = [0] * self.n_shards  # one after the other
        self._sent: tuple[Any, Any] = (None, None)  # the last array that went to all workers, and its future

    def __enter__(self) -> "ShardedProblem":
        return self

    def __exit__(self, *_: object) -> None:
        self._shards, self._sent = [None] * self.n_shards, (None, None)  # futures that nobody holds are released

    # The problem ------------------------------------------------------------------------------------------------------

    @property
    def gold(self) -> np.ndarray:
        """``(1/n) sum_i F(x_i, y_i)``."""
        return self.whole.gold

    def weights_of(self, residual: np.ndarray) -> np.ndarray:
        """``w = soft(v, l1) / l2``."""
        return self.whole.weights_of(residual)

    def penalty(self, w: np.ndarray) -> float:
        """``l2/2 |w|^2 + l1 |w|_1``."""
        return self.whole.penalty(w)

    def value(self, w: Any) -> float:
        """``P(w)``, computed by the workers."""
        w = np.array(w, dtype=np.float64).reshape(self.shape)
        return self.penalty(w) + sum(self.ask(Shard.loss, w)) / self.n_terms

    def gradient(self, w: Any) -> np.ndarray:
        """The gradient of the smooth part of ``P``, computed by the workers."""
        w = np.array(w, dtype=np.float64).reshape(self.shape)
        return self.l2 * w + self._sum(self.ask(Shard.slope, w)) / self.n_terms

    # The shards -------------------------------------------------------------------------------------------------------

    def begin(self, ascent: SequenceDualAscent, seed: int) -> None:
        """Send every shard to a worker, with dual variables next to the labels."""
        self.ascent, self.seed = ascent, seed
        self.v = self._sum(self._placed(list(range(self.n_shards)))) / self.n_terms
        self.stale = False

    def rebuild(self) -> None:
        """``v`` from the dual variables as they are."""
        self.v = self._sum(self.ask(Shard.residual, self.v)) / self.n_terms
        self.stale = False

    def ascend(self, epochs: int) -> np.ndarray:
        """`epochs` epochs of every shard in parallel, and the new ``v``; returns counters, summed."""
        if self.stale:
            self.rebuild()
        self.sweep += epochs
        residuals, counters = zip(*self.ask(Shard.ascend, self.v, self.sweep), strict=True)
        self.v, self.stale = self._sum(residuals) / self.n_terms, False
        self._losses = [0] * self.n_shards
        return self._sum(counters)

    @staticmethod
    def _sum(parts: Any) -> np.ndarray:
        """In order, so that it does not depend on who answers first."""
        total = np.zeros_like(parts[0])
        for part in parts:
            total += part
        return total

    def ask(self, question: Callable, array: Any, *args: Any) -> list:
        """The answers of all shards to ``question(shard, array, *args)``, in order.

        A shard whose worker is lost is sent to another one, and asked there: its dual variables are then the marginals
        of the weights of `v`, and `stale` is set.
        """
        answers, open_ = [None] * self.n_shards, list(range(self.n_shards))
        while open_:
            lost = []
            for b, answer in zip(open_, self._asked(open_, question, array, *args), strict=True):
                if answer is _LOST:
                    lost.append(b)
                else:
                    answers[b] = answer
            if lost:
                self._notice(lost)
                self._placed(lost)
            open_ = lost
        return answers

    def _asked(self, which: list[int], question: Callable, array: Any, *args: Any) -> list:
        """What those shards answer, or `_LOST`."""
        given = self._broadcast(array)
        futures = [
            self.client.submit(question, self._shards[b], given, *args, workers=[self._homes[b]], pure=False)
            for b in which
        ]
        homes = [self._homes[b] for b in which]
        return self._reached(self.client.sync, _answers, self.client, futures, homes)

    def _broadcast(self, array: Any) -> Any:
        """A future of the array, which is sent to each worker that has a shard, once."""
        if array is None:
            return None
        if self._sent[0] is array:
            return self._sent[1]
        for _ in range(_LOSSES):
            living = self._workers()
            future = self._scattered(array, sorted(living.keys() & set(self._homes)) or list(living), broadcast=True)
            if future is not None:
                self._sent = array, future
                return future
        raise ClusterError("the workers of the cluster are lost as fast as weights are sent to them")

    def _scattered(self, thing: Any, workers: list[str], **options: Any) -> Any:
        """A future of the thing on these workers; None where one of them was lost meanwhile."""
        try:
            return self.client.scatter(thing, workers=workers, hash=False, **options)
        except (KeyError, OSError):
            return None

    def _placed(self, which: list[int]) -> list:
        """Put shards on the workers that have the fewest; returns their residuals."""
        residuals: dict[int, np.ndarray] = {}
        while open_ := [b for b in which if b not in residuals]:
            living = self._workers()
            load = Counter(dict.fromkeys(living, 0))
            load.update(home for b, home in enumerate(self._homes) if b not in open_ and home in living)
            for b in open_:
                home = min(living, key=lambda address: (load[address], address))
                load[home] += 1
                self._homes[b], self._shards[b] = home, self._scattered(self._shard(b, living[home]), [home])
            there = [b for b in open_ if self._shards[b] is not None]
            answers = self._asked(there, Shard.begin, self.v, self.sweep) if there else []
            residuals |= {b: answer for b, answer in zip(there, answers, strict=True) if answer is not _LOST}
            if lost := [b for b in open_ if b not in residuals]:
                self._notice(lost)
        return [residuals[b] for b in which]

    def _shard(self, b: int, threads: int) -> Shard:
        whole = self.whole
        jobs = threads if whole.n_jobs is None else whole.n_jobs
        problem = ChainProblem(whole.data[self.members[b]], whole.n_labels, whole.l2, whole.l1, whole.bias, jobs)
        return Shard(problem, self.ascent, b, self.n_shards, self.n_terms, self.seed)

    def _notice(self, lost: list[int]) -> None:
        """Say that shards were lost, give their workers the time to be started again, give up after too many."""
        for b in lost:
            self._losses[b] += 1
            if self._losses[b] >= _LOSSES:
                tokens = int(self.whole.data.lengths[self.members[b]].sum())
                raise ClusterError(
                    f"shard {b} ({tokens} tokens) was lost {_LOSSES} times in a row: if its worker lacks memory, use "
                    "more shards (n_blocks) on more workers, or marginals='float32'"
                )
        self.lost += len(lost)
        self.stale = True
        self._sent = (None, None)
        where = "next to the labels" if self.v is None else "at the marginals of the current weights"
        warnings.warn(
            f"the cluster lost {len(lost)} of {self.n_shards} shards with their workers "
            f"({', '.join(sorted({self._homes[b] for b in lost}))}): the dual variables of these sequences begin again "
            f"{where}, and the duality gap may rise",
            LostShardWarning,
            stacklevel=2,
        )
        end = time.monotonic() + _GRACE
        while len(self._workers()) < self.n_workers and time.monotonic() < end and not self.interrupted():
            time.sleep(0.1)

    def _workers(self) -> dict[str, int]:
        """The living workers and their threads; waits for one where there is none."""
        end = time.monotonic() + self.patience
        while True:
            living = self._reached(self.client.nthreads)
            if living:
                return living
            if time.monotonic() > end or self.interrupted():
                raise ClusterError(f"the cluster has no workers, and none came within {self.patience:g} seconds")
            time.sleep(0.1)

    @staticmethod
    def _reached(call: Callable, *args: Any) -> Any:
        try:
            return call(*args)
        except OSError as problem:
            raise ClusterError(f"the scheduler of the cluster cannot be reached: {problem}") from problem


async def _answers(client: Any, futures: list, homes: list[str]) -> list:
    """What the futures hold, in order, or `_LOST` for one whose worker is.

    A task bound to a worker that is gone may wait for ever, and a result may be lost on its way: so the list of the
    workers is looked at whenever something takes long.
    """
    waiting = {asyncio.ensure_future(_answer(future)): place for place, future in enumerate(futures)}
    answers: list[Any] = [_LOST] * len(futures)
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, timeout=_LOOK)
            for task in done:
                answers[waiting.pop(task)] = task.result()
            if waiting:
                living = await client.nthreads()
                for task in [task for task, place in waiting.items() if homes[place] not in living]:
                    task.cancel()
                    del waiting[task]
    finally:
        for task in waiting:
            task.cancel()
    return answers


async def _answer(future: Any) -> Any:
    from distributed import CancelledError, KilledWorker

    try:
        return await future
    except (CancelledError, KilledWorker, OSError):
        return _LOST
