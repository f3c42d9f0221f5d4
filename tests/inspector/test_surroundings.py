"""Which instruction around a collective is which: never a wrong one."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from shardscope.inspector.collectives.kinds import HLO_OPCODES
from shardscope.inspector.diff.diff import Change, Diff, diff
from shardscope.inspector.diff.surroundings import around, line, surroundings
from shardscope.inspector.pipeline import inspect
from shardscope.parsers.hlo import HloModule, parse_module
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


@pytest.mark.parametrize("name", ["fsdp_tp:grad", "megatron_mlp:grad", "moe:grad", "pipeline:grad"])
def test_names_are_nothing(sample: SampleCapture, name: str) -> None:
    """All that is found is right, and nearly all is found: the text is the same but for its names."""
    module = module_of(sample, name)
    other, truth = renamed(module, 7)
    found = there = 0
    for before, after in zip(module.with_opcode(HLO_OPCODES), other.with_opcode(HLO_OPCODES), strict=True):
        for facing in surroundings(before, after):
            there += 1
            if facing.before is not None and facing.after is not None:
                found += 1
                assert truth[facing.before.name] == facing.after.name
                assert facing.same, (line(facing.before), line(facing.after))
    assert found >= 0.95 * there > 0


def test_what_is_gone_is_not_made_up(sample: SampleCapture) -> None:
    """Between the sum of all and the reduce-scatter of it, the slice has nothing to be."""
    modules = [module_of(sample, f"missing_reduce_scatter:{name}") for name in ("faulty", "repaired")]
    (before,), (after,) = (module.with_opcode(HLO_OPCODES) for module in modules)
    found = surroundings(before, after)
    sides = {(f.before.opcode if f.before else None, f.after.opcode if f.after else None) for f in found}
    assert ("all-reduce", "reduce-scatter") in sides
    assert ("partition-id", None) in sides
    assert all(one == other for one, other in sides if one and other and "reduce" not in one)


def test_what_is_new_has_no_counterpart(edited: Edited) -> None:
    """Around a collective that was added stands what both have; it is not taken for any of that itself."""
    more = (("psum(looped", 'psum(lax.psum(looped, "y")'),)
    found = diff(*(inspect(edited("script:step", edits)) for edits in ((), more)))
    (change,) = found.changes
    assert change.after is not None
    for facings, side in ((around(found, change), "after"), (around(turned(found), back(change)), "before")):
        (new,) = (f for f in facings if (own := getattr(f, side)) is not None and own.name == change.after.name)
        assert (new.before is None) == (side == "after")
        assert (new.after is None) == (side == "before")
        assert any(f.same for f in facings)


def turned(found: Diff) -> Diff:
    return replace(
        found, before=found.after, after=found.before, unmistakable=tuple((b, a) for a, b in found.unmistakable)
    )


def back(change: Change) -> Change:
    return replace(change, kind="removed", befores=change.afters, afters=change.befores)
