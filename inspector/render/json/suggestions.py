"""Suggested shardings as JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ...experiments.suggest import Suggestion, Suggestions
from .finding import trial_of


def suggestions_to_json(found: Suggestions) -> str:
    """Return the rows; today's has no arguments and no edits."""
    subject = found.report.capture.subject
    document = {
        "schema": "shardscope.suggestions/1",
        "function": None if subject is None else subject.function,
        "assignments": found.size,
        "rows": [_row(row) for row in found.rows],
    }
    return json.dumps(document, indent=2) + "\n"


def _row(row: Suggestion) -> dict[str, Any]:
    return {
        "edits": msgspec.to_builtins(row.edits),
        "arguments": row.arguments,
        "requests": [] if row.row is None else row.titles,
        "best": row.is_best,
        "collectives": dict(row.experiment.after.collectives),
        "experiment": msgspec.to_builtins(trial_of(row.experiment)),
    }
