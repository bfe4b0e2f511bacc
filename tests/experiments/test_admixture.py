"""The experiments on admixtures in their quick forms."""

import pytest

from cumulant.experiments.base import find

pytestmark = pytest.mark.slow


def verdicts(name, folder):
    pytest.importorskip("msprime")
    report = find(name).run(folder, quick=True)
    assert all(picture.stat().st_size > 5_000 for picture in report.pictures)
    return {claim.statement: claim.verdict for claim in report.claims}


def of(found, words):
    (verdict,) = (verdict for statement, verdict in found.items() if words in statement)
    return verdict


def test_chains_disagree_and_variational_particles_stop_early(tmp_path):
    found = verdicts("admixture-agreement", tmp_path)
    assert of(found, "lower the largest variance") == "reproduced"
    assert of(found, "what agrees is the posterior") == "not reproduced"  # they sample a flattened one


def test_the_study_over_numbers_of_populations(tmp_path):
    found = verdicts("admixture-study", tmp_path)
    assert of(found, "where chains disagree (the largest") == "reproduced"
    assert of(found, "end at the posterior") == "not reproduced"


def test_what_keeps_variational_particles_from_the_posterior(tmp_path):
    found = verdicts("admixture-variants", tmp_path)
    assert of(found, "the published settings end at the posterior") == "not reproduced"
    assert of(found, "a straight path for the other half") == "reproduced"
