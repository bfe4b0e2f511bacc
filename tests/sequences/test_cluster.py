"""Training on a real cluster of processes: the same optimum, the same bits, and what happens when workers die."""

import functools
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from cumulant import optim
from cumulant.optim import InterruptedWarning
from cumulant.sequences import ChainCRF, ChainMarginals, ChainProblem, SequenceDualAscent, SequenceLBFGS
from cumulant.sequences.certify import certify_gap
from cumulant.sequences.cluster import ascent as module
from cumulant.sequences.cluster.ascent import ClusterAscent
from cumulant.sequences.cluster.workers import ClusterError, LostShardWarning, ShardedProblem
from tests.sequences.cases import ragged

distributed = pytest.importorskip("distributed")

L2 = 0.3  # so large that few rounds are enough


@contextmanager
def running(**settings):
    """A cluster and its client."""
    with (
        distributed.LocalCluster(threads_per_worker=1, dashboard_address=":0", **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(settings["n_workers"])
        yield client


@pytest.fixture(scope="module")
def processes():
    with running(n_workers=2, processes=True) as client:
        yield client


@pytest.fixture
def client(processes):
    """Two workers, started again where a test before killed one."""
    processes.wait_for_workers(2, timeout=30)
    return processes


def data_of(seed, n=80):
    return ragged(np.random.default_rng(seed), n=n, attributes=6, longest=8)


@functools.cache
def optimum(seed, n=80):
    problem = ChainProblem(data_of(seed, n), 3, L2)
    result = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-13, max_steps=1000)
    return result.value, result.x


def forgotten(client):
    """Whether the workers hold nothing, soon."""
    end = time.monotonic() + 60
    while any(client.has_what().values()) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(client.has_what().values())


def test_no_client_is_an_error_that_says_how_to_make_one():
    """The first test here: those after it have one."""
    with pytest.raises(ClusterError, match=r"from distributed import Client; client = Client\(n_workers=2\)"):
        ChainCRF(l2=L2, engine="dask").fit(data_of(0))


def test_the_optimum_of_this_machine_with_a_certificate(client):
    value, weights = optimum(0)
    crf = ChainCRF(l2=L2, engine="dask", tol=1e-5, max_epochs=500).fit(data_of(0))
    here = ChainCRF(l2=L2, tol=1e-5, max_epochs=500).fit(data_of(0))
    assert crf.status_ == "converged"
    assert value <= crf.objective_ + 1e-13
    assert crf.objective_ - value <= crf.certificate_.upper <= 2e-5 * value
    assert np.linalg.norm(crf.weights_ - weights) <= crf.certificate_.details["|w - w*|"]
    assert abs(crf.objective_ - here.objective_) <= 1e-5 * here.objective_
    assert crf.history_[0].keys() == here.history_[0].keys() | {"lost_shards"}
    assert {row["lost_shards"] for row in crf.history_} == {0}
    assert [row["seconds"] for row in crf.history_] == sorted(row["seconds"] for row in crf.history_)
    for row in crf.history_:  # weak duality, at every round
        assert row["dual"] - 1e-12 <= value <= row["primal"] + 1e-12
    assert crf.history_[-1]["oracle_calls"] == 80 * crf.history_[-1]["epoch"]
    for ours, theirs in zip(crf.predict_marginals(data_of(0)), here.predict_marginals(data_of(0)), strict=True):
        assert_allclose(ours, theirs, atol=0.02)
    assert forgotten(client)


@pytest.mark.filterwarnings("ignore:ChainCRF stopped after 8 epochs")
def test_the_same_bits_whoever_holds_the_shards(client):
    settings = {"l2": L2, "engine": "dask", "n_blocks": 3, "tol": 1e-12, "max_epochs": 8}
    two = ChainCRF(**settings).fit(data_of(1))
    other_seed = ChainCRF(**settings, random_state=1).fit(data_of(1))
    answers = []
    for n_workers in (1, 3):
        with running(n_workers=n_workers, processes=False):
            answers.append(ChainCRF(**settings).fit(data_of(1)))
    assert two.status_ == "max_steps"
    assert two.history_[-1]["epoch"] == 8
    for crf in answers:
        assert np.array_equal(crf.weights_, two.weights_)
        assert crf.certificate_ == two.certificate_
        assert [row["gap"] for row in crf.history_] == [row["gap"] for row in two.history_]
    assert not np.array_equal(other_seed.weights_, two.weights_)


@pytest.mark.parametrize("settings", [{"l1": 0.01}, {"marginals": "float32"}, {"sampling": "importance"}])
def test_other_settings_reach_the_optimum_of_this_machine(client, settings):
    crf = ChainCRF(l2=L2, engine="dask", tol=1e-3, max_epochs=500, **settings).fit(data_of(2))
    here = ChainCRF(l2=L2, tol=1e-10, max_epochs=3000, **{k: v for k, v in settings.items() if k == "l1"}).fit(
        data_of(2)
    )
    assert crf.status_ == "converged"
    assert crf.certificate_.upper <= 2e-3 * crf.objective_
    assert -here.certificate_.upper <= crf.objective_ - here.objective_ <= crf.certificate_.upper


@pytest.mark.parametrize("local_epochs", [1, 4])
def test_the_solver_alone_and_its_certificate_from_gathered_marginals(client, local_epochs):
    whole = ChainProblem(data_of(3), 3, L2)
    value, _ = optimum(3)
    with ShardedProblem(client, whole, 3) as problem:
        solver = ClusterAscent(local_epochs=local_epochs)
        result = optim.run(solver, problem, np.zeros(problem.shape), tol=1e-4, max_steps=400, rng=0)
        parts = client.gather(
            [client.submit(lambda shard: (shard.mu.nodes, shard.mu.pairs), shard) for shard in problem._shards]
        )
        assert result.certificate.verify(result.subject).bound <= result.certificate.upper
        assert_allclose(problem.value(result.x), whole.value(result.x), rtol=1e-13)
        assert_allclose(problem.gradient(result.x), whole.gradient(result.x), atol=1e-12)
    assert result.status == "converged"
    assert -1e-13 <= result.value - value <= result.certificate.upper
    mu = ChainMarginals(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    dealt = ChainProblem(whole.data[np.concatenate(problem.members)], 3, whole.l2)  # in the order of the marginals
    gathered = certify_gap(dealt, (result.x, mu))
    assert_allclose(result.certificate.bound, gathered.bound, atol=gathered.slack)
    assert result.certificate.slack >= 0.1 * gathered.slack


def kill(client, address):
    os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)


def test_a_worker_killed_between_rounds(client):
    """Its shard begins at the marginals of the weights, everything after is as true as before."""
    whole, (value, _) = ChainProblem(data_of(4), 3, L2), optimum(4)
    lost, rows = [], []

    def callback(snapshot):
        rows.append((snapshot.measures["lost_shards"], snapshot.value, snapshot.measures["dual"]))
        if snapshot.step == 4:
            lost.append(problem._homes[1])
            kill(client, problem._homes[1])

    with ShardedProblem(client, whole, 2) as problem, pytest.warns(LostShardWarning, match="1 of 2 shards"):
        result = optim.run(
            ClusterAscent(), problem, np.zeros(problem.shape), tol=1e-5, max_steps=400, rng=0, callback=callback
        )
    assert result.status == "converged"
    assert [count for count, _, _ in rows][3:5] == [0, 1]
    assert lost[0] not in problem._homes
    assert all(dual - 1e-12 <= value <= primal + 1e-12 for _, primal, dual in rows)
    assert -1e-13 <= result.value - value <= result.certificate.upper <= 1e-5 * result.scale
    assert forgotten(client)


def test_a_worker_that_dies_while_it_works(client, tmp_path):
    """In the middle of a task, once: the answer is that of the shard where it was sent."""
    mark = tmp_path / "died"

    def question(shard, v, path):
        import os
        import signal

        if shard.place == 1 and not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return shard.place, shard.residual()

    with ShardedProblem(client, ChainProblem(data_of(5), 3, L2), 4) as problem:
        problem.begin(SequenceDualAscent(), 0)
        problem.ascend(3)
        v = problem.v
        with pytest.warns(LostShardWarning, match="2 of 4 shards"):  # its neighbour on the same worker too
            answers = problem.ask(question, v, str(mark))
        assert [place for place, _ in answers] == [0, 1, 2, 3]
        assert (problem.lost, problem.stale) == (2, True)
        problem.rebuild()
        assert_allclose(problem.v, sum(residual for _, residual in answers) / 80, rtol=1e-14, atol=1e-16)
        assert not np.array_equal(problem.v, v)


def test_fitting_survives_a_worker_killed_at_any_moment(client):
    value, _ = optimum(6, n=600)
    crf = ChainCRF(l2=L2, engine="dask", tol=1e-4, max_epochs=300)

    def assassin():
        while len(getattr(crf, "history_", [])) < 3:
            time.sleep(0.001)
        kill(client, sorted(client.nthreads())[0])

    thread = threading.Thread(target=assassin)
    thread.start()
    with pytest.warns(LostShardWarning, match="the duality gap may rise"):
        crf.fit(data_of(6, n=600))
    thread.join()
    assert crf.status_ == "converged"
    assert crf.history_[-1]["lost_shards"] == 1
    assert -1e-13 <= crf.objective_ - value <= crf.certificate_.upper <= 2e-4 * value
    assert all(row["dual"] - 1e-12 <= value <= row["primal"] + 1e-12 for row in crf.history_)
    assert forgotten(client)


def without_workers(monkeypatch, interrupt):
    """A fit on a cluster that loses all its workers after five rounds."""
    monkeypatch.setattr(module, "ShardedProblem", functools.partial(ShardedProblem, patience=0.5))
    original = module.ClusterMonitor.__call__
    crf = ChainCRF(l2=L2, engine="dask", tol=1e-14, max_epochs=10**4)
    with running(n_workers=2, processes=False) as client:

        def watch(self, snapshot):
            if snapshot.step == 5:
                client.cluster.scale(0)
                if interrupt:  # as a Ctrl-C on the terminal does, for workers of this machine
                    signal.raise_signal(signal.SIGINT)
            return original(self, snapshot)

        monkeypatch.setattr(module.ClusterMonitor, "__call__", watch)
        with (
            pytest.warns(LostShardWarning),
            pytest.warns(InterruptedWarning) if interrupt else pytest.raises(ClusterError, match="none came"),
        ):
            crf.fit(data_of(7))
        with pytest.raises(ClusterError, match="the cluster has no workers"):
            ChainCRF(l2=L2, engine="dask").fit(data_of(7))
    return crf


@pytest.mark.parametrize("interrupt", [False, True])
def test_no_worker_is_left(monkeypatch, interrupt):
    """A clear error unless that was wanted, and the best weights are kept with what their gradient says."""
    crf = without_workers(monkeypatch, interrupt)
    value, _ = optimum(7)
    assert crf.status_ == "interrupted"
    assert len(crf.history_) >= 5
    assert crf.objective_ == pytest.approx(min(row["primal"] for row in crf.history_), rel=1e-12)
    assert 0 <= crf.objective_ - value <= crf.certificate_.upper
    assert "strong convexity" in crf.certificate_.theorem


def test_a_shard_that_kills_every_worker_is_given_up(monkeypatch):
    monkeypatch.setattr("cumulant.sequences.cluster.workers._GRACE", 0.0)
    with (
        running(n_workers=1, processes=False) as client,
        ShardedProblem(client, ChainProblem(data_of(8), 3, L2)) as problem,
    ):
        problem.begin(SequenceDualAscent(), 0)

        def question(shard, v):
            raise OSError("gone")

        with pytest.warns(LostShardWarning), pytest.raises(ClusterError, match=r"shard 0 \(\d+ tokens\) was lost 5"):
            problem.ask(question, problem.v)

        def wrong(shard, v):
            raise ZeroDivisionError("a mistake")

        problem._losses = [0]
        with pytest.raises(ZeroDivisionError, match="a mistake"):  # not a loss
            problem.ask(wrong, problem.v)


def test_limits_a_development_set_and_an_interruption(client):
    train, dev = data_of(9), data_of(10, n=40)
    with pytest.warns(ConvergenceWarning, match="after 3 epochs"):
        short = ChainCRF(l2=L2, engine="dask", tol=1e-12, max_epochs=3).fit(train)
    assert (short.status_, short.history_[-1]["epoch"]) == ("max_steps", 3)
    assert short.certificate_.upper < np.inf
    timed = ChainCRF(l2=L2, engine="dask", tol=1e-15, max_epochs=10**6, time_limit=0.5).fit(train)
    assert timed.status_ == "time_limit"
    stopped = ChainCRF(l2=L2, engine="dask", tol=1e-10, max_epochs=200).fit(train, X_dev=dev, y_dev=dev.labels)
    assert stopped.status_ == "stopped"
    assert stopped.score(dev) == pytest.approx(max(row["dev_accuracy"] for row in stopped.history_))
    value, _ = optimum(9)
    assert stopped.objective_ - value <= stopped.certificate_.upper
    interrupted = ChainCRF(l2=L2, engine="dask", tol=1e-15, max_epochs=10**6)

    def interrupt():
        while len(getattr(interrupted, "history_", [])) < 3:
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.warns(InterruptedWarning, match="the best so far"):
        interrupted.fit(train)
    thread.join()
    assert interrupted.status_ == "interrupted"
    assert interrupted.objective_ - value <= interrupted.certificate_.upper
    assert forgotten(client)


def test_what_cannot_be_done_is_refused(client, monkeypatch):
    data = data_of(0)
    for settings, message in [
        ({"engine": "spark"}, "engine must be one of None"),
        ({"engine": "dask", "solver": "lbfgs"}, "trains by dual ascent"),
        ({"engine": "dask", "n_blocks": 0}, "n_blocks"),
    ]:
        with pytest.raises(ValueError, match=message):
            ChainCRF(**settings).fit(data)
    with pytest.raises(ValueError, match="local_epochs"):
        ClusterAscent(local_epochs=0)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"cumulant\[cluster\]"):
        ChainCRF(l2=L2, engine="dask").fit(data)
