"""Regular expressions for the remains of computations and instructions in broken HLO text."""

from __future__ import annotations

import re

from ..expressions import compiled
from .call import CALLING
from .patterns import ANYWHERE, NAME, SPACE

_FIRST = rf"{SPACE}(?:ROOT\s++)?+%?{NAME}\s*+=(?!=)"
_ROW_LIKE = rf"(?:ROOT\s++)?%?{NAME} = (?=\(|[a-z]\w*+\[)"
# The printer's own remark does not go on behind its line, whatever has become of its end.
_COMMENT = r"(?:/\*(?:[index=\d]++(?=\*/|\n)|(?:[^*]++|\*(?!/))*+)(?:\*/)?+|//[^\n]*+)"
_SPACE = rf"(?:\s++|{_COMMENT})*+"
_ARRAY = rf"{NAME}\s*+\[[^\]\n]*+\](?:\s*+\{{(?=[\d:}}])(?:[^{{}}]++|\{{[^{{}}]*+\}})*+\}})?+"
_BUFFER = r"b\([^()]*+\)"
# A tuple type ends where the opcode begins, with no more than a short remark between them.
_TUPLE = r"\((?:[^)]*+\)(?!(?:\s++|/\*[^*\n]{0,99}+\*/)*+[a-z][\w\-]*+\s*+\())*+[^)]*+\)"
_SIGNATURE = rf"{ANYWHERE.parentheses}\s*+->\s*+(?:{ANYWHERE.parentheses}|{_BUFFER}|{_ARRAY})"

ROW = compiled(
    rf"(?:ROOT\s++)?%?({NAME})\s*+={_SPACE}({_TUPLE}|{_BUFFER}|{_ARRAY}|){_SPACE}([A-Za-z][\w\-]*+)\s*+\(".encode(),
    re.DOTALL,
)
"""The remains of an instruction up to its operands: (name, type, opcode)."""

HEADER = compiled(
    rf"(?:(?P<entry>ENTRY)\b{_SPACE})?+%?(?P<name>{NAME}){_SPACE}(?:{_SIGNATURE}\s*+)?+\{{".encode(), re.DOTALL
)
# Of a list of names the first is followed by the end, or by a comma and no instruction.
_LINES = rf"[ \t]*+\n(?!\s*+(?:\{{|%?{NAME}\s*+(?:\}}|,(?!{_FIRST}))))"
NESTED_HEADER = compiled(rf"(?P<entry>(?!))?(?P<name>(?!))?\{{(?={_FIRST}|{_LINES})".encode())
"""The brace that opens a nested computation, with the groups that the headers of others have."""

LOST_HEADER = compiled(rb"(?P<entry>(?!))?(?P<name>(?!))?")
"""No text, for a computation that has lost its header."""

HEADER_LINE = compiled(rf"(?:ENTRY\s++)?%?{NAME} (?:\([^\n]*+(?<=\{{)|\{{$)".encode(), re.MULTILINE)
"""A line that only a header can be."""

CALLING_KEY = compiled(rf"(?:{'|'.join(CALLING)})[ \t]*+=".encode())
"""The beginning of an attribute that names computations."""

TRIVIA = compiled(_SPACE.encode(), re.DOTALL)
"""Blanks, line breaks and remarks."""

ROW_START = compiled(_ROW_LIKE.encode())
"""Text that only an instruction starts with."""


_LINE = rf"\n(?!\s*+(?:{_ROW_LIKE}|\}}))"
_STRING = rf"""(?:"(?:[^"\\\n]++|\\[^\n]?+|{_LINE})*+"?+|'(?:[^'\\\n]++|\\[^\n]?+|{_LINE})*+'?+)"""
TOKEN = compiled(
    rf"""(?P<comment>{_COMMENT})|(?P<line>\n[ \t]*+)|(?P<open>[{{(\[])|(?P<close>[}})\]])|(?P<comma>,)"""
    rf"""|(?P<name>(?:ROOT[ \t]++)?%?{NAME}[ \t]*+=(?!=))|(?P<other>{_STRING}|[^\s,{{}}()\[\]"'/]++|/)""".encode(),
    re.DOTALL,
)
"""Tokens of a computation's body; a string that is not closed ends before an instruction or a brace."""
