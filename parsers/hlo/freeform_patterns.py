"""What the pieces of HLO text look like in any layout, as regular expressions; see also `patterns.py`."""

from __future__ import annotations

import re

from .call import CALLING
from .nested import FIRST
from .patterns import ANYWHERE, NAME

_ROW_LIKE = rf"(?:ROOT\s++)?%?{NAME} = (?=\(|[a-z]\w*+\[)"
# The printer's own remark does not go on behind its line, whatever has become of its end.
_COMMENT = r"(?:/\*(?:[index=\d]++(?=\*/|\n)|(?:[^*]++|\*(?!/))*+)(?:\*/)?+|//[^\n]*+)"
_SPACE = rf"(?:\s++|{_COMMENT})*+"
_ARRAY = rf"{NAME}\s*+\[[^\]\n]*+\](?:\s*+\{{(?=[\d:}}])(?:[^{{}}]++|\{{[^{{}}]*+\}})*+\}})?+"
_BUFFER = r"b\([^()]*+\)"
# A tuple type ends where the opcode begins, with no more than a short remark between them.
_TUPLE = r"\((?:[^)]*+\)(?!(?:\s++|/\*[^*\n]{0,99}+\*/)*+[a-z][\w\-]*+\s*+\())*+[^)]*+\)"
_SIGNATURE = rf"{ANYWHERE.parentheses}\s*+->\s*+(?:{ANYWHERE.parentheses}|{_BUFFER}|{_ARRAY})"

ROW = re.compile(
    rf"(?:ROOT\s++)?%?({NAME})\s*+={_SPACE}({_TUPLE}|{_BUFFER}|{_ARRAY}|){_SPACE}([A-Za-z][\w\-]*+)\s*+\(".encode(),
    re.DOTALL,
)
"""An instruction up to its operands: (name, type, opcode). People leave out types, and XLA infers them."""

HEADER = re.compile(
    rf"(?:(?P<entry>ENTRY)\b{_SPACE})?+%?(?P<name>{NAME}){_SPACE}(?:{_SIGNATURE}\s*+)?+\{{".encode(), re.DOTALL
)
# Of a list of names the first is followed by the end, or by a comma and no instruction.
_LINES = rf"[ \t]*+\n(?!\s*+(?:\{{|%?{NAME}\s*+(?:\}}|,(?!{FIRST}))))"
NESTED_HEADER = re.compile(rf"(?P<entry>(?!))?(?P<name>(?!))?\{{(?={FIRST}|{_LINES})".encode())
"""The brace that opens a nested computation, with the groups that the headers of others have."""

LOST_HEADER = re.compile(rb"(?P<entry>(?!))?(?P<name>(?!))?")
"""No text, for a computation that has lost its header."""

HEADER_LINE = re.compile(rf"(?:ENTRY\s++)?%?{NAME} (?:\([^\n]*+(?<=\{{)|\{{$)".encode(), re.MULTILINE)
"""A line that only a header can be."""

CALLING_KEY = re.compile(rf"(?:{'|'.join(CALLING)})[ \t]*+=".encode())
"""The beginning of an attribute that names computations."""

TRIVIA = re.compile(_SPACE.encode(), re.DOTALL)
"""Blanks, line breaks and remarks."""

ROW_START = re.compile(_ROW_LIKE.encode())
"""What only an instruction starts with."""


def _tokens(next_line: str) -> re.Pattern[bytes]:
    """A string may have line breaks in it, but where the next line starts like this, its end is lost."""
    line = rf"\n(?!\s*+{next_line})"
    string = rf"""(?:"(?:[^"\\\n]++|\\[^\n]?+|{line})*+"?+|'(?:[^'\\\n]++|\\[^\n]?+|{line})*+'?+)"""
    return re.compile(
        rf"""(?P<comment>{_COMMENT})|(?P<line>\n[ \t]*+)|(?P<open>[{{(\[])|(?P<close>[}})\]])|(?P<comma>,)"""
        rf"""|(?P<name>(?:ROOT[ \t]++)?%?{NAME}[ \t]*+=(?!=))|(?P<other>{string}|[^\s,{{}}()\[\]"'/]++|/)""".encode(),
        re.DOTALL,
    )


TOKEN = _tokens(_ROW_LIKE)
"""What the body of a computation consists of."""

TOKEN_BY_LINES = _tokens(rf"(?:{_ROW_LIKE}|\}})")
"""The same where brackets and quotes do not match."""
