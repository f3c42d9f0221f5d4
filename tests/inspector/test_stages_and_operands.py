"""Stages whose collectives are listed, and what goes into collectives, for every combination of what is known."""

from __future__ import annotations

from itertools import product

import pytest
from shardscope.inspector.capture.model import Capture, Progress, Stage
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import communicating_stages, inspect
from shardscope.parsers.source import Source

TEXTS = {
    "stablehlo": ("mlir", "module @m {\n}\n"),
    "hlo-before": ("hlo", "HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"),
    "hlo-spmd": ("hlo", "HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"),
    "hlo": ("hlo", "HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"),
}


@pytest.mark.parametrize("there", list(product((False, True), repeat=4)))
def test_what_was_written_and_what_runs(there: tuple[bool, ...]) -> None:
    """The StableHLO, and the last HLO that there is: while XLA works, only the compiled one; what was not yet
    partitioned only where nothing was written."""
    names = [name for name, here in zip(TEXTS, there, strict=True) if here]
    stages = tuple(Stage(name, TEXTS[name][0], Source(name, TEXTS[name][1].encode())) for name in names)  # type: ignore[arg-type]
    for phase in (None, "lower", "compile"):
        progress = None if phase is None else Progress(phase, 0.0)  # type: ignore[arg-type]
        program = Program(Capture(stages=stages, progress=progress))
        runs = [name for name in ("hlo", "hlo-spmd", "hlo-before") if name in names]
        if phase == "compile":
            runs = [name for name in runs if name == "hlo"]
        elif "stablehlo" in names:
            runs = [name for name in runs if name != "hlo-before"]
        expected = ["stablehlo"] * ("stablehlo" in names) + runs[:1]
        assert [stage.name for stage in communicating_stages(program)] == expected


MODULE = """HloModule m{header}

%add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}}

ENTRY %main (a: f32[8], b: bf16[4], c: s32[2]) -> f32[] {{
  %a = f32[8] parameter(0)
  %b = bf16[4] parameter(1)
  %c = s32[2] parameter(2)
  %found = {line}
  ROOT %r = f32[] constant(0)
}}
"""

OPERANDS = [
    ("f32[8] all-reduce(%a), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add", ["f32[8]"], ["f32[8]"]),
    ("(f32[8], bf16[4]) all-reduce(%a, %b), replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%add",
     ["f32[8]", "bf16[4]"], ["f32[8]", "bf16[4]"]),
    ("f32[16] all-gather(%a), replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}", ["f32[8]"], ["f32[16]"]),
    ("f32[16] all-gather(%a), dimensions={0}", ["f32[8]"], ["f32[16]"]),
    ("(f32[16], bf16[8]) all-gather(%a, %b), dimensions={0}",
     ["f32[8]", "bf16[4]"], ["f32[16]", "bf16[8]"]),
    ("f32[4] reduce-scatter(%a), replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}, to_apply=%add",
     ["f32[8]"], ["f32[4]"]),
    ("f32[8] collective-permute(%a), source_target_pairs={{0,1},{1,0}}", ["f32[8]"], ["f32[8]"]),
    ("(f32[8], f32[16]) all-gather-start(%a), replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={0}",
     ["f32[8]"], ["f32[16]"]),
    ("((f32[8], bf16[4]), (f32[16], bf16[8])) all-gather-start(%a, %b), dimensions={0}",
     ["f32[8]", "bf16[4]"], ["f32[16]", "bf16[8]"]),
    ("f32[8] all-reduce-start(%a), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add", ["f32[8]"], ["f32[8]"]),
    ("(f32[8], bf16[4]) all-reduce-start(%a, %b), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add",
     ["f32[8]", "bf16[4]"], ["f32[8]", "bf16[4]"]),
    ("(f32[8], f32[8], u32[], u32[]) collective-permute-start(%a), source_target_pairs={{0,1},{1,0}}",
     ["f32[8]"], ["f32[8]"]),
    ("f32[6] ragged-all-to-all(%a, %a, %c, %c, %c, %c), replica_groups={{0,1,2,3,4,5,6,7}}", ["f32[8]"], ["f32[6]"]),
]  # fmt: skip


@pytest.mark.parametrize(("line", "operands", "results"), OPERANDS)
def test_types_of_what_goes_in_and_what_comes_out(line: str, operands: list[str], results: list[str]) -> None:
    text = MODULE.replace("{{", "{").replace("}}", "}").replace("{line}", line)
    text = text.replace("{header}", ", num_partitions=8" if "={{" in line else "")  # else nobody knows of how many
    report = inspect(Capture(stages=(Stage("hlo", "hlo", Source("m", text.encode())),), complete=True))
    [found] = report.collectives
    assert [str(type) for type in found.operand_types] == operands
    assert [str(type) for type in found.result_types] == results
