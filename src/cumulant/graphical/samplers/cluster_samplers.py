"""Cluster samplers: Swendsen and Wang (1987), Wolff (1989).

Edges are given bonds so that, together, spins and bonds have the joint distribution of Edwards and Sokal (1988); given
the bonds, the clusters they join are independent, and are recoloured at once. Where couplings make spins agree over
long distances, single-site updates take very long and these do not. They are valid for Ising couplings of any sign (a
bond asks for the sign of its coupling); with frustration, clusters grow before the spins are ordered and little is
gained.
"""

from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.graphical.samplers.cluster_samplers_kernels import (
    swendsen_wang_chain,
    swendsen_wang_potts,
    wolff_chain,
    wolff_potts,
)
from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.graphical.samplers.gibbs import IsingArrays, Run, one_by_one


def ising_clusters(arrays: IsingArrays, method: str) -> Run:
    """Sweeps of an Ising model; one of ``"wolff"`` is one cluster."""
    bonds, ghosts = -np.expm1(-2.0 * np.abs(arrays.couplings)), -np.expm1(-2.0 * np.abs(arrays.fields))
    chain = swendsen_wang_chain if method == "swendsen_wang" else wolff_chain
    return _clusters(chain, arrays.n, arrays.edges, bonds, arrays.couplings > 0, arrays.fields, ghosts)


def potts_clusters(model: Any, method: str) -> Run:
    """Sweeps of a Potts model with couplings that are not negative; for ``"wolff"`` without fields."""
    if model.evidence:
        raise DomainError(f"method={method!r} of a Potts model takes no evidence: use method='systematic'")
    if (model.couplings < 0).any():
        worst = int(model.couplings.argmin())
        raise DomainError(
            f"clusters of a Potts model need couplings that are not negative; edge {worst} has "
            f"{model.couplings[worst]:.4g}: use method='systematic'"
        )
    bonds, fields = -np.expm1(-model.couplings), model.fields.reshape(model.n_variables, model.n_states)
    positive = np.ones(len(bonds), dtype=bool)
    if method == "swendsen_wang":
        fields = np.ascontiguousarray(fields)
        return _clusters(swendsen_wang_potts, model.n_variables, model.edges, bonds, positive, fields)
    if model.n_states < 2 or np.ptp(fields, axis=1).any():
        raise DomainError("method='wolff' of a Potts model needs two colours or more and no fields: use swendsen_wang")
    return _clusters(wolff_potts, model.n_variables, model.edges, bonds, positive, model.n_states)


def _clusters(kernel: Any, n: int, edges: np.ndarray, bonds: np.ndarray, positive: np.ndarray, *more: Any) -> Run:
    """Swendsen and Wang's kernels take edges, Wolff's the neighbours of each site."""
    if kernel in (swendsen_wang_chain, swendsen_wang_potts):
        return one_by_one(kernel, np.ascontiguousarray(edges), bonds, positive, *more)
    graph = Neighbours.of(n, edges)
    return one_by_one(kernel, graph.indptr, graph.neighbours, bonds[graph.edge], positive[graph.edge], *more)
