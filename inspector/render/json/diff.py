"""A diff as `shardscope.diff/1`, and the results of checks as `shardscope.check/1`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct, field

from ... import report
from ...report import changes
from ...report.changes import BoundarySharding, FindingKey, Pair, ValueComparison
from ...report.changes import Transfer as OutlineTransfer
from ...report.verdict import Broken, Verdict
from ..change_rows import differing_text
from ..diff_words import differences
from ..headline import headline
from .references import Text, shaped
from .shaped import encoded, schema_of
from .subject import Validation, validation_of


class Transfer(Struct, frozen=True):
    """A collective. Bytes are per device and execution; `place` is the user's line, else the compiler's name."""

    kind: report.Kind
    name: str
    axes: list[Text] | None
    reduction: str | None
    types: str
    dtypes: list[str]
    bytes_in: int | None
    bytes_out: int | None
    wire_bytes: int | None
    executions: int | None
    in_loop: bool
    is_async: bool = field(name="async")
    fused_form: str | None
    origin: report.Origin
    direction: report.Pass = field(name="pass")
    where: str = field(name="place")
    operation: str


class Several(Struct, frozen=True):
    """`count` collectives that are alike."""

    count: int
    collective: Transfer


class Change(Struct, frozen=True):
    """`count` times the collectives of one side for those of the other; empty on the side that has none.

    Where compilers combine and split, one stands for several; `regrouped` are those of which nothing else changed.
    `what` says in words how they differ. `wire_bytes_delta` is of all of them in one run of the program; null where it
    is not known.
    """

    kind: changes.ChangeKind = field(name="change")
    count: int
    what: list[str]
    before: list[Several]
    after: list[Several]
    wire_bytes: int | None = field(name="wire_bytes_delta")


class BorderChange(Struct, frozen=True):
    """An argument or an output that differs; null on the side that does not have it."""

    before: BoundarySharding | None
    after: BoundarySharding | None


class Inside(Struct, frozen=True):
    """A value inside the program: a constraint, a spec of a shard_map, or the result of an operation."""

    role: Literal["argument", "output", "constraint", "shard_map input", "shard_map output", "value"]
    name: str
    type: str
    spec: str | None
    where: str = field(name="place")


class InsideChange(Struct, frozen=True):
    """`count` values of one line that went from one sharding to another; only constraints come or go."""

    count: int
    before: Inside | None
    after: Inside | None


class FindingChange(Struct, frozen=True):
    """`count` findings of one rule and place that are only after (`added`) or before the change (`removed`)."""

    change: Literal["added", "removed"]
    count: int
    rule: str
    slug: str
    severity: report.Severity
    axes: list[Text]
    message: str
    place: str


class Metric(Struct, frozen=True):
    """A number that differs; null on the side that does not have it."""

    name: str
    before: float | None
    after: float | None


class OutputChange(Struct, frozen=True):
    """An output with other values in both runs: in words, and the distance as a multiple of what rounding explains.

    It is null where that is infinite: of integers, or where the number of elements that are not finite differs.
    """

    output: str
    distance: float | None
    text: str


class Values(Struct, frozen=True):
    """The outputs of both runs: how many are `equal` in every bit, `close` within rounding, not compared, or differ.

    `same_inputs` is null where it is not known whether both ran with the same arguments; where they did not, outputs
    may differ for that alone.
    """

    same_inputs: bool | None
    equal: int
    close: int
    unknown: int
    differs: list[OutputChange]


class Side(Struct, frozen=True):
    """One side of a comparison: `wire_bytes` is what a device sends in one run."""

    title: str
    stage: str
    count: int = field(name="collectives")
    total_wire: int | None = field(name="wire_bytes")


class Diff(Struct, frozen=True):
    """The document. Sizes are bytes per device, times are seconds, what is not known is null."""

    schema: Literal["shardscope.diff/1"]
    headline: str
    communication_differs: bool
    before: Side
    after: Side
    changes: list[Change]
    same: int
    borders: list[BorderChange] = field(name="shardings")
    insides: list[InsideChange] = field(name="inside")
    findings: list[FindingChange]
    sizes: list[Metric] = field(name="memory")
    costs: list[Metric] = field(name="cost")
    opcodes: list[Metric]
    values: Values | None = None


def diff_to_json(found: changes.Diff) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    return encoded(diff_document(found))


def diff_document(found: changes.Diff) -> Diff:
    """The document, to be part of another one."""
    return shaped(
        Diff,
        found,
        schema="shardscope.diff/1",
        headline=headline(found),
        changes=list(map(change_of, found.changes)),
        findings=list(map(_finding, found.findings)),
        values=None if found.values is None else _values(found.values),
    )


def diff_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Diff, "shardscope.diff/1")


def _values(found: ValueComparison) -> Values:
    differs = [
        OutputChange(each.after.path, each.distance if math.isfinite(each.distance) else None, differing_text(each))
        for each in found.differs
    ]
    return Values(found.same_inputs, found.equal, found.close, unknown=found.unknown, differs=differs)


def change_of(change: changes.Change) -> Change:
    """One change, to be part of a document."""
    sides = (change.befores, change.afters)
    before, after = ([Several(count, transfer_document(one)) for one, count in side] for side in sides)
    return shaped(Change, change, what=differences(change), before=before, after=after)


def transfer_document(transfer: OutlineTransfer) -> Transfer:
    """One collective, to be part of a document."""
    return shaped(Transfer, transfer.work, transfer, transfer.place)


def _finding(change: Pair[FindingKey]) -> FindingChange:
    key, kind = change.present, "removed" if change.after is None else "added"
    return shaped(FindingChange, key.finding, change=kind, count=change.count, axes=key.axes, place=key.where)


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
    validation: Validation | None = None


class Check(Struct, frozen=True):
    """The document."""

    schema: Literal["shardscope.check/1"]
    passed: bool
    checks: list[Checked]


def verdicts_to_json(verdicts: Sequence[Verdict]) -> bytes:
    """The document as UTF-8, with a newline at the end."""
    document = Check("shardscope.check/1", all(each.passed for each in verdicts), list(map(_checked, verdicts)))
    return encoded(document)


def check_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    return schema_of(Check, "shardscope.check/1")


def _checked(verdict: Verdict) -> Checked:
    changes = None if verdict.changes is None else diff_document(verdict.changes)
    budgets = [budget.text for budget in verdict.budgets]
    validation = verdict.report.capture.validation
    validated = None if validation is None else validation_of(validation)
    return Checked(verdict.name, verdict.passed, budgets, list(map(_over, verdict.broken)), changes, validated)


def _over(broken: Broken) -> OverBudget:
    return OverBudget(broken.budget.text, broken.found, [transfer_document(one) for one, _ in broken.transfers])
