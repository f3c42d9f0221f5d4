"""Pairs of operations in two texts: the same whichever text comes first, and no more than the rules allow."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.diff.nodes import facings
from shardscope.inspector.report.changes import Facing, Node
from shardscope.parsers.source import Span

OPCODES = ("add", "multiply", "slice")


def node(number: int, name: str, opcode: str, *operands: str, type: str = "f32[8]", **attributes: str) -> Node:
    does = (opcode, type, tuple(sorted(attributes.items())))
    return Node(
        name, opcode, operands, Span(10 * number, 10 * number + 9), type, does, attributes, f"{name} = {opcode}"
    )


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Operations, each of which takes up to two of those before it."""
    made: list[Node] = []
    for number in range(draw(st.integers(1, 9))):
        operands = draw(st.lists(st.sampled_from([each.name for each in made]), max_size=2)) if made else []
        opcode, type = draw(st.sampled_from(OPCODES)), draw(st.sampled_from(("f32[8]", "f32[4]")))
        made.append(node(number, f"v{number}", opcode, *operands, type=type))
    return made


def changed(nodes: list[Node], seed: int) -> tuple[list[Node], dict[str, str]]:
    """The graph with other names, and one operation gone, which those that took it take no more."""
    chance = random.Random(seed)
    gone = chance.choice([None, *nodes])
    names = {
        each.name: f"w{number}" for number, each in enumerate(chance.sample(nodes, len(nodes))) if each is not gone
    }
    left = [each for each in nodes if each is not gone]
    others = [
        node(
            number,
            names[each.name],
            each.opcode,
            *(names[name] for name in each.operands if name in names),
            type=each.type,
        )
        for number, each in enumerate(left)
    ]
    return others, names


def pairs_of(found: tuple[Facing, ...]) -> set[tuple[str, str]]:
    return {(each.before.name, each.after.name) for each in found if each.before and each.after}


@given(graphs(), st.integers(0, 1000))
def test_each_way_around(nodes: list[Node], seed: int) -> None:
    others, names = changed(nodes, seed)
    pairs = [(one, other) for one in nodes[-1:] for other in others if names.get(one.name) == other.name]
    found, back = facings(pairs, nodes, others), facings([pair[::-1] for pair in pairs], others, nodes)
    assert {pair[::-1] for pair in pairs_of(back)} == pairs_of(found)
    assert {(one.name, other.name) for one, other in pairs} <= pairs_of(found)
    opcodes = {each.name: each.opcode for each in (*nodes, *others)}
    assert all(opcodes[one] == opcodes[other] for one, other in pairs_of(found))
    # Each operation once, in the order of its text.
    assert [each.after for each in found if each.after] == others
    assert sorted((each.before for each in found if each.before), key=lambda each: each.span) == nodes


TWO = [node(0, "a", "iota"), node(1, "b", "add", "a"), node(2, "c", "add", "a")]


@pytest.mark.parametrize(
    ("ones", "others", "known", "expected"),
    [
        # Two with the same operands on one side: neither is the one of the other side.
        (TWO, TWO[:2], [], {("a", "a")}),
        (TWO[:2], TWO, [], {("a", "a")}),
        (TWO, TWO, [], {("a", "a")}),
        (TWO, TWO, [(1, 1)], {("a", "a"), ("b", "b"), ("c", "c")}),
        (TWO, TWO, [(1, 2)], {("a", "a"), ("b", "c"), ("c", "b")}),
        # Only users of what is paired are a pair, if they do the same.
        (TWO[:2], [TWO[0], node(1, "d", "add", "a", type="f32[4]")], [], {("a", "a"), ("b", "d")}),
        (TWO[:2], [TWO[0], node(1, "d", "negate", "a")], [], {("a", "a")}),
        # Of what has nothing in common but the opcode, less than the most alike is none.
        ([node(0, "a", "dot", i="1", j="2")], [node(0, "b", "dot", i="1", j="3", type="f32[4]")], [], set()),
        ([node(0, "a", "dot", i="1", j="2")], [node(0, "b", "dot", i="1", j="3")], [], {("a", "b")}),
        (
            [node(0, "a", "dot", i="1", j="2"), node(1, "c", "dot", i="1", j="4")],
            [node(0, "b", "dot", i="1", j="3")],
            [],
            set(),
        ),
    ],
)
def test_what_is_and_what_is_not_a_pair(
    ones: list[Node], others: list[Node], known: list[tuple[int, int]], expected: set[tuple[str, str]]
) -> None:
    found = facings([(ones[one], others[other]) for one, other in known], ones, others)
    assert pairs_of(found) == expected
