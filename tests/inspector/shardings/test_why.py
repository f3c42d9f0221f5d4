"""Why values are sharded: every way back has to end where Shardy says that the axis comes from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.dataflow.mlir import Dataflow, Node
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.why_lines import why_line
from shardscope.inspector.shardings.explained import einsum, why
from shardscope.inspector.shardings.recorded import sharding_at
from shardscope.inspector.shardings.table import propagated
from shardscope.inspector.shardings.why import Cause, causes, origin_of, overlap
from shardscope.parsers.mlir.sdy_parser import parse_sharding_rule
from shardscope.parsers.sharding_syntax.mesh import AxisRef

from tests.conftest import SampleCapture

SAMPLES = ["predict:predict", "constraint:open_columns", "fsdp_tp:grad", "transformer:train_step", "data_parallel:grad"]
PROGRAMS = ["looped", "nested", "branches", "rematerialized", "called_twice"]
FOLDER = "tests/capture/programs"


def nodes(flow: Dataflow) -> list[Node]:
    arguments = [Node("argument", -1, index) for index in range(len(flow.function.arguments))]
    outputs = [Node("output", -1, index) for index in range(len(flow.function.results))]
    return [
        *arguments,
        *outputs,
        *(Node("result", row, index) for row, found in enumerate(flow.rows) for index in range(len(found.results))),
    ]


def flow_of(captured: Capture) -> Dataflow:
    _, flow = propagated(Program(captured))
    assert flow is not None
    return flow


def check(flow: Dataflow) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for node in nodes(flow):
        for found in causes(flow, node):
            assert is_root(flow, found), (node, found)
            here, before = node, 1 << 62
            for step in found.steps:
                assert step.target == here
                assert step.number is None or step.number < before
                for end in (step.source, step.target):
                    sharding = sharding_at(flow, end)
                    assert sharding is not None
                    assert any(overlap(axis, found.axis) for dim in sharding.dims for axis in dim.axes)
                here, before = step.source, before if step.number is None else step.number
            assert here == found.root
            kinds["steps" if found.steps else "own"] += 1
    return kinds


def is_root(flow: Dataflow, found: Cause) -> bool:
    """Whether a way ends at the value that Shardy's record of the origin names."""
    own, origin = origin_of(flow, found.root, found.axis), found.origin
    assert origin is not None
    if own == origin or origin.kind == "self":
        return True
    assert own is not None
    assert own.kind == "self", (found, own)
    if origin.name is None:
        kind = "argument" if origin.kind == "input" else "output"
        return found.root == Node(kind, -1, origin.index or 0)
    return found.root.row >= 0 and flow.operation(found.root.row).annotations.origin_name == origin.name


@pytest.mark.parametrize("function", SAMPLES)
def test_every_way_in_a_sample_ends_at_its_origin(function: str, sample: SampleCapture) -> None:
    assert check(flow_of(sample(function)))


@pytest.fixture(scope="module")
def program() -> dict[str, Capture]:
    found = {}
    for name in PROGRAMS:
        *_, found[name] = capture(Request(f"{FOLDER}/propagated.py:{name}", live=False))
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_through_loops_and_branches_ends_at_its_origin(name: str, program: dict[str, Capture]) -> None:
    assert check(flow_of(program[name]))["steps"] > 0


def test_the_guides_program_in_words(sample: SampleCapture) -> None:
    """The columns of w1 meet the rows of w2, so these get its axis: backwards through the second product."""
    report = inspect(sample("predict:predict"))
    by_name = {value.name: value for value in report.shardings}
    w2 = by_name["w2"]
    assert (w2.requested, w2.spec, str(w2.type), str(w2.local_type)) == (
        None,
        "P('model', None)",
        "f32[256,10]",
        "f32[128,10]",
    )
    (found,) = why(report.program, w2)
    assert why_line(found, "w2", report) == (
        "model on w2 dim 0 ← argument w1 dim 1, via dot_general (line 21, step 5), dot_general (line 20, step 1)"
    )
    assert [step.rule for step in found.steps] == ["ik,kj->ij", "ik,kj->ij"]
    (result,) = why(report.program, by_name["result"])
    operations = [None if step.operation is None else step.operation.primitive for step in result.steps]
    assert operations == [None, "sin", "dot_general", "dot_general", "tanh"]
    assert str(result.origin) == "argument x"


def test_constraints_and_shard_maps_are_origins(sample: SampleCapture, program: dict[str, Capture]) -> None:
    report = inspect(sample("constraint:open_columns"))
    (output,) = (value for value in report.shardings if value.role == "output")
    data, model = why(report.program, output)
    assert (str(data.origin), data.place.frame is not None) == ("with_sharding_constraint", True)
    assert str(model.origin) == "argument x"
    looped = inspect(program["looped"])
    (result,) = (value for value in looped.shardings if value.role == "output")
    (found,) = why(looped.program, result)
    assert str(found.origin) == "output 1 of the shard_map"
    assert found.place.frame is not None
    assert "layer(h, w)" in Path(found.place.frame.file).read_text().splitlines()[found.place.frame.line - 1]


def test_rules_in_letters() -> None:
    rule = "#sdy.op_sharding_rule<([i, jk], [])->([k, ij]) {i=2, j=4, k=3}>"
    assert einsum(parse_sharding_rule(rule)) == "i(jk),->k(ij)"
    assert einsum(parse_sharding_rule("<([z_1, k], [k])->([z_1]) {z_1=2, k=4}>")) == "z_1 k,k->z_1"


def test_parts_of_axes_overlap_where_they_share_bits() -> None:
    """Of an axis of 16 devices, a part of `size` behind `before` others is some of the four bits of a coordinate."""
    parts = {(1 << low, 1 << count): set(range(low, low + count)) for low in range(4) for count in range(1, 5 - low)}
    for one, bits in parts.items():
        for other, others in parts.items():
            assert overlap(AxisRef("x", one), AxisRef("x", other)) == (not bits.isdisjoint(others))
            assert not overlap(AxisRef("x", one), AxisRef("y", other))
        assert overlap(AxisRef("x", one), AxisRef("x"))
        assert overlap(AxisRef("x"), AxisRef("x", one))
    assert not overlap(AxisRef("x"), AxisRef("y"))
