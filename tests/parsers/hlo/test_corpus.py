"""Every text of the corpus, read by us and by XLA: the same instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shardscope.parsers.hlo import (
    ArrayShape,
    BufferShape,
    HloModule,
    HloType,
    Instruction,
    Operand,
    TupleShape,
    parse_module,
)
from shardscope.parsers.hlo.printed import doubtful
from shardscope.parsers.sharding_syntax.replica_groups import ListGroups
from shardscope.parsers.source import Source

from .conftest import Read
from .coverage import untold

HALVES = ("start", "update", "done")
HALVED = ("all-gather", "all-reduce", "collective-permute", "copy", "recv", "send")
"""The halves of these are opcodes; those of all others are `async-…`, which is printed together with what it does."""


@pytest.fixture(scope="module")
def texts(corpus: list[Path]) -> list[Path]:
    """The texts of HLO modules; dumps hold other files too."""
    found = [path for path in corpus if path.suffix != ".mlir" and path.read_bytes().startswith(b"HloModule ")]
    assert len(found) > 500
    return found


@pytest.fixture(scope="module")
def modules(texts: list[Path]) -> dict[Path, HloModule]:
    return {path: parse_module(Source(path.name, path.read_bytes())) for path in texts}


def test_reads_every_text_without_a_problem(modules: dict[Path, HloModule]) -> None:
    assert [str(problem) for module in modules.values() for problem in module.problems] == []


def test_finds_what_xla_finds(modules: dict[Path, HloModule], xla: Read) -> None:
    answers = xla(modules)
    read = {path: answer for path, answer in answers.items() if "error" not in answer}
    # XLA does not read all that it prints for GPUs: an attribute of theirs is unknown to its parser.
    assert len(read) > 0.9 * len(modules)
    disagreements = [each for path in read for each in differences(modules[path], read[path]["computations"])]
    assert disagreements == []


def test_each_byte_is_of_an_instruction(modules: dict[Path, HloModule]) -> None:
    assert [text for module in modules.values() for text in untold(module)] == []


def test_scans_agree_with_the_instructions_one_by_one(modules: dict[Path, HloModule]) -> None:
    for module in modules.values():
        instructions = [each for computation in module.computations for each in computation.instructions]
        assert list(module.rows()) == [(each.name, each.type_text, each.opcode) for each in instructions]
        for opcodes in ({"parameter"}, {"all-reduce", "all-reduce-start", "add", "fusion"}):
            wanted = [each.span for each in instructions if each.opcode in opcodes]
            assert [each.span for each in module.with_opcode(opcodes)] == wanted
        last = instructions[-1]
        assert module.instruction_at(last.span.end - 1).name == last.name


def differences(module: HloModule, theirs: list[Any]) -> Iterator[str]:
    """What XLA says otherwise: about computations, and the names, opcodes, types, operands and groups in them."""
    ours = {computation.name: computation for computation in module.computations}
    folded = {name for each in module.with_opcode([f"async-{half}" for half in HALVES]) for name in each.called}
    if extra := ours.keys() - {name for name, _ in theirs} - folded:
        yield f"{module.source.name}: only we have {extra}"
    for name, rows in theirs:
        instructions = ours[name].instructions
        expected = {row[0]: tuple(row[1:]) for row in rows}
        found = {each.name: (*printed(each), groups(each)) for each in instructions}
        # Of an element `%t#1#0` in place of an operand XLA makes instructions of their own, `t_1` and `t_1_0`.
        elements = {
            Operand(each.name, each.index[:depth])
            for instruction in instructions
            for each in instruction.references
            for depth in range(1, len(each.index) + 1)
        }
        for element in elements:
            name, whole = spelled(element), spelled(Operand(element.name, element.index[:-1]))
            row = expected.get(name, ())
            if name not in found and row[::2] == ("get-tuple-element", [whole]):
                found[name] = row
        if found != expected:
            differing = {key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)}
            yield f"{module.source.name}: {name}: " + "; ".join(
                f"{key}: {found.get(key)} {expected.get(key)}" for key in sorted(differing)
            )


def printed(instruction: Instruction) -> tuple[str, str, list[str]]:
    """Opcode, type without layouts, and operands, as XLA prints them."""
    opcode = instruction.opcode
    kind, _, half = opcode.rpartition("-")
    if half in HALVES and kind not in HALVED:
        opcode = f"{halved(instruction)}-{half}"
    return opcode, str(without_layout(instruction.type)), list(map(spelled, instruction.references))


def groups(instruction: Instruction) -> list[list[int]] | None:
    """The replica groups written out; XLA prints them with the start of an asynchronous pair."""
    if instruction.opcode == "async-start":
        instruction = wrapped(instruction)
    match instruction.replica_groups:
        case None:
            return None
        case ListGroups(explicit):
            return list(map(list, explicit))
        case spelled_shortly:
            return list(map(list, spelled_shortly.devices(0)))


def halved(instruction: Instruction) -> str:
    """What an asynchronous half is a half of, which XLA prints with it: what it, or its start, says or wraps."""
    start: Instruction | None = instruction
    while start and start.opcode.endswith(("-update", "-done")):
        start = start.computation.instruction(start.operands[0])
    if start is None or not start.opcode.endswith("-start"):
        return "async"
    return wrapped(start).opcode if start.opcode == "async-start" else start.opcode.removesuffix("-start")


def wrapped(start: Instruction) -> Instruction:
    """The root of the computation that an instruction starts."""
    root = start.computation.module.computation(start.called[0]).root
    assert root is not None
    return root


def spelled(operand: Operand) -> str:
    return "_".join((operand.name, *map(str, operand.index)))


def without_layout(type_: HloType) -> HloType:
    match type_:
        case ArrayShape():
            return replace(type_, layout=None)
        case TupleShape(elements):
            return TupleShape(tuple(map(without_layout, elements)))
        case BufferShape(array):
            return BufferShape(replace(array, layout=None))
        case other:
            return other


def test_nothing_that_a_printer_wrote_is_doubted(modules: dict[Path, HloModule]) -> None:
    """The grammar is asked about what one pattern over all lines doubts; about printed text it would take minutes."""
    for module in modules.values():
        body = module.computations[0].body_start, module.computations[-1].body_end
        assert [match[0] for match in doubtful().finditer(module.source.data, *body)] == []
