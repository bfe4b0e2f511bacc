"""Genotypes: allele values of individuals at loci, missing calls, and the corpus they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from cumulant import checks
from cumulant.admixture.data import MISSING, Corpus

_LARGEST = 2.0**53 - 1  # above it, numbers of float64 are not apart by one


@dataclasses.dataclass(frozen=True, eq=False)
class Genotypes:
    """Alleles ``(individuals, loci, copies)``, whole numbers from 0 on (numbers or fragment lengths); -1 is missing.

    Attributes
    ----------
    alleles : array of int64
    individuals, loci, populations : tuple of str, optional
        Names of the individuals and loci, and the population that each individual was sampled in.

    Examples
    --------
    >>> cats = Genotypes(np.array([[[142, 146], [0, 1]], [[146, -1], [1, 1]]]))
    >>> cats.corpus().locus_starts
    array([0, 2, 4])
    """

    alleles: np.ndarray
    individuals: tuple[str, ...] | None = None
    loci: tuple[str, ...] | None = None
    populations: tuple[str, ...] | None = None

    def __post_init__(self):
        object.__setattr__(self, "alleles", _alleles("alleles", self.alleles))
        n, loci = self.alleles.shape[:2]
        for name, size in (("individuals", n), ("loci", loci), ("populations", n)):
            names = getattr(self, name)
            if names is not None:
                if len(names) != size:
                    raise ValueError(f"{name} must have {size} names; got {len(names)}")
                object.__setattr__(self, name, tuple(map(str, names)))

    def corpus(self) -> Corpus:
        """The allele copies as tokens, the alleles of each locus numbered in their order."""
        return as_corpus("genotypes", self)[0]

    def __len__(self):
        return len(self.alleles)

    def __str__(self):
        missing = float(np.mean(self.alleles == MISSING))
        n, loci, copies = self.alleles.shape
        return f"{n} individuals, {loci} loci, {copies} copies of each, {missing:.1%} of the calls missing"


def as_corpus(
    name: str, data: Any, alleles: Sequence[np.ndarray] | None = None, *, new: bool = False
) -> tuple[Corpus, list | None]:
    """The corpus of what a user may give, and the allele values of each locus (None for counts).

    A `Corpus`, `Genotypes`, an array of genotypes (three axes) or a matrix of counts (two). Data to learn from must
    have tokens in every document and at every locus; `new` data need not. With `alleles` (those of a fit) values that
    they do not have count as missing.
    """
    if isinstance(data, Corpus):
        return data, None
    if isinstance(data, Genotypes):
        found = data
    elif scipy.sparse.issparse(data) or np.ndim(checks.array(name, data)) == 2:
        with checks.about(name):
            corpus = Corpus.from_counts(data)
        if not new:
            _require_tokens(name, corpus.lengths, "document")
        return corpus, None
    else:
        found = Genotypes(_alleles(name, data))
    if new and alleles is None:
        raise ValueError(f"{name} must be counts or a Corpus, as in the fit, which does not know the values of alleles")
    values = found.alleles
    known = [np.unique(column[column != MISSING]) for column in values.swapaxes(0, 1)] if alleles is None else alleles
    if len(known) != values.shape[1]:
        raise ValueError(f"{name} must have the {len(known)} loci of the fit; got {values.shape[1]}")
    calls = values != MISSING
    if not new:
        _require_tokens(name, calls.sum(axis=(1, 2)), "individual", found.individuals)
        _require_tokens(name, calls.sum(axis=(0, 2)), "locus", found.loci)
    codes = np.full(values.shape, MISSING, np.int64)
    for at, levels in enumerate(known):
        place = np.minimum(np.searchsorted(levels, values[:, at]), len(levels) - 1)
        codes[:, at] = np.where(calls[:, at] & (levels[place] == values[:, at]), place, MISSING)
    corpus = Corpus.from_genotypes(codes, n_alleles=[len(levels) for levels in known])
    return dataclasses.replace(corpus, documents=found.individuals, loci=found.loci), list(known)


def _alleles(name: str, data: Any) -> np.ndarray:
    """Whole numbers with three axes; NaN is a missing call."""
    array = checks.real_array(name, data, ndim=3, finite=False)
    if 0 in array.shape:
        raise ValueError(f"{name} must have individuals, loci and copies; got shape {array.shape}")
    array = np.where(np.isnan(array), MISSING, array)
    wrong = (array < MISSING) | (array > _LARGEST) | (array != np.round(array))
    if wrong.any():
        raise ValueError(
            f"{name} must be whole numbers from 0 on, below 2**53, or -1 or NaN for a missing call; got "
            f"{array[wrong][0]:g}"
        )
    return array.astype(np.int64)


def _require_tokens(name: str, counts: np.ndarray, what: str, names: Sequence[str] | None = None) -> None:
    empty = np.flatnonzero(counts == 0)
    if empty.size:
        first = str(empty[0]) if names is None else f"{names[empty[0]]} (number {empty[0]})"
        more = f", and {empty.size - 1} more" if empty.size > 1 else ""
        raise ValueError(f"{name}: {what} {first} has no data: leave it out{more}")
