"""Small discrete models on which bounds go wrong if anything can, and the truth about them in 60 digits."""

import itertools
from dataclasses import dataclass

import mpmath
import numpy as np

from cumulant.graphical import FactorGraph

DIGITS = 60
KINDS = (
    "honest", "one state", "one variable", "no factors", "constants", "zero fields", "strong couplings",
    "antiferromagnet", "large fields", "large constants", "cancelling constants", "tiny", "near underflow",
    "hard constraints", "hard core", "almost impossible", "impossible", "equal entries", "mixed scales", "tree",
)  # fmt: skip


def deceptive_model(seed: int) -> tuple[str, FactorGraph]:
    """A random model of one of the `KINDS`, with at most 256 states; every third one has evidence."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n = int(rng.integers(1, 8))
    sizes = rng.integers(1, 4, n)
    if kind in ("antiferromagnet", "hard core"):
        n, sizes = int(rng.integers(3, 9)), np.full(9, 2)
        sizes = sizes[:n]
    elif kind == "one state":
        sizes = np.ones(n, int)
    elif kind == "one variable":
        n, sizes = 1, rng.integers(1, 5, 1)
    while np.prod(sizes) > 256:
        sizes[rng.integers(n)] = 1
    factors = _factors(kind, n, sizes, rng)
    model = FactorGraph(sizes.tolist(), factors)
    if seed // len(KINDS) % 3 == 2 and kind != "impossible":
        v = int(rng.integers(n))
        model = model.given({v: int(rng.integers(sizes[v]))})
    return kind, model


def _factors(kind, n, sizes, rng):
    def table(scope, scale=1.0):
        return scope, scale * rng.normal(size=tuple(sizes[list(scope)]))

    def scopes(least=0, most=3):
        for _ in range(int(rng.integers(1, 9))):
            yield tuple(rng.permutation(n)[: rng.integers(min(least, n), min(most, n) + 1)].tolist())

    everyone, pairs = [(v,) for v in range(n)], list(itertools.combinations(range(n), 2))
    if kind == "no factors":
        return []
    if kind == "constants":
        return [table((), 10.0 ** rng.integers(-3, 4)) for _ in range(int(rng.integers(1, 6)))]
    if kind == "zero fields":
        return [*(table(scope) for scope in scopes(2)), *((scope, np.zeros(sizes[scope[0]])) for scope in everyone)]
    if kind == "antiferromagnet":
        strength = 10.0 ** rng.uniform(0, 3)
        return [(pair, -strength * np.outer([-1, 1], [-1, 1])) for pair in pairs]
    if kind == "hard core":
        forbidden = np.array([[0.0, 0.0], [0.0, -np.inf]])
        field = 10.0 ** rng.uniform(-1, 3)
        kept = [pair for pair in pairs if rng.random() < 0.6]
        return [*((pair, forbidden) for pair in kept), *((v, np.array([0.0, field])) for v in everyone)]
    scale = {
        "strong couplings": 10.0 ** rng.uniform(1, 3),
        "large fields": 30.0,
        "tiny": 10.0 ** -rng.uniform(250, 305),
        "near underflow": rng.uniform(700, 760),
    }.get(kind, rng.choice([0.3, 3.0]))
    made = [table(scope, scale) for scope in scopes()]
    if kind == "tree":
        made = [table((int(rng.integers(v)), v), rng.choice([0.5, 50.0])) for v in range(1, n)]
        made += [table(scope, 10.0 ** rng.uniform(-2, 4)) for scope in everyone]
    elif kind == "large fields":
        made += [table(scope, 10.0 ** rng.uniform(3, 6)) for scope in everyone]
    elif kind == "large constants":
        made += [table((), 1e12) for _ in range(int(rng.integers(1, 4)))]
    elif kind == "cancelling constants":
        large = np.array(1e12 * rng.normal())
        made += [
            ((), large),
            ((), -large),
            ((), rng.normal(size=())),
            ((), np.array(1e8 / 3)),
            ((), np.array(-1e8 / 3)),
        ]
    elif kind == "near underflow":
        made = [(scope, scale * np.where(rng.random(t.shape) < 0.5, 1.0, 0.0)) for scope, t in made]
    elif kind == "hard constraints":
        made = [(scope, np.where(rng.random(t.shape) < 0.25, -np.inf, t)) for scope, t in made]
    elif kind == "almost impossible":
        made = [(scope, np.where(rng.random(t.shape) < 0.3, -(10.0 ** rng.uniform(2, 9)), t)) for scope, t in made]
    elif kind == "impossible":
        made = [(scope, np.where(rng.random(t.shape) < 0.8, -np.inf, t)) for scope, t in made]
    elif kind == "equal entries":
        made = [(scope, np.full(t.shape, rng.choice([0.1, 1 / 3, 1e3 / 7]))) for scope, t in made]
    elif kind == "mixed scales":
        made = [(scope, t * 10.0 ** rng.uniform(-12, 6, t.shape)) for scope, t in made]
    return made


@dataclass(frozen=True)
class Truth:
    """``log Z``, the largest score and the distributions of all variables, by a sum over all states."""

    log_z: mpmath.mpf
    best: mpmath.mpf
    marginals: list[list[mpmath.mpf]]


def truth_of(model: FactorGraph) -> Truth:
    """By enumeration in `DIGITS` decimal digits, from the tables of the model; -inf where no state is possible."""
    structure, theta = model.structure, model.family.log_tables(model.theta)
    sizes = structure.cardinalities.tolist()
    tables = [(structure.scope(f), structure.table(f, theta)) for f in range(structure.n_factors)]
    evidence = dict(model.evidence)
    with mpmath.workdps(DIGITS):
        scores = {}
        for x in itertools.product(*map(range, sizes)):
            if any(x[v] != state for v, state in evidence.items()):
                continue
            values = [float(t[tuple(x[v] for v in scope)]) for scope, t in tables]
            if min(values, default=0.0) > -np.inf:
                scores[x] = mpmath.fsum(map(mpmath.mpf, values))
        if not scores:
            return Truth(mpmath.mpf("-inf"), mpmath.mpf("-inf"), [])
        best = max(scores.values())
        weights = {x: mpmath.exp(score - best) for x, score in scores.items()}
        total = mpmath.fsum(weights.values())
        marginals = [
            [mpmath.fsum(w for x, w in weights.items() if x[v] == state) / total for state in range(size)]
            for v, size in enumerate(sizes)
        ]
        return Truth(best + mpmath.log(total), best, marginals)
