"""The entropies by their definitions alone, in so many digits that cancellation does not matter."""

from decimal import Decimal, getcontext

getcontext().prec = 150

ONE = Decimal(1)


def exact(x):
    """The decimal that a double stands for."""
    return Decimal(float(x))


def power(x, p):
    return ((Decimal(p) * x.ln()).exp()) if x > 0 else Decimal(0)


def psi(alpha, x):
    a = exact(alpha)
    if a == 1:
        return (x * x.ln() if x > 0 else Decimal(0)) - x + 1
    if a == 0:
        return x - 1 - x.ln()
    return (power(abs(x), a) - a * (x - 1) - 1) / (a * (a - 1))


def slope(alpha, x):
    a = exact(alpha)
    if a == 1:
        return x.ln()
    sign = 1 if x > 0 else -1
    return (sign * power(abs(x), a - 1) - 1) / (a - 1)


def inverse_slope(alpha, u):
    a = exact(alpha)
    if a == 1:
        return u.exp()
    w = 1 + (a - 1) * u
    return (1 if w > 0 else -1) * power(abs(w), ONE / (a - 1))


def divergence(alpha, x, y):
    return psi(alpha, x) - psi(alpha, y) - slope(alpha, y) * (x - y)


def conjugate(alpha, u):
    x = inverse_slope(alpha, u)
    return u * x - psi(alpha, x)


def asinh(x):
    return (x + (x * x + 1).sqrt()).ln() if x >= 0 else -asinh(-x)


def hypentropy(beta, x):
    return x * asinh(x / beta) - (x * x + beta * beta).sqrt() + beta


def hypentropy_divergence(beta, x, y):
    return hypentropy(beta, x) - hypentropy(beta, y) - asinh(y / beta) * (x - y)


def hypentropy_conjugate(beta, u):
    return beta * ((u.exp() + (-u).exp()) / 2 - 1)
