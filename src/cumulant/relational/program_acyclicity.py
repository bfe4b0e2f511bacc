"""Contingent acyclicity: no atom depends on itself once the truth of the atoms of one predicate is known."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx


@dataclass(frozen=True)
class Acyclicity:
    """What a check of contingent acyclicity found; true or false as a condition.

    Attributes
    ----------
    holds : bool
    split_on : str or None
        The predicate whose atoms are the context.
    scope : str
        What was shown: for every domain, for this one, or for domains of up to some number of individuals.
    cycle : tuple of str
        Atoms that depend on each other in turn, the first again at the end; empty where there is no cycle.
    context : mapping of atoms to bool
        The part of the context under which the cycle arises, whatever the rest is.
    """

    holds: bool
    split_on: str | None
    scope: str = ""
    cycle: tuple[str, ...] = ()
    context: Mapping[str, bool] = field(default_factory=dict)

    def __bool__(self):
        return self.holds

    def __str__(self):
        given = f" given {self.split_on}" if self.split_on else ""
        if self.holds:
            return f"{'contingently ' if self.split_on else ''}acyclic{given}, in {self.scope}"
        told = ", ".join(f"{atom} is {str(value).lower()}" for atom, value in self.context.items())
        when = f" where {told}" if told else f", whatever {self.split_on} is" if self.split_on else ""
        return f"cyclic: {' -> '.join(self.cycle)}{when}"


@dataclass(frozen=True)
class Dependency:
    """``head`` depends on ``cause`` by a rule that applies only under ``conditions`` on the context."""

    cause: str
    head: str
    conditions: tuple[tuple[str, bool], ...]

    def may_hold(self, context: Mapping[str, bool]) -> bool:
        """Whether the context leaves its rule open."""
        return all(context.get(atom, value) == value for atom, value in self.conditions)

    def open_atoms(self, context: Mapping[str, bool]) -> list[str]:
        """The atoms of its conditions that the context says nothing of."""
        return [atom for atom, _ in self.conditions if atom not in context]


def dependency_graph(dependencies: Iterable[Dependency], context: Mapping[str, bool]) -> nx.DiGraph:
    """An arrow from each cause to what depends on it by a rule that the context does not rule out."""
    graph = nx.DiGraph()
    for each in dependencies:
        if each.may_hold(context):
            graph.add_edge(each.cause, each.head)
    return graph


def find_cycle(
    dependencies: Sequence[Dependency], context: Mapping[str, bool] | None = None
) -> tuple[tuple[str, ...], dict[str, bool]] | None:
    """A cycle that arises in some context and the part of the context it needs, or None: complete, by branching.

    A context that says more leaves fewer arrows, so that a branch ends where the arrows it leaves have no cycle.
    """
    context = dict(context or {})
    left = [each for each in dependencies if each.may_hold(context)]
    graph = dependency_graph(left, context)
    try:
        arrows = nx.find_cycle(graph)
    except nx.NetworkXNoCycle:
        return None
    between = {}
    for each in left:  # of several rules for one arrow the one with the fewest open conditions
        key = (each.cause, each.head)
        if key not in between or len(each.open_atoms(context)) < len(between[key].open_atoms(context)):
            between[key] = each
    used = [between[arrow[:2]] for arrow in arrows]
    undecided = [atom for each in used for atom in each.open_atoms(context)]
    if not undecided:
        needed = {atom: value for each in used for atom, value in each.conditions}
        start = min(range(len(used)), key=lambda i: used[i].cause)
        around = [each.cause for each in used[start:] + used[:start]]
        return (*around, around[0]), needed
    # the atoms on the cycle are of one strongly connected part: only arrows within such parts can be of a cycle
    inside = {atom: part for part, atoms in enumerate(nx.strongly_connected_components(graph)) for atom in atoms}
    left = [each for each in left if inside[each.cause] == inside[each.head]]
    for value in (True, False):
        found = find_cycle(left, context | {undecided[0]: value})
        if found is not None:
            return found
    return None


def check_every_domain(program: Any, split_on: str | None) -> bool:
    """Whether the classes of atoms, by predicate and the truth of a unary `split_on` for each argument, are acyclic.

    An atom's class follows from the atom and the context. If an atom depended on itself in some context of some domain,
    so would its class; hence acyclic classes show acyclicity in every domain. The converse does not hold.
    """
    unary = split_on is not None and len(program.predicates[split_on].arguments) == 1
    kind = program.predicates[split_on].arguments[0] if unary else None
    graph = nx.DiGraph()
    heads = {rule.head.predicate for rule in program.rules}
    signatures = {name: atom.arguments for name, atom in program.predicates.items()}

    def label(atom, values):
        kinds = signatures[atom.predicate]
        shown = [values[term] for term, of in zip(atom.arguments, kinds, strict=True) if of == kind]
        return atom.predicate, tuple(sorted(shown) if atom.is_unordered else shown)

    for rule in program.rules:
        atoms = (rule.head, *(literal.atom for literal in rule.body))
        # individuals of several types may have one name
        terms = [each for atom in atoms for each in zip(atom.arguments, signatures[atom.predicate], strict=True)]
        split = list(dict.fromkeys(term for term, of in terms if of == kind)) if unary else []
        for row in itertools.product((False, True), repeat=len(split)):
            values = dict(zip(split, row, strict=True))
            told = [each for each in rule.body if unary and each.atom.predicate == split_on]
            if any(values[each.atom.arguments[0]] != each.is_positive for each in told):
                continue
            for literal in rule.body:
                if literal.atom.predicate in heads:
                    graph.add_edge(label(literal.atom, values), label(rule.head, values))
    return nx.is_directed_acyclic_graph(graph) and _is_founded(program, split_on)


def _is_founded(program: Any, split_on: str | None) -> bool:
    """Whether the context is decided by predicates that do not depend on themselves."""
    graph = nx.DiGraph()
    graph.add_nodes_from(program.predicates)
    graph.add_edges_from((part.atom.predicate, rule.head.predicate) for rule in program.rules for part in rule.body)
    above = set() if split_on is None else nx.ancestors(graph, split_on) | {split_on}
    return nx.is_directed_acyclic_graph(graph.subgraph(above))
