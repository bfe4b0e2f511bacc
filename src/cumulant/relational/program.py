"""Programs of rules with independent choices: what a distribution over relations is written in."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cumulant import checks
from cumulant.relational.ground_program import GroundProgram, GroundRule
from cumulant.relational.program_acyclicity import Acyclicity, check_every_domain
from cumulant.relational.program_syntax import (
    Guard,
    Pattern,
    ProgramError,
    Rule,
    Statements,
    is_variable,
    parse,
    suggestion,
)

# What the acyclicity check looks for a counter-example in, where the proof for every domain does not go through.
_LARGEST_SEARCHED = 4


@dataclass(frozen=True)
class Program:
    """A distribution over relations, written as rules with independent choices (independent choice logic, Poole 1997).

    A program is a text with one statement a line:

    - ``var X, Y: person`` gives logical variables, which begin with a capital letter, a type;
    - ``phi(X) ~ 0.3`` is a choice: for each individual, independently of all else, true with this probability;
    - ``head <- condition, condition`` is a rule: the head is true if all conditions of one of its rules are, for some
      individuals in place of the variables that are not in the head, and false otherwise;
    - ``fact contact{X, Y}`` is a relation that is given when the program is grounded.

    A condition is an atom ``smokes(X)``, a negated one ``not smokes(X)``, or a guard ``X != Y``, ``X < Y`` (the order
    of the domain). Braces are for unordered pairs: ``friends{X, Y}`` is one atom for both orders, and there is none of
    somebody with himself. What follows ``#`` is a comment; a line that ends with a comma goes on in the next.

    For each outcome of all choices, the rules must fix the truth of every atom. They do where no atom depends on
    itself in any *context*, that is, given the truth of the atoms of one predicate (`is_contingently_acyclic`), even if
    the rules without a context have cycles. Then the probability of a statement is that of the choices under which it
    is true.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> program = Program('''
    ...     var X, Y: person
    ...     seed(X) ~ 0.1
    ...     passes(X, Y) ~ 0.5
    ...     fact contact{X, Y}
    ...     infected(X) <- seed(X)
    ...     infected(X) <- contact{X, Y}, seed(Y), passes(Y, X)
    ... ''')
    >>> ground = program.ground(["anna", "bob", "carl"], facts={"contact": [("anna", "bob"), ("bob", "carl")]})
    >>> round(ground.probability("infected(anna)"), 6)                  # 1 - 0.9 (1 - 0.1 * 0.5)
    0.145
    >>> round(ground.probability("seed(bob)", {"infected(anna)": True}), 6)
    0.37931
    """

    text: str
    _statements: Statements = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        checks.instance("text", self.text, str, "the text of a program")
        object.__setattr__(self, "_statements", parse(self.text))
        self._check()

    # What it says ---------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of the text."""
        return self._statements.rules

    @cached_property
    def choices(self) -> dict[str, float]:
        """The probability of each choice."""
        return {each.atom.predicate: each.probability for each in self._statements.choices}

    @property
    def facts(self) -> tuple[str, ...]:
        """The relations that are given at grounding."""
        return tuple(atom.predicate for atom in self._statements.facts)

    @cached_property
    def predicates(self) -> dict[str, Pattern]:
        """Each predicate with the types of its arguments, ``friends{person, person}``."""
        return {
            name: Pattern(name, tuple(kind or self.types[0] for kind in types), atom.is_unordered)
            for name, (atom, types) in self._signatures().items()
        }

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the individuals."""
        return tuple(dict.fromkeys(self._statements.types.values()))

    def with_probabilities(self, probabilities: Mapping[str, float] | None = None, **named: float) -> Program:
        """The same rules with other probabilities of some choices.

        >>> program = Program("var X: coin\\nflip(X) ~ 0.5\\nheads(X) <- flip(X)")
        >>> program.with_probabilities(flip=0.75).ground(1).probability("heads(1)")
        0.75
        """
        new, text = dict(probabilities or {}) | named, self.text
        for name, value in new.items():
            if name not in self.choices:
                raise ProgramError(f"the program has no choice {name!r}{suggestion(name, self.choices)}")
            if not 0.0 <= checks.number(f"the probability of {name}", value) <= 1.0:
                raise ValueError(f"the probability of {name} must be between 0 and 1; got {value}")
            text = self._with_probability(text, name, float(value))
        return Program(text)

    def _with_probability(self, text: str, name: str, value: float) -> str:
        """The text with another number after the ``~`` of a choice, which may be lines below its name."""
        at = next(choice.line for choice in self._statements.choices if choice.atom.predicate == name) - 1
        lines = text.splitlines(keepends=True)
        while "~" not in lines[at].split("#", 1)[0]:
            at += 1
        lines[at] = re.sub(r"~(\s*)[^\s#]+", rf"~\g<1>{value!r}", lines[at], count=1)
        return "".join(lines)

    def __str__(self):
        return self.text

    # Meaning --------------------------------------------------------------------------------------------------------

    def ground(self, domain: Any, facts: Mapping[str, Sequence[Any]] | None = None) -> GroundProgram:
        """The rules for each individual of a domain.

        Parameters
        ----------
        domain : mapping of types to individuals, or sequence, or int
            The individuals of each type, in the order that ``<`` compares; a number ``n`` stands for ``1, ..., n``.
            With one type, its individuals or their number will do.
        facts : mapping of predicates to lists of tuples, optional
            Where the relations declared with ``fact`` hold. Only these: what is not listed is false.
        """
        individuals = self._domain(domain)
        known = self._facts(facts or {}, individuals)
        nodes: dict[Pattern, float | None] = {}
        for choice in self._statements.choices:
            for binding in self._bindings(choice.atom.arguments, (), (choice.atom,), individuals):
                atom = self._instance(choice.atom, binding, individuals)
                nodes.setdefault(atom, self.choices[choice.atom.predicate])
        rules: list[GroundRule] = []
        seen: set[tuple] = set()
        for template in self.rules:
            in_head = set(template.head.arguments)
            has_free = any(is_variable(term) and term not in in_head for term in template.terms)
            atoms = (template.head, *(literal.atom for literal in template.body))
            for binding in self._bindings(template.terms, template.guards, atoms, individuals):
                head = self._instance(template.head, binding, individuals)
                nodes.setdefault(head, None)
                body = self._body(template, binding, individuals, known)
                key = (head, body)
                if body is None or key in seen:
                    continue
                seen.add(key)
                for atom, _ in body:
                    nodes.setdefault(atom, None)
                rules.append(GroundRule(head, body, has_free))
        return GroundProgram(nodes, rules, self.predicates, individuals, self._is_acyclic_everywhere, self.facts)

    @cached_property
    def _is_acyclic_everywhere(self) -> bool:
        return any(check_every_domain(self, split_on) for split_on in (None, *self.predicates))

    def is_contingently_acyclic(
        self, split_on: str | None = None, domain: Any = None, facts: Mapping[str, Sequence[Any]] | None = None
    ) -> Acyclicity:
        """Whether in each context, a truth value for every atom of `split_on`, no atom depends on itself.

        Without a `domain` this is about all of them. Atoms are sorted into classes by their predicate and the truth of
        `split_on` for their arguments; where the classes do not depend on themselves, no atom does, in any domain.
        Where they do, a cycle is looked for in domains of up to four individuals, and the answer says how far it
        reaches. With a `domain`, contexts are split only where they decide about a cycle, and the answer is exact.

        Returns
        -------
        Acyclicity
            True or false as a condition, with the cycle, the context in which it arises, and what was shown.

        Examples
        --------
        >>> guarded = '''
        ...     var X, Y: person
        ...     a(X) ~ 0.5
        ...     b(X, Y) ~ 0.5
        ...     leads(X) <- a(X)
        ...     buys(X) <- leads(X), a(X)
        ...     buys(X) <- not leads(X), leads(Y), buys(Y), b(X, Y)
        ... '''
        >>> print(Program(guarded).is_contingently_acyclic("leads"))
        contingently acyclic given leads, in every domain
        >>> print(Program(guarded.replace("not leads(X), leads(Y), ", "")).is_contingently_acyclic("leads"))
        cyclic: buys(1) -> buys(1), whatever leads is
        """
        if split_on is not None and split_on not in self.predicates:
            raise ProgramError(f"split_on: the program has no predicate {split_on!r}")
        if domain is not None:
            return self.ground(domain, facts).is_contingently_acyclic(split_on)
        if check_every_domain(self, split_on):
            return Acyclicity(True, split_on, "every domain")
        if self.facts:
            raise ProgramError(
                "acyclicity: it could not be shown for every domain, and what is given as a fact decides it; give a "
                "domain and its facts"
            )
        found = Acyclicity(True, split_on, "no domain")
        for n in range(1, _LARGEST_SEARCHED + 1):
            found = self.ground(dict.fromkeys(self.types, n)).is_contingently_acyclic(split_on)
            if not found:
                return found
        return replace(found, scope=f"domains of up to {_LARGEST_SEARCHED} individuals (not shown for larger ones)")

    # Helpers --------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for atom, kinds in self._signatures().values():
            if "" in kinds and len(self.types) != 1:  # with one type there is no doubt
                raise ProgramError(
                    f"the type of {atom.arguments[kinds.index('')]} in {atom} is not known: use {atom.predicate} "
                    "with a variable in its place somewhere"
                )
        heads = {rule.head.predicate for rule in self.rules}
        chosen: set[str] = set()
        for choice in self._statements.choices:
            name = choice.atom.predicate
            if name in chosen:
                raise ProgramError(f"line {choice.line}: the choice {name} has a probability already")
            chosen.add(name)
            if not all(map(is_variable, choice.atom.arguments)) or len(set(choice.atom.arguments)) < len(
                choice.atom.arguments
            ):
                raise ProgramError(f"line {choice.line}: the arguments of a choice are different variables")
        for name in chosen & heads:
            line = next(rule.line for rule in self.rules if rule.head.predicate == name)
            raise ProgramError(f"line {line}: {name} is a choice, which depends on nothing: it cannot head a rule")
        for name in set(self.facts) & (heads | chosen):
            raise ProgramError(f"{name} is given as a fact: it can be neither a choice nor the head of a rule")
        defined = heads | chosen | set(self.facts)
        for rule in self.rules:
            for guard in rule.guards:
                kinds = {self._statements.types[term] for term in (guard.left, guard.right) if is_variable(term)}
                if len(kinds) > 1:
                    raise ProgramError(f"line {rule.line}: {guard} compares individuals of different types")
                if not kinds and len(self.types) != 1:
                    raise ProgramError(f"line {rule.line}: {guard} compares individuals whose type is not known")
            for literal in rule.body:
                name = literal.atom.predicate
                if name not in defined:
                    raise ProgramError(
                        f"line {rule.line}: {name} is neither a choice (~), a fact nor the head of a rule"
                        f"{suggestion(name, defined)}"
                    )

    def _signatures(self) -> dict[str, tuple[Pattern, tuple[str, ...]]]:
        """The first use of each predicate and the types of its arguments; all uses must agree."""
        types, found = self._statements.types, {}
        uses = [(choice.line, choice.atom) for choice in self._statements.choices]
        uses += [(0, atom) for atom in self._statements.facts]
        uses += [(rule.line, each) for rule in self.rules for each in (rule.head, *(part.atom for part in rule.body))]
        for line, atom in uses:
            own = tuple(types.get(term, "") for term in atom.arguments)
            if atom.is_unordered and all(own) and own[0] != own[1]:
                raise ProgramError(f"line {line}: both members of the pair {atom} must be of one type; got {own}")
            if atom.predicate not in found:
                found[atom.predicate] = (atom, own)
                continue
            first, before = found[atom.predicate]
            if first.is_unordered != atom.is_unordered or len(before) != len(own):
                raise ProgramError(f"line {line}: {atom} is used elsewhere as {first}")
            if any(a and b and a != b for a, b in zip(before, own, strict=True)):
                raise ProgramError(
                    f"line {line}: the arguments of {atom} are of type {', '.join(own)}, elsewhere {', '.join(before)}"
                )
            found[atom.predicate] = (first, tuple(a or b for a, b in zip(before, own, strict=True)))
        return found

    def _domain(self, domain: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(domain, Mapping):
            if len(self.types) != 1:
                raise ValueError(f"domain must name the individuals of each type: {', '.join(self.types)}")
            domain = {self.types[0]: domain}
        if set(domain) != set(self.types):
            raise ValueError(f"domain must have the types {', '.join(self.types)}; got {', '.join(map(str, domain))}")
        out = {}
        for kind, given in domain.items():
            if isinstance(given, str):
                raise TypeError(f"domain: the individuals of {kind} must be a list of them or their number")
            several = isinstance(given, Sequence) or hasattr(given, "__iter__")
            members = list(given) if several else range(1, 1 + checks.whole(f"domain: the number of {kind}", given))
            names = tuple(map(str, members))
            if len(set(names)) < len(names):
                raise ValueError(f"domain: the individuals of {kind} must have different names; got {names!s:.80}")
            out[kind] = names
        for name, kind in dict.fromkeys(self._individuals_named()):
            if name not in out[kind]:
                raise ValueError(f"domain: the program names {name}, which is not among the individuals of {kind}")
        return out

    def _individuals_named(self):
        """Individuals that the rules and facts name, with their types."""
        atoms = [atom for rule in self.rules for atom in (rule.head, *(part.atom for part in rule.body))]
        pairs = [
            pair
            for atom in (*atoms, *self._statements.facts)
            for pair in zip(atom.arguments, self.predicates[atom.predicate].arguments, strict=True)
        ]
        guards = [guard for rule in self.rules for guard in rule.guards]
        pairs += [(term, self._type_of(guard)) for guard in guards for term in (guard.left, guard.right)]
        return [(term, kind) for term, kind in pairs if not is_variable(term)]

    def _type_of(self, guard: Guard) -> str:
        types = self._statements.types
        return types.get(guard.left) or types.get(guard.right) or self.types[0]

    def _facts(self, facts: Mapping[str, Sequence[Any]], individuals: dict) -> set[Pattern]:
        missing = [name for name in self.facts if name not in facts]
        if missing:
            raise ValueError(f"facts must say where {missing[0]} holds: a list of tuples")
        out = set()
        for name, tuples in facts.items():
            if name not in self.facts:
                raise ValueError(f"facts: {name!r} is not declared as a fact{suggestion(name, self.facts)}")
            signature = self.predicates[name]
            for each in tuples:
                row = tuple(map(str, (each,) if isinstance(each, str) or not hasattr(each, "__iter__") else each))
                if len(row) != len(signature.arguments):
                    raise ValueError(f"facts: {name} takes {len(signature.arguments)} individuals; got {each!r}")
                for term, kind in zip(row, signature.arguments, strict=True):
                    if term not in individuals[kind]:
                        raise ValueError(f"facts: {name} names {term!r}, which is not among the individuals of {kind}")
                if signature.is_unordered and row[0] == row[1]:
                    raise ValueError(f"facts: {name} holds of two different individuals; got {each!r}")
                out.add(self._sorted(Pattern(name, row, signature.is_unordered), individuals))
        return out

    def _bindings(self, terms: Sequence[str], guards: Sequence[Guard], atoms: Sequence[Pattern], individuals: dict):
        """Each way to put individuals in place of variables that the guards and the pairs allow."""
        types = self._statements.types
        free = [term for term in terms if is_variable(term)]
        for values in itertools.product(*(individuals[types[term]] for term in free)):
            binding = dict(zip(free, values, strict=True))

            def member(term, binding=binding):
                return binding.get(term, term)

            if any(atom.is_unordered and len(set(map(member, atom.arguments))) < 2 for atom in atoms):
                continue
            if all(self._allows(guard, member(guard.left), member(guard.right), individuals) for guard in guards):
                yield binding

    def _allows(self, guard: Guard, left: str, right: str, individuals: dict) -> bool:
        if guard.relation == "!=":
            return left != right
        members = individuals[self._type_of(guard)]
        return members.index(left) < members.index(right)

    def _instance(self, atom: Pattern, binding: dict[str, str], individuals: dict) -> Pattern:
        arguments = tuple(binding.get(term, term) for term in atom.arguments)
        return self._sorted(Pattern(atom.predicate, arguments, atom.is_unordered), individuals)

    def _sorted(self, atom: Pattern, individuals: dict) -> Pattern:
        if not atom.is_unordered:
            return atom
        members = individuals[self.predicates[atom.predicate].arguments[0]]
        return replace(atom, arguments=tuple(sorted(atom.arguments, key=members.index)))

    def _body(self, rule: Rule, binding: dict, individuals: dict, known: set):
        """The conditions left when facts are known, or None where one is false."""
        kept = []
        for literal in rule.body:
            atom = self._instance(literal.atom, binding, individuals)
            if atom.predicate in self.facts:
                if (atom in known) != literal.is_positive:
                    return None
                continue
            kept.append((atom, literal.is_positive))
        opposite = {(atom, not value) for atom, value in kept}
        return None if opposite & set(kept) else tuple(dict.fromkeys(kept))
