"""Whether a text ends before the computation that a module starts with, which printers write last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import Problem
from ..source import Source, Span
from .computation import Computation
from .types import ArrayShape, HloType, OtherType, TupleShape, parse_type


def missing_entry(source: Source, layout: str | None, entry: Computation | None) -> Iterator[Problem]:
    """The problem of a text with no computation marked as entry, if its header promises another than the last.

    `layout` is the header's `entry_computation_layout`, `{(f32[8]{0})->f32[]}`, which every printer of XLA writes, and
    `entry` what the module takes for its entry.
    People leave out the mark: their last computation has the types of the header.
    """
    if layout is None or (entry is not None and entry.is_entry):
        return
    arguments, _, result = layout.strip()[1:-1].rpartition("->")
    if entry is not None and entry.root is not None:
        own = TupleShape(tuple(parse_type(each.type_text) for each in entry.parameters))
        if _agree(own, parse_type(arguments)) and _agree(parse_type(entry.root.type_text), parse_type(result)):
            return
    end = Span(len(source.data), len(source.data))
    yield Problem("the text ends before the entry computation", source, end, ("'ENTRY'",))


def _agree(one: HloType, other: HloType) -> bool:
    """Whether two types are the same but for their layouts, as far as they can be read: people leave types out, too."""
    match one, other:
        case TupleShape(own), TupleShape(others):
            return len(own) == len(others) and all(map(_agree, own, others))
        case ArrayShape(), ArrayShape():
            return replace(one, layout=None) == replace(other, layout=None)
    return one == other or isinstance(one, OtherType) or isinstance(other, OtherType)
