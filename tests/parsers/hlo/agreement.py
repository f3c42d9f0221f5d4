"""Where our reading of a text of HLO differs from that of XLA's own parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shardscope.parsers.hlo import ArrayShape, BufferShape, HloModule, HloType, Instruction, Operand, TupleShape
from shardscope.parsers.sharding_syntax.replica_groups import ListGroups

_TYPED_BY_XLA = ("send", "send-done", "recv", "recv-done", "outfeed")
"""XLA gives these the types that belong to what they take, whatever is written."""
_ANONYMOUS = re.compile(r"\.anon(?:\.[0-9]+)*\Z")

HALVES = ("start", "update", "done")
HALVED = ("all-gather", "all-reduce", "collective-permute", "copy", "recv", "send")
"""The halves of these are opcodes; those of all others are `async-…`, which is printed together with what it does."""


def differences(module: HloModule, theirs: list[Any]) -> Iterator[str]:
    """What XLA says otherwise: about computations, and the names, opcodes, types, operands and groups in them."""
    ours = {computation.name: computation for computation in module.computations}
    folded = {name for each in module.with_opcode([f"async-{half}" for half in HALVES]) for name in each.called}
    if extra := ours.keys() - {name for name, _ in theirs} - folded:
        yield f"{module.source.name}: only we have {extra}"
    if missing := {name for name, _ in theirs} - ours.keys():
        yield f"{module.source.name}: only XLA has {missing}"
    for name, rows in theirs:
        if name in missing:
            continue
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
            name = f"{name}.1" if name in found else name
            row = expected.get(name, ())
            if name not in found and row[::2] == ("get-tuple-element", [whole]):
                found[name] = row
        if found != expected:
            differing = {key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)}
            yield f"{module.source.name}: {name}: " + "; ".join(
                f"{key}: {found.get(key)} {expected.get(key)}" for key in sorted(differing)
            )


def printed(instruction: Instruction) -> tuple[str, str, list[str]]:
    """Opcode, type without layouts, and operands, as XLA prints them; an element has a name that is not taken."""
    opcode = instruction.opcode
    kind, _, half = opcode.rpartition("-")
    if half in HALVES and kind not in HALVED:
        opcode = f"{halved(instruction)}-{half}"
    return (
        opcode,
        str(without_layout(instruction.type)),
        [
            spelled(each) + (".1" if each.index and instruction.computation.instruction(spelled(each)) else "")
            for each in instruction.references
        ],
    )


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


def in_our_names(module: HloModule, theirs: list[Any]) -> list[Any]:
    """XLA's answer of a text that people wrote, in terms of what is written.

    XLA gives computations of like names, and instructions of one name in several computations, names of their own. It
    makes instructions of those that are written in place of an operand, and infers types and groups.
    """
    ours = {computation.name: computation for computation in module.computations}
    renamed = [name for name, _ in theirs if name not in ours]
    unnamed = [name for name in ours if name not in dict(theirs)]
    own_names = dict(zip(renamed, unnamed, strict=True)) if len(renamed) == len(unnamed) else {}
    theirs = [[own_names.get(name, name), rows] for name, rows in theirs]
    answer = []
    for computation, rows in theirs:
        if computation not in ours:
            answer.append([computation, rows])
            continue
        instructions = {each.name: each for each in ours[computation].instructions}
        written = [row for row in rows if row[0] in instructions or not _ANONYMOUS.search(row[0])]
        if len(written) != len(instructions):
            written = [row for row in written if row[0] in instructions or row[1] != "get-tuple-element"]
        names = {row[0]: name for row, name in zip(written, instructions, strict=False)}
        found = []
        for name, opcode, type_text, operands, its_groups in written:
            own = instructions.get(names.get(name, ""))
            if own is not None:
                opcode = printed(own)[0] if opcode == own.opcode else opcode
                is_inferred = not own.type_text or own.opcode in _TYPED_BY_XLA
                type_text = printed(own)[1] if is_inferred else type_text
                if not its_groups and (own.opcode == "async-start" or not groups(own)):
                    its_groups = groups(own)
            named = [
                names.get(each, each if each in names.values() else _ANONYMOUS.sub(".anon", each)) for each in operands
            ]
            found.append([names.get(name, name), opcode, type_text, named, its_groups])
        answer.append([computation, found])
    return answer
