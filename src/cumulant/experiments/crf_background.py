"""Chapter 2: estimation, gradient descent and its stochastic kin, duality, exponential families, graphs, causes."""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from cumulant import families, graphical
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.families.risk.concordance import check_self_concordance
from cumulant.geometry.conjugate_pairs import Norm, SquaredError
from cumulant.geometry.duality import fenchel_dual

TITLE = "Estimators, rates, dualities, graphs and effects of causes of the chapter on background"
SOURCE = "Le Priol (2021), thesis, chapter 2"
# Charig et al. (1986): treatment (A, B), size of the stone (small, large), healed (yes, no).
KIDNEY = np.array([[[81.0, 6], [192, 71]], [[234, 36], [55, 25]]])
NAMES = ("treatment", "size", "healed")
CONFOUNDED = [("size", "treatment"), ("size", "healed"), ("treatment", "healed")]
MEDIATED = [("treatment", "size"), ("size", "healed"), ("treatment", "healed")]


@experiment
def run(quick: bool, rng: int) -> Report:
    """Each statement on small random cases, against a closed form or an independent computation."""
    n = 60 if quick else 300
    streams = [np.random.default_rng(seed) for seed in np.random.SeedSequence(rng).spawn(8)]
    return Report(
        [
            _frequencies(streams[0], n), _posterior(streams[1]), _descent(streams[2]), _concordance(streams[3], n),
            _stochastic(streams[4], n), *_variance_reduced(streams[5], n), _fenchel(streams[6], n), _family(), _glm(),
            *_factorisation(streams[7]), _kidney(), _reversed(n),
        ]
    )  # fmt: skip


def _frequencies(rng, n) -> Claim:
    x = rng.integers(4, size=200)
    counts = np.bincount(x, minlength=4)
    best = xlogy(counts, counts / counts.sum()).sum()
    others = xlogy(counts, rng.dirichlet(counts + 1.0, size=20 * n)).sum(axis=1)
    return Claim(
        "the maximum-likelihood estimate of a categorical variable is its empirical frequencies",
        "(2.10)",
        f"log-likelihood {best:.3f}; of {len(others)} other points near it at most {others.max():.3f}",
        verdict(best > others.max()),
        item="(2.7), (2.10)",
    )


def _posterior(rng) -> Claim:
    x, prior = rng.normal(size=(30, 3)), 4.0
    y = x @ [1.0, -2.0, 0.5] + rng.normal(size=30)

    def negative_log_posterior(theta):  # normal noise of variance 1, normal prior of precision `prior`
        likelihood = 15 * np.log(2 * np.pi) + 0.5 * np.sum((y - x @ theta) ** 2)
        return likelihood + 1.5 * np.log(2 * np.pi / prior) + 0.5 * prior * theta @ theta

    found = minimize(negative_log_posterior, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    ridge = np.linalg.solve(x.T @ x + prior * np.eye(3), x.T @ y)
    apart = float(np.abs(found - ridge).max())
    return Claim(
        "the most probable parameter a posteriori is a regularised empirical risk minimiser",
        "-log likelihood - log prior",
        f"normal prior: off ridge regression by {apart:.1e}",
        verdict(apart < 1e-6),
        item="(2.13), (2.14)",
    )


def _descent(rng) -> Claim:
    worst, convex = 0.0, 0.0
    for _ in range(20):
        spectrum = np.sort(10 ** rng.uniform(-2, 1, size=5))
        mu, L = spectrum[0], spectrum[-1]
        start = rng.normal(size=5)
        fast, slow = start.copy(), start.copy()
        for t in range(1, 101):
            fast, slow = fast - 2 / (mu + L) * spectrum * fast, slow - spectrum * slow / L
            contraction = ((L - mu) / (L + mu)) ** t
            worst = max(worst, np.linalg.norm(fast) / (contraction * np.linalg.norm(start)))
            convex = max(convex, np.sum(spectrum * slow**2) / 2 / (L * start @ start / (2 * t)))
    return Claim(
        "gradient descent: O(1/t) on smooth convex functions, linear with (kappa - 1)/(kappa + 1) on strongly convex",
        "O(1/t), linear",
        f"20 quadratics, 100 steps: at most {worst:.9f} and {convex:.3f} of the bounds",
        verdict(worst <= 1 + 1e-9 and convex <= 1),
        item="(2.16), rates of gradient descent",
    )


def _concordance(rng, n) -> Claim:
    line = check_self_concordance(lambda x: -jnp.log(x[0]), 10 ** rng.uniform(-3, 3, size=(n, 1)), np.ones((n, 1)))
    points, directions, along = np.empty((n, 9)), np.empty((n, 9)), np.empty((n, 9))
    for k in range(n):
        root = rng.normal(size=(3, 3))
        points[k] = along[k] = (root @ root.T + 0.1 * np.eye(3)).ravel()
        direction = rng.normal(size=(3, 3))
        directions[k] = (direction + direction.T).ravel()

    def barrier(x):
        return -jnp.linalg.slogdet(x.reshape(3, 3))[1]

    general, ray = (check_self_concordance(barrier, points, h).ratios for h in (directions, along))
    return Claim(
        "-log and -log det are self-concordant: |D^3 f[u,u,u]| <= 2 (D^2 f[u,u])^(3/2)",
        "(2.17), examples",
        f"ratios: -log {line.ratios.min():.9f} to {line.ratios.max():.9f}; -log det at most {general.max():.6f} in {n} "
        f"directions, along the matrix itself {ray.max():.6f} = 1/sqrt 3",
        verdict(
            np.allclose(line.ratios, 1, atol=1e-6)
            and general.max() <= 1 + 1e-6
            and np.allclose(ray, 3**-0.5, atol=1e-6)
        ),
        item="(2.17)",
    )


def _stochastic(rng, n) -> Claim:
    a = rng.normal(size=(20, 3))
    y = a @ [1.0, -1.0, 2.0] + rng.normal(size=20)
    best = np.linalg.lstsq(a, y, rcond=None)[0]
    hessian, L = a.T @ a / 20, float(np.max(np.sum(a**2, axis=1)))
    mu, noise = (
        float(np.linalg.eigvalsh(hessian)[0]),
        float(np.mean(np.sum((a * (a @ best - y)[:, None]) ** 2, axis=1))),
    )
    worst = {}
    for share in (0.5, 0.25, 0.1):
        x, steps = np.zeros((n, 3)), 400
        for _ in range(steps):
            i = rng.integers(20, size=n)
            x -= share / L * a[i] * (np.sum(a[i] * x, axis=1) - y[i])[:, None]
        excess = 0.5 * np.einsum("ij,jk,ik->i", x - best, hessian, x - best)
        bound = L / 2 * (1 - share / L * mu) ** steps * best @ best + share / L * noise * L / mu
        worst[f"{share:g}/L"] = float((excess.mean() + 3 * excess.std(ddof=1) / np.sqrt(n)) / bound)
    return Claim(
        "stochastic gradient descent with a constant step on convex terms comes within a ball proportional to the step",
        "(2.21)",
        f"mean of {n} runs plus three standard errors, over the bound: {listed(worst, '.4f')}",
        verdict(max(worst.values()) <= 1, loose=max(worst.values()) < 0.5),
        item="(2.21), convex terms",
    )


def _variance_reduced(rng, n) -> list[Claim]:
    a = rng.normal(size=(30, 3))
    y, l2 = a @ [1.0, -1.0, 2.0] + rng.normal(size=30), 0.1
    hessian = a.T @ a / 30 + l2 * np.eye(3)
    best = np.linalg.solve(hessian, a.T @ y / 30)

    def slope(x, i):
        return a[i] * (a[i] @ x - y[i]) + l2 * x

    x, past = rng.normal(size=(2, 3))
    table = np.array([slope(past, i) for i in range(30)])
    now = np.array([slope(x, i) for i in range(30)])
    full = now.mean(axis=0)
    off = {
        "SAG": np.linalg.norm(np.mean(table.mean(axis=0) + (now - table) / 30, axis=0) - full),
        "SAGA": np.linalg.norm(np.mean(now - table + table.mean(axis=0), axis=0) - full),
        "SVRG": np.linalg.norm(np.mean(now - table + table.mean(axis=0), axis=0) - full),
    }
    step, epochs = 1 / (3 * (np.max(np.sum(a**2, axis=1)) + l2)), 60
    last = {}
    for name in ("SAG", "SAGA", "SVRG", "SGD"):
        x, table = np.zeros(3), np.array([slope(np.zeros(3), i) for i in range(30)])
        for t in range(30 * epochs):
            i = int(rng.integers(30))
            g = slope(x, i)
            mean = table.mean(axis=0)
            if name == "SVRG" and t % 60 == 0:
                table = np.array([slope(x, j) for j in range(30)])
                mean = table.mean(axis=0)
            x = x - step * {"SAG": mean + (g - table[i]) / 30, "SGD": g}.get(name, g - table[i] + mean)
            if name in ("SAG", "SAGA"):
                table[i] = g
        last[name] = float(np.linalg.norm(x - best))
    return [
        Claim(
            "SAG steps along the mean of past gradients, which is biased; SAGA and SVRG along unbiased ones",
            "SAGA: an unbiased gradient estimate",
            "mean direction over the draw, off the gradient by " + listed(off, ".1e"),
            verdict(off["SAG"] > 1e-2 and max(off["SAGA"], off["SVRG"]) < 1e-12),
            item="section 2.2.2, SAG, SAGA, SVRG",
        ),
        Claim(
            "SAG, SAGA and SVRG converge to the optimum with a constant step; stochastic gradient descent does not",
            "linear at O(1) a step",
            f"distance after {epochs} passes of steps 1/(3L): {listed(last, '.0e')}",
            verdict(max(last[name] for name in ("SAG", "SAGA", "SVRG")) < 1e-6 < 1e-3 < last["SGD"]),
            item="section 2.2.2, rates",
        ),
    ]


def _fenchel(rng, n) -> Claim:
    least, closed, twice = np.inf, 0.0, 0.0
    for _ in range(n):
        A, b = rng.normal(size=(4, 3)), rng.normal(size=4)
        f, g = Norm(1, weight=0.5), SquaredError(b)
        problem = fenchel_dual(f, g, A)
        y = rng.normal(size=4)
        y *= min(1.0, 0.5 / np.abs(A.T @ y).max())
        least = min(least, float(problem.primal(rng.normal(size=3)) - problem.dual(y)))
        u = rng.normal(size=4)  # g** at u, from its conjugate: sup_v <u, v> - g*(v), attained at v = grad g(u) = u - b
        twice = max(twice, abs(float(u @ (u - b) - g.conjugate(u - b)) - float(g.value(u))))
        x = np.zeros(3)
        for _ in range(2000):  # proximal gradient
            x = x - A.T @ (A @ x - b) / np.linalg.norm(A, 2) ** 2
            x = np.sign(x) * np.maximum(np.abs(x) - 0.5 / np.linalg.norm(A, 2) ** 2, 0.0)
        y = A @ x - b
        y *= min(1.0, 0.5 / np.abs(A.T @ y).max())
        closed = max(closed, float(problem.primal(x) - problem.dual(y)))
    return Claim(
        "the Fenchel dual is below the primal, equal to it at the best points of both, and f** = f",
        "(2.24), (2.27), (2.28)",
        f"{n} lassos: least gap of random feasible points {least:.3f}, gap at the optimum at most {closed:.1e}; f** "
        f"off by {twice:.1e}",
        verdict(least >= 0 and abs(closed) < 1e-7 and twice < 1e-12),
        item="(2.24), (2.27), (2.28)",
    )


def _family() -> Claim:
    off, bent = 0.0, np.inf
    for family, theta in (
        (families.Poisson(), [0.7]),
        (families.Bernoulli(), [-1.2]),
        (families.Normal(), [0.4, -0.8]),
    ):
        theta = np.array(theta)
        for j in range(len(theta)):
            h = 1e-5 * np.eye(len(theta))[j]
            difference = float(family.log_partition(theta + h) - family.log_partition(theta - h)) / 2e-5
            off = max(off, abs(difference - float(family.to_mean(theta)[j])))
        bent = min(bent, float(np.linalg.eigvalsh(np.atleast_2d(family.fisher(theta)))[0]))
        x = np.asarray(family.sample(theta, 50, rng=0), dtype=float)
        mean = np.mean(np.asarray(family.statistics(x)), axis=0)
        loss = float(np.mean(np.asarray(-family.log_prob(x, theta) + family.log_base(x))))
        off = max(off, abs(loss - float(family.log_partition(theta) - mean @ theta)))
    return Claim(
        "the negative log-likelihood is A(theta) - <E T, theta>, A is convex and its gradient the mean of T",
        "(2.30), (2.31)",
        f"largest deviation {off:.1e} (Poisson, Bernoulli, normal); least eigenvalue of the Hessian of A {bent:.3f}",
        verdict(off < 1e-8 and bent > 0),
        item="(2.30), (2.31)",
    )


def _glm() -> Claim:
    """Two classes and counts: ``y theta x - A(theta x)``, with the base measure of `y`."""
    x, theta = np.array([0.5, -1.0, 2.0]), np.array([0.3, 0.2, -0.4])
    eta = float(theta @ x)
    logistic = [y * eta - np.logaddexp(0.0, eta) for y in (0, 1)]
    off = max(abs(logistic[1] - np.log(expit(eta))), abs(logistic[0] - np.log(expit(-eta))))
    total = sum(np.exp(y * eta - np.exp(eta)) for y in range(60))
    base = np.cumprod([1.0, *1 / np.arange(1.0, 60)])
    weighed = sum(b * np.exp(y * eta - np.exp(eta)) for y, b in enumerate(base))
    return Claim(
        "a generalised linear model has the density exp(y theta x - A(theta x)) with respect to the base measure of y",
        "exp(y theta x - A(theta x))",
        f"logistic regression to {off:.0e}; counts sum to {total:.3f} without, to {weighed:.9f} with 1/y!",
        verdict(off < 1e-15 and abs(weighed - 1) < 1e-12 < abs(total - 1)),
        item="(2.32)",
    )


def _factorisation(rng) -> list[Claim]:
    cycle, chord = [(0, 1), (1, 2), (2, 3), (3, 0)], [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    holds, fails = True, True
    for _ in range(10):
        tables = {edge: rng.normal(size=(2, 2)) for edge in cycle}
        score = sum(
            table.reshape([2 if v in edge else 1 for v in range(4)]) if edge != (3, 0) else table.T.reshape(2, 1, 1, 2)
            for edge, table in tables.items()
        )
        p = np.exp(score)
        holds &= bool(graphical.factorises(p, cycle)) and bool(graphical.factorises(p, chord))
        fails &= not graphical.factorises(rng.dirichlet(np.ones(16)).reshape(2, 2, 2, 2), cycle)
    cliques = sorted(tuple(sorted(c)) for c in graphical.maximal_cliques(chord))
    p = rng.dirichlet(np.ones(8)).reshape(2, 2, 2)
    import networkx as nx

    complete = bool(graphical.factorises(p, nx.DiGraph([(0, 1), (0, 2), (1, 2)])))
    chain = bool(graphical.factorises(p, nx.DiGraph([(0, 1), (1, 2)])))
    return [
        Claim(
            "a Markov random field is a product over maximal cliques",
            "(2.33) to (2.35)",
            f"products over the edges of a cycle factorise over it: {holds}; random tables do not: {fails}; with a "
            f"chord its maximal cliques are {cliques}",
            verdict(holds and fails and cliques == [(0, 1, 2), (0, 2, 3)]),
            item="(2.33) to (2.35)",
        ),
        Claim(
            "every table is a Bayesian network over a complete directed graph, and not over a smaller one",
            "(2.36), (2.37)",
            f"a random table: complete {complete}, chain {chain}",
            verdict(complete and not chain),
            item="(2.36), (2.37)",
        ),
    ]


def _kidney() -> Claim:
    done = graphical.backdoor_adjustment(KIDNEY, "treatment", "healed", ["size"], variables=NAMES, graph=CONFOUNDED)[
        :, 0
    ]
    seen = graphical.backdoor_adjustment(KIDNEY, "treatment", "healed", variables=NAMES)[:, 0]
    shares = KIDNEY.sum(axis=(0, 2)) / KIDNEY.sum()
    by_hand = (KIDNEY[..., 0] / KIDNEY.sum(axis=2)) @ shares
    return Claim(
        "with a confounder, P(y | do x) = sum_z P(y | x, z) P(z), which is not P(y | x)",
        "(2.38)",
        f"kidney stones: treatment A heals {done[0]:.6f} and B {done[1]:.6f}; seen {seen[0]:.6f} and {seen[1]:.6f}, in "
        "the other order",
        verdict(np.allclose(done, by_hand, rtol=1e-12) and done[0] > done[1] and seen[0] < seen[1]),
        item="(2.38)",
    )


def _reversed(n) -> Claim:
    """Both graphs are complete: the same table comes from either."""

    def binary(probability):
        return lambda *arguments: arguments[-1] < probability(*arguments[:-1])

    heals = graphical.Mechanism(binary(lambda x, z: 0.2 + 0.3 * x + 0.4 * z), ("x", "z"))
    z_first = graphical.SCM(
        {
            "z": graphical.Mechanism(binary(lambda: 0.5)),
            "x": graphical.Mechanism(binary(lambda z: 0.1 + 0.8 * z), ("z",)),
            "y": heals,
        }
    )
    x_first = graphical.SCM(
        {
            "x": graphical.Mechanism(binary(lambda: 0.5)),
            "z": graphical.Mechanism(binary(lambda x: 0.1 + 0.8 * x), ("x",)),
            "y": heals,
        }
    )
    found, draws = {}, 1000 * n
    for name, model in (("z -> x", z_first), ("x -> z", x_first)):
        sample = model.sample(draws, rng=0)
        seeing = float(np.mean(sample["y"][np.asarray(sample["x"]).astype(bool)]))
        found[name] = seeing, float(np.mean(model.do({"x": True}).sample(draws, rng=1)["y"]))
    error = 4 * np.sqrt(0.25 / draws + 0.5 / draws)
    apart = {name: seeing - doing for name, (seeing, doing) in found.items()}
    return Claim(
        "with the arrow from the confounder reversed, doing is seeing, although no table tells the two graphs apart",
        "after (2.38)",
        ", ".join(f"{name}: seen {a:.3f}, done {b:.3f}" for name, (a, b) in found.items()),
        verdict(
            abs(apart["x -> z"]) < error < apart["z -> x"] and abs(found["z -> x"][0] - found["x -> z"][0]) < error
        ),
        item="(2.39), after (2.38)",
    )
