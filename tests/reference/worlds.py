"""The distribution of a ground program by its definition: every outcome of every choice, and what then follows."""

import itertools
import math


def distribution(ground):
    """The probability of each set of true atoms, from all outcomes of the choices that occur in a rule."""
    rules = [(str(rule.head), [(str(atom), value) for atom, value in rule.body]) for rule in ground._rules]
    used = sorted({atom for _, body in rules for atom, _ in body} & set(ground.choices))
    found = {}
    for outcome in itertools.product((True, False), repeat=len(used)):
        held = dict(zip(used, outcome, strict=True))
        chance = math.prod(ground.choices[c] if on else 1.0 - ground.choices[c] for c, on in held.items())
        solutions = [x for x in _candidates(ground.atoms) if _solves(x, rules, held)]
        assert len(solutions) == 1
        key = frozenset(atom for atom, on in solutions[0].items() if on)
        found[key] = found.get(key, 0.0) + chance
    return found


def _candidates(atoms):
    for values in itertools.product((True, False), repeat=len(atoms)):
        yield dict(zip(atoms, values, strict=True))


def _solves(x, rules, held):
    """Whether each atom is true exactly where one of its rules applies."""
    values = {**x, **held}
    supported = {head for head, body in rules if all(values[atom] == value for atom, value in body)}
    return supported == {atom for atom, on in x.items() if on}
