"""Compiled loops over junction trees: scores, marginals, best labellings, and the updates of dual ascent.

`layout`, `features` and `rows` are those of `tree_layout`. The tables of a clique are consecutive, and so are the
numbers that share an entry of its separator: a *block*. Messages go up on logarithms, with the largest of each block
subtracted, and leave the probabilities of a clique given its separator. Down go only sums and products of these, so
that scores of any size give marginals that are finite and agree.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log, soft
from cumulant.optim.finite_sums.sum_tree_kernels import draw, remember
from cumulant.sequences.solvers.dual_ascent_kernels import advance, step_length, sums

_FAST = {"reassoc", "contract", "nsz"}


# Scores ---------------------------------------------------------------------------------------------------------------


@kernel(called_by="kernels")
def _table(layout, c, tables):
    """The table of clique `c` among those of its graph."""
    return tables[layout.tables[c] : layout.tables[c] + layout.states[c] * layout.blocks[c]]


@kernel(called_by="kernels", fastmath=_FAST)
def _spread(layout, which, values, table):
    """Adds to each entry of a table the one of `values` to which the map `which` takes it."""
    place, chunk = layout.map_starts[which], layout.chunks[which]
    for start in range(0, len(table), chunk):
        p = layout.maps[place]
        place += 1
        if layout.steps[which] == 0:
            value = values[p]
            for e in range(chunk):
                table[start + e] += value
        else:
            for e in range(chunk):
                table[start + e] += values[p + e]


@kernel(called_by="kernels", fastmath=_FAST)
def _project(layout, which, table, out):
    """The sums of a table over the entries that the map `which` takes to the same place."""
    out[:] = 0.0
    place, chunk = layout.map_starts[which], layout.chunks[which]
    for start in range(0, len(table), chunk):
        p = layout.maps[place]
        place += 1
        if layout.steps[which] == 0:
            total = 0.0
            for e in range(chunk):
                total += table[start + e]
            out[p] += total
        else:
            for e in range(chunk):
                out[p + e] += table[start + e]


@kernel(called_by="kernels", fastmath=_FAST)
def _factor_scores(weights, threshold, features, f, out):
    """The scores of the entries of factor `f`, with the weights ``soft(weights, threshold)``."""
    out[:] = 0.0
    for e in range(features.indptr[f], features.indptr[f + 1]):
        value, column = features.values[e], features.columns[e]
        own = weights[column : column + len(out)]
        if threshold > 0.0:
            for k in range(len(out)):
                out[k] += value * soft(own[k], threshold)
        else:
            for k in range(len(out)):
                out[k] += value * own[k]


@kernel(called_by="kernels", fastmath=_FAST)
def _score_tables(weights, threshold, layout, features, i, scores, one):
    """The score of each entry of each clique of graph `i`: the sum of the factors that are counted there."""
    scores[:] = 0.0
    structure = layout.structures[i]
    first = layout.factors[structure]
    for j in range(first, layout.factors[structure + 1]):
        own = one[: layout.widths[j]]
        _factor_scores(weights, threshold, features, layout.factor_offsets[i] + j - first, own)
        _spread(layout, layout.entries[j], own, _table(layout, layout.homes[j], scores))


@kernel(fastmath=_FAST)
def gold_scores(weights, features, entries, out):
    """The score of the entry ``entries[f]`` of every factor."""
    for f in range(len(entries)):
        total = 0.0
        for e in range(features.indptr[f], features.indptr[f + 1]):
            total += features.values[e] * weights[features.columns[e] + entries[f]]
        out[f] = total


# Messages -------------------------------------------------------------------------------------------------------------


@kernel(fastmath=_FAST | {"nnan"})  # the largest of several is found by vector instructions where none is NaN
def _shares(row):
    """Scores become probabilities; returns the logarithm of the sum of their exponentials."""
    highest = row[0]
    for e in range(1, len(row)):
        highest = max(highest, row[e])
    total = 0.0
    for e in range(len(row)):
        row[e] = fast_exp(row[e] - highest)
        total += row[e]
    scale = 1.0 / total
    for e in range(len(row)):
        row[e] *= scale
    return highest + np.log(total)


@kernel(called_by="kernels", fastmath=_FAST)
def _upward(layout, i, tables, message):
    """Scores become the probabilities of each clique given its separator; returns the log-partition function."""
    structure, log_z = layout.structures[i], 0.0
    for c in range(layout.cliques[structure + 1] - 1, layout.cliques[structure] - 1, -1):
        own, block = _table(layout, c, tables), layout.blocks[c]
        for s in range(layout.states[c]):
            message[s] = _shares(own[s * block : (s + 1) * block])
        if layout.parents[c] < 0:
            log_z += message[0]
        else:
            _spread(layout, layout.down[c], message, _table(layout, layout.parents[c], tables))
    return log_z


@kernel(called_by="kernels")
def _separator_marginal(layout, c, tables, separators):
    """The marginal of the separator of `c`, from the clique above; 1 for a root. It is returned."""
    out = separators[layout.separators[c] : layout.separators[c] + layout.states[c]]
    if layout.parents[c] < 0:
        out[0] = 1.0
    else:
        _project(layout, layout.down[c], _table(layout, layout.parents[c], tables), out)
    return out


@kernel(called_by="kernels", fastmath=_FAST)
def _downward(layout, i, tables, separators):
    """Probabilities given the separators become marginals of the cliques and of the separators."""
    structure = layout.structures[i]
    for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
        own, block = _table(layout, c, tables), layout.blocks[c]
        shares = _separator_marginal(layout, c, tables, separators)
        for s in range(len(shares)):
            for e in range(s * block, (s + 1) * block):
                own[e] *= shares[s]


@kernel(called_by="kernels")
def tree_marginals(layout, i, scores, tables, separators, message):
    """The marginals of all cliques and separators of graph `i`; returns the log-partition function."""
    for e in range(len(scores)):
        tables[e] = scores[e]
    log_z = _upward(layout, i, tables, message)
    _downward(layout, i, tables, separators)
    return log_z


@kernel(called_by="kernels")
def _beliefs(layout, i, tables, starts, out):
    """The marginals of all factors of graph `i`; that of factor ``f`` begins at ``starts[f]``."""
    structure = layout.structures[i]
    first = layout.factors[structure]
    for j in range(first, layout.factors[structure + 1]):
        start = starts[layout.factor_offsets[i] + j - first]
        own = out[start : start + layout.widths[j]]
        _project(layout, layout.entries[j], _table(layout, layout.homes[j], tables), own)


# All graphs -----------------------------------------------------------------------------------------------------------


@kernel(called_by="kernels")
def _own(offsets, i, values):
    return values[offsets[i] : offsets[i + 1]]


@kernel(called_by="kernels")
def _cut(offsets, i, work):
    """As much of the work space as graph `i` needs."""
    return work[: offsets[i + 1] - offsets[i]]


@kernel
def log_partitions_of(weights, layout, features, first, last, work, out):
    """The log-partition functions of the graphs ``first:last``."""
    for i in range(first, last):
        tables = _cut(layout.table_offsets, i, work.tables)
        _score_tables(weights, 0.0, layout, features, i, tables, work.one)
        out[i] = _upward(layout, i, tables, work.message)


@kernel
def expectations_of(weights, layout, features, first, last, work, starts, log_z, beliefs):
    """The log-partition functions of the graphs ``first:last`` and the marginals of their factors."""
    for i in range(first, last):
        tables = _cut(layout.table_offsets, i, work.tables)
        _score_tables(weights, 0.0, layout, features, i, tables, work.one)
        log_z[i] = _upward(layout, i, tables, work.message)
        _downward(layout, i, tables, _cut(layout.separator_offsets, i, work.separators))
        _beliefs(layout, i, tables, starts, beliefs)


@kernel
def node_marginals(weights, layout, features, first, last, work, labels, out):
    """The marginals of the variables of the graphs ``first:last``, with `labels` labels.

    Every variable belongs to exactly one clique in whose separator it is not.
    """
    out[layout.variable_offsets[first] : layout.variable_offsets[last]] = 0.0
    for i in range(first, last):
        tables, structure = _cut(layout.table_offsets, i, work.tables), layout.structures[i]
        _score_tables(weights, 0.0, layout, features, i, tables, work.one)
        _upward(layout, i, tables, work.message)
        _downward(layout, i, tables, _cut(layout.separator_offsets, i, work.separators))
        for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
            own, stride = _table(layout, c, tables), layout.blocks[c]
            for p in range(layout.scopes[c] + layout.shared[c], layout.scopes[c + 1]):
                stride //= labels
                target = out[layout.variable_offsets[i] + layout.variables[p]]
                for e in range(len(own)):
                    target[e // stride % labels] += own[e]


@kernel(called_by="kernels")
def _best_up(layout, i, tables, best, message):
    """Max-product messages; leaves in `best` the best of each block."""
    structure = layout.structures[i]
    for c in range(layout.cliques[structure + 1] - 1, layout.cliques[structure] - 1, -1):
        own, block = _table(layout, c, tables), layout.blocks[c]
        for s in range(layout.states[c]):
            row = own[s * block : (s + 1) * block]
            chosen = np.argmax(row)
            best[layout.separators[c] + s], message[s] = chosen, row[chosen]
        if layout.parents[c] >= 0:
            _spread(layout, layout.down[c], message, _table(layout, layout.parents[c], tables))


@kernel
def best_labels(weights, layout, features, first, last, work, labels, out):
    """The labelling of highest score of each of the graphs ``first:last``, with `labels` labels."""
    best = np.empty(len(work.separators), dtype=np.int64)
    for i in range(first, last):
        tables, structure = _cut(layout.table_offsets, i, work.tables), layout.structures[i]
        _score_tables(weights, 0.0, layout, features, i, tables, work.one)
        _best_up(layout, i, tables, best, work.message)
        own = _own(layout.variable_offsets, i, out)
        for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
            state, middle = 0, layout.scopes[c] + layout.shared[c]
            for p in range(layout.scopes[c], middle):
                state = state * labels + own[layout.variables[p]]
            rest = best[layout.separators[c] + state]
            for p in range(layout.scopes[c + 1] - 1, middle - 1, -1):
                own[layout.variables[p]] = rest % labels
                rest //= labels


# Dual variables -------------------------------------------------------------------------------------------------------


@kernel
def start_trees(layout, truth, labels, epsilon, first, last, cliques, separators):
    """Marginals of ``epsilon`` of the uniform distribution and ``1 - epsilon`` on the labels `truth`."""
    for i in range(first, last):
        structure, own = layout.structures[i], _own(layout.variable_offsets, i, truth)
        tables, shares = _own(layout.table_offsets, i, cliques), _own(layout.separator_offsets, i, separators)
        for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
            table, begin, states = _table(layout, c, tables), layout.separators[c], layout.states[c]
            table[:] = epsilon / len(table)
            shares[begin : begin + states] = epsilon / states
            entry, middle = 0, layout.scopes[c] + layout.shared[c]
            for p in range(layout.scopes[c], layout.scopes[c + 1]):
                if p == middle:
                    shares[begin + entry] += 1.0 - epsilon
                entry = entry * labels + own[layout.variables[p]]
            if middle == layout.scopes[c + 1]:
                shares[begin + entry] += 1.0 - epsilon
            table[entry] += 1.0 - epsilon


@kernel
def factor_marginals(layout, cliques, first, last, starts, out):
    """The marginals of the factors of the graphs ``first:last``, whose cliques have the marginals `cliques`."""
    for i in range(first, last):
        _beliefs(layout, i, _own(layout.table_offsets, i, cliques), starts, out)


@kernel(called_by="kernels", fastmath=_FAST)
def _negative_entropy(probabilities):
    total = 0.0
    for e in range(len(probabilities)):
        value = np.float64(probabilities[e])
        total += value * fast_log(value)
    return total


@kernel
def entropies_of(layout, cliques, separators, first, last, out):
    """``sum_C H(mu_C) - sum_S H(mu_S)`` of the graphs ``first:last``: the entropy with these marginals."""
    for i in range(first, last):
        below = _negative_entropy(_own(layout.separator_offsets, i, separators))
        out[i] = below - _negative_entropy(_own(layout.table_offsets, i, cliques))


@kernel(called_by="kernels", fastmath=_FAST)
def _inner(first, second):
    total = 0.0
    for e in range(len(first)):
        total += first[e] * second[e]
    return total


@kernel
def all_marginals(weights, layout, features, first, last, work, cliques, separators):
    """The marginals of the cliques and separators of the graphs ``first:last``; `cliques` may be float32."""
    for i in range(first, last):
        tables, out = _cut(layout.table_offsets, i, work.tables), _own(layout.table_offsets, i, cliques)
        _score_tables(weights, 0.0, layout, features, i, tables, work.one)
        _upward(layout, i, tables, work.message)
        _downward(layout, i, tables, _own(layout.separator_offsets, i, separators))
        for e in range(len(out)):
            out[e] = tables[e]


@kernel(called_by="kernels", fastmath=_FAST)
def _conditional_block(row, share, out):
    """`share` of the probabilities proportional to `row`; returns their part of the entropy by the chain rule."""
    total = 0.0
    for e in range(len(row)):
        total += row[e]
    inverse = 1.0 / total if total > 0.0 else 0.0
    rest = 0.0 if total > 0.0 else 1.0 / len(row)  # nothing is known: uniform
    spread = 0.0
    for e in range(len(row)):
        conditional = row[e] * inverse + rest
        spread -= conditional * fast_log(conditional)
        out[e] = share * conditional
    return share * spread


@kernel
def tree_distributions(layout, cliques, first, last, work, starts, beliefs, entropy):
    """A distribution over the labellings of each of the graphs ``first:last``, whatever numbers `cliques` holds.

    It has the conditional probabilities of each clique given its separator; where `cliques` are the marginals of a
    distribution on the tree, it is that one. Fills the marginals of its factors and `entropy`, none of whose terms is
    negative.
    """
    for i in range(first, last):
        structure, source = layout.structures[i], _own(layout.table_offsets, i, cliques)
        tables, value = _cut(layout.table_offsets, i, work.tables), 0.0
        for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
            given, own, block = _table(layout, c, source), _table(layout, c, tables), layout.blocks[c]
            shares = _separator_marginal(layout, c, tables, work.separators)
            for s in range(len(shares)):
                span = slice(s * block, (s + 1) * block)
                value += _conditional_block(given[span], shares[s], own[span])
        entropy[i] = value
        _beliefs(layout, i, tables, starts, beliefs)


# Dual ascent ----------------------------------------------------------------------------------------------------------


@kernel(called_by="kernels", fastmath=_FAST)
def _collect(layout, features, rows, i, step, one, out):
    """The features of graph `i` weighted by `step`, laid out as `rows` says in `out`; returns their squared norm."""
    structure = layout.structures[i]
    first, size = layout.factors[structure], 0
    for r in range(rows.starts[i], rows.starts[i + 1]):
        size += rows.widths[r]
    out[:size] = 0.0
    for j in range(first, layout.factors[structure + 1]):
        own, f = one[: layout.widths[j]], layout.factor_offsets[i] + j - first
        _project(layout, layout.entries[j], _table(layout, layout.homes[j], step), own)
        for e in range(features.indptr[f], features.indptr[f + 1]):
            value, target = features.values[e], out[rows.places[e] : rows.places[e] + len(own)]
            for k in range(len(own)):
                target[k] += value * own[k]
    norm = 0.0
    for k in range(size):
        norm += out[k] * out[k]
    return norm


@kernel(called_by="kernels", fastmath=_FAST)
def _move(rows, i, direction, amount, weights):
    """Adds `amount` times the direction of graph `i` to the weights."""
    place = 0
    for r in range(rows.starts[i], rows.starts[i + 1]):
        target = weights[rows.columns[r] : rows.columns[r] + rows.widths[r]]
        for k in range(len(target)):
            target[k] += amount * direction[place + k]
        place += len(target)


@kernel
def ascend_trees(
    weights, threshold, layout, features, rows, cliques, separators, members, gaps, tree, importance, drawing, search,
    scale, sigma, updates, source, counters, work,
):  # fmt: skip
    """`updates` updates of dual ascent on the graphs `members`: see `dual_ascent_kernels.ascend` for chains.

    `cliques` and `separators` are the dual variables; `drawing` is ``(scheme, nonuniformity)``, `search`
    ``(subprecision, max_evaluations, straightness, method, steps)``, and `source` ``(seed, block, sweep)``.
    """
    scheme, nonuniformity = drawing
    seed, block, sweep = source
    for u in range(updates):
        m = draw(scheme, nonuniformity, tree, len(members), seed, block, sweep, u)
        i = members[m]
        mu, mu_below = _own(layout.table_offsets, i, cliques), _own(layout.separator_offsets, i, separators)
        scores, step = work.scores[: len(mu)], work.tables[: len(mu)]
        step_below = work.separators[: len(mu_below)]
        _score_tables(weights, threshold, layout, features, i, scores, work.one)
        log_z = tree_marginals(layout, i, scores, step, step_below, work.message)

        # The gap KL(mu || nu), and the slope at zero KL(mu || nu) + KL(nu || mu): <step, scores> - sum step log mu.
        cross, own, mean_score = sums(mu, step, scores)
        cross_below, own_below, _ = sums(mu_below, step_below, mu_below)
        gaps[i] = max(own - own_below - mean_score + log_z, 0.0)
        remember(scheme, tree, m, gaps[i], importance[i])
        counters[0] += 1.0
        gain = _inner(step, scores)
        slope = gain - cross + cross_below
        if slope <= 0.0:
            continue
        curvature = sigma * _collect(layout, features, rows, i, step, work.one, work.direction) / scale
        gamma = step_length(
            mu, step, mu_below, step_below, -1.0, gain, slope, curvature, gaps[i], *search, i, counters
        )  # fmt: skip
        advance(mu, step, gamma)
        advance(mu_below, step_below, gamma)
        _move(rows, i, work.direction, -sigma * gamma / scale, weights)
        counters[2] += gamma
    return updates
