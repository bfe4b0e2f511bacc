"""A saved model is the same model, and what is not one is refused."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cumulant import families, files
from cumulant.errors import FileFormatError
from cumulant.glm import GLM
from tests.glm.cases import features, observations

X = features(n=60)


@pytest.mark.parametrize("family", ["bernoulli", "categorical", "poisson", "normal", families.Binomial(3)], ids=str)
def test_a_model_comes_back(tmp_path, family):
    name = family if isinstance(family, str) else "binomial"
    y = observations("bernoulli" if name == "binomial" else name, X)
    if name == "bernoulli":
        y = np.where(y > 0, "yes", "no").astype(object)
    model = GLM(family, l2=np.float64(0.01), random_state=np.random.default_rng(0)).fit(X, y)
    again = GLM.load(model.save(tmp_path / "model"))
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.coef_, model.coef_)
    assert again.predict(X).dtype == model.predict(X).dtype
    assert type(again.intercept_) is type(model.intercept_)
    assert again.certificate_ == model.certificate_
    assert (again.status_, again.objective_, again.n_iter_) == (model.status_, model.objective_, model.n_iter_)
    assert again.get_params() == {**model.get_params(), "random_state": None}
    assert_array_equal(again.fit(X, y).coef_, model.coef_)


def test_a_stream_goes_on_from_a_file(tmp_path):
    y = observations("poisson", X)
    whole, first = GLM("poisson", l2=0.1), GLM("poisson", l2=0.1)
    for rows in (slice(0, 30), slice(30, 60)):
        whole.partial_fit(X[rows], y[rows])
    first.partial_fit(X[:30], y[:30])
    again = GLM.load(first.save(tmp_path / "stream")).partial_fit(X[30:], y[30:])
    assert_array_equal(again.coef_, whole.coef_)


def test_names_of_features_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    model = GLM().fit(pd.DataFrame(X, columns=[*"abcdef"]), X[:, 0])
    assert GLM.load(model.save(tmp_path / "named")).get_feature_names_out().tolist() == [*"abcdef"]


def test_what_is_not_a_model_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="not a GLM"):
        GLM.load(files.save(tmp_path / "other", "statistics", {"x": np.zeros(2)}))
    broken = files.save(tmp_path / "broken", "GLM", {"coef": np.zeros(2)}, {"parameters": {}, "fitted": {}})
    with pytest.raises(FileFormatError, match="does not hold a GLM"):
        GLM.load(broken)
    odd = GLM("normal").fit(X, X[:, 0])
    odd.classes_ = np.array([("a",), "b"], dtype=object)
    with pytest.raises(TypeError, match="must be numbers or text"):
        odd.save(tmp_path / "odd")
