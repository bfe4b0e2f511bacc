"""Gibbs sampling of a uniform torus by multi-spin coding: 64 spins in a word, hundreds in an instruction."""

from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.kaufman import torus_columns
from cumulant.graphical.samplers.gibbs import Run, one_by_one
from cumulant.graphical.samplers.multi_spin_kernels import torus_chain

_BITS = 24


def bernoulli_digits(probability: float) -> tuple[np.uint64, float]:
    """The 24 binary digits of a probability as one number below 2^24, and the error of rounding.

    >>> digits, error = bernoulli_digits(0.75)
    >>> f"{digits:024b}", error
    ('110000000000000000000000', 0.0)
    """
    whole = min(round(probability * 2**_BITS), 2**_BITS - 1)
    return np.uint64(whole), float(abs(whole / 2**_BITS - probability))


def torus_gibbs(model: Any) -> tuple[Run, float]:
    """Chains of an Ising model on ``torus(rows, columns)`` with one coupling and no fields.

    Chequerboard heat bath: all sites of one colour, then all of the other, each spin from its conditional distribution
    (Creutz 1980 for the update; Friedberg and Cameron 1970 for the coding). A decision has 24 random bits: the
    probabilities of +1 given the neighbours are rounded to multiples of 2^-24, an error of at most 2^-25 (3e-8), which
    is returned as `bias` (one half is exact). Where even the rarest of them, ``1 / (1 + exp(8 |J|))``, is below 2^-20
    the relative error could pass three per cent, and the model is refused: ``|J|`` up to 1.73.

    Returns the sweeps and `bias`. `DomainError` where the model is not of this kind: rows must be even, columns a
    multiple of 128.
    """
    rows, columns = _shape(model)
    coupling = float(model.couplings[0])
    none, one = 1.0 / (1.0 + np.exp(8.0 * coupling)), 1.0 / (1.0 + np.exp(4.0 * coupling))
    if min(none, 1.0 - none) < 2.0**-20:
        raise DomainError(
            f"the coupling {coupling:.4g} makes decisions rarer than 24 random bits can tell well: "
            "use method='chromatic'"
        )
    none_digits, none_error = bernoulli_digits(none)
    one_digits, one_error = bernoulli_digits(one)
    run = one_by_one(torus_chain, rows, columns, none_digits, one_digits)
    return run, max(none_error, one_error)


def _shape(model: Any) -> tuple[int, int]:
    """The rows and columns of the torus that the model lives on."""
    n, edges = model.n_variables, model.edges
    wanted = "method='multi_spin' needs an Ising model on torus(rows, columns), rows even and columns a multiple of 128"
    if len(edges) != 2 * n or np.ptp(model.couplings) > 0 or np.any(model.fields) or model.evidence:
        raise DomainError(f"{wanted}, with one coupling for all edges, no fields and no evidence: use 'chromatic'")
    columns = torus_columns(model.structure, edges)
    if columns == 0 or columns % 128 or n // columns % 2:
        raise DomainError(f"{wanted}: the edges are of another graph; use method='chromatic'")
    return n // columns, columns
