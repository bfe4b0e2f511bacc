"""Genotypes of real populations, read from the folder ``genetics`` in the folder that CUMULANT_DATA names."""

from typing import Any, NamedTuple

import numpy as np

from cumulant.admixture import Genotypes
from cumulant.experiments._crf import folder

LEFT_OUT = "There is nothing to run: set CUMULANT_DATA to the folder that holds genetics/ (nancycats, microbov, eHGDP)."


class Sampled(NamedTuple):
    """Genotypes with the labels that individuals came with."""

    genotypes: Genotypes
    labels: dict[str, np.ndarray]

    def loci(self, n: int) -> "Sampled":
        """The first `n` loci, of those with the fewest missing calls."""
        alleles = self.genotypes.alleles
        best = np.sort(np.argsort((alleles < 0).mean(axis=(0, 2)), kind="stable")[:n])
        return self._replace(genotypes=Genotypes(alleles[:, best], populations=self.genotypes.populations))

    def split(self, seed: int, held_out: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """Genotypes to learn from, and every fifth individual at random, to be predicted."""
        n = len(self.genotypes)
        out = np.zeros(n, bool)
        out[np.random.default_rng(seed).permutation(n)[: n // held_out]] = True
        return self.genotypes.alleles[~out], self.genotypes.alleles[out]


def sampled(name: str, labels: tuple[str, ...]) -> Sampled | None:
    """One of the data sets with its labels, ``population`` among them; None where the data are not there."""
    where = folder(f"genetics/{name}.npz")
    if where is None:
        return None
    with np.load(where / "genetics" / f"{name}.npz", allow_pickle=False) as file:
        populations = tuple(map(str, file["population"]))
        genotypes = Genotypes(file["alleles"], tuple(map(str, file["individuals"])), None, populations)
        kept: dict[str, Any] = {"population": np.array(populations)}
        return Sampled(genotypes, kept | {label: file[label].astype(str) for label in labels})
