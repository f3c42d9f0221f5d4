"""Links of compiled collectives: against the metadata of the texts themselves, and against a program's own source."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.correspondence.evidence import strongest
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import links
from shardscope.inspector.render.json.links import links_json_schema, links_to_json
from shardscope.inspector.report.links import Evidence, Link, LinkedPart

from .complete import kept

PROGRAM = """\
import jax, jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def block(a, b, c):
    first = lax.psum(a * 2, "x")
    second = lax.psum(jnp.sin(b), "x")
    third = lax.psum(c + 1, "x")
    return first, second, third


three = jax.jit(jax.shard_map(block, mesh=mesh, in_specs=P("x"), out_specs=P()))
three_inputs = tuple(
    jax.ShapeDtypeStruct((8 * n, 4), jnp.float32, sharding=NamedSharding(mesh, P("x"))) for n in (3, 5, 7)
)
"""

SIZES = {"f32[3,4]": 9, "f32[5,4]": 10, "f32[7,4]": 11}
"""The lines on which the program sums blocks, by their types."""


@pytest.fixture(scope="module")
def combined(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    script = tmp_path_factory.mktemp("links") / "three.py"
    script.write_text(PROGRAM)
    *_, found = capture(Request(f"{script}:three", live=False))
    assert found.complete, found.failure
    return found


def of_stage(part: LinkedPart, stage: str) -> list[Link]:
    return [link for link in part.links if link.stage == stage]


def test_each_part_of_a_combined_sum_is_that_of_its_own_line(combined: Capture) -> None:
    program = Program(combined)
    parts = links(program)
    assert len({part.collective.name for part in parts}) == 1, "not combined: the test needs another program"
    assert [str(part.type) for part in sorted(parts, key=lambda part: part.index)] == [
        str(type) for type in parts[0].collective.result_types
    ]
    assert {str(part.type) for part in parts} == SIZES.keys()
    text = program.jaxpr
    assert text is not None
    for part in parts:
        (equation,) = of_stage(part, "jaxpr")
        found = next(place.equation for place in text.equations if place.span == equation.span)
        assert equation.name == found.primitive
        assert "psum" in found.primitive
        assert text.stack(found)[0].line == SIZES[str(part.type)]
        assert found.outputs[0].type.array == part.type
        (partitioned,) = of_stage(part, "hlo-spmd")
        written = text_at(program, partitioned)
        assert str(part.type).replace("f32", "") in written.partition(" all-reduce")[0]
        assert part.confidence == "exact"


def text_at(program: Program, link: Link) -> str:
    stage = program.stage(link.stage)
    assert stage is not None
    source = stage.text if link.stage == "jaxpr" else stage.source
    return source.data[link.span.start : link.span.end].decode()


def names_in(text: str) -> Mapping[int, str]:
    """The names in the locations that MLIR writes behind operations and regions, by line."""
    named = dict(re.findall(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"\(', text, re.MULTILINE))
    uses = ((number, re.search(r"loc\((#loc\d*)\)$", line)) for number, line in enumerate(text.splitlines()))
    return {number: named[use[1]].rstrip(":") for number, use in uses if use is not None and use[1] in named}


@pytest.mark.parametrize("name", ["combined", "data_parallel.grad", "own_blocks.program", "wrong_gradients"])
def test_numbers_lead_to_what_the_compiler_wrote_of_the_collective(name: str) -> None:
    """Where one operation alone has the number, its location has the name in the metadata of the partitioned text."""
    program = Program(kept.kept(name))
    stablehlo = program.stage("stablehlo")
    assert stablehlo is not None
    text = stablehlo.source.text()
    written = names_in(text)
    compared = 0
    for part in links(program):
        partitioned, lowered = of_stage(part, "hlo-spmd"), of_stage(part, "stablehlo")
        for link in lowered if len(lowered) == len(partitioned) == 1 else ():
            called = re.search(r'op_name="((?:[^"\\]|\\.)*)"', text_at(program, partitioned[0]))
            location = written.get(text[: link.span.end].count("\n"))
            if called is not None and location is not None:
                assert called[1].rstrip(":").rpartition("/")[2] == location.rpartition("/")[2]
                compared += 1
    assert compared > 2


@pytest.mark.parametrize("name", ["big256", "cube", "detours.program.tpu", "faults.moved", "faults.program.tpu"])
def test_names_and_lines_lead_where_numbers_do(name: str) -> None:
    """Without any number the same operations are found, from links of which one is sure."""
    numbered = kept.kept(name)
    plain = replace(numbered, equations=b"", stages=tuple(replace(stage, tags=b"") for stage in numbered.stages))
    by_number = {(part.collective.span, part.index): part for part in links(Program(numbered))}
    compared = set()
    for part in links(Program(plain)):
        other = by_number[part.collective.span, part.index]
        for link in takewhile(lambda link: link.confidence != "shape", part.links):
            assert link.evidence is not Evidence.NUMBER
            exact = {each.span for each in of_stage(other, link.stage) if each.confidence == "exact"}
            assert link.span in exact or not exact
            compared.update({link.stage} if exact else ())
    assert compared >= {"hlo-spmd", "sdy", "stablehlo"}


def test_the_document_has_its_schema(combined: Capture) -> None:
    published = json.loads((Path(__file__).parents[2] / "docs" / "links.schema.json").read_text())
    assert published == links_json_schema()
    for name in ("combined", "faults.moved", "variants"):
        Draft202012Validator(published).validate(json.loads(links_to_json(links(Program(kept.kept(name))))))
    document = json.loads(links_to_json(links(Program(combined))))
    assert [part["part"] for part in document["parts"]] == [0, 1, 2]


def test_the_strongest_evidence_counts() -> None:
    asked: list[Evidence] = []

    def found(evidence: Evidence, *names: str) -> dict[Evidence, Callable[[], list[str]]]:
        return {evidence: lambda: asked.append(evidence) or list(names)}  # type: ignore[func-returns-value]

    ways = found(Evidence.SHAPE, "a", "b") | found(Evidence.OPERAND, "b") | found(Evidence.NUMBER)
    match = strongest(ways)
    assert (match.found, match.evidence, match.rivals, match.confidence) == (["b"], Evidence.OPERAND, 0, "exact")
    assert asked == [Evidence.NUMBER, Evidence.OPERAND]
    assert [strongest(found(each, "a", "b")).confidence for each in Evidence] == ["shape"] * 4
    assert [strongest(found(each, "a")).confidence for each in Evidence] == ["exact", "name", "exact", "shape"]
    assert (strongest(found(Evidence.NUMBER)).evidence, strongest({}).confidence) == (None, "none")
