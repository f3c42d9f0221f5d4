"""Conversion of the library's values to the shapes of the documents.

Values that many parts of a document mention are stored once in a table of the document, and referred to by position.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct

Shape = TypeVar("Shape", bound=Struct)


class Text:
    """A value that is written as its text."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def described(cls) -> dict[str, Any]:
        """The schema of what is written."""
        return {"type": "string"}


class Reference(Text):
    """A value that is written as its position in the document's list `table`, where it has the shape of `entry`."""

    __slots__ = ()

    table: ClassVar[str]
    shape: ClassVar[type[Struct] | None]

    def __init_subclass__(cls, table: str, shape: type[Struct] | None = None) -> None:
        cls.table, cls.shape = table, shape

    @classmethod
    def described(cls) -> dict[str, Any]:
        """The schema of a position."""
        return {"type": "integer", "minimum": 0, "description": f"position in the report's `{cls.table}`"}

    def entry(self) -> object:
        """The value in its JSON shape, which may hold references itself."""
        return self.value if self.shape is None else shaped(self.shape, self.value)

    def shortened(self) -> Reference:
        """The short form of a value that a document refers to."""
        return self


def shaped(shape: type[Shape], /, *values: object, **given: Any) -> Shape:
    """A `shape` filled with `given`, and the attributes of its fields' names that values have, at every depth."""
    full = values[0] if len(values) == 1 and not given else _Joined(values, given)
    return msgspec.convert(full, shape, from_attributes=True, dec_hook=lambda type, value: type(value))


class _Joined:
    """The attributes of several values: each as `given`, or of the first value that has it."""

    def __init__(self, values: Sequence[object], given: Mapping[str, Any]) -> None:
        self.__dict__ = {**given, "_values": values}

    def __getattr__(self, name: str) -> Any:
        for value in self._values[:-1]:
            if hasattr(value, name):
                return getattr(value, name)
        return getattr(self._values[-1], name)


def described(type: type) -> dict[str, Any]:
    """The hook by which schemas describe texts and references."""
    if not issubclass(type, Text):
        raise NotImplementedError
    return type.described()


def written(value: object) -> str:
    """The hook by which texts are written."""
    if not isinstance(value, Text):
        raise NotImplementedError
    return str(value)


def with_tables(document: Struct, *, short: bool) -> dict[str, Any]:
    """A document as plain data, in which its references are numbers, and its tables are filled.

    What is null or empty in the elements of its `SPARSE` lists is left out, but for `KEPT`.
    """
    places: dict[tuple[str, Hashable], int] = {}
    tables: dict[str, list[Any]] = {}

    def place(reference: object) -> int | str:
        if not isinstance(reference, Reference):
            return written(reference)
        reference = reference.shortened() if short else reference
        key = (reference.table, reference.value)
        if key not in places:
            entry = msgspec.to_builtins(reference.entry(), enc_hook=place)
            entries = tables.setdefault(reference.table, [])
            places[key] = len(entries)
            entries.append(entry)
        return places[key]

    data: dict[str, Any] = msgspec.to_builtins(document, enc_hook=place)
    return {key: _filled(value) if key in SPARSE else value for key, value in (data | tables).items()}


SPARSE = frozenset({"collectives", "shardings", "conflicts", "variance", "reasons", "steps", "estimates"})
"""The lists that grow with a program, and whose elements have many members that say nothing."""


KEPT = frozenset({"axes"})
"""Members of which empty and not known are two things."""


def _filled(value: Any) -> Any:
    """A value whose records have only the keys that say something."""
    match value:
        case dict():
            return {key: _filled(each) for key, each in value.items() if each not in (None, [], {}) or key in KEPT}
        case list() | tuple():
            return list(map(_filled, value))
    return value


def without_empty(schema: dict[str, Any], document: str) -> dict[str, Any]:
    """The schema of a document that has been through `with_tables`: elements of `SPARSE` lists lack what is empty."""
    shapes = schema["$defs"]
    waiting = [shapes[document]["properties"][key] for key in SPARSE]
    while waiting:
        for name in re.findall(r"#/\$defs/(\w+)", str(waiting.pop())):
            shape = shapes[name]
            members = shape["properties"]
            required = [key for key in shape["required"] if key in KEPT or not _may_be_empty(members[key])]
            if required != shape["required"]:
                shape["required"] = required
                waiting.append(members)
    return schema


def _may_be_empty(value: Mapping[str, Any]) -> bool:
    kinds = [value, *value.get("anyOf", ())]
    return any(kind.get("type") in ("null", "array", "object") or None in kind.get("enum", ()) for kind in kinds)


NAMED_BY_PROGRAMS = frozenset({"opcodes", "collective_counts", "evidence", "coords"})
"""Members whose own members have names of a program's, which may be any."""

REFERRING: Mapping[str, str] = {
    "source": "sources",
    "call_site": "sources",
    "stack": "frames",
    "groups": "groupings",
    "pairs": "pairings",
    "estimate": "estimates",
    "terms": "terms",
    "steps": "steps",
    "why": "reasons",
    "elsewhere": "reasons",
    "origins": "reasons",
    "against": "reasons",
}
"""The keys whose values, or whose elements, are positions, and the tables that these are in."""


def resolved(document: Mapping[str, Any]) -> dict[str, Any]:
    """A report's JSON with everything in the place where it is referred to, and without the tables."""
    tables = {name: document[name] for name in dict.fromkeys(REFERRING.values())}

    def at(key: str, value: Any) -> Any:
        if key in NAMED_BY_PROGRAMS:
            return value
        table = tables.get(REFERRING.get(key, ""))
        if table is None:
            return whole(value)
        if isinstance(value, list):
            return [whole(table[each]) if isinstance(each, int) else whole(each) for each in value]
        return whole(table[value]) if isinstance(value, int) else whole(value)

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: at(key, each) for key, each in value.items()}
        return list(map(whole, value)) if isinstance(value, list) else value

    return {key: at(key, value) for key, value in document.items() if key not in tables}
