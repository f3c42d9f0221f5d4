"""What an instruction's `metadata={…}` says about where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..source import Frame
from .fields import fields, number, plain


@dataclass(frozen=True, slots=True)
class Metadata:
    """The origin of an instruction in the program that was traced.

    Texts up to JAX 0.7 have the innermost source position here (`frame`), later ones the number of a stack frame in
    the module's tables (`stack_frame_id`).
    """

    op_name: str = ""
    op_type: str = ""
    stack_frame_id: int | None = None
    frame: Frame | None = None


@lru_cache(maxsize=8192)
def parse_metadata(text: str) -> Metadata:
    """The metadata that a text in braces spells; fields that it does not have are left at their defaults."""
    found = fields(text)

    def text_of(key: str) -> str:
        return plain(found.get(key, ""))

    def number_of(key: str) -> int:
        return number(found.get(key)) or 0

    frame = None
    if "source_file" in found:
        line, column = number_of("source_line"), number_of("source_column")
        frame = Frame(
            text_of("source_file"),
            "",
            line,
            number_of("source_end_line") or line,
            column,
            number_of("source_end_column") or column,
        )
    frame_id = number_of("stack_frame_id") or None
    return Metadata(text_of("op_name"), text_of("op_type"), frame_id, frame)
