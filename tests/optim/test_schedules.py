import jax
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.schedules import as_schedule


def test_published_values():
    assert optim.InverseTime(0.05, 100)(400) == pytest.approx(0.01, abs=1e-15)
    assert float(optim.InverseSqrt(0.05, 100)(400)) == pytest.approx(0.0166666667, rel=1e-6)


def test_the_inverse_count_averages():
    x = np.random.default_rng(0).normal(size=50)
    mean, schedule = 0.0, optim.InverseCount()
    for k, value in enumerate(x):
        mean += schedule(k) * (value - mean)
    assert mean == pytest.approx(np.mean(x), abs=1e-12)


def test_numbers_are_data_so_a_sweep_compiles_once():
    count = []

    @jax.jit
    def use(schedule, k):
        count.append(1)
        return schedule(k)

    for tau in (0.1, 0.2, 0.3):
        assert float(use(optim.InverseTime(tau, 2.0), 2)) == pytest.approx(tau / 2)
    assert len(count) == 1


def test_bad_numbers_are_refused():
    for make in (lambda: optim.Constant(0), lambda: optim.InverseTime(-1.0), lambda: optim.InverseSqrt(1.0, 0.0)):
        with pytest.raises(ValueError, match="must be positive"):
            make()
    with pytest.raises(ValueError, match="zero or positive; got -1"):
        optim.InverseCount(-1)
    with pytest.raises(ValueError, match="step_size must be a positive number or a schedule; got 'fast'"):
        as_schedule("fast")
