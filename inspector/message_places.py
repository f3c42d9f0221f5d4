"""What the compiler and JAX say, with the user's lines that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..parsers.hlo import HloModule, Instruction
from ..parsers.source_frames import Frame
from .capture.model import Capture, Message, Stage
from .collectives.neighbours import neighbours_of
from .jaxpr_text import JaxprText
from .program import read
from .report import PlacedMessage, SourcePlace

STAGES = ("hlo-before", "hlo-spmd", "hlo")
"""Modules that a message of the compiler may be about, in the order in which they are asked."""

MOST = 200
"""Messages for which places are looked for."""

MOST_INSTRUCTIONS = 32
"""Of those that have the operation's name in a module."""

DEEPEST = 16
"""Calls through which the first use of an argument is followed."""

_INSTRUCTION = re.compile(r"(?:^|\s)%([\w.-]+) = \S+ [\w-]+\(")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_SOURCE = re.compile(r'source_file="([^"]*)"(?:,? source_line=(\d+))')
_DONATED = re.compile(r"donated buffers were not usable")


def placed_messages(capture: Capture) -> tuple[PlacedMessage, ...]:
    """All messages of a capture, those with a place that have one."""
    messages = capture.messages
    return (*(_placed(capture, message) for message in messages[:MOST]), *map(PlacedMessage, messages[MOST:]))


def _placed(capture: Capture, message: Message) -> PlacedMessage:
    if _DONATED.search(message.text):
        return _donation(capture, message)
    written = _SOURCE.search(message.text)
    op_name = _OP_NAME.search(message.text)
    about = op_name[1] if op_name else None
    if written is not None:
        return PlacedMessage(message, about, SourcePlace((Frame(written[1], "", int(written[2])),), "exact"))
    if message.phase != "compile":
        return PlacedMessage(message)
    instruction = _INSTRUCTION.search(message.text)
    for name in STAGES:
        stage = capture.stage(name)
        for found in () if stage is None else _instructions(stage, instruction, op_name):
            return PlacedMessage(message, about or found[0].name, found[1])
    return PlacedMessage(message, about or (instruction[1] if instruction else None))


def _instructions(
    stage: Stage, named: re.Match[str] | None, op_name: re.Match[str] | None
) -> Iterator[tuple[Instruction, SourcePlace]]:
    """Instructions that a message may mean, with their lines; or with those of what uses them."""
    module = read(stage)
    if not isinstance(module, HloModule):
        return
    patterns = []
    if op_name is not None:
        patterns.append(re.escape(op_name[0].encode()))
    if named is not None and (op_name is None or named[1].partition(".")[0] not in ("param", "parameter")):
        patterns.insert(0, rb"%?(?<![\w.-])" + re.escape(named[1].encode()) + rb" = ")
    for pattern in patterns:
        matches = re.finditer(pattern, stage.source.data)
        found = [
            module.instruction_at(match.start()) for match, _ in zip(matches, range(MOST_INSTRUCTIONS), strict=False)
        ]
        here = [instruction for instruction in found if instruction is not None]
        for instruction in here:
            if instruction.frames:
                yield instruction, SourcePlace(instruction.frames, "name")
        for instruction, around in neighbours_of(module, here, differentiated=False).items():
            if around.source.stack:
                yield instruction, around.source


def _donation(capture: Capture, message: Message) -> PlacedMessage:
    """The donated arguments, and where the first of them is used."""
    donated = [number for number, value in enumerate(capture.arguments) if value.donated]
    names = ", ".join(capture.arguments[number].path for number in donated)
    stage = capture.stage("jaxpr")
    text = None if stage is None else read(stage)
    stack = _first_use(text, donated[0]) if isinstance(text, JaxprText) and donated else ()
    return PlacedMessage(
        message, f"donated: {names}" if names else None, SourcePlace(stack, "name" if stack else "none")
    )


def _first_use(text: JaxprText, argument: int) -> tuple[Frame, ...]:
    number = 0
    for _ in range(DEEPEST):
        jaxpr = text.program.jaxprs[number]
        if argument >= len(jaxpr.inputs):
            return ()
        name = jaxpr.inputs[argument].name
        use = next((equation for equation in jaxpr.equations if name in equation.inputs), None)
        if use is None or (stack := text.stack(use)):
            return () if use is None else stack
        argument = use.inputs.index(name)
        if not use.bodies or not 0 < use.bodies[0][1] < len(text.program.jaxprs):
            return ()
        number = use.bodies[0][1]
    return ()
