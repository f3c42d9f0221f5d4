"""Text that came from a dump, a script or a compiler, made safe to show.

Terminals act on escape sequences, and Unicode has characters that reorder what is displayed; neither may come from the
text that is being inspected.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, all but tab and newline
    "\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of writing
    "\ud800-\udfff]"  # lone surrogates: not encodable
)


def printable(text: str) -> str:
    """The same text, each unsafe character replaced by `�`."""
    return _UNSAFE.sub("�", text)
