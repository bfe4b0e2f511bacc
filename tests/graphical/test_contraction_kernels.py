"""The contraction kernel against einsum, on random shapes and strides."""

import numpy as np
from numpy.testing import assert_allclose

from cumulant.graphical.exact import contraction_kernels as kernels
from cumulant.graphical.exact.contraction_kernels import MAX_AXES, MAX_TERMS
from cumulant.kernels import kernel
from tests.reference.contraction import contraction

SPACE, LOGS = kernels.work_space(), kernels.log_space()


@kernel(called_by="python")
def _contract(values, n_axes, sizes, n_terms, bases, strides, target, space):
    kernels.contract(values, n_axes, sizes, n_terms, bases, strides, target, space)


@kernel(called_by="python")
def _contract_log(values, n_axes, sizes, n_terms, bases, strides, target, best, space, logs):
    kernels.contract_log(values, n_axes, sizes, n_terms, bases, strides, target, best, space, logs)


def contract(*arguments):
    _contract(*arguments, SPACE)


def contract_log(*arguments):
    _contract_log(*arguments, SPACE, LOGS)


def random_case(rng):
    """Tables over random subsets of axes, each in an order of its own, laid into one array behind one another."""
    d = int(rng.integers(1, 9))
    sizes = rng.integers(1, 5, d) if d < 6 else np.full(d, 2)
    scopes = [rng.permutation(d)[: rng.integers(0, d + 1)] for _ in range(int(rng.integers(0, 7)))]
    scopes = [np.sort(scope) if rng.random() < 0.5 else scope for scope in scopes]
    wanted = np.sort(rng.permutation(d)[: rng.integers(0, d + 1)])
    tables = [np.where(rng.random(tuple(sizes[s])) < 0.1, 0.0, rng.random(tuple(sizes[s]))) for s in scopes]
    return sizes, scopes, tables, wanted


def laid_out(sizes, scopes, tables, wanted):
    strides = np.zeros((MAX_TERMS + 1, MAX_AXES), dtype=np.int64)
    bases, begin = np.zeros(MAX_TERMS, dtype=np.int64), 3
    for t, scope in enumerate([*scopes, wanted]):
        step = 1
        for v in scope[::-1]:
            strides[t, v] = step
            step *= sizes[v]
        if t < len(tables):
            bases[t] = begin
            begin += tables[t].size
    values = np.concatenate([np.full(3, np.nan), *(t.ravel() for t in tables), np.zeros(int(np.prod(sizes[wanted])))])
    axes = np.ones(MAX_AXES, dtype=np.int64)
    axes[: sizes.size] = sizes
    return values, axes, bases, strides, begin


def test_sums_of_products():
    rng = np.random.default_rng(0)
    for _ in range(600):
        sizes, scopes, tables, wanted = random_case(rng)
        values, axes, bases, strides, target = laid_out(sizes, scopes, tables, wanted)
        untouched = values[:target].copy()
        contract(values, sizes.size, axes, len(tables), bases, strides, target)
        # an axis in no table is summed over too, as many times as it has states
        there = set(wanted.tolist()).union(*(s.tolist() for s in scopes))
        missing = np.prod([sizes[v] for v in range(sizes.size) if v not in there])
        assert_allclose(values[target:], missing * contraction(sizes, tables, scopes, wanted).ravel(), rtol=1e-13)
        assert np.array_equal(values[:target], untouched, equal_nan=True)


def test_logarithms_and_maxima():
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes, scopes, tables, wanted = random_case(rng)
        with np.errstate(divide="ignore"):
            logs = [np.log(table) for table in tables]
        joint = np.zeros(tuple(sizes))
        for scope, log in zip(scopes, logs, strict=True):
            shape = [sizes[v] if v in scope else 1 for v in range(sizes.size)]
            joint = joint + log.transpose(np.argsort(scope)).reshape(shape)
        summed = tuple(v for v in range(sizes.size) if v not in wanted)
        for best in (False, True):
            values, axes, bases, strides, target = laid_out(sizes, scopes, logs, wanted)
            values[target:] = -np.inf
            contract_log(values, sizes.size, axes, len(tables), bases, strides, target, best)
            reduce = np.maximum.reduce if best else np.logaddexp.reduce
            assert_allclose(values[target:], reduce(joint, axis=summed).ravel(), rtol=1e-12, atol=1e-13)


def test_long_rows_and_wide_blocks():
    rng = np.random.default_rng(2)
    d = 14
    sizes = np.full(d, 2)
    for _ in range(40):
        scopes = [np.sort(rng.permutation(d)[: rng.integers(4, d + 1)]) for _ in range(int(rng.integers(1, 5)))]
        wanted = np.sort(rng.permutation(d)[: rng.integers(0, d)])
        tables = [rng.random(tuple(sizes[s])) for s in scopes]
        values, axes, bases, strides, target = laid_out(sizes, scopes, tables, wanted)
        contract(values, d, axes, len(tables), bases, strides, target)
        there = set(wanted.tolist()).union(*(s.tolist() for s in scopes))
        expected = 2.0 ** (d - len(there)) * contraction(sizes, tables, scopes, wanted).ravel()
        assert_allclose(values[target:], expected, rtol=1e-12)
        logs = [np.log(table) for table in tables]
        values, axes, bases, strides, target = laid_out(sizes, scopes, logs, wanted)
        values[target:] = -np.inf
        contract_log(values, d, axes, len(tables), bases, strides, target, False)
        assert_allclose(values[target:], np.log(expected), rtol=1e-12, atol=1e-13)


def test_logarithms_far_beyond_the_range_of_numbers():
    rng = np.random.default_rng(3)
    for sizes in ((2,) * 11, (300, 40), (3, 2500)):  # an axis longer than a block, and one that is summed
        table = 1e4 * rng.normal(size=sizes)
        table[..., 0] = -np.inf
        for wanted in (np.arange(1), np.arange(len(sizes) - 1), np.arange(len(sizes))[1:], np.zeros(0, int)):
            scopes, d = [np.arange(len(sizes))], len(sizes)
            values, axes, bases, strides, target = laid_out(np.array(sizes), scopes, [table], wanted)
            values[target:] = -np.inf
            contract_log(values, d, axes, 1, bases, strides, target, False)
            summed = tuple(v for v in range(d) if v not in wanted)
            expected = np.logaddexp.reduce(table, axis=summed).ravel()
            assert_allclose(values[target:], expected, rtol=1e-14)


def test_axes_that_are_longer_than_any_block():
    rng = np.random.default_rng(3)
    sizes, scopes = np.array([5000, 2, 2, 2]), [np.array(scope) for scope in ([0, 1], [0, 2], [3, 0], [0])]
    tables = [rng.random(tuple(sizes[s])) for s in scopes]
    for wanted in (np.array([1, 2, 3]), np.array([0]), np.array([0, 3])):
        values, axes, bases, strides, target = laid_out(sizes, scopes, tables, wanted)
        contract(values, sizes.size, axes, len(tables), bases, strides, target)
        assert_allclose(values[target:], contraction(sizes, tables, scopes, wanted).ravel(), rtol=1e-12)
