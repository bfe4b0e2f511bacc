"""Wrong calls of the public interface are refused with a sentence that names the argument.

From a valid call one argument is made wrong: another type, shape or nesting, NaN, infinity, nothing, a negative number,
an unknown name. What comes back is a `ValueError`, a `TypeError` or a `CumulantError` with the name of the argument in
its text, or an answer where the changed call is right too. Never an exception of Numba, JAX, NumPy or of the standard
library's insides. What scikit-learn says of `X` and `y` stands as it is.
"""

import re
import signal
import traceback
import warnings
from contextlib import contextmanager

import matplotlib
import numpy as np
import pytest

from cumulant.errors import CumulantError
from tests.laws.valid_calls import PACKAGES

matplotlib.use("Agg")

SECONDS = 20  # what one call may take


def numbers_wrong(value):
    return [np.nan, np.inf, -np.inf, -3, 0, 2.5, "three", None, [1.0, 2.0], {}, 1j, object(), np.ones((2, 2))]


def arrays_wrong(value):
    array = np.asarray(value)
    wrong = ["text", None, 3, [], {}, object(), np.zeros((0, 0)), np.array(["a", "b"]), [[1.0], [1.0, 2.0]], [object()]]
    wrong += [array[None], array[..., None], np.concatenate([array, array]), array * 1j, [None, "b"]]
    if array.size > 1 and array.ndim:
        wrong.append(array[:-1])
    if array.dtype.kind in "iuf":
        floats = array.astype(float)
        for bad in (np.nan, np.inf, -1e3, 0.5):
            changed = floats.copy()
            changed.flat[0] = bad
            wrong.append(changed)
    return wrong


def wrong_values(value):
    """Values that an argument with this valid value should probably not have."""
    if callable(value) and not isinstance(value, type):
        return [None, 3.0, "text", lambda: 0.0, lambda x: x, lambda *args: np.asarray("a")]
    if isinstance(value, str):
        return ["no such thing", "", 3, None, ["list"], object(), np.ones(2)]
    if isinstance(value, bool | int | float | np.generic):
        return numbers_wrong(value)
    if isinstance(value, dict):
        return [None, 3, "text", [], {"no such": 1}, {0: "no such"}, {0: [1, 2]}, object()]
    if isinstance(value, list | tuple) and len(value) and not isinstance(value[0], int | float | np.generic):
        value = list(value)
        return [None, 3, "text", [[]], [3], [None], [[None]], {"a": 1}, [["a", ["b"]]], [*value, 3], object(), value[0]]
    if isinstance(value, list | tuple | np.ndarray):
        return arrays_wrong(value)
    return [None, 3, "text", [], {}, object(), type(value), np.ones(2)]  # an object of ours


def wrong_calls(names=tuple(PACKAGES)):
    """The call, the argument, its wrong value, of all arguments."""
    for name in names:
        for call in PACKAGES[name]():
            for argument, value in call.arguments.items():
                for wrong in wrong_values(value):
                    yield call, argument, wrong
            yield call, "no_such_argument", 1


@contextmanager
def limited(seconds):
    def stop(*_):
        raise TimeoutError("the call hangs")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def verdict(call, argument, wrong):
    """What is wrong with the answer to a wrong call; None where nothing is."""
    import matplotlib.pyplot as plt

    try:
        with limited(SECONDS), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            call.function(**{**call.arguments, argument: wrong})
    except Exception as error:
        text = str(error)
        where = f"{call.name}({argument}={wrong!r:.60}): {type(error).__name__}: {text[:200]}"
        ours = type(error).__module__.split(".")[0] in ("builtins", "cumulant", "sklearn")
        if not ours or not isinstance(error, ValueError | TypeError | CumulantError | FileNotFoundError):
            return where
        by_sklearn = any("sklearn" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
        if not by_sklearn and not re.search(rf"\b{argument}\b", text):
            return f"{where} [does not name {argument}]"
    finally:
        plt.close("all")
    return None


def test_the_valid_calls_are_valid():
    """Two of each package, or else what follows tests nothing; the slow form makes all of them."""
    for make in PACKAGES.values():
        for call in list(make())[:2]:
            call.function(**call.arguments)


@pytest.mark.slow
def test_all_valid_calls_are_valid():
    for make in PACKAGES.values():
        for call in make():
            if call.name != "graphical.read_uai":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call.function(**call.arguments)


def trial(count, seed):
    every = list(wrong_calls())
    chosen = np.random.default_rng(seed).choice(len(every), size=count, replace=False)
    return [found for i in chosen if (found := verdict(*every[i]))]


def test_sixty_random_wrong_calls():
    assert not trial(60, seed=1)


@pytest.mark.slow
def test_three_hundred_random_wrong_calls():
    assert not trial(300, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_all_wrong_calls(package):
    assert not [found for each in wrong_calls([package]) if (found := verdict(*each))]
