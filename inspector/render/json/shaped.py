"""The documents as bytes, their schemas, and the shapes that all of them share."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...report import SourcePosition
from ..printable import escaped_json
from .references import Reference, described, written


def encoded(document: Struct | Mapping[str, Any]) -> bytes:
    """A document as UTF-8: each element of its lists on a line of its own, a newline at the end.

    What would control a terminal is escaped.
    """
    data: Mapping[str, Any] = msgspec.to_builtins(document, enc_hook=written)
    text = b"{\n" + b",\n".join(_line(key, value) for key, value in data.items()) + b"\n}\n"
    is_safe = text.isascii() and b"\x7f" not in text  # JSON escapes all other control characters of ASCII
    return text if is_safe else escaped_json(text.decode()).encode()


def _line(key: str, value: Any) -> bytes:
    name = msgspec.json.encode(key)
    if not isinstance(value, list) or not value:
        return b"  %b: %b" % (name, msgspec.json.encode(value))
    return b"  %b: [\n    %b\n  ]" % (name, b",\n    ".join(map(msgspec.json.encode, value)))


RECORDS = ("AxisUse", "Device", "Gradients", "MeshAxis", "Sharded", "Term", "Use")
"""Records that are their own shapes: their fields are written even where they have their defaults."""


def schema_of(document: type[Struct], title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document."""
    schema = msgspec.json.schema(document, schema_hook=described)
    for name, shape in schema["$defs"].items():
        if name in RECORDS:
            shape["required"] = list(shape["properties"])
            shape["properties"] = {key: {**each} for key, each in shape["properties"].items()}
            for each in shape["properties"].values():
                each.pop("default", None)
        if "description" in shape:  # Python before 3.13 leaves docstrings indented
            shape["description"] = cleandoc(shape["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def at(position: SourcePosition) -> dict[str, str | int | None]:
    """The fields of shapes that have no more of a position than its file and its line."""
    return {"file": position.file, "line": position.line}


class Frame(Struct, frozen=True):
    """One line of a Python stack; 0 where a line or column was not recorded."""

    file: str
    function: str
    line: int
    column: int


class FrameRef(Reference, table="frames", shape=Frame):
    """A frame of a stack."""


class Source(Struct, frozen=True):
    """The origin of something: the user's line, the library's line that it calls, and the stack, innermost first."""

    file: str | None
    line: int | None
    function: str | None
    library: FrameRef | None
    stack: list[FrameRef]
    confidence: Literal["exact", "name", "shape", "none"]


class SourceRef(Reference, table="sources", shape=Source):
    """The origin of something."""
