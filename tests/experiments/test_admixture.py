"""The experiment on admixtures in its quick form."""

import pytest

from cumulant.experiments.base import find


@pytest.mark.slow
def test_chains_disagree_and_variational_particles_stop_early(tmp_path):
    pytest.importorskip("msprime")
    report = find("admixture-agreement").run(tmp_path, quick=True)
    assert report.pictures[0].stat().st_size > 5_000
    verdicts = [claim.verdict for claim in report.claims]
    assert verdicts[0] == "reproduced"  # the variance of variational particles is the smallest
    assert verdicts[2] == "not reproduced"  # because they sample a flattened posterior


@pytest.mark.slow
def test_the_study_over_numbers_of_populations(tmp_path):
    pytest.importorskip("msprime")
    report = find("admixture-study").run(tmp_path, quick=True)
    assert report.pictures[0].stat().st_size > 5_000
    verdicts = [claim.verdict for claim in report.claims]
    assert verdicts[1] == "reproduced"  # chains disagree, and variational particles do not
    assert verdicts[3] == "not reproduced"  # because they sample a flattened posterior
