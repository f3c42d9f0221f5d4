"""Where a computation is in a text that is not as printed throughout, before it is one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ..source import Span
from .nested import unused_names


@dataclass(frozen=True, slots=True)
class Section:
    """A computation: its header (an empty match if that is lost), and where its statements are, if not as printed.

    `body_end` is the offset of the closing brace, or of the end of a text that is cut off; `end` is behind the brace
    and the attributes that follow it. `nested` are the places of computations written in its own statements; each of
    these has a section too, with `is_nested`.
    """

    header: re.Match[bytes]
    body_end: int
    end: int
    statements: tuple[Span, ...] | None = None
    nested: tuple[Span, ...] = ()
    is_nested: bool = False

    @property
    def start(self) -> int:
        """The offset of its header."""
        return self.header.start()


def given_names(sections: Sequence[Section]) -> Mapping[int, str]:
    """The names of nested computations, which have none in the text, by the offsets where these start."""
    nested = sorted((section for section in sections if section.is_nested), key=attrgetter("body_end"))
    used = {(section.header["name"] or b"").decode() for section in sections} if nested else set()
    return {section.start: name for section, name in zip(nested, unused_names(used), strict=False)}
