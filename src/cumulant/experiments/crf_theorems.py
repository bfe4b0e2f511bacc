"""The identities, lemmas and theorems of chapter 3, run against what they speak of."""

import itertools

import numpy as np
from scipy.special import entr, rel_entr

from cumulant import optim
from cumulant.experiments._blocks import Classes, Squares, expected_gain, moved, scheme
from cumulant.experiments._crf import LEFT_OUT, dual_ascent, folder, ocr, sparse_words
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.optim import rates
from cumulant.sequences import (
    ChainMarginals,
    ChainProblem,
    SequenceData,
    SequenceDualAscent,
    SequenceLBFGS,
    block_search,
    exact_radii,
    feature_radii,
)

TITLE = "Duality, ascent lemma, rates of sampling schemes, radii and starts of stochastic dual coordinate ascent"
SOURCE = "Le Priol (2021), thesis, chapter 3 and its appendices 3.A, 3.C, 3.D and 3.F"
RATES = {
    "uniform": ("Theorem 3.F.1", "uniform draws, steps s = 1/max c", "(1 - s/n)^t"),
    "importance": ("Theorem 3.F.2", "draws by c_i, steps 1/c_i", "(1 - s/n)^t with the harmonic mean s"),
    "gap": ("Theorem 3.F.4", "draws by exact gaps, steps 1/max c", "(1 - s chi^2/n)^t"),
    "gap-importance": ("Theorem 3.F.5", "draws by g_i c_i, steps 1/c_i", "(1 - s chi/n)^t"),
}


@experiment
def run(quick: bool, rng: int) -> Report:
    """Random chains of up to four nodes, enumerated; classes and squares, of which all blocks are tried."""
    n = 60 if quick else 300
    streams = [np.random.default_rng(seed) for seed in np.random.SeedSequence(rng).spawn(8)]
    claims = [
        *_fixed_points(streams[0]),
        _bregman(streams[1], n),
        *_junction_trees(streams[2], n // 6),
        *_ascent(streams[3], n),
        *_rates(streams[4], n // 3, 20 if quick else 60),
        _adaptive(streams[5], n),
        _nonuniformity(),
        *_from_suboptimality(streams[6], n // 6),
        *_starts(quick),
        *_radii(streams[7], n // 3),
    ]
    return Report(claims, notes="" if folder() is not None else LEFT_OUT)


def _chains(rng, n=6, longest=4, l2=None) -> ChainProblem:
    """Sequences of 1 to `longest` nodes with three labels and four features that are not negative."""
    lengths = np.concatenate([[1, 2, longest], rng.integers(1, longest + 1, size=n - 3)])
    x = np.abs(rng.normal(size=(lengths.sum(), 4))) * (rng.random((lengths.sum(), 4)) < 0.6)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return ChainProblem(SequenceData(x, offsets, rng.integers(3, size=lengths.sum())), 3, l2, n_jobs=1)


def _labellings(length):
    return np.array(list(itertools.product(range(3), repeat=length)))


def _joint(problem, w, i):
    """``p(. | x_i; w)`` of all labellings: scores of nodes, biases and transitions, and nothing else of the library."""
    first, last = problem.data.offsets[i : i + 2]
    scores = problem.data.features[first:last].toarray() @ w[: problem.n_attributes] + w[problem.n_attributes]
    scores[0] += w[problem.n_attributes + 1]
    scores[-1] += w[problem.n_attributes + 2]
    every = _labellings(last - first)
    found = np.array([scores[np.arange(len(y)), y].sum() + w[-3:][y[:-1], y[1:]].sum() for y in every])
    return np.exp(found - found.max()) / np.exp(found - found.max()).sum(), every


def _rebuilt(problem, mu, i):
    """``prod_C mu_C / prod_S mu_S`` at all labellings."""
    first, last = problem.data.offsets[i : i + 2]
    nodes, pairs = mu.nodes[first:last], mu.pairs[first - i : last - i - 1]
    return np.array(
        [
            nodes[0, y[0]]
            if len(y) == 1
            else np.prod(
                pairs[np.arange(len(y) - 1), y[:-1], y[1:]] / np.append(nodes[np.arange(1, len(y) - 1), y[1:-1]], 1)
            )
            for y in _labellings(last - first)
        ]
    )


def _fixed_points(rng) -> list[Claim]:
    problem, slope, gap, divergence, relaxed = _chains(rng), 0.0, 0.0, 0.0, 0.0
    for _ in range(5):
        w, direction = rng.normal(size=(2, *problem.shape))
        gradient = problem.gradient(w)
        difference = (problem.value(w + 1e-5 * direction) - problem.value(w - 1e-5 * direction)) / 2e-5
        image = problem.weights_of(problem.residual(problem.conjugate_marginals(w)))
        slope = max(slope, abs(difference - problem.l2 * np.vdot(w - image, direction)))
        after = (1 - 0.1 * problem.l2) * w + 0.1 * problem.l2 * image
        relaxed = max(relaxed, float(np.abs(w - 0.1 * gradient - after).max()))
        mu = problem.conjugate_marginals(w)
        from_primal = problem.value(w) - problem.dual(mu)
        gap = max(gap, abs(from_primal / (np.vdot(gradient, gradient) / (2 * problem.l2)) - 1))
        v = problem.weights_of(problem.residual(mu))
        kl = [np.sum(rel_entr(_joint(problem, w, i)[0], _joint(problem, v, i)[0])) for i in range(problem.n_terms)]
        divergence = max(divergence, abs((problem.value(v) - problem.dual(mu)) / np.mean(kl) - 1))
    return [
        Claim(
            "the gradient is the fixed-point residual l2 (w - w(alpha(w))), and gradient descent a relaxed fixed point",
            "(3.8), (3.15)",
            f"differences of P agree to {slope:.1e}; both forms of a step to {relaxed:.1e}",
            verdict(slope < 1e-7 and relaxed < 1e-12),
            item="(3.8), (3.14), (3.15)",
        ),
        Claim(
            "at the weights' own distribution the gap is |grad P|^2 / (2 l2)",
            "(3.10)",
            f"relative deviation {gap:.1e}",
            verdict(gap < 1e-8),
            item="(3.9), (3.10)",
        ),
        Claim(
            "at the weights of the distribution the gap is the mean divergence to its image, block by block",
            "(3.13)",
            f"relative deviation from divergences over all labellings {divergence:.1e}",
            verdict(divergence < 1e-8),
            item="(3.12), (3.13)",
        ),
    ]


def _bregman(rng, n) -> Claim:
    """Log-sum-exp, and the regulariser ``sum w^2/2 + w^4/4``, whose conjugate is found by Newton's method."""
    off = 0.0
    for _ in range(n):
        problem = Classes.random(rng)
        alpha = problem.state(rng)
        s = problem.scores(problem.weights(alpha))
        fenchel = np.log(np.exp(s).sum(axis=1)) + problem.conjugate(alpha) - np.sum(s * alpha, axis=1)
        beta = problem.image(problem.weights(alpha))
        slope = np.sum((np.log(beta) + 1) * (alpha - beta), axis=1)
        bregman = problem.conjugate(alpha) - problem.conjugate(beta) - slope
        off = max(off, float(np.abs(fenchel - bregman).max()))
        w, v = rng.normal(size=(2, 5))
        u = np.zeros(5)
        for _ in range(60):
            u -= (u + u**3 - v) / (1 + 3 * u**2)
        r_w, r_u = (np.sum(z**2 / 2 + z**4 / 4) for z in (w, u))
        conjugate = u @ v - r_u
        off = max(off, abs(r_w + conjugate - w @ v - (r_w - r_u - (u + u**3) @ (w - u))))
    return Claim(
        "both gaps are Bregman divergences between a point and its next fixed-point iterate: of the conjugate loss and "
        "of the regulariser",
        "(3.42), (3.46)",
        f"largest deviation {off:.1e} over {n} draws (log-sum-exp; w^2/2 + w^4/4)",
        verdict(off < 1e-10),
        item="(3.42), (3.43), (3.46)",
    )


def _junction_trees(rng, n) -> list[Claim]:
    off, search, wider, ends = 0.0, 0.0, [], True
    for _ in range(n):
        problem = _chains(rng)
        mu, nu = (problem.conjugate_marginals(rng.normal(size=problem.shape)) for _ in range(2))
        joints = [(_rebuilt(problem, mu, i), _rebuilt(problem, nu, i)) for i in range(problem.n_terms)]
        off = max(off, max(abs(p.sum() - 1) for p, _ in joints))
        off = max(off, float(np.abs(problem.entropies(mu) - [entr(p).sum() for p, _ in joints]).max()))
        off = max(off, float(np.abs(problem.divergences(mu, nu) - [rel_entr(p, q).sum() for p, q in joints]).max()))
        gamma, i = rng.random(), int(rng.integers(problem.n_terms))
        mixed = ChainMarginals(*(a + gamma * (b - a) for a, b in zip(mu, nu, strict=True)))
        of_joint = np.array([entr(p + gamma * (q - p)).sum() for p, q in joints])
        wider.append(problem.entropies(mixed) - of_joint)
        line = block_search(problem, mu, i)
        own = problem.conjugate_marginals(problem.weights_of(problem.residual(mu)))
        after = ChainMarginals(*(part.copy() for part in mu))
        first, last = problem.data.offsets[i : i + 2]
        after.nodes[first:last] += gamma * (own.nodes - mu.nodes)[first:last]
        after.pairs[first - i : last - i - 1] += gamma * (own.pairs - mu.pairs)[first - i : last - i - 1]
        gained = problem.n_terms * (problem.dual(after) - problem.dual(mu))
        search = max(search, abs(line.value(gamma) - line.value(0.0) - gained))
        ends = ends and line.slope(0.0) >= 0 >= line.slope(1.0)
    least = float(np.min(np.concatenate(wider)))
    return [
        Claim(
            "the joint distribution, its entropy and divergences follow from marginals of cliques and separators",
            "(3.19) to (3.21)",
            f"largest deviation from all labellings {off:.1e}",
            verdict(off < 1e-9),
            item="(3.19) to (3.21)",
        ),
        Claim(
            "the line search on marginals is that of the dual; its slope changes sign between 0 and 1",
            "(3.22)",
            f"f(gamma) - f(0) is n times the gain to {search:.1e}; the ends enclose the root: {ends}",
            verdict(search < 1e-8 and ends),
            item="(3.22)",
        ),
        Claim(
            "what holds of the mixture (3.16) of joint distributions holds of the step on their marginals: it is not "
            "that mixture, but its entropy is at least as large, and so is what the dual gains",
            "mu + gamma delta in the place of alpha + gamma delta",
            f"entropy above that of the mixture by {least:.1e} to {np.max(np.concatenate(wider)):.3f}",
            verdict(least > -1e-10, loose=np.max(np.concatenate(wider)) > 1e-3),
            item="Algorithm 2, update",
        ),
    ]


def _ascent(rng, n) -> list[Claim]:
    slack, gains, bounds = [], [], []
    for _ in range(n):
        problem = Classes.random(rng, l2=float(10 ** rng.uniform(-3, 0)))
        alpha, i, s = problem.state(rng), int(rng.integers(problem.n)), float(rng.random())
        found = problem.dual(moved(problem, alpha, i, s)) - problem.dual(alpha)
        g, d, c = problem.gaps(alpha)[i], problem.residuals(alpha)[i], problem.conditions[i]
        slack.append(found - rates.ascent_lower_bound(g, d, s, c, problem.n))
        tiny = problem.dual(moved(problem, alpha, i, 1 / c)) - problem.dual(alpha)
        gains.append(tiny)
        p = rng.dirichlet(np.ones(problem.n))
        steps = rng.random(problem.n)
        gap = expected_gain(problem, alpha, p, steps)
        own = problem.gaps(alpha), problem.residuals(alpha), steps, problem.conditions
        bounds.append(gap - rates.expected_ascent_lower_bound(p, *own))
    chains = []
    for _ in range(n // 6):
        problem = _chains(rng)
        mu = problem.conjugate_marginals(rng.normal(size=problem.shape))
        i, s = int(rng.integers(problem.n_terms)), float(rng.random())
        line, w = block_search(problem, mu, i), problem.weights_of(problem.residual(mu))
        p, q = _rebuilt(problem, mu, i), _joint(problem, w, i)[0]
        c = 1 + exact_radii(problem)[i] / (problem.n_terms * problem.l2)
        bound = rates.ascent_lower_bound(rel_entr(p, q).sum(), np.abs(p - q).sum(), s, c, problem.n_terms)
        chains.append((line.value(s) - line.value(0.0)) / problem.n_terms - bound)
    return [
        Claim(
            "one step gains at least (s g_i + s (1 - s c_i) d_i^2 / 2) / n",
            "(3.24)",
            f"least slack {min(slack):.1e} over {n} steps on classes, {min(chains):.1e} over {len(chains)} on chains, "
            "with residuals over all labellings",
            verdict(min(slack) >= -1e-12 and min(chains) >= -1e-10),
            item="(3.24)",
        ),
        Claim(
            "the same in expectation over the block, with both terms inside the brackets divided by n",
            "(3.61)",
            f"least slack {min(bounds):.1e}",
            verdict(min(bounds) >= -1e-12),
            item="Lemma 3.F.6",
        ),
        Claim(
            "the dual rises along the direction unless the block is at its image",
            "guaranteed to increase",
            f"least gain of the safe step 1/c_i: {min(gains):.1e}",
            verdict(min(gains) > 0),
            item="Algorithm 1, (3.16)",
        ),
    ]


def _rates(rng, n, seeds) -> list[Claim]:
    found = []
    for name, (item, words, published) in RATES.items():
        ratio = []
        for _ in range(n):
            problem = Classes.random(rng)
            alpha = problem.state(rng)
            p, steps, rate = scheme(name, problem, alpha)
            ratio.append(expected_gain(problem, alpha, p, steps) / (rate * problem.gaps(alpha).mean()))
        above, epochs = _runs(name, rng, seeds)
        found.append(
            Claim(
                f"{words}: one step gains at least the rate times the gap in expectation, and the mean over runs is "
                "below the bound",
                f"h_t <= {published} h_0",
                f"one step gains at least {min(ratio):.3f} times the promise, over {n} states; mean of {seeds} runs "
                f"of {epochs} steps is at most {above:.3f} of the bound",
                verdict(min(ratio) >= 1 - 1e-9 and above <= 1),
                item=item,
            )
        )
    return found


def _runs(name, rng, seeds, epochs=60):
    """The largest ratio of the mean sub-optimality, less three standard errors, to the bound along runs."""
    problem = Classes.random(np.random.default_rng(0), n=8, n_labels=3, l2=1.0)
    start = np.full((8, 3), 0.05) + 0.85 * np.eye(3)[problem.labels]
    best = _dual_optimum(problem)
    missing, smallest = np.empty((seeds, epochs + 1)), np.inf
    for seed in range(seeds):
        alpha = start
        for t in range(epochs + 1):
            missing[seed, t] = best - problem.dual(alpha)
            p, steps, rate = scheme(name, problem, alpha)
            smallest = min(smallest, rate)  # chi, a lower bound along all trajectories that were seen
            i = int(rng.choice(problem.n, p=p))
            alpha = moved(problem, alpha, i, steps[i])
    bound = missing[0, 0] * (1 - smallest) ** np.arange(epochs + 1)
    error = missing.std(axis=0, ddof=1) / np.sqrt(seeds)
    return float(np.max(((missing.mean(axis=0) - 3 * error) / bound)[1:])), epochs


def _dual_optimum(problem):
    """By steps on the block of the largest gap until all gaps are closed."""
    alpha = np.full((problem.n, problem.n_labels), 1 / problem.n_labels)
    for _ in range(20_000):
        g = problem.gaps(alpha)
        if g.mean() < 1e-14:
            break
        i = int(np.argmax(g))
        alpha = moved(problem, alpha, i, 1 / problem.conditions[i])
    return problem.primal(problem.weights(alpha))


def _adaptive(rng, n) -> Claim:
    ratio, missing, bound = [], [], []
    for _ in range(n):
        problem = Squares.random(rng)
        alpha = problem.state(rng)
        p, steps, theta = scheme("residual", problem, alpha)
        ratio.append(expected_gain(problem, alpha, p, steps) / (theta * problem.gaps(alpha).mean()))
        best = problem.best()
        missing.append(best - problem.dual(alpha) - expected_gain(problem, alpha, p, steps))
        bound.append((1 - theta) * (best - problem.dual(alpha)))
    worst = float(np.max(np.array(missing) / np.array(bound)))
    return Claim(
        "AdaSDCA on quadratic losses z^2 (2-smooth): one step gains at least theta times the gap",
        "h_t <= (1 - theta)^t h_0",
        f"gains {min(ratio):.6f} to {max(ratio):.3f} times theta gap over {n} states; sub-optimality at most "
        f"{worst:.3f} of the bound",
        verdict(min(ratio) >= 1 - 1e-9 and worst <= 1 + 1e-9),
        item="Theorem 3.F.3",
    )


def _nonuniformity() -> Claim:
    n = 12
    even, one = rates.nonuniformity(np.ones(n)), rates.nonuniformity(np.eye(n)[0])
    some = rates.nonuniformity(np.repeat([1.0, 0.0], [3, n - 3]))
    line = {m: rates.nonuniformity(np.arange(1.0, m + 1)) for m in (2, 10, 100)}
    formula = all(abs(value - 2 / 3 * (2 * m + 1) / (m + 1)) < 1e-12 for m, value in line.items())
    return Claim(
        "chi^2 is 1 for equal gaps, n/k for k equal ones, 2/3 (2n + 1)/(n + 1) for gaps a, 2a, ..., na",
        "1, n/k, about 4/3",
        f"n = {n}: {even:g}, {some:g} for k = 3, {one:g} for k = 1; line "
        + listed({str(m): v for m, v in line.items()}, ".6f"),
        verdict(abs(even - 1) + abs(some - n / 3) + abs(one - n) < 1e-12 and formula),
        item="(3.57), examples",
    )


def _from_suboptimality(rng, n) -> list[Claim]:
    primal, dual, sharper = [], [], []
    problem = _chains(rng, n=8)
    R = exact_radii(problem)
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-13, max_steps=1000).value
    c = rates.block_conditions(R, problem.l2)
    for _ in range(n):
        w = 10 ** rng.uniform(-3, 0.5) * rng.normal(size=problem.shape)
        gap = problem.value(w) - problem.dual(problem.conjugate_marginals(w))
        primal.append(gap / ((problem.l2 + R.max()) / problem.l2 * (problem.value(w) - best)))
        smoothness = rates.primal_smoothness(R, problem.l2)
        sharper.append(gap / rates.gap_from_primal(problem.value(w) - best, smoothness, problem.l2))
        mu = problem.conjugate_marginals(w)
        gap = problem.value(problem.weights_of(problem.residual(mu))) - problem.dual(mu)
        dual.append(gap / (problem.n_terms * c.max() * (best - problem.dual(mu))))
        sharper.append(gap / rates.gap_from_dual(best - problem.dual(mu), c))
    return [
        Claim(
            "the gap is at most L/l2 times the primal sub-optimality; L = l2 + R with the largest radius will do, and "
            "so will its mean",
            "L about l2 + R",
            f"largest ratio {max(primal):.3f} with the largest radius, over {n} weights",
            verdict(max(primal) <= 1 and max(sharper) <= 1, loose=True),
            item="(3.31)",
        ),
        Claim(
            "the gap is at most n/s = n + R/l2 times the dual sub-optimality; the mean radius will do",
            "n/s",
            f"largest ratio {max(dual):.3f} with the largest radius; both sides with the mean {max(sharper):.3f}",
            verdict(max(dual) <= 1 and max(sharper) <= 1, loose=True),
            item="(3.32)",
        ),
    ]


def _starts(quick) -> list[Claim]:
    found, claims = [sparse_words(60 if quick else 400)], []
    if folder() is not None:
        found.append(ocr(60 if quick else 1000))
    for task in found:
        problem = task.problem
        uniform, gaps = problem.start(1 - 1e-12), {}
        for name, mu in (
            ("labels", problem.start(1e-12)), ("0.01", problem.start(0.01)), ("uniform", uniform),
            ("potential 10", problem.start_from_potential()),
        ):  # fmt: skip
            gaps[name] = problem.value(problem.weights_of(problem.residual(mu))) - problem.dual(mu)
        w, zero = problem.weights_of(problem.residual(uniform)), problem.value(np.zeros(problem.shape))
        claims.append(
            Claim(
                f"{task.name}: from the uniform distribution weights are huge, the dual is far below zero and the gap "
                "large, ten times P(0) and more; from the labels it is P(0)",
                "extremely large weights",
                f"gaps: {listed(gaps, '.5g')}; P(0) = {zero:.5g}; at the uniform |w| = {np.linalg.norm(w):.3g}, D = "
                f"{problem.dual(uniform):.3g}",
                verdict(abs(gaps["labels"] / zero - 1) < 1e-6 and gaps["uniform"] > 10 * zero),
                item="section 3.A.1",
            )
        )
        start = dual_ascent("gap", start=("mixture", 1 - 1e-9)).init(problem, None, 0)
        solver = SequenceDualAscent(start=("mixture", 1 - 1e-9))
        result = optim.run(solver, problem, np.zeros(problem.shape), tol=(1e-3, 0.0), max_steps=60, rng=0)
        proof = result.certificate
        claims.append(
            Claim(
                f"{task.name}: the uniform start raises numerical issues (ascent does not converge from it to a "
                "relative gap of 0.001)",
                "numerical stability issues",
                f"largest weight at the start {np.abs(start.hidden).max():.3g}; then {result.status}, objective "
                f"{result.value:.4g}, certified to {np.inf if proof is None else proof.upper:.1e}",
                verdict(result.status != "converged"),
                item="section 3.A.1, numerical issues",
            )
        )
    return claims


def _radii(rng, n) -> list[Claim]:
    off, above, full = 0.0, [], 0
    for _ in range(n):
        problem = _chains(rng, n=4)
        exact, bound = _radii_by_enumeration(problem), feature_radii(problem)
        for i, (first, last) in enumerate(itertools.pairwise(problem.data.offsets)):
            if len(np.unique(problem.labels[first:last])) < 3:
                off = max(off, abs(exact[i] / bound[i] - 1))
            else:
                full += 1
                above.append(bound[i] / exact[i])
    claims = [
        Claim(
            "for features that are not negative and a label absent from the sequence, that label everywhere is "
            "farthest away",
            "(3.30) with a constant labelling",
            f"relative deviation from all labellings {off:.1e}; where all labels occur it is a bound, {min(above):.2f} "
            f"to {max(above):.2f} times the radius ({full} sequences)",
            verdict(off < 1e-12 and min(above) >= 1 - 1e-12),
            item="(3.29), (3.30)",
        )
    ]
    if folder() is not None:
        data = ocr(None).problem.data
        most = max(len(np.unique(labels)) for labels in data.split(data.labels))
        claims.append(
            Claim(
                "handwritten words: the K labels never appear together in one sequence",
                "never",
                f"at most {most} of 26 letters in a word",
                verdict(most < 26),
                item="section 3.C",
            )
        )
    return claims


def _radii_by_enumeration(problem):
    """From feature maps of all labellings, one after the other."""
    out = []
    for first, last in itertools.pairwise(problem.data.offsets):
        x = problem.data.features[first:last].toarray()
        x = np.column_stack([x, np.ones(len(x)), np.arange(len(x)) == 0, np.arange(len(x)) == len(x) - 1])
        maps = [_map(x, y) for y in _labellings(last - first)]
        own = _map(x, problem.labels[first:last])
        out.append(max(float(np.sum((own - other) ** 2)) for other in maps))
    return np.array(out)


def _map(x, y):
    one = np.eye(3)[y]
    return np.concatenate([(x.T @ one).ravel(), (one[:-1].T @ one[1:]).ravel()])
