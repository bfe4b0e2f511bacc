"""The estimator on graphs: what it accepts, what it answers, what it refuses, and that it comes back from a file."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from cumulant.errors import FileFormatError, TooWide
from cumulant.sequences import ChainCRF, Factors, GraphData, TreeCRF, TreeProblem
from tests.reference.graphs import Enumeration
from tests.sequences.cases import assert_verifies, ragged
from tests.sequences.graph_cases import SHAPES, graphs

NAMES = np.array(["cat", "dog", "eel"])


def some(rng, n=20, labels=3, features=4, edge_features=None):
    """Graphs as tuples, and the names of the labels of their nodes."""
    X, y = [], []
    for shape in rng.choice([s for s in SHAPES if s != "grid"], size=n):
        size, edges, _ = SHAPES[shape]
        graph = (rng.normal(size=(size, features)), edges)
        X.append(graph if edge_features is None else (*graph, rng.normal(size=(len(edges), edge_features))))
        y.append(NAMES[rng.integers(0, labels, size=size)].tolist())
    return X, y


def test_a_chain_has_the_optimum_of_chain_crf():
    data = ragged(np.random.default_rng(0), n=30, longest=6)
    X = [
        (rows, [(t, t + 1) for t in range(len(rows) - 1)])
        for rows in np.split(data.features.toarray(), data.offsets[1:-1])
    ]
    y = [labels.tolist() for labels in data.split(data.labels)]
    # With uniform sampling both make the same draws; at seeds apart the optima agree too, in the tests of the problem.
    for settings in ({"sampling": "uniform"}, {"sampling": "uniform", "l1": 0.01}, {"solver": "lbfgs"}):
        tree, chain = (
            model(bias=False, tol=1e-12, max_epochs=1000, l2=0.1, **settings) for model in (TreeCRF, ChainCRF)
        )
        tree.fit(X, y)
        chain.fit(data)
        assert tree.status_ == chain.status_ == "converged"
        assert_allclose(tree.objective_, chain.objective_, rtol=1e-12)
        assert_allclose(tree.weights("nodes"), chain.weights_[:-3], atol=1e-8, rtol=0)
        assert_allclose(tree.weights("edges")[0], chain.weights_[-3:], atol=1e-8, rtol=0)
        assert tree.predict(X) == chain.predict(data)
        assert_allclose(tree.log_likelihood(X, y), chain.log_likelihood(data), atol=1e-7)
        for a, b in zip(tree.predict_marginals(X), chain.predict_marginals(data), strict=True):
            assert_allclose(a, b, atol=1e-7)


def test_answers_against_enumeration():
    rng = np.random.default_rng(1)
    X, y = some(rng, edge_features=2)
    crf = TreeCRF(tol=1e-4).fit(X, y)
    assert crf.classes_.tolist() == NAMES.tolist()
    assert crf.weights("nodes").shape == (5, 3)
    assert crf.weights("edges").shape == (3, 3, 3)
    data = GraphData.from_graphs(X, [np.searchsorted(NAMES, labels) for labels in y])
    every, log_likelihood = Enumeration(data, 3), crf.log_likelihood(X, y)
    predicted, found = crf.predict(X), crf.predict_marginals(X)
    for i in range(len(X)):
        law = every.law(crf.weights_, i)
        assert_allclose(log_likelihood[i], np.log(law[every.truth(i)]), rtol=1e-10)
        assert predicted[i] == NAMES[every.best(crf.weights_, i)].tolist()
        for v, row in enumerate(found[i]):
            assert_allclose(row, every.marginal(law, i, [v]), rtol=1e-10)
    right = np.concatenate(predicted) == np.concatenate(y)
    assert crf.score(X, y) == pytest.approx(np.mean(right))
    value, _ = every.objective(crf.weights_, 1 / len(X))
    assert_allclose(crf.objective_, value, rtol=1e-12)


def test_both_solvers_and_every_input_give_the_same_model():
    rng = np.random.default_rng(2)
    X, y = some(rng)
    inputs = {
        "arrays": X,
        "lists": [[features.tolist(), edges] for features, edges in X],
        "sparse": [(sparse.csr_matrix(features), np.array(edges).reshape(-1, 2)) for features, edges in X],
        "data": GraphData.from_graphs(X),
        "with ones": [(features, edges, np.zeros((len(edges), 0))) for features, edges in X],
    }
    expected = TreeCRF(solver="lbfgs", tol=1e-9, max_epochs=500).fit(X, y)
    for kind, graphs_ in inputs.items():
        crf = TreeCRF(tol=1e-9, max_epochs=500).fit(graphs_, y)
        assert crf.status_ == expected.status_ == "converged", kind
        assert crf.objective_ - expected.objective_ <= crf.certificate_.upper
        apart = np.linalg.norm(crf.weights_ - expected.weights_)
        assert apart <= crf.certificate_.details["|w - w*|"] + expected.certificate_.details["|w - w*|"]
        assert crf.history_[-1]["gap"] <= 1e-9 * crf.objective_
        assert_allclose(crf.weights_, expected.weights_, atol=1e-3)


def test_factors_of_three_variables():
    """Exactly one of three nodes is on: no pair of them can say so, and a factor of all three can."""
    offsets = 3 * np.arange(31)
    variables = np.arange(90).reshape(30, 3)
    labels = np.eye(3, dtype=int)[np.arange(30) % 3].ravel()
    triples = GraphData(offsets, {"triples": Factors(variables, np.ones((30, 1)))}, labels)
    crf = TreeCRF(l2=1e-3, tol=1e-8, max_epochs=500).fit(triples)
    table = crf.weights("triples")[0]
    assert table.shape == (2, 2, 2)
    on = [table[1, 0, 0], table[0, 1, 0], table[0, 0, 1]]
    assert_allclose(on, on[0], atol=1e-3)
    assert min(on) > np.sort(table.ravel())[-4] + 2.0
    assert all(sum(labels) == 1 for labels in crf.predict(triples))
    # One class of equivalent labellings: its probability is q, and the optimum has p(truth) = q / 3.
    problem = TreeProblem(triples, 2, l2=1e-3)
    assert_allclose(-np.mean(crf.log_likelihood(triples)), problem.value(crf.weights_) - 5e-4 * np.sum(crf.weights_**2))


def test_a_model_comes_back_from_its_file(tmp_path):
    X, y = some(np.random.default_rng(3), edge_features=1)
    crf = TreeCRF(tol=1e-6, l1=0.01).fit(X, y)
    path = crf.save(tmp_path / "model")
    loaded = TreeCRF.load(path)
    assert loaded.predict(X) == crf.predict(X)
    assert np.array_equal(loaded.weights("edges"), crf.weights("edges"))
    assert loaded.get_params() == crf.get_params()
    assert (loaded.certificate_, loaded.history_, loaded.status_, loaded.kinds_) == (
        crf.weights_certificate_,
        crf.history_,
        crf.status_,
        crf.kinds_,
    )
    assert_verifies(crf, loaded, X, y)
    with pytest.raises(FileFormatError, match="holds a tree CRF, not a chain CRF"):
        ChainCRF.load(path)


def test_it_clones_stops_in_time_and_keeps_the_best_on_a_development_set():
    rng = np.random.default_rng(4)
    (X, y), (X_dev, y_dev) = some(rng, 60), some(rng, 20)
    crf = TreeCRF(tol=1e-12, max_epochs=3, random_state=3)
    copy = clone(crf)
    assert copy.get_params() == crf.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(X)
    with pytest.warns(ConvergenceWarning, match="TreeCRF stopped after 3 epochs"):
        assert crf.fit(X, y).status_ == "max_steps"
    assert crf.history_[-1]["epoch"] <= 3
    timed = TreeCRF(tol=1e-15, max_epochs=10**6, time_limit=0.2).fit(X, y)
    assert timed.status_ in ("time_limit", "rounding", "converged")
    stopped = TreeCRF(tol=1e-10, max_epochs=200).fit(X, y, X_dev, y_dev)
    assert stopped.status_ == "stopped"
    assert stopped.score(X_dev, y_dev) == pytest.approx(max(row["dev_accuracy"] for row in stopped.history_))


@pytest.mark.filterwarnings("ignore:TreeCRF stopped after 5 epochs")
def test_the_same_seed_gives_the_same_model_whatever_the_threads():
    X, y = some(np.random.default_rng(5), 40)
    one, two, other = (
        TreeCRF(n_jobs=jobs, n_blocks=2, random_state=seed, max_epochs=5, tol=1e-12).fit(X, y)
        for jobs, seed in ((1, 1), (2, 1), (2, 2))
    )
    assert np.array_equal(one.weights_, two.weights_)
    assert not np.array_equal(one.weights_, other.weights_)


def test_one_label_one_node_and_no_edges_are_fine():
    crf = TreeCRF().fit([(np.ones((2, 1)), [])], [["x", "x"]])
    assert crf.predict([(np.ones((1, 1)), [])]) == [["x"]]
    assert crf.certificate_.upper < 1e-9
    crf = TreeCRF(tol=1e-8).fit([(np.zeros((2, 0)), [(0, 1)]), (np.zeros((1, 0)), [])], [["x", "y"], ["y"]])
    assert crf.predict([(np.zeros((1, 0)), [])]) == [["y"]]
    nothing = TreeCRF(bias=False).fit([(np.zeros((3, 0)), [])], [["x", "y", "y"]])
    assert_allclose(nothing.objective_, 3 * np.log(2), rtol=1e-14)
    assert_allclose(nothing.predict_marginals([(np.zeros((1, 0)), [])])[0], [[0.5, 0.5]])


def test_bad_input_is_refused_with_a_reason():
    good = (np.ones((3, 2)), [(0, 1), (1, 2)])
    y = [["a", "b", "a"]]
    crf = TreeCRF(tol=1e-2).fit([good], y)
    for bad, message in [
        (lambda: TreeCRF().fit([], []), "at least one graph"),
        (lambda: TreeCRF().fit([np.ones((3, 2))], y), r"graph 0 must be \(node_features, edges\)"),
        (lambda: TreeCRF().fit([(np.ones((3, 2)), [(0, 3)])], y), r"edge \(0, 3\) of graph 0 needs nodes"),
        (lambda: TreeCRF().fit([(np.ones((3, 2)), [(-1, 0)])], y), r"edge \(-1, 0\) of graph 0 needs nodes"),
        (lambda: TreeCRF().fit([(np.ones((3, 2)), [(1, 1)])], y), r"edge \(1, 1\) of graph 0 joins a node to itself"),
        (lambda: TreeCRF().fit([(np.ones((3, 2)), [(0.5, 1)])], y), "edges of graph 0 must be whole numbers"),
        (lambda: TreeCRF().fit([(np.ones((3, 2)), [(0, 1, 2)])], y), "edges of graph 0 must be pairs"),
        (lambda: TreeCRF().fit([(np.full((3, 2), np.nan), [])], y), "node features of graph 0 must be finite"),
        (lambda: TreeCRF().fit([(["a", "b"], [])], y), "node features of graph 0 must be numbers"),
        (lambda: TreeCRF().fit([(*good, np.ones((1, 1)))], y), "graph 0 has 2 edges and 1 rows of edge features"),
        (lambda: TreeCRF().fit([good, (*good, np.ones((2, 1)))], y * 2), "graph 0 has no edge features"),
        (lambda: TreeCRF().fit([good, (np.ones((3, 1)), [])], y * 2), "node features of graph 1 have 1 columns"),
        (lambda: TreeCRF().fit([good], [["a", "b"]]), "graph 0 has 3 nodes and 2 labels"),
        (lambda: TreeCRF().fit([good], y * 2), "y must have labels for each of the 1 graphs; got 2"),
        (lambda: TreeCRF().fit([good]), "y must be given"),
        (lambda: TreeCRF(solver="sag").fit([good], y), "solver must be one of"),
        (lambda: TreeCRF(tol=0.0).fit([good], y), "tol must be positive"),
        (lambda: TreeCRF(max_table=0).fit([good], y), "max_table must be a whole number of at least 1"),
        (lambda: TreeCRF(solver="lbfgs", l1=1.0).fit([good], y), "does not take an l1 penalty"),
        (lambda: crf.predict([(np.ones((3, 1)), [])]), r"as in training, nodes \(1 and 3\), edges \(2 and 1\); got"),
        (lambda: crf.score([good], [["a", "b", "x"]]), "label 'x' did not occur in training"),
        (lambda: crf.weights("triples"), "kind must be one of nodes, edges"),
    ]:
        with pytest.raises(ValueError, match=message):
            bad()
    with pytest.raises(TypeError, match="graphs must be a list"):
        TreeCRF().fit(3, y)
    clique = (np.ones((9, 1)), [(u, v) for u in range(9) for v in range(u)])
    with pytest.raises(TooWide, match=r"graph 1 needs a table of 3\^9"):
        TreeCRF(max_table=10_000).fit([(np.ones((3, 1)), []), clique], [list("abc"), list("abcabcabc")])


def test_factors_are_checked():
    for factors, message in [
        (Factors([[0, 2]], [[1.0]]), r"on the variables \[0, 2\], of several graphs"),
        (Factors([[0, 5]], [[1.0]]), r"on the variables \[0, 5\]; there are 4"),
        (Factors([[1, 1]], [[1.0]]), "a variable twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            GraphData([0, 2, 4], {"edges": factors})
    with pytest.raises(ValueError, match="a row of one or more for each of the 2 rows"):
        Factors([[0]], np.ones((2, 1)))
    with pytest.raises(ValueError, match="offsets must rise from 0"):
        GraphData([0, 2, 2], {})
    with pytest.raises(ValueError, match="labels must be one for each of the 2 variables"):
        GraphData([0, 2], {}, labels=[1])
    with pytest.raises(ValueError, match="at least one kind"):
        GraphData([0, 2], {})


def test_what_does_not_fit_in_memory_is_refused_before_training(monkeypatch):
    from cumulant.sequences import estimator

    data = graphs(np.random.default_rng(6), ("grid",) * 20, labels=2)
    monkeypatch.setattr(estimator, "free_memory", lambda: 1_000)
    with pytest.raises(MemoryError, match=r"training needs about .* GiB"):
        TreeCRF().fit(data)
    monkeypatch.setattr(estimator, "free_memory", lambda: 34_000)
    crf = TreeCRF(tol=1e-6).fit(data)
    assert "strong convexity" in crf.certificate_.theorem  # that of L-BFGS
