"""Second opinions on fits: annealing against known answers, calibration of exact and of narrow fits, the command."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from cumulant import plotting
from cumulant import variational as vi
from cumulant.cli.app import app
from cumulant.plotting import variational as pictures
from cumulant.report import variational as pages
from tests.variational.test_divergence import posterior, truth


class TestAnnealing:
    def test_moments_and_evidence_within_their_errors(self):
        """Against integrals, five standard errors."""
        fit = vi.fit(posterior(1, 3, 2), accuracy=1e-6)
        kl, mean, sd = truth(fit)
        found = vi.check_by_annealing(fit, 1000, rng=0)
        deviations = np.linalg.norm(fit.scale, axis=1)
        assert np.all(np.abs(found.mean_shift - (mean - fit.mean) / deviations) <= 5 * found.mean_error)
        assert np.all(np.abs(found.scale_ratio - sd / deviations) <= 5 * found.scale_error)
        assert abs(found.log_evidence - (fit.elbo + kl)) <= 5 * found.log_evidence_error
        assert found.log_evidence_lower <= fit.elbo + kl
        assert found.agrees
        assert "agrees" in str(found)

    def test_a_posterior_of_another_shape_is_seen(self):
        """A Gaussian of half the width at the mode of a mixture of two scales."""
        target = vi.Target(lambda x: jnp.logaddexp(-50 * jnp.sum(x**2), -jnp.sum(x**2) / 8 - 3.0), 2)
        fit = vi.fit(target, rng=0)
        assert not vi.check_by_annealing(fit, rng=0).agrees

    def test_the_same_seed_gives_the_same_answer(self):
        fit = vi.fit(posterior(1, 3, 2))
        first, second = (vi.check_by_annealing(fit, 50, temperatures=5, rng=3) for _ in range(2))
        assert first.log_evidence == second.log_evidence
        with pytest.raises(TypeError, match="GaussianFit"):
            vi.check_by_annealing(fit.target)


X = np.random.default_rng(0).normal(size=(12, 2)) @ np.array([[1.0, 0.9], [0.0, 0.45]])


def simulate(generator):
    z = generator.normal(size=2)
    return z, X @ z + generator.normal(size=len(X))


class TestCalibration:
    def test_exact_fits_are_calibrated(self):
        found = vi.calibrate(simulate, lambda y: vi.linear_regression(X, y), 150, rng=0)
        assert found.calibrated
        assert found.ranks.shape == (150, 2)
        low, high = 0.9 - 4 * np.sqrt(0.09 / 150), 0.9 + 4 * np.sqrt(0.09 / 150)
        assert np.all((found.coverage[0.9] >= low) & (found.coverage[0.9] <= high))

    def test_independent_coordinates_for_a_correlated_posterior_are_found_to_be_too_narrow(self):
        """The best diagonal Gaussian has the conditional, not the marginal, standard deviations."""
        found = vi.calibrate(
            simulate, lambda y: vi.linear_regression(X, y), 100, family="diagonal", accuracy=0.1, rng=0
        )
        assert not found.calibrated
        assert "too narrow" in str(found)

    def test_bad_simulators_are_refused(self):
        with pytest.raises(TypeError, match="Target"):
            vi.calibrate(simulate, lambda y: y, 10)
        with pytest.raises(ValueError, match="2 numbers"):
            vi.calibrate(lambda g: (np.zeros(3), np.zeros(len(X))), lambda y: vi.linear_regression(X, y), 10)
        with pytest.raises(ValueError, match="at least 10"):
            vi.calibrate(simulate, lambda y: vi.linear_regression(X, y), 3)


MODEL = """
import jax.numpy as jnp
from cumulant import sampling

def log_density(x):
    return -jnp.sum((x - 1.0) ** 2) / 2

def ridge(x):
    return -jnp.exp(5.0 * x[0]) - jnp.exp(-0.1 * x[0]) - jnp.sum(x[1:] ** 2) / 2

target = sampling.Target(log_density, 2, smoothness=1.0, strong_convexity=1.0)
count = 3
"""


class TestCommand:
    @pytest.fixture
    def model(self, tmp_path):
        path = tmp_path / "model.py"
        path.write_text(MODEL)
        return str(path)

    def run(self, *arguments):
        return CliRunner().invoke(app, ["vi", "fit", *arguments])

    def test_a_function_and_a_target(self, model, tmp_path):
        answer = self.run(f"{model}:log_density", "--dim", "2", "--json", "-o", str(tmp_path / "fit.npz"))
        assert answer.exit_code == 0
        np.testing.assert_allclose(json.loads(answer.stdout)["mean"], [1.0, 1.0], atol=0.1)
        assert (tmp_path / "fit.npz").exists()
        answer = self.run(f"{model}:target", "--check", "--page", str(tmp_path / "page"))
        assert answer.exit_code == 0
        assert "annealing agrees" in answer.stdout
        assert (tmp_path / "page" / "index.html").stat().st_size > 10_000

    @pytest.mark.parametrize(
        ("name", "words"),
        [("log_density", "--dim"), ("nothing", "no function"), ("count", "no function"), ("", "FILE.py:NAME")],
    )
    def test_bad_models_get_a_sentence(self, model, name, words):
        answer = self.run(f"{model}:{name}")
        assert answer.exit_code == 1
        assert words in str(answer.exception)


def test_pictures_and_the_page(tmp_path):
    fit = vi.fit(posterior(1, 3, 2))
    check = vi.check_by_annealing(fit, 100, temperatures=5)
    axes = pictures.marginals(fit, check)
    assert axes.shape == (1, 2)
    plotting.save(axes[0, 0].figure, tmp_path / "marginals.png")
    found = vi.calibrate(simulate, lambda y: vi.linear_regression(X, y), 20)
    assert pictures.ranks(found).shape == (1, 2)
    text = pages.write(fit, None, tmp_path / "out").read_text()
    assert "Verdict: trust" in text
