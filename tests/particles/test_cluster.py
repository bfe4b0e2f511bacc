"""Islands on a Dask cluster: the same answer, also after a worker was lost, and islands that are lost are said."""

import dataclasses
import os

import numpy as np
import pytest

from cumulant import graphical, particles

distributed = pytest.importorskip("distributed")
MODEL = graphical.Ising(graphical.grid(3, 3), 0.5, 0.1)


@pytest.fixture(scope="module")
def client():
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client


def mortal(deadly):
    """A bridge whose island with the seed `deadly` ends its worker. Made inside of a function, so that workers, which
    cannot import the tests, get it by value.
    """

    @dataclasses.dataclass(frozen=True)
    class Mortal:
        seed: int
        home: int = os.getpid()
        n_jobs: int | None = None
        fixed: bool = True

        def begin(self, n, seed):
            if seed == self.seed and os.getpid() != self.home:
                os._exit(1)
            return particles.Start(np.random.default_rng(seed).normal(size=(n, 1)), 0.0)

        def advance(self, population):
            return particles.Step(population.x, -1.5 * population.x[:, 0] ** 2, True)

        def move(self, population):
            return population.x

        def kinds(self, population):
            return {}

        def draws(self, x):
            return x

    return Mortal(deadly)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (particles.anneal, {"temperatures": 10}),
        (particles.anneal, {"temperatures": 10, "exchange": 3}),
        (particles.conditional_mean_field, {"temperatures": 3, "pilot": True}),
        (particles.variational_smc, {"n_steps": 5, "finish": 5, "pilot": True, "resampling": "systematic"}),
    ],
)
def test_the_cluster_gives_the_same_answer_as_threads(client, method, settings):
    here = method(MODEL, 100, n_islands=3, rng=0, **settings)
    there = method(MODEL, 100, n_islands=3, rng=0, client=client, **settings)
    assert there.lost == 0
    assert [each.log_z for each in here.outcomes] == [each.log_z for each in there.outcomes]
    assert (here.draws.values == there.draws.values).all()
    assert there.certificate.verify(there.subject).lower == here.certificate.lower


@pytest.mark.slow
def test_an_island_that_loses_its_workers_is_left_out_and_said(client):
    from cumulant.particles.islands import island_seeds

    bridge = mortal(island_seeds(0, 4)[2])
    whole = particles.run(bridge, 50, n_islands=4, rng=0)
    found = particles.run(bridge, 50, n_islands=4, rng=0, client=client)
    assert found.lost == 1
    assert len(found.outcomes) == 3
    assert "1 of 4 islands were lost" in str(found)
    kept = [whole.outcomes[i].log_z for i in (0, 1, 3)]
    assert [each.log_z for each in found.outcomes] == kept
    assert found.log_partition() == pytest.approx(np.log(np.mean(np.exp(kept))))
    assert any("lost" in str(each) for each in found.certificate.assumptions)
    found.certificate.verify(found.subject)


def test_what_is_no_client_is_refused():
    with pytest.raises(TypeError, match="client"):
        particles.anneal(MODEL, 10, 2, client="localhost")
