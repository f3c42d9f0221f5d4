r"""Regular expressions for the parts of MLIR text: everything that is found without a grammar.

Every one is possessive, so that a search takes linear time on any text. Braces are matched down to a fixed depth, which
is deeper than compilers and people nest attributes; deeper ones are reported, not read.

MLIR has no mark for the end of an operation, and the pretty form of each is its dialect's own. What can be relied on is
where operations *start*: at the start of a line, a region or a block, with results or with a name that has a dialect.
The text up to the next such start, or to a brace that opens or closes a region, belongs to the operation.

Sets of characters that are searched much list what is in them: Python does so three times as fast as for what is not,
and for `\w`.
"""

from __future__ import annotations

import re
from functools import cache

from ..expressions import compiled

BRACE_DEPTH = 12
BRACKET_DEPTH = 40
"""Locations that are written out are nested as deep as the calls were."""

STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
TRIVIA = r"(?:\s++|//[^\n]*+)*+"
"""White space and comments."""

WORD = "A-Za-z0-9_$."
"""Characters of names."""
_VALUE = rf"%[{WORD}\-]*+"
USE = rf"{_VALUE}(?:#\d++)?+"
"""The name of a value where it is used; `#1` picks one of several results."""
_RESULT = rf"{_VALUE}(?::\d++)?+"
_RESULTS_OF_LINE = rf"{_RESULT}(?:[ \t]*+,[ \t]*+{_RESULT})*+"
# Where they go on over lines that never come to an operation, all would be read anew from each line, but for the limit.
RESULTS = rf"{_RESULTS_OF_LINE}(?:\s*+,\s*+{_RESULTS_OF_LINE}){{0,20}}+"
_QUOTED = rf'"[{WORD}\-]++"(?=\s*+\()'
_AFTER_RESULTS = rf"{_QUOTED}|[A-Za-z_][{WORD}]*+"
# A name with a dot in front of one of these is the key of an attribute that stands on a line of its own.
NAMED = rf"(?:[A-Za-z_][A-Za-z0-9_$]*+\.[{WORD}]++(?![ \t]*+[=,>\])])|(?:return|call_indirect|call|module)\b)"
"""The name of an operation that stands alone, without quotes."""
_ALONE = rf"{_QUOTED}|{NAMED}"
HEAD = rf"(?:{RESULTS}\s*+=\s*+(?:{_AFTER_RESULTS})|{_ALONE})"
"""The start of an operation: its results and its name, or its name alone."""
HEAD_PARTS = rf"(?:({RESULTS})\s*+=\s*+({_AFTER_RESULTS})|({_ALONE}))\s*+"
"""The same with groups: the results and the name behind them, or the name alone."""

ALIAS_NAME = rf"[#!][{WORD}\-]++"
ALIAS = rf"{ALIAS_NAME}\s*+=(?!=)"
RESOURCES = r"\{-#(?:[^#]++|#(?!-\}))*+(?:#-\})?+"


def _up_to(closing: str, opening: str, inside: str, depth: int) -> str:
    """Return the text from an opening bracket up to the one that closes it."""
    pattern = rf"(?:{inside})*+{closing}"
    for _ in range(depth):
        pattern = rf"(?:{inside}|{opening}{pattern})*+{closing}"
    return pattern


_IN_BRACKETS = rf'[^()\[\]{{}}<>"\-]++|->|-|{STRING}'
TO_BRACKET = _up_to(r"[)\]}>]", r"[(\[{<]", _IN_BRACKETS, BRACKET_DEPTH)
"""The text from an opening bracket to the closing one, whatever kind that has."""
BRACKETS = rf"[(\[{{<]{TO_BRACKET}"
ITEM = rf'(?:[^,()\[\]{{}}<>"\-]++|->|-|{STRING}|{BRACKETS})++'
"""One item of a list that is separated by commas."""
_IN_ANGLES = rf'[^<>"]++|(?<=-)>|{STRING}'
SDY_VALUE = rf"#sdy\.\w++<{_up_to('>', '<', _IN_ANGLES, 3)}"
"""An attribute of Shardy's; none has angle brackets that are nested deeper."""
LABEL = rf"\^[{WORD}\-]++\s*+(?:{BRACKETS}\s*+)?+:"

# `return` alone in braces is a region, not the key of an attribute.
_KEY = rf"(?:(?!(?:[\w$]++\.)?return\b)[A-Za-z_][\w$.\-]*+|{STRING})"
_ATTRIBUTES = rf"{TRIVIA}(?:\}}|{_KEY}\s*+[=,}}]|{STRING}\s*+:|[?\d\-])"
# In front of an operation on a line of its own, braces that are still open will not be closed.
_IN_BRACES = rf'[^{{}}"\n/]++|{STRING}|//[^\n]*+|/|\n\s*+(?!%|"?(?:[\w$]++\.)?return\b)'
BRACES = rf"\{{(?={_ATTRIBUTES})" + _up_to(r"\}", r"\{", _IN_BRACES, BRACE_DEPTH)
"""Braces around attributes, axes or factors."""
REGION = rf"\{{(?!{_ATTRIBUTES})"
"""The brace that opens a region."""

_CUT_OFF = rf'(?:{RESULTS}\s*+,?+\s*+=?+|[\^#!"]?+[\w$.\-]*+"?+)[ \t]*+\Z'
"""The start of an operation, a label or an alias with which a text ends in the middle of a line."""
_STOP = rf"(?:{HEAD}|\}}|\^[{WORD}\-]++\s*+[(:]|{ALIAS}|\{{-#|{_CUT_OFF})"
_PLAIN = r"[\x00-\t\x0b-!#-.0-z|~-\xff]"
"""All bytes but braces, quotes, slashes and the end of a line."""
REST = rf"(?:{_PLAIN}++|{STRING}|//[^\n]*+|/|\n{TRIVIA}(?!{_STOP})|{BRACES})*+"
"""The text after a head, a closing brace or an alias: up to a region's brace, or to a new start on a later line."""

OPERATION = rf"{HEAD}{REST}(?!{REGION})"
"""An operation without regions."""
OF_TYPES = r"[\x00-\t\x0b-!#-<>-km-z|~-\xff]"
"""All bytes but the end of a line, quotes, braces, `=` and `l`."""
TYPES = rf"{OF_TYPES}++(?:l(?!oc\(){OF_TYPES}*+)*+"
"""Text that may be types, up to a location."""
OPERATIONS = rf"{TRIVIA}(?:({OPERATION})|\Z|[^\n]++)"
"""Operations without regions, one after the other. Without the group it matches white space at the end, and a line that
is none because of where the others end: a search would go on inside of it."""


@cache
def for_bytes(pattern: str) -> re.Pattern[bytes]:
    """A pattern to search bytes with. Some take 10 ms to compile, so each is compiled when it is first needed."""
    return compiled(pattern.encode())
