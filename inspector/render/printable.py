"""Text that came from a dump, a script or a compiler, made safe to show.

Terminals act on escape sequences, Unicode has characters that reorder what is displayed or that nobody sees, and GitHub
Actions acts on lines of a log: none of that may come from the text that is being inspected.
"""

from __future__ import annotations

import re

_INVISIBLE = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters of the categories Cf, Zl and Zp, fillers, and the planes of tags and of variation selectors."""

UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, all but tab and newline
    f"{_INVISIBLE}"
    "\ud800-\udfff]"  # lone surrogates: not encodable
)

_UNSAFE = re.compile(UNSAFE)

_COMMAND = re.compile(r"^(?=[^\S\n]*::)|(?<=##)(?=\[)", re.MULTILINE)
"""The positions at which the Actions runner reads a command: `::` after white space only, `##[` anywhere."""


def printable(text: str) -> str:
    """The same text, each unsafe character replaced by `�`."""
    return _UNSAFE.sub("�", text)


def without_commands(text: str) -> str:
    r"""The same text, with a `\` in front of what the log of a GitHub Action would take for a command."""
    return _COMMAND.sub(r"\\", text)


def escaped_json(document: str) -> str:
    r"""The same JSON, each unsafe character, which can only be in a string, as `\uXXXX`."""
    return _UNSAFE.sub(_escape, document)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(rf"\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
