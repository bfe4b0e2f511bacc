"""The relational model by its definition: every rule a line, every latent variable enumerated, in exact arithmetic.

`theta` holds 14 numbers, floats or fractions (`rational`): with fractions every sum and product is exact. `ties` is a
set of pairs ``(x, y)``, both directions; `attribute` a list of 0 and 1.
"""

import decimal
import itertools
import math
from collections import defaultdict
from fractions import Fraction


def rational(theta):
    """The same numbers as fractions."""
    return [Fraction(float(p)) for p in theta]


def log(value):
    """The logarithm; of a fraction, whatever its size, the nearest double."""
    if value == 0:
        return -math.inf
    if not isinstance(value, Fraction):
        return math.log(value)
    with decimal.localcontext(decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)):
        return float((decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator)).ln())


def observed(network):
    """Attribute and ties of a `Network`."""
    attribute = [int(value) for value in network.attribute]
    return attribute, {(x, y) for x in range(len(attribute)) for y in range(len(attribute)) if network.ties[x, y]}


def rule_of_pair(attribute, z, x, y):
    """Which rule says how likely a tie of `x` and `y` is."""
    if z[x] and z[y]:
        return 1 + attribute[x] + attribute[y]
    if not z[x] and not z[y]:
        return 6
    return 4 + attribute[x if z[x] else y]


def able(z, x, y, ordered):
    """Whether the friend `y` is able to sway `x`."""
    return bool(z[y]) or (ordered and y < x)


def bernoulli(p, value):
    return p if value else 1 - p


def joint(theta, attribute, ties, z, ordered=False):
    """``p(attribute, ties, z)``, gates and ORs summed out by the noisy-OR formula."""
    n, value = len(attribute), 1
    for x in range(n):
        value *= bernoulli(theta[0], z[x])
    for x, y in itertools.combinations(range(n), 2):
        value *= bernoulli(theta[rule_of_pair(attribute, z, x, y)], (x, y) in ties)
    for x in range(n):
        friends = [y for y in range(n) if (x, y) in ties and able(z, x, y, ordered)]
        k = sum(attribute[y] for y in friends)
        no_a, no_b = (1 - theta[8]) ** k, (1 - theta[9]) ** (len(friends) - k)
        swayed = (
            no_a * no_b * theta[10]
            + no_a * (1 - no_b) * theta[11]
            + (1 - no_a) * no_b * theta[12]
            + (1 - no_a) * (1 - no_b) * theta[13]
        )
        value *= bernoulli(theta[7] if z[x] else swayed, attribute[x])
    return value


def log_likelihood(theta, attribute, ties, ordered=False):
    """``log p(attribute, ties)``, summed over all ``z`` in exact arithmetic."""
    theta = rational(theta)
    states = itertools.product((0, 1), repeat=len(attribute))
    return log(sum(joint(theta, attribute, ties, z, ordered) for z in states))


def evidence(n):
    """All attributes and ties of `n` people."""
    pairs = list(itertools.combinations(range(n), 2))
    for attribute in itertools.product((0, 1), repeat=n):
        for tied in itertools.product((0, 1), repeat=len(pairs)):
            chosen = [pair for pair, t in zip(pairs, tied, strict=True) if t]
            yield list(attribute), {*chosen, *((y, x) for x, y in chosen)}


def posterior(theta, attribute, ties, ordered=False):
    """By enumeration of ``z`` and of all gates: a dictionary.

    ``log_likelihood``; ``independence`` [x]; ``pairs`` [x, y, z_x, z_y]; ``habits`` [x, z, encouraged, discouraged];
    ``gates`` [x, y]; ``successes`` and ``trials`` of the 14 rules, counted in each world as if it were observed.
    """
    n, gates, total = len(attribute), sorted(ties), 0
    sums = {name: defaultdict(int) for name in ("independence", "pairs", "habits", "gates", "successes", "trials")}
    for z in itertools.product((0, 1), repeat=n):
        for opened in itertools.product((0, 1), repeat=len(gates)):
            used = []  # (rule, success) in this world
            used += [(0, z[x]) for x in range(n)]
            used += [(rule_of_pair(attribute, z, x, y), (x, y) in ties) for x, y in itertools.combinations(range(n), 2)]
            possible, swayed_by = True, [[0, 0] for _ in range(n)]
            for (x, y), is_open in zip(gates, opened, strict=True):
                if able(z, x, y, ordered):
                    used.append((8 if attribute[y] else 9, is_open))
                elif is_open:
                    possible = False
                swayed_by[x][attribute[y]] |= is_open
            if not possible:
                continue
            for x in range(n):
                used.append((7 if z[x] else 10 + 2 * swayed_by[x][1] + swayed_by[x][0], attribute[x]))
            p = math.prod(bernoulli(theta[rule], success) for rule, success in used)
            total += p
            for x in range(n):
                sums["independence"][x] += p * z[x]
                sums["habits"][x, z[x], swayed_by[x][1], swayed_by[x][0]] += p
                for y in range(n):
                    sums["pairs"][x, y, z[x], z[y]] += p
            for gate, is_open in zip(gates, opened, strict=True):
                sums["gates"][gate] += p * is_open
            for rule, success in used:
                sums["trials"][rule] += p
                sums["successes"][rule] += p * success
    out = {name: defaultdict(int, {key: value / total for key, value in each.items()}) for name, each in sums.items()}
    return {"log_likelihood": log(total), **out}
