"""A stream goes on in another process where the first one stopped, whatever the family."""

import numpy as np
import pytest

from cumulant import families as fam
from cumulant import files
from cumulant.errors import FileFormatError


@pytest.mark.parametrize("family", fam.all_families(), ids=str)
def test_statistics_of_every_family_come_back(family, tmp_path):
    central = np.linspace(0.1, 0.7, family.dim)
    path = fam.Statistics(family, central, np.float64(17.0)).save(tmp_path / "statistics")
    loaded = fam.Statistics.load(path)
    assert loaded.family == family
    assert np.array_equal(loaded.central, central)
    assert loaded.count == 17.0


def test_a_stream_goes_on_where_it_stopped(tmp_path):
    rng = np.random.default_rng(0)
    data = (rng.gamma(2.0, size=30), rng.normal(size=(30, 2)))
    family = fam.Product((fam.Gamma(), fam.MultivariateNormalKnownCovariance([[2.0, 0.5], [0.5, 1.0]])))
    prior = fam.ConjugatePrior(mean=[0.2, 2.0, 0.0, 0.0], strength=2.5)
    stream = fam.StreamingMAP(family, prior)
    stopped = stream.update(tuple(x[:20] for x in data)).save(tmp_path / "stream.npz")
    resumed = fam.StreamingMAP.load(stopped).update(tuple(x[20:] for x in data))
    whole = stream.update(tuple(x[:20] for x in data)).update(tuple(x[20:] for x in data))
    assert np.array_equal(resumed.theta, whole.theta)
    assert (resumed + fam.StreamingMAP.load(stopped)).count == 50.0


def test_empty_streams_and_batches_of_streams(tmp_path):
    empty = fam.StreamingMAP.load(fam.StreamingMAP(fam.Poisson()).save(tmp_path / "empty"))
    assert (empty.prior, empty.count) == (None, 0.0)
    many = fam.StreamingMAP(fam.Poisson()).update(np.arange(1, 13).reshape(4, 3))
    assert np.array_equal(fam.StreamingMAP.load(many.save(tmp_path / "many")).theta, many.theta)


def test_families_that_are_not_there_and_files_of_another_kind(tmp_path):
    strange = files.save(tmp_path / "strange", "statistics", {"central": [1.0], "count": 1.0}, {"class": "Nobody"})
    with pytest.raises(FileFormatError, match="statistics of Nobody, a family that is not imported"):
        fam.Statistics.load(strange)
    impossible = files.save(
        tmp_path / "bad", "statistics", {"central": [1.0], "count": 1.0}, {"class": "Binomial", "trials": -3}
    )
    with pytest.raises(FileFormatError, match="a Binomial that cannot be"):
        fam.Statistics.load(impossible)
    with pytest.raises(FileFormatError, match="holds a statistics, not a stream"):
        fam.StreamingMAP.load(strange)
