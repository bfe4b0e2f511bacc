"""Step sizes, centring, and the conditions of Robbins and Monro."""

import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.interior_point import (
    ConstantSigma,
    Harmonic,
    MehrotraSigma,
    PowerSigma,
    barrier_from_gap,
    check_robbins_monro,
    relative_accuracy,
)


def test_harmonic_steps_and_sigmas():
    assert [Harmonic(50)(k) for k in (0, 49)] == [1 / 51, 1 / 100]
    assert Harmonic(1, power=0.6)(2) == pytest.approx(4**-0.6)
    assert [PowerSigma(0.9)(0), ConstantSigma(0.5)(9)] == [1.0, 0.5]
    assert PowerSigma(0.9)(9) == pytest.approx(10**-0.9)
    assert float(barrier_from_gap(0.5, np.array([1.0, 2.0]), np.array([1.0, 0.5]))) == 0.5


@pytest.mark.parametrize(
    ("schedule", "holds"),
    [
        (Harmonic(50), True),
        (Harmonic(1, power=0.6), True),
        (Harmonic(1, power=0.5), False),  # the squares do not converge
        (Harmonic(1, power=1.1), False),  # the sum does not diverge
        (optim.Constant(0.1), False),
        (optim.InverseSqrt(0.1), False),
        (optim.InverseCount(), True),
        (lambda k: 1 / (3 + k), True),
        (lambda k: (3 + k) ** -0.5, False),
        (lambda k: (3 + k) ** -1.2, False),
    ],
)
def test_the_conditions_of_robbins_and_monro(schedule, holds):
    report = check_robbins_monro(schedule)
    assert bool(report) == holds
    assert (report.how == "known") == (type(schedule).__module__.startswith("cumulant"))


def test_bad_settings_are_refused():
    for make in (
        lambda: Harmonic(-1),
        lambda: Harmonic(1, a0=0),
        lambda: Harmonic("1"),
        lambda: ConstantSigma(1.5),
        lambda: PowerSigma(-1),
        lambda: check_robbins_monro(lambda k: -1.0),
        lambda: relative_accuracy(0.0, 1.0),
    ):
        with pytest.raises(ValueError, match=r"must be"):
            make()
    with pytest.raises(TypeError, match="ceiling"):
        MehrotraSigma(ceiling=0.1)
