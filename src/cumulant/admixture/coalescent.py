"""Microsatellites of populations that split, by the coalescent."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.admixture.genotypes import Genotypes


def simulate_microsatellites(
    theta: float = 5.0, *, n_loci: int = 10, n_alleles: int = 30, splits: Sequence[float] = (0.5, 1.0, 2.0),
    n_individuals: int = 15, shared_tree: bool = False, rng: Any = None,
) -> Genotypes:  # fmt: skip
    """Diploid genotypes at microsatellites of populations that split one after the other.

    With three splits the populations are ``(A, (B, (C, D)))``: D splits from C at the first time, their ancestor from B
    at the second, and so on; the ancestors are 2, 3, 4 times as large as the populations of today. A mutation changes
    an allele to any other of the `n_alleles` with equal probability.

    Parameters
    ----------
    theta : float
        The scaled mutation rate ``4 N mu``, where ``N`` is the size of a population of today.
    n_loci, n_alleles : int
    splits : sequence of float
        Increasing times of the splits, in units of ``2 N`` generations.
    n_individuals : int
        Sampled in each population.
    shared_tree : bool
        One genealogy for all loci (no recombination between them) instead of one for each.
    rng : int, Generator or None

    References
    ----------
    Carbonetto (2009), section 3.5.2; the simulation is by msprime (Baumdicker and others 2022).
    """
    checks.positive("theta", theta)
    checks.whole("n_loci", n_loci)
    checks.whole("n_alleles", n_alleles, 2)
    checks.whole("n_individuals", n_individuals)
    times = checks.real_array("splits", splits, ndim=1)
    if times.size == 0 or times[0] <= 0 or (np.diff(times) <= 0).any():
        raise ValueError(f"splits must be increasing positive times; got {splits!r}")
    try:
        import msprime  # pyright: ignore[reportMissingImports]
    except ImportError as problem:
        raise ImportError("simulate_microsatellites needs msprime: pip install cumulant[genetics]") from problem
    size, names = 10_000, [chr(ord("A") + at) for at in range(times.size + 1)]
    demography, latest = msprime.Demography(), names[-1]
    for name in names:
        demography.add_population(name=name, initial_size=size)
    for at, time in enumerate(times):
        ancestor = f"ancestor_{at + 1}"
        demography.add_population(name=ancestor, initial_size=size * (at + 2))
        demography.add_population_split(time=2 * size * time, derived=[names[-2 - at], latest], ancestral=ancestor)
        latest = ancestor
    model = msprime.MatrixMutationModel(
        [str(a) for a in range(n_alleles)],
        root_distribution=np.full(n_alleles, 1 / n_alleles),
        transition_matrix=(np.ones((n_alleles, n_alleles)) - np.eye(n_alleles)) / (n_alleles - 1),
    )
    draw, alleles, tree = randomness.generator(rng), [], None
    for _ in range(n_loci):
        ancestry, mutations = (int(seed) for seed in draw.integers(1, 2**31, size=2))
        if tree is None or not shared_tree:
            tree = msprime.sim_ancestry(
                dict.fromkeys(names, n_individuals), demography=demography, sequence_length=1, random_seed=ancestry
            )
        mutated = msprime.sim_mutations(
            tree, rate=theta / (4 * size), model=model, random_seed=mutations, discrete_genome=True
        )
        if mutated.num_sites:
            variant = next(mutated.variants())
            values = np.array([int(a) for a in variant.alleles if a is not None])[variant.genotypes]
        else:  # no mutation: everyone has the same allele
            values = np.zeros(tree.num_samples, np.int64)
        alleles.append(values.reshape(-1, 2))
    populations = np.repeat(names, n_individuals)
    return Genotypes(
        np.stack(alleles, axis=1),
        tuple(f"{name}{i + 1}" for name in names for i in range(n_individuals)),
        tuple(f"locus {at + 1}" for at in range(n_loci)),
        tuple(map(str, populations)),
    )
