"""What an on-line l1 learner carries from row to row: slacks, multipliers, curvature, and how far each feature is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from cumulant.errors import NotConvergedError
from cumulant.glm.online import online_kernels as kernels

FORMULATIONS = ("split", "bound")
CURVATURES = ("identity", "diagonal", "averaged")
_LONGEST = 4096  # rows of a block
_FEATURES = ("s0", "s1", "z0", "z1", "h", "last")  # the arrays with an entry for each feature
_SCALARS, _COUNTERS = kernels.MARK_ALLOWED + 1, kernels.STALLS + 1


class OnlineSettings(NamedTuple):
    """The settings of the steps as the compiled loops take them."""

    code: int
    form: int
    curvature: int
    common: bool
    intercept: bool
    implicit: bool
    l1: float
    step: float
    delay: float
    power: float
    centring: float
    centring_power: float
    deferral: float


@dataclass(eq=False)
class OnlineState:
    """Slacks ``s``, multipliers ``z``, averaged curvature ``h``, and the steps of the current block of rows.

    `learn` changes it in place. The weights are a function of the state (`weights`, `scores`): looking at them changes
    nothing, so that the answer does not depend on how a stream is cut into batches or when it is looked at.
    """

    s0: np.ndarray
    s1: np.ndarray
    z0: np.ndarray
    z1: np.ndarray
    h: np.ndarray
    last: np.ndarray
    history: np.ndarray
    scalars: np.ndarray
    counters: np.ndarray
    _work: tuple[np.ndarray, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self):
        p = len(self.s0)
        shapes = dict.fromkeys(_FEATURES, (p,))
        shapes |= {"history": (3, _LONGEST + 1), "scalars": (_SCALARS,), "counters": (_COUNTERS,)}
        kinds = {"last": np.int32, "counters": np.int64}
        for name, shape in shapes.items():  # the loops do not look where they write
            array, kind = getattr(self, name), np.dtype(kinds.get(name, np.float64))
            if array.shape != shape or array.dtype != kind:
                raise ValueError(f"{name} must be {kind} of shape {shape}; got {array.dtype} of shape {array.shape}")
        position = int(self.counters[kernels.POSITION])
        if not (0 <= position <= _LONGEST and self.last.min(initial=0) >= 0 and self.last.max(initial=0) <= position):
            raise ValueError(
                f"last must be between 0 and the position in the block, at most {_LONGEST}; got {position}"
            )
        self._work = np.zeros(len(self.s0)), np.zeros(len(self.s0))

    @classmethod
    def start(cls, features: int, slack: float, multiplier: float) -> "OnlineState":
        """All weights zero: every slack at `slack`, every multiplier at `multiplier`."""
        slacks, multipliers = np.full(features, slack), np.full(features, multiplier)
        return cls._at(slacks, slacks.copy(), multipliers, multipliers.copy(), np.zeros(features))

    @classmethod
    def _at(cls, s0, s1, z0, z1, h) -> "OnlineState":
        history = np.zeros((3, _LONGEST + 1))
        history[0, 0] = history[2, 0] = 1.0
        scalars = np.zeros(_SCALARS)
        scalars[kernels.PASSED] = scalars[kernels.FADED] = 1.0
        scalars[kernels.GAP] = float(np.sum(s0 * z0 + s1 * z1))
        return cls(s0, s1, z0, z1, h, np.zeros(len(s0), np.int32), history, scalars, np.zeros(_COUNTERS, np.int64))

    def restarted(self) -> "OnlineState":
        """A warm start for another penalty: the same point, but no slack or multiplier below a hundredth of the mean of
        its kind, and steps as long as at the beginning.
        """
        floored = [np.maximum(v, 1e-2 * v.mean()) for v in (self.s0, self.s1, self.z0, self.z1)]
        fresh = self._at(floored[0], floored[1], floored[2], floored[3], self.h.copy())
        fresh.scalars[kernels.INTERCEPT] = self.scalars[kernels.INTERCEPT]
        return fresh

    @property
    def rows(self) -> int:
        """Rows learned so far."""
        return int(self.counters[kernels.ROWS])

    @property
    def intercept(self) -> float:
        """The intercept."""
        return float(self.scalars[kernels.INTERCEPT])

    @property
    def stalls(self) -> int:
        """Doublings of the rows in which the boundary let through less than a hundredth of the steps allowed."""
        return int(self.counters[kernels.STALLS])

    def learn(
        self, settings: OnlineSettings, X: Any, targets: np.ndarray, weights: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        """Learn from rows of a CSR matrix in the given order; the score of each before it was learned."""
        scores = np.empty(len(order))
        targets = np.require(targets, requirements="W")  # for read-only arrays the kernel would be compiled again
        kernels.learn(
            settings.code, settings.form, settings.curvature, settings.common, settings.intercept,
            settings.implicit, *rows_of(X), targets, weights, order,
            self.s0, self.s1, self.z0, self.z1, self.h, self.last, self.history, *self._work,
            self.scalars, self.counters,
            *settings[6:], scores,
        )  # fmt: skip
        if not (np.isfinite(self.scalars[kernels.GAP]) and np.isfinite(self.intercept)):
            raise NotConvergedError(
                "the weights grew beyond all bounds: features or targets are too large for the curvature; use "
                "curvature='averaged', scale the features, or make steps shorter (step, step_delay)"
            )
        return scores

    def _now(self, settings: OnlineSettings) -> tuple[Any, ...]:
        arrays = self.s0, self.s1, self.z0, self.z1, self.h, self.last, self.history
        return *arrays, int(self.counters[kernels.POSITION]), settings.l1

    def weights(self, settings: OnlineSettings) -> np.ndarray:
        """Every weight."""
        out = np.empty(len(self.s0))
        kernels.weights_of(settings.form, settings.curvature, *self._now(settings), out)
        return out

    def scores(self, settings: OnlineSettings, X: Any) -> np.ndarray:
        """The scores of the rows of a CSR matrix, without forming all weights."""
        out = np.empty(X.shape[0])
        kernels.scores_of(settings.form, settings.curvature, *rows_of(X), *self._now(settings), self.intercept, out)
        return out

    def diagnostics(self) -> dict[str, float]:
        """How the steps went: see `OnlineLasso.diagnostics`."""
        s, c = self.scalars, self.counters
        return {
            "rows": int(c[kernels.ROWS]),
            "surrogate_gap": float(s[kernels.GAP]),
            "barrier": float(s[kernels.GAP]) / (2 * len(self.s0)),
            "sum_of_steps": float(s[kernels.SUM_STEPS]),
            "sum_of_squared_steps": float(s[kernels.SUM_SQUARES]),
            "share_of_allowed_steps": float(s[kernels.SUM_STEPS] / max(s[kernels.SUM_ALLOWED], 1e-300)),
            "cut_steps": int(c[kernels.CUTS]),
            "stalled_doublings": self.stalls,
            "sweeps": int(c[kernels.SWEEPS]),
            "clipped_deferrals": int(c[kernels.CLIPPED]),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays, as they are."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init}

    def compact(self) -> dict[str, np.ndarray]:
        """What a file must hold: nothing for the features that no row had, which are all alike, but one of them.

        Features without an occurrence go through the same numbers from the same start, bit for bit, and their weights
        are zero. Each array of features becomes its commonest entry, and then those of the features that differ.
        """
        _, first, counts = np.unique(self.s0.view(np.int64), return_index=True, return_counts=True)
        common = int(first[np.argmax(counts)])
        named = {name: getattr(self, name) for name in _FEATURES}
        bits = [array.view(np.int32 if array.dtype == np.int32 else np.int64) for array in named.values()]
        differing = np.flatnonzero(np.logical_or.reduce([each != each[common] for each in bits]))
        kept = np.append(common, differing)
        return {name: array[kept] for name, array in named.items()} | {
            "differing": differing,
            "features": np.asarray(len(self.s0)),
            "history": self.history[:, : int(self.counters[kernels.POSITION]) + 1].copy(),
            "scalars": self.scalars,
            "counters": self.counters,
        }

    @classmethod
    def expanded(cls, arrays: Mapping[str, np.ndarray]) -> "OnlineState":
        """The state that `compact` made smaller, bit for bit. Raises `ValueError` where the arrays do not fit."""
        features, differing = int(arrays["features"]), arrays["differing"]
        whole: dict[str, np.ndarray] = {name: arrays[name] for name in ("scalars", "counters")}
        inside = (
            differing.dtype.kind == "i" and differing.ndim == 1 and np.all((differing >= 0) & (differing < features))
        )
        if not (features >= 1 and inside):
            raise ValueError(f"differing must be numbers of features, from 0 to {features - 1}")
        for name in _FEATURES:
            if arrays[name].shape != (len(differing) + 1,):
                raise ValueError(f"{name} must have {len(differing) + 1} entries; got shape {arrays[name].shape}")
            whole[name] = np.full(features, arrays[name][0])
            whole[name][differing] = arrays[name][1:]
        kept = arrays["history"]
        if kept.ndim != 2 or len(kept) != 3 or not 1 <= kept.shape[1] <= _LONGEST + 1:
            raise ValueError(f"history must have shape (3, 1 to {_LONGEST + 1}); got {kept.shape}")
        whole["history"] = np.zeros((3, _LONGEST + 1), kept.dtype)
        whole["history"][:, : kept.shape[1]] = kept
        return cls(**whole)


def rows_of(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of a CSR matrix in the types that the loops are compiled for."""
    return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False), X.data
