"""The published JSON Schema is the one of the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import json_schema, to_json

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "report.schema.json"


def test_the_published_schema_is_current() -> None:
    """`make schema` writes it."""
    assert json.loads(PUBLISHED.read_text()) == json_schema()


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_reports_are_valid(sample: SampleCapture, function: str) -> None:
    report = json.loads(to_json(inspect(sample(function))))
    Draft202012Validator(json.loads(PUBLISHED.read_text())).validate(report)
