"""The language of programs: what can be written, what is refused, and where errors point."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, TooWide
from cumulant.relational import Program, ProgramError
from tests.relational.networks import CONTAGION, PEOPLE, contagion

# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("var X: person\na(X) ~ 1.5", r"line 2: a probability is between 0 and 1; found 1.5"),
        ("var X: person\na(X) ~ 0.5\nb(X) <- a(X), smokse(X)\nsmokes(X) <- a(X)", "did you mean smokes"),
        ("a(X) ~ 0.5", "variable X has no type"),
        ("var x: person", "a variable begins with a capital letter; found 'x'"),
        ("var X: person\na(X) ~ 0.5\nb(X) <- a(X) a(X)", r"line 3: expected the end of the statement; found 'a'"),
        ("var X: person\na(X ~ 0.5", "expected a comma or '\\)'; found '~'"),
        ("var X: person\na(X) ~ 0.5\nb{X} <- a(X)", "braces hold an unordered pair"),
        ("var X: person\na(X) ~ 0.5\nb{X, X} <- a(X)", "two different members"),
        ("var X: person\na(X) ~ 0.5\na(X) ~ 0.4", "line 3: the choice a has a probability already"),
        ("var X: person\na(X) ~ 0.5\na(X) <- a(X)", "cannot head a rule"),
        ("var X, Y: person\na(X) ~ 0.5\nb(X) <- a(X, Y)", r"a\(X, Y\) is used elsewhere as a\(X\)"),
        ("var X: person\nvar Y: town\na(X) ~ 0.5\nb(Y) <- a(Y)", "of type town, elsewhere person"),
        ("var X: person\nvar Y: town\na(X) ~ 0.5\nb(X) <- a(X), X < Y", "compares individuals of different types"),
        ("var X: person\na(X) ~ 0.5; b(X)", "';' has no meaning here: a head that is true in several ways has several"),
        ("var X: person\na(X) ~ 0.5\nb(X) :- a(X)", "line 3: '-' has no meaning here: the arrow of a rule is <-"),
        ("var X: person\na(X) ~ 0.5 | b(X) ~ 0.4", "write alternatives as rules with not"),
        ("var X, Y: person\na(X) ~ 0.5\nb(X) <- a(Y), X = Y", "guards are X != Y and X < Y"),
        ("var X: person\nbés(X) ~ 0.5", "'é' has no meaning here: names are of the letters a to z"),
        ("# nothing yet\nvar X: person", "the text has no choice"),
        ("var X: person\na(X) ~ 0.5\nb(X) <- a(X),", "found the end of the statement"),
        ("var X: person\nnot(X) ~ 0.5", "found the keyword 'not'"),
        ("p(bob) <- c\nc ~ 0.5", r"the type of bob in p\(bob\) is not known"),
        ("var X: a\nvar Y: b\nc ~ 0.5\np <- c, x != y", "x != y compares individuals whose type is not known"),
    ],
)
def test_what_cannot_be_read_is_refused(text, words):
    with pytest.raises(ProgramError, match=words):
        Program(text)


def test_errors_point_at_the_place():
    with pytest.raises(ProgramError) as caught:
        Program("var X: person\na(X) ~ 0.5\nb(X) <- a(X), , a(X)")
    line, shown, mark = str(caught.value).splitlines()
    assert line == "line 3: expected a predicate; found ','"
    assert shown[mark.index("^")] == ","
    assert shown.strip() == "b(X) <- a(X), , a(X)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda g: g.probability("il(anna)"), "there is no predicate 'il'; did you mean ill"),
        (lambda g: g.probability("ill(zoe)"), "'zoe' is not among the individuals of person"),
        (lambda g: g.probability("ill(anna, bob)"), r"must be written as ill\(person\)"),
        (lambda g: g.probability("ill(anna)", {"ill(bob)": 0.5}), "must be true or false; got 0.5"),
        (lambda g: g.probability("ill(anna)", ["ill(bob)"]), "must be a mapping"),
        (lambda g: g.factor_graph(query="ill(anna)"), r"use \['ill\(anna\)'\]"),
        (lambda g: g.probability("contact{anna, bob}"), r"contact\{anna, bob\} is given as a fact"),
        (
            lambda g: g.probability("ill(bob)", {"ill(anna)": 1, "ill( anna )": 0}),
            r"evidence: ill\(anna\) is said to be",
        ),
    ],
)
def test_questions_are_checked(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(contagion())


def test_impossible_evidence():
    ground = contagion()
    evidence = {"immune(anna)": True, "ill(anna)": True}
    assert ground.log_probability(evidence) == -math.inf
    with pytest.raises(DomainError, match="the evidence is impossible"):
        ground.probability("seed(bob)", evidence)
    decided = Program("c ~ 0.5\np <- c").ground({})  # the graph has no variable left
    with pytest.raises(DomainError, match="the evidence is impossible"):
        decided.marginals({"p": True, "c": False})


def test_domains_and_facts_are_checked():
    program = Program(CONTAGION)
    with pytest.raises(ValueError, match="facts must say where contact holds"):
        program.ground(PEOPLE)
    with pytest.raises(ValueError, match="contact names 'zoe'"):
        program.ground(PEOPLE, {"contact": [("anna", "zoe")]})
    with pytest.raises(ValueError, match="must have different names"):
        program.ground(["anna", "anna"], {"contact": []})
    with pytest.raises(ValueError, match="not declared as a fact"):
        program.ground(PEOPLE, {"contact": [], "contacts": []})
    with pytest.raises(ValueError, match="contact holds of two different individuals"):
        program.ground(PEOPLE, {"contact": [("anna", "anna")]})
    by_array = program.ground(3, {"contact": np.array([[1, 2], [3, 2]])})
    assert_allclose(by_array.probability("ill(2)"), contagion().probability("ill(bob)"), atol=1e-12)
    with pytest.raises(ProgramError, match="no choice 'sed'; did you mean seed"):
        program.with_probabilities(sed=0.5)


def test_a_rule_that_is_too_wide_is_refused():
    wide = ", ".join(f"p{k}(X)" for k in range(16))
    rules = "\n".join(f"c{k}(X) ~ 0.9\np{k}(X) <- c{k}(X)" for k in range(16))
    ground = Program(f"var X: thing\n{rules}\nall(X) <- {wide}").ground(1)
    with pytest.raises(TooWide, match="depends on 16 open atoms"):
        ground.probability("all(1)")


def test_individuals_may_be_named():
    program = Program("var X: person\nc(X) ~ 0.5\np(X) <- c(X), X != anna\nq <- p(bob)\nlate(bob) <- q")
    ground = program.ground(["anna", "bob"])
    assert_allclose(ground.probability("q"), 0.5)
    assert_allclose(ground.probability("late(bob)"), 0.5)  # no rule has a variable there
    with pytest.raises(ValueError, match="the program names bob"):
        program.ground(["anna"])
    with pytest.raises(ValueError, match="the program names anna"):
        program.ground(["bob"])  # only a guard names her


def test_individuals_of_two_types_may_have_one_name():
    program = Program("""
        var P: person
        var T: topic
        c(P) ~ 0.5
        d(T) ~ 0.25
        keen(P) <- c(P)
        taught(T) <- d(T)
        works <- keen(1), taught(1)
    """)
    assert str(program.is_contingently_acyclic("keen")) == "contingently acyclic given keen, in every domain"
    assert_allclose(program.ground({"person": 2, "topic": 2}).probability("works"), 0.125)


def test_probabilities_of_statements_over_several_lines():
    program = Program("""
        var X, Y: person
        phi(X,  # who phi ~ 0.9
            # comments and empty lines do not end a statement

            Y) ~   0.3  # phi ~ 0.8
        phi2(X) ~ 0.4
        p(X) <- phi2(X),
            phi(X, X)
    """)
    other = program.with_probabilities(phi=0.25)
    assert (other.choices, program.choices) == ({"phi": 0.25, "phi2": 0.4}, {"phi": 0.3, "phi2": 0.4})
    assert str(other) == str(program).replace("0.3 ", "0.25 ")
    assert_allclose(other.with_probabilities(phi2=1).ground(1).probability("p(1)"), 0.25)


def test_rules_that_share_many_choices_are_refused():
    """One table entry would be a sum over 2^21 outcomes."""
    names = [f"c{k}" for k in range(21)]
    text = "\n".join(f"{name} ~ 0.9" for name in names)
    shared = Program(f"{text}\np <- {', '.join(names)}\np <- not c0, c1").ground({})
    with pytest.raises(TooWide, match="rules for one atom share 21 choices"):
        shared.probability("p")
    apart = Program(f"{text}\np <- {', '.join(names)}").ground({})
    assert_allclose(apart.probability("p"), 0.9**21)
