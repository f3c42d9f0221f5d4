"""Equations and the operations that they became, against what both say of themselves."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest
from shardscope.inspector.capture.file import load, save
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.correspondence.numbers import operations_of, spans_of_equations, spans_of_tags, tags_at
from shardscope.inspector.ir.jaxpr_text import JaxprText
from shardscope.inspector.ir.program import Program
from shardscope.inspector.ir.stage import ParsedStage
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.report.places import StagePlace
from shardscope.inspector.selection.selection import linked
from shardscope.parsers.mlir import MlirModule, frames

from tests.conftest import SampleCapture

STEP = Path(__file__).parent / "shardings" / "transformer_step.py"
SAMPLES = ("fsdp_tp:grad", "pipeline:grad", "moe:grad", "grad_accumulation:automatic", "transformer:train_step")


@pytest.fixture(scope="module", params=["step", *SAMPLES])
def captured(request: pytest.FixtureRequest, sample: SampleCapture) -> Program:
    if request.param != "step":
        return Program(sample(request.param))
    *_, found = capture(Request(f"{STEP}:step", live=False))
    return Program(found)


def parts(program: Program) -> tuple[JaxprText, ParsedStage, MlirModule]:
    text, stage = program.jaxpr, program.stage("stablehlo")
    assert text is not None
    assert stage is not None
    assert stage.mlir is not None
    return text, stage, stage.mlir


def test_what_an_operation_comes_from_is_on_its_line(captured: Program) -> None:
    text, stage, module = parts(captured)
    compared = 0
    for operation in module.walk():
        stack = frames(operation.location) if operation.text is module.text else ()
        numbers = tags_at(stage, operation.span) if stack else ()
        for span in spans_of_equations(captured, text, numbers):
            equation = next(place.equation for place in text.equations if place.span == span)
            lines = [(frame.file, frame.line) for frame in text.stack(equation)]
            if lines and lines[0] != (stack[0].file, stack[0].line):
                # Before JAX 0.8, jaxprs and locations have different users of a cotangent for where it is added up.
                assert jax.__version_info__ < (0, 8)
                assert equation.primitive in ("add_any", "add")
                continue
            compared += 1
    assert compared > (10 if jax.__version_info__ >= (0, 8) else 1)


def test_products_are_those_of_their_equations(captured: Program) -> None:
    """They have the arguments that their equations have: layers that share a line have weights of their own."""
    text, stage, module = parts(captured)
    main = module.function("main")
    assert main is not None
    inputs = [variable.name for variable in text.program.jaxprs[0].inputs]
    for place in text.equations:
        if place.equation.primitive == "dot_general" and place.jaxpr == 0:
            (span,) = spans_of_tags(stage, operations_of(captured, text, place.span.start))
            product = module.operation_at(span.start + 4)
            assert product is not None
            assert product.name == "stablehlo.dot_general"
            for name, operand in zip(place.equation.inputs, product.operands, strict=True):
                if name in inputs and len(inputs) == len(main.arguments):
                    assert operand == main.arguments[inputs.index(name)].name


def test_every_operation_has_an_equation(captured: Program) -> None:
    """But for constants, which JAX shares, and what ends a region; and functions that JAX makes while it lowers."""
    text, stage, module = parts(captured)
    main = module.function("main")
    assert main is not None
    without = {
        operation.name
        for operation in main.operation.walk()
        if operation.text is module.text and not spans_of_equations(captured, text, tags_at(stage, operation.span))
    }
    own = {"stablehlo.constant", "stablehlo.return", "sdy.return", "return", "func.return"}
    assert without <= own | {"func.func"}
    assert all(b"~eq" not in each.source.data for each in captured.stages if each.name != "jaxpr")


def test_links_from_instructions_to_equations_are_exact(captured: Program, tmp_path: Path) -> None:
    save(captured.capture, tmp_path / "capture")
    report = inspect(load(tmp_path / "capture"))
    stages = [report.program.stage(name) for name in ("jaxpr", "hlo")]
    text = report.program.jaxpr
    assert text is not None
    assert all(stages)
    jaxpr, hlo = (stage for stage in stages if stage is not None)
    there = [
        (place, found)
        for place in text.equations
        if (found := linked(report, StagePlace("jaxpr", place.span.start), hlo)).confidence == "exact" and found.spans
    ]
    assert there
    for place, found in there[:20]:
        back = linked(report, StagePlace("hlo", found.spans[0].start + 4), jaxpr)
        assert back.confidence == "exact" or back.collective is not None
        assert not place.equation.bodies or back.spans
        assert place.equation.bodies or place.span in back.spans


def test_a_collective_is_selected_from_its_first_to_its_last_character(sample: SampleCapture) -> None:
    report = inspect(sample("fsdp_tp:grad"))
    assert report.collectives
    for each in report.collectives:
        stage = report.program.stage(each.stage)
        assert stage is not None
        for place in (each.span.start, each.span.end - 1):
            assert linked(report, StagePlace(each.stage, place), stage).collective == each
        assert linked(report, StagePlace(each.stage, each.span.end), stage).collective != each
