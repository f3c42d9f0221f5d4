"""A program owns what is read of its capture: it is read once, handed on while the capture grows, and freed with it."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from shardscope.inspector.capture.model import Capture, Execution, Stage
from shardscope.inspector.ir import stage as stages
from shardscope.inspector.ir.language import Language, Module
from shardscope.inspector.ir.languages import LANGUAGES
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect, stage_summaries
from shardscope.inspector.render.json import to_json
from shardscope.inspector.report.places import StagePlace
from shardscope.inspector.selection.selection import linked
from shardscope.parsers.source import Source

JAXPR = {
    "frames": [{"file": "model.py", "function": "fn", "line": 7}],
    "jaxprs": [
        {
            "constants": [],
            "inputs": [{"name": "a", "type": "f32[8,4]"}],
            "equations": [
                {
                    "primitive": "tanh",
                    "inputs": ["a"],
                    "outputs": [{"name": "b", "type": "f32[8,4]"}],
                    "stack": [0],
                }
            ],
            "outputs": ["b"],
        }
    ],
}

STABLEHLO = """module @number_{0} {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x4xf32> {{
    %0 = stablehlo.tanh %arg0 : tensor<8x4xf32> loc("fn"("model.py":7:0))
    %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{"x"}}]> : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }}
}}
"""  # noqa: E501

SHARDED = 'tanh %arg0 {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}} :'
SDY = STABLEHLO.replace("tanh %arg0 :", SHARDED)

HLO = """HloModule number_{0}, num_partitions=2

%sum (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}}

ENTRY %main (p: f32[4,4]) -> f32[4,4] {{
  %p = f32[4,4] parameter(0), sharding={{devices=[2,1]<=[2]}}
  %tanh = f32[4,4] tanh(%p), metadata={{op_name="jit(fn)/tanh" source_file="model.py" source_line=7}}
  ROOT %all-reduce = f32[4,4] all-reduce(%tanh), channel_id=1, replica_groups={{{{0,1}}}}, to_apply=%sum
}}
"""


def captured(number: int) -> Capture:
    """A capture of all stages, as texts that no other number has."""
    texts = {
        "jaxpr": ("jaxpr", msgspec.json.encode(JAXPR | {"number": number})),
        "stablehlo": ("mlir", STABLEHLO.format(number).encode()),
        "sdy": ("mlir", SDY.format(number).encode()),
        **{name: ("hlo", HLO.format(number).encode()) for name in ("hlo-before", "hlo-spmd", "hlo")},
    }
    found = tuple(Stage(name, dialect, Source(name, data)) for name, (dialect, data) in texts.items())  # type: ignore[arg-type]
    return Capture(stages=found, complete=True)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[Source]:
    """How often each text was read."""
    counted: Counter[Source] = Counter()

    def counting(language: Language) -> Language:
        def read(source: Source) -> Module:
            counted[source] += 1
            return language.read(source)

        return replace(language, read=read)

    monkeypatch.setattr(stages, "LANGUAGES", {name: counting(language) for name, language in LANGUAGES.items()})
    return counted


def test_a_second_inspection_of_many_programs_reads_nothing(reads: Counter[Source]) -> None:
    programs = [Program(captured(number)) for number in range(8)]
    reports = [to_json(inspect(program)) for program in programs]
    assert len(reads) == 8 * 6
    assert set(reads.values()) == {1}
    assert [to_json(inspect(program)) for program in programs] == reports
    assert set(reads.values()) == {1}


def test_a_growing_capture_is_read_stage_by_stage(reads: Counter[Source]) -> None:
    whole = captured(0)
    program = Program(Capture())
    for count in range(1, len(whole.stages) + 1):
        program = program.grown(Capture(stages=whole.stages[:count]))
        inspect(program)
        assert len(reads) == count
    before = program.stage("hlo")
    program = program.grown(replace(whole, execution=Execution(seconds=(1.0,))))
    assert program.stage("hlo") is before
    assert to_json(inspect(program)) == to_json(inspect(program.capture))
    assert {reads[stage.source] for stage in whole.stages} == {2}  # once more by the inspection of the bare capture


def test_a_stage_with_another_text_is_read(reads: Counter[Source]) -> None:
    """Two programs have nothing in common, even where their stages have the same name."""
    program = Program(captured(0))
    inspect(program)
    other = program.grown(captured(1))
    assert {stage.source for stage in other.stages}.isdisjoint(reads)
    assert stage_summaries(other) == stage_summaries(Program(other.capture))
    assert len(reads) == 12


def test_nothing_outlives_the_program() -> None:
    """Of captures that were inspected, printed and linked, neither texts, nor modules, nor results are kept."""
    watched: list[weakref.ref[object]] = []

    def work(number: int) -> None:
        program = Program(captured(number))
        report = inspect(program)
        to_json(report)
        hlo = program.stage("hlo")
        assert hlo is not None
        place = StagePlace("jaxpr", program.jaxpr.equations[0].span.start if program.jaxpr else 0)
        assert linked(report, place, hlo).spans
        watched.extend(weakref.ref(each) for each in (program, *program.stages))
        watched.extend(weakref.ref(stage.module) for stage in program.stages if stage.dialect != "jaxpr")

    for number in range(12):
        work(number)
    assert len(watched) == 12 * (1 + 6 + 5)
    gc.collect()
    assert [each() for each in watched if each() is not None] == []
