"""Parsing by tables: trees and errors are those of Lark's own parser, on texts that are made from the grammars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from shardscope.parsers.grammar import STARTS, lark_of
from shardscope.parsers.lalr import END, Machine, Parse, Tables, UnexpectedTerminalError, load_tables
from shardscope.parsers.lalr.automaton import Rule

from tests.sweeps import examples

pytestmark = pytest.mark.once

# The terminals of the other one are found by its caller.
WITH_TERMINALS = STARTS.keys() - {"structure"}
EXPLICIT = {"hlo": {"OPCODE": st.sampled_from(["add", "all-reduce"])}}
"""Terminals that look ahead, past what is made for them."""
CHARACTERS = st.characters(max_codepoint=0x2200, exclude_categories=["Cs"])


@cache
def grammar(name: str) -> Lark:
    return lark_of(name)


@cache
def machine(name: str) -> Machine:
    return Machine(load_tables(name), trees(name))


def trees(name: str) -> dict[str, Callable[..., object]]:
    """Actions that make the tree."""
    rules = {rule.alias or rule.origin.name for rule in grammar(name).rules}
    named = [rule for rule in rules if not rule.startswith("_")]
    actions: dict[str, Callable[..., object]] = {rule: (lambda *parts, rule=rule: (rule, parts)) for rule in named}
    return actions | {terminal.name: tuple for terminal in grammar(name).terminals}


def plain(tree: Any) -> object:
    match tree:
        case Tree(data=data, children=children):
            return str(data), tuple(map(plain, children))
        case Token():
            return tree.type, str(tree), tree.start_pos
    return tree


def by_lark(name: str, start: str, text: str) -> object:
    """Its tree, or where it gives up and what it would go on with."""
    try:
        return plain(grammar(name).parse(text, start=start))
    except UnexpectedInput as error:
        parser: Any = error.interactive_parser
        place = (len(text), len(text))
        if isinstance(error, UnexpectedToken) and error.token.type != "$END":
            place = (error.token.start_pos or 0, error.token.end_pos or 0)
        elif isinstance(error, UnexpectedCharacters):
            place = (error.pos_in_stream or 0, (error.pos_in_stream or 0) + 1)
        state = parser.parser_state
        # Where all is reduced to the start already, it does not say that the end could come.
        return place, {END} if state.position == state.parse_conf.end_state else parser.accepts()


def by_tables(name: str, start: str, text: str, tables: Machine | None = None) -> object:
    try:
        return Parse(tables or machine(name), start).text(text, placed=True)
    except UnexpectedTerminalError as error:
        return (error.start, error.end), set(error.expected)


@pytest.mark.parametrize(("name", "start"), [(name, each) for name in sorted(WITH_TERMINALS) for each in STARTS[name]])
def test_trees_and_errors_are_those_of_lark(name: str, start: str) -> None:
    texts = from_lark(grammar(name), start=start, explicit=EXPLICIT.get(name), alphabet=CHARACTERS)

    @settings(max_examples=examples(7, 20), suppress_health_check=list(HealthCheck))
    @given(texts, st.data())
    def compared(text: str, data: st.DataObject) -> None:
        assert by_tables(name, start, text) == by_lark(name, start, text)
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        instead = data.draw(st.sampled_from(["", " ", "(", "]", ",", "=", "x", '"', "→", text[last:], text[:first]]))
        damaged = text[:first] + instead + text[last:]
        assert by_tables(name, start, damaged) == by_lark(name, start, damaged)

    compared()


def test_the_meaning_of_a_rule() -> None:
    """Each argument taken by itself, as `Rule` describes them; rules of up to three parts, each left out or taken."""
    none: Any = {"rows": [], "starts": {}, "scanners": [], "scanner_of": [], "root": "", "ignored": [], "spelled": {}}
    actions: list[Callable[..., object] | None] = [None, lambda *values: ("action", values)]
    for size, unwraps, action in product(range(4), (False, True), actions):
        for each in (part for count in range(size + 1) for part in combinations(range(size), count)):
            for numbers in product(*[(number, ~number, None) for number in each]):
                rule = Rule("origin", size, "name", list(numbers), unwraps)
                tables = Tables(rules=[rule], **none)
                [(popped, origin, meaning)] = Machine(tables, {} if action is None else {"name": action}).reductions
                assert (popped, origin) == (size, "origin")
                parts = [[f"{number} first", f"{number} second"][: 2 - number % 2] for number in range(size)]
                taken: list[object] = []
                for number in numbers:
                    taken += [None] if number is None else [parts[number]] if number >= 0 else parts[~number]
                expected = taken[0] if unwraps and len(taken) == 1 else action(*taken) if action else taken
                assert (meaning is None) == (unwraps and size == 1 and numbers == (0,))
                if meaning is None:  # what is on the stack stays there
                    assert expected == parts[0]
                else:
                    assert meaning(parts) == expected


def test_states_may_have_any_numbers() -> None:
    """Numbered from the last, so that the first is one in which a parse goes on, and not one in which it starts."""
    tables = load_tables("replica_groups")
    last = len(tables.rows) - 1
    rows = [{kind: last - to if to >= 0 else to for kind, to in row.items()} for row in reversed(tables.rows)]
    starts = {start: last - state for start, state in tables.starts.items()}
    other = Machine(
        replace(tables, rows=rows, starts=starts, scanner_of=tables.scanner_of[::-1]), trees("replica_groups")
    )
    for whole in ("{{0,1},{2}}", "[2,4]<=[4,2]T(1,0)", "mesh['x'=2,'y'=2], device_ids=([4]T(0)) {'x':(1)2,'y'}"):
        for end in range(len(whole) + 1):
            for text in (whole[:end], whole[:end] + ")"):
                found = by_tables("replica_groups", "groups", text, other)
                assert found == by_lark("replica_groups", "groups", text)
