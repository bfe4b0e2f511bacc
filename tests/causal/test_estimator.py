"""The estimator on simulated tables: what it recovers, where it warns, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cumulant.causal import (
    AdaptationSpeed,
    Change,
    adapt_categorical,
    initial_distances,
    sample_normal_reference,
    sample_reference,
)
from cumulant.causal.fitted_pairs import _drawn_moments
from cumulant.errors import FileFormatError

SIX = (range(6), range(6))


def table(model, n, rng):
    return np.stack(model.sample(n, rng=rng), axis=-1).reshape(n, 2)


def both(seed, kind, n=3000, K=6, flip=False):
    model = sample_reference(K, 1, "dense", rng=seed)[0]
    tables = table(model, n, seed + 200), table(model.intervene(kind, rng=seed + 100), n, seed + 300)
    return [each[:, ::-1] for each in tables] if flip else list(tables)


@pytest.mark.parametrize("flip", [False, True])
def test_a_change_of_the_cause_is_faster_in_the_causal_direction(flip):
    """Dense prior: in all of 12 problems, without caution, whichever column the cause is in."""
    for seed in range(12):
        model = AdaptationSpeed(categories=SIX, n_draws=40, random_state=0).fit(*both(seed, "cause", flip=flip))
        cause = int(flip)
        assert model.faster_ == model.names_[cause]
        assert model.caution_ is None
        assert model.changes_[0][0][:2] == ("cause", cause)
        assert np.sign(model.advantage_) == (-1 if flip else 1)
        assert model.distances_[0, cause] < model.distances_[0, 1 - cause]


def test_a_change_of_the_effect_is_cautioned():
    """Dense prior: the anticausal direction is the faster (proposition 4.5.2), which the warning is about."""
    faster = []
    for seed in range(12):
        with pytest.warns(UserWarning, match="faster adaptation does not mean cause here"):
            model = AdaptationSpeed(categories=SIX, n_draws=40, random_state=0).fit(*both(seed, "effect"))
        assert model.changes_[0][0][:2] == ("effect", 1)
        assert "Y was set and no longer depends on X" in model.caution_
        faster.append(model.faster_)
    assert faster.count("Y") >= 9
    assert faster.count("X") == 0


@pytest.mark.parametrize(
    ("faster", "probabilities", "words"),
    [
        ("dose", (0.97, 0.02, 0.01), None),
        ("dose", (0.60, 0.38, 0.02), "either variable may be the cause that changed: dose with probability 0.60"),
        ("dose", (0.38, 0.60, 0.02), "which points to the slower direction"),
        ("dose", (0.50, 0.30, 0.20), "with probability 0.50: the change may be on the effect"),
        (None, (0.60, 0.38, 0.02), None),
    ],
)
def test_cautions(faster, probabilities, words):
    """A direction is named without caution only where the change of this variable has a probability of 0.95."""
    model = AdaptationSpeed()
    kinds = [("cause", 0), ("cause", 1), ("effect", 1)]
    changes = [Change(*kind, p) for kind, p in zip(kinds, probabilities, strict=True)]
    model.names_, model.faster_, model.kl_ = ("dose", "response"), faster, np.zeros(1)
    model.changes_ = [sorted(changes, key=lambda change: -change.probability)]
    found = model._caution(True)
    assert found is None if words is None else words in found


def test_no_change_is_cautioned():
    model = sample_reference(4, 1, "dense", rng=0)[0]
    with pytest.warns(UserWarning, match="it is likely that nothing changed"):
        found = AdaptationSpeed(n_draws=40, random_state=0).fit(table(model, 2000, 1), table(model, 2000, 2))
    assert np.all(np.isfinite(found.kl_))
    assert found.changes_[0][0].kind == "none"


def test_with_many_rows_everything_is_that_of_the_true_tables():
    """Tables, distances and divergences at the start; no interval of a quarter of a million rows is wide."""
    model = sample_reference(4, 1, "dense", rng=0)[0]
    changed = model.intervene("cause", rng=100)
    tables = table(model, 250_000, 200), table(changed, 250_000, 300)
    found = AdaptationSpeed(n_draws=40, n_runs=5, random_state=0).fit(*tables)
    for fitted, true in zip(found.tables_, (model, changed), strict=True):
        assert_allclose(fitted, true.to_joint(), atol=0.003)
    expected = np.array(initial_distances(model, changed)[:2])
    low, high = found.distance_intervals_[0].T
    assert np.all(low < found.distances_[0])
    assert np.all(found.distances_[0] < high)
    assert np.all(high - low < 0.15 * expected)
    assert_allclose(found.distances_[0], expected, rtol=0.1)
    assert_allclose(found.kl_[:, 0, :, 0].mean(axis=1), changed.kl(model), rtol=0.05)


def test_noise_is_not_taken_for_a_change():
    """The rows that a change of the cause keeps are the same in both tables of each draw: distances stay small.

    With smoothed counts of 200 rows, the causal distance is 3 to 20 times the true one.
    """
    ratios = []
    for seed in range(12):
        model = sample_reference(4, 1, "dense", rng=seed)[0]
        changed = model.intervene("cause", rng=seed + 100)
        tables = table(model, 200, seed + 200), table(changed, 200, seed + 300)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "faster adaptation does not mean cause", UserWarning)
            found = AdaptationSpeed(categories=(range(4),) * 2, n_draws=40, n_runs=2, random_state=0).fit(*tables)
        ratios.append(found.distances_[0, 0] / initial_distances(model, changed).causal)
    assert 0.7 < np.median(ratios) < 1.4


def test_several_transfers_and_data_frames():
    frame = sample_reference(5, 1, "dense", rng=3)[0]
    letters = np.array(list("abcde"))

    def named(model, rng):
        x, y = model.sample(2000, rng=rng)
        return pd.DataFrame({"dose": letters[x], "response": y})

    transfers = [named(frame.intervene("cause", rng=k), 20 + k) for k in range(3)]
    model = AdaptationSpeed(n_draws=40, random_state=0).fit(named(frame, 1), transfers)
    assert model.names_ == ("dose", "response")
    assert model.faster_ == "dose"
    assert model.kl_.shape == (3, 3, 40, model.times_.size)
    assert len(model.changes_) == 3
    assert model.labels_ == [list("abcde"), [str(i) for i in range(5)]]
    text = model.summary()
    for words in ("faster: dose -> response", "transfer 2: the distribution of dose changed", "caution: none"):
        assert words in text


def test_continuous_columns_are_cut_where_the_reference_says():
    rng = np.random.default_rng(0)

    def rows(cause):
        return np.stack([cause, np.tanh(cause) + 0.3 * rng.normal(size=cause.size)], axis=1)

    before, after = rows(rng.normal(size=3000)), rows(rng.normal(1.0, 2.0, size=3000))
    model = AdaptationSpeed(n_bins=(6, 5), n_draws=40, random_state=0).fit(before, after)
    assert [len(each) for each in model.labels_] == [6, 5]
    assert model.beyond_[0, 0] == np.mean((after[:, 0] < before[:, 0].min()) | (after[:, 0] > before[:, 0].max())) > 0
    with pytest.raises(ValueError, match="are outside of the range of the reference"):
        AdaptationSpeed(n_bins=5, outside="error").fit(before, after)


def test_normal_family():
    """Distances and divergences at the start are those of the fitted normal models."""
    model = sample_normal_reference(1, 1, 5)[0]
    tables = [np.hstack(m.sample(2000, rng=k)) for k, m in enumerate((model, model.intervene("cause", rng=7)))]
    found = AdaptationSpeed("normal", n_draws=40, random_state=0).fit(*tables)
    assert found.models_ == ("causal", "anticausal")
    assert found.changes_[0][0][:2] == ("cause", 0)
    shifted = AdaptationSpeed("normal", n_draws=40, random_state=0).fit(*(1e3 + 50 * t for t in tables))
    assert_allclose(shifted.kl_, found.kl_, rtol=1e-6)  # standardised by the reference
    assert np.all(np.isfinite(found.kl_))
    turned = AdaptationSpeed("normal", n_draws=40, random_state=0).fit(*(t[:, ::-1] for t in tables))
    assert_allclose(turned.distances_[0], found.distances_[0, ::-1], rtol=1e-8)


def test_where_no_step_size_works_nothing_is_faster():
    model = sample_normal_reference(1, 1, 5)[0]
    tables = [np.hstack(m.sample(500, rng=k)) for k, m in enumerate((model, model.intervene("cause", rng=7)))]
    with pytest.warns(UserWarning, match="no step size comes nearer to the transfer"):
        found = AdaptationSpeed("normal", step_sizes=[30.0], n_draws=20, random_state=0).fit(*tables)
    assert found.faster_ is None
    assert not np.any(np.isnan(found.kl_))
    assert found.interval_.tolist() == [-np.inf, np.inf]


def test_the_same_table_twice_says_nothing():
    rows = both(0, "cause", n=200, K=3)[0]
    with pytest.warns(UserWarning, match="it is likely that nothing changed"):
        found = AdaptationSpeed(n_draws=20, random_state=0).fit(rows, rows)
    assert found.changes_[0][0].kind == "none"
    assert found.faster_ is None


@pytest.mark.parametrize("settings", [{"budget": 1}, {"step_sizes": [1e-18]}])
def test_a_difference_of_rounding_is_no_advantage(settings):
    """After one observation the average is the start in both directions; with tiny steps it stays there."""
    for seed in range(5):
        found = AdaptationSpeed(categories=SIX, n_draws=20, n_runs=2, random_state=0, **settings).fit(
            *both(seed, "cause", n=500)
        )
        assert found.advantage_ == 0
        assert found.interval_.tolist() == [0, 0]
        assert found.faster_ is None


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_few_different_rows_of_numbers(unit):
    """Half of the tables that are drawn from the rows are on one line: these are drawn again."""
    rng = np.random.default_rng(0)
    few = np.repeat(rng.normal(size=(3, 2)), [8, 1, 1], axis=0)
    with pytest.warns(UserWarning, match="cause here"):
        found = AdaptationSpeed("normal", n_draws=50, random_state=0).fit(unit * few, unit * rng.normal(size=(90, 2)))
    assert np.all(np.isfinite(found.interval_))
    assert np.all(np.isfinite(found.distance_intervals_))
    assert found.faster_ is None


def test_rows_that_are_always_on_one_line_are_refused():
    line = np.linspace(0, 1, 20)
    features = np.stack([line, 2 * line, line**2, 2 * line**2, 4 * line**2], axis=1)
    with pytest.raises(ValueError, match="20 rows has too few different ones for an interval"):
        _drawn_moments(features, np.random.default_rng(0))


def symmetric(kind, n, seed):
    """Tables before and after a change that treats both variables alike: the true advantage is zero."""
    rng = np.random.default_rng(seed)
    if kind != "categories":
        draw = {"normal": rng.standard_normal, "cauchy": rng.standard_cauchy}[kind]
        return [scale * (draw((n, 2)) + share * draw((n, 1))) for share, scale in ((1.0, 1.0), (0.5, 1.7))]
    tables = rng.dirichlet(np.ones(9), 2).reshape(2, 3, 3)
    cells = [rng.choice(9, n, p=0.5 * (P + P.T).ravel()) for P in tables]
    return [np.stack(np.divmod(each, 3), axis=1) for each in cells]


@pytest.mark.parametrize(("kind", "n"), [("categories", 20), ("categories", 300), ("normal", 100), ("cauchy", 100)])
def test_without_an_advantage_nothing_is_faster(kind, n):
    """Intervals of level 0.9 exclude zero in at most one of ten, less chance; a faster one without caution is rare: one
    explanation of 0.95 is a chance of one in twenty that it is another.
    """
    wrong, careless, runs = 0, 0, 40
    settings = {"categories": (range(3), range(3))} if kind == "categories" else {"family": "normal"}
    for seed in range(runs):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "faster adaptation does not mean cause", UserWarning)
            model = AdaptationSpeed(n_draws=60, n_runs=20, random_state=seed, **settings).fit(*symmetric(kind, n, seed))
        wrong += model.faster_ is not None
        careless += model.faster_ is not None and model.caution_ is None
    assert careless <= 1
    assert wrong <= 0.1 * runs + 3 * np.sqrt(0.1 * 0.9 * runs)


def test_independent_variables_have_no_direction():
    """The one that changed looks like a cause and like an effect: always with caution, however many the rows."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        kept, old, new = rng.dirichlet(np.ones(4), 3)
        tables = [np.stack([rng.choice(4, 2000, p=kept), rng.choice(4, 2000, p=p)], axis=1) for p in (old, new)]
        with pytest.warns(UserWarning, match="Y was set and no longer depends on X|Y changed, X given Y did not"):
            AdaptationSpeed(categories=(range(4),) * 2, n_draws=20, n_runs=5, random_state=seed).fit(*tables)


@pytest.mark.slow
@pytest.mark.parametrize(("K", "n", "prior"), [(2, 100, "dense"), (4, 100, "dense"), (8, 100, "sparse")])
def test_intervals_hold_the_advantage_of_the_true_tables(K, n, prior):
    """Of level 0.9, in 300 problems, half of them changes of the cause and half of the effect, in either order of the
    variables, less three binomial standard deviations.
    """
    held, runs = [], 300
    for seed in range(runs):
        model = sample_reference(K, 1, prior, rng=seed)[0]
        changed = model.intervene("cause" if seed % 2 else "effect", rng=seed + 1000)
        tables = [table(model, n, seed + 1), table(changed, n, seed + 2)]
        if seed // 2 % 2:
            tables, model, changed = [each[:, ::-1] for each in tables], model.reverse(), changed.reverse()
        settings = {"categories": (range(K), range(K)), "n_draws": 100, "n_runs": 50, "random_state": seed}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "faster adaptation does not mean cause", UserWarning)
            found = AdaptationSpeed(**settings).fit(*tables)
        truth = adapt_categorical(
            model, changed, found.budget_, found.step_sizes_[:2], 5,
            times=[found.budget_], models=("causal", "anticausal"), n_runs=1000,
        )  # fmt: skip
        advantage = np.log(truth.kl[1, 1, 0, 0] / truth.kl[0, 0, 0, 0])
        held.append(found.interval_[0] <= advantage <= found.interval_[1])
    assert np.mean(held) >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / runs)


def test_the_same_seed_gives_the_same_answer():
    tables = both(1, "cause")
    first = AdaptationSpeed(n_draws=20, random_state=3, n_jobs=1).fit(*tables)
    again = clone(first).set_params(n_jobs=2).fit(*tables)
    assert np.array_equal(first.kl_, again.kl_)
    assert np.array_equal(first.interval_, again.interval_)
    other = clone(first).set_params(random_state=4).fit(*tables)
    assert not np.array_equal(first.interval_, other.interval_)


def test_conventions_of_scikit_learn():
    """Parameters go in and out unchanged, also through `fit`; every source of randomness is accepted."""
    given = {
        "family": "categorical", "n_bins": (3, None), "categories": None, "strategy": "uniform", "outside": "error",
        "pseudo_count": 0.5, "budget": 30, "step_sizes": np.array([0.1, 1.0]), "n_draws": 10, "n_runs": 3,
        "level": 0.8, "random_state": 7, "n_jobs": 1,
    }  # fmt: skip
    model = AdaptationSpeed(**given)
    assert model.get_params() == given
    assert repr(clone(model)) == repr(model)
    assert "n_bins=(3, None)" in repr(model)
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        model.summary()
    columns = np.stack([NUMBERS[:, 0], np.arange(200) % 3], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert model.fit(columns, columns[50:]) is model
        assert all(value is given[name] for name, value in model.get_params().items())
        fitted = {name for name in vars(model) if name not in given}
        assert fitted
        assert all(name.endswith("_") for name in fitted)
        for source in (None, 3, np.random.default_rng(3), np.random.RandomState(3)):
            model.set_params(random_state=source, n_draws=10).fit(columns, columns[50:])
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(bins=3)


def test_tables_may_be_lists_of_rows():
    tables = both(0, "cause", n=100)
    settings = {"categories": SIX, "n_draws": 10, "n_runs": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "faster adaptation does not mean cause", UserWarning)
        expected = AdaptationSpeed(**settings).fit(*tables)
        rows = [each.tolist() for each in tables]
        for transfers in (rows[1], [rows[1]], tuple(map(tuple, rows[1])), tables[1][None]):
            assert np.array_equal(AdaptationSpeed(**settings).fit(rows[0], transfers).kl_, expected.kl_)


def test_files(tmp_path):
    with pytest.warns(UserWarning, match="cause here"):
        model = AdaptationSpeed(n_draws=20, random_state=0, step_sizes=[0.1, 1.0], categories=SIX).fit(
            *both(0, "effect")
        )
    back = AdaptationSpeed.load(model.save(tmp_path / "speed"))
    assert back.summary() == model.summary()
    assert np.array_equal(back.kl_, model.kl_)
    assert back.changes_ == model.changes_
    assert all(np.array_equal(a, b) for a, b in zip(back.tables_, model.tables_, strict=True))
    with pytest.raises(FileFormatError):
        AdaptationSpeed.load(__file__)


def test_parameters_come_back_from_a_file_as_they_were(tmp_path):
    """Numbers of NumPy, and categories of several types."""
    rows = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 10)
    given = {
        "categories": ([0, np.int64(1), "other"], None), "n_draws": np.int64(10), "n_runs": 2,
        "step_sizes": np.ones(2), "pseudo_count": np.float64(0.5), "random_state": np.random.default_rng(0),
    }  # fmt: skip
    with pytest.warns(UserWarning, match="cause here"):
        model = AdaptationSpeed(**given).fit(rows, rows)
    back = AdaptationSpeed.load(model.save(tmp_path / "speed")).get_params()
    assert back["categories"] == [[0, 1, "other"], None]
    assert (back["n_draws"], back["pseudo_count"], back["step_sizes"]) == (10, 0.5, [1.0, 1.0])


GOOD = np.random.default_rng(0).integers(0, 3, (50, 2))
NUMBERS = np.random.default_rng(0).normal(size=(200, 2))


@pytest.mark.parametrize(
    ("settings", "reference", "transfers", "words"),
    [
        ({}, GOOD, [GOOD.tolist(), GOOD[:, 0]], r"transfers\[1\] must be a table of two columns"),
        ({}, pd.DataFrame(GOOD).astype("Int64").mask(GOOD == 2), GOOD, "missing values in column '0'"),
        ({}, pd.DataFrame(GOOD, columns=["a", "a"]), GOOD, "two names for its columns; both are 'a'"),
        ({}, np.zeros((50, 2), int), GOOD, "column 'X' of reference has the one value 0"),
        ({}, GOOD + 1j, GOOD, "column 'X' of reference has values that cannot be categories"),
        ({"pseudo_count": 1e16}, GOOD, GOOD, "pseudo_count must be between"),
        ({"budget": 0}, GOOD, GOOD, "budget must be a whole number of at least 1; got 0"),
        ({"random_state": "x"}, GOOD, GOOD, "rng must be an int"),
        ({}, GOOD[:, :1], GOOD, "reference must have two columns, the two variables; got 1"),
        ({}, GOOD[:, 0], GOOD, r"reference must be a table of two columns, shape \(rows, 2\)"),
        ({}, GOOD, [GOOD, GOOD[:5]], r"transfers\[1\] must have at least 10 rows; got 5"),
        ({}, GOOD, [], "at least one table from after a change"),
        (
            {},
            np.where(GOOD == 2, np.nan, GOOD),
            GOOD,
            "reference has .* missing values in column 'X', the first in row",
        ),
        ({}, np.stack([GOOD[:, 0], np.zeros(50)], axis=1), GOOD, "column 'Y' of reference has the one value 0.0"),
        ({}, GOOD, GOOD + np.array([0, 1]), "column 'Y' of transfers: has categories that are not known: 3"),
        ({}, NUMBERS, NUMBERS, "column 'X' of reference has 200 different values: for numbers set n_bins"),
        ({"categories": (range(2), None)}, GOOD, GOOD, "column 'X' of reference: has categories that are not known: 2"),
        ({"categories": ([1], None)}, GOOD, GOOD, "categories of column 'X' must be at least two different values"),
        ({"categories": (range(3), None), "n_bins": 2}, GOOD, GOOD, "can have n_bins or categories, not both"),
        ({"n_bins": 1}, NUMBERS, NUMBERS, "n_bins must be a whole number of at least 2"),
        ({"n_bins": (3, 3, 3)}, NUMBERS, NUMBERS, "n_bins must be a number of bins, a pair"),
        ({"family": "normal", "n_bins": 3}, NUMBERS, NUMBERS, "n_bins is for family='categorical'"),
        ({"family": "poisson"}, GOOD, GOOD, "family must be one of 'categorical', 'normal'"),
        ({"family": "normal"}, np.array([["a", "b"]] * 20), NUMBERS, "must be an array of real numbers"),
        ({"family": "normal"}, NUMBERS, NUMBERS * [1, 0], "transfers: .* column 1 of the 200 observations is constant"),
        ({"level": 1.5}, GOOD, GOOD, "level must be strictly between 0 and 1"),
        ({"pseudo_count": 0.0}, GOOD, GOOD, "pseudo_count must be positive"),
        ({"n_draws": 2}, GOOD, GOOD, "n_draws must be a whole number of at least 10"),
        ({"step_sizes": -1.0}, GOOD, GOOD, "step_sizes must be positive"),
        ({}, pd.DataFrame(GOOD, columns=["a", "b"]), pd.DataFrame(GOOD, columns=["b", "a"]), "must have the columns"),
    ],
)
def test_refusals(settings, reference, transfers, words):
    with pytest.raises((ValueError, TypeError), match=words):
        AdaptationSpeed(**settings).fit(reference, transfers)
