"""The demonstration of regression: its fits are optimal, its certificates hold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.report import glm


@pytest.fixture(scope="module")
def found():
    return glm.study(n_fits=5)


def test_the_fits_meet_the_conditions_of_an_optimum(found):
    X, y = found.train
    assert not found.fits[0].coef_.any()
    for l1, fit in zip(found.penalties[1:], found.fits[1:], strict=True):
        w = fit.coef_[0]
        gradient = X.T @ (1 / (1 + np.exp(-X @ w - fit.intercept_[0])) - y) / y.size
        # A gap leaves a gradient of sqrt(2 L gap) at most, L the curvature of the mean loss.
        near = np.sqrt(2 * np.linalg.norm(X, 2) ** 2 / (4 * y.size) * fit.certificate_.upper)
        assert near < 0.1 * l1
        assert_allclose(gradient[w != 0], -l1 * np.sign(w[w != 0]), atol=near)
        assert np.abs(gradient).max() <= l1 + near


def test_no_certificate_is_below_the_truth(found):
    history = found.watched.history_
    lowest = found.reference.objective_
    assert found.reference.certificate_.upper < 1e-12
    assert all(row["objective"] - lowest <= row["bound"] + 1e-12 for row in history)
    assert history[-1]["bound"] <= 1e-9 * lowest * 1.01


def test_the_section_counts_what_it_says(found, tmp_path, monkeypatch):
    monkeypatch.setattr(glm, "study", lambda: found)
    monkeypatch.setattr(glm, "_SHOWN", (0, 2, 4))
    section = glm.measurements(tmp_path)
    X, y = found.test
    for row, i in zip(section.tables[0].rows, (0, 2, 4), strict=True):
        fit = found.fits[i]
        wrong = np.mean((X @ fit.coef_[0] + fit.intercept_[0] > 0) != y)
        assert int(row[1]) == np.sum(fit.coef_ != 0)
        assert float(row[2].split(" ± ")[0]) == pytest.approx(100 * wrong, abs=0.06)
    assert section.certificates == [found.fits[4].certificate_]
    assert section.pictures[0][0].read_bytes().startswith(b"\x89PNG")
