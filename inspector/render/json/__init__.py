"""A Report as `shardscope.report/2`, the JSON that other programs read.

The document has a shape of its own, so that the library's values may change without breaking anyone; within version 2
keys are only added. Each file of this folder is one part of it: the shape, and how it is filled.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ... import report as values
from .references import resolved as resolved
from .references import without_empty
from .report import Report, report_document
from .shaped import encoded, schema_of


def to_json(report: values.Report, details: Collection[str] = ()) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    return encoded(report_document(report, details))


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return without_empty(schema_of(Report, "shardscope.report/2"), Report.__name__)
