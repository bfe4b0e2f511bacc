"""The experiments on convexity and on learnt curvature, in their quick form, and every published figure by name."""

import pytest

from cumulant.experiments import catalogue, convexity, ipsa_curvature


def test_every_part_of_the_two_sources_has_an_experiment():
    names = set(catalogue())
    course = {"convexity", "gd-conditioning", "acceleration", "mirror-descent", "implicit-bias", "ista", "sgd-sga-sag"}
    assert course | {"mlp", "ad-costs"} <= names
    thesis = {"central-path", "step-size", "variance", "penalty", "paths", "curvature"}
    assert {f"ipsa-{name}" for name in thesis} | {"spam-stream"} <= names


def test_the_statements_of_the_figures_on_convexity():
    report = convexity.run(quick=True)
    assert [claim.verdict for claim in report.claims] == ["corrected"] * 2 + ["reproduced"] * 6
    assert report.pictures == ()


@pytest.mark.slow
def test_the_claims_on_learnt_curvature(tmp_path):
    pytest.importorskip("matplotlib")
    report = ipsa_curvature.run(output=tmp_path)
    missed = [claim.statement for claim in report.claims if claim.verdict == "not reproduced"]
    assert missed == ["in Mehrotra's rule an exponent of about 2 does better than 3 when gradients are noisy"]
    assert all(picture.stat().st_size > 10_000 for picture in (*report.pictures, *convexity.run(tmp_path).pictures))
