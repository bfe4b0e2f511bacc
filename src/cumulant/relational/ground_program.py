"""A program at a domain: atoms that are true or false, their rules, and exact answers by worlds or elimination."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.relational.program_acyclicity import Acyclicity, Dependency, dependency_graph, find_cycle
from cumulant.relational.program_syntax import Pattern, ProgramError, read_atom, suggestion

_LARGEST_ENUMERATED = 1_000_000
_IMPOSSIBLE = "the evidence is impossible: no outcome of the choices makes it true"


@dataclass(frozen=True)
class GroundRule:
    """A rule without variables: the head is true where every atom of the body has the value beside it.

    `is_existential` says that it is one of many for the same head, one for each individual that a variable outside the
    head may stand for.
    """

    head: Pattern
    body: tuple[tuple[Pattern, bool], ...]
    is_existential: bool = False


@dataclass(frozen=True)
class World:
    """Outcomes of choices that decide every atom, whatever the other choices are.

    Attributes
    ----------
    log_probability : float
        Of these outcomes together.
    choices : mapping of str to bool
        The choices that matter.
    atoms : mapping of str to bool
        What then holds.
    """

    log_probability: float
    choices: Mapping[str, bool]
    atoms: Mapping[str, bool]

    @property
    def probability(self) -> float:
        """Of these outcomes together."""
        return math.exp(self.log_probability)


class GroundProgram:
    """The rules of a program for each individual of a domain: made by `Program.ground`.

    Atoms are written as in the program, ``smokes(anna)`` and ``friends{anna, bob}``, choices too.

    Attributes
    ----------
    atoms : tuple of str
        What the rules decide, in the order of their first appearance.
    choices : mapping of str to float
        The probability of each choice.
    """

    def __init__(
        self,
        nodes: Mapping[Pattern, float | None],
        rules: Sequence[GroundRule],
        predicates: Mapping[str, Pattern],
        individuals: Mapping[str, tuple[str, ...]],
        is_acyclic: bool = False,
        facts: Sequence[str] = (),
    ):
        self._index = {pattern: i for i, pattern in enumerate(nodes)}
        self._names = tuple(map(str, nodes))
        self._chances = tuple(nodes.values())
        self._predicates, self._individuals = predicates, individuals
        self._is_acyclic = is_acyclic  # known of the program, for every domain
        self._facts = frozenset(facts)
        self._rules = tuple(rules)
        # the bodies of each atom, as numbers of nodes and truth values; None for a choice
        self.bodies: list[list[tuple[tuple[tuple[int, bool], ...], bool]] | None]
        self.bodies = [None if chance is not None else [] for chance in self._chances]
        for rule in rules:
            body = tuple((self._index[atom], value) for atom, value in rule.body)
            of_head = self.bodies[self._index[rule.head]]
            assert of_head is not None  # Program refuses rules for choices
            of_head.append((body, rule.is_existential))

    @property
    def atoms(self) -> tuple[str, ...]:
        """What the rules decide."""
        return tuple(name for name, chance in zip(self._names, self._chances, strict=True) if chance is None)

    @property
    def choices(self) -> dict[str, float]:
        """The probability of each choice."""
        return {name: p for name, p in zip(self._names, self._chances, strict=True) if p is not None}

    def __repr__(self):
        return f"GroundProgram({len(self.atoms)} atoms, {len(self.choices)} choices, {len(self._rules)} rules)"

    # Cycles ---------------------------------------------------------------------------------------------------------

    def dependencies(self, context: Mapping[str, bool] | None = None) -> nx.DiGraph:
        """What each atom depends on: an arrow from an atom to the heads of the rules whose body it is in.

        Rules that the truth values in `context` rule out are left out, and so are the atoms of the context: with a
        value for each atom of the predicate on which the program is split, these are the diagrams of figure 5.1.
        """
        given = {self._names[node]: value for node, value in self._numbered("context", context).items()}
        return dependency_graph(self._dependencies(set(given)), given)

    def is_contingently_acyclic(self, split_on: str | None = None) -> Acyclicity:
        """Whether no atom depends on itself in any context of `split_on`: exact for this domain.

        See `Program.is_contingently_acyclic`.
        """
        names = dict(zip(self._names, self._index, strict=True))
        split = {name for name, pattern in names.items() if pattern.predicate == split_on}
        found = find_cycle(self._dependencies(set()))
        if found is None:
            return Acyclicity(True, split_on, "this domain")
        if split:
            # the context itself must not depend in a cycle on what it is to decide
            found = find_cycle(self._dependencies(split))
            if found is None:
                return self._context_is_founded(split, split_on)
        cycle, context = found
        return Acyclicity(False, split_on, "this domain", cycle, context)

    def require_acyclic(self) -> None:
        """Refuse a program that is not contingently acyclic, whatever predicate it is split on."""
        if self._is_acyclic:
            return
        for split_on in (None, *sorted({atom.predicate for atom in self._index})):
            found = self.is_contingently_acyclic(split_on)
            if found:
                self._is_acyclic = True
                return
        cycle = self.is_contingently_acyclic()
        raise ProgramError(f"there is no predicate given which the program is acyclic: it is {cycle}")

    def _context_is_founded(self, split: set[str], split_on: str | None) -> Acyclicity:
        """Whether the atoms of the context can be decided before what depends on them."""
        graph = dependency_graph(self._dependencies(set()), {})
        above = set().union(*(nx.ancestors(graph, atom) | {atom} for atom in split if atom in graph), set())
        found = find_cycle([each for each in self._dependencies(set()) if each.head in above and each.cause in above])
        if found is None:
            return Acyclicity(True, split_on, "this domain")
        return Acyclicity(False, split_on, "this domain", found[0], found[1])

    def _dependencies(self, split: set[str]) -> list[Dependency]:
        """Each arrow with what its rule asks of the atoms in `split`, from which no arrows are drawn."""
        out = []
        for head, bodies in enumerate(self.bodies):
            for body, _ in bodies or ():
                told = tuple((self._names[i], value) for i, value in body if self._names[i] in split)
                out += [
                    Dependency(self._names[i], self._names[head], told)
                    for i, _ in body
                    if self.bodies[i] is not None and self._names[i] not in split
                ]
        return out

    # Worlds ---------------------------------------------------------------------------------------------------------

    def possible_worlds(
        self, evidence: Mapping[str, bool] | None = None, *, max_worlds: int = _LARGEST_ENUMERATED
    ) -> Iterator[World]:
        """Each way in which choices decide all atoms; their probabilities add up to that of the evidence.

        Choices that do not matter are left open, so that a world stands for all their outcomes. Worlds exclude each
        other. This is the definition of the distribution, and takes time exponential in the number of choices that
        matter: `probability` is for larger domains. Raises `ProgramError` where the choices leave an atom undecided,
        because it depends on itself.
        """
        wanted = self._numbered("evidence", evidence)
        solver = Deduction(self)
        unknown: list[bool | None] = [None] * len(self._names)
        count, stack = 0, [(unknown, 0.0, list(range(len(self._names))))]
        while stack:
            values, weight, changed = stack.pop()
            if not solver.deduce(values, changed, wanted):
                continue
            choice = solver.choice_that_matters(values, wanted)
            if choice is None:
                count += 1
                if count > max_worlds:
                    raise DomainError(f"there are more than {max_worlds} worlds: use probability, or raise max_worlds")
                made = {name: v for name, v, p in zip(self._names, values, self._chances, strict=True) if p is not None}
                yield World(
                    weight,
                    {name: value for name, value in made.items() if value is not None},
                    {name: bool(values[i]) for i, name in enumerate(self._names) if self.bodies[i] is not None},
                )
                continue
            chance = self._chances[choice]
            assert chance is not None
            for value, p in ((True, chance), (False, 1.0 - chance)):
                if p > 0.0 and wanted.get(choice, value) == value:
                    branch = list(values)
                    branch[choice] = value
                    stack.append((branch, weight + math.log(p), [choice]))

    # Answers --------------------------------------------------------------------------------------------------------

    def factor_graph(self, evidence: Mapping[str, bool] | None = None, *, query: Sequence[str] | None = None) -> Any:
        """The distribution given the evidence as a `graphical.FactorGraph`: its `log_partition` is ``log p(evidence)``.

        Each atom has one factor, whether it is true given the atoms in its rules, with the choices that only it uses
        summed out. The product is the distribution of the possible worlds although the rules have cycles, because the
        choices leave one solution. Rules with a variable outside their head become a causally independent OR
        (`graphical.CausalIndependence`), linear in the number of individuals. What the evidence decides is not in the
        graph; with a `query`, neither is what is irrelevant to it and the evidence (barren nodes). Variables are called
        as their atoms.

        >>> from cumulant.relational import Program
        >>> program = Program("var X: coin\\nflip(X) ~ 0.5\\nheads(X) <- flip(X)")
        >>> round(program.ground(1).factor_graph({"heads(1)": True}).log_partition(), 6)
        -0.693147
        """
        from cumulant.relational.program_factors import compile_graph

        return compile_graph(self, self._numbered("evidence", evidence), self._queried(query))[0]

    def log_probability(self, evidence: Mapping[str, bool], *, method: str = "elimination") -> float:
        """``log p(evidence)``, exact: by elimination in the factor graph, or by going through all worlds."""
        checks.choice("method", method, ("elimination", "worlds"))
        if method == "worlds":
            logs = [world.log_probability for world in self.possible_worlds(evidence)]
            return float(np.logaddexp.reduce(logs)) if logs else -math.inf
        return float(self.factor_graph(evidence, query=()).log_partition())

    def probability(
        self,
        query: str | Mapping[str, bool],
        evidence: Mapping[str, bool] | None = None,
        *,
        method: str = "elimination",
    ) -> float:
        """The probability that an atom is true, or that several have the given values, conditioned on the evidence."""
        checks.instance("query", query, (str, Mapping), "an atom, or a mapping of atoms to values")
        asked = {query: True} if isinstance(query, str) else dict(query)
        both = self._numbered("query", asked)
        given = self._numbered("evidence", evidence)
        below = self.log_probability(evidence or {}, method=method)
        if below == -math.inf:
            raise DomainError(_IMPOSSIBLE)
        if any(given.get(node, value) != value for node, value in both.items()):
            return 0.0
        above = self.log_probability({**(evidence or {}), **asked}, method=method)
        return float(math.exp(min(above - below, 0.0)))  # not above 1 by rounding

    def marginals(self, evidence: Mapping[str, bool] | None = None, **options: Any) -> dict[str, float]:
        """The probability of each atom given the evidence, by elimination, or by ``method="loopy"`` and the other
        methods of `graphical` (see `DiscreteModel.marginals`).
        """
        from cumulant.relational.program_factors import compile_graph

        model, known = compile_graph(self, self._numbered("evidence", evidence), None)
        found = {self._names[i]: float(value) for i, value in known.items()}
        if not model.n_variables and model.log_partition() == -math.inf:
            raise DomainError(_IMPOSSIBLE)
        if model.n_variables:
            chances = model.marginals(**options)
            found |= {name: float(chances[i][1]) for i, name in enumerate(model.labels.names)}
        return {name: found[name] for name in self.atoms}

    # Helpers --------------------------------------------------------------------------------------------------------

    def _numbered(self, argument: str, values: Mapping[str, bool] | None) -> dict[int, bool]:
        if values is not None and not isinstance(values, Mapping):
            raise TypeError(f"{argument} must be a mapping of atoms to truth values; got {type(values).__name__}")
        out = {}
        for text, value in (values or {}).items():
            if not isinstance(value, bool | np.bool_) and value not in (0, 1):
                raise TypeError(f"{argument}: {text} must be true or false; got {value!r}")
            node = self._node(argument, text)
            if out.setdefault(node, bool(value)) != bool(value):
                raise ValueError(f"{argument}: {self._names[node]} is said to be true and to be false")
        return out

    def _queried(self, query: Sequence[str] | None) -> list[int] | None:
        if isinstance(query, str):
            raise TypeError(f"query must be a list of atoms; got the string {query!r}: use [{query!r}]")
        return None if query is None else [self._node("query", text) for text in query]

    def _node(self, argument: str, text: str) -> int:
        with checks.about(argument):
            atom = read_atom(checks.instance("an atom", text, str, "a string such as 'smokes(anna)'"))
            known = self._predicates.get(atom.predicate)
            if known is None:
                close = suggestion(atom.predicate, self._predicates)
                raise ValueError(f"there is no predicate {atom.predicate!r}{close}")
            if len(known.arguments) != len(atom.arguments) or known.is_unordered != atom.is_unordered:
                raise ValueError(f"{text} must be written as {known}")
            for term, kind in zip(atom.arguments, known.arguments, strict=True):
                if term not in self._individuals[kind]:
                    raise ValueError(f"{text}: {term!r} is not among the individuals of {kind}")
            if atom.is_unordered:
                members = self._individuals[known.arguments[0]]
                atom = Pattern(atom.predicate, tuple(sorted(atom.arguments, key=members.index)), True)
            if atom not in self._index:
                if atom.predicate in self._facts:
                    raise ValueError(f"{text} is given as a fact, which is known: ask for what the rules decide")
                raise ValueError(f"{text} is false in every world: no rule is about it")
            return self._index[atom]

    @cached_property
    def users(self) -> list[list[int]]:
        """The atoms that have each node in one of their rules."""
        out: list[list[int]] = [[] for _ in self._names]
        for head, bodies in enumerate(self.bodies):
            for node in {i for body, _ in bodies or () for i, _ in body}:
                out[node].append(head)
        return out

    def name(self, node: int) -> str:
        """What a node is called."""
        return self._names[node]

    def chance(self, node: int) -> float | None:
        """The probability of a choice, None for an atom."""
        return self._chances[node]


class Deduction:
    """What follows from the nodes whose truth is known."""

    def __init__(self, program: GroundProgram):
        self._program = program

    def truth(self, atom: int, values: Sequence[bool | None]) -> bool | None:
        """True where one rule applies, False where none can, None where it is open."""
        open_rule = False
        for body, _ in self._program.bodies[atom] or ():
            known = [values[i] == value if values[i] is not None else None for i, value in body]
            if all(known):
                return True
            open_rule = open_rule or (False not in known)
        return None if open_rule else False

    def deduce(self, values: list[bool | None], changed: list[int], wanted: Mapping[int, bool]) -> bool:
        """Fill in what is decided; whether it agrees with what is wanted."""
        program = self._program
        queue = list(dict.fromkeys([*changed, *(head for node in changed for head in program.users[node])]))
        while queue:
            atom = queue.pop()
            if values[atom] is not None or program.bodies[atom] is None:
                continue
            value = self.truth(atom, values)
            if value is not None:
                if wanted.get(atom, value) != value:
                    return False
                values[atom] = value
                queue += program.users[atom]
        return True

    def choice_that_matters(self, values: Sequence[bool | None], wanted: Mapping[int, bool]) -> int | None:
        """A choice that keeps a rule of an open atom from being decided, if possible alone; None if no atom is open."""
        program, undecided, others = self._program, [], None
        for atom, bodies in enumerate(program.bodies):
            if values[atom] is not None or bodies is None:
                continue
            undecided.append(atom)
            for body, _ in bodies:
                left = [i for i, value in body if values[i] is None]
                false = any(values[i] is not None and values[i] != value for i, value in body)
                choices = [i for i in left if program.bodies[i] is None]
                if not false and choices:
                    if len(choices) == len(left):
                        return left[0]
                    others = choices[0] if others is None else others
        if others is not None:  # atoms wait for each other, until a choice breaks the circle
            return others
        if undecided:
            waiting = find_cycle(
                [
                    Dependency(program.name(i), program.name(atom), ())
                    for atom in undecided
                    for body, _ in program.bodies[atom] or ()
                    for i, _ in body
                    if i in undecided
                ]
            )
            told = ", ".join(
                f"{program.name(i)} is {str(bool(v)).lower()}"
                for i, v in enumerate(values)
                if v is not None and program.bodies[i] is not None
            )
            around = " -> ".join(waiting[0]) if waiting else ", ".join(map(program.name, undecided))
            raise ProgramError(
                f"the choices do not decide every atom: {around} in a context where {told or 'nothing is known'}"
            )
        left = [i for i in wanted if values[i] is None]  # a choice that was given and that nothing else depends on
        return left[0] if left else None
