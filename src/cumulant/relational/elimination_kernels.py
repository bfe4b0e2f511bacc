"""The joint with everything but ``z`` summed out: enumeration, Gibbs sampling and annealing.

``log p(s, f, z) = sum_x log prior(z_x) + sum_(x<y) log pair(z_x, z_y) + sum_x log habit(z_x, k_x, l_x)``, with ``k_x``
and ``l_x`` the numbers of friends with and without the attribute who are able to sway ``x``. A change of one ``z``
costs the number of ties of that person: pairs without a tie depend on how many people there are of each kind.

A state is ``z`` (n,), ``able`` (n, 2) with ``l`` and ``k``, and ``kinds`` (2, 2), people by attribute and ``z``. The
numbers of a dependent person ``x`` are at ``first[x] + k * (without + 1) + l``, ``without = width[x] - 1`` the friends
of the person that do not have the attribute.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel(called_by="both")
def habit_tables(attribute, first, width, log_habit, share, tables):
    """Of a dependent person by ``(k, m)``: ``log p(attribute)``; and ``share[.., 0 or 1]``, the probability that one
    of the ``m``, or ``k``, friends who are able to sways the person, given the attribute of the person; then ``share[..
    , 2:]``, the probabilities of ``2 encouraged + discouraged``.
    """
    _, habit, sway, _ = tables
    for x in range(attribute.size):
        mine = habit[attribute[x]]
        for at in range(first[x], first[x + 1]):
            k, m = (at - first[x]) // width[x], (at - first[x]) % width[x]
            none_k, none_m = k * np.log1p(-sway[1]), m * np.log1p(-sway[0])
            total = 0.0
            for a in range(2):
                for b in range(2):
                    p = (-np.expm1(none_k) if a else np.exp(none_k)) * (-np.expm1(none_m) if b else np.exp(none_m))
                    share[at, 2 + 2 * a + b] = p * mine[1 + 2 * a + b]
                    total += share[at, 2 + 2 * a + b]
            for cell in range(4):
                share[at, 2 + cell] /= total
            log_habit[at] = np.log(total)
            # given that the OR is true, a cause is true with probability sway / p(OR is true)
            share[at, 1] = sway[1] * (share[at, 4] + share[at, 5]) / -np.expm1(none_k) if k else 0.0
            share[at, 0] = sway[0] * (share[at, 3] + share[at, 5]) / -np.expm1(none_m) if m else 0.0


@kernel(called_by="kernels")
def _set_up(layout, ordered, z, able, kinds):
    """`able` and `kinds` of the people as they are."""
    attribute, starts, others, _, _ = layout
    kinds[:] = 0
    for x in range(attribute.size):
        kinds[attribute[x], z[x]] += 1
        able[x, 0], able[x, 1] = 0, 0
        for g in range(starts[x], starts[x + 1]):
            y = others[g]
            if z[y] == 1 or (ordered and y < x):
                able[x, attribute[y]] += 1


@kernel(called_by="kernels")
def _at(x, first, width, able):
    return first[x] + able[x, 1] * width[x] + able[x, 0]


@kernel(called_by="kernels")
def _energy(layout, log_pair, log_alone, first, width, log_habit, z, able):
    """The pairs and the attributes of a state; without the prior."""
    attribute, _, _, _, code = layout
    value = 0.0
    for x in range(attribute.size):
        value += log_alone[attribute[x]] if z[x] == 1 else log_habit[_at(x, first, width, able)]
        for y in range(x + 1, attribute.size):
            value += log_pair[code[x, y], 2 * z[x] + z[y]]
    return value


@kernel(called_by="kernels")
def _gain(x, layout, ordered, log_pair, log_alone, first, width, log_habit, z, able, kinds):
    """What the energy gains when ``z_x`` is 1 instead of 0, whatever it is now."""
    attribute, starts, others, _, _ = layout
    s = attribute[x]
    value = log_alone[s] - log_habit[_at(x, first, width, able)]
    for t in range(2):
        for v in range(2):
            count = kinds[t, v] - (1 if t == s and v == z[x] else 0)
            c = 4 * s + 2 * t
            value += count * (log_pair[c, 2 + v] - log_pair[c, v])
    for e in range(starts[x], starts[x + 1]):
        y = others[e]
        c, v = 4 * s + 2 * attribute[y], z[y]
        value += log_pair[c + 1, 2 + v] - log_pair[c + 1, v] - (log_pair[c, 2 + v] - log_pair[c, v])
        if v == 0 and not (ordered and x < y):
            step = width[y] if s == 1 else 1
            at = _at(y, first, width, able) - (step if z[x] == 1 else 0)
            value += log_habit[at + step] - log_habit[at]
    return value


@kernel(called_by="kernels")
def _flip(x, layout, ordered, z, able, kinds):
    attribute, starts, others, _, _ = layout
    s, step = attribute[x], 1 - 2 * z[x]
    kinds[s, z[x]] -= 1
    z[x] = 1 - z[x]
    kinds[s, z[x]] += 1
    for e in range(starts[x], starts[x + 1]):
        if not (ordered and x < others[e]):
            able[others[e], s] += step


@kernel(called_by="kernels")
def _collect(weight, layout, ordered, first, width, share, tables, z, able, sums):
    """Add the beliefs given ``z``, times `weight`."""
    attribute, starts, others, _, _ = layout
    sway = tables[2]
    mass, swayed, opened = sums
    for x in range(attribute.size):
        at = _at(x, first, width, able)
        mass[at, z[x]] += weight
        for g in range(starts[x], starts[x + 1]):
            y = others[g]
            if z[y] == 1 or (ordered and y < x):
                opened[g] += weight
                swayed[g] += weight * (sway[attribute[y]] if z[x] == 1 else share[at, attribute[y]])


@kernel(called_by="python")
def enumerate_states(layout, ordered, logs, first, width, log_habit, z, able, kinds, table):
    """``log p(s, f, z)`` of all ``z`` into `table` (2^n,) by the number with binary digits ``z``, person 0 first.

    Neighbours in the order of Gray differ in one person; every 4,096th energy is summed anew. Where `table` has one
    entry, the prior leaves no choice and it is that of the given ``z``.
    """
    log_pair, log_alone, log_prior = logs
    n = layout[0].size
    _set_up(layout, ordered, z, able, kinds)
    value, number = _energy(layout, log_pair, log_alone, first, width, log_habit, z, able), 0
    ones = 0
    for i in range(table.size):
        if i > 0:
            x = 0
            while (i >> x) & 1 == 0:
                x += 1
            gain = _gain(x, layout, ordered, log_pair, log_alone, first, width, log_habit, z, able, kinds)
            sign = 1 - 2 * z[x]
            _flip(x, layout, ordered, z, able, kinds)
            number ^= 1 << x
            ones += sign
            value += sign * gain
            if i % 4096 == 0:
                value = _energy(layout, log_pair, log_alone, first, width, log_habit, z, able)
        table[number] = value if table.size == 1 else value + ones * log_prior[1] + (n - ones) * log_prior[0]


@kernel(called_by="python")
def collect_states(layout, ordered, first, width, share, tables, z, able, kinds, table, both, sums):
    """Beliefs from the probabilities of all ``z``; `both` (n, n) is that of two people being independent."""
    n = layout[0].size
    _set_up(layout, ordered, z, able, kinds)
    number = 0
    for i in range(table.size):
        if i > 0:
            x = 0
            while (i >> x) & 1 == 0:
                x += 1
            _flip(x, layout, ordered, z, able, kinds)
            number ^= 1 << x
        weight = table[number]
        _collect(weight, layout, ordered, first, width, share, tables, z, able, sums)
        for x in range(n):
            if z[x] == 1:
                for y in range(x, n):
                    both[x, y] += weight * z[y]


@kernel(called_by="kernels")
def _sweep(chain, seed, sweep, t, layout, ordered, logs, first, width, log_habit, z, able, kinds):
    """Each person in turn is drawn given all others, from ``prior(z) exp(t energy(z))``."""
    log_pair, log_alone, log_prior = logs
    for x in range(z.size):
        gain = _gain(x, layout, ordered, log_pair, log_alone, first, width, log_habit, z, able, kinds)
        odds = log_prior[1] - log_prior[0] + t * gain
        new = 1 if uniform(seed, chain, sweep, x) * (1.0 + np.exp(-odds)) < 1.0 else 0
        if new != z[x]:
            _flip(x, layout, ordered, z, able, kinds)


@kernel(called_by="python")
def gibbs_sweeps(
    chain, seed, begin, n_sweeps, layout, ordered, logs, first, width, log_habit, share, tables, z, able, kinds, both,
    sums,
):  # fmt: skip
    """Sweeps ``begin, ...`` of a chain from ``z``; beliefs given ``z`` are added where `both` (n, n) has entries."""
    _set_up(layout, ordered, z, able, kinds)
    for sweep in range(begin, begin + n_sweeps):
        _sweep(chain, seed, sweep, 1.0, layout, ordered, logs, first, width, log_habit, z, able, kinds)
        if both.size == 0:
            continue
        _collect(1.0, layout, ordered, first, width, share, tables, z, able, sums)
        for x in range(z.size):
            if z[x] == 1:
                for y in range(x, z.size):
                    both[x, y] += z[y]


@kernel(called_by="kernels")
def _same_habits(i, habit, sway):
    """Whether two neighbours have the same tables of habits: where these are known, and after resampling."""
    for z in range(2):
        if sway[i, z] != sway[i - 1, z]:
            return False
        for k in range(5):
            if habit[i, z, k] != habit[i - 1, z, k]:
                return False
    return True


@kernel(called_by="python")
def sweep_particles(
    chain, seed, sweep, t, layout, ordered, first, width, tables, rules, states, able, successes, trials
):
    """A sweep at temperature `t` of each particle, which has tables of its own; none where `sweep` is negative.

    Then `able` (particles, n, 2), and the uses of rules 0 to 7 are added to `successes` and `trials` (particles, 14).
    """
    attribute, _, _, _, code = layout
    n, kinds = attribute.size, np.empty((2, 2), np.int64)
    log_habit, share = np.empty(first[n]), np.empty((first[n], 6))
    for i in range(states.shape[0]):
        z, mine = states[i], able[i]
        _set_up(layout, ordered, z, mine, kinds)
        if sweep >= 0:
            own = (tables[0][i], tables[1][i], tables[2][i], tables[3][i])
            if i == 0 or not _same_habits(i, tables[1], tables[2]):
                habit_tables(attribute, first, width, log_habit, share, own)
            logs = (np.log(own[0]), np.log(own[1][:, 0].copy()), np.log(own[3]))
            _sweep(chain + i, seed, sweep, t, layout, ordered, logs, first, width, log_habit, z, mine, kinds)
        for x in range(n):
            trials[i, 0] += 1.0
            successes[i, 0] += z[x]
            trials[i, 7] += z[x]
            successes[i, 7] += z[x] * attribute[x]
            for y in range(x + 1, n):
                c = code[x, y]
                rule = rules[c, 2 * z[x] + z[y]]
                trials[i, rule] += 1.0
                successes[i, rule] += c & 1
