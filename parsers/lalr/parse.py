"""Parsing by the tables of a grammar (`automaton.py`).

The algorithm is the textbook's: a stack of states, on which terminals are shifted and the parts of a rule reduced to
one. A terminal is looked for among those that the state goes on with. Actions run while the text is parsed, so no tree
is built, and nesting in the text costs no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..expressions import compiled
from .automaton import END, Rule, Tables

Action = Callable[..., object]
Actions = Mapping[str, Action]
"""Actions of rules and terminals: a rule's action takes the values of its parts, a terminal's its text or Token."""

_Scan = Callable[[str, int], re.Match[str] | None]


class Token(NamedTuple):
    """A terminal in a text: its name, its characters, and the offset of the first of them."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset behind its last character."""
        return self.start + len(self.text)


class UnexpectedTerminalError(Exception):
    """Some characters of a text, from `start` up to `end`, are none of the terminals `expected`."""

    def __init__(self, start: int, end: int, expected: frozenset[str]) -> None:
        super().__init__(start, end, expected)
        self.start = start
        self.end = end
        self.expected = expected


class Machine:
    """The tables of a grammar with what its rules and terminals mean."""

    def __init__(self, tables: Tables, actions: Actions) -> None:
        self.tables = tables
        self.terminals = {name: action for name, action in actions.items() if name.isupper()}
        self.reductions = [(rule.size, rule.origin, _meaning(rule, actions.get(rule.name))) for rule in tables.rules]
        self.ignored = frozenset(tables.ignored)
        self._scanners: dict[int, tuple[_Scan, Mapping[str, Mapping[str, str]]]] = {}

    def scanner(self, state: int) -> tuple[_Scan, Mapping[str, Mapping[str, str]]]:
        """Return the scanner of the terminals that a state continues with, and the words among them."""
        number = self.tables.scanner_of[state]
        if number not in self._scanners:
            scanner = self.tables.scanners[number]
            self._scanners[number] = compiled(scanner.pattern).match, scanner.words
        return self._scanners[number]


class Parse:
    """A text that is being parsed as one of the grammar's rules, its first if none is named."""

    def __init__(self, machine: Machine, start: str | None = None) -> None:
        self._machine = machine
        self._rows = machine.tables.rows
        self._states = [machine.tables.starts[start or next(iter(machine.tables.starts))]]
        self._values: list[object] = []

    def text(self, text: str, placed: bool, offset: int = 0) -> object:
        """The meaning of a whole text; with `placed`, actions of terminals take Tokens, counted from an offset.

        Raises UnexpectedTerminalError.
        """
        machine, states, values, scanner = self._machine, self._states, self._values, self._machine.scanner
        terminals, ignored = machine.terminals, machine.ignored
        position = 0
        while True:
            scan, words = scanner(states[-1])
            match = scan(text, position)
            if match is None:
                break
            start, position = position, match.end()
            kind = match.lastgroup
            assert kind is not None
            if kind in ignored:
                continue
            if kind in words:
                kind = words[kind].get(match[0], kind)
            state = self._reduced(kind)
            if state is None:
                raise UnexpectedTerminalError(start, position, self._expected())
            action = terminals.get(kind)
            token: str | Token = Token(kind, match[0], offset + start) if placed else match[0]
            values.append(token if action is None else action(token))
            states.append(state)
        if position < len(text):
            found = re.compile(machine.tables.root).match(text, position)
            raise UnexpectedTerminalError(position, found.end() if found else position + 1, self._expected())
        if self._reduced(END) is None:
            raise UnexpectedTerminalError(position, position, self._expected())
        return values[-1]

    def feed(self, kind: str, value: object) -> None:
        """Take a terminal that the caller has found; raises ValueError if it can not come."""
        state = self._reduced(kind)
        if state is None:
            raise ValueError(f"{kind}, where one of {sorted(self._expected())} can come")
        self._states.append(state)
        self._values.append(value)

    def end(self) -> object:
        """The meaning of what was fed; raises ValueError if there is more to come."""
        if self._reduced(END) is None:
            raise ValueError(f"the end, where one of {sorted(self._expected())} can come")
        return self._values[-1]

    def _reduced(self, kind: str) -> int | None:
        """Reduce what is complete if a terminal comes; the state behind that, None if it can not come."""
        rows, states, values, reductions = self._rows, self._states, self._values, self._machine.reductions
        while True:
            step = rows[states[-1]].get(kind)
            if step is None or step >= 0:
                return step
            size, origin, meaning = reductions[~step]
            if meaning is None:
                states.pop()
            else:
                first = len(values) - size
                parts = values[first:]
                del values[first:], states[first + 1 :]
                values.append(meaning(parts))
            states.append(rows[states[-1]][origin])

    def _expected(self) -> frozenset[str]:
        # The row of a state has more: a reduction may lead to one that does not go on with the terminal.
        return frozenset(kind for kind in self._rows[self._states[-1]] if kind.isupper() and self._goes_on(kind))

    def _goes_on(self, kind: str) -> bool:
        states = self._states.copy()
        while (step := self._rows[states[-1]].get(kind)) is not None and step < 0:
            size, origin, _ = self._machine.reductions[~step]
            del states[len(states) - size :]
            states.append(self._rows[states[-1]][origin])
        return step is not None


def _meaning(rule: Rule, action: Action | None) -> Callable[[list[Any]], object] | None:
    """Return a list of the parts of a rule without an action; None if its only part stays as it is."""
    alone = range(rule.size)
    numbers: Sequence[Any] = rule.arguments
    if rule.unwraps and rule.size == 1 and numbers == [0]:
        return None
    if action is not None and not rule.unwraps and set(alone).issuperset(numbers):
        if numbers == [*alone]:
            return lambda parts: action(*parts)
        return lambda parts: action(*[parts[number] for number in numbers])

    def meaning(parts: list[Any]) -> object:
        arguments = _arguments(parts, numbers)
        if rule.unwraps and len(arguments) == 1:
            return arguments[0]
        return arguments if action is None else action(*arguments)

    return meaning


def _arguments(parts: list[Any], numbers: Sequence[int | None]) -> list[Any]:
    arguments: list[Any] = []
    for number in numbers:
        if number is None:
            arguments.append(None)
        elif number >= 0:
            arguments.append(parts[number])
        elif arguments:
            arguments += parts[~number]
        else:
            arguments = parts[~number]
    return arguments
