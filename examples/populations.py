"""Populations from genotypes, from data to a choice of their number: `python examples/populations.py [FILE]`.

With a file (STRUCTURE, PLINK's .bed, .csv or .npz) its genotypes are used, else those of two simulated populations and
their crosses. Prints memberships with their uncertainty, a certified bound on the evidence, how far two methods agree,
and the evidence of one to three populations.
"""

import sys

import numpy as np

from cumulant import admixture


def simulated() -> admixture.Genotypes:
    """Ten individuals of each of two populations, and five crosses, at eight loci."""
    rng = np.random.default_rng(1)
    frequencies = rng.dirichlet([0.5] * 5, size=(2, 8))
    parents = [(0, 0)] * 10 + [(1, 1)] * 10 + [(0, 1)] * 5
    alleles = [[[rng.choice(5, p=frequencies[k, locus]) for k in pair] for locus in range(8)] for pair in parents]
    return admixture.Genotypes(np.array(alleles), populations=["first"] * 10 + ["second"] * 10 + ["crosses"] * 5)


def main(arguments: list[str]) -> None:
    """Run the example."""
    data = admixture.read_genotypes(arguments[0]) if arguments else simulated()
    print(data)
    chains = admixture.Admixture(2, random_state=0).fit(data)
    for name in dict.fromkeys(data.populations or []):
        chosen = np.array(data.populations) == name
        mean, deviation = chains.memberships_[chosen].mean(axis=0), chains.memberships_sd_[chosen].mean()
        print(f"{name}: memberships {np.round(mean, 2)}, deviation of an individual {deviation:.2f}")
    field = admixture.Admixture(2, method="mean_field", random_state=0).fit(data)
    print(field.verify(data))
    print("chains and mean field:", admixture.agreement_report([chains, field]))
    print(admixture.choose_components(data, (1, 2, 3), n_particles=20, n_temperatures=200, rng=0))


if __name__ == "__main__":
    main(sys.argv[1:])
