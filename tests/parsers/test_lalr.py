"""Parsing by tables: trees and errors are those of Lark's own parser, on texts that are made from the grammars."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from shardscope.parsers.grammar import STARTS, lark_of
from shardscope.parsers.lalr import END, Machine, Parse, UnexpectedTerminalError, load_tables

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
    """The grammar's tables, with actions that make the tree."""
    rules = {rule.alias or rule.origin.name for rule in grammar(name).rules}
    actions = {rule: (lambda *parts, rule=rule: (rule, parts)) for rule in rules if not rule.startswith("_")}
    actions |= {terminal.name: tuple for terminal in grammar(name).terminals}
    return Machine(load_tables(name), actions)


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


def by_tables(name: str, start: str, text: str) -> object:
    try:
        return Parse(machine(name), start).text(text, placed=True)
    except UnexpectedTerminalError as error:
        return (error.start, error.end), set(error.expected)


@pytest.mark.parametrize(("name", "start"), [(name, each) for name in sorted(WITH_TERMINALS) for each in STARTS[name]])
def test_trees_and_errors_are_those_of_lark(name: str, start: str) -> None:
    texts = from_lark(grammar(name), start=start, explicit=EXPLICIT.get(name), alphabet=CHARACTERS)

    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(texts, st.data())
    def compared(text: str, data: st.DataObject) -> None:
        assert by_tables(name, start, text) == by_lark(name, start, text)
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        instead = data.draw(st.sampled_from(["", " ", "(", "]", ",", "=", "x", '"', "→", text[last:], text[:first]]))
        damaged = text[:first] + instead + text[last:]
        assert by_tables(name, start, damaged) == by_lark(name, start, damaged)

    compared()
