"""The demonstration: its numbers are those of SciPy and NumPy, its page and pictures are there."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import datasets

from cumulant.cli import main
from cumulant.report import demo


def column(table, heading):
    return {row[0]: row[table.headings.index(heading)] for row in table.rows}


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_tumours(tmp_path):
    section = demo.tumours(tmp_path)
    data = datasets.load_breast_cancer()
    area = data.data[:, list(data.feature_names).index("mean area")]
    laws = {
        "Gamma": stats.gamma,
        "LogNormal": stats.lognorm,
        "InverseGamma": stats.invgamma,
        "Exponential": stats.expon,
    }
    found = {name.split("(")[0]: float(value) for name, value in column(section.tables[0], "log likelihood").items()}
    for name, law in laws.items():
        assert found[name] == pytest.approx(law(*law.fit(area, floc=0)).logpdf(area).sum(), abs=0.06)
    weibull = stats.weibull_min(*stats.weibull_min.fit(area, floc=0))
    assert found["WeibullKnownShape"] == pytest.approx(weibull.logpdf(area).sum(), abs=0.06)
    assert found["Normal"] == pytest.approx(stats.norm(area.mean(), area.std()).logpdf(area).sum(), abs=0.06)
    assert is_picture(section.pictures[0][0])


def test_irises(tmp_path):
    section = demo.irises(tmp_path)
    data = datasets.load_iris()
    flowers = [data.data[data.target == k] for k in range(3)]
    setosa = section.tables[0].rows[0]
    mean, error = map(float, setosa[1].split(" ± "))
    assert mean == pytest.approx(flowers[0][:, 0].mean(), abs=1e-3)
    assert error == pytest.approx(flowers[0][:, 0].std() / np.sqrt(50), abs=1e-3)

    def kl(a, b):
        covariance = [np.cov(x.T, bias=True) for x in (a, b)]
        shift = b.mean(0) - a.mean(0)
        inverse = np.linalg.inv(covariance[1])
        logs = np.linalg.slogdet(covariance[1])[1] - np.linalg.slogdet(covariance[0])[1]
        return 0.5 * (np.trace(inverse @ covariance[0]) + shift @ inverse @ shift - 4 + logs)

    table = section.tables[1]
    for i, row in enumerate(table.rows):
        assert_allclose([float(cell) for cell in row[1:]], [kl(flowers[i], b) for b in flowers], atol=0.051)
    (certificate,) = section.certificates
    assert certificate.kind == "in expectation"
    assert certificate.details["n"] == 50
    # E KL of the fit by simulation, with nothing of Cumulant: the truth may be taken standard.
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(4000):
        x = rng.standard_normal((50, 4))
        covariance = np.cov(x.T, bias=True)
        inverse = np.linalg.inv(covariance)
        centre = x.mean(0)
        draws.append(0.5 * (np.trace(inverse) + centre @ inverse @ centre - 4 + np.linalg.slogdet(covariance)[1]))
    assert abs(np.mean(draws) - certificate.bound.estimate) < 4 * np.std(draws) / np.sqrt(4000)
    assert is_picture(section.pictures[0][0])
    assert "infinite for 6 flowers or fewer" in section.paragraphs[1]


def test_wines(tmp_path):
    section = demo.wines(tmp_path)
    data = datasets.load_wine()
    colour = data.data[:, list(data.feature_names).index("color_intensity")]
    for label, row in enumerate(section.tables[0].rows):
        group = colour[data.target == label]
        shape, _, scale = stats.gamma.fit(group, floc=0)
        rate = float(re.search(r"rate ([\d.]+)", row[2]).group(1))
        assert rate == pytest.approx(1 / scale, rel=0.01)
        mean, error = map(float, row[3].split(" ± "))
        assert mean == pytest.approx(group.mean(), abs=0.01)
        assert error == pytest.approx(np.sqrt(shape) * scale / np.sqrt(group.size), abs=0.01)
    assert is_picture(section.pictures[0][0])


def test_digits(tmp_path):
    section = demo.digits(tmp_path)
    images = datasets.load_digits().images
    lit, ink = (images > 0).sum((1, 2)), images[:, 1, 1].astype(int)
    first, second = (column(table, "log likelihood") for table in section.tables)
    assert float(first["Binomial"]) == pytest.approx(stats.binom(64, lit.mean() / 64).logpmf(lit).sum(), abs=0.06)
    assert float(first["Poisson"]) == pytest.approx(stats.poisson(lit.mean()).logpmf(lit).sum(), abs=0.06)
    (name,) = (name for name in second if name.startswith("Negative"))
    size = float(name[name.index("=") + 1 : -1])
    law = stats.nbinom(size, size / (size + ink.mean()))
    assert float(second[name]) == pytest.approx(law.logpmf(ink).sum(), abs=0.06)
    ratio = lit.var() / (64 * (p := lit.mean() / 64) * (1 - p))
    assert f"vary {ratio:.2f} times" in section.paragraphs[0]
    assert is_picture(section.pictures[0][0])


def test_diabetes(tmp_path):
    section = demo.diabetes(tmp_path)
    progression = datasets.load_diabetes(scaled=False).target
    found = column(section.tables[0], "log likelihood")
    law = stats.gamma(*stats.gamma.fit(progression, floc=0))
    assert float(found["Gamma"]) == pytest.approx(law.logpdf(progression).sum(), abs=0.06)
    assert is_picture(section.pictures[0][0])


@pytest.mark.slow
def test_the_command_prints_everything_and_writes_the_page(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--output", str(tmp_path / "out")])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for words in ("Tumours", "Irises", "Wines", "Digits", "Words", "Noise", "Glass", "Magnet", "E KL", "index.html"):
        assert words in out
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 10
    assert page.count("<h2>") == 10
