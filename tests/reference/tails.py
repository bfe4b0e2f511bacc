"""Incomplete gamma and beta functions, normal and inverse Gaussian tails, by plain series in many digits (mpmath)."""

import mpmath as mp


def log_gamma_tails(a, x, digits=60):
    """``log P(a, x)`` and ``log Q(a, x)``: ``P = x^a exp(-x) / Gamma(a + 1) sum_n x^n / ((a + 1) ... (a + n))``."""
    return _both(lambda: _gamma_series(mp.mpf(a), mp.mpf(x)), digits)


def _gamma_series(a, x):
    term, total, n = mp.mpf(1), mp.mpf(1), 0
    while term > mp.eps * total:
        n += 1
        term *= x / (a + n)
        total += term
    return mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1)) * total


def log_beta_tails(a, b, x, digits=60):
    """``log I_x(a, b)`` and ``log(1 - I_x(a, b))``: ``x^a (1 - x)^b / (a B(a, b)) sum_n (a + b)_n / (a + 1)_n x^n``."""
    if x > 0.5:  # the series of the other tail needs fewer terms
        return _both(lambda: _beta_series(mp.mpf(b), mp.mpf(a), 1 - mp.mpf(x)), digits)[::-1]
    return _both(lambda: _beta_series(mp.mpf(a), mp.mpf(b), mp.mpf(x)), digits)


def _beta_series(a, b, x):
    term, total, n = mp.mpf(1), mp.mpf(1), 0
    while term > mp.eps * total * (1 - x):
        term *= (a + b + n) / (a + 1 + n) * x
        n += 1
        total += term
    front = a * mp.log(x) + b * mp.log(1 - x) - mp.log(a) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    return mp.exp(front) * total


def log_inverse_gaussian_tails(mean, shape, x, digits=60):
    """By the closed form, in enough digits."""

    def lower():
        m, s, t = mp.mpf(mean), mp.mpf(shape), mp.mpf(x)
        root = mp.sqrt(s / t)
        first = mp.erfc(-root * (t / m - 1) / mp.sqrt(2)) / 2
        return first + mp.exp(2 * s / m) * mp.erfc(root * (t / m + 1) / mp.sqrt(2)) / 2

    return _both(lower, digits)


def log_von_mises_tails(angle, kappa, digits=40):
    """By numerical integration."""
    with mp.workdps(digits):
        k, t = mp.mpf(kappa), mp.mpf(angle)
        total = mp.quad(lambda u: mp.exp(k * (mp.cos(u) - 1)), mp.linspace(-mp.pi, mp.pi, 41))
        lower = mp.quad(lambda u: mp.exp(k * (mp.cos(u) - 1)), mp.linspace(-mp.pi, t, 41))
        upper = mp.quad(lambda u: mp.exp(k * (mp.cos(u) - 1)), mp.linspace(t, mp.pi, 41))
        return float(mp.log(lower / total)), float(mp.log(upper / total))


def _both(lower, digits):
    """The logarithms of a probability and of its complement, in more digits until the complement has some."""
    while True:
        with mp.workdps(digits):
            p = lower()
            if 1 - p > mp.mpf(10) ** (30 - digits):
                return float(mp.log(p)), float(mp.log1p(-p))
        digits *= 2
