"""The polynomials for `exp` and `log` against exact values, in units in the last place."""

import mpmath
import numpy as np
import pytest

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from tests.compiled import from_python

SMALLEST, LARGEST = np.finfo(float).tiny, np.finfo(float).max
ULPS = 2.0


@kernel
def _exp(values, out):
    for i in range(values.size):
        out[i] = fast_exp(values[i])


@kernel
def _log(values, out):
    for i in range(values.size):
        out[i] = fast_log(values[i])


# The freedoms that the loops over chains take: they must not reach into the polynomials.
@kernel(fastmath={"reassoc", "contract", "nsz"})
def _exp_reassociated(values, out):
    for i in range(values.size):
        out[i] = fast_exp(values[i])


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _log_reassociated(values, out):
    for i in range(values.size):
        out[i] = fast_log(values[i])


def neighbours(values, steps=4):
    """The values with the next few floating-point numbers on either side."""
    values = np.asarray(values, dtype=float)
    out, up, down = [values], values, values
    for _ in range(steps):
        up, down = np.nextafter(up, np.inf), np.nextafter(down, -np.inf)
        out += [up, down]
    return np.concatenate(out)


def ulps(loop, exact, values):
    """The errors of ``loop`` at `values`, in units in the last place of the exact answer."""
    out = np.empty(values.size)
    loop(values, out)
    with mpmath.workprec(120):
        exacts = [exact(mpmath.mpf(float(v))) for v in values]
        errors = np.array([float(mpmath.mpf(float(o)) - e) for o, e in zip(out, exacts, strict=True)])
    return np.abs(errors) / np.spacing(np.abs(np.array([float(e) for e in exacts])))


def exponents():
    rng = np.random.default_rng(0)
    halves = (np.arange(-2042, 2046, 3) + 1) * (np.log(2) / 2)  # where the rounding of x / log 2 turns over
    small = rng.choice([-1.0, 1.0], 2000) * 10.0 ** rng.uniform(-300, 0, 2000)
    values = np.concatenate(
        [
            rng.uniform(-708, 709, 6000),
            rng.uniform(-1, 1, 4000),
            small,
            neighbours(halves, 1),
            [0.0, -0.0, -708.0, 709.0],
        ]
    )
    return values[(values >= -708) & (values <= 709)]


def positives():
    rng = np.random.default_rng(1)
    powers = 2.0 ** np.arange(-1022, 1024, 7.0)
    values = np.concatenate(
        [
            np.exp2(rng.uniform(-1022, 1024, 6000)),
            1.0 + rng.uniform(-0.5, 1.0, 4000),
            1.0 + rng.choice([-1.0, 1.0], 2000) * 2.0 ** rng.uniform(-53, -1, 2000),
            neighbours(powers, 1),
            neighbours(powers * np.sqrt(0.5), 1),  # where the exponent turns over
            neighbours([1.0], 20),
            [SMALLEST, LARGEST],
        ]
    )
    return values[(values >= SMALLEST) & (values <= LARGEST)]


@pytest.mark.parametrize("loop", [_exp, _exp_reassociated])
def test_exp_within_two_units_in_the_last_place(loop):
    assert ulps(loop, mpmath.exp, exponents()).max() <= ULPS


@pytest.mark.parametrize("loop", [_log, _log_reassociated])
def test_log_within_two_units_in_the_last_place(loop):
    values = positives()
    values = values[values != 1.0]
    assert ulps(loop, mpmath.log, values).max() <= ULPS
    assert from_python(fast_log)(1.0) == 0.0


def test_exp_ends_where_it_says():
    exp = from_python(fast_exp)
    assert exp(0.0) == 1.0
    assert exp(-708.0) == pytest.approx(np.exp(-708.0), rel=1e-15)
    for low in (np.nextafter(-708.0, -np.inf), -709.0, -745.0, -1e4, -1e300, -LARGEST):
        assert exp(low) == 0.0
    assert np.isfinite(exp(709.0))


@pytest.mark.parametrize("x", [0.0, 5e-324, 1e-310, np.nextafter(SMALLEST, 0.0)])
def test_log_counts_what_is_below_normal_as_the_smallest(x):
    log = from_python(fast_log)
    assert log(x) == log(SMALLEST)
    assert log(x) == pytest.approx(-708.3964185322641, rel=1e-15)


def test_they_undo_each_other():
    x = np.random.default_rng(2).uniform(-700, 700, 2000)
    powers, back = np.empty(2000), np.empty(2000)
    _exp(x, powers)
    _log(powers, back)
    # 2 units in the last place of exp(x) move the logarithm by 2 eps; then 2 units of x itself
    assert np.all(np.abs(back - x) <= 2 * np.finfo(float).eps + 2 * np.spacing(np.abs(x)))
