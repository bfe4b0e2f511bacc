"""The statements of chapter 4 on categorical models, checked on random tables, and the ball of figure 4.4."""

import numpy as np
from scipy.special import logsumexp

from cumulant import causal
from cumulant.experiments._causal import SOURCE as _SOURCE
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.optim import rates
from cumulant.plotting import causal as pictures
from cumulant.plotting import figure

TITLE = "Distances, identities and bounds of categorical cause-effect models"
SOURCE = f"{_SOURCE}, sections 4.4 and 4.5, appendices 4.A to 4.C, figures 4.4 and 4.7 a"
SIZES = (2, 5, 20)
TABLE = [[0.10, 0.15, 0.05], [0.20, 0.05, 0.05], [0.05, 0.05, 0.30]]


@experiment
def run(quick: bool, rng: int) -> Report:
    """1,000 tables of each size and prior; 4,000 runs for the bound."""
    n = 100 if quick else 1000
    streams = np.random.SeedSequence(rng).generate_state(8).tolist()
    models = {(p, K): causal.sample_reference(K, n, p, rng=streams[0]) for p in ("dense", "sparse") for K in SIZES}
    claims = [
        _cause(models, streams[1]),
        _effect(models, streams[2]),
        *_lemmas(models),
        _single(models, streams[3]),
        _independent(models, streams[4]),
        _counts(models, streams[1]),
        _factorisation(40 * n, streams[5]),
        *_explosion(n, streams[6]),
        *_bound(4 * n, streams[7]),
        _other_methods(),
        _ball(),
    ]
    notes = (
        f"{n} tables for each of K = 2, 5, 20 and both priors; errors are relative to the larger side. Figures 4.1 to "
        "4.3 are sketches without numbers. In the proof of lemma 4.B.4 the constant is alpha - m(y), printed with two "
        "wrong signs; the statement is right."
    )
    return Report(claims, _draw, notes)


def _reversed_cause(model):
    """``s_Y``."""
    return model.reverse().to_logit().cause


def _relative(found, expected) -> float:
    scale = np.maximum(np.abs(found), np.abs(expected)).reshape(len(found), -1).max(axis=1)
    difference = np.abs(found - expected).reshape(len(found), -1).max(axis=1)
    return float(np.max(difference / np.maximum(scale, 1e-300)))


def _cause(models, rng) -> Claim:
    least, off = {}, 0.0
    for (prior, K), model in models.items():
        changed = model.intervene("cause", rng=rng)
        found = causal.initial_distances(model, changed)
        moved = np.sum((_reversed_cause(model) - _reversed_cause(changed)) ** 2, axis=-1)
        off = max(off, _relative(found.anticausal, K * found.causal + moved))
        least[prior, K] = float(np.min(found.anticausal / (K * found.causal)))
    return Claim(
        "after an intervention on the cause the anticausal model is at least K times as far, in squared distance; "
        "exactly, by K delta_causal + |s_Y - s_Y*|^2",
        "delta_anti >= K delta_causal",
        f"least ratio of the two sides {min(least.values()):.6f}; the identity holds to {off:.1e}",
        verdict(min(least.values()) >= 1 - 1e-12 and off < 1e-9),
        item="Proposition 4.5.1",
    )


def _effect(models, rng) -> Claim:
    off, signs = 0.0, []
    for model in models.values():
        changed = model.intervene("effect", rng=rng)
        found = causal.initial_distances(model, changed)
        gap = causal.advantage_gap(model, _reversed_cause(changed))
        off = max(off, float(np.max(np.abs(gap - (found.causal - found.anticausal)) / found.causal)))
        signs.append(np.sign(gap) == np.sign(found.causal - found.anticausal))
    return Claim(
        "after an intervention on the effect delta_causal - delta_anti = (K - 1)(|s_Y* - c|^2 - R^2)",
        "a ball around c of radius R",
        f"holds to {off:.1e}; the sign is right in {np.mean(np.concatenate(signs)):.1%}",
        verdict(off < 1e-9),
        item="Proposition 4.5.2",
    )


def _lemmas(models) -> list[Claim]:
    switch, centred, partition, variance, wrong = [], [], [], [], []
    for model in models.values():
        logits, backward = model.to_logit(), model.reverse().to_logit()
        m, n = logits.effect.mean(axis=-2), backward.effect.mean(axis=-2)
        A, B = causal.row_log_partitions(model), causal.row_log_partitions(model.reverse())
        spread, other = logits.effect - m[:, None], np.swapaxes(backward.effect, -1, -2)
        moved = A - A.mean(axis=-1, keepdims=True)
        switch.append(_relative(other, logits.cause[..., None] + spread - moved[..., None]))
        centred.append(_relative(other - n[..., None], spread))
        partition.append(_relative(logits.cause - n, moved))
        partition.append(_relative(backward.cause - m, B - B.mean(axis=-1, keepdims=True)))
        K = model.sizes[0]
        variance.append(_relative(np.sum((logits.cause - n) ** 2, axis=-1), K * A.var(axis=-1)))
        printed = logsumexp(logits.effect, axis=-2)
        wrong.append(_relative(backward.cause - m, printed - printed.mean(axis=-1, keepdims=True)))

    def claim(item, statement, published, found):
        return Claim(statement, published, f"holds to {max(found):.1e}", verdict(max(found) < 1e-8), item=item)

    return [
        claim("Lemma 4.B.4", "logits of the other direction", "s_{x|y} = s_x + s_{y|x} - m(y) - A(x) + alpha", switch),
        claim("Lemma 4.B.5", "centred conditional logits are the same", "s_{x|y} - n(x) = s_{y|x} - m(y)", centred),
        claim("Proposition 4.B.6", "a distance is a variance", "|s_X - n|^2 = K Var_x A(x)", variance),
        Claim(
            "s_x - n(x) = A(x) - alpha and s_y - m(y) = B(y) - beta, with B(y) the log-partition of s_{x|y}; printed "
            "is that of s_{y|x} over x",
            "B(y) = log sum_x exp s_{y|x}",
            f"holds to {max(partition):.1e}; as printed off by up to {max(wrong):.0%}",
            verdict(max(partition) < 1e-8 < max(wrong), corrected=True),
            item="(4.47)",
        ),
    ]


def _single(models, rng) -> Claim:
    off = 0.0
    for (_, K), model in models.items():
        changed = model.intervene("single", rng=rng)
        found = causal.initial_distances(model, changed)
        moved = np.sum((_reversed_cause(model) - _reversed_cause(changed)) ** 2, axis=-1)
        change = np.max((causal.row_log_partitions(model) - causal.row_log_partitions(changed)) ** 2, axis=-1)
        off = max(off, _relative(found.anticausal, (K - 1) / K * found.causal + moved + (K - 1) * change))
    return Claim(
        "after an intervention on one row delta_anti = (K-1)/K delta_causal + |s_Y* - s_Y|^2 + (K-1)(A*(x0) - A(x0))^2",
        "(4.48)",
        f"holds to {off:.1e}",
        verdict(off < 1e-9),
        item="(4.48)",
    )


def _independent(models, rng) -> Claim:
    off, nearer = 0.0, True
    for (_, K), model in models.items():
        start = model.intervene("effect", rng=rng)
        changed = model.intervene("effect", rng=rng + 1)
        found = causal.initial_distances(start, changed)
        moved = np.sum((_reversed_cause(start) - _reversed_cause(changed)) ** 2, axis=-1)
        off = max(off, _relative(found.causal - found.anticausal, (K - 1) * moved))
        nearer &= bool(np.all(found.anticausal <= found.causal))
    return Claim(
        "where cause and effect are independent, an intervention on the effect always favours the anticausal model: "
        "Delta = (K - 1)|s_Y* - s_Y|^2",
        "Delta >= 0",
        f"in every draw; the identity holds to {off:.1e}",
        verdict(nearer and off < 1e-9),
        item="Section 4.5.2",
    )


def _counts(models, rng) -> Claim:
    model, K = models["dense", 20], 20
    free = model.intervene("effect", rng=rng)
    pairs = {
        "cause": (model, model.intervene("cause", rng=rng)),
        "one row": (model, model.intervene("single", rng=rng)),
        "effect of an independent pair": (free, free.intervene("effect", rng=rng + 1)),
    }
    found = {name: (_changed(*pair), _changed(*(each.reverse() for each in pair))) for name, pair in pairs.items()}
    expected = {"cause": (K, K * K + K), "one row": (K, K * K + K), "effect of an independent pair": (K * K, K)}
    return Claim(
        "numbers of parameters that an intervention changes, causal and anticausal model",
        "K and K^2 + K for the cause and for one row; K^2 and K for the effect where it is independent",
        "; ".join(f"{name} {a} and {b}" for name, (a, b) in found.items()) + f" with K = {K}",
        verdict(found == expected),
        item="Section 4.5.2",
    )


def _changed(first: causal.CategoricalSCM, second: causal.CategoricalSCM) -> int:
    """How many logits differ, in the problem of median change."""
    counts = sum(
        np.sum(np.abs(a - b) > 1e-9, axis=tuple(range(1, a.ndim)))
        for a, b in zip(first.to_logit(), second.to_logit(), strict=True)
    )
    return int(np.median(counts))


def _factorisation(n, rng) -> Claim:
    gamma = np.array([[0.3, 1.2, 0.7], [2.0, 0.1, 0.5]])
    logs = causal.log_dirichlet(gamma.ravel(), n, rng=rng).reshape(n, 2, 3)
    log_marginal = np.asarray(logsumexp(logs, axis=-1))
    marginal, rows = np.exp(log_marginal), np.exp(logs - log_marginal[..., None])
    alpha, concentrations = causal.dirichlet_factorize(gamma)
    share, total = alpha / alpha.sum(), alpha.sum()
    expected = np.concatenate(
        [share, share * (1 - share) / (total + 1), (concentrations / alpha[:, None]).ravel(), np.zeros(3)]
    )
    found = [marginal, (marginal - share) ** 2, rows.reshape(n, -1)]
    found.append((marginal[:, :1] - share[0]) * (rows[:, 0] - concentrations[0] / alpha[0]))  # independent
    values = np.concatenate(found, axis=1)
    z = float(np.max(np.abs(values.mean(axis=0) - expected) / (values.std(axis=0) / np.sqrt(n))))
    columns = gamma.sum(axis=0)
    return Claim(
        "a table is Dir(gamma) exactly when its marginal is Dir(sum_j gamma_ij), its rows are Dir(gamma_i) and all are "
        "independent; printed is the sum over i, which has another length where the table is not square",
        "alpha = sum_i gamma_i",
        f"moments of {n:,} tables within {z:.1f} standard errors; row sums {listed(alpha, '.1f')}, column sums "
        f"{listed(columns, '.1f')}",
        verdict(z < 4.5, corrected=True),
        item="Theorem 4.C.1",
    )


def _explosion(n, rng) -> list[Claim]:
    K, powers = 20, np.array([2, 4, 8, 16])
    slopes = []
    for power in powers:
        log_p = np.full(K, -power * np.log(10) - np.log(K))
        log_p[0] = np.log1p(-(10.0**-power) * (1 - 1 / K))
        slopes.append(float(np.mean(-np.log(K) - log_p)) / (power * np.log(10)))
    grown = {}
    for size in (5, 10, 20, 40):
        model = causal.sample_reference(size, n, "sparse", rng=rng)
        grown[size] = float(model.intervene("effect", rng=rng).kl(model).mean())
    exponent = float(np.polyfit(np.log(list(grown)), np.log(list(grown.values())), 1)[0])
    return [
        Claim(
            "KL(u || p) is of the order log(1 / eps) for p = (1 - eps) e_1 + eps u (K = 20, eps = 1e-2 to 1e-16)",
            "Theta(log 1/eps)",
            f"KL / log(1/eps) {listed(slopes, '.3f')}, towards {(K - 1) / K}",
            verdict(abs(slopes[-1] - (K - 1) / K) < 0.02 and all(0.5 < each < 1 for each in slopes)),
            item="Appendix 4.C.3",
        ),
        Claim(
            "divergences under the sparse prior grow with K (effect interventions)",
            "increase with K",
            ", ".join(f"K = {size}: {value:.3g}" for size, value in grown.items()) + f"; about K^{exponent:.2f}",
            verdict(np.all(np.diff(list(grown.values())) > 0)),
            item="Appendix 4.C.3",
        ),
    ]


def _bound(n, rng) -> list[Claim]:
    """The bound against runs: two problems, three models, three horizons, three constants."""
    small = causal.CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
    large = causal.sample_reference(20, 1, "dense", rng=rng)[0]
    ratios, best = [], {}
    for name, start in (("K = 2", small), ("K = 20", large)):
        goal = start.intervene("cause", [0.8, 0.2] if start is small else None, rng=rng)
        runs = n if start is small else n // 10
        distances = causal.initial_distances(start, goal)
        starts, goals = (_copies(each, runs) for each in (start, goal))
        for model in ("causal", "anticausal", "joint"):
            B, delta = 2.0 if model != "joint" else np.sqrt(2), float(getattr(distances, model))
            for T in (10, 100, 1000):
                constants = np.array([1.0, np.sqrt(delta) / 2, np.sqrt(delta) / B])
                found = causal.adapt_categorical(
                    starts, goals, T, constants / np.sqrt(T), rng=rng + T, models=(model,), times=[T]
                ).kl[0, :, :, 0]
                above = found.mean(axis=1) + 3 * found.std(axis=1) / np.sqrt(runs)
                bounds = rates.sga_constant(B, delta, T, constants / np.sqrt(T))
                ratios.extend(above / bounds)
                best[f"{name} {model}"] = float(found[2].mean() / rates.sga_constant(B, delta, T))
    return [
        Claim(
            "E KL after T observations is at most (delta/c + c B^2) / (2 sqrt(T)) with steps c / sqrt(T), B = 2, or "
            "sqrt(2) for the joint model (c = 1, sqrt(delta)/2, sqrt(delta)/B; T = 10, 100, 1,000)",
            "an upper bound",
            f"measured means with three standard errors are {min(ratios):.3f} to {max(ratios):.2f} of the bound",
            verdict(max(ratios) <= 1, loose=True),
            item="(4.7), Theorem 4.A.1",
            spread=f"{len(ratios)} settings",
        ),
        Claim(
            "the best constant c = sqrt(delta)/B gives B sqrt(delta / T)",
            "not in the text",
            f"measured over bound at T = 1,000: {listed(best, '.3f')}",
            verdict(max(best.values()) <= 1, loose=True),
            item="(4.7)",
        ),
    ]


def _copies(model, n):
    return causal.CategoricalSCM(*(np.broadcast_to(each, (n, *each.shape)) for each in vars(model).values()))


def _other_methods() -> Claim:
    """Their rates for convex functions, as functions of the distance."""
    k = np.array([10, 100])
    nesterov = [rates.nesterov(1.0, d, k) for d in (1.0, 10.0)]
    descent = [rates.gd_convex(1.0, d, k) for d in (1.0, 10.0)]
    linear = all(np.allclose(10 * low, high) for low, high in (nesterov, descent))
    return Claim(
        "rates of gradient descent and of Nesterov's method depend on the start through its squared distance as well",
        "the same form",
        "bounds of both are proportional to the squared distance",
        verdict(linear),
        item="Section 4.4",
    )


def _ball() -> Claim:
    """The sign of the difference of distances over a plane, by the distances themselves."""
    model = causal.CategoricalSCM.from_joint(TABLE)
    ball = causal.effect_advantage_ball(model)
    rng = np.random.default_rng(0)
    logits = ball.centre + rng.normal(size=(4000, 3)) * 0.3
    logits -= logits.mean(axis=1, keepdims=True)
    new = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    found = causal.initial_distances(_copies(model, 4000), _copies(model, 4000).intervene("effect", new))
    inside = np.sum((logits - ball.centre) ** 2, axis=1) < ball.radius_squared
    right = float(np.mean((found.causal < found.anticausal) == inside))
    k = 3
    m, c, s_y = model.to_logit().effect.mean(axis=0), ball.centre, _reversed_cause(model)
    off = float(np.max(np.abs(m - ((k - 1) * c + s_y) / k)))
    return Claim(
        "the causal model is closer exactly inside of the ball, and m = ((K - 1) c + s_Y) / K (K = 3)",
        "a ball around c",
        f"{right:.1%} of 4,000 new effects, {inside.mean():.0%} of them inside; m off by {off:.0e}",
        verdict(right == 1.0 and off < 1e-14),
        item="Figure 4.4; Figure 4.7 a",
    )


def _draw():
    fig, ax = figure(width=6.2, height=4.8)
    pictures.effect_ball(causal.CategoricalSCM.from_joint(TABLE), ax=ax)
    return fig
