"""Values whose fields never change: equal to others of their class with equal fields, and hashed so.

They are structs of msgspec, whose methods are of C: a report makes hundreds of thousands of them, and a start makes
hundreds of classes. `docs/performance.md` compares them with dataclasses.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from msgspec import Struct

Fields = dict[str, dataclasses.Field[Any]]


class _Fields:
    """The fields of a record's class, as the functions of `dataclasses` want them."""

    def __init__(self) -> None:
        self._known: dict[type[Struct], Fields] = {}

    def __get__(self, instance: Struct | None, owner: type[Struct]) -> Fields:
        if owner not in self._known:
            types: dict[str, Any] = {}
            for base in reversed(owner.__mro__):
                types |= getattr(base, "__annotations__", {})
            fields = [(name, types[name]) for name in owner.__struct_fields__]
            # Its methods, and a docstring if it had none, would take most of the time.
            without: dict[str, Any] = {"init": False, "repr": False, "eq": False, "match_args": False}
            made: Any = dataclasses.make_dataclass("Made", fields, namespace={"__doc__": "-"}, **without)
            self._known[owner] = made.__dataclass_fields__
        return self._known[owner]


class Record(Struct, frozen=True):
    """The base of all of them; `dataclasses.replace` and `dataclasses.fields` take them for dataclasses."""

    __dataclass_fields__: ClassVar[Fields] = _Fields()  # type: ignore[assignment]
