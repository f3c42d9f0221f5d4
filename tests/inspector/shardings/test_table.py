"""The table of shardings, against what XLA compiled and what lies on the devices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shardscope.inspector.capture.model import Capture, Value
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.ir.placement import placement_of, same
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.sharding_spellings import from_gspmd, from_spec
from shardscope.inspector.ir.types import array_type
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.shardings.requested import agrees, requested_sharding
from shardscope.inspector.shardings.table import values
from shardscope.parsers.hlo import ArrayShape, HloModule
from shardscope.parsers.hlo.types import leaves
from shardscope.parsers.sharding_syntax.jax_arrays import parse_spec
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.samples.catalogue import samples

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

BLOCKS = [f"block_matrices:{name}" for name in ("all_gather", "all_to_all", "all_reduce", "reduce_scatter")]
LIVE = ["predict:predict", "constraint:open_columns", "block_matrices:reduce_scatter", "custom_partitioning"]


def hlo(captured: Capture, stage: str) -> HloModule:
    module = Program(captured).hlo(stage)
    assert module is not None
    return module


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_local_types_are_those_of_the_compiled_program(function: str, sample: SampleCapture) -> None:
    """What we compute of a global type and a sharding, XLA's partitioner has computed, too."""
    captured = sample(function)
    report = inspect(captured)
    arguments = [value for value in report.shardings if value.role == "argument"]
    if not arguments:
        assert captured.stage("sdy") is None
        return
    entry = hlo(captured, "hlo-spmd").entry
    assert entry is not None
    parameters = {
        int(instruction.literal or ""): instruction
        for instruction in entry.instructions
        if instruction.opcode == "parameter"
    }
    compiled = [array_type(parameters[number].type) for number in sorted(parameters)]
    assert [value.local_type for value in arguments] == compiled
    root = entry.root
    assert root is not None
    outputs = [value.local_type for value in report.shardings if value.role == "output"]
    assert outputs == [array_type(leaf) for leaf in leaves(root.type)]


@pytest.mark.parametrize("function", ["predict:predict", "constraint:open_columns", "transformer:train_step", *BLOCKS])
def test_intermediates_agree_with_what_goes_into_the_partitioner(function: str, sample: SampleCapture) -> None:
    """Shardy's names and XLA's strings of one program place each value alike."""
    captured = sample(function)
    known = {
        (value.name, value.type, placement_of(value.sharding))
        for value in values(Program(captured))
        if value.sharding is not None
    }
    compared = 0
    mesh = inspect(captured).meshes[0]
    entry = hlo(captured, "hlo-before").entry
    assert entry is not None
    for instruction in entry.instructions:
        metadata, sharding = instruction.metadata, instruction.sharding
        if sharding is None or not isinstance(instruction.type, ArrayShape) or instruction.opcode == "parameter":
            continue
        name = (metadata.op_name if metadata else "").rpartition("/")[2]
        placed = placement_of(from_gspmd(sharding, len(instruction.type.dims), mesh))
        # Constants and what XLA calls otherwise are no values of the program.
        same_name = {known_type for known_name, known_type, _ in known if known_name == name}
        if array_type(instruction.type) in same_name:
            assert (name, array_type(instruction.type), placed) in known, instruction.text
            compared += 1
    assert compared >= (1 if function in BLOCKS else 2)


@pytest.mark.parametrize("name", LIVE)
def test_outputs_lie_on_the_devices_as_the_table_says(name: str) -> None:
    sample, _, function = name.partition(":")
    path, functions = next((each.path, each.functions) for each in samples() if each.name == sample)
    *_, captured = capture(Request(f"{path}:{function or functions[0]}"))
    assert captured.execution is not None, captured.failure
    report = inspect(captured)
    outputs = [value for value in report.shardings if value.role == "output"]
    assert len(outputs) == len(captured.execution.outputs)
    for value, live in zip(outputs, captured.execution.outputs, strict=True):
        assert value.sharding is not None
        assert live.spec is not None
        lies = from_spec(parse_spec(live.spec), value.sharding.mesh, len(value.sharding.dims))
        assert same(value.sharding, lies), (value.name, value.spec, live.spec)


def test_arguments_by_path_and_what_was_asked(sample: SampleCapture) -> None:
    report = inspect(sample("fsdp_tp:grad"))
    found = {value.name: value for value in report.shardings if value.role == "argument"}
    first = found["params[0][0]"]
    assert (first.requested, first.spec, first.agrees) == ("P(('feats', 'batch'), None)",) * 2 + (True,)
    assert (str(first.type), str(first.local_type), first.replicated_bytes) == ("f32[16,32]", "f32[2,32]", 0)


def test_replicated_bytes(sample: SampleCapture) -> None:
    """16 × 128 floats over 4 of 8 devices: each holds a quarter, of which half would do."""
    report = inspect(sample("predict:predict"))
    found = next(value for value in report.shardings if value.name == "x")
    assert found.replicated_bytes == 16 * 128 * 4 // 4 // 2


def test_an_open_constraint_shows_what_was_left_open(sample: SampleCapture) -> None:
    report = inspect(sample("constraint:open_columns"))
    (found,) = (value for value in report.shardings if value.role == "constraint")
    assert (found.requested, found.spec, found.agrees) == ("P('data', P.UNCONSTRAINED)", "P('data', 'model')", True)


def test_not_as_asked(sample: SampleCapture) -> None:
    """A saved capture whose argument was asked to lie otherwise than the compiler left it."""
    captured = sample("predict:predict")
    asked = tuple(replace(value, spec="P('model')") if value.path == "x" else value for value in captured.arguments)
    report = inspect(replace(captured, arguments=asked))
    found = {value.name: value.agrees for value in report.shardings if value.role == "argument"}
    assert found == {"x": False, "w1": True, "w2": None}


def test_what_was_asked() -> None:
    mesh = MeshSyntax((("x", 2), ("y", 4)))
    asked = requested_sharding(Value("a", "f32[8,8]", "P('x', P.UNCONSTRAINED)"), [MeshSyntax((("z", 8),)), mesh])
    assert asked is not None
    for spec, is_so in (("P('x', 'y')", True), ("P('x')", True), ("P('y')", False), ("P()", False)):
        assert agrees(asked, from_spec(parse_spec(spec), mesh, 2)) is is_so
    assert requested_sharding(Value("a", "f32[8,8]", None), [mesh]) is None
    assert requested_sharding(Value("a", "f32[8,8]", "P('other')"), [mesh]) is None
    explicit = requested_sharding(Value("a", "f32[8@y,8]", None), [mesh])
    assert explicit == from_spec(parse_spec("P('y')"), mesh, 2)
