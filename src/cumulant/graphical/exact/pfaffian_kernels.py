"""Pfaffians of square lattices modulo primes, by elimination of a frontal matrix; see `exact.lattice_sums`.

Residues are kept in Montgomery's form: ``a`` stands for ``a 2^-32`` modulo the prime, so that a product is reduced by
two multiplications and no division (Montgomery 1985). Primes are below 2^31, so that a sum of two products stays below
2^63. Of a skew-symmetric matrix the part below the diagonal is stored.
"""

import numpy as np

from cumulant.kernels import kernel

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel(called_by="kernels")
def _reduce(product, p, q):
    """``product / 2^32`` modulo `p`, with ``q = -1 / p`` modulo ``2^32``."""
    quotient = ((product & _LOW) * q) & _LOW
    t = (product + quotient * p) >> _SHIFT
    return t - p if t >= p else t


@kernel(called_by="kernels")
def _power(a, exponent, one, p, q):
    value = one
    while exponent > _ZERO:
        if exponent & _ONE:
            value = _reduce(value * a, p, q)
        a = _reduce(a * a, p, q)
        exponent >>= _ONE
    return value


@kernel(called_by="kernels")
def _swap(A, m, ready, variable, place, a, b, p):
    """Exchange the positions ``a < b`` of a front of `m` variables."""
    for k in range(a):
        A[a, k], A[b, k] = A[b, k], A[a, k]
    for k in range(a + 1, b):
        x, y = np.uint64(A[k, a]), np.uint64(A[b, k])
        A[k, a] = np.uint32(p - y if y else y)
        A[b, k] = np.uint32(p - x if x else x)
    x = np.uint64(A[b, a])
    A[b, a] = np.uint32(p - x if x else x)
    for k in range(b + 1, m):
        A[k, a], A[k, b] = A[k, b], A[k, a]
    ready[a], ready[b] = ready[b], ready[a]
    variable[a], variable[b] = variable[b], variable[a]
    place[variable[a]], place[variable[b]] = a, b


@kernel(called_by="kernels")
def _eliminate(A, m, ready, variable, place, value, one, p, q):
    """Take out pairs of variables that have all of their bonds, until none is left whose entry is not zero.

    ``Pf A = A_xy Pf(A_ij + (A_iy A_jx - A_ix A_jy) / A_xy)``, and an exchange of two positions changes the sign.
    Returns the size of the front and the product of the pivots.
    """
    x = 0
    while x < m:
        y = m
        if ready[x]:
            for k in range(x + 1, m):
                if ready[k] and A[k, x] != 0:
                    y = k
                    break
        if y == m:
            x += 1
            continue
        if y < m - 1:
            _swap(A, m, ready, variable, place, y, m - 1, p)
            value = p - value if value else value
        if x < m - 2:
            _swap(A, m, ready, variable, place, x, m - 2, p)
            value = p - value if value else value
        m -= 2
        pivot = p - np.uint64(A[m + 1, m])
        value = _reduce(value * pivot, p, q)
        inverse = _power(pivot, p - np.uint64(2), one, p, q)
        for i in range(m):
            u, v = np.uint64(A[m, i]), np.uint64(A[m + 1, i])
            if u == _ZERO and v == _ZERO:
                continue
            v = _reduce(v * inverse, p, q)
            u = p - _reduce(u * inverse, p, q)
            for j in range(i):
                product = v * np.uint64(A[m, j]) + u * np.uint64(A[m + 1, j])
                quotient = ((product & _LOW) * q) & _LOW
                t = np.uint64(A[i, j]) + ((product + quotient * p) >> _SHIFT)
                t = t - p if t >= p else t
                t = t - p if t >= p else t
                A[i, j] = np.uint32(t)
        x = 0
    return m, value


@kernel(called_by="kernels")
def _join(A, place, first, second, weight, p):
    """Add `weight` to the entry of two variables."""
    a, b = place[first], place[second]
    if a < b:
        a, b = b, a
        weight = p - weight if weight else weight
    t = np.uint64(A[a, b]) + weight
    A[a, b] = np.uint32(t - p if t >= p else t)


@kernel(called_by="kernels")
def _assemble(right, down, sign, joined_down, A, ready, variable, place, one, p, q):
    """Put in the sites one after the other and take out what is complete; the bonds from the last row to the first are
    left for later. Returns the size of the front (-1 where it does not fit) and the product of the pivots.

    A site has four variables, its legs to the left, up, right and down, with the entry -1 between any two; a bond is an
    entry between two legs. `sign` is 1, or -1 for the bonds that lead from the last column to the first, or 0 for none.
    """
    rows, columns = right.shape
    m, value = 0, one
    for site in range(rows * columns):
        r, c = site // columns, site % columns
        if m + 4 > A.shape[0]:
            return -1, value
        for leg in range(4):
            for k in range(m):
                A[m, k] = 0
            for k in range(m - leg, m):
                A[m, k] = np.uint32(one)
            variable[m] = 4 * site + leg
            place[4 * site + leg] = m
            ready[m] = True
            m += 1
        if c == 0 and sign != 0:
            ready[m - 4] = False
        if c < columns - 1 or sign != 0:
            ready[m - 2] = False
        if r == 0 and joined_down:
            ready[m - 3] = False
        if r < rows - 1 or joined_down:
            ready[m - 1] = False
        if c > 0:
            _join(A, place, 4 * site - 2, 4 * site, np.uint64(right[r, c - 1]), p)
            ready[place[4 * site - 2]] = True
        if r > 0:
            above = 4 * (site - columns) + 3
            _join(A, place, above, 4 * site + 1, np.uint64(down[r - 1, c]), p)
            ready[place[above]] = True
        if c == columns - 1 and sign != 0:
            weight = np.uint64(right[r, c])
            if sign < 0 and weight:
                weight = p - weight
            first = 4 * (site - columns + 1)
            _join(A, place, 4 * site + 2, first, weight, p)
            ready[place[4 * site + 2]] = True
            ready[place[first]] = True
        m, value = _eliminate(A, m, ready, variable, place, value, one, p, q)
    return m, value


@kernel(called_by="kernels")
def _close(A, B, m, down, seam, ready, variable, place, value, one, p, q):
    """Join the last row to the first by bonds of this sign, and take out the rest; `A` is left as it is."""
    rows, columns = down.shape
    kept = variable.shape[0] // 2
    for i in range(m):
        ready[i] = True
        variable[kept + i] = variable[i]
        for k in range(i):
            B[i, k] = A[i, k]
    for c in range(columns):
        weight = np.uint64(down[rows - 1, c])
        if seam < 0 and weight:
            weight = p - weight
        _join(B, place, 4 * ((rows - 1) * columns + c) + 3, 4 * c + 1, weight, p)
    rest, found = _eliminate(B, m, ready, variable, place, value, one, p, q)
    for i in range(m):
        variable[i] = variable[kept + i]
        place[variable[i]] = i
    return _ZERO if rest > 0 else found


@kernel(called_by="kernels")
def _divide(numerators, denominators, ratios, value, one, square, p, q):
    """Ratios of residues; returns `value` times the product of the denominators."""
    rows, columns = numerators.shape
    for r in range(rows):
        for c in range(columns):
            below = _reduce(np.uint64(denominators[r, c]) * square, p, q)
            value = _reduce(value * below, p, q)
            inverse = _power(below, p - np.uint64(2), one, p, q)
            above = _reduce(np.uint64(numerators[r, c]) * square, p, q)
            ratios[r, c] = np.uint32(_reduce(above * inverse, p, q))
    return value


@kernel(called_by="python")
def even_subgraph_sums(
    right, down, not_right, not_down, joined_right, joined_down, primes, A, B, ready, variable, place, weights, out
):
    """``sum over even subgraphs of prod_(bonds in it) x_e prod_(other bonds) y_e``, for each prime and its residues.

    ``right[s, r, c]`` is ``x`` of the bond to the right of site ``(r, c)`` modulo ``primes[s]``, and ``not_right`` its
    ``y``, which must not be zero. On a torus the sum is ``(-P_++ + P_+- + P_-+ + P_--) / 2`` in Pfaffians, where the
    signs are those of the bonds across the two seams (Kasteleyn 1961). Returns whether the fronts did fit.
    """
    for s in range(primes.size):
        p = np.uint64(primes[s])
        q = p  # Newton's iteration for 1 / p modulo 2^32
        for _ in range(5):
            q = (q * (np.uint64(2) - p * q)) & _LOW
        q = (np.uint64(0) - q) & _LOW
        one = (_LOW + _ONE) % p
        square = one * one % p
        scale = _divide(right[s], not_right[s], weights[0], one, one, square, p, q)
        scale = _divide(down[s], not_down[s], weights[1], scale, one, square, p, q)
        total = _ZERO
        for turn in range(2 if joined_right and joined_down else 1):
            # with one seam the graph is planar, and the sign of its bonds is -1
            sign = 0 if not joined_right else (-1 if turn == 0 else 1)
            m, value = _assemble(weights[0], weights[1], sign, joined_down, A, ready, variable, place, one, p, q)
            if m < 0:
                return False
            if not joined_down:
                total = _ZERO if m > 0 else value
                continue
            for seam in (-1, 1):
                if seam == 1 and sign == 0:
                    continue
                found = _close(A, B, m, weights[1], seam, ready, variable, place, value, one, p, q)
                if seam == 1 and sign == 1 and found:
                    found = p - found
                total += found
                if total >= p:
                    total -= p
        if joined_right and joined_down:  # one half of the four
            total = total >> _ONE if total & _ONE == _ZERO else (total + p) >> _ONE
        out[s] = _reduce(_reduce(total * scale, p, q), p, q)
    return True


@kernel(called_by="python")
def interpolate(points, values, p, coefficients, master):
    """Coefficients modulo `p` of the polynomial of degree below ``points.size`` with these values (Lagrange)."""
    n = points.size
    master[:] = 0
    master[0] = 1
    for i in range(n):  # prod (x - x_i)
        for k in range(i + 1, 0, -1):
            master[k] = (master[k - 1] + (p - points[i]) * master[k]) % p
        master[0] = (p - points[i]) * master[0] % p
    coefficients[:] = 0
    for i in range(n):
        carry, below = 0, 0  # the quotient by x - x_i from above, and its value at x_i
        for k in range(n, 0, -1):
            carry = (master[k] + carry * points[i]) % p
            below = (below * points[i] + carry) % p
        factor, base, exponent = values[i], below, p - 2
        while exponent > 0:
            if exponent & 1:
                factor = factor * base % p
            base = base * base % p
            exponent >>= 1
        carry = 0
        for k in range(n, 0, -1):
            carry = (master[k] + carry * points[i]) % p
            coefficients[k - 1] = (coefficients[k - 1] + factor * carry) % p
