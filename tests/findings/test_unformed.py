"""Of which all-reduces every device uses its own block, in the partitioned program and in the compiled one."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import pytest
from shardscope.inspector.capture.model import PassSnapshot
from shardscope.inspector.collectives.context import context_of
from shardscope.inspector.collectives.stage import collectives_in_context
from shardscope.inspector.diff.targets import compare
from shardscope.inspector.findings.blocks import used_blocks
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import suspected as inspect
from shardscope.parsers.source import Source

from tests.findings.test_variants import PROGRAMS, captured, expected_of, libtpu, pytestmark  # noqa: F401


def used_in(stage: str, target: str = "cpu") -> dict[str, set[str]]:
    """The rules that speak of the sums in the lines of each function."""
    program = Program(captured("unformed", "program", target=target))
    parsed = program.stage(stage)
    assert parsed is not None
    tree = ast.parse((PROGRAMS / "unformed.py").read_bytes())
    lines = {
        line: node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in expected_of("unformed")
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    found: dict[str, set[str]] = {name: set() for name in expected_of("unformed")}
    for collective in collectives_in_context(parsed, context_of(program)):
        if collective.kind == "all-reduce" and used_blocks(parsed, collective):
            (name,) = {lines[frame.line] for frame in collective.source.stack if frame.line in lines}
            found[name].add("SS01")
    return found


def test_in_the_partitioned_program() -> None:
    assert used_in("hlo-spmd") == expected_of("unformed")


@pytest.mark.parametrize("target", ["cpu", pytest.param("tpu:v5p:2x2x2", marks=libtpu)])
def test_in_the_compiled_program(target: str) -> None:
    """All together, however the compiler combines them."""
    program = Program(captured("unformed", "program", target=target))
    parsed = program.stage("hlo")
    assert parsed is not None
    sums = [each for each in collectives_in_context(parsed, context_of(program)) if each.kind == "all-reduce"]
    used = sum(len(found.types) for each in sums if (found := used_blocks(parsed, each)) is not None)
    assert used == sum(map(len, expected_of("unformed").values()))


def test_the_finding_counts_them() -> None:
    (found,) = [each for each in inspect(captured("unformed", "program")).findings if each.rule == "SS01"]
    assert found.severity == "info"  # on the CPU
    counted = re.match(r"(\d+) of \d+ sums over x", found.message)
    assert counted is not None
    assert int(counted[1]) == sum(map(len, expected_of("unformed").values()))
    assert len(found.message) <= 100


def test_since_when_is_the_first_pass_that_leaves_sums_and_slices() -> None:
    program = captured("unformed", "program")
    stages = {stage.name: stage for stage in program.stages}
    before = replace(
        stages["hlo-spmd"], source=Source("m", b"HloModule m\n\nENTRY %e {\n  ROOT %c = s32[] constant(1)\n}\n")
    )
    passes = [
        PassSnapshot("pipeline", name, stage, changes=True)
        for name, stage in (("first", before), ("second", stages["hlo-spmd"]), ("third", stages["hlo"]))
    ]
    for known, expected in ((passes, "the pass second"), (passes[:1], None), ([], "the partitioner")):
        (found,) = [each for each in inspect(replace(program, passes=tuple(known))).findings if each.rule == "SS01"]
        said = dict(found.evidence).get("since")
        assert said == expected if said is None or expected is None else said.startswith(f"{expected}, which made ")


@libtpu
def test_what_other_targets_make_of_it() -> None:
    targets = ("cpu", "tpu:v5p:2x2x2")
    reports = [inspect(captured("unformed", "program", target=target)) for target in targets]
    by_target = dict(zip(targets, compare(targets, reports).reports, strict=True))
    for target, other in (targets, targets[::-1]):
        kinds = [each.kind for each in by_target[other].collectives if each.stage == "hlo"]
        for found in by_target[target].findings:
            if found.rule == "SS01":
                said = dict(found.evidence)[f"on {other}"]
                assert said.startswith("none" if "reduce-scatter" not in kinds else f"{kinds.count('reduce-scatter')} ")
