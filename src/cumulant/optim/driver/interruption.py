"""Ctrl-C, politely: the first one asks a run to end at the next safe point, the second one insists."""

import signal
import threading
from types import FrameType
from typing import Any


class Interruption:
    """While this context is open, the first Ctrl-C sets `requested` and the second raises `KeyboardInterrupt`.

    A step that consumes its state must not be torn in the middle. Where the signal cannot be ours (another thread, or a
    handler of the application's own), nothing is changed and a `KeyboardInterrupt` arrives as usual.
    """

    def __init__(self):
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> "Interruption":
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            signal.default_int_handler(number, frame)
        self.requested = True
