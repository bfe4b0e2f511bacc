import numpy as np
import pytest
from scipy import stats

from cumulant import families
from cumulant.report.fits import comparison, parameters, with_error


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (3.14159, 0.0271, "3.142 ± 0.027"),
        (0.00152698, 0.000064, "0.001527 ± 0.000064"),
        (123626.4, 7329.2, "123626 ± 7329"),
        (5.0, 0.0, "5 ± 0"),
        (1e-12, 3e-13, "1e-12 ± 3e-13"),
        (2.0, np.inf, "2 ± inf"),
    ],
)
def test_the_error_sets_the_digits(value, error, text):
    assert with_error(value, error) == text


@pytest.fixture(scope="module")
def data():
    return stats.gamma(3.0, scale=2.0).rvs(300, random_state=0)


@pytest.fixture(scope="module")
def fits(data):
    return families.compare(data, [families.Exponential(), families.Gamma()])


def test_families_are_ranked_by_the_criterion_of_akaike(data, fits):
    table = comparison(fits)
    shape, _, scale = stats.gamma.fit(data, floc=0)
    best = stats.gamma(shape, scale=scale).logpdf(data).sum()
    other = stats.expon(scale=data.mean()).logpdf(data).sum()
    assert [row[0] for row in table.rows] == ["Gamma", "Exponential"]
    assert float(table.rows[0][2]) == pytest.approx(best, abs=0.051)
    assert float(table.rows[1][3]) == pytest.approx(2 * 1 - 2 * other - (2 * 2 - 2 * best), abs=0.11)


def test_parameters_are_named_with_their_errors(fits):
    fit = fits["Exponential"].estimate
    words = parameters(fit)
    rate, error = (float(part) for part in words.removeprefix("rate ").split(" ± "))
    assert rate == pytest.approx(float(fit.usual["rate"]), rel=1e-2)
    assert error == pytest.approx(float(fit.usual["rate"]) / np.sqrt(300), rel=0.05)
