"""Networks and models with many impossible states, made at random: of the sizes that people publish."""

import itertools

import numpy as np

from cumulant.graphical import BayesNet, FactorGraph


def random_net(rng, n_variables, max_parents=3, window=8, most_states=3, zeros=0.0):
    """Parents are among the `window` variables before, so that the width stays bounded; states and variables named."""
    names = [f"v{i}" for i in range(n_variables)]
    sizes = rng.integers(2, most_states + 1, n_variables)
    tables, parents = {}, {}
    for i, name in enumerate(names):
        near = np.arange(max(0, i - window), i)
        above = rng.permutation(near)[: rng.integers(0, max_parents + 1)]
        shape = (*sizes[above], sizes[i])
        weights = rng.gamma(1.0, size=shape) + 1e-3
        weights[rng.random(shape) < zeros] = 0.0
        weights[..., 0] += weights.sum(axis=-1) == 0.0
        tables[name] = weights / weights.sum(axis=-1, keepdims=True)
        parents[name] = [names[j] for j in above]
    states = {name: [f"s{a}" for a in range(size)] for name, size in zip(names, sizes, strict=True)}
    return BayesNet(tables, parents, states)


def joint_table(net):
    """``p(x)`` by the definition, one state at a time."""
    p = np.zeros(net.cardinalities)
    place = {name: k for k, name in enumerate(net.variables)}
    for x in itertools.product(*map(range, p.shape)):
        p[x] = np.prod([t[tuple(x[place[u]] for u in (*net.parents[v], v))] for v, t in net.tables.items()])
    return p


def formula(rng, n_variables, n_clauses, planted=True, width=3):
    """Clauses that each forbid one state of three variables; with a planted solution, or with none in mind."""
    solution, clauses = rng.integers(0, 2, n_variables), []
    while len(clauses) < n_clauses:
        scope, bad = rng.permutation(n_variables)[:width], rng.integers(0, 2, width)
        if not planted or (bad != solution[scope]).any():
            table = np.zeros((2,) * width)
            table[tuple(bad)] = -np.inf
            clauses.append((tuple(scope.tolist()), table))
    return FactorGraph([2] * n_variables, clauses)


def linkage(rng, n_people, n_loci, n_alleles=3, founders=0.3, typed=0.6):
    """A pedigree with markers at some loci, and the phenotypes of some people as evidence: a model and its evidence.

    For each person and locus there are two alleles, the unordered pair of which is the phenotype. A child's allele is
    one of the two of a parent; which, says a selector, that recombines from one locus to the next.
    """
    n_founders = max(2, int(founders * n_people))
    pairs = list(itertools.combinations_with_replacement(range(n_alleles), 2))
    phenotype = np.zeros((n_alleles, n_alleles, len(pairs)))
    for a, b in itertools.product(range(n_alleles), repeat=2):
        phenotype[a, b, pairs.index((min(a, b), max(a, b)))] = 1.0
    inherit = np.zeros((n_alleles, n_alleles, 2, n_alleles))
    for a, b in itertools.product(range(n_alleles), repeat=2):
        inherit[a, b, 0, a] = inherit[a, b, 1, b] = 1.0
    sizes, factors, truth, number = [], [], [], {}

    def add(key, size, scope, table):
        number[key] = len(sizes)
        table = np.asarray(table)
        at = tuple(truth[v] for v in scope)
        truth.append(int(rng.choice(size, p=table[at])))
        sizes.append(size)
        factors.append(((*scope, number[key]), table))

    evidence = {}
    for person in range(n_people):
        older = rng.permutation(person)[:2] if person >= n_founders else None
        for locus in range(n_loci):
            for side in range(2):
                allele = ("allele", person, locus, side)
                if older is None:
                    add(allele, n_alleles, (), np.full(n_alleles, 1.0 / n_alleles))
                    continue
                before = number.get(("selector", person, locus - 1, side))
                scope, table = ((), [0.5, 0.5]) if before is None else ((before,), [[0.9, 0.1], [0.1, 0.9]])
                add(("selector", person, locus, side), 2, scope, table)
                above = [number["allele", older[side], locus, s] for s in range(2)]
                add(allele, n_alleles, (*above, number["selector", person, locus, side]), inherit)
            scope = tuple(number["allele", person, locus, s] for s in range(2))
            add(("phenotype", person, locus), len(pairs), scope, phenotype)
            if rng.random() < typed:
                seen = number["phenotype", person, locus]
                evidence[seen] = truth[seen]
    return FactorGraph.from_tables(sizes, factors).given(evidence), np.array(truth)


def hard_model(rng):
    """Few variables with factors in which most entries are impossible: often no state is possible at all."""
    n = int(rng.integers(2, 8))
    sizes = rng.integers(1, 4, n)
    factors = []
    for _ in range(int(rng.integers(1, 10))):
        scope = rng.permutation(n)[: rng.integers(1, min(3, n) + 1)]
        table = rng.normal(size=tuple(sizes[scope])) * rng.choice([0.5, 3.0])
        factors.append(
            (tuple(scope.tolist()), np.where(rng.random(table.shape) < rng.choice([0.3, 0.6]), -np.inf, table))
        )
    return FactorGraph(sizes.tolist(), factors)
