"""From the library's values to the shapes of the documents, and the shapes that all of them share."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from ...report import SourcePosition
from ..printable import escaped_json

Shape = TypeVar("Shape", bound=Struct)


def shaped(shape: type[Shape], value: object, /, **given: Any) -> Shape:
    """A `shape` filled with the attributes of a value that have its fields' names, at every depth, and with `given`."""
    return msgspec.convert(_Over(value, given) if given else value, shape, from_attributes=True)


def encoded(document: Struct, indent: int) -> bytes:
    """A document as UTF-8, with a newline at the end; what would control a terminal is escaped."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=indent) + b"\n"
    return text if text.isascii() else escaped_json(text.decode()).encode()


def schema_of(document: type[Struct], title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document."""
    schema = msgspec.json.schema(document)
    for shape in schema["$defs"].values():
        if "description" in shape:  # Python before 3.13 leaves docstrings indented
            shape["description"] = cleandoc(shape["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def at(position: SourcePosition) -> dict[str, str | int | None]:
    """The fields of shapes that have no more of a position than its file and its line."""
    return {"file": position.file, "line": position.line}


class _Over:
    """A value, some of whose attributes are others."""

    def __init__(self, value: object, given: dict[str, Any]) -> None:
        self.__dict__ = {**given, "_value": value}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)


class Frame(Struct, frozen=True):
    """One line of a Python stack; 0 where a line or column was not recorded."""

    file: str
    function: str
    line: int
    column: int


class Source(Struct, frozen=True):
    """Where something comes from: the innermost frame, and the whole stack from there outwards."""

    file: str | None
    line: int | None
    function: str | None
    stack: list[Frame]
    confidence: Literal["exact", "name", "shape", "none"]
