"""Messages of the compiler and JAX, with the user's lines that they are about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ...parsers.source import Frame
from ..capture.model import STAGES, Message
from ..collectives.users import users_with_positions
from ..ir.derived import derived
from ..ir.jaxpr_text import JaxprText
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..ir.types import ArrayType, jax_type
from ..report import PlacedMessage, SourcePosition

OF_HLO = tuple(name for name, kind in STAGES.items() if kind.dialect == "hlo")
"""Modules that a message of the compiler may be about, in the order in which they are asked."""

MAX_MESSAGES = 64
"""Messages for which places are looked for."""

MAX_INSTRUCTIONS = 32
"""Maximum number of instructions of a module that have the operation's name."""

MAX_DEPTH = 16
"""Calls through which the first use of an argument is followed."""

_INSTRUCTION = re.compile(r"(?:^|\s)%([\w.-]+) = \S+ [\w-]+\(")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_SOURCE = re.compile(r'source_file="([^"]*)"(?:,? source_line=(\d{1,9})\b)')
_IN_NAME = re.compile(rb"[\w.-]")
_DONATED = re.compile(r"donated buffers were not usable")
_ARRAY = re.compile(r"\b(bool|(?:u?int|b?float|complex)(?=\d))(\w*\[[\d,]*\])")
"""A type with NumPy's name of the dtype."""

_SHORT = {"int": "i", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c", "bool": "bool"}


def placed_messages(program: Program) -> tuple[PlacedMessage, ...]:
    """All messages of a capture, those with a place that have one."""
    messages = program.capture.messages
    return (
        *(_placed(program, message) for message in messages[:MAX_MESSAGES]),
        *map(PlacedMessage, messages[MAX_MESSAGES:]),
    )


def _placed(program: Program, message: Message) -> PlacedMessage:
    if _DONATED.search(message.text):
        return _donation(program, message)
    written = _SOURCE.search(message.text)
    op_name = _OP_NAME.search(message.text)
    about = op_name[1] if op_name else None
    if written is not None:
        return PlacedMessage(message, about, SourcePosition((Frame(written[1], "", int(written[2])),), "exact"))
    if message.phase != "compile":
        return PlacedMessage(message)
    instruction = _INSTRUCTION.search(message.text)
    named = instruction[1] if instruction else None
    for name in OF_HLO:
        stage = program.stage(name)
        found = None if stage is None else _place_in(stage, named, about)
        if found is not None:
            return PlacedMessage(message, about or named, found)
    return PlacedMessage(message, about or named)


@derived
def _place_in(stage: ParsedStage, named: str | None, op_name: str | None) -> SourcePosition | None:
    """The lines of an instruction by its own name or by what JAX calls it, or of what uses it."""
    return next(_places(stage, named, op_name), None)


def _places(stage: ParsedStage, named: str | None, op_name: str | None) -> Iterator[SourcePosition]:
    module = stage.hlo
    if module is None:
        return
    needles = [] if op_name is None else [f'op_name="{op_name}"']
    if named is not None and (op_name is None or named.partition(".")[0] not in ("param", "parameter")):
        needles.insert(0, f"{named} = ")
    for needle in needles:
        found = map(module.instruction_at, islice(_offsets(stage.source.data, needle.encode()), MAX_INSTRUCTIONS))
        here = [instruction for instruction in found if instruction is not None]
        for instruction in here:
            if instruction.frames:
                yield SourcePosition(instruction.frames, "name")
        for around in users_with_positions(module, here, differentiated=False).values():
            if around.source.stack:
                yield around.source


def _offsets(data: bytes, needle: bytes) -> Iterator[int]:
    """The offsets of a text, unless it is the end of a longer name."""
    at = data.find(needle)
    while at >= 0:
        if not at or not _IN_NAME.match(data, at - 1):
            yield at
        at = data.find(needle, at + 1)


def _donation(program: Program, message: Message) -> PlacedMessage:
    """The donated arguments of the types in the message, and where the first of them is used."""
    capture, text = program.capture, program.jaxpr
    blocks = [jax_type(f"{_SHORT[name]}{rest}") for name, rest in _ARRAY.findall(message.text)]
    donated = [number for number, value in enumerate(capture.arguments) if value.donated]
    meant = [n for n in donated if any(_may_be_a_block(each, jax_type(capture.arguments[n].type)) for each in blocks)]
    donated = meant or donated
    names = ", ".join(capture.arguments[number].path for number in donated)
    stack = _first_use(text, donated[0]) if text is not None and donated else ()
    return PlacedMessage(
        message, f"donated: {names}" if names else None, SourcePosition(stack, "name" if stack else "none")
    )


def _may_be_a_block(block: ArrayType, whole: ArrayType) -> bool:
    """Return whether an array may have blocks of a type: JAX's message has that of each device."""
    sizes, parts = whole.shape or (), block.shape or ()
    is_divided = len(sizes) == len(parts) and all(
        part and size % part == 0 for size, part in zip(sizes, parts, strict=True)
    )
    return block.dtype == whole.dtype and is_divided


def _first_use(text: JaxprText, argument: int) -> tuple[Frame, ...]:
    number = 0
    for _ in range(MAX_DEPTH):
        jaxpr = text.program.jaxprs[number]
        if argument >= len(jaxpr.inputs):
            return ()
        name = jaxpr.inputs[argument].name
        use = next((equation for equation in jaxpr.equations if name in equation.inputs), None)
        if use is None or (stack := text.stack(use)):
            return () if use is None else stack
        argument = use.inputs.index(name)
        if not use.bodies:
            return ()
        number = use.bodies[0][1]
    return ()
