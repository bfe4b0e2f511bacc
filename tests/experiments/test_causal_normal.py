"""The experiments on linear-Gaussian models and on real pairs: they run, and say so where the data are absent."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.experiments import causal_normal, causal_pairs
from cumulant.experiments._causal_pairs import data_file, share


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


def test_without_the_data_the_real_pairs_are_left_out(tmp_path, monkeypatch):
    monkeypatch.delenv("CUMULANT_DATA", raising=False)
    report = causal_pairs.run(tmp_path, quick=True)
    assert [claim.verdict for claim in report.claims] == ["reproduced"]
    for file in ("tuebingen_pairs.npz", "sachs.npz"):
        assert f"set CUMULANT_DATA to the folder that holds {file}" in report.notes
    assert report.pictures == ()


@pytest.mark.skipif(
    not all(map(data_file, ("tuebingen_pairs.npz", "sachs.npz"))),
    reason="set CUMULANT_DATA to the folder that holds tuebingen_pairs.npz and sachs.npz",
)
def test_the_real_pairs(tmp_path):
    report = causal_pairs.run(tmp_path, quick=True)
    assert len(report.claims) == 9
    assert len(report.pictures) == 2
    pairs, weights = causal_pairs._read(data_file("tuebingen_pairs.npz"))
    assert (len(pairs), sum(len(x) for x, _ in pairs)) == (99, 201_415)
    assert_allclose(weights.sum(), 35.5, atol=0.05)
    assert len(causal_pairs._read(data_file("sachs.npz"))[0]) == 18


def test_weighted_shares():
    """Wilson's interval solves ``(share - p)^2 = 4 p (1 - p) / n`` for p, and never has no width."""
    found = share([1, 0, 1, 1], [1, 1, 1, 1])
    assert found.mean == 0.75
    for end in found[1:]:
        assert_allclose((0.75 - end) ** 2, 4 * end * (1 - end) / 4)
    assert_allclose(share(np.ones(18), np.ones(18)), [1, 18 / 22, 1])
    assert_allclose(share([1, 0, 1], [2, 1, 1])[0], 0.75)
    assert_allclose(share([1, 1, 0], [1, 1, 0]), share([1, 1], [1, 1]))
