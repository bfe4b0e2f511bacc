"""The experiments on linear-Gaussian models and on real pairs: they run, and say so where the data are absent."""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.experiments import causal_normal


def test_the_figure_of_normal_models(tmp_path):
    report = causal_normal.run(tmp_path, quick=True, rng=0)
    assert {claim.verdict for claim in report.claims} == {"reproduced", "corrected"}
    assert [c.item for c in report.claims if c.verdict == "corrected"] == [
        "Appendix 4.E.2",
        "Appendix 4.F",
        "(4.22), Theorem 4.D.2",
        "Lemma 4.D.1",
    ]
    assert all(picture.stat().st_size > 20_000 for picture in report.pictures)
    assert len(report.pictures) == 1


def test_the_hessian_of_an_observation():
    """Against differences of the gradient, in the parameters that the residuals see."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 2))

    def value(v):
        zeta, L, rest = v[[0, 3]], np.array([[v[1], 0.0], [v[2], v[4]]]), v[5:]
        m, M = rest[[0, 5]], np.stack([rest[1:3], rest[6:8]])
        Lc = np.array([[rest[3], 0.0], [rest[4], rest[8]]])
        return 0.5 * np.sum((L.T @ x - zeta) ** 2) + 0.5 * np.sum((Lc.T @ y - M @ x - m) ** 2)

    unit = np.eye(14)
    numeric = [[value(a + b) - value(a) - value(b) + value(0 * a) for a in unit] for b in unit]
    assert_allclose(causal_normal.hessian(x, y), numeric, atol=1e-12)


@pytest.mark.parametrize(("name", "file"), [("causal_pairs", "tuebingen_pairs.npz"), ("causal_proteins", "sachs.npz")])
def test_without_the_data_it_says_so(name, file, tmp_path, monkeypatch):
    monkeypatch.delenv("CUMULANT_DATA", raising=False)
    report = importlib.import_module(f"cumulant.experiments.{name}").run(tmp_path, quick=True)
    assert not any("accuracy" in claim.statement for claim in report.claims)
    assert f"set CUMULANT_DATA to the folder that holds {file}" in report.notes
