"""The factor graph of a ground program: one factor for each atom, given the atoms in its rules."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from cumulant.errors import TooWide
from cumulant.graphical import CausalFactorGraph, CausalIndependence, FactorGraph
from cumulant.relational.ground_program import Deduction, GroundProgram

_WIDEST = 14  # unknown atoms and choices in one table
_MOST_CHOICES = 20  # that are summed out of one entry of a table

Body = tuple[tuple[int, bool], ...]


def compile_graph(
    program: GroundProgram, evidence: Mapping[int, bool], query: Sequence[int] | None
) -> tuple[Any, dict[int, bool]]:
    """The factor graph given the evidence, and the truth of what follows from the evidence without it.

    With ``c`` the choices and ``x`` the atoms, ``p(c, x) = prod p(c_i) prod_a [x_a = OR of the bodies of a]``: under
    contingent acyclicity the equations have one solution for each ``c``, so that this sums to one. A choice in the
    rules of one atom only is summed out of its factor.
    """
    program.require_acyclic()
    values: list[bool | None] = [evidence.get(i) for i in range(len(program.bodies))]
    deduction = Deduction(program)
    known, impossible = dict(evidence), False
    # what the evidence decides: an atom whose rules are all false, or one of them true
    waiting = [i for i, bodies in enumerate(program.bodies) if bodies is not None]
    while waiting:
        atom = waiting.pop()
        value = deduction.truth(atom, values)
        if value is None:
            continue
        if atom in evidence:
            impossible = impossible or evidence[atom] != value
        elif values[atom] is None:
            values[atom] = known[atom] = value
            waiting += program.users[atom]
    builder = _Builder(program, values, evidence, query)
    for atom in builder.kept:
        builder.add(atom)
    return builder.model(impossible), known


class _Builder:
    """Collects variables and factors."""

    def __init__(
        self,
        program: GroundProgram,
        values: Sequence[bool | None],
        evidence: Mapping[int, bool],
        query: Sequence[int] | None,
    ):
        self.program, self.values, self.evidence = program, values, evidence
        self.constant = 0.0
        self.number: dict[Any, int] = {}
        self.names: list[str] = []
        self.factors: list[tuple[tuple[int, ...], np.ndarray]] = []
        self.causal: list[CausalIndependence] = []
        self.asked = set(query or ())
        # the atoms that have a factor, and those of them that each choice is used by
        self.kept = self.relevant(query)
        self.users: dict[int, set[int]] = {}
        for atom in self.kept:
            for body, _ in self.open_bodies(atom):
                for node, _ in body:
                    if program.bodies[node] is None:
                        self.users.setdefault(node, set()).add(atom)
        for node, value in evidence.items():  # choices that are given have their own probability
            chance = program.chance(node)
            if chance is not None:
                self.constant += _log(chance if value else 1.0 - chance)

    def relevant(self, query: Sequence[int] | None) -> list[int]:
        """The open atoms that the evidence or the query depend on, by rules that the evidence does not rule out."""
        atoms = [
            atom
            for atom, bodies in enumerate(self.program.bodies)
            if bodies is not None and (self.values[atom] is None or atom in self.evidence)
        ]
        if query is None:
            return atoms
        graph = nx.DiGraph()
        graph.add_nodes_from([*atoms, *self.evidence, *query])
        graph.add_edges_from((i, atom) for atom in atoms for body, _ in self.open_bodies(atom) for i, _ in body)
        starts = {*self.evidence, *query}
        wanted = starts.union(*(nx.ancestors(graph, node) for node in starts))
        return [atom for atom in atoms if atom in wanted]

    def open_bodies(self, atom: int) -> list[tuple[Body, bool]]:
        """The bodies that may be true, without what is known of them."""
        out = {}
        for body, is_existential in self.program.bodies[atom] or ():
            if all(self.values[i] is None or self.values[i] == value for i, value in body):
                out[tuple((i, value) for i, value in body if self.values[i] is None)] = is_existential
        return list(out.items())

    def add(self, atom: int) -> None:
        """The factor of one atom."""
        bodies = self.open_bodies(atom)
        is_wide = len(self.scope([body for body, _ in bodies], atom)) > _WIDEST
        if len(bodies) < 2 or not (is_wide or any(existential for _, existential in bodies)):
            self.table(atom, [body for body, _ in bodies])
            return
        plain = [] if is_wide else [body for body, is_existential in bodies if not is_existential]
        apart = [body for body, _ in bodies if body not in plain]
        groups = ([plain] if plain else []) + [[body] for body in apart]
        # a choice in several groups cannot be summed out of any of them
        shared = {
            node
            for node in {i for body, _ in bodies for i, _ in body if self.program.bodies[i] is None}
            if sum(any((node, v) in body for body in group for v in (True, False)) for group in groups) > 1
        }
        causes = list(dict.fromkeys(self.cause(atom, group, shared) for group in groups))
        effect = self.variable(atom)
        if len(causes) == 1:
            self.factors.append(((causes[0], effect), np.eye(2)))
        else:
            self.causal.append(CausalIndependence("or", effect, causes))
        if atom in self.evidence:
            self.factors.append(((effect,), np.eye(2)[int(self.evidence[atom])]))

    def cause(self, atom: int, group: list[Body], shared: set[int]) -> int:
        """The variable that says whether one of a group of bodies is true: the atom itself where a body is one."""
        if len(group) == 1 and len(group[0]) == 1 and group[0][0][1] and self.is_variable(group[0][0][0], atom, shared):
            return self.variable(group[0][0][0])
        told = " or ".join(
            ", ".join(self.program.name(i) if value else f"not {self.program.name(i)}" for i, value in body)
            for body in group
        )
        key = (atom, tuple(group))
        self.number[key] = len(self.names)
        self.names.append(f"{self.program.name(atom)} <- {told}")
        self.table(atom, group, self.number[key], shared)
        return self.number[key]

    def table(self, atom: int, bodies: list[Body], variable: int | None = None, shared: set[int] | None = None) -> None:
        """``p(no body is true | scope)`` and ``p(some body is true | scope)``; own choices are summed out."""
        shared = shared or set()
        scope = self.scope(bodies, atom, shared)
        if len(scope) > _WIDEST:
            raise TooWide(
                f"a rule for {self.program.name(atom)} depends on {len(scope)} open atoms at once, which needs a table "
                f"of 2^{len(scope)} entries: split its body by a predicate of its own"
            )
        chances = np.zeros((2,) * len(scope) + (2,))
        for states in itertools.product((False, True), repeat=len(scope)):
            held = dict(zip(scope, states, strict=True))
            active = [
                [(i, value) for i, value in body if i not in held]
                for body in bodies
                if all(held.get(i, value) == value for i, value in body)
            ]
            chances[tuple(map(int, states))] = self.chances(active)
        numbers = tuple(self.variable(i) for i in scope)
        given = self.evidence.get(atom) if variable is None else None
        if given is not None:
            self.factors.append((numbers, chances[..., int(given)]))
        else:
            own = self.variable(atom) if variable is None else variable
            self.factors.append(((*numbers, own), chances))

    def chances(self, bodies: list[list[tuple[int, bool]]]) -> tuple[float, float]:
        """The probabilities that the choices make none of the bodies true, and that they make one true.

        Both are sums of products, so that what is impossible is 0 and what is rare keeps its digits.
        """
        if any(not body for body in bodies):
            return 0.0, 1.0
        choices = list(dict.fromkeys(i for body in bodies for i, _ in body))
        if len(choices) == sum(map(len, bodies)):  # no choice is in two bodies
            none, some = 1.0, 0.0
            for body in bodies:
                true, false = 1.0, 0.0
                for i, value in body:
                    false += true * self.likelihood(i, not value)
                    true *= self.likelihood(i, value)
                some += none * true
                none *= false
            return none, some
        if len(choices) > _MOST_CHOICES:
            raise TooWide(
                f"rules for one atom share {len(choices)} choices, of which 2^{len(choices)} outcomes would be summed "
                f"over ({', '.join(map(self.program.name, choices[:3]))}, ...): give some a predicate of their own"
            )
        totals = [0.0, 0.0]
        for states in itertools.product((False, True), repeat=len(choices)):
            held = dict(zip(choices, states, strict=True))
            is_true = any(all(held[i] == value for i, value in body) for body in bodies)
            totals[is_true] += math.prod(self.likelihood(i, value) for i, value in held.items())
        return totals[0], totals[1]

    def likelihood(self, choice: int, value: bool) -> float:
        """The probability of one outcome of a choice."""
        chance = self.program.chance(choice)
        assert chance is not None
        return chance if value else 1.0 - chance

    def is_variable(self, node: int, atom: int, shared: set[int]) -> bool:
        """Whether a node stands in the graph: an atom, or a choice that is asked for or used in several factors."""
        is_used_twice = node in shared or self.users.get(node, set()) > {atom}
        return self.program.bodies[node] is not None or is_used_twice or node in self.asked

    def scope(self, bodies: Sequence[Body], atom: int, shared: set[int] | None = None) -> list[int]:
        """The variables that the bodies are about, the choices that are summed out left aside."""
        return sorted({i for body in bodies for i, _ in body if self.is_variable(i, atom, shared or set())})

    def variable(self, node: int) -> int:
        """The number of an atom or a shared choice, whose prior is added with it."""
        if node not in self.number:
            self.number[node] = len(self.names)
            self.names.append(self.program.name(node))
            chance = self.program.chance(node)
            if chance is not None:
                self.factors.append(((self.number[node],), np.array([1.0 - chance, chance])))
        return self.number[node]

    def model(self, impossible: bool) -> Any:
        """The graph of what was added."""
        factors = [(scope, _log(table)) for scope, table in self.factors]
        constant = -np.inf if impossible else self.constant
        sizes = [2] * len(self.names)
        # constants, of atoms that are observed and depend on choices alone, are gathered in one
        constant += sum(float(table) for scope, table in factors if not scope)
        factors = [pair for pair in factors if pair[0]]
        if constant != 0.0 or not factors:
            factors.append(((), np.array(constant)))
        if self.causal:
            return CausalFactorGraph(sizes, factors, self.causal, names=self.names)
        return FactorGraph(sizes, factors, names=self.names)


def _log(values: Any) -> Any:
    """The logarithm, with log 0 = -inf: a state that is impossible."""
    with np.errstate(divide="ignore"):
        return np.log(values)
