"""Sweeps of collapsed Gibbs sampling: one token after the other, its component drawn given all others.

Tokens are in the order of words. While a word is worked on, ``c_k = (eta_w + m_kw) / (sum eta + t_k)`` is at hand for
every component and changes in two places for each token, so that a draw needs ``c`` and the counts of one document.
Two ways to draw from ``(alpha_k + n_dk) c_k`` exactly:

* `dense_sweeps` adds up all components: for few of them;
* `sparse_sweeps` keeps the sums of ``alpha_k c_k`` in a binary tree and goes through the components that the document
  has: ``O(log K + components of the document)`` for each token, with memory ``O(tokens + K)`` (Yu, Hsieh, Yun,
  Vishwanathan and Dhillon 2015, "A scalable asynchronous distributed algorithm for topic modeling").

The random number of a token is a function of (seed, chain, sweep, position).
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import philox

_GOLDEN, _MIX_0, _MIX_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_MASK, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@kernel(called_by="kernels")
def _stream(seed, chain, sweep):
    """The 64-bit number at which the random numbers of a sweep begin."""
    s = np.uint64(seed)
    high, low, _, _ = philox(
        np.uint64(0), np.uint64(sweep) & _MASK, np.uint64(chain) & _MASK, np.uint64(1), s & _MASK, s >> _HALF
    )
    return (high << _HALF) | low


@kernel(called_by="kernels")
def _uniform(stream, position):
    """A uniform in (0, 1): SplitMix64 (Steele, Lea and Flood 2014), whose state at any position is a multiplication."""
    x = stream + (np.uint64(position) + np.uint64(1)) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX_0
    x = (x ^ (x >> np.uint64(27))) * _MIX_1
    x = x ^ (x >> np.uint64(31))
    return (2.0 * np.float64(np.int64(x >> np.uint64(12))) + 1.0) * _TO_UNIT


@kernel(called_by="kernels")
def _begin_word(z, begin, end, eta, inverse, of_word, ratio):
    """The tokens of a word in each component, and ``c_k``."""
    for k in range(of_word.size):
        of_word[k] = 0
    for i in range(begin, end):
        of_word[z[i]] += 1
    for k in range(of_word.size):
        ratio[k] = (eta + of_word[k]) * inverse[k]


@kernel(called_by="kernels")
def _move(z, i, new, eta, eta_total, total, inverse, of_word, ratio):
    """Token `i` goes to component `new`."""
    old = z[i]
    of_word[old] -= 1
    total[old] -= 1
    inverse[old] = 1.0 / (eta_total + total[old])
    ratio[old] = (eta + of_word[old]) * inverse[old]
    of_word[new] += 1
    total[new] += 1
    inverse[new] = 1.0 / (eta_total + total[new])
    ratio[new] = (eta + of_word[new]) * inverse[new]
    z[i] = new


@kernel(called_by="kernels")
def _fill_lists(place, z, document_starts, list_starts, lengths, components, counts, number):
    """The components of each document, in the order of its tokens, which are at ``z[place]``.

    The lists are a function of `z`, so that a run that is stopped and resumed equals one that was not. `number` (K,) is
    work space.
    """
    for k in range(number.size):
        number[k] = 0
    for d in range(lengths.size):
        start, length = list_starts[d], 0
        for j in range(document_starts[d], document_starts[d + 1]):
            number[z[place[j]]] += 1
        for j in range(document_starts[d], document_starts[d + 1]):
            k = z[place[j]]
            if number[k] > 0:
                components[start + length], counts[start + length] = k, number[k]
                number[k] = 0
                length += 1
        lengths[d] = length


@kernel(called_by="kernels")
def _other_leaf(tree, leaves, old, level):
    """The leaf in which `level` falls when the leaf `old` is left out."""
    node, before = leaves + old, 0.0
    while node > 1:
        if node & 1:
            before += tree[node - 1]
        node >>= 1
    if level >= before:
        level += tree[leaves + old]
    node = 1
    while node < leaves:
        node *= 2
        if level >= tree[node]:
            level -= tree[node]
            node += 1
    return node - leaves


@kernel(called_by="kernels")
def _set_leaf(tree, node, value):
    """A leaf, and all sums above it, which do not drift."""
    tree[node] = value
    while node > 1:
        value += tree[node ^ 1]
        node >>= 1
        tree[node] = value


@kernel(called_by="python", fastmath={"contract", "nsz", "reassoc"})
def dense_sweeps(
    word_starts, document, locus, word_prior, locus_prior, document_prior, z, counts, totals, seed, chain, first, n,
    inverses, of_word, ratio,
):  # fmt: skip
    """Sweeps ``first, ..., first + n - 1`` over all tokens; `z` and `totals` (loci, K) are changed in place.

    `inverses` (loci, K) are ``1 / (sum eta + t_k)``. `counts` (documents, P) is work space of zeros, `of_word` (K,) and
    `ratio` (P,) too; `document_prior` (P,) has zeros after the K-th. P is a multiple of 4: the sums over
    four parts are taken side by side.
    """
    size, quarter = of_word.size, ratio.size // 4
    for i in range(z.size):
        counts[document[i], z[i]] += 1
    for sweep in range(first, first + n):
        stream = _stream(seed, chain, sweep)
        for word in range(word_starts.size - 1):
            begin, end = word_starts[word], word_starts[word + 1]
            if begin == end:
                continue
            here = locus[word]
            eta, eta_total, total, inverse = word_prior[word], locus_prior[here], totals[here], inverses[here]
            _begin_word(z, begin, end, eta, inverse, of_word, ratio)
            for i in range(begin, end):
                row, old = counts[document[i]], z[i]
                a, b, c, d = 0.0, 0.0, 0.0, 0.0
                for k in range(quarter):
                    a += (document_prior[k] + row[k]) * ratio[k]
                    b += (document_prior[k + quarter] + row[k + quarter]) * ratio[k + quarter]
                    c += (document_prior[k + 2 * quarter] + row[k + 2 * quarter]) * ratio[k + 2 * quarter]
                    d += (document_prior[k + 3 * quarter] + row[k + 3 * quarter]) * ratio[k + 3 * quarter]
                # Nothing is changed unless the component is: its mass with the token is exchanged for that without.
                without = (eta + of_word[old] - 1.0) / (eta_total + total[old] - 1.0)
                held = document_prior[old] + row[old]
                stay, gone = (held - 1.0) * without, held * ratio[old]
                level = _uniform(stream, i) * (a + b + c + d - gone + stay)
                if level < stay:
                    continue
                level -= stay
                part = old // quarter
                a -= gone * (part == 0)
                b -= gone * (part == 1)
                c -= gone * (part == 2)
                k = 0
                if level >= a:
                    level -= a
                    k = quarter
                    if level >= b:
                        level -= b
                        k = 2 * quarter
                        if level >= c:
                            level -= c
                            k = 3 * quarter
                new = old  # stays so if rounding leaves nothing after the parts
                while k < size:
                    if k != old:
                        new = k
                        level -= (document_prior[k] + row[k]) * ratio[k]
                        if level < 0.0:
                            break
                    k += 1
                if new != old:
                    row[old] -= 1
                    row[new] += 1
                    _move(z, i, new, eta, eta_total, total, inverse, of_word, ratio)


@kernel(called_by="python", fastmath={"contract", "nsz"})
def sparse_sweeps(
    word_starts, document, locus, word_prior, locus_prior, document_prior, z, place_of, document_starts, list_starts,
    lengths, components, counts, totals, seed, chain, first, n, inverses, of_word, ratio, tree,
):  # fmt: skip
    """As `dense_sweeps`. The tokens of document ``d`` are ``place_of[document_starts[d]:document_starts[d + 1]]``. It
    has a list of its components and how many tokens each has, from ``list_starts[d]`` on, ``lengths[d]`` of them. Node
    ``i`` of the tree is the sum of the nodes ``2 i`` and
    ``2 i + 1``; the leaves, in its second half, are ``alpha_k c_k``. All but `z` and `totals` is work space.
    """
    size, leaves = of_word.size, tree.size // 2
    for sweep in range(first, first + n):
        stream = _stream(seed, chain, sweep)
        _fill_lists(place_of, z, document_starts, list_starts, lengths, components, counts, of_word)
        for word in range(word_starts.size - 1):
            begin, end = word_starts[word], word_starts[word + 1]
            if begin == end:
                continue
            here = locus[word]
            eta, eta_total, total, inverse = word_prior[word], locus_prior[here], totals[here], inverses[here]
            _begin_word(z, begin, end, eta, inverse, of_word, ratio)
            for k in range(size):
                tree[leaves + k] = document_prior[k] * ratio[k]
            for node in range(leaves - 1, 0, -1):
                tree[node] = tree[2 * node] + tree[2 * node + 1]
            for i in range(begin, end):
                d, old = document[i], z[i]
                start, length = list_starts[d], lengths[d]
                place, mass, other = start, 0.0, 0.0
                for p in range(start, start + length - 1, 2):  # two sums side by side
                    k, other_k = components[p], components[p + 1]
                    mass += counts[p] * ratio[k]
                    other += counts[p + 1] * ratio[other_k]
                    place = p if k == old else place
                    place = p + 1 if other_k == old else place
                if length % 2:
                    p = start + length - 1
                    mass += counts[p] * ratio[components[p]]
                    place = p if components[p] == old else place
                without = (eta + of_word[old] - 1.0) / (eta_total + total[old] - 1.0)
                stay = (counts[place] - 1.0 + document_prior[old]) * without
                mass += other - counts[place] * ratio[old]
                level = _uniform(stream, i) * (stay + mass + (tree[1] - tree[leaves + old]))
                if level < stay:
                    continue
                level -= stay
                if level < mass:
                    found, new = place, old  # stay so if rounding leaves nothing
                    for p in range(start, start + length):
                        if p != place:
                            found, new = p, components[p]
                            level -= counts[p] * ratio[new]
                            if level < 0.0:
                                break
                else:
                    new, found = min(_other_leaf(tree, leaves, old, level - mass), size - 1), start
                    while found < start + length and components[found] != new:
                        found += 1
                if new == old:
                    continue
                if found == start + length:
                    components[found], counts[found] = new, 0
                    length += 1
                counts[found] += 1
                counts[place] -= 1
                if counts[place] == 0:
                    length -= 1
                    components[place], counts[place] = components[start + length], counts[start + length]
                lengths[d] = length
                _move(z, i, new, eta, eta_total, total, inverse, of_word, ratio)
                _set_leaf(tree, leaves + old, document_prior[old] * ratio[old])
                _set_leaf(tree, leaves + new, document_prior[new] * ratio[new])


@kernel(called_by="python")
def log_rising(starts, z, group_prior, component_prior, seen):
    """``sum log(prior + number before)`` over tokens, where the number before counts the tokens of the same group and
    component that came earlier: the logarithm of all rising factorials ``Gamma(prior + count) / Gamma(prior)``.

    The prior is that of the group plus that of the component. `seen`, of K zeros, is work space and stays zero.
    """
    value, product = 0.0, 1.0
    for group in range(starts.size - 1):
        for i in range(starts[group], starts[group + 1]):
            k = z[i]
            product *= group_prior[group] + component_prior[k] + seen[k]
            seen[k] += 1
            if not 1e-100 < product < 1e100:  # a logarithm now and then, not at every token
                value += np.log(product)
                product = 1.0
        for i in range(starts[group], starts[group + 1]):
            seen[z[i]] = 0
    return value + np.log(product)


@kernel(called_by="python")
def add_draw(document, word, locus, z, weights, counts, members, squares, frequencies):
    """Add the counts of a draw, and their squares, to `members` and `squares` (documents, K); and to `frequencies`
    (words, K) for each token its weight, ``1 / (sum eta + t_k)`` of its locus. `counts` is work space.
    """
    for d in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            counts[d, k] = 0
    for i in range(z.size):
        counts[document[i], z[i]] += 1
        frequencies[word[i], z[i]] += weights[locus[word[i]], z[i]]
    for d in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            members[d, k] += counts[d, k]
            squares[d, k] += counts[d, k] * counts[d, k]
