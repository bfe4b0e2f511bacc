"""Kaufman's formula against enumeration, transfer matrices and 80 digits, and the models that use it by themselves."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.graphical import Ising, bound_log_partition, grid, torus, torus_log_partition
from cumulant.graphical.kaufman import Torus, torus_columns

CRITICAL = math.log(1 + math.sqrt(2)) / 2
COUPLINGS = [
    (0.1, 0.1), (CRITICAL, CRITICAL), (1.0, 1.0), (0.2, 0.7), (2.0, 0.05), (1e-5, 0.5), (0.5, 1e-5), (0.0, 0.5),
    (0.5, 0.0), (30.0, 30.0), (-0.3, 0.2), (0.2, -0.3), (-0.5, -0.5),
]  # fmt: skip


def enumerated(rows, columns, across, down):
    """``log Z`` and the means of the two kinds of bonds over all states."""
    n = rows * columns
    x = np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8).reshape(-1, rows, columns)
    beside, below = ((x * np.roll(x, -1, axis)).sum(axis=(1, 2), dtype=np.float64) for axis in (2, 1))
    scores = across * beside + down * below
    weights = np.exp(scores - scores.max())
    total = weights.sum()
    return scores.max() + math.log(total), beside @ weights / total / n, below @ weights / total / n


def by_transfer_matrix(rows, columns, across, down):
    """``log Z`` as the trace of a power of the matrix that goes from one row to the next, in 80 digits."""
    states = list(itertools.product([-1, 1], repeat=columns))
    a, d = mpmath.mpf(across), mpmath.mpf(down)
    row = [sum(s[i] * s[(i + 1) % columns] for i in range(columns)) for s in states]
    between = {k: mpmath.exp(d * k) for k in range(-columns, columns + 1)}
    inside = {k: mpmath.exp(a * k) for k in set(row)}
    T = mpmath.matrix(len(states))
    for i, s in enumerate(states):
        for j, t in enumerate(states):
            T[i, j] = between[sum(p * q for p, q in zip(s, t, strict=True))] * inside[row[j]]
    power = T**rows
    return mpmath.log(sum(power[i, i] for i in range(len(states))))


def in_digits(rows, columns, across, down):
    """The formula as it is printed, for ``cosh gamma``, in 80 digits."""
    L, K = mpmath.mpf(abs(across)), mpmath.mpf(abs(down))
    dual = -mpmath.log(mpmath.tanh(K)) / 2
    products = [mpmath.mpf(1)] * 4
    for k in range(2 * columns):
        cosine = mpmath.cos(mpmath.pi * k / columns)
        cosh = mpmath.cosh(2 * L) * mpmath.cosh(2 * dual) - mpmath.sinh(2 * L) * mpmath.sinh(2 * dual) * cosine
        gamma = 2 * (L - dual) if k == 0 else mpmath.acosh(cosh)
        odd = 0 if k % 2 else 2
        products[odd] *= 2 * mpmath.cosh(rows * gamma / 2)
        products[odd + 1] *= 2 * mpmath.sinh(rows * gamma / 2)
    return mpmath.log(sum(products) / 2) + mpmath.mpf(rows * columns) / 2 * mpmath.log(2 * mpmath.sinh(2 * K))


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 4), (4, 3), (4, 4), (5, 3)])
def test_all_states_of_small_tori(rows, columns):
    tried = 0
    for across, down in COUPLINGS:
        model = Torus(rows, columns, across, down)
        if model.solvable:
            truth, beside, below = enumerated(rows, columns, across, down)
            value, error = model.log_partition()
            assert abs(value - truth) <= error + 1e-14 * abs(truth)
            assert_allclose(model.bond_means(), (beside, below), atol=1e-13)
            tried += 1
        else:
            with pytest.raises(DomainError, match="even direction"):
                model.log_partition()
    assert tried >= 10


def test_the_rounding_bound_holds_over_hundreds_of_sizes_and_couplings():
    rng, widths = np.random.default_rng(0), []
    with mpmath.workdps(80):
        for trial in range(300):
            rows, columns = (int(r) for r in rng.integers(3, 24, 2))
            couplings = 10.0 ** rng.uniform(-7, 2, 2) if trial % 3 else np.full(2, CRITICAL * (1 + 1e-9 * trial))
            value, error = Torus(rows, columns, *couplings).log_partition()
            truth = in_digits(rows, columns, *couplings)
            assert abs(mpmath.mpf(value) - truth) <= error
            if trial % 5 == 0:
                beside = np.diff(torus(rows, columns), axis=1).ravel() % columns != 0
                found = bound_log_partition(Ising(torus(rows, columns), np.where(beside, *couplings)))
                assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)
            widths.append(error / value)
    assert max(widths) < 1e-12  # and it is no excuse either


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (7, 4), (12, 3), (50, 4)])
def test_the_power_of_a_transfer_matrix_in_80_digits(rows, columns):
    with mpmath.workdps(80):
        for across, down in [(1e-6, 1e-6), (0.3, 0.5), (CRITICAL, CRITICAL), (0.01, 3.0), (40.0, 40.0)]:
            value, error = Torus(rows, columns, across, down).log_partition()
            assert abs(mpmath.mpf(value) - by_transfer_matrix(rows, columns, across, down)) <= error


def test_a_model_on_a_torus_finds_the_formula_by_itself():
    model = Ising(torus(64, 64), 0.44)
    assert_allclose(model.log_partition(), torus_log_partition(64, 64, 0.44), rtol=0)
    step = 1e-5
    slope = (torus_log_partition(64, 64, 0.44 + step) - torus_log_partition(64, 64, 0.44 - step)) / (2 * step)
    assert_allclose(model.mean()[4096:].sum(), slope, rtol=1e-8)
    assert_allclose(model.entropy(), model.log_partition() - 0.44 * slope, rtol=1e-6)
    assert_allclose(model.marginals(), 0.5)
    assert_allclose(model.log_prob(np.ones(4096)), 2 * 4096 * 0.44 - model.log_partition())
    with pytest.raises(TooWide, match="method='mcmc'"):
        model.sample(2)
    draws = model.sample(200, rng=0, method="mcmc", burn_in=300)

    def agreement(x):
        return (x[:, model.edges[:, 0]] * x[:, model.edges[:, 1]]).mean(axis=1)

    assert draws.method == "swendsen_wang"
    assert abs(draws.mean(agreement) - slope / 8192) < 4 * draws.standard_error(agreement)


def test_small_models_agree_with_elimination_in_every_answer():
    rng = np.random.default_rng(1)
    edges = torus(4, 5)
    beside = edges[:, 0] // 5 == edges[:, 1] // 5
    shuffled = rng.permutation(len(edges))
    model = Ising(edges[shuffled][:, ::-1], np.where(beside, 0.3, -0.6)[shuffled])
    assert torus_columns(model.structure, model.edges) == 5
    exact = {"method": "elimination"}
    assert_allclose(model.log_partition(), model.log_partition(**exact), rtol=1e-14)
    assert_allclose(model.mean(), model.mean(**exact), atol=1e-13)
    assert_allclose(model.entropy(), model.entropy(**exact), rtol=1e-12)
    assert_allclose(np.array(model.beliefs()[-1]), model.beliefs(**exact)[-1], atol=1e-13)


@pytest.mark.parametrize(
    "model",
    [
        Ising(torus(4, 5), 0.3, 0.1),  # a field
        Ising(torus(3, 5), -0.3),  # frustrated: odd directions
        Ising(grid(4, 5), 0.3),
        Ising(torus(4, 5), np.where(np.arange(40) == 7, 0.2, 0.3)),
        Ising(torus(4, 5), 0.3).given({3: 1}),
    ],
    ids=["field", "odd", "grid", "uneven", "given"],
)
def test_other_models_are_not_taken_for_a_torus(model):
    assert_allclose(model.log_partition(), model.log_partition(method="enumeration"), rtol=1e-12)


def test_the_interval_of_a_torus_has_a_certificate_that_verifies():
    model = Ising(torus(64, 64), 0.44)
    interval = bound_log_partition(model)
    certificate = interval.certificate
    assert interval.width < 1e-9
    assert torus_log_partition(64, 64, 0.44) in interval
    assert certificate.verify(Subject(model, interval)).bound == certificate.bound
    assert Certificate.from_json(certificate.to_json()).verify(Subject(model, interval)).bound == certificate.bound
    for other in (Ising(torus(64, 64), 0.45), Ising(torus(64, 64), 0.44, 0.1)):
        with pytest.raises(CertificateError):
            certificate.verify(Subject(other, interval))


def test_refusals():
    with pytest.raises(ValueError, match="at least 3"):
        torus_log_partition(2, 5, 0.3)
    with pytest.raises(ValueError, match="rows must be a whole number"):
        torus_log_partition(3.7, 5, 0.3)  # was taken for 3
    with pytest.raises(ValueError, match="couplings must be"):
        torus_log_partition(4, 5, [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="couplings must be"):
        torus_log_partition(4, 5, np.inf)
    with pytest.raises(DomainError, match="even direction"):
        torus_log_partition(3, 4, (0.3, -0.3))
