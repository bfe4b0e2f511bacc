"""Objectives of generalised linear models in 100 digits, and points that are better than a given one."""

import mpmath as mp
import numpy as np

_DIGITS = 100


def _exact(values):
    return [[mp.mpf(float(v)) for v in row] for row in values]


class ExactGLM:
    """The objective on tiny data with exact weights, offsets and penalties; parameters by rows, a column an output."""

    def __init__(self, family, X, y, weights, offset, l1, l2, intercept, outputs=1):
        mp.mp.dps = _DIGITS
        self.family, self.outputs = family, outputs
        X = np.asarray(X, dtype=np.float64)
        rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
        self.rows = _exact(rows)
        self.y = [mp.mpf(float(v)) for v in y]
        total = mp.fsum(mp.mpf(float(v)) for v in weights)
        self.weights = [mp.mpf(float(v)) / total for v in weights]
        self.offset = _exact(np.asarray(offset, dtype=np.float64).reshape(len(X), outputs))
        self.l1 = mp.mpf(float(l1))
        self.l2 = 1 / total if l2 is None else mp.mpf(float(l2))
        self.penalised = [True] * X.shape[1] + [False] * intercept

    def _scores(self, i, x):
        k = self.outputs
        return [self.offset[i][c] + mp.fsum(v * x[j * k + c] for j, v in enumerate(self.rows[i])) for c in range(k)]

    def _row(self, i, eta):
        """Loss, gradient and Hessian in the scores of a row."""
        y, e = self.y[i], eta[0]
        if self.family == "normal":
            return (e - y) ** 2 / 2, [e - y], [[mp.mpf(1)]]
        if self.family == "bernoulli":
            m = 1 / (1 + mp.exp(-e))
            value = mp.log1p(mp.exp(-abs(e))) + max(e, 0) - y * e
            return value, [m - y], [[m * (1 - m)]]
        if self.family == "poisson":
            m = mp.exp(e)
            return m - y * e + (y * mp.log(y) if y else 0) - y, [m - y], [[m]]
        if self.family == "gamma":
            r = y * mp.exp(-e)
            return e + r - mp.log(y) - 1, [1 - r], [[r]]
        top = max(eta)
        parts = [mp.exp(v - top) for v in eta]
        total = mp.fsum(parts)
        m = [v / total for v in parts]
        own = int(y)
        slope = [v - (c == own) for c, v in enumerate(m)]
        bend = [[m[a] * ((a == b) - m[b]) for b in range(len(m))] for a in range(len(m))]
        return mp.log(total) + top - eta[own], slope, bend

    def _penalty(self, x):
        value = mp.mpf(0)
        for j, v in enumerate(x):
            if self.penalised[j // self.outputs]:
                value += self.l1 * abs(v) + self.l2 * v * v / 2
        return value

    def value(self, x):
        if self.family != "normal" and max(abs(e) for i in range(len(self.y)) for e in self._scores(i, x)) > 10**6:
            return mp.inf  # an exponential of that is beyond all memory
        losses = (self._row(i, self._scores(i, x))[0] for i in range(len(self.y)))
        return mp.fsum(w * v for w, v in zip(self.weights, losses, strict=True)) + self._penalty(x)

    def better(self, x, steps=20):
        """A point with a value at most that of `x`: Newton steps with halving on the coordinates that are free.

        Coordinates at zero stay there if they have an l1 penalty; a coordinate that changes its sign becomes zero.
        """
        x = [mp.mpf(float(v)) for v in np.ravel(x)]
        k, best = self.outputs, self.value(x)
        for _ in range(steps):
            kinked = [self.l1 > 0 and self.penalised[j // k] for j in range(len(x))]
            free = [j for j in range(len(x)) if not (kinked[j] and x[j] == 0)]
            if not free:
                break
            g, H = self._derivatives(x, kinked)
            A = mp.matrix(len(free), len(free))
            for a, i in enumerate(free):
                for b, j in enumerate(free):
                    A[a, b] = H[i][j]
                A[a, a] += mp.mpf(10) ** -45 * (A[a, a] if A[a, a] > 0 else 1)
            try:
                d = mp.lu_solve(A, mp.matrix([-g[i] for i in free]))
            except ZeroDivisionError:
                break
            t, moved = mp.mpf(1), False
            while t > mp.mpf(10) ** -12:
                trial = list(x)
                for a, j in enumerate(free):
                    trial[j] = x[j] + t * d[a]
                    if kinked[j] and trial[j] * x[j] < 0:
                        trial[j] = mp.mpf(0)
                value = self.value(trial)
                if value < best:
                    x, best, moved = trial, value, True
                    break
                t /= 4
            if not moved:
                break
        return best

    def _derivatives(self, x, kinked):
        k, size = self.outputs, len(x)
        g = [mp.mpf(0)] * size
        H = [[mp.mpf(0)] * size for _ in range(size)]
        for j in range(size):
            if self.penalised[j // k]:
                g[j] += self.l2 * x[j] + (self.l1 * mp.sign(x[j]) if kinked[j] else 0)
                H[j][j] += self.l2
        for i, w in enumerate(self.weights):
            _, slope, bend = self._row(i, self._scores(i, x))
            row = self.rows[i]
            for a in range(size):
                g[a] += w * slope[a % k] * row[a // k]
                for b in range(size):
                    H[a][b] += w * bend[a % k][b % k] * row[a // k] * row[b // k]
        return g, H

    def gap(self, x, starts=()):
        """A lower bound on ``P(x) - P*``, near the truth where Newton's method gets there from `x` or from a start."""
        here = self.value([mp.mpf(float(v)) for v in np.ravel(x)])
        return here - min([here, *(self.better(start) for start in (x, *starts))])
