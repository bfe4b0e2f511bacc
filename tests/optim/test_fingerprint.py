import dataclasses
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse

from cumulant import optim
from cumulant.geometry import Burg, Hypentropy, Shannon
from cumulant.optim.driver.fingerprint import fingerprint
from tests.optim.cases import RIDGE, A, Y, log_sum_exp


def test_equal_contents_have_equal_prints_and_other_contents_others():
    different = [
        None,
        1,
        1.0,
        True,
        "1",
        np.array([1.0, 2.0]),
        np.array([1.0, 2.0], dtype=np.float32),
        np.array([[1.0, 2.0]]),
        np.array([1, 2]),
        [1.0, 2.0],
        (1.0, 2.0),
        {"a": 1.0},
        {"b": 1.0},
        sparse.csr_array(np.eye(2)),
        sparse.csr_array(np.eye(3)),
        RIDGE,
        optim.LeastSquares(A, Y, 0.31),
        optim.LeastSquares(A, Y, 0.3, reduction="sum"),
        optim.Objective(log_sum_exp, A),
        optim.Objective(log_sum_exp, A, convex=True),
        optim.GradientDescent(),
        optim.GradientDescent(0.1),
        Shannon(),
        Burg(),
        Hypentropy(1.0),
        Hypentropy(2.0),
        jax.jit(log_sum_exp),
        np.exp,
        np.log,
    ]
    prints = [fingerprint(thing) for thing in different]
    assert len(set(prints)) == len(prints)
    assert fingerprint(optim.LeastSquares(A.copy(), Y.copy(), 0.3)) == fingerprint(RIDGE)
    assert fingerprint(jnp.asarray([1.0, 2.0])) == fingerprint(np.array([1.0, 2.0], dtype=np.float32))
    assert fingerprint(sparse.csc_array(np.eye(2))) == fingerprint(sparse.csr_array(np.eye(2)))
    assert fingerprint(A.T.copy().T) == fingerprint(A)  # the same numbers, laid out in another order


def test_closures_count_by_what_they_hold():
    def make(c):
        return lambda x, data: c * x

    assert fingerprint(make(1.0)) == fingerprint(make(1.0))
    assert fingerprint(make(1.0)) != fingerprint(make(2.0))


def test_it_is_the_same_in_another_process():
    make = "optim.LeastSquares([[1.0, 2.0], [0.5, 3.0]], [1.0, 2.0], 0.1)"
    imports = "from cumulant import optim; from cumulant.optim.driver.fingerprint import fingerprint"
    script = f"{imports}; print(fingerprint({make}))"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert other == fingerprint(optim.LeastSquares([[1.0, 2.0], [0.5, 3.0]], [1.0, 2.0], 0.1))


def test_things_without_contents_may_say_their_own():
    class Opaque:
        pass

    @dataclasses.dataclass
    class Told:
        name: str

    class Own(Opaque):
        def fingerprint(self):
            return "me"

    with pytest.raises(TypeError, match="a Opaque has no fingerprint"):
        fingerprint(Opaque())
    with pytest.raises(TypeError, match="array of Python objects"):
        fingerprint(np.array([object()]))
    assert fingerprint(Own()) == fingerprint(Own())
    assert fingerprint(Told("a")) != fingerprint(Told("b"))
