"""Messages to who is independent: sweeps that serve belief propagation and the convergent double loop alike.

Variables are ``z_x``, independent or not. Factors are the pairs, ``n (n - 1) / 2`` of them, and one for each person:
the attribute, both ORs and the gates of that person, a tree, inside of which messages are exact. A message to a binary
variable is the ratio of its two numbers. For a variable in turn, all ratios ``r_C`` of its factors are computed from
the odds that the other variables send, and then

    log odds = offset + share * sum_C log r_C,      odds sent to C = odds / r_C.

With ``offset = logit(prior)`` and ``share = 1`` that is belief propagation. With ``share = 1 / d`` and ``offset =
((d - 1) log odds_old + logit(prior)) / d``, ``d`` the number of factors, it is exact coordinate ascent on the dual of
the convex problem inside an outer loop of the double loop (Heskes 2006). The fixed points are the same.

State of a run: `ratios` (n, n) of the pairs, ``ratios[x, y]`` sent to ``x``; `own` (n,) of the factor of each person to
that person; `gate` of it to each friend, one for each entry of `others`; `none`, the log-probability that a gate is
shut; `silent` (n, 2), sums of `none` over the friends without and with the attribute, log-probabilities that an OR is
false; `belief` (n, 2); `log_odds` (n,).
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.relational.or_kernels import or_to_aggregate, or_to_cause

_LARGE, _SMALL = 1e100, 1e-100
_FIRST_SHARE, _LEAST_SHARE = 0.25, 0.02
_NEARLY = 1e3  # times the tolerance: from there on all changes are measured in full
_ROUNDING = 1e-12  # of a free energy
_CANCELLED = 1e-3  # a difference that is smaller than this share of what it was taken from is summed anew


@kernel(called_by="kernels")
def _damped(old, new, damping):
    return new if damping == 0.0 else old * (new / old) ** (1.0 - damping)


@kernel(called_by="kernels")
def _change(old, new, no, yes):
    """How much a message to a variable with the belief ``(no, yes)`` changes: as a distribution, or, if that is more,
    by how much the belief of its factor differs from that of the variable, the odds of which are ``yes new / no old``.

    Where messages of both extremes meet, all of them may stand still as distributions while the belief moves.
    """
    step = abs(new - old)
    return max(step / ((1.0 + new) * (1.0 + old)), no * yes * step / (no * old + yes * new))


@kernel(called_by="kernels")
def _share_of_habit(x, habit, silent, likelihood):
    """``p(attribute | z_x = 0)``, and for each kind of friends the same with their OR false and with it true.

    `likelihood` (5,): the mixture; encouraged no, yes; discouraged no, yes.
    """
    with_0, with_1 = or_to_aggregate(silent[x, 1])
    without_0, without_1 = or_to_aggregate(silent[x, 0])
    likelihood[1] = without_0 * habit[1] + without_1 * habit[2]
    likelihood[2] = without_0 * habit[3] + without_1 * habit[4]
    likelihood[3] = with_0 * habit[1] + with_1 * habit[3]
    likelihood[4] = with_0 * habit[2] + with_1 * habit[4]
    likelihood[0] = with_0 * likelihood[1] + with_1 * likelihood[2]


@kernel(called_by="kernels")
def _sum_anew(x, left_out, kind, attribute, starts, others, none):
    """``silent[x, kind]`` from its terms, without one gate, or with all where `left_out` is -1.

    A sum that is kept and updated loses the small terms where one was large, and could become positive.
    """
    total = 0.0
    for g in range(starts[x], starts[x + 1]):
        if g != left_out and attribute[others[g]] == kind:
            total += none[g]
    return total


@kernel(called_by="kernels")
def _swaying(x, kind, rest, habit, own, belief, likelihood):
    """What the factor of `x` says of one of its gates being shut, and open; `rest` is `silent` without that gate."""
    alone, depends = belief[x, 1] / own[x] * habit[0], belief[x, 0]
    first = 1 if kind == 1 else 3
    false, true = alone + depends * likelihood[first], alone + depends * likelihood[first + 1]
    return or_to_cause(false, true, rest)


@kernel(called_by="kernels")
def _shut(y, ratio, is_open, strength, belief):
    """The log-probability that `y` does not sway through a gate."""
    able = 1.0
    if not is_open:
        yes = belief[y, 1] / ratio
        able = yes / (belief[y, 0] + yes)
    return np.log1p(-strength * able)


@kernel(called_by="kernels")
def _refresh(layout, tables, ordered, gate, none, silent, belief):
    """`none` and `silent` from the beliefs: once a sweep, so that rounding does not pile up."""
    attribute, starts, others, _, _ = layout
    sway = tables[2]
    for x in range(attribute.size):
        silent[x, 0], silent[x, 1] = 0.0, 0.0
        for g in range(starts[x], starts[x + 1]):
            y = others[g]
            none[g] = _shut(y, gate[g], ordered and y < x, sway[attribute[y]], belief)
            silent[x, attribute[y]] += none[g]


@kernel(called_by="kernels")
def _believe(x, log_odds, belief):
    belief[x, 1] = 1.0 / (1.0 + np.exp(-log_odds[x]))
    belief[x, 0] = 1.0 / (1.0 + np.exp(log_odds[x]))


@kernel(called_by="kernels")
def _sweep(layout, tables, ordered, offset, share, damping, careful, state, likelihood, row):
    """All variables in turn; the largest change of a message before it is damped: see `_change`, whose second part is
    left out for pairs unless `careful`.

    Of damped messages the change can be as small as one likes, far from any fixed point.
    """
    attribute, starts, others, mirror, code = layout
    pair, habit, sway, _ = tables
    ratios, own, gate, none, silent, belief, log_odds = state
    n, change = attribute.size, 0.0
    _refresh(layout, tables, ordered, gate, none, silent, belief)
    for x in range(n):
        top, bottom = 0.0, 1.0  # the largest change so far is top / bottom
        no, yes = belief[x, 0], belief[x, 1]
        if careful:
            row[:] = ratios[x]
        total, product = 0.0, 1.0
        for y in range(n):
            if y == x:
                continue
            c = code[x, y]
            sent_no, sent_yes = belief[y, 0] * ratios[y, x], belief[y, 1]
            new = (pair[c, 2] * sent_no + pair[c, 3] * sent_yes) / (pair[c, 0] * sent_no + pair[c, 1] * sent_yes)
            old = ratios[x, y]
            scale = (1.0 + new) * (1.0 + old)
            if abs(new - old) * bottom > top * scale:
                top, bottom = abs(new - old), scale
            if damping > 0.0:
                new = _damped(old, new, damping)
            ratios[x, y] = new
            product *= new
            if not _SMALL < product < _LARGE:
                total += np.log(product)
                product = 1.0
        change = max(change, top / bottom)
        if careful:
            for y in range(n):
                if y != x:
                    new = _damped(row[y], ratios[x, y], -damping / (1.0 - damping))  # before it was damped
                    change = max(change, _change(row[y], new, no, yes))
        total += np.log(product)
        mine = habit[attribute[x]]
        _share_of_habit(x, mine, silent, likelihood)
        new, old = mine[0] / likelihood[0], own[x]
        change = max(change, _change(old, new, no, yes))
        own[x] = _damped(old, new, damping)
        total += np.log(own[x])
        strength, kind = sway[attribute[x]], attribute[x]
        for e in range(starts[x], starts[x + 1]):
            other, g = others[e], mirror[e]
            if ordered and x < other:
                continue
            mine = habit[attribute[other]]
            _share_of_habit(other, mine, silent, likelihood)
            rest = silent[other, kind] - none[g]
            if rest >= _CANCELLED * silent[other, kind]:
                rest = _sum_anew(other, g, kind, attribute, starts, others, none)
            shut, opened = _swaying(other, kind, rest, mine, own, belief, likelihood)
            new = (1.0 - strength) + strength * opened / shut
            old = gate[g]
            change = max(change, _change(old, new, no, yes))
            gate[g] = _damped(old, new, damping)
            total += np.log(gate[g])
        log_odds[x] = offset[x] + share[x] * total
        _believe(x, log_odds, belief)
        for e in range(starts[x], starts[x + 1]):
            other, g = others[e], mirror[e]
            if ordered and x < other:
                continue
            before, none[g] = none[g], _shut(x, gate[g], False, strength, belief)
            silent[other, kind] += none[g] - before
            if silent[other, kind] > _CANCELLED * before:
                silent[other, kind] = _sum_anew(other, -1, kind, attribute, starts, others, none)
        if not np.isfinite(total):
            return np.nan
    return change


@kernel(called_by="kernels")
def _propagate(layout, tables, ordered, offset, share, damping, max_sweeps, tol, trace, state, likelihood):
    change, careful, row = np.inf, False, np.empty(layout[0].size)
    for sweep in range(max_sweeps):
        careful = careful or sweep == max_sweeps - 1
        change = _sweep(layout, tables, ordered, offset, share, damping, careful, state, likelihood, row)
        if trace.size:
            trace[sweep] = change
        if np.isnan(change) or (careful and change <= tol):
            return sweep + 1, change
        careful = change <= _NEARLY * tol
    return max_sweeps, change


@kernel(called_by="kernels")
def log_prior_odds(tables):
    """``logit`` of the prior, infinite where it leaves no choice."""
    prior = tables[3]
    if prior[0] == 0.0:
        return np.inf
    return -np.inf if prior[1] == 0.0 else np.log(prior[1]) - np.log(prior[0])


@kernel(called_by="both")
def propagate(layout, tables, ordered, damping, max_sweeps, tol, trace, state):
    """Belief propagation from `state`, which is changed in place: the number of sweeps, and the last change."""
    n = layout[0].size
    offset, share = np.full(n, log_prior_odds(tables)), np.ones(n)
    return _propagate(layout, tables, ordered, offset, share, damping, max_sweeps, tol, trace, state, np.empty(5))


@kernel(called_by="kernels")
def _copy(source, target):
    """The state of a run, into that of another."""
    target[0][:], target[1][:], target[2][:], target[3][:] = source[0], source[1], source[2], source[3]
    target[4][:], target[5][:], target[6][:] = source[4], source[5], source[6]


@kernel(called_by="both")
def descend(layout, tables, ordered, linearised, max_loops, tol, inner_sweeps, inner_tol, trace, state):
    """The double loop from the beliefs and messages of `state`: outer loops, the last change of a belief or, if that is
    larger, of a message of the inner loop, and whether it settled: neither changes any more.

    An outer loop replaces the share `linearised` of the entropies ``(d - 1) H(q_x)`` by tangents. With 1 the rest is
    convex and the free energy cannot rise. Where `linearised` is 0 shares below 1 are tried, which takes larger steps:
    a step is kept if its inner loop became consistent and the free energy did not rise, and is else taken back and done
    with a share four times as large. ``trace[t]``, where there is room, is the free energy after outer loop ``t``.
    """
    attribute, starts, others, _, _ = layout
    belief, log_odds = state[5], state[6]
    n, prior, settled = attribute.size, log_prior_odds(tables), False
    change, inner = np.inf, np.inf
    offset, share, degree, likelihood = np.empty(n), np.empty(n), np.empty(n), np.empty(5)
    nothing = np.empty(0)
    for x in range(n):
        degree[x] = n  # the other n - 1 people, and the factor of the person
        for e in range(starts[x], starts[x + 1]):
            degree[x] += 0 if ordered and x < others[e] else 1
    adapts = linearised == 0.0
    eta, value = (_FIRST_SHARE if adapts else linearised), np.inf
    before = (
        state[0].copy(), state[1].copy(), state[2].copy(), state[3].copy(), state[4].copy(), belief.copy(),
        log_odds.copy(),
    )  # fmt: skip
    for loop in range(max_loops):
        _copy(state, before)
        while True:
            for x in range(n):
                tangent = eta * (degree[x] - 1.0)
                share[x] = 1.0 / (1.0 + tangent)
                offset[x] = share[x] * (tangent * log_odds[x] + prior) if tangent > 0.0 else prior
            _, inner = _propagate(
                layout, tables, ordered, offset, share, 0.0, inner_sweeps, inner_tol, nothing, state, likelihood
            )
            now = free_energy(layout, tables, ordered, state)
            if eta >= 1.0 or not adapts or (inner <= inner_tol and now <= value + _ROUNDING * abs(value)):
                break
            eta = min(1.0, 4.0 * eta)
            _copy(before, state)
        change, value = 0.0, now
        for x in range(n):
            change = max(change, abs(belief[x, 1] - before[5][x, 1]))
        if trace.size:
            trace[loop] = now
        settled = change <= tol and inner <= inner_tol
        if settled or np.isnan(now):
            return loop + 1, max(change, inner), settled
        if adapts:
            eta = max(_LEAST_SHARE, eta / 2.0)
    return max_loops, max(change, inner), settled


@kernel(called_by="kernels")
def _of_person(x, layout, tables, ordered, state, likelihood):
    """``log Z`` of the factor of a person, over odds sent as (belief of 0, belief of 1 over the ratio)."""
    attribute, starts, others, _, _ = layout
    own, gate, silent, belief = state[1], state[2], state[4], state[5]
    mine = tables[1][attribute[x]]
    _share_of_habit(x, mine, silent, likelihood)
    value = np.log(belief[x, 1] / own[x] * mine[0] + belief[x, 0] * likelihood[0])
    for g in range(starts[x], starts[x + 1]):
        y = others[g]
        if not (ordered and y < x):
            value += np.log(belief[y, 0] + belief[y, 1] / gate[g])
    return value


@kernel(called_by="kernels")
def _of_variable(x, layout, tables, ordered, state):
    """``-H(q) - q(1) sum log r - E log prior`` of a variable."""
    attribute, starts, others, mirror, _ = layout
    ratios, own, gate, belief = state[0], state[1], state[2], state[5]
    prior = tables[3]
    total, product = np.log(own[x]), 1.0
    for y in range(attribute.size):
        if y != x:
            product *= ratios[x, y]
            if not _SMALL < product < _LARGE:
                total += np.log(product)
                product = 1.0
    total += np.log(product)
    for e in range(starts[x], starts[x + 1]):
        if not (ordered and x < others[e]):
            total += np.log(gate[mirror[e]])
    value = -belief[x, 1] * total
    for z in range(2):
        if belief[x, z] > 0.0:
            value += belief[x, z] * (np.log(belief[x, z]) - np.log(prior[z]))
    return value


@kernel(called_by="both")
def free_energy(layout, tables, ordered, state):
    """The Bethe free energy: exact for beliefs that agree, such as those of a fixed point.

    ``sum_C sum q_C log(q_C / f_C) = -log Z_C + sum_j sum q_j log(odds sent)`` for pairs and for ORs alike.
    """
    code, pair = layout[4], tables[0]
    ratios, gate, none, silent, belief = state[0], state[2], state[3], state[4], state[5]
    n, likelihood = layout[0].size, np.empty(5)
    _refresh(layout, tables, ordered, gate, none, silent, belief)
    value, total, product = 0.0, 0.0, 1.0
    for x in range(n):
        value += _of_variable(x, layout, tables, ordered, state) - _of_person(
            x, layout, tables, ordered, state, likelihood
        )
        for y in range(x + 1, n):
            c, a, b = code[x, y], belief[x, 1] / ratios[x, y], belief[y, 1] / ratios[y, x]
            product *= belief[x, 0] * (pair[c, 0] * belief[y, 0] + pair[c, 1] * b) + a * (
                pair[c, 2] * belief[y, 0] + pair[c, 3] * b
            )
            if not _SMALL < product < _LARGE:
                total += np.log(product)
                product = 1.0
    return value - total - np.log(product)


@kernel(called_by="python")
def read_off(layout, tables, ordered, state, pair_sums, pairs, habits, swayed, able):
    """Beliefs of pairs, of the factor of each person and of gates; `pairs` (n, n, 4) may have no entries.

    `habits` (n, 2, 2, 2) is of ``(z, encouraged, discouraged)``; `swayed` and `able` of the entries of `others`.
    """
    attribute, starts, others, _, code = layout
    pair, habit, _, _ = tables
    ratios, own, gate, none, silent, belief, _ = state
    n, likelihood, cell = attribute.size, np.empty(5), np.empty(4)
    _refresh(layout, tables, ordered, gate, none, silent, belief)
    for x in range(n):
        for y in range(x + 1, n):
            c, a, b = code[x, y], belief[x, 1] / ratios[x, y], belief[y, 1] / ratios[y, x]
            cell[0], cell[1] = pair[c, 0] * belief[x, 0] * belief[y, 0], pair[c, 1] * belief[x, 0] * b
            cell[2], cell[3] = pair[c, 2] * a * belief[y, 0], pair[c, 3] * a * b
            total = cell[0] + cell[1] + cell[2] + cell[3]
            for z in range(4):
                pair_sums[c, z] += cell[z] / total
            if pairs.size:
                for z in range(4):
                    pairs[x, y, z] = cell[z] / total
                    pairs[y, x, 2 * (z % 2) + z // 2] = cell[z] / total
        mine = habit[attribute[x]]
        _share_of_habit(x, mine, silent, likelihood)
        yes = belief[x, 1] / own[x] * mine[0]
        total = yes + belief[x, 0] * likelihood[0]
        for a in range(2):
            for b in range(2):
                mass = or_to_aggregate(silent[x, 1])[a] * or_to_aggregate(silent[x, 0])[b]
                habits[x, 0, a, b] = belief[x, 0] * mass * mine[1 + 2 * a + b] / total
                habits[x, 1, a, b] = yes * mass / total
        for g in range(starts[x], starts[x + 1]):
            y = others[g]
            able[g] = 1.0 if ordered and y < x else belief[y, 1]
            rest = silent[x, attribute[y]] - none[g]
            if rest >= _CANCELLED * silent[x, attribute[y]]:
                rest = _sum_anew(x, g, attribute[y], attribute, starts, others, none)
            shut, opened = _swaying(x, attribute[y], rest, mine, own, belief, likelihood)
            opened *= -np.expm1(none[g])
            swayed[g] = opened / (opened + np.exp(none[g]) * shut)
