"""A Report as `shardscope.report/1`, the JSON that other programs read.

The document has a shape of its own, so that the library's values may change without breaking anyone; within version 1
keys are only added. Each file of this folder is one part of it: the shape, and how it is filled.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec

from ... import report as values
from .report import Report, report_of


def to_json(report: values.Report, indent: int = 2) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(report_of(report)), indent=indent) + b"\n"


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    schema = msgspec.json.schema(Report)
    for shape in schema["$defs"].values():
        if "description" in shape:  # Python before 3.13 leaves docstrings indented
            shape["description"] = cleandoc(shape["description"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "shardscope.report/1", **schema}
