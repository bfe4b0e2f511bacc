"""Markov chains over discrete models: which sampler, from which start, on how many threads."""

from typing import Any

import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising, Potts
from cumulant.graphical.samplers.blocked import blocked_gibbs
from cumulant.graphical.samplers.cluster_samplers import ising_clusters, potts_clusters
from cumulant.graphical.samplers.coupling import perfect_draws
from cumulant.graphical.samplers.gibbs import IsingArrays, ising_gibbs, table_gibbs
from cumulant.graphical.samplers.multi_spin import torus_gibbs
from cumulant.sampling.draws import Draws
from cumulant.threads import in_parts

__all__ = ["METHODS", "draw_perfectly", "sample_chains"]

_SINGLE = ("systematic", "random", "chromatic")
_CLUSTERS = ("swendsen_wang", "wolff")
METHODS = ("exact", *_SINGLE, "blocked", "multi_spin", *_CLUSTERS, "perfect")


def sample_chains(
    model: Any,
    n: int,
    method: str,
    *,
    rng: Any = None,
    chains: int = 4,
    burn_in: int = 1000,
    thin: int = 1,
    start: Any = None,
    n_jobs: int | None = None,
) -> Draws:
    """`n` draws of each of several chains; see `DiscreteModel.sample`.

    Chain ``c`` depends on the seed and on ``c`` only: neither on how many chains there are nor on the threads.
    """
    for name, value, least in (("n", n, 0), ("chains", chains, 1), ("burn_in", burn_in, 0), ("thin", thin, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} on; got {value!r}")
    if (burn_in + n * thin) * max(model.n_variables, 1) >= 2**63 or burn_in + n * thin >= 2**32:
        raise ValueError(f"burn_in + n * thin must be below 2**32 sweeps; got {burn_in + n * thin}")
    seed = randomness.seed(rng)
    spins = isinstance(model, Ising)
    states = _starts(model, chains, start, seed)
    settings: dict[str, Any] = {"seed": seed, "burn_in": burn_in, "thin": thin}
    if spins:
        arrays = IsingArrays.of(model)
        left = arrays.free
        if arrays.n and method in _SINGLE:
            run, group = ising_gibbs(arrays, method, chains)
        elif arrays.n and method in _CLUSTERS:
            run, group = ising_clusters(arrays, method)
        elif method == "multi_spin":
            run, group, settings["bias"] = torus_gibbs(model)
        else:
            run, group = _by_tables(model, method)
    else:
        left = model.restricted()[2]
        if method in _CLUSTERS and isinstance(model, Potts):
            run, group = potts_clusters(model, method)
        elif method in ("multi_spin", *_CLUSTERS):
            kinds = "Ising models" if method == "multi_spin" else "Ising and Potts models"
            raise DomainError(f"method={method!r} is for {kinds}; got {type(model).__name__}")
        else:
            run, group = _by_tables(model, method)
    as_spins = spins and method != "blocked"
    x = np.ascontiguousarray(
        2 * states[:, left] - 1 if as_spins else states[:, left], np.int8 if as_spins else np.int64
    )
    found = np.empty((chains, n, left.size), x.dtype)
    if left.size and n:

        def work(first, last):
            for start in range(first * group, min(last * group, chains), group):
                some = slice(start, min(start + group, chains))
                run(x[some], found[some], burn_in, thin, seed, start)

        in_parts(work, -(-chains // group), n_jobs)
    if left.size == model.structure.n_variables:
        return Draws(found if as_spins else model.labels.numbers(found), method, settings)
    whole = np.repeat(states[:, None], n, axis=1)
    whole[:, :, left] = (found + 1) // 2 if as_spins else found
    return Draws(model.labels.numbers(whole), method, settings)


def _by_tables(model: Any, method: str):
    structure, tables, left = model.restricted()
    if np.isneginf(tables).any():
        raise DomainError(
            f"method={method!r} needs every state to be possible: impossible states (-inf) may cut the chain's way "
            "from one part of the states to another; use method='exact'"
        )
    if left.size == 0:
        return (lambda *_: None), 1
    return blocked_gibbs(structure, tables) if method == "blocked" else table_gibbs(structure, tables, method)


def _starts(model: Any, chains: int, start: Any, seed: int) -> np.ndarray:
    """States (chains, variables): uniform ones, each chain's its own, or what `start` says."""
    sizes, n = model.structure.cardinalities, model.structure.n_variables  # hidden variables included
    if start is None:
        draws = [np.random.default_rng([seed, c]).integers(0, sizes) for c in range(chains)]
        states = np.array(draws, dtype=np.int64).reshape(chains, n)
    else:
        if np.shape(start) not in ((n,), (chains, n)):
            raise ValueError(f"start must have shape ({n},) or ({chains}, {n}); got {np.shape(start)}")
        states = np.array(model.family.states(start))
        states = np.array(np.broadcast_to(states, (chains, n)))
    for v, x in model._evidence.items():
        states[:, v] = x
    return states


def draw_perfectly(model: Any, n: int, rng: Any, **options: Any) -> np.ndarray:
    """`n` independent draws by coupling from the past; see `perfect_draws`."""
    if not isinstance(model, Ising):
        raise DomainError(f"method='perfect' is for Ising models; got {type(model).__name__}")
    arrays = IsingArrays.of(model)
    states = _starts(model, 1, None, 0)
    spins = np.repeat(model.labels.numbers(states), n, axis=0)
    spins[:, arrays.free] = perfect_draws(arrays, n, randomness.seed(rng), **options)
    return spins
