"""Formulas of chapter 5 that are wrong as printed, each with a small network on which that shows."""

import itertools

import numpy as np

from cumulant.experiments._relational import SOURCE as _SOURCE
from cumulant.experiments._relational import T3, TEST_VECTOR
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.graphical import RegionGraph
from cumulant.relational import Network, Program, SmokersModel, smokers_program

TITLE = "A contingently acyclic model of a social network: formulas that are corrected, with counter-examples"
SOURCE = f"{_SOURCE}, sections 5.1 and 5.2"

_THETA = np.array(TEST_VECTOR)


@experiment
def run(quick: bool, rng: int) -> Report:
    """Each printed form beside the corrected one, on two or three people."""
    claims = [
        _both_smoke(),
        _tables(),
        _shared_choice(),
        _advice(),
        _habits(),
        _two_readings(),
        _each_pair_once(),
        _table_of_choices(),
        _union(),
        _evidence_is_fixed(),
        _aggregates_are_hidden(),
        _one_factor(),
        _regions(),
    ]
    return Report(claims, notes="Parameters are the test vector; T3 is three people with two friendships.")


def _changed(old: str, new: str) -> Program:
    """The program with one piece of its text replaced."""
    text = str(smokers_program(TEST_VECTOR))
    assert old in text
    return Program(text.replace(old, new))


def _both_smoke() -> Claim:
    printed = _changed("ind(X), ind(Y), smokes(X), smokes(Y), phi3", "ind(X), ind(Y), smokes(X), not smokes(Y), phi3")
    both = {"ind(1)": True, "ind(2)": True, "smokes(1)": True, "smokes(2)": True}
    chances = [p.ground(2).probability("friends{1, 2}", both) for p in (printed, smokers_program(TEST_VECTOR))]
    return Claim(
        "fourth clause: friends where both smoke, phi_3",
        "smokes(X) and not smokes(Y), phi_3",
        f"P(friends | two independent smokers): as printed {chances[0]:.3f}, corrected {chances[1]:.3f} = theta_3",
        verdict(chances[0] == 0.0 and abs(chances[1] - _THETA[3]) < 1e-12, corrected=True),
        "(5.1)",
    )


def _tables() -> Claim:
    relabelled = _THETA.copy()
    relabelled[[1, 3]], relabelled[[4, 5]] = _THETA[[3, 1]], _THETA[[5, 4]]
    clauses, tables = (SmokersModel(theta).log_likelihood(T3, "exact") for theta in (_THETA, relabelled))
    ground = smokers_program(_THETA).ground(2)
    rows = [(1, 1), (0, 1), (1, 0), (0, 0)]
    found = [
        ground.probability(
            "friends{1, 2}", {"ind(1)": True, "ind(2)": True, "smokes(1)": bool(x), "smokes(2)": bool(y)}
        )
        for x, y in rows
    ]
    return Claim(
        "against the tables, the clauses (5.1) and (5.3) hold: theta_1 none smokes, theta_3 both, theta_4 the "
        "independent one does not, theta_5 does; rows TT, FT, TF, FF under X and Y",
        "tables with theta_1 and theta_3, theta_4 and theta_5 exchanged; (5.2) heads two columns smokes(X), and has "
        "rows TT, FT, FF, FF",
        f"P(friends) in the four rows {listed(found)}; log p(T3) is {clauses:.6f} by the clauses and {tables:.6f} by "
        "the tables with the same numbers: a relabelling, but not the same model",
        verdict(np.allclose(found, _THETA[[3, 2, 2, 1]]) and abs(clauses - tables) > 1e-3, corrected=True),
        "(5.2), (5.5)",
    )


def _shared_choice() -> Claim:
    text = str(smokers_program(TEST_VECTOR))
    for k in (4, 5):
        text = text.replace(f"phi{k}{{X, Y}}", f"phi{k}(X)")
    evidence = {"ind(1)": True, "ind(2)": False, "ind(3)": False, "smokes(1)": False}
    both = {"friends{1, 2}": True, "friends{1, 3}": True}
    printed, correct = (p.ground(3).probability(both, evidence) for p in (Program(text), smokers_program(TEST_VECTOR)))
    return Claim(
        "the choices of a pair are phi_4(X, Y) and phi_5(X, Y)",
        "phi_4(X), phi_5(X)",
        f"one independent non-smoker, two others: P(friends of both) is {printed:.4f} with a choice that all pairs "
        f"share, and {correct:.4f} = theta_4^2, as (5.13) has it, with one for each pair",
        verdict(abs(printed - _THETA[4]) < 1e-12 and abs(correct - _THETA[4] ** 2) < 1e-12, corrected=True),
        "(5.3)",
    )


def _advice() -> Claim:
    net = Network.from_edges([1, 1], [(0, 1)])
    evidence = {"ind(1)": False, "ind(2)": True, "smokes(2)": True, "friends{1, 2}": True}
    ground = smokers_program(TEST_VECTOR).ground(2)
    swayed = ground.probability("sa(1)", evidence)
    printed = _changed(", phi8(X, Y)", "").ground(2).probability("sa(1)", evidence)
    return Claim(
        "is(X, Y) is the choice phi_8(X, Y), ins(X, Y) the choice phi_9(X, Y)",
        "atomic choices without a name or probability",
        f"a dependent person with one independent smoking friend is swayed with probability {swayed:.3f} = theta_8; "
        f"{printed:.3f} without the choice; log p of the two {SmokersModel(_THETA).log_likelihood(net):.6f}",
        verdict(abs(swayed - _THETA[8]) < 1e-12 and printed == 1.0, corrected=True),
        "(5.9)",
    )


def _habits() -> Claim:
    printed = _changed("not ind(X), not sa(X), not nsa(X), phi10", "not ind(X), not sa(X), not sa(X), phi10")
    printed = Program(printed.text.replace("not ind(X), not sa(X), nsa(X), phi11", "not ind(X), not sa(X), phi11"))
    alone = {"ind(1)": False, "friends{1, 2}": False}
    chances = [p.ground(2).probability("smokes(1)", alone) for p in (printed, smokers_program(TEST_VECTOR))]
    return Claim(
        "(not sa, not nsa) with phi_10 and (not sa, nsa) with phi_11",
        "(not sa, not sa) in the first clause; no nsa in the second",
        f"a dependent person without friends smokes with probability {chances[0]:.3f} as printed, where both clauses "
        f"apply, and {chances[1]:.3f} = theta_10 as corrected",
        verdict(abs(chances[1] - _THETA[10]) < 1e-12 and chances[0] > chances[1] + 0.05, corrected=True),
        "(5.11)",
    )


def _two_readings() -> Claim:
    readings = [SmokersModel(_THETA, name).log_likelihood(T3) for name in ("independent", "ordered")]
    order = [2, 0, 1]
    moved = [SmokersModel(_THETA, name).log_likelihood(T3.permuted(order)) for name in ("independent", "ordered")]
    return Claim(
        "P(sa(X)), of friends who are independent; the reading 'or Y before X' is another model, which depends on how "
        "people are numbered",
        "ps(X); 'ind(Y) or Y < X' in the sentence after it",
        f"log p(T3) {listed(readings, '.6f')} in the two readings; with people numbered otherwise "
        f"{listed(moved, '.6f')}",
        verdict(
            abs(readings[0] - moved[0]) < 1e-12 and abs(readings[1] - moved[1]) > 1e-4 and readings[0] != readings[1],
            corrected=True,
        ),
        "(5.12)",
    )


def _each_pair_once() -> Claim:
    """Totals over all habits, friendships and z of two people, with one factor for the pair and with two."""
    theta, totals = _THETA, []
    for power in (1, 2):
        total = 0.0
        for s, z in itertools.product(itertools.product((0, 1), repeat=2), repeat=2):
            for f in (0, 1):
                if z == (1, 1):
                    pair = theta[1 + sum(s)]
                elif sum(z) == 1:
                    pair = theta[4 + s[z.index(1)]]
                else:
                    pair = theta[6]
                product = (pair if f else 1 - pair) ** power
                for x, y in ((0, 1), (1, 0)):
                    a, b = theta[8] * f * s[y] * z[y], theta[9] * f * (1 - s[y]) * z[y]
                    rate = (1 - a) * ((1 - b) * theta[10] + b * theta[11]) + a * ((1 - b) * theta[12] + b * theta[13])
                    rate = theta[7] if z[x] else rate
                    product *= (rate if s[x] else 1 - rate) * (theta[0] if z[x] else 1 - theta[0])
                total += product
        totals.append(total)
    return Claim(
        "the product over friendships is over X before Y",
        "over all X, Y",
        f"total probability of two people: {totals[0]:.12f} with each pair once, {totals[1]:.6f} with both orders",
        verdict(abs(totals[0] - 1) < 1e-12 and abs(totals[1] - 1) > 0.1, corrected=True),
        "(5.13)",
    )


def _table_of_choices() -> Claim:
    program = smokers_program(TEST_VECTOR)
    used = {
        part.atom.predicate
        for rule in program.rules
        if rule.head.predicate == "friends"
        for part in rule.body
        if part.atom.predicate in program.choices
    }
    without = _changed("friends{X, Y} <- X < Y, not ind(X), not ind(Y), phi6{X, Y}", "")
    neither = {"ind(1)": False, "ind(2)": False}
    chances = [p.ground(2).probability("friends{1, 2}", neither) for p in (without, program)]
    return Claim(
        "friendships depend on phi_1 to phi_6, six choices",
        "phi_1 through phi_5, a table of 2^5 rows",
        f"{len(used)} choices are used: {', '.join(sorted(used))}; without phi_6 two dependent people are friends with "
        f"probability {chances[0]:.3f} in place of {chances[1]:.3f}",
        verdict(len(used) == 6 and chances[0] == 0.0 and abs(chances[1] - _THETA[6]) < 1e-12, corrected=True),
        "section 5.1.2",
    )


def _union() -> Claim:
    counts = SmokersModel(_THETA).posterior(T3, "exact").counts
    own = counts.map_estimate(4.0, 4.0)
    merged = own.copy()
    # the intersection of a node and its parents is empty: all six rules of a friendship share one table entry
    merged[1:7] = (3 + counts.successes[1:7].sum()) / (6 + counts.trials[1:7].sum())

    def expected(theta):
        success, fail = counts.successes + 3, counts.trials - counts.successes + 3
        return float((success * np.log(theta) + fail * np.log1p(-theta)).sum())

    return Claim(
        "vars[i] is the union of the parents of i and i",
        "the intersection, which is empty",
        f"T3: with the union theta_1 to theta_6 become {listed(own[1:7])}; with the intersection all of them "
        f"{merged[1]:.3f}, and the expected log posterior is lower by {expected(own) - expected(merged):.4f}",
        verdict(expected(own) > expected(merged), corrected=True),
        "(5.17)",
    )


def _evidence_is_fixed() -> Claim:
    model = SmokersModel(_THETA)
    posterior = model.posterior(T3, "exact")
    proper = posterior.counts.successes[7]
    # a distribution over the habits too, as a product with the posterior of z: observed habits would count by chance
    rate = smokers_program(_THETA).ground(3).probability("smokes(1)")
    free = posterior.independence.sum() * rate
    return Claim(
        "q over the unobserved part of vars[i], with the evidence fixed",
        "q(x_vars[i]) over observed variables too",
        f"T3: expected number of independent smokers {proper:.6f} with the habits as observed; {free:.6f} where they "
        "are averaged over like unobserved ones",
        verdict(abs(proper - 1.468239) < 1e-6 and abs(proper - free) > 0.1, corrected=True),
        "(5.20)",
    )


def _aggregates_are_hidden() -> Claim:
    model = SmokersModel(_THETA)
    names = smokers_program(_THETA).ground(3).factor_graph(_evidence()).labels.names
    kinds = sorted({name.split("(")[0] for name in names})
    graph = model.factor_graph(T3)
    chance = model.posterior(T3, "exact").encouraged
    return Claim(
        "the unobserved variables are is, ins and ind, and sa and nsa, which are nodes of the factor graph",
        "precisely is, ins and ind",
        f"the compiled graph of T3 has {', '.join(kinds)}; with the two empty ORs {graph.n_variables} variables and "
        f"{len(graph.factors)} factors; P(sa) = {listed(chance, '.6f')}: not observed",
        verdict(
            kinds == ["ind", "ins", "is", "nsa", "sa"] and (graph.n_variables, len(graph.factors)) == (13, 19),
            corrected=True,
        ),
        "section 5.2.1",
    )


def _evidence() -> dict[str, bool]:
    found = {f"smokes({x + 1})": bool(value) for x, value in enumerate(T3.attribute)}
    return found | {f"friends{{{x + 1}, {y + 1}}}": bool(T3.ties[x, y]) for x, y in T3.pairs.tolist()}


def _one_factor() -> Claim:
    """Beliefs of two factors that share a variable, of a tree, with their own factor and with the sum of all."""
    generator = np.random.default_rng(0)
    first, second = generator.random((2, 2)) + 0.1, generator.random((2, 2)) + 0.1  # over (a, b) and (b, c)
    joint = np.einsum("ab,bc->abc", first, second)
    joint /= joint.sum()
    right = first * second.sum(axis=1)[None]
    right /= right.sum()
    # all log factors summed in the place of one: the others enter averaged over what is not in the belief
    log_all = np.log(first) + np.log(second).mean(axis=1)[None]
    wrong = np.exp(log_all) * second.sum(axis=1)[None]
    wrong /= wrong.sum()
    truth = joint.sum(axis=2)
    return Claim(
        "the belief of a factor has log f_C of that factor",
        "the sum of log f_C over all factors",
        f"a chain of two factors: error of the pair belief {np.abs(right - truth).max():.0e} with its own factor, "
        f"{np.abs(wrong - truth).max():.3f} where the other factor is added (averaged over its other variable, without "
        "which it is no function of the pair)",
        verdict(np.abs(right - truth).max() < 1e-12 and np.abs(wrong - truth).max() > 1e-3, corrected=True),
        "(5.31)",
    )


def _regions() -> Claim:
    graph = SmokersModel(_THETA).factor_graph(T3)
    regions = RegionGraph.bethe(graph)
    degree = np.zeros(graph.n_variables, int)
    for scope, _ in graph.factors:
        degree[list(scope)] += 1
    totals = np.zeros(graph.n_variables, int)
    merged = np.zeros(graph.n_variables, int)
    for region, c in [*((r, 1) for r in regions.outer), *zip(regions.inner, regions.counting, strict=True)]:
        totals[sorted(region.variables)] += c
    unary = {scope[0] for scope, _ in graph.factors if len(scope) == 1}
    for v in range(graph.n_variables):
        # a unary factor and the singleton as one region: it has the number of the singleton, one more for itself
        merged[v] = (2 if v in unary else 1) - degree[v]
    counts = dict(zip((min(r.variables) for r in regions.inner), regions.counting, strict=True))
    first = min(unary)
    return Claim(
        "regions are told apart by their factors as well as their variables; then counting numbers are 1 and 1 - d_i",
        "regions as sets of variables",
        f"every variable of T3 is counted {totals.min()} to {totals.max()} times; variable {first} with a prior has "
        f"1 - d = {counts[first]}, and as one region with its prior 2 - d = {merged[first]}: the same total",
        verdict(
            (totals == 1).all() and counts[first] == 1 - degree[first] and merged[first] == counts[first] + 1,
            corrected=True,
        ),
        "(5.22)-(5.25)",
    )
