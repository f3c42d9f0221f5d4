"""Which instruction around a collective is which: never a wrong one."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from shardscope.inspector.catalog.spellings import HLO_OPCODES, STABLEHLO_OPS
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.diff.hlo_graph import graph_of
from shardscope.inspector.diff.mlir_graph import graph_around
from shardscope.inspector.diff.surroundings import surroundings
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.changes import Facing
from shardscope.parsers.hlo import HloModule, Instruction, parse_module
from shardscope.parsers.mlir import parse_module as parse_mlir
from shardscope.parsers.source import Source

from tests.conftest import SampleCapture

from .conftest import Edited

NAME = re.compile(rb"%([\w.\-]+)")
METADATA = re.compile(rb", metadata=\{[^{}]*\}")


def module_of(sample: SampleCapture, name: str) -> HloModule:
    stage = sample(name).stage("hlo")
    assert stage is not None
    return parse_module(stage.source)


def renamed(module: HloModule, seed: int) -> tuple[HloModule, dict[str, str]]:
    """The module with other names, channels and no metadata."""
    names = sorted({name.decode() for name in NAME.findall(module.source.data)})
    shuffled = random.Random(seed).sample(range(len(names)), len(names))
    truth = {name: f"v{number}" for name, number in zip(names, shuffled, strict=True)}
    data = NAME.sub(lambda match: f"%{truth[match[1].decode()]}".encode(), module.source.data)
    return parse_module(Source("renamed", METADATA.sub(b"", data))), truth


def facing_instructions(before: Instruction, after: Instruction) -> tuple[Facing, ...]:
    graphs = [graph_of(each.computation) for each in (before, after)]
    one, other = (graph.at(each.span.start) for graph, each in zip(graphs, (before, after), strict=True))
    assert one is not None
    assert other is not None
    return surroundings(graphs[0], one, graphs[1], other)


@pytest.mark.parametrize("name", ["fsdp_tp:grad", "megatron_mlp:grad", "moe:grad", "pipeline:grad"])
def test_names_are_nothing(sample: SampleCapture, name: str) -> None:
    """All that is found is right, and nearly all is found: the text is the same but for its names."""
    module = module_of(sample, name)
    other, truth = renamed(module, 7)
    found = there = 0
    for before, after in zip(module.with_opcode(HLO_OPCODES), other.with_opcode(HLO_OPCODES), strict=True):
        for facing in facing_instructions(before, after):
            there += 1
            if facing.before is not None and facing.after is not None:
                found += 1
                assert truth[facing.before.name] == facing.after.name
                assert facing.same, (facing.before.line, facing.after.line)
    assert found >= 0.95 * there > 0


STABLEHLO_NAME = re.compile(rb"%(?=[\w#])(?!arg)([\w$.\-]+)")


@pytest.mark.parametrize("name", ["fsdp_tp:grad", "megatron_mlp:grad", "moe:grad", "pipeline:grad"])
def test_names_in_stablehlo_are_nothing(sample: SampleCapture, name: str) -> None:
    stage = sample(name).stage("stablehlo")
    assert stage is not None
    module = parse_mlir(stage.source)
    data = module.source.data
    names = sorted({match[1].decode() for match in STABLEHLO_NAME.finditer(data)})
    shuffled = random.Random(3).sample(range(len(names)), len(names))
    truth = {f"%{old}": f"%v{number}" for old, number in zip(names, shuffled, strict=True)}
    changed = STABLEHLO_NAME.sub(lambda match: truth[match[0].decode()].encode(), data)
    other = parse_mlir(Source("renamed", changed))
    sides = [each.operations(STABLEHLO_OPS) for each in (module, other)]
    found = there = 0
    for before, after in zip(*sides, strict=True):
        graphs = graph_around(module, before.span.start), graph_around(other, after.span.start)
        assert graphs[0] is not None
        assert graphs[1] is not None
        one, same = graphs[0].at(before.span.start), graphs[1].at(after.span.start)
        assert one is not None
        assert same is not None
        for facing in surroundings(graphs[0], one, graphs[1], same):
            there += 1
            if facing.before is not None and facing.after is not None:
                found += 1
                assert truth.get(facing.before.name) == facing.after.name or facing.before.name.startswith("at ")
                assert facing.same, (facing.before.line, facing.after.line)
    assert found >= 0.95 * there > 0


def test_what_is_new_in_stablehlo(edited: Edited) -> None:
    """Texts of StableHLO alone are compared, and aligned, as those of HLO."""
    more = (("psum(looped", 'psum(lax.psum(looped, "y")'),)
    sides = (edited("script:step", edits) for edits in ((), more))
    early = [replace(side, stages=tuple(s for s in side.stages if s.name in ("jaxpr", "stablehlo"))) for side in sides]
    found = diff(*map(inspect, early))
    (change,) = found.changes
    facings = found.around(change)
    (new,) = (each for each in facings if each.before is None and each.after is not None)
    assert new.after is not None
    assert "all_reduce" in new.after.line
    assert sum(each.same for each in facings) >= 2


def test_what_is_gone_is_not_made_up(sample: SampleCapture) -> None:
    """Between the sum of all and the reduce-scatter of it, the slice has nothing to be."""
    modules = [module_of(sample, f"missing_reduce_scatter:{name}") for name in ("faulty", "repaired")]
    (before,), (after,) = (module.with_opcode(HLO_OPCODES) for module in modules)
    found = facing_instructions(before, after)
    sides = {(f.before.opcode if f.before else None, f.after.opcode if f.after else None) for f in found}
    assert ("all-reduce", "reduce-scatter") in sides
    assert ("partition-id", None) in sides
    assert all(one == other for one, other in sides if one and other and "reduce" not in one)


def test_what_is_new_has_no_counterpart(edited: Edited) -> None:
    """Around a collective that was added stands what both have; it is not taken for any of that itself."""
    more = (("psum(looped", 'psum(lax.psum(looped, "y")'),)
    sides = [inspect(edited("script:step", edits)) for edits in ((), more)]
    for side, found in (("after", diff(*sides)), ("before", diff(*reversed(sides)))):
        (change,) = found.changes
        facings, (present,) = found.around(change), filter(None, (change.before, change.after))
        (new,) = (f for f in facings if (own := getattr(f, side)) is not None and own.name == present.name)
        assert (new.before is None) == (side == "after")
        assert (new.after is None) == (side == "before")
        assert any(f.same for f in facings)
