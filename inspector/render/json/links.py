"""Links of compiled collectives as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from ... import report
from ...report.links import Evidence, LinkedPart
from .references import Text
from .shaped import encoded, schema_of


class Link(Struct, frozen=True):
    """An operation that a part was: its name and its bytes in the text of a stage.

    `rivals` counts others with as much evidence. Where the compiler merged several operations, each has a link.
    """

    stage: str
    name: str
    start: int
    end: int
    evidence: Evidence
    rivals: int
    confidence: report.Confidence


class Part(Struct, frozen=True):
    """A part of a compiled collective, numbered as its results are; `confidence` is that of its weakest link."""

    collective: str
    kind: report.Kind
    part: int
    type: Text
    links: list[Link]
    confidence: report.Confidence


class Document(Struct, frozen=True):
    """The document: the parts in the order of the compiled text."""

    schema: Literal["shardscope.links/1"]
    parts: list[Part]


def links_to_json(parts: Sequence[LinkedPart]) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    return encoded(Document("shardscope.links/1", list(map(_part, parts))))


def _part(part: LinkedPart) -> Part:
    found = [
        Link(each.stage, each.name, each.span.start, each.span.end, each.evidence, each.rivals, each.confidence)
        for each in part.links
    ]
    collective = part.collective
    return Part(collective.name, collective.kind, part.index, Text(part.type), found, part.confidence)


def links_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Document, "shardscope.links/1")
