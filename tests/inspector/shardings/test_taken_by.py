"""Operations that take the result of a collective, in texts that no compiler writes."""

from __future__ import annotations

from shardscope.inspector.capture.model import Capture, Stage
from shardscope.inspector.collectives.context import context_of
from shardscope.inspector.collectives.stage import collectives_in_context
from shardscope.inspector.ir.program import Program
from shardscope.inspector.shardings.executed import taken_by
from shardscope.parsers.source import Source

CYCLE = b"""HloModule m, num_partitions=2

%gathered (a: f32[4]) -> f32[8] {
  %a = f32[4]{0} parameter(0)
  ROOT %gather = f32[8]{0} all-gather(%a), replica_groups={{0,1}}, dimensions={0}
}

%one (b: f32[4]) -> f32[8] {
  %b = f32[4]{0} parameter(0)
  ROOT %first = f32[8]{0} call(%b), to_apply=%gathered, calls=%other
}

%other (c: f32[4]) -> f32[8] {
  %c = f32[4]{0} parameter(0)
  ROOT %second = f32[8]{0} call(%c), to_apply=%one
}

ENTRY %main (d: f32[4]) -> f32[8] {
  %d = f32[4]{0} parameter(0)
  ROOT %whole = f32[8]{0} call(%d), to_apply=%one
}
"""


def test_computations_that_call_each_other() -> None:
    program = Program(Capture(stages=(Stage("hlo", "hlo", Source("m.txt", CYCLE)),)))
    stage = program.stage("hlo")
    assert stage is not None
    (gather,) = collectives_in_context(stage, context_of(program))
    assert taken_by(stage, gather) == frozenset()
