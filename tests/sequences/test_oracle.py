"""The oracles of one chain against enumeration, a published example, and the law of their samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from cumulant.errors import DomainError
from cumulant.sequences.chain.oracle import joint_log_prob, k_best, sample, sum_product, tree_entropy, tree_kl, viterbi
from tests.reference import chains

SHAPES = [(t, k) for t in (1, 2, 3, 4) for k in (2, 3)]
UNARY, PAIR = np.array([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]]), np.array([[0.4, -0.6], [0.2, 0.9]])
BELOW = -np.inf


def random_scores(length, k, rng, each, scale=1.5):
    shape = (length - 1, k, k) if each else (k, k)
    return rng.normal(scale=scale, size=(length, k)), rng.normal(scale=scale, size=shape)


def cases(length, k, forbid=False):
    rng = np.random.default_rng(10 * length + k)
    for each in (False, True):
        for scale in (0.3, 2.0, 20.0):
            unary, pair = random_scores(length, k, rng, each, scale)
            yield unary, pair
            if forbid:  # the first label stays possible everywhere
                unary, pair = unary.copy(), pair.copy()
                unary[:, 1:][rng.random((length, k - 1)) < 0.3] = BELOW
                pair[..., 1:, 1:][rng.random(pair[..., 1:, 1:].shape) < 0.5] = BELOW
                yield unary, pair


def test_a_chain_of_three_nodes_and_two_labels():
    """Numbers computed elsewhere, for the same scores."""
    nodes, pairs, log_z = sum_product(UNARY, PAIR)
    assert_allclose(log_z, 3.318088345467769, rtol=1e-12)
    assert_allclose(tree_entropy(nodes, pairs), 1.5195784332962474, rtol=1e-12)
    expected = [[0.4018632677, 0.5981367323], [0.2290652408, 0.7709347592], [0.1401273706, 0.8598726294]]
    assert_allclose(nodes, expected, atol=1e-9)
    assert_allclose(pairs[0], [[0.162853819, 0.2390094487], [0.0662114218, 0.5319253105]], atol=1e-9)
    assert_allclose(pairs[1], [[0.0760066479, 0.1530585929], [0.0641207227, 0.7068140365]], atol=1e-9)
    labels, score = viterbi(UNARY, PAIR)
    assert_array_equal(labels, [1, 1, 1])
    assert_allclose(score, 2.6, rtol=1e-14)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_sum_product_against_enumeration(length, k):
    for unary, pair in cases(length, k, forbid=True):
        p, log_z = chains.joint(unary, pair)
        nodes, pairs = chains.marginals_of(p, length, k)
        ours = sum_product(unary, pair)
        assert_allclose(ours[0], nodes, rtol=1e-11, atol=1e-300)
        assert_allclose(ours[1], pairs, rtol=1e-11, atol=1e-300)
        assert_allclose(ours[2], log_z, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_entropy_and_joint_against_enumeration(length, k):
    for unary, pair in cases(length, k, forbid=True):
        p, _ = chains.joint(unary, pair)
        nodes, pairs, _ = sum_product(unary, pair)
        assert_allclose(tree_entropy(nodes, pairs), chains.entropy(p), rtol=1e-10, atol=1e-13)
        ours = joint_log_prob(nodes, pairs, chains.labellings(length, k))
        with np.errstate(divide="ignore"):
            expected = np.log(p)
        seen = expected > -600
        assert_allclose(ours[seen], expected[seen], rtol=1e-10, atol=1e-11)
        assert_array_equal(np.isneginf(ours), p == 0)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_divergence_against_enumeration(length, k):
    for (u, p), (v, q) in zip(cases(length, k), list(cases(length, k))[1:], strict=False):
        mu, nu = sum_product(u, p)[:2], sum_product(v, q)[:2]
        expected = chains.kl(chains.joint(u, p)[0], chains.joint(v, q)[0])
        assert_allclose(tree_kl(mu, nu), expected, rtol=1e-9, atol=1e-12)
        assert tree_kl(mu, mu) == 0.0


@pytest.mark.parametrize(("length", "k"), [s for s in SHAPES if s[0] > 1])
def test_they_speak_of_the_markov_chain_with_the_marginals(length, k):
    """A mixture of chains is not a chain: the entropy is that of the chain with its marginals, and larger."""
    rng = np.random.default_rng(length)
    mixed = 0.5 * chains.joint(*random_scores(length, k, rng, True))[0]
    mixed = mixed + 0.5 * chains.joint(*random_scores(length, k, rng, True))[0]
    nodes, pairs = chains.marginals_of(mixed, length, k)
    markov = chains.markov_joint(nodes, pairs)
    assert_allclose(tree_entropy(nodes, pairs), chains.entropy(markov), rtol=1e-12)
    assert_allclose(np.exp(joint_log_prob(nodes, pairs, chains.labellings(length, k))), markov, rtol=1e-12)
    assert tree_entropy(nodes, pairs) >= chains.entropy(mixed) - 1e-12
    if length > 2:
        assert tree_entropy(nodes, pairs) > chains.entropy(mixed) + 1e-6


def test_entropy_of_a_mixture_of_truth_and_uniform():
    """K = 2, T = 3, one tenth of the uniform law: 0.4990455 for the chain and 0.4669824 for the mixture."""
    p = np.full(8, 0.1 / 8)
    p[2] += 0.9
    nodes, pairs = chains.marginals_of(p, 3, 2)
    assert_allclose(tree_entropy(nodes, pairs), 0.4990455, atol=5e-8)
    assert_allclose(chains.entropy(p), 0.4669824, atol=5e-8)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_infinite_divergence_exactly_where_mass_is_lacking(length, k):
    seen = set()
    for unary, pair in cases(length, k, forbid=True):
        full, p = sum_product(np.zeros((length, k)), np.zeros((k, k)))[:2], chains.joint(unary, pair)[0]
        nodes, pairs = sum_product(unary, pair)[:2]
        uniform = np.full(k**length, k ** -float(length))
        assert_allclose(tree_kl((nodes, pairs), full), chains.kl(p, uniform), rtol=1e-10)
        ours = tree_kl(full, (nodes, pairs))
        assert np.isinf(ours) == bool(np.any(p == 0))
        seen.add(bool(np.isinf(ours)))
    assert seen == {False, True}


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_small_divergences_keep_their_digits(distance):
    """To second order KL is half the variance of the difference of scores."""
    rng = np.random.default_rng(0)
    unary, pair = random_scores(4, 3, rng, False)
    direction = rng.normal(size=unary.shape)
    mu, nu = sum_product(unary, pair)[:2], sum_product(unary + distance * direction, pair)[:2]
    p = chains.joint(unary, pair)[0]
    moved = chains.scores_of_all(direction, np.zeros((3, 3)))
    variance = p @ (moved - p @ moved) ** 2
    # the third-order term is of relative size `distance`; marginals carry an error of about 1e-16
    assert_allclose(tree_kl(mu, nu), 0.5 * distance**2 * variance, rtol=3 * distance + 1e-15 / distance)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_best_labelling_against_enumeration(length, k):
    for unary, pair in cases(length, k, forbid=True):
        scores = chains.scores_of_all(unary, pair)
        labels, score = viterbi(unary, pair)
        assert_array_equal(labels, chains.labellings(length, k)[np.argmax(scores)])
        assert_allclose(score, scores.max(), rtol=1e-13)


@pytest.mark.parametrize(("length", "k"), SHAPES)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_k_best_against_enumeration(length, k, size):
    for unary, pair in cases(length, k, forbid=True):
        scores = chains.scores_of_all(unary, pair)
        order = np.argsort(-scores, kind="stable")[: min(size, np.isfinite(scores).sum())]
        labellings, ours = k_best(unary, pair, size)
        assert_allclose(ours, scores[order], rtol=1e-12, atol=1e-12)
        assert_array_equal(labellings, chains.labellings(length, k)[order])


def test_k_best_of_equal_scores_are_different_labellings():
    labellings, scores = k_best(np.zeros((5, 3)), np.zeros((3, 3)), 100)
    assert len(np.unique(labellings, axis=0)) == 100
    assert_array_equal(scores, 0.0)
    assert len(k_best(np.zeros((5, 3)), np.zeros((3, 3)), 10**6)[1]) == 3**5


def test_k_best_of_a_long_chain():
    """Too long to enumerate: in order, different, each with the score it is said to have, the first as Viterbi's."""
    rng = np.random.default_rng(0)
    unary, pair = rng.normal(size=(60, 7)), rng.normal(size=(7, 7))
    labellings, scores = k_best(unary, pair, 300)
    assert np.all(np.diff(scores) <= 0)
    assert len(np.unique(labellings, axis=0)) == 300
    direct = unary[np.arange(60), labellings].sum(axis=1) + pair[labellings[:, :-1], labellings[:, 1:]].sum(axis=1)
    assert_allclose(scores, direct, rtol=1e-12)
    assert_array_equal(labellings[0], viterbi(unary, pair)[0])
    # every labelling that differs from the best in one node is either among them or worse than the last
    listed = {tuple(y) for y in labellings}
    for t in range(60):
        for label in range(7):
            y = labellings[0].copy()
            y[t] = label
            score = unary[np.arange(60), y].sum() + pair[y[:-1], y[1:]].sum()
            assert tuple(y) in listed or score <= scores[-1] + 1e-10


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize(("length", "k"), [(1, 3), (2, 3), (4, 2)])
def test_samples_follow_the_law(length, k, each):
    unary, pair = random_scores(length, k, np.random.default_rng(length), each, scale=0.8)
    p, _ = chains.joint(unary, pair)
    draws = sample(unary, pair, 50_000, rng=3)
    assert draws.shape == (50_000, length)
    numbers = draws @ k ** np.arange(length - 1, -1, -1)
    counts = np.bincount(numbers, minlength=k**length)
    assert stats.chisquare(counts, p * len(draws)).pvalue > 1e-3
    wrong = np.roll(p, 1)
    assert stats.chisquare(counts, wrong * len(draws)).pvalue < 1e-3


def test_samples_never_take_forbidden_steps():
    unary, pair = np.array([[0.0, BELOW, 0.0]] + [[0.0, 0.0, 0.0]] * 4), np.zeros((3, 3))
    pair[0, 1] = pair[1, 1] = BELOW
    draws = sample(unary, pair, 5000, rng=0)
    assert not np.any(draws[:, 0] == 1)
    assert not np.any((draws[:, :-1] < 2) & (draws[:, 1:] == 1))
    assert np.any(draws == 1)


def test_seeds_repeat_and_generators_advance():
    assert_array_equal(sample(UNARY, PAIR, 20, rng=5), sample(UNARY, PAIR, 20, rng=5))
    rng = np.random.default_rng(5)
    first, second = sample(UNARY, PAIR, 20, rng), sample(UNARY, PAIR, 20, rng)
    assert_array_equal(first, sample(UNARY, PAIR, 20, rng=5))
    assert np.any(first != second)
    assert sample(UNARY, PAIR, 0, rng=0).shape == (0, 3)


@pytest.mark.parametrize("each", [False, True])
def test_scores_of_ten_thousand(each):
    rng = np.random.default_rng(0)
    for _ in range(10):
        shape = (3, 3, 3) if each else (3, 3)
        unary, pair = 1e4 * rng.choice([-1.0, 1.0], (4, 3)), 1e4 * rng.choice([-1.0, 1.0], shape)
        p, log_z = chains.joint(unary, pair)
        nodes, pairs, ours = sum_product(unary, pair)
        assert_allclose(nodes, chains.marginals_of(p, 4, 3)[0], rtol=1e-10, atol=1e-12)
        assert_allclose(pairs, chains.marginals_of(p, 4, 3)[1], rtol=1e-10, atol=1e-12)
        assert_allclose(ours, log_z, rtol=1e-14)
        assert_allclose(tree_entropy(nodes, pairs), chains.entropy(p), rtol=1e-10, atol=1e-12)
        assert_allclose(viterbi(unary, pair)[1], chains.scores_of_all(unary, pair).max(), rtol=1e-14)


@pytest.mark.parametrize("large", [1e10, 1e16, 1e300])
def test_scores_of_each_pair_beside_a_large_one(large):
    """The first node is certain; the others are as if it were alone."""
    unary = np.array([[large, 0.0], [0.3, 0.0], [0.0, 0.1]])
    nodes, pairs, log_z = sum_product(unary, np.broadcast_to(PAIR, (2, 2, 2)))
    rest = np.array([unary[1] + PAIR[0], unary[2]])
    expected_nodes, expected_pairs = chains.marginals_of(chains.joint(rest, PAIR)[0], 2, 2)
    assert_allclose(nodes[1:], expected_nodes, rtol=1e-13)
    assert_allclose(pairs[1:], expected_pairs, rtol=1e-13)
    assert_allclose(nodes[0], [1.0, 0.0])
    assert_allclose(log_z, large + chains.joint(rest, PAIR)[1], rtol=1e-15)


def test_long_chains_do_not_underflow():
    """Stationary scores: log Z grows by the logarithm of the largest eigenvalue."""
    pair = np.random.default_rng(0).normal(size=(4, 4))
    growth = np.log(np.abs(np.linalg.eigvals(np.exp(pair))).max())
    short, long = sum_product(np.zeros((2000, 4)), pair)[2], sum_product(np.zeros((3000, 4)), pair)[2]
    assert_allclose((long - short) / 1000, growth, rtol=1e-12)
    each = sum_product(np.zeros((2000, 4)), np.broadcast_to(pair, (1999, 4, 4)))
    assert_allclose(each[2], short, rtol=1e-13)
    assert_allclose(each[0], sum_product(np.zeros((2000, 4)), pair)[0], rtol=1e-10)


@pytest.mark.parametrize("each", [False, True])
def test_names_of_labels_and_direction_do_not_matter(each):
    rng = np.random.default_rng(1)
    unary, pair = random_scores(9, 4, rng, each)
    nodes, pairs, log_z = sum_product(unary, pair)
    order = rng.permutation(4)
    renamed = sum_product(unary[:, order], pair[..., order, :][..., order])
    assert_allclose(renamed[2], log_z, rtol=1e-14)
    assert_allclose(renamed[0], nodes[:, order], rtol=1e-12)
    assert_allclose(renamed[1], pairs[:, order][:, :, order], rtol=1e-12)
    turned = np.swapaxes(pair, -1, -2)
    back = sum_product(unary[::-1], turned[::-1] if each else turned)
    assert_allclose(back[2], log_z, rtol=1e-14)
    assert_allclose(back[0], nodes[::-1], rtol=1e-12)
    assert_allclose(back[1], np.swapaxes(pairs, 1, 2)[::-1], rtol=1e-12)


def test_one_matrix_is_the_same_as_one_for_each_pair():
    unary, pair = random_scores(12, 5, np.random.default_rng(2), False)
    every = np.broadcast_to(pair, (11, 5, 5))
    for a, b in zip(sum_product(unary, pair), sum_product(unary, every), strict=True):
        assert_allclose(a, b, rtol=1e-11)
    assert_array_equal(viterbi(unary, pair)[0], viterbi(unary, every)[0])
    assert_array_equal(k_best(unary, pair, 20)[0], k_best(unary, every, 20)[0])


# At the door ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True])
def test_a_chain_without_a_possible_labelling_is_refused(each):
    pair = np.array([[BELOW, 0.0], [BELOW, BELOW]])  # two steps to the right are too many
    pair = np.broadcast_to(pair, (2, 2, 2)) if each else pair
    for ask in (sum_product, viterbi, lambda u, p: k_best(u, p, 2), lambda u, p: sample(u, p, 2, rng=0)):
        with pytest.raises(DomainError, match="forbid every labelling"):
            ask(UNARY, pair)
        with pytest.raises(DomainError, match="forbid every labelling"):
            ask(np.full((1, 2), BELOW), PAIR)


@pytest.mark.parametrize(
    ("unary", "pair", "message"),
    [
        (np.zeros(3), PAIR, r"unary must be scores of shape \(nodes, labels\).*got \(3,\)"),
        (np.zeros((0, 2)), PAIR, r"at least one of each; got \(0, 2\)"),
        (UNARY, np.zeros((3, 3)), r"pair must have shape \(2, 2\), or \(2, 2, 2\).*got \(3, 3\)"),
        (UNARY, np.zeros((3, 2, 2)), r"got \(3, 2, 2\)"),
        (UNARY * [np.nan, 1.0], PAIR, r"unary must be numbers or minus infinity; got nan at index \(0, 0\)"),
        (UNARY, PAIR + np.array([[0.0, np.inf], [0.0, 0.0]]), r"pair must be.*got inf at index \(0, 1\)"),
        (UNARY + 1e308, PAIR, "must add up to a finite score"),
    ],
)
def test_bad_scores_are_refused(unary, pair, message):
    for ask in (sum_product, viterbi, lambda u, p: k_best(u, p, 2), lambda u, p: sample(u, p, 2, rng=0)):
        with pytest.raises(ValueError, match=message):
            ask(unary, pair)


def test_other_bad_input_is_refused():
    nodes, pairs, _ = sum_product(UNARY, PAIR)
    with pytest.raises(TypeError, match="unary must be an array of real numbers"):
        sum_product([["a", "b"]], PAIR)
    for k in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="k must be a positive whole number"):
            k_best(UNARY, PAIR, k)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n must be a whole number, not negative; got -1"):
        sample(UNARY, PAIR, -1)
    with pytest.raises(ValueError, match="labels must be from 0 to 1; they run from 0 to 2"):
        joint_log_prob(nodes, pairs, [0, 1, 2])
    with pytest.raises(ValueError, match="3 for each labelling"):
        joint_log_prob(nodes, pairs, [0, 1])
    with pytest.raises(DomainError, match=r"differ by 0\.1"):
        tree_entropy(nodes + np.array([0.1, 0.0]), pairs)
    with pytest.raises(DomainError, match="negative or NaN"):
        tree_entropy(nodes, pairs - 1.0)
    with pytest.raises(DomainError, match="nu: marginals must agree"):
        tree_kl((nodes, pairs), (nodes, pairs[::-1]))
    with pytest.raises(ValueError, match="as many nodes and labels"):
        tree_kl((nodes, pairs), sum_product(UNARY[:2], PAIR)[:2])
    with pytest.raises(ValueError, match=r"pairs must have shape \(2, 2, 2\)"):
        tree_entropy(nodes, pairs[:1])
