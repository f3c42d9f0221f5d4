"""Suggested shardings as JSON."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ... import report as values
from ...report.suggestions import Suggestion, Suggestions
from .finding import Trial, trial_of
from .references import shaped
from .shaped import encoded, schema_of


class Row(Struct, frozen=True):
    """An assignment of PartitionSpecs: the `edits` that make it, none where none are known, and its `experiment`.

    `arguments` and `results` are those that get another spec, by their paths; `requests` say it in words, and have
    constraints, too.
    Today's has neither edits nor requests. `best` rows are those that no other one beats in time and in memory.
    """

    edits: list[values.Edit]
    arguments: dict[str, str]
    results: dict[str, str]
    requests: list[str]
    best: bool
    collectives: dict[str, int]
    experiment: Trial | None


class Document(Struct, frozen=True):
    """The document: the rows, the cheapest first, and how many `assignments` there are."""

    schema: Literal["shardscope.suggestions/1"]
    function: str | None
    assignments: int
    rows: list[Row]


def suggestions_to_json(found: Suggestions) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    subject = found.report.capture.subject
    rows = list(map(_row, found.rows))
    return encoded(
        Document("shardscope.suggestions/1", None if subject is None else subject.function, found.size, rows=rows)
    )


def _row(row: Suggestion) -> Row:
    collectives, trial = dict(row.experiment.after.collectives), trial_of(row.experiment)
    return shaped(Row, row, requests=row.requests or (), best=row.is_best, collectives=collectives, experiment=trial)


def suggestions_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Document, "shardscope.suggestions/1")
