"""Certificates: what they say, how they refuse, and that they can be recomputed."""

import math

import numpy as np
import pytest

from cumulant.certificates import (
    Assumption,
    Certificate,
    Interval,
    Subject,
    assume,
    by_construction,
    check,
    issuer,
    recipe_of,
    rounding,
)
from cumulant.errors import CertificateError, CumulantError


@issuer
def squared_distance(problem, x):
    distance = float(np.sum((np.asarray(x) - problem) ** 2))
    return example(bound=Interval(-distance, distance) if len(problem) == 3 else distance)


def example(**changes):
    settings = {
        "quantity": "f(x) - f*",
        "bound": 0.25,
        "theorem": "strong convexity",
        "assumptions": (
            check(True, "mu > 0", "mu = 1"),
            by_construction("x is feasible"),
            assume("the data are i.i.d."),
        ),
        "slack": 1e-12,
        "recipe": recipe_of(squared_distance),
        "details": {"relative gap": 0.1},
    }
    return Certificate(**(settings | changes))


def test_a_person_can_read_it():
    text = str(example())
    assert text.splitlines()[0] == "f(x) - f* <= 0.25  [deterministic, rounding 1e-12]"
    assert "by strong convexity" in text
    assert "relative gap = 0.1" in text
    assert "✓ mu > 0 (checked: mu = 1)" in text
    assert "= x is feasible (by construction)" in text
    assert "? the data are i.i.d. (assumed)" in text
    assert "with probability at least 1 - 0.05" in str(example(kind="with probability", delta=0.05))
    assert "in [0, 1], estimate 0.5" in str(example(bound=Interval(0, 1, 0.5)))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bound": math.inf},
        {"bound": Interval(-1, 2, 0.5)},
        {"kind": "with probability", "delta": 1e-6},
        {"kind": "in expectation"},
    ],
)
def test_json_and_back(changes):
    certificate = example(**changes)
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"quantity": 1}', "nonsense"])
def test_what_is_not_a_certificate_is_refused(text):
    with pytest.raises(ValueError, match="not the JSON text of a certificate"):
        Certificate.from_json(text)


def test_a_failed_assumption_is_named_and_nothing_is_issued():
    with pytest.raises(CertificateError, match=r"it was not shown that the loss is smooth \(L = inf\)") as caught:
        check(False, "the loss is smooth", "L = inf")
    assert caught.value.assumption == "the loss is smooth"
    assert isinstance(caught.value, CumulantError)
    with pytest.raises(CertificateError, match="not a number"):
        example(bound=float("nan"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "with probability"}, "delta belongs to"),
        ({"delta": 0.1}, "delta belongs to"),
        ({"kind": "with probability", "delta": 1.5}, "strictly between"),
        ({"slack": -1.0}, "slack must be"),
        ({"slack": math.nan}, "slack must be"),
    ],
)
def test_claims_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        example(**changes)
    with pytest.raises(ValueError, match="status of an assumption"):
        Assumption("x", "hoped")  # type: ignore[arg-type]


def test_verification_recomputes_from_the_data():
    problem = np.array([1.0, 2.0])
    fresh = example().verify(Subject(problem, [1.0, 1.75]))
    assert fresh.bound == pytest.approx(0.0625)
    assert fresh.assumptions == example().assumptions
    with pytest.raises(CertificateError, match=r"claimed to be at most 0\.25.*gives 0\.36"):
        example().verify(Subject(problem, [1.0, 1.4]))
    with pytest.raises(CertificateError, match="not a number"):
        example().verify(Subject(problem, [1.0, np.nan]))
    with pytest.raises(TypeError, match=r"one argument, the subject.*got ndarray"):
        example().verify(problem)  # type: ignore[arg-type]


def test_verification_keeps_both_ends_of_an_interval():
    problem = np.array([1.0, 2.0, 3.0])
    claim = example(bound=Interval(-0.25, 0.25))
    fresh = claim.verify(Subject(problem, problem + np.array([0.25, 0.0, 0.0])))
    assert fresh.bound == Interval(-0.0625, 0.0625)
    with pytest.raises(CertificateError, match=r"claimed to be at least -0\.2"):
        example(bound=Interval(-0.2, 0.3)).verify(Subject(problem, problem + np.array([0.5, 0.0, 0.0])))
    assert claim.lower < -0.25 < 0.25 < claim.upper
    assert example().lower == -math.inf


@pytest.mark.parametrize(
    "changes",
    [
        {"quantity": "|x - x*|"},
        {"kind": "in expectation"},
        {"kind": "with probability", "delta": 0.1},
        {"theorem": "wishful thinking"},
        {"assumptions": ()},
        {"assumptions": (*example().assumptions[:2], check(True, "the data are i.i.d."))},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_certificate_that_was_tampered_with_does_not_verify(changes):
    subject = Subject(np.array([1.0, 2.0]), [1.0, 1.75])
    example().verify(subject)
    with pytest.raises(CertificateError, match="does not hold"):
        example(**changes).verify(subject)


def test_verification_after_a_round_trip_and_without_a_recipe():
    subject = Subject(np.zeros(1), [0.1])
    Certificate.from_json(example().to_json()).verify(subject)
    with pytest.raises(CertificateError, match="no recipe"):
        example(recipe="").verify(subject)
    with pytest.raises(CertificateError, match="no function is registered"):
        example(recipe="os:system").verify(subject)
    with pytest.raises(CertificateError, match="no function is registered"):
        example(recipe="cumulant.files:save").verify(subject)
    with pytest.raises(CertificateError, match="cannot be imported"):
        example(recipe="cumulant.no_such_module:save").verify(subject)


def test_intervals_contain_what_they_contain():
    interval = Interval(1, 2, 1.25)
    assert 1.0 in interval
    assert 2.0 in interval
    assert 2.5 not in interval
    assert interval.width == 1.0
    assert str(interval) == "[1, 2], estimate 1.25"
    for wrong in ((2, 1, None), (math.nan, 1, None), (0, 1, 2.0)):
        with pytest.raises(ValueError, match="interval"):
            Interval(*wrong)


def test_the_rounding_bound_covers_the_rounding_of_a_sum():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.normal(size=2000) * 10.0 ** rng.uniform(-8, 8, size=2000)
        naive = 0.0
        for v in values:
            naive += v
        assert abs(naive - math.fsum(values)) <= rounding(values, terms=values.size)
