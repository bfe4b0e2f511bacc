"""Families at a million points against scipy.stats and tensorflow-probability on JAX.

The peer on JAX gets its best settings: compiled, arrays already on the device, float64; ours is called in the same
way (JAX arrays in, JAX arrays out). Against scipy.stats we are called with NumPy, as its users would, checks and
conversions included.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize, stats

from benchmarks.timing import Row, race, seconds
from cumulant import families as fam

N = 1_000_000


def run(n: int = N) -> list[Row]:
    rng = np.random.default_rng(0)
    print(f"families at {n} points: ours, theirs, ratio theirs / ours", flush=True)
    rows = against_scipy(rng, n)
    rows += estimation(rng, n)
    inversion(rng, n)
    return rows + against_tfp(rng, n)


def parameters(rng, n):
    """A million members of each family, and a million points."""
    a = rng.uniform(0.5, 5.0, size=(n, 2))
    d = 10
    factor = rng.normal(size=(d, d))
    covariance = factor @ factor.T / d + np.eye(d)
    return {
        "shape": a[:, 0],
        "rate": a[:, 1],
        "x": rng.gamma(2.0, 1.0, size=n),
        "concentration": rng.uniform(0.5, 5.0, size=(n, d)),
        "point": rng.dirichlet(np.ones(d), size=n),
        "mean": rng.normal(size=d),
        "covariance": covariance,
        "vector": rng.normal(size=(n, d)),
    }


def against_scipy(rng, n):
    p = parameters(rng, n)
    gamma, dirichlet, normal = fam.Gamma(), fam.Dirichlet(10), fam.MultivariateNormal(10)
    theta = gamma.natural(shape=p["shape"], rate=p["rate"])
    one, several = (
        dirichlet.natural(concentration=p["concentration"][0]),
        normal.natural(mean=p["mean"], covariance=p["covariance"]),
    )

    def same(ours, theirs):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)

    frozen = stats.multivariate_normal(p["mean"], p["covariance"])
    same(gamma.log_prob(p["x"], theta), stats.gamma.logpdf(p["x"], p["shape"], scale=1 / p["rate"]))
    same(dirichlet.log_prob(p["point"], one), stats.dirichlet.logpdf(p["point"].T, p["concentration"][0]))
    same(normal.log_prob(p["vector"], several), frozen.logpdf(p["vector"]))
    return [
        race(
            "Gamma.log_prob, a parameter per point", "scipy.stats.gamma.logpdf",
            lambda: gamma.log_prob(p["x"], theta),
            lambda: stats.gamma.logpdf(p["x"], p["shape"], scale=1 / p["rate"]),
        ),
        race(
            "Dirichlet(10).log_prob, one parameter", "scipy.stats.dirichlet.logpdf",
            lambda: dirichlet.log_prob(p["point"], one),
            lambda: stats.dirichlet.logpdf(p["point"].T, p["concentration"][0]),
        ),
        race(
            "MultivariateNormal(10).log_prob, one parameter", "scipy.stats.multivariate_normal",
            lambda: normal.log_prob(p["vector"], several),
            lambda: frozen.logpdf(p["vector"]),
        ),
    ]  # fmt: skip


def estimation(rng, n):
    x = rng.gamma(2.3, 1.7, size=n)
    y = rng.dirichlet(np.linspace(0.5, 5.0, 10), size=n)
    gamma, dirichlet = fam.Gamma(), fam.Dirichlet(10)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    usual = gamma.usual(gamma.mle(x))
    np.testing.assert_allclose([usual["shape"], 1 / usual["rate"]], [shape, scale], rtol=1e-5)

    with jax.enable_x64(True):

        @jax.jit
        def loss_and_gradient(log_a, data):
            def loss(v):
                a = jnp.exp(v)
                logs = jnp.sum((a - 1) * jnp.log(data), axis=-1)
                return jnp.sum(jax.scipy.special.gammaln(a)) - jax.scipy.special.gammaln(jnp.sum(a)) - jnp.mean(logs)

            return jax.value_and_grad(loss)(log_a)

    def generic():
        with jax.enable_x64(True):
            data = jnp.asarray(y)

            def objective(v):
                value, gradient = loss_and_gradient(jnp.asarray(v), data)
                return float(value), np.asarray(gradient)

            return np.exp(optimize.minimize(objective, np.zeros(10), jac=True, method="L-BFGS-B").x)

    np.testing.assert_allclose(dirichlet.mle(y), generic(), rtol=1e-2)
    return [
        race(
            "Gamma.mle",
            "scipy.stats.gamma.fit",
            lambda: gamma.mle(x),
            lambda: stats.gamma.fit(x, floc=0),
            bar=10.0,
            repeats=5,
        ),
        race("Dirichlet(10).mle", "L-BFGS on the likelihood", lambda: dirichlet.mle(y), generic, bar=10.0, repeats=5),
    ]


def _import_tfp():
    """Its last release asks for a table that newer releases of JAX keep elsewhere; the rest of it works."""
    import jax.interpreters.xla as xla
    from jax._src import core

    if not hasattr(xla, "pytype_aval_mappings"):
        xla.pytype_aval_mappings = core.pytype_aval_mappings
    import tensorflow_probability.substrates.jax as tfp

    return tfp


def against_tfp(rng, n):
    try:
        tfp = _import_tfp()
    except Exception as problem:
        print(
            f"tensorflow-probability on JAX is left out: it cannot be imported ({problem}); "
            "pip install 'cumulant[bench]'"
        )
        return []
    d, p = tfp.distributions, parameters(rng, n)
    with jax.enable_x64(True):
        p = jax.tree.map(jnp.asarray, p)
        gamma, dirichlet, normal = fam.Gamma(), fam.Dirichlet(10), fam.MultivariateNormal(10)
        theta = gamma.natural(shape=p["shape"], rate=p["rate"])
        alpha = p["concentration"]
        several = normal.natural(mean=p["mean"], covariance=p["covariance"])
        factor = jnp.linalg.cholesky(p["covariance"])
        rows = [
            _against(
                "Gamma.log_prob",
                lambda x, t: gamma.log_prob(x, t), (p["x"], theta),
                lambda x, a, b: d.Gamma(a, b).log_prob(x), (p["x"], p["shape"], p["rate"]),
            ),
            _against(
                "Gamma.kl",
                lambda t: gamma.kl(t, t[::-1]), (theta,),
                lambda a, b: d.kl_divergence(d.Gamma(a, b), d.Gamma(a[::-1], b[::-1])), (p["shape"], p["rate"]),
            ),
            _against(
                "Dirichlet(10).log_prob",
                lambda x, t: dirichlet.log_prob(x, t), (p["point"], alpha),
                lambda x, a: d.Dirichlet(a).log_prob(x), (p["point"], alpha),
            ),
            _against(
                "Dirichlet(10).kl",
                lambda t: dirichlet.kl(t, t[::-1]), (alpha,),
                lambda a: d.kl_divergence(d.Dirichlet(a), d.Dirichlet(a[::-1])), (alpha,),
            ),
            _against(
                "MultivariateNormal(10).log_prob, one parameter",
                lambda x, t: normal.log_prob(x, t), (p["vector"], several),
                lambda x, m, c: d.MultivariateNormalTriL(m, c).log_prob(x), (p["vector"], p["mean"], factor),
            ),
        ]  # fmt: skip
        return rows + _many_normals(d, normal, factor, p["vector"])


def _many_normals(d, normal, factor, vector):
    """A parameter per point. Each side gets the matrices in its own form: precision here, Cholesky factor there."""
    scale = 1 + 0.1 * jnp.arange(len(vector))[:, None, None] / len(vector)
    factors, means = scale * factor, 0.1 * vector
    theta = jax.jit(lambda m, f: normal.natural(mean=m, covariance=f @ jnp.swapaxes(f, -1, -2)))(means, factors)
    few = slice(0, 1000)  # the peer's divergence never returns for hundreds of thousands: its LAPACK calls deadlock
    return [
        _against(
            "MultivariateNormal(10).log_prob, a parameter per point",
            lambda x, t: normal.log_prob(x, t), (vector, theta),
            lambda x, m, c: d.MultivariateNormalTriL(m, c).log_prob(x), (vector, means, factors),
        ),
        _against(
            "MultivariateNormal(10).kl, 1000 pairs",
            lambda t: normal.kl(t, t[::-1]), (theta[few],),
            lambda m, c: d.kl_divergence(d.MultivariateNormalTriL(m, c), d.MultivariateNormalTriL(m[::-1], c[::-1])),
            (means[few], factors[few]),
        ),
    ]  # fmt: skip


def _against(name, ours, our_data, theirs, their_data):
    """Both compiled, both on arrays that are already there."""
    ours, theirs = jax.jit(ours), jax.jit(theirs)
    np.testing.assert_allclose(ours(*our_data), theirs(*their_data), rtol=1e-6, atol=1e-6)
    return race(
        name,
        "tensorflow-probability (JAX)",
        lambda: jax.block_until_ready(ours(*our_data)),
        lambda: jax.block_until_ready(theirs(*their_data)),
    )


def inversion(rng, n):
    """The mean map inverted; neither peer has the function, so these rows are for reading."""
    p = parameters(rng, n)
    gamma, dirichlet, normal = fam.Gamma(), fam.Dirichlet(10), fam.MultivariateNormal(10)
    covariance = p["covariance"] * (1 + np.arange(n)[:, None, None] / n)
    for family, theta in [
        (gamma, gamma.natural(shape=p["shape"], rate=p["rate"])),
        (dirichlet, dirichlet.natural(concentration=p["concentration"])),
        (normal, normal.natural(mean=p["vector"], covariance=covariance)),
    ]:
        mu = family.to_mean(theta)
        np.testing.assert_allclose(family.to_natural(mu), theta, rtol=1e-6, atol=1e-9)
        taken = np.median([seconds(lambda f=family, m=mu: f.to_natural(m)) for _ in range(3)])
        print(f"{str(family) + '.to_natural':44s} {'no peer has it':28s} {1e3 * taken:10.2f} ms", flush=True)
