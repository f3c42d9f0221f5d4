"""Ways of axes in kept captures with loops, branches, shard_maps and reshards, against what their texts record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shardscope.inspector.dataflow.mlir import Dataflow, Node
from shardscope.inspector.ir.program import Program
from shardscope.inspector.load import load
from shardscope.inspector.shardings.moves import moves_of
from shardscope.inspector.shardings.recorded import sharding_at
from shardscope.inspector.shardings.table import propagated
from shardscope.inspector.shardings.why import BEFORE, Replay, causes

from tests.inspector.shardings.test_why import check, nodes

TESTS = Path(__file__).parents[2]
KEPT = {
    path.stem: path
    for path in (
        *(TESTS / "tui" / "looks").glob("fsdp_tp.capture"),
        *(
            TESTS / "command" / "approved" / f"{name}.capture"
            for name in ("counted", "embedded", "exchange", "gathered_twice", "manual", "rounds", "target", "typed")
        ),
    )
}


@pytest.fixture(scope="module", params=sorted(KEPT))
def flow(request: pytest.FixtureRequest) -> Dataflow:
    _, found = propagated(Program(load(str(KEPT[request.param]))))
    assert found is not None
    return found


def values(flow: Dataflow) -> list[Node]:
    blocks = [
        Node("block", row, number, region)
        for row, found in enumerate(flow.rows)
        for region in range(len(found.inside))
        for number in range(len(flow.operation(row).regions[region].blocks[0].arguments))
    ]
    return [*nodes(flow), *blocks]


def test_every_way_ends_at_its_origin(flow: Dataflow) -> None:
    assert check(flow)


def test_moves_to_a_value_are_those_that_name_it(flow: Dataflow) -> None:
    moves = moves_of(flow)
    for node in values(flow):
        found = list(moves.to(node))
        assert len(found) == len(set(found))
        assert set(found) == {move for move in moves.all if node in move.targets}


def test_steps_are_those_of_the_text(flow: Dataflow) -> None:
    text = flow.text.source.text(flow.function.span)
    written = {int(number) for number in re.findall(r"\bstep-(\d+)", text)}
    found = moves_of(flow).all
    assert {move.step for move in found} == written
    assert len(found) == text.count(" -> [")
    assert [move.step for move in found] == sorted(move.step for move in found)
    rows = {row for move in found for row in (move.row,) if row >= 0}
    assert all(node in values(flow) for move in found for node in (move.source, *move.targets))
    assert all(b"propagation_edges" in span_text(flow, row) for row in rows)


def span_text(flow: Dataflow, row: int) -> bytes:
    return flow.text.source.text(flow.operation(row).span).encode()


def test_each_step_adds_what_it_says(flow: Dataflow) -> None:
    replay = Replay(flow)
    moved = {node for step in replay.moves.values() for move in step for node in move.targets}
    before = BEFORE
    for step in replay.steps[:30]:
        touched = {node for move in replay.moves[step] for node in move.targets}
        assert {node for node in moved if replay.after(node, step) != replay.after(node, before)} <= touched
        before = step
    for node in moved if replay.steps else ():
        assert replay.after(node, replay.steps[-1]) == sharding_at(flow, node)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_a_way_that_is_cut_off_says_how_much_is_missing(flow: Dataflow, most: int) -> None:
    """In whichever order the ways of values are asked for."""
    for node in [*nodes(flow), *reversed(nodes(flow))]:
        for whole, short in zip(causes(flow, node), causes(flow, node, most), strict=True):
            assert short.steps == whole.steps[:most]
            assert len(short.steps) + short.omitted == len(whole.steps)
            assert (short.root, short.origin) == (whole.root, whole.origin)


def test_names_mean_the_same_where_they_are_used(flow: Dataflow) -> None:
    """Each operation's operands are found, and it is among the users of each."""
    for row in range(len(flow.rows)):
        assert len(flow.operands(row)) == len(flow.records.operands(flow.rows[row]))
        for node in flow.operands(row):
            assert node is not None
            assert row in flow.users(node)
            assert node in values(flow) or node.kind == "result"
        for around in flow.around(row):
            own, outer = flow.operation(row).span, flow.operation(around).span
            assert outer.start < own.start < own.end <= outer.end
        owner = flow.end_of(row)
        assert owner is None or row in flow.ends(owner)


def test_every_axis_has_a_cause(flow: Dataflow) -> None:
    """By the number of the axes, and the origin that Shardy writes at the value itself."""
    for node in nodes(flow):
        sharding = sharding_at(flow, node)
        axes = [] if sharding is None else [axis for dim in sharding.dims for axis in dim.axes]
        assert {axis.name for axis in axes} <= {cause.axis.name for cause in causes(flow, node)}
        for cause in causes(flow, node):
            assert cause.origin is not None
            assert cause.steps or cause.root == node
            assert not cause.steps or cause.steps[-1].source == cause.root or cause.omitted
