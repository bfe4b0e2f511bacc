"""Islands on the workers of a Dask cluster."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from cumulant import checks

_LOOK = 1.0  # seconds between two looks at whether there are workers
_GRACE = 10.0  # seconds without any worker after which the islands that are left are lost


def run_on_cluster(client: Any, work: Callable[[Any], Any], islands: Sequence[Any]) -> list[Any]:
    """``work(island)`` for every island (its seed, or where it stands), in order, on the workers; None for an island
    that was lost.

    Dask runs an island again where its worker was lost, with the same seed and so the same answer. An island is lost
    where its workers were lost each time, or where no worker is left.
    """
    import distributed

    checks.instance("client", client, distributed.Client, "a distributed.Client")
    if client.asynchronous:
        raise ValueError("client must be made with asynchronous=False: islands are waited for")
    futures = [client.submit(work, island, pure=False) for island in islands]
    seen = time.monotonic()
    while any(not future.done() for future in futures):
        try:
            distributed.wait(futures, timeout=_LOOK)
        except TimeoutError:
            if client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > _GRACE:
                break
    return [_answer(future) for future in futures]


def _answer(future: Any) -> Any:
    import distributed

    if not future.done():
        future.cancel()
        return None
    try:
        return future.result()
    except (distributed.KilledWorker, distributed.CancelledError):
        return None
    except OSError:  # of the connection, unless the island itself raised it
        if future.status == "error":
            raise
        return None
