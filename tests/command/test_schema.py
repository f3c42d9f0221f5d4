"""The published JSON Schema is the one of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import msgspec
import pytest
from jsonschema import Draft202012Validator
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import json_schema, resolved, to_json

from tests.conftest import SAMPLE_FUNCTIONS, SampleCapture

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "report.schema.json"


@pytest.mark.skipif(msgspec.__version__ < "0.20", reason="older msgspec writes its schemas otherwise")
def test_the_published_schema_is_current() -> None:
    """`make schema` writes it."""
    assert json.loads(PUBLISHED.read_text()) == json_schema()


MAX_BYTES = 60_000 if jax.__version_info__ >= (0, 8) else 70_000  # XLA of JAX 0.7 combines less
"""Of a sample's report without details, with room for longer paths."""


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(PUBLISHED.read_text()))


@pytest.mark.parametrize("function", SAMPLE_FUNCTIONS)
def test_reports_are_valid(sample: SampleCapture, validator: Draft202012Validator, function: str) -> None:
    report = inspect(sample(function))
    short, full = (to_json(report, details) for details in ((), ("all",)))
    assert len(short) <= MAX_BYTES
    documents = [json.loads(each) for each in (short, full)]
    for document in documents:
        validator.validate(document)
    # What is in the short one is in the other, but for the steps and causes that it counts.
    a, b = map(resolved, documents)
    assert [_place(each) for each in a["collectives"]] == [_place(each) for each in b["collectives"]]
    assert a["communication"] == b["communication"]
    sharded = [(each["name"], each.get("spec"), each["source"]) for each in b["shardings"]]
    assert all((each["name"], each.get("spec"), each["source"]) in sharded for each in a["shardings"])


def _place(collective: dict[str, Any]) -> tuple[Any, ...]:
    stack = collective["source"].get("stack", [])
    assert all(isinstance(frame["line"], int) for frame in stack)
    return collective["name"], stack, collective["groups"], collective.get("pairs")


def test_references_are_resolved() -> None:
    tables: dict[str, list[Any]] = {name: [] for name in ("sources", "frames", "groupings", "pairings", "estimates")}
    tables |= {"terms": [], "steps": [{"source": "a", "target": "b"}], "reasons": [{"axis": "x", "steps": [0]}]}
    tables |= {"sources": [{"line": 4, "stack": [0]}], "frames": [{"line": 4}], "groupings": [[[0, 1], [2, 3]]]}
    document = {
        "collectives": [{"source": 0, "groups": 0, "causes": [{"origins": [0, 0]}], "opcodes": {"stack": 0}}],
        **tables,
    }
    reason = {"axis": "x", "steps": [{"source": "a", "target": "b"}]}
    collective = {"source": {"line": 4, "stack": [{"line": 4}]}, "groups": [[0, 1], [2, 3]], "opcodes": {"stack": 0}}
    assert resolved(document) == {"collectives": [collective | {"causes": [{"origins": [reason, reason]}]}]}
