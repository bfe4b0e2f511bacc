"""Ctrl-C: the first one ends a run at the next safe point and keeps its answer, the second one ends the program.

A program that makes several runs, such as a grid search, would go on with the next one. So for two seconds after an
interrupted run another Ctrl-C is not for the run that it meets, but for the program.
"""

import math
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

_SECONDS = 2.0  # after an interrupted run, in which Ctrl-C ends the program


class InterruptedWarning(UserWarning):
    """A run was ended by Ctrl-C: its answer is the best so far, with its certificate."""


class LastInterruption:
    """When the last interrupted run ended, and whether Ctrl-C was pressed twice in it."""

    ended = -math.inf
    twice = False

    @classmethod
    def forget(cls) -> None:
        """As if there had been none."""
        cls.ended, cls.twice = -math.inf, False

    @classmethod
    def is_recent(cls) -> bool:
        """Whether another Ctrl-C now is meant for the program."""
        return time.monotonic() - cls.ended < _SECONDS


class Interruption:
    """While this context is open, the first Ctrl-C sets `requested` and the second raises `KeyboardInterrupt`.

    A step that consumes its state must not be torn in the middle. Within two seconds after a run that was interrupted
    the first one raises `KeyboardInterrupt` too, and sets `final`: it is not to be caught. So does opening the context
    in that time, where that run was interrupted twice. Where the signal cannot be ours (another thread, or a handler of
    the application's own), nothing is changed and a `KeyboardInterrupt` arrives as usual.
    """

    def __init__(self):
        self.requested = False
        self.final = False
        self._twice = False
        self._previous: Any = None

    def __enter__(self) -> "Interruption":
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            if LastInterruption.twice and LastInterruption.is_recent():
                LastInterruption.forget()
                raise KeyboardInterrupt
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is None:
            return
        signal.signal(signal.SIGINT, self._previous)
        if self.final:
            LastInterruption.forget()
            if kind is None:
                raise KeyboardInterrupt
        elif self.requested:
            LastInterruption.ended, LastInterruption.twice = time.monotonic(), self._twice

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.final = self.final or LastInterruption.is_recent()
        self._twice = self.requested
        if self.requested or self.final:
            signal.default_int_handler(number, frame)
        self.requested = True
