"""No bound of `graphical` is violated, whatever the model: each is compared with a sum over all states in 60 digits."""

from collections import Counter

import mpmath
import numpy as np
import pytest

from cumulant.errors import DomainError, TooWide
from cumulant.graphical import (
    FactorGraph,
    belief_propagation,
    bound_log_partition,
    bound_marginals,
    max_product,
    mean_field,
    mini_bucket_bound,
    structured_mean_field,
    tree_reweighted,
)
from tests.laws.deceptive_models import DIGITS, deceptive_model, truth_of


def claims(model, truth, seed):
    """``(name, what the claim is about, lower, upper)`` of every issuer, each verified through the model."""
    memory = 2 ** (6 + seed % 8)
    intervals = {
        "exact": {},
        "conditioning": {"max_memory": 64},
        "bounds": {"exact": False, "max_memory": memory, "max_work": 4 + seed % 20},
        "no work": {"exact": False, "max_work": 0},
    }
    for name, options in intervals.items():
        interval = bound_log_partition(model, **options)
        again = model.verify(interval).bound
        assert (again.lower, again.upper) == (interval.lower, interval.upper)
        yield f"bound_log_partition, {name}", truth.log_z, interval.lower, interval.upper
    for sense in ("upper", "lower"):
        found = mini_bucket_bound(model, i_bound=1 + seed % 3, sense=sense, max_steps=1 + seed % 6)
        if found.certificate is not None:
            model.verify(found)
        yield f"mini_bucket_bound, {sense}", truth.log_z, found.interval.lower, found.interval.upper
    free = len(model._evidence) < model.n_variables
    for name, options in {"marginals, exact": {}, "marginals, bounds": intervals["bounds"]}.items():
        if truth.marginals and free:
            for own, (low, high) in zip(truth.marginals, bound_marginals(model, **options), strict=True):
                yield from ((name, p, a, b) for p, a, b in zip(own, low, high, strict=True))
    for name, found in messages(model, memory, seed):
        if found.certificate is not None:
            fresh = model.verify(found)
            assert fresh.quantity == found.certificate.quantity
            claimed = found.certificate.upper
            if name in ("mean_field", "structured_mean_field"):
                yield name, truth.log_z, -claimed, np.inf
                yield name, truth.log_z, found.bound, np.inf
            elif name == "tree_reweighted":
                yield name, truth.log_z, -np.inf, claimed
                yield name, truth.log_z, -np.inf, found.bound
            elif name == "belief_propagation":
                yield name, abs(truth.log_z - mpmath.mpf(found.log_partition)), -np.inf, claimed
            else:
                yield name, truth.best - mpmath.mpf(found.score), -np.inf, claimed


def messages(model, memory, seed):
    sweeps = 1 + seed % 30
    methods = {
        "mean_field": lambda: mean_field(model, n_starts=2, max_sweeps=sweeps),
        "structured_mean_field": lambda: structured_mean_field(model, max_memory=memory, max_sweeps=1 + seed % 5),
        "tree_reweighted": lambda: tree_reweighted(model, max_trees=seed % 3, max_sweeps=sweeps),
        "belief_propagation": lambda: belief_propagation(model, max_sweeps=100),
        "max_product": lambda: max_product(model, max_sweeps=100),
    }
    wide = np.diff(model.structure.scope_starts).max(initial=0) > 2
    for name, method in methods.items():
        if name == "tree_reweighted" and wide:
            continue
        try:
            yield name, method()
        except (DomainError, TooWide) as refusal:
            assert "impossible" in str(refusal) or isinstance(refusal, TooWide)  # noqa: PT017


def violations(seeds):
    """How many claims there were, by name, and those that do not hold."""
    counts, wrong = Counter(), []
    for seed in seeds:
        kind, model = deceptive_model(seed)
        truth = truth_of(model)
        with mpmath.workdps(DIGITS):
            for name, value, lower, upper in claims(model, truth, seed):
                counts[name] += 1
                if not mpmath.mpf(float(lower)) <= value <= mpmath.mpf(float(upper)):
                    wrong.append((seed, kind, name, lower, mpmath.nstr(value, 25), upper))
    return counts, wrong


def test_no_bound_is_violated():
    counts, wrong = violations(range(40))
    assert not wrong, wrong[:5]
    assert len(counts) == 13
    assert min(counts.values()) >= 5


@pytest.mark.slow
def test_no_interval_misses_elimination_on_wider_models():
    """20 to 40 variables, factors of three, scales from 0.1 to 1000, some states impossible."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, scale = int(rng.integers(20, 40)), 10.0 ** rng.uniform(-1, 3)
        scopes = [
            tuple(sorted((rng.integers(n) + np.array([0, 1, rng.integers(2, 6)])) % n)) for _ in range(int(1.3 * n))
        ]
        factors = [(scope, scale * rng.normal(size=(2, 2, 2))) for scope in scopes]
        if seed % 3 == 0:
            factors = [(scope, np.where(rng.random((2, 2, 2)) < 0.15, -np.inf, table)) for scope, table in factors]
        model = FactorGraph([2] * n, factors)
        exact = bound_log_partition(model)
        memory, work = 2 ** int(rng.integers(6, 14)), int(rng.integers(1, 60))
        interval = bound_log_partition(model, exact=False, max_memory=memory, max_work=work)
        assert "elimination" in exact.certificate.theorem or exact.upper == -np.inf
        assert interval.lower <= exact.upper, seed
        assert exact.lower <= interval.upper, seed


@pytest.mark.slow
def test_no_bound_is_violated_in_many_models():
    counts, wrong = violations(range(40, 640))
    assert not wrong, wrong[:5]
    assert sum(counts.values()) > 10_000
