"""Ctrl-C in a grid search over taggers: once ends a fit, twice within two seconds ends the search."""

import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager

_SEARCH = textwrap.dedent("""
    import time
    from sklearn.model_selection import GridSearchCV
    from cumulant.sequences import ChainCRF
    from cumulant.sequences.data import digit_words

    def told(snapshot):
        if snapshot.step == 1:
            print("running", flush=True)
            time.sleep(0.5)  # in which the test presses Ctrl-C
        return snapshot.step == 3

    X, y = digit_words.make(100, rng=0)
    crf = ChainCRF(tol=1e-15, callback=told)
    search = GridSearchCV(crf, {"l2": [1e-3]}, cv=3, refit=False).fit(X, y)
    print("done", search.cv_results_["mean_test_score"][0] > 0.3, flush=True)
""")


@contextmanager
def searching():
    process = subprocess.Popen(
        [sys.executable, "-c", _SEARCH], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def press(process):
    """Ctrl-C, once a fit is running."""
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)


def test_a_second_ctrl_c_ends_the_search():
    with searching() as process:
        press(process)  # in the first fit, which ends
        press(process)  # in the second, right after
        out, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert out == ""
    assert err.count("InterruptedWarning: ") == 1
    assert "Another Ctrl-C within two seconds ends the program" in err
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_one_ctrl_c_ends_one_fit():
    with searching() as process:
        press(process)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "running\nrunning\ndone True\n")
    assert err.count("InterruptedWarning: ") == 1
