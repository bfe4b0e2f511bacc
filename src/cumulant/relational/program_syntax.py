"""The text of a program: statements, how they are read, and what is wrong with those that cannot be read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from cumulant.errors import CumulantError

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<arrow><-)|(?P<unequal>!=)|(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+|\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<symbol>[(){},:~<])"
)
_CLOSING = {"(": ")", "{": "}"}
_WORDS = ("var", "fact", "not")
# what is written so in other languages
_HINTS = {
    "-": "the arrow of a rule is <-, and a probability is not negative",
    ".": "a statement ends with its line",
    "%": "write 0.3 for 30 per cent; a comment begins with #",
    "/": "write a probability as a decimal number",
    "=": "guards are X != Y and X < Y; for equal individuals use one variable",
    ">": "guards are X != Y and X < Y",
    ";": "a head that is true in several ways has several rules",
    "|": "a choice is true or false: write alternatives as rules with not",
}


class ProgramError(CumulantError, ValueError):
    """A program cannot be read, or does not define a distribution; the message says where and why."""


@dataclass(frozen=True)
class Pattern:
    """An atom with logical variables: ``smokes(X)``, or ``friends{X, Y}`` for an unordered pair."""

    predicate: str
    arguments: tuple[str, ...]
    is_unordered: bool = False

    def __str__(self):
        if not self.arguments:
            return self.predicate
        left, right = "{}" if self.is_unordered else "()"
        return f"{self.predicate}{left}{', '.join(self.arguments)}{right}"


@dataclass(frozen=True)
class Literal:
    """An atom or its negation in the body of a rule."""

    atom: Pattern
    is_positive: bool = True

    def __str__(self):
        return str(self.atom) if self.is_positive else f"not {self.atom}"


@dataclass(frozen=True)
class Guard:
    """``X != Y`` or ``X < Y``: which individuals a rule is about; the order is that of the domain."""

    left: str
    relation: str
    right: str

    def __str__(self):
        return f"{self.left} {self.relation} {self.right}"


@dataclass(frozen=True)
class Rule:
    """``head <- body``: the head is true where the whole body is."""

    head: Pattern
    body: tuple[Literal, ...]
    guards: tuple[Guard, ...]
    line: int

    def __str__(self):
        body = ", ".join(map(str, (*self.body, *self.guards)))
        return f"{self.head} <- {body}" if body else str(self.head)

    @property
    def terms(self) -> tuple[str, ...]:
        """Every argument, in the order of appearance."""
        atoms = (self.head, *(literal.atom for literal in self.body))
        compared = (term for guard in self.guards for term in (guard.left, guard.right))
        return tuple(dict.fromkeys((*(term for atom in atoms for term in atom.arguments), *compared)))


@dataclass(frozen=True)
class Choice:
    """``phi(X) ~ p``: for each individual, independently, true with probability ``p``."""

    atom: Pattern
    probability: float
    line: int


@dataclass(frozen=True)
class Statements:
    """What a text says: the type of each variable, the choices, the relations that are given, and the rules."""

    types: dict[str, str]
    choices: tuple[Choice, ...]
    facts: tuple[Pattern, ...]
    rules: tuple[Rule, ...]


def is_variable(term: str) -> bool:
    """Whether a term is a logical variable: these begin with a capital letter."""
    return term[0].isupper()


def parse(text: str) -> Statements:
    """Read a program; raises `ProgramError` with the line, what stands there and what was expected."""
    types: dict[str, str] = {}
    choices, facts, rules = [], [], []
    for number, source in _statements(text):
        reader = _Reader(source, number)
        if reader.at("var"):
            reader.advance()
            names = reader.several(reader.variable)
            reader.expect(":", "a colon and the type of the variables")
            kind = reader.name("the type of the variables")
            for name in names:
                if types.setdefault(name, kind) != kind:
                    reader.fail(f"{name} is already of type {types[name]}", 0)
        elif reader.at("fact"):
            reader.advance()
            facts += reader.several(reader.atom)
        else:
            head = reader.atom()
            if reader.at("~"):
                reader.advance()
                choices.append(Choice(head, reader.probability(), number))
            else:
                body: list[Literal | Guard] = []
                if reader.at("<-"):
                    reader.advance()
                    body = reader.several(reader.condition)
                literals = tuple(each for each in body if isinstance(each, Literal))
                guards = tuple(each for each in body if isinstance(each, Guard))
                rules.append(Rule(head, literals, guards, number))
        reader.finish()
        for name in reader.variables:
            if name not in types:
                reader.fail(f"variable {name} has no type: declare it, as in 'var {name}: person'", reader.where(name))
    if not (choices or facts or rules):
        raise ProgramError("the text has no choice (~), no fact and no rule (<-)")
    return Statements(types, tuple(choices), tuple(facts), tuple(rules))


def read_atom(text: str) -> Pattern:
    """A single atom, such as ``friends{anna, bob}``."""
    reader = _Reader(text, None)
    atom = reader.atom()
    reader.finish()
    return atom


def suggestion(word: str, known: Iterable[str]) -> str:
    """``; did you mean smokes?`` where there is something similar, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of its first line; one that ends with a comma or an arrow goes on."""
    kept, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].rstrip()
        if not line.strip():
            continue
        kept, first = (f"{kept} {line.strip()}", first) if kept else (line, number)
        if not kept.endswith((",", "<-")):
            yield first, kept
            kept = ""
    if kept:
        yield first, kept


class _Reader:
    """The tokens of one statement, read from left to right."""

    def __init__(self, source: str, line: int | None):
        self.source, self.line, self.place = source, line, 0
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(source):
            match = _TOKEN.match(source, at)
            if match is None:
                hint = "names are of the letters a to z, digits and _" if source[at].isalpha() else ""
                hint = _HINTS.get(source[at], hint)
                self.fail(f"{source[at]!r} has no meaning here{f': {hint}' if hint else ''}", at)
            if match.lastgroup != "space":
                self.tokens.append((str(match.lastgroup), match.group(), at))
            at = match.end()

    def fail(self, message: str, column: int) -> NoReturn:
        where = "" if self.line is None else f"line {self.line}: "
        lead = len(self.source) - len(self.source.lstrip())
        shown = self.source.strip()
        raise ProgramError(f"{where}{message}\n    {shown}\n    {' ' * max(column - lead, 0)}^")

    def at(self, text: str) -> bool:
        return self.place < len(self.tokens) and self.tokens[self.place][1] == text

    def advance(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1][1]

    def column(self) -> int:
        return self.tokens[self.place][2] if self.place < len(self.tokens) else len(self.source)

    def seen(self) -> str:
        return repr(self.tokens[self.place][1]) if self.place < len(self.tokens) else "the end of the statement"

    def expect(self, text: str, wanted: str) -> None:
        if not self.at(text):
            self.fail(f"expected {wanted}; found {self.seen()}", self.column())
        self.place += 1

    def token(self, kinds: tuple[str, ...], wanted: str) -> str:
        if self.place == len(self.tokens) or self.tokens[self.place][0] not in kinds:
            self.fail(f"expected {wanted}; found {self.seen()}", self.column())
        return self.advance()

    def name(self, wanted: str) -> str:
        column = self.column()
        found = self.token(("name",), wanted)
        if is_variable(found):
            self.fail(f"expected {wanted}, which begins with a small letter; found {found!r}", column)
        if found in _WORDS:
            self.fail(f"expected {wanted}; found the keyword {found!r}", column)
        return found

    def variable(self) -> str:
        column, found = self.column(), self.token(("name",), "a variable")
        if not is_variable(found):
            self.fail(f"a variable begins with a capital letter; found {found!r}", column)
        return found

    def term(self) -> str:
        return self.token(("name", "number"), "a variable or an individual")

    def several(self, read):
        found = [read()]
        while self.at(","):
            self.advance()
            found.append(read())
        return found

    def atom(self) -> Pattern:
        predicate = self.name("a predicate")
        bracket = next((each for each in _CLOSING if self.at(each)), None)
        if bracket is None:
            return Pattern(predicate, ())
        column = self.column()
        self.advance()
        arguments = tuple(self.several(self.term))
        self.expect(_CLOSING[bracket], f"a comma or {_CLOSING[bracket]!r}")
        if bracket == "{":
            if len(arguments) != 2:
                self.fail(f"braces hold an unordered pair; found {len(arguments)} arguments", column)
            if arguments[0] == arguments[1]:
                self.fail(f"an unordered pair has two different members; found {arguments[0]} twice", column)
        return Pattern(predicate, arguments, bracket == "{")

    def condition(self) -> Literal | Guard:
        if self.at("not"):
            self.advance()
            return Literal(self.atom(), False)
        after = self.tokens[self.place + 1][1] if self.place + 1 < len(self.tokens) else ""
        if after in ("!=", "<"):
            left, relation = self.term(), self.advance()
            return Guard(left, relation, self.term())
        return Literal(self.atom())

    def probability(self) -> float:
        column = self.column()
        value = float(self.token(("number",), "a probability"))
        if not 0.0 <= value <= 1.0:
            self.fail(f"a probability is between 0 and 1; found {value:g}", column)
        return value

    def finish(self) -> None:
        if self.place < len(self.tokens):
            self.fail(f"expected the end of the statement; found {self.seen()}", self.column())

    @property
    def variables(self) -> list[str]:
        return [text for kind, text, _ in self.tokens if kind == "name" and is_variable(text)]

    def where(self, name: str) -> int:
        return next(column for _, text, column in self.tokens if text == name)
