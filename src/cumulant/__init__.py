"""Learning and inference in exponential families, with certificates: how far an answer can be from the exact one.

Importing `cumulant` costs nothing: each part is loaded when it is first used.

>>> import cumulant as cu
>>> gamma = cu.families.Gamma()
>>> theta = gamma.natural(shape=2.0, rate=3.0)
>>> gamma.usual(gamma.to_natural(gamma.to_mean(theta)))["rate"].round(12)
np.float64(3.0)
"""

import importlib
from typing import TYPE_CHECKING

from cumulant._version import __version__

if TYPE_CHECKING:
    from cumulant import (
        admixture,
        causal,
        errors,
        experiments,
        families,
        geometry,
        glm,
        graphical,
        layers,
        optim,
        particles,
        plotting,
        relational,
        report,
        sampling,
        sequences,
        variational,
    )
    from cumulant.certificates import Assumption, Certificate, Interval

_PARTS = (
    "admixture",
    "causal",
    "certificates",
    "errors",
    "experiments",
    "families",
    "files",
    "geometry",
    "glm",
    "graphical",
    "layers",
    "optim",
    "particles",
    "plotting",
    "relational",
    "report",
    "sampling",
    "sequences",
    "variational",
)
_NAMES = {"Assumption": "certificates", "Certificate": "certificates", "Interval": "certificates"}

__all__ = [
    "Assumption",
    "Certificate",
    "Interval",
    "__version__",
    "admixture",
    "causal",
    "errors",
    "experiments",
    "families",
    "geometry",
    "glm",
    "graphical",
    "layers",
    "optim",
    "particles",
    "plotting",
    "relational",
    "report",
    "sampling",
    "sequences",
    "variational",
]


def __getattr__(name):
    if name in _PARTS:
        return importlib.import_module(f"cumulant.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"cumulant.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'cumulant' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_PARTS, *_NAMES})
