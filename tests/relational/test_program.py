"""Programs: semantics against the definition by enumeration, the smokers of the source, rounding, and cycles."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.relational import Program, ProgramError, smokers_program
from tests.reference.worlds import distribution
from tests.relational.networks import CONTAGION, contagion

THETA = [0.6, 0.1, 0.2, 0.7, 0.15, 0.4, 0.05, 0.3, 0.5, 0.25, 0.2, 0.1, 0.8, 0.45]
T3 = {
    "smokes(1)": True,
    "smokes(2)": True,
    "smokes(3)": False,
    "friends{1, 2}": True,
    "friends{1, 3}": True,
    "friends{2, 3}": False,
}


# The smokers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", ["independent", "ordered"])
def test_worlds_have_total_probability_one(influence):
    """Checks 1 and R-M1: theorem 4.5 of the sheet, for two and three persons."""
    for n in (2, 3):
        worlds = list(smokers_program(THETA, influence).ground(n).possible_worlds())
        assert_allclose(math.fsum(world.probability for world in worlds), 1.0, atol=1e-12)


def test_two_persons():
    """Check 2."""
    ground = smokers_program(THETA).ground(["x", "y"])
    assert_allclose(ground.probability("friends{x, y}"), 0.18656, atol=1e-12)
    assert_allclose(ground.probability("smokes(x)"), 0.26801, atol=1e-12)
    both = {"friends{y, x}": True, "smokes(x)": True, "smokes(y)": True}
    for method in ("elimination", "worlds"):
        assert_allclose(ground.probability(both, method=method), 0.0518, atol=1e-12)


@pytest.mark.parametrize(
    ("influence", "log_p", "ind"),
    [
        ("independent", -5.196211060, (0.855132, 0.613108, 0.579929)),
        ("ordered", -5.201028600, (0.859261, 0.606662, 0.586811)),
    ],
)
def test_three_persons(influence, log_p, ind):
    """Checks 3 and 4: the compiled graph of T3, without the two empty ORs, which the evidence decides."""
    ground = smokers_program(THETA, influence).ground(3)
    model = ground.factor_graph(T3)
    assert (model.n_variables, len(model.factors)) == (11, 17)
    assert_allclose(model.log_partition(), log_p, atol=1e-9)
    assert_allclose(ground.log_probability(T3, method="worlds"), log_p, atol=1e-9)
    found = ground.marginals(T3)
    assert_allclose([found[f"ind({x})"] for x in (1, 2, 3)], ind, atol=1e-6)
    if influence == "independent":
        assert_allclose([found[f"sa({x})"] for x in (1, 2, 3)], (0.349266, 0.542558, 0.309297), atol=1e-6)
        assert_allclose([found[f"nsa({x})"] for x in (1, 2, 3)], (0.133634, 0.0, 0.0), atol=1e-6)


def test_belief_propagation_on_the_compiled_graph():
    """Check 5, by the library's own propagation in the compiled graph."""
    from cumulant.graphical import belief_propagation

    model = smokers_program(THETA).ground(3).factor_graph(T3)
    found = belief_propagation(model, tol=1e-12, max_sweeps=500)
    assert_allclose(-found.log_partition, 5.2313125374, atol=1e-8)
    names = list(model.labels.names)
    ind = [found.marginals[names.index(f"ind({x})")][1] for x in (1, 2, 3)]
    assert_allclose(ind, (0.879932, 0.633258, 0.569945), atol=1e-6)


def test_worlds_give_the_product_formula():
    """R-M1, (5.13): the probability of all atoms by worlds, and by the product over persons and pairs."""
    theta, ground = np.array(THETA), smokers_program(THETA).ground(2)
    for ind, smokes in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
        for friends in (0, 1):
            evidence = {"friends{1, 2}": friends}
            evidence |= {f"ind({x})": ind[x - 1] for x in (1, 2)} | {f"smokes({x})": smokes[x - 1] for x in (1, 2)}
            if ind == (1, 1):
                pair = theta[1 + sum(smokes)]
            elif sum(ind) == 1:
                pair = theta[4 + smokes[ind.index(1)]]
            else:
                pair = theta[6]
            expected = (pair if friends else 1 - pair) * np.prod([theta[0] if z else 1 - theta[0] for z in ind])
            for x, y in ((0, 1), (1, 0)):
                a = theta[8] * (friends * smokes[y] * ind[y])
                b = theta[9] * (friends * (1 - smokes[y]) * ind[y])
                rate = (1 - a) * ((1 - b) * theta[10] + b * theta[11]) + a * ((1 - b) * theta[12] + b * theta[13])
                rate = theta[7] if ind[x] else rate
                expected *= rate if smokes[x] else 1 - rate
            assert_allclose(math.exp(ground.log_probability(evidence, method="worlds")), expected, rtol=1e-10)


def test_the_program_is_contingently_acyclic():
    """Check 25: accepted for every domain."""
    found = smokers_program(THETA).is_contingently_acyclic("ind")
    assert found
    assert str(found) == "contingently acyclic given ind, in every domain"
    assert not smokers_program(THETA).is_contingently_acyclic()  # without contexts there are cycles


def test_without_its_guards_it_is_not():
    """Check 25: rejected, and the cycle is named."""
    text = str(smokers_program(THETA))
    for guard in ("ind(X), not ind(Y), ", "not ind(X), not ind(Y), ", "ind(X), ind(Y), ", ", ind(Y)", "not ind(X), "):
        text = text.replace(guard, ", " if guard.startswith(",") else "")
    text = text.replace("smokes(Y), , ", "smokes(Y), ").replace("ind(X), phi7", "phi7")
    found = Program(text).is_contingently_acyclic("ind")
    assert not found
    assert found.cycle == ("friends{1, 2}", "is(1, 2)", "sa(1)", "smokes(1)", "friends{1, 2}")
    assert "friends{1, 2} -> is(1, 2) -> sa(1) -> smokes(1) -> friends{1, 2}" in str(found)
    with pytest.raises(ProgramError, match=r"no predicate given which.*friends\{1, 2\} -> is\(1, 2\)"):
        Program(text).ground(2).log_probability({"smokes(1)": True})


def test_the_context_of_a_cycle_is_named():
    """One guard is missing: the cycle arises only where neither decides for himself."""
    text = str(smokers_program(THETA)).replace("not ind(X), not ind(Y), phi6", "not ind(X), smokes(X), phi6")
    found = Program(text).is_contingently_acyclic("ind", domain=3)
    assert not found
    assert all(atom.startswith("ind(") for atom in found.context)
    assert set(found.context.values()) == {True, False}
    assert "where ind(" in str(found)


def test_the_ordered_reading_is_acyclic_where_it_is_looked_at():
    program = smokers_program(THETA, "ordered")
    assert "not shown for larger ones" in str(program.is_contingently_acyclic("ind"))
    assert program.is_contingently_acyclic("ind", domain=6)


def test_contexts_of_figure_5_1():
    """R-M2: habits make friends; a habit makes friends and by them a habit; no influence."""
    ground = smokers_program(THETA).ground(["x", "y"])
    arrows = {}
    for x, y in itertools.product((True, False), repeat=2):
        graph = ground.dependencies({"ind(x)": x, "ind(y)": y})
        assert nx.is_directed_acyclic_graph(graph)
        arrows[x, y] = nx.transitive_closure(graph)
    friends = "friends{x, y}"
    both = arrows[True, True]
    assert both.has_edge("smokes(x)", friends)
    assert both.has_edge("smokes(y)", friends)
    one = arrows[True, False]
    assert one.has_edge("smokes(x)", friends)
    assert one.has_edge(friends, "smokes(y)")
    assert not one.has_edge(friends, "smokes(x)")
    none = arrows[False, False]
    assert not any(none.has_edge(a, b) for a, b in (("smokes(x)", friends), (friends, "smokes(x)")) if a in none)


def test_irrelevant_atoms_are_pruned():
    """R-C5 and theorem 6: a friendship that nobody asks about, between persons of whom nothing is known."""
    ground = smokers_program(THETA).ground(3)
    asked = ground.factor_graph({"ind(1)": True}, query=["smokes(1)"])
    assert [name for name in asked.labels.names if name.startswith("friends")] == []
    evidence = {"smokes(1)": True, "ind(1)": True}
    some = ground.factor_graph(evidence, query=["ind(2)"])
    assert_allclose(some.log_partition(), ground.factor_graph(evidence).log_partition(), atol=1e-12)
    assert some.n_variables < ground.factor_graph(evidence).n_variables


# Another program ------------------------------------------------------------------------------------------------------


def test_contagion_against_enumeration():
    ground = contagion()
    law = distribution(Program(CONTAGION).ground(["anna", "bob"], {"contact": [("anna", "bob")]}))
    small = Program(CONTAGION).ground(["anna", "bob"], {"contact": [("bob", "anna")]})
    assert_allclose(sum(law.values()), 1.0)
    for atom in small.atoms:
        expected = sum(p for held, p in law.items() if atom in held)
        assert_allclose(small.probability(atom), expected, atol=1e-12)
        assert_allclose(small.probability(atom, method="worlds"), expected, atol=1e-12)
    p = 0.2 * 0.7  # bob falls ill: not immune, and from outside or by anna or by carl
    expected = 0.7 * (1 - 0.8 * (1 - 0.6 * p) ** 2)
    assert_allclose(ground.probability("ill(bob)"), expected, atol=1e-12)
    evidence = {"ill(bob)": True, "ill(carl)": True, "ill(anna)": False}
    for query in ("seed(anna)", "first(dora)", "immune(dora)", "passes(carl, bob)"):
        assert_allclose(
            ground.probability(query, evidence), ground.probability(query, evidence, method="worlds"), atol=1e-12
        )
    marginals = ground.marginals(evidence)
    for atom in ground.atoms:
        assert_allclose(marginals[atom], ground.probability(atom, evidence, method="worlds"), atol=1e-12)


def test_existential_rules_are_linear_in_the_domain():
    """Two hundred contacts: the table of the effect would have 2^200 entries."""
    people = range(201)
    ground = Program(CONTAGION).ground(people, {"contact": [(0, x) for x in people if x]})
    p = 0.2 * 0.7 * 0.6
    assert_allclose(ground.probability("ill(0)"), 0.7 * (1 - 0.8 * (1 - p) ** 200), atol=1e-10)


def test_several_types():
    program = Program("""
        var P: person
        var T: topic
        likes(P, T) ~ 0.3
        reads(P, T) <- likes(P, T)
        busy(P) <- reads(P, T)
    """)
    ground = program.ground({"person": ["anna"], "topic": 3})
    assert_allclose(ground.probability("busy(anna)"), 1 - 0.7**3)
    with pytest.raises(ValueError, match="must name the individuals of each type: person, topic"):
        program.ground(3)


def _random_program(rng):
    """Rules without cycles over a few predicates, with negation, shared choices and existential variables."""
    lines = ["var X, Y: thing", "c(X) ~ 0.3", "d(X, Y) ~ 0.6", "e{X, Y} ~ 0.45"]
    bodies = ["c(X)", "not c(X)", "d(X, Y)", "not d(Y, X), X != Y", "e{X, Y}", "c(Y), X < Y"]
    for level in range(3):
        for _ in range(rng.integers(1, 4)):
            parts = list(rng.choice(bodies, size=rng.integers(1, 3), replace=False))
            lines.append(f"p{level}(X) <- {', '.join(parts)}")
        bodies += [f"p{level}(X)", f"not p{level}(Y)", f"p{level}(Y), X != Y"]
    return Program("\n".join(lines))


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    ground = _random_program(rng).ground(2)
    law = distribution(ground)
    assert_allclose(sum(world.probability for world in ground.possible_worlds()), 1.0, atol=1e-12)
    atoms = list(rng.choice(ground.atoms, size=3, replace=False))
    for values in itertools.product((True, False), repeat=3):
        evidence = dict(zip(atoms, values, strict=True))
        expected = sum(p for held, p in law.items() if all((a in held) == v for a, v in evidence.items()))
        if expected < 1e-14:
            assert ground.log_probability(evidence) == -math.inf
            continue
        assert_allclose(ground.log_probability(evidence), math.log(expected), atol=1e-10)
        assert_allclose(ground.log_probability(evidence, method="worlds"), math.log(expected), atol=1e-10)
        found = ground.marginals(evidence)
        for atom in ground.atoms:
            joint = sum(
                p for held, p in law.items() if atom in held and all((a in held) == v for a, v in evidence.items())
            )
            assert_allclose(found[atom], joint / expected, atol=1e-10)


def _random_circles(rng):
    """Rules that may depend on each other in circles, with guards, facts, and choices of extreme probabilities."""
    p = rng.choice([0.3, 0.6, 0.45, 1.0, 0.0, 1e-18], size=3)
    lines = ["var X, Y: thing", "fact f(X, Y)", f"c(X) ~ {p[0]}", f"d{{X, Y}} ~ {p[1]}", f"e ~ {p[2]}"]
    heads = ["p(X)", "q(X)", "r{X, Y}", "s"]
    bodies = [*heads, "p(Y)", "q(Y)", "c(X)", "c(Y)", "d{X, Y}", "e", "f(X, Y)"]
    for head in (*heads, rng.choice(heads)):
        body = ["not " * (rng.random() < 0.35) + atom for atom in rng.choice(bodies, rng.integers(1, 4), replace=False)]
        body += list(rng.choice(["X < Y", "X != Y", "Y != b", "X != a"], rng.integers(0, 2)))
        lines.append(f"{head} <- {', '.join(body)}")
    return Program("\n".join(lines))


def test_random_circles_against_enumeration():
    """What is accepted has one solution for each outcome, whatever the rules are; and its answers are those of it."""
    accepted = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        facts = [pair for pair in itertools.product("ab", repeat=2) if rng.random() < 0.5]
        ground = _random_circles(rng).ground(["a", "b"], {"f": facts})
        try:
            ground.require_acyclic()
        except ProgramError:
            continue
        accepted += 1
        law = distribution(ground)  # checks that there is one solution
        atoms = list(rng.choice(ground.atoms, size=2, replace=False))
        evidence = {str(atom): bool(rng.random() < 0.5) for atom in atoms}
        expected = math.fsum(p for held, p in law.items() if all((a in held) == v for a, v in evidence.items()))
        for method in ("elimination", "worlds"):
            found = ground.log_probability(evidence, method=method)
            assert_allclose(found, math.log(expected) if expected else -math.inf, atol=1e-10, err_msg=str(seed))
        if expected:
            for atom, found in ground.marginals(evidence).items():
                joint = math.fsum(
                    p for held, p in law.items() if atom in held and all((a in held) == v for a, v in evidence.items())
                )
                assert_allclose(found, joint / expected, atol=1e-10, err_msg=str(seed))
    assert accepted >= 10


# Rounding -------------------------------------------------------------------------------------------------------------


def test_a_probability_is_not_above_one_by_rounding():
    """What is asked follows from the evidence, and the two sums differ by 7e-16."""
    ground = Program("""
        var X, Y: thing
        c(X) ~ 0.1
        d(X) ~ 0.1
        p(X) <- c(X)
        p(X) <- d(X)
        q <- p(X)
        r <- q
        r <- p(X), d(Y)
    """).ground(3)
    below, above = ground.log_probability({"q": True}), ground.log_probability({"q": True, "r": True})
    assert 0.0 < above - below < 1e-14
    assert ground.probability("r", {"q": True}) == 1.0


def test_rare_and_impossible_atoms():
    """The complement of a rounded sum would be zero for what is rare, and not zero, or negative, for what cannot be."""
    rare = Program("a ~ 1e-20\nb ~ 1e-30\np <- a\np <- b\nq <- a, b\nq <- not a, b").ground({})
    assert_allclose(rare.log_probability({"p": True}), math.log(1e-20) + 1e-10, rtol=1e-14)
    assert_allclose(rare.log_probability({"q": True}), math.log(1e-30), rtol=1e-15)
    rules = "p <- c\np <- not c, d\np <- not c, not d"  # one of them applies
    for c, d in ((0.3, 0.3), (0.1, 0.2), (0.7, 0.1)):
        always = Program(f"c ~ {c}\nd ~ {d}\n{rules}").ground({})
        assert always.log_probability({"p": False}) == -math.inf
        assert_allclose(always.probability("p"), 1.0, atol=1e-15)


# Circles --------------------------------------------------------------------------------------------------------------


def test_a_choice_may_break_a_circle():
    """Both atoms wait for each other: no choice alone decides a rule, and the program is acyclic given `c` only."""
    program = Program("c ~ 0.3\na ~ 0.5\nb ~ 0.2\nw <- a\np <- c, q\np <- w, not c\nq <- not c, p\nq <- b, c")
    found = program.is_contingently_acyclic("c", domain={})
    assert found
    assert not program.is_contingently_acyclic(domain={})
    for predicate in ("p", "q", "w"):
        assert not program.is_contingently_acyclic(predicate, domain={})
    ground = program.ground({})
    for method in ("elimination", "worlds"):
        assert_allclose(ground.probability("p", method=method), 0.3 * 0.2 + 0.7 * 0.5, atol=1e-14)
        assert_allclose(ground.probability("c", {"q": True}, method=method), 0.06 / 0.41, atol=1e-14)
    waiting = Program("c ~ 0.3\np <- c, q\nq <- not c, p").ground({})
    assert [dict(world.atoms) for world in waiting.possible_worlds()] == [{"p": False, "q": False}] * 2


# Attempts to deceive --------------------------------------------------------------------------------------------------


def test_a_context_that_depends_on_what_it_decides_is_refused():
    """Given `p` nothing is cyclic, but `p` itself is decided by what it conditions: there is no solution, or two."""
    program = Program("var X: thing\nc(X) ~ 0.5\np(X) <- q(X)\nq(X) <- not p(X), c(X)")
    found = program.is_contingently_acyclic("p")
    assert not found
    assert set(found.cycle) == {"p(1)", "q(1)"}
    with pytest.raises(ProgramError, match="no predicate given which"):
        program.ground(1).factor_graph()
    with pytest.raises(ProgramError, match="the choices do not decide every atom"):
        list(program.ground(1).possible_worlds())


def test_an_atom_that_denies_or_asserts_itself_is_refused():
    for rule in ("p <- not p", "p <- p"):
        assert not Program(rule).is_contingently_acyclic()
        with pytest.raises(ProgramError, match="cyclic: p -> p"):
            Program(rule).ground({}).log_probability({"p": True})


def test_a_cycle_through_two_persons_only_is_found():
    """No pair is cyclic alone: each depends on the next, three in a ring of given facts."""
    text = (
        "var X, Y: person\nfact next(X, Y)\nc(X) ~ 0.5\nl(X) <- c(X)\np(X) <- next(X, Y), p(Y), not l(X)\np(X) <- l(X)"
    )
    program, ring = Program(text), {"next": [(1, 2), (2, 3), (3, 1)]}
    found = program.is_contingently_acyclic("l", domain=3, facts=ring)
    assert not found
    assert found.context == {"l(1)": False, "l(2)": False, "l(3)": False}
    assert program.is_contingently_acyclic("l", domain=3, facts={"next": [(1, 2), (2, 3)]})
    with pytest.raises(ProgramError, match="what is given as a fact decides it"):
        program.is_contingently_acyclic("l")
