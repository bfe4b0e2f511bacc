"""The process of Part 2: the calibration of the sheet, and the order of its draws."""

import numpy as np
import pytest

from cumulant.relational.temporal import TemporalProcess

# mean degrees and rates of the habit over five seeds, each end with a margin for seeds that are not those of the source
RANGES = {20: ((0.6, 5.0), (0.0, 0.6)), 100: ((1.3, 2.8), (0.12, 0.43)), 200: ((1.5, 2.4), (0.17, 0.36))}


@pytest.mark.parametrize("n", [20, 100, 200])
def test_calibration(n):
    """Section 5, Part 2: degrees .9-4.0, 1.5-2.4, 1.7-2.1 and rates .1-.5, .20-.35, .21-.30 over five seeds."""
    nets = [TemporalProcess(n).run(rng=seed)[0] for seed in range(5)]
    degrees = [net.degrees.mean() for net in nets]
    rates = [net.attribute.mean() for net in nets]
    equal = [(net.attribute[net.edges[:, 0]] == net.attribute[net.edges[:, 1]]).mean() for net in nets]
    (low, high), (least, most) = RANGES[n]
    assert low <= min(degrees) <= max(degrees) <= high
    assert least <= min(rates) <= max(rates) <= most
    assert min(equal) >= 0.7


def test_a_denser_population():
    """Part 3's stand-in: formation .03 gives a mean degree of 1.8 to 3.8 at n = 150."""
    degrees = [TemporalProcess(150, formation=0.03).run(rng=seed)[0].degrees.mean() for seed in range(3)]
    assert 1.6 < min(degrees) <= max(degrees) < 4.2


def test_the_first_draws_are_places_and_habits():
    """With nothing happening, the habits are those of the second draw."""
    rng = np.random.default_rng(5)
    rng.random((30, 2))
    habits = rng.random(30) < 0.3
    still = TemporalProcess(30, reset=0.0, adoption=0.0, formation=1e-12)
    (net,) = still.run(steps=(3,), rng=5)
    assert (net.attribute == habits).all()
    assert net.n_ties == 0


def test_several_times_are_of_one_population():
    process = TemporalProcess(40)
    early, late = process.run(steps=(50, 60), rng=1)
    (alone,) = process.run(steps=np.array([60]), rng=1)
    assert (late.ties == alone.ties).all()
    assert (early.ties & late.ties).sum() > 0.3 * early.ties.sum()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TemporalProcess(1), "n_people must be a whole number of at least 2"),
        (lambda: TemporalProcess(9, reset=1.5), "reset must be between 0 and 1"),
        (lambda: TemporalProcess(9).run(steps=(5, 3)), "steps must increase"),
        (lambda: TemporalProcess(9).run(steps=()), "steps must increase"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
