"""The results of checks as `shardscope.check/1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...check.budget import Broken
from ...check.verdict import Verdict
from .diff import Diff, Transfer, diff_document, schema_of, transfer_document


class OverBudget(Struct, frozen=True):
    """A budget that is exceeded: `found` says by what, `collectives` by which, those that count most first."""

    budget: str
    found: str
    collectives: list[Transfer]


class Checked(Struct, frozen=True):
    """One function; `changes` are those since its golden, null where it has none."""

    function: str
    passed: bool
    budgets: list[str]
    over: list[OverBudget]
    changes: Diff | None


class Check(Struct, frozen=True):
    """The document."""

    schema: Literal["shardscope.check/1"]
    passed: bool
    checks: list[Checked]


def verdicts_to_json(verdicts: Sequence[Verdict], indent: int = 2) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    document = Check("shardscope.check/1", all(each.passed for each in verdicts), list(map(_checked, verdicts)))
    return msgspec.json.format(msgspec.json.encode(document), indent=indent) + b"\n"


def check_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Check, "shardscope.check/1")


def _checked(verdict: Verdict) -> Checked:
    changes = None if verdict.changes is None else diff_document(verdict.changes)
    budgets = [budget.text for budget in verdict.budgets]
    return Checked(verdict.name, verdict.passed, budgets, list(map(_over, verdict.broken)), changes)


def _over(broken: Broken) -> OverBudget:
    return OverBudget(broken.budget.text, broken.found, [transfer_document(one) for one, _ in broken.transfers])
