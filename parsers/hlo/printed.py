"""The index of HLO text in the layout of XLA's printer: where its computations and instructions are.

    %name (parameter: f32[8]) -> f32[8] {
      %x = f32[8]{0} negate(%parameter), metadata={…}
      ROOT %y = …
    }, execution_thread="main"

A computation starts and ends in the first column, an instruction is one line with two spaces in front, and a line tells
by its first characters what it is. So one pass of one pattern finds the computations of a module, and one more its
instructions, without reading what is inside them. Text in any other layout is read by the grammar
(`reading.py`), of which this is a special case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from ..expressions import compiled
from .call import CALLING
from .patterns import IN_LINE, NAME, OPERANDS, TYPE

# What makes these fast: a run of any character but one costs next to nothing, one of several kinds a nanosecond for
# each character if they are listed, and more if they are not, as in `\w`; alternatives with different first letters
# cost less than something that may be left out; and a first character that stands alone is found by memchr.
_LINE = rb"\n {2}"
# Whatever has become of a name, no blank and no remark is in it.
_START = rb"(?:%|ROOT %|ROOT |)([!-.0-~\x80-\xff]++) = "
# A tuple type ends where the opcode begins: with a parenthesis, a space and a letter.
# The parenthesis of an instruction without a type comes before any bracket.
_ARRAY = rb"[A-Za-z0-9_]++\[[^ ]*+"
_TYPE = rb"(?:" + _ARRAY + rb"|\((?:[^)\n]*+\)(?! [a-z]))*+[^)\n]*+\)|b\(" + _ARRAY + rb")"
# XLA writes no capital in an opcode, and in a type `S(1)` may stand behind a blank.
_OPCODE = rb"[a-z][a-z0-9_\-]*+"
_HEADER = rb"(?P<entry>ENTRY )?+%?(?P<name>[A-Za-z0-9_.\-]++) [^\n]*+(?<= \{)"

ROW = compiled(_LINE + _START + rb"(" + _TYPE + rb") (" + _OPCODE + rb")\(")
"""A line break and an instruction up to its operands: (name, type, opcode)."""

KINDS = compiled(
    (_LINE + rb"(?:" + _START + rb"(" + _TYPE + rb" " + _OPCODE + rb")\(|(?=[^ ]))")
    .decode()
    .replace(r"\xff", r"\U0010ffff"),
    re.ASCII,
)
"""The same in decoded text, with type and opcode as one: (name, `type opcode`). A line that is no row is empty."""

HEADER = compiled(rb"\s*+(?<![ \t])" + _HEADER)
"""The line that starts a computation, from the first column, and blank lines before it."""

BOUNDARY = compiled(
    rb"\n(?!  [^ ]++ (?:=|[^ ]++ =) )(?:\}[^\n]*+\n++" + _HEADER + rb"|(?P<close>\}[^\n]*+\s*+)?+)",
)
"""Every line that does not start as an instruction does.

In printed text these are, again and again, the end of a computation together with the header of the next, whose `name`
is matched, and last of all an end alone, `close`. A match with neither is a line that no printer wrote.
"""


@lru_cache(maxsize=64)
def rows_with(opcodes: frozenset[str]) -> re.Pattern[bytes]:
    """`ROW` for some opcodes only; it also matches lines that are no row, without the third group."""
    choices = b"|".join(re.escape(opcode.encode()) for opcode in sorted(opcodes)) or rb"(?!)"
    letters = b"".join(sorted({re.escape(opcode[:1].encode()) for opcode in opcodes})) or rb"."
    return re.compile(
        _LINE + rb"(?:" + _START + rb"(" + _TYPE + rb") )?+"
        rb"(?(2)(?:(?=[" + letters + rb"])(" + choices + rb")\(|(?!" + _OPCODE + rb"\()))"
    )


def _behind_type() -> str:
    """An instruction from its opcode to its last attribute, with nothing in it that a printer would not write."""
    called = rf"%?{NAME}|\{{(?:%?{NAME}(?:, |(?=\}})))*+\}}"
    calling = rf"(?:{'|'.join(CALLING)})="
    literal = rf"(?:constant|parameter){IN_LINE.parentheses}"
    operands = rf"(?!(?:constant|parameter)\(){_OPCODE.decode()}\({OPERANDS}\)"
    return rf"(?:{literal}|{operands})(?:, (?:(?!{calling}){NAME}={IN_LINE.value}|{calling}(?:{called})))*+"


@cache
def exact() -> re.Pattern[bytes]:
    """An instruction that is in all of it as printed: (name, type, opcode)."""
    head = rf"(?:ROOT )?+%?({NAME}) = ({TYPE}) (?=({_OPCODE.decode()}))"
    return compiled(f"{head}{_behind_type()}".encode())


@cache
def doubtful() -> re.Pattern[bytes]:
    """A line break before what is not an instruction that is, in all of it, as printed."""
    return compiled(rf"\n  (?!(?:ROOT )?+%?{NAME} = {TYPE} {_behind_type()}\n)".encode())


def is_printed(boundaries: Sequence[re.Match[bytes]], end: int) -> bool:
    """Return whether all lines between the instructions, up to `end`, are as the printer writes them."""
    if not boundaries or boundaries[-1].lastgroup != "close" or boundaries[-1].end() != end:
        return False
    return {boundary.lastgroup for boundary in boundaries[:-1]} <= {"name"}
