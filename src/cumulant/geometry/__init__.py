"""Bregman geometry: entropies, projections, proximal maps, duality, and the coordinates of symmetric matrices.

* entropies of vectors and of symmetric matrices, with conjugates, Hessians and divergences: the names below;
* `projections`, `proximal`: plain functions, one a set or a penalty;
* `duality`: conjugates, Fenchel gaps and duals; `norms`: operator norms; `symmetric`: half-vectorised matrices.
"""

from cumulant.geometry import conjugate_pairs, duality, norms, projections, proximal, symmetric
from cumulant.geometry.entropies import Burg, Euclidean, Hypentropy, NegativeLog, Power, Shannon, csiszar
from cumulant.geometry.entropy import Entropy, Separable
from cumulant.geometry.spectral import LogDet, Spectral, VonNeumann

__all__ = [
    "Burg",
    "Entropy",
    "Euclidean",
    "Hypentropy",
    "LogDet",
    "NegativeLog",
    "Power",
    "Separable",
    "Shannon",
    "Spectral",
    "VonNeumann",
    "conjugate_pairs",
    "csiszar",
    "duality",
    "norms",
    "projections",
    "proximal",
    "symmetric",
]
