"""From the library's values to the shapes of the documents."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...report import SourcePosition

Shape = TypeVar("Shape", bound=Struct)


def shaped(shape: type[Shape], value: object, /, **given: Any) -> Shape:
    """A `shape` filled with the attributes of a value that have its fields' names, at every depth, and with `given`."""
    return msgspec.convert(_Over(value, given) if given else value, shape, from_attributes=True)


def at(position: SourcePosition) -> dict[str, str | int | None]:
    """The fields of shapes that have no more of a position than its file and its line."""
    return {"file": position.file, "line": position.line}


class _Over:
    """A value, some of whose attributes are others."""

    def __init__(self, value: object, given: dict[str, Any]) -> None:
        self.__dict__ = {**given, "_value": value}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._value, name)
