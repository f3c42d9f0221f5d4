"""A Report as `shardscope.report/1`, the JSON that other programs read.

The document has a shape of its own, so that the library's values may change without breaking anyone; within version 1
keys are only added. Each file of this folder is one part of it: the shape, and how it is filled.
"""

from __future__ import annotations

from typing import Any

from ... import report as values
from .report import Report, report_of
from .shaped import encoded, schema_of


def to_json(report: values.Report, indent: int = 2) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    return encoded(report_of(report), indent)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Report, "shardscope.report/1")
