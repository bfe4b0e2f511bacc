"""Exponential families in high precision: `A`, its gradient, the statistic and the base measure, with mpmath.

`log_prob`, `kl`, `entropy` and their sensitivity to relative changes of the arguments are written once below. Matrix
families are those in dimension two. Parameters are lists of floats and exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpmath import mp, mpf

_SPECIAL = (
    "Gamma",
    "InverseGamma",
    "Beta",
    "Dirichlet",
    "VonMises",
    "Wishart",
    "NormalInverse",
    "Binomial",
    "Negative",
)


@dataclass(frozen=True)
class Reference:
    """What defines a family; `expected_log_base` is None where it has no closed form."""

    log_partition: Callable
    mean: Callable
    statistics: Callable
    log_base: Callable
    expected_log_base: Callable | None = None

    def log_prob(self, x: Any, theta: list) -> Any:
        return _dot(theta, self.statistics(x)) + self.log_base(x) - self.log_partition(theta)

    def kl(self, theta: list, other: list) -> Any:
        step = [b - a for a, b in zip(theta, other, strict=True)]
        return self.log_partition(other) - self.log_partition(theta) - _dot(self.mean(theta), step)

    def entropy(self, theta: list) -> Any:
        assert self.expected_log_base is not None
        return self.log_partition(theta) - _dot(theta, self.mean(theta)) - self.expected_log_base(theta)


def digits(family: Any) -> int:
    """Of precision: the sums of elementary families cancel most, special functions take longest."""
    return 80 if any(name in type(family).__name__ for name in _SPECIAL) else 420


def exact(values: Any) -> list:
    """Floats as mpmath numbers."""
    return [mpf(float(value)) for value in values]


def sensitivity(function: Callable, *arguments: list) -> Any:
    """``sum_i |a_i df/da_i|``: what a relative error of one in each number would do, to first order."""
    value, total, h = function(*arguments), mpf(0), mpf(10) ** (-mp.dps // 3)
    for position, argument in enumerate(arguments):
        for i, entry in enumerate(argument):
            moved = [*argument[:i], entry * (1 + h), *argument[i + 1 :]]
            total += abs(function(*arguments[:position], moved, *arguments[position + 1 :]) - value) / h
    return total


def _dot(a, b):
    return mp.fsum(x * y for x, y in zip(a, b, strict=True))


def _log_2pi():
    return mp.log(2 * mp.pi)


# Two by two matrices as (first, off-diagonal, last); a half-vectorised one has sqrt 2 off the diagonal.


def _unvech(v):
    return v[0], v[1] / mp.sqrt(2), v[2]


def _vech(m):
    return [m[0], m[1] * mp.sqrt(2), m[2]]


def _det(m):
    return m[0] * m[2] - m[1] ** 2


def _inverse(m):
    return m[2] / _det(m), -m[1] / _det(m), m[0] / _det(m)


def _scaled(c, m):
    return tuple(c * entry for entry in m)


def _times(m, v):
    return [m[0] * v[0] + m[1] * v[1], m[1] * v[0] + m[2] * v[1]]


def _outer(v):
    return v[0] ** 2, v[0] * v[1], v[1] ** 2


def _sum(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _log_gamma_2(a):
    return mp.log(mp.pi) / 2 + mp.loggamma(a) + mp.loggamma(a - mpf(1) / 2)


def _digamma_2(a):
    return mp.digamma(a) + mp.digamma(a - mpf(1) / 2)


def _matrix(x):
    return x[0], (x[1] + x[2]) / 2, x[3]


# The families ---------------------------------------------------------------------------------------------------------


def _gamma_type(alpha, statistic, log_base, expected, offset=None):
    alpha = mpf(alpha)
    shift = offset if offset is not None else (lambda: mpf(0))

    def log_statistic(t):
        return mp.digamma(alpha) - mp.log(-t[0])

    return Reference(
        lambda t: -alpha * mp.log(-t[0]) + shift(),
        lambda t: [-alpha / t[0]],
        lambda x: [statistic(x[0])],
        lambda x: log_base(x[0]),
        lambda t: expected(log_statistic(t)),
    )


def _successes(n):
    return Reference(
        lambda t: n * mp.log1p(mp.exp(t[0])),
        lambda t: [n / (1 + mp.exp(-t[0]))],
        lambda x: [x[0]],
        lambda x: mp.loggamma(n + 1) - mp.loggamma(x[0] + 1) - mp.loggamma(n - x[0] + 1),
        (lambda t: mpf(0)) if n == 1 else None,
    )


def _waiting(r):
    r = mpf(r)
    return Reference(
        lambda t: -r * mp.log(-mp.expm1(t[0])),
        lambda t: [r / mp.expm1(-t[0])],
        lambda x: [x[0]],
        lambda x: mp.loggamma(x[0] + r) - mp.loggamma(x[0] + 1) - mp.loggamma(r),
        (lambda t: mpf(0)) if r == 1 else None,
    )


def _classes(n, categories):
    def total(t):
        return 1 + mp.fsum(mp.exp(each) for each in t)

    def counts(x):
        return x if n > 1 else [mpf(int(x[0]) == k) for k in range(categories)]

    return Reference(
        lambda t: n * mp.log(total(t)),
        lambda t: [n * mp.exp(each) / total(t) for each in t],
        lambda x: counts(x)[:-1],
        lambda x: mp.loggamma(n + 1) - mp.fsum(mp.loggamma(each + 1) for each in counts(x)),
        (lambda t: mpf(0)) if n == 1 else None,
    )


def _gamma(sign):
    return Reference(
        lambda t: mp.loggamma(t[0]) - t[0] * mp.log(-t[1]),
        lambda t: [mp.digamma(t[0]) - mp.log(-t[1]), -t[0] / t[1]],
        lambda x: [sign * mp.log(x[0]), x[0] ** sign],
        lambda x: -mp.log(x[0]),
        lambda t: -sign * (mp.digamma(t[0]) - mp.log(-t[1])),
    )


def _log_simplex(logs):
    def mean(t):
        return [mp.digamma(a) - mp.digamma(mp.fsum(t)) for a in t]

    return Reference(
        lambda t: mp.fsum(mp.loggamma(a) for a in t) - mp.loggamma(mp.fsum(t)),
        mean,
        logs,
        lambda x: -mp.fsum(logs(x)),
        lambda t: -mp.fsum(mean(t)),
    )


def _normal(statistic, log_jacobian, expected_log_jacobian):
    return Reference(
        lambda t: -(t[0] ** 2) / (4 * t[1]) - mp.log(-2 * t[1]) / 2,
        lambda t: [-t[0] / (2 * t[1]), t[0] ** 2 / (4 * t[1] ** 2) - 1 / (2 * t[1])],
        lambda x: [statistic(x[0]), statistic(x[0]) ** 2],
        lambda x: -_log_2pi() / 2 - log_jacobian(x[0]),
        lambda t: -_log_2pi() / 2 - expected_log_jacobian(t),
    )


def _normal_known_variance(v):
    v = mpf(v)
    return Reference(
        lambda t: v * t[0] ** 2 / 2,
        lambda t: [v * t[0]],
        lambda x: [x[0]],
        lambda x: -(x[0] ** 2 / v + _log_2pi() + mp.log(v)) / 2,
        lambda t: -((v * t[0]) ** 2 / v + 1 + _log_2pi() + mp.log(v)) / 2,
    )


def _inverse_gaussian():
    def mean_of(t):
        return mp.sqrt(t[1] / t[0])

    def expected_log_base(t):
        z = -4 * t[1] / mean_of(t)
        scaled = (
            mp.exp(z) * mp.e1(z) if z < 1000 else mp.fsum((-1) ** k * mp.factorial(k) / z**k for k in range(60)) / z
        )
        return -_log_2pi() / 2 - mpf(3) / 2 * (mp.log(mean_of(t)) - scaled)

    return Reference(
        lambda t: -2 * mp.sqrt(t[0] * t[1]) - mp.log(-2 * t[1]) / 2,
        lambda t: [mean_of(t), 1 / mean_of(t) - 1 / (2 * t[1])],
        lambda x: [x[0], 1 / x[0]],
        lambda x: -_log_2pi() / 2 - 3 * mp.log(x[0]) / 2,
        expected_log_base,
    )


def _poisson():
    return Reference(
        lambda t: mp.exp(t[0]), lambda t: [mp.exp(t[0])], lambda x: [x[0]], lambda x: -mp.loggamma(x[0] + 1)
    )


def _directional(log_a, ratio, statistic, log_area):
    def length(t):
        return mp.sqrt(mp.fsum(each**2 for each in t))

    return Reference(
        lambda t: log_a(length(t)),
        lambda t: [each / length(t) * ratio(length(t)) for each in t],
        statistic,
        lambda x: -log_area(),
        lambda t: -log_area(),
    )


def _multivariate_normal():
    def parts(t):
        precision = _scaled(-2, _unvech(t[2:]))
        covariance = _inverse(precision)
        return t[:2], precision, covariance, _times(covariance, t[:2])

    def log_partition(t):
        shift, precision, _, mean = parts(t)
        return (_dot(shift, mean) - mp.log(_det(precision))) / 2

    def means(t):
        _, _, covariance, mean = parts(t)
        return [*mean, *_vech(_sum(covariance, _outer(mean)))]

    return Reference(
        log_partition, means, lambda x: [*x, *_vech(_outer(x))], lambda x: -_log_2pi(), lambda t: -_log_2pi()
    )


def _independent(t, shared):
    variances = [-1 / (2 * (t[2] if shared else t[2 + i])) for i in (0, 1)]
    return [t[i] * variances[i] for i in (0, 1)], variances


def _normals(shared):
    def log_partition(t):
        mean, variances = _independent(t, shared)
        return mp.fsum(m * m / v + mp.log(v) for m, v in zip(mean, variances, strict=True)) / 2

    def squares(values):
        return [mp.fsum(values)] if shared else values

    def means(t):
        mean, variances = _independent(t, shared)
        return [*mean, *squares([m * m + v for m, v in zip(mean, variances, strict=True)])]

    return Reference(
        log_partition, means, lambda x: [*x, *squares([y * y for y in x])], lambda x: -_log_2pi(), lambda t: -_log_2pi()
    )


def _known_covariance(covariance):
    covariance = exact((covariance[0][0], covariance[0][1], covariance[1][1]))

    def log_partition(t):
        return _dot(t, _times(covariance, t)) / 2

    def log_base(x):
        return -(_dot(x, _times(_inverse(covariance), x)) + mp.log(_det(covariance))) / 2 - _log_2pi()

    return Reference(
        log_partition,
        lambda t: _times(covariance, t),
        lambda x: x,
        log_base,
        lambda t: -log_partition(t) - 1 - mp.log(_det(covariance)) / 2 - _log_2pi(),
    )


def _known_mean(mean):
    mean = exact(mean)
    return Reference(
        lambda t: -mp.log(_det(_scaled(-2, _unvech(t)))) / 2,
        lambda t: _vech(_inverse(_scaled(-2, _unvech(t)))),
        lambda x: _vech(_outer([a - b for a, b in zip(x, mean, strict=True)])),
        lambda x: -_log_2pi(),
        lambda t: -_log_2pi(),
    )


def _wishart(sign):
    def log_det(t):
        return mp.log(_det(_scaled(-1, _unvech(t[1:]))))

    def means(t):
        inverse = _inverse(_scaled(-1, _unvech(t[1:])))
        return [_digamma_2(t[0]) - log_det(t), *_vech(_scaled(t[0], inverse))]

    def statistics(x):
        matrix = _matrix(x)
        return [sign * mp.log(_det(matrix)), *_vech(matrix if sign > 0 else _inverse(matrix))]

    return Reference(
        lambda t: _log_gamma_2(t[0]) - t[0] * log_det(t),
        means,
        statistics,
        lambda x: -mpf(3) / 2 * mp.log(_det(_matrix(x))),
        lambda t: -sign * mpf(3) / 2 * (_digamma_2(t[0]) - log_det(t)),
    )


def _normal_inverse_gamma():
    def parts(t):
        k = -2 * t[3]
        mean = t[1] / k
        return t[0], -t[2] - k * mean**2 / 2, mean, k

    def means(t):
        a, b, m, k = parts(t)
        return [mp.digamma(a) - mp.log(b), m * a / b, a / b, 1 / k + m**2 * a / b]

    def log_partition(t):
        a, b, _, k = parts(t)
        return mp.loggamma(a) - a * mp.log(b) - mp.log(k) / 2

    return Reference(
        log_partition,
        means,
        lambda x: [-mp.log(x[1]), x[0] / x[1], 1 / x[1], x[0] ** 2 / x[1]],
        lambda x: -_log_2pi() / 2 - 3 * mp.log(x[1]) / 2,
        lambda t: -_log_2pi() / 2 + mpf(3) / 2 * means(t)[0],
    )


def _normal_inverse_wishart():
    def parts(t):
        k = -2 * t[6]
        mean = [each / k for each in t[1:3]]
        matrix = _sum(_scaled(-1, _unvech(t[3:6])), _scaled(-k / 2, _outer(mean)))
        return t[0], mean, matrix, k

    def log_partition(t):
        half, _, matrix, k = parts(t)
        return _log_gamma_2(half) - half * mp.log(_det(matrix)) - mp.log(k)

    def means(t):
        half, mean, matrix, k = parts(t)
        weight = _scaled(half, _inverse(matrix))
        pull = _times(weight, mean)
        return [_digamma_2(half) - mp.log(_det(matrix)), *pull, *_vech(weight), 2 / k + _dot(pull, mean)]

    def statistics(x):
        covariance = _matrix(x[2:])
        pull = _times(_inverse(covariance), x[:2])
        return [-mp.log(_det(covariance)), *pull, *_vech(_inverse(covariance)), _dot(pull, x[:2])]

    return Reference(
        log_partition,
        means,
        statistics,
        lambda x: -2 * mp.log(_det(_matrix(x[2:]))) - _log_2pi(),
        lambda t: 2 * means(t)[0] - _log_2pi(),
    )


def reference(family: Any) -> Reference:
    """The reference of one of the families of the library."""
    half_log_2pi = _log_2pi() / 2
    match type(family).__name__:
        case "Bernoulli":
            return _successes(1)
        case "Binomial":
            return _successes(family.trials)
        case "Geometric":
            return _waiting(1)
        case "NegativeBinomial":
            return _waiting(family.successes)
        case "Categorical":
            return _classes(1, family.categories)
        case "Multinomial":
            return _classes(family.trials, family.categories)
        case "Poisson":
            return _poisson()
        case "Exponential":
            return _gamma_type(1, lambda x: x, lambda x: mpf(0), lambda log_t: mpf(0))
        case "GammaKnownShape":
            a = mpf(family.shape)
            return _gamma_type(
                a,
                lambda x: x,
                lambda x: (a - 1) * mp.log(x) - mp.loggamma(a),
                lambda log_t: (a - 1) * log_t - mp.loggamma(a),
            )
        case "NormalKnownMean":
            m = mpf(family.mean)
            return _gamma_type(
                mpf(1) / 2,
                lambda x: (x - m) ** 2,
                lambda x: -half_log_2pi,
                lambda log_t: -half_log_2pi,
                lambda: -mp.log(2) / 2,
            )
        case "LaplaceKnownCentre":
            m = mpf(family.centre)
            return _gamma_type(1, lambda x: abs(x - m), lambda x: -mp.log(2), lambda log_t: -mp.log(2))
        case "ParetoKnownMinimum":
            m = mpf(family.minimum)
            return Reference(
                lambda t: -mp.log(-t[0]),
                lambda t: [-1 / t[0]],
                lambda x: [mp.log(x[0] / m)],
                lambda x: -mp.log(x[0]),
                lambda t: -mp.log(m) + 1 / t[0],
            )
        case "WeibullKnownShape":
            k = mpf(family.shape)
            return _gamma_type(
                1,
                lambda x: x**k,
                lambda x: mp.log(k) + (k - 1) * mp.log(x),
                lambda log_t: mp.log(k) + (k - 1) / k * log_t,
            )
        case "Rayleigh":
            return _gamma_type(1, lambda x: x**2, lambda x: mp.log(2 * x), lambda log_t: mp.log(2) + log_t / 2)
        case "Gamma":
            return _gamma(1)
        case "InverseGamma":
            return _gamma(-1)
        case "InverseGaussian":
            return _inverse_gaussian()
        case "Beta":
            return _log_simplex(lambda x: [mp.log(x[0]), mp.log1p(-x[0])])
        case "Dirichlet":
            return _log_simplex(lambda x: [mp.log(each) for each in x])
        case "Normal":
            return _normal(lambda x: x, lambda x: mpf(0), lambda t: mpf(0))
        case "LogNormal":
            return _normal(mp.log, mp.log, lambda t: -t[0] / (2 * t[1]))
        case "NormalKnownVariance":
            return _normal_known_variance(family.variance)
        case "VonMises":
            return _directional(
                lambda k: mp.log(mp.besseli(0, k)),
                lambda k: mp.besseli(1, k) / mp.besseli(0, k),
                lambda x: [mp.cos(x[0]), mp.sin(x[0])],
                lambda: mp.log(2 * mp.pi),
            )
        case "VonMisesFisher":
            return _directional(
                lambda k: mp.log(mp.sinh(k) / k),
                lambda k: mp.coth(k) - 1 / k,
                lambda x: x,
                lambda: mp.log(4 * mp.pi),
            )
        case "MultivariateNormal":
            return _multivariate_normal()
        case "MultivariateNormalDiagonal":
            return _normals(shared=False)
        case "MultivariateNormalIsotropic":
            return _normals(shared=True)
        case "MultivariateNormalKnownCovariance":
            return _known_covariance(family.covariance)
        case "MultivariateNormalKnownMean":
            return _known_mean(family.mean)
        case "Wishart":
            return _wishart(1)
        case "InverseWishart":
            return _wishart(-1)
        case "NormalInverseGamma":
            return _normal_inverse_gamma()
        case "NormalInverseWishart":
            return _normal_inverse_wishart()
    raise NotImplementedError(f"no reference for {family}")
