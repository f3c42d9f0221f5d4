"""Parsing by tables: trees and errors are those of Lark's own parser, on texts that are made from the grammars."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from shardscope.parsers.lalr import Machine, Parse, UnexpectedTerminalError
from shardscope.parsers.tables import END, FOLDER, lark_of, load_tables

STARTS = {
    "gspmd.lark": ("start",),
    "hlo.lark": ("instruction",),
    "hlo_layout.lark": ("layout",),
    "hlo_types.lark": ("type",),
    "jax_arrays.lark": ("spec", "type"),
    "mlir_locations.lark": ("start",),
    "mlir_types.lark": ("start",),
    "replica_groups.lark": ("groups", "pairs"),
    "sdy.lark": ("mesh", "sharding", "shardings", "axis_lists", "exchanges", "sharding_rule", "propagation_edges"),
    "stablehlo.lark": ("operation", "parameter", "function"),
    "stablehlo_attributes.lark": ("groups", "dense", "channel"),
}
EXPLICIT = {"hlo.lark": {"OPCODE": st.sampled_from(["add", "all-reduce"])}}
"""Terminals that look ahead, past what is made for them."""
CHARACTERS = st.characters(max_codepoint=0x2200, exclude_categories=["Cs"])


@cache
def grammar(file: str) -> Lark:
    return lark_of(file, STARTS[file])


@cache
def machine(file: str) -> Machine:
    """The grammar's tables, with actions that make the tree."""
    rules = {rule.alias or rule.origin.name for rule in grammar(file).rules}
    actions = {name: (lambda *parts, name=name: (name, parts)) for name in rules if not name.startswith("_")}
    actions |= {terminal.name: tuple for terminal in grammar(file).terminals}
    return Machine(load_tables(file, STARTS[file]), actions)


def plain(tree: Any) -> object:
    match tree:
        case Tree(data=data, children=children):
            return str(data), tuple(map(plain, children))
        case Token():
            return tree.type, str(tree), tree.start_pos
    return tree


def by_lark(file: str, start: str, text: str) -> object:
    """Its tree, or where it gives up and what it would go on with."""
    try:
        return plain(grammar(file).parse(text, start=start))
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


def by_tables(file: str, start: str, text: str) -> object:
    try:
        return Parse(machine(file), start).text(text, placed=True)
    except UnexpectedTerminalError as error:
        return (error.start, error.end), set(error.expected)


@pytest.mark.parametrize(("file", "start"), [(file, start) for file, starts in STARTS.items() for start in starts])
def test_trees_and_errors_are_those_of_lark(file: str, start: str) -> None:
    texts = from_lark(grammar(file), start=start, explicit=EXPLICIT.get(file), alphabet=CHARACTERS)

    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(texts, st.data())
    def compared(text: str, data: st.DataObject) -> None:
        assert by_tables(file, start, text) == by_lark(file, start, text)
        first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        instead = data.draw(st.sampled_from(["", " ", "(", "]", ",", "=", "x", '"', "→", text[last:], text[:first]]))
        damaged = text[:first] + instead + text[last:]
        assert by_tables(file, start, damaged) == by_lark(file, start, damaged)

    compared()


def test_all_grammars_with_terminals_are_compared() -> None:
    files = {name for name in os.listdir(FOLDER) if name.endswith(".lark")}
    # One is only imported by others, the other's terminals are found by its caller.
    assert set(STARTS) == files - {"mesh.lark", "structure.lark"}
