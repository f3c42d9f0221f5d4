"""The verdict on a change, by what was measured of the program without and with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ..communication.axis_use import argument_kinds
from ..findings.rules import OF_ID, rule_of
from ..ir.types import ArrayType, jax_type
from ..report import Experiment, Finding, Measured, Report, State
from ..units import format_bytes
from .values import Comparison

CHANGED = "the results are not the same"

MAX_MORE_HELD = 0.05
"""Share by which arguments and results may grow where a device needs no less memory, or half of that by which what is
sent shrinks, if that is more: what copies a model to all devices sends nothing, and is no fix."""

MAX_MORE_FLOPS = 0.1
"""Share by which matrix products may grow where the time on the target is not known, or half of that by which what is
sent shrinks, if that is more."""

MAX_MORE_MEMORY, MAX_TIMES_MEMORY = 0.1, 4.0
"""Share by which memory may grow; or twice that by which what is sent shrinks, or as many times as there is less of it,
but no more than so many, if that is more."""

MAX_MORE_SENT = 1e-3
"""Share by which what is sent may grow where memory is saved, or what was seen is gone."""

LEAST_MEMORY = 0.01
"""Share of the memory of a device that is a saving."""

WORTHWHILE_MEMORY = 0.1
"""Share of the memory of a device for which somewhat more may be sent, as its price says."""

LEAST = 1e-4
"""Share of the time of a step that is a difference."""


class Side(NamedTuple):
    """A program without or with a change, as far as a verdict depends on it.

    Results are of these `types`, `specs` are those of the arguments by their paths.
    """

    cost: Measured
    findings: tuple[Finding, ...]
    known: tuple[Finding, ...]
    types: tuple[ArrayType, ...]
    specs: dict[str, str | None]

    @classmethod
    def of(cls, report: Report, cost: Measured) -> Side:
        """Read it off a report; `known` findings are suppressed."""
        types = tuple(jax_type(value.type) for value in report.capture.outputs)
        specs = {each.name: each.spec for each in report.shardings if each.role == "argument"}
        return cls(cost, report.findings, tuple(each.finding for each in report.suppressed), types, specs)

    @property
    def rules(self) -> Counter[str]:
        """The number of findings of each rule."""
        return Counter(found.rule for found in (*self.findings, *self.known))


def judged(report: Report, before: Side, after: Side, numbers: Comparison, found: Finding | None) -> Experiment:
    """The experiment of a change of a program, of which `before` is read off the report: for a finding, or by itself.

    A change for an error is to give other results, so it helps if the error is gone and none appears.
    """
    were, are, costs = before.rules, after.rules, (before.cost, after.cost)
    errors = {each.rule for each in after.findings if each.severity == "error"}
    wrong = sorted(rule for rule in errors if are[rule] > were[rule])
    state: State = "not helping"
    if before.types != after.types:
        state, why = "values differ", "the results have other types"
    elif found is not None and found.severity == "error":
        is_there = are[found.rule] >= were[found.rule]
        why = "the finding is still there" if is_there else next(_wrong_gradients(after, found), "")
    elif numbers.values == "differ":
        state, why = "values differ", CHANGED
    else:
        rule = None if found is None else rule_of(found)
        if found is not None and rule is not None and rule.is_observation and _is_seen(found, report):
            is_there = are[found.rule] >= were[found.rule]
            cost = _obstacle(rule.saves, *costs) if rule.saves == "compute" else _more_taken(rule.saves, *costs)
            saves_anyway = rule.saves != "memory" and not _obstacle("communication", *costs)
            why = cost if not is_there else "" if saves_anyway else "the finding is still there"
        else:
            why = _obstacle("communication" if rule is None else rule.saves, *costs)
    why = why or _moved_batch(report, after, found)
    if not why and wrong:
        why = f"{', '.join(wrong)} appears"
    return Experiment(
        state="tried" if not why else state,
        why=why,
        before=before.cost,
        after=after.cost,
        values=numbers.values,
        changes=numbers.changes,
        gone=tuple(sorted((were - are).elements())),
        new=tuple(sorted((are - were).elements())),
    )


def may_help(before: Side, after: Side) -> bool:
    """Return whether the verdict on a change could be that it helps, of any finding and whatever its results are."""
    fewer = [OF_ID[rule] for rule, count in before.rules.items() if after.rules[rule] < count]
    is_gone = any(rule.severity == "error" or rule.is_observation for rule in fewer)
    was, now = before.cost, after.cost
    pairs = (now.bytes, was.bytes), (now.work, was.work), (now.flops, was.flops), (now.seconds, was.seconds)
    is_less = any(is_more(*pair) for pair in pairs) or is_more(now.memory, was.memory, LEAST_MEMORY)
    return was.bytes is None or is_less or is_gone


def _moved_batch(before: Report, after: Side, found: Finding | None) -> str:
    """Say which data a change of a parameter's sharding splits in another dimension: its edit is of both."""
    if found is None:
        return ""
    arguments = [each for each in before.shardings if each.role == "argument" and each.sharding is not None]
    kinds = {each.name: kind for kind, each, _ in argument_kinds(before.program, arguments)}
    if kinds.get(found.subject, "data") == "data":
        return ""
    now = after.specs
    for each in arguments:
        is_split = each.sharding is not None and each.sharding.dims and each.sharding.dims[0].axes
        if kinds[each.name] == "data" and is_split and now.get(each.name, each.spec) != each.spec:
            return f"it changes {each.name}, too, to {now[each.name]}"
    return ""


def _is_seen(found: Finding, before: Report) -> bool:
    """Return whether a rule saw it, and would see it again: what is only tried is judged by what it saves."""
    return any((each.rule, each.message) == (found.rule, found.message) for each in before.findings)


def _more_taken(saves: str, before: Measured, after: Measured) -> str:
    if saves == "memory" and is_more(before.memory, after.memory):
        return "more memory is needed"
    return "more bytes are sent" if is_more(before.bytes, after.bytes, MAX_MORE_SENT) else ""


def _obstacle(saves: str, before: Measured, after: Measured) -> str:
    """Return why a change saves nothing, or costs something else; empty where it is an improvement."""
    gain = _gain(before, after)
    times = 1 / (1 - gain) if gain < 1 else MAX_TIMES_MEMORY
    most = max(MAX_MORE_MEMORY, 2 * gain, min(times, MAX_TIMES_MEMORY) - 1)
    takes = saves == "communication" and _growth(before.memory, after.memory) > most
    more = f"it takes {_change(before.memory, after.memory)} of memory" if takes else ""
    return _without_gain(saves, before, after) or more


def _without_gain(saves: str, before: Measured, after: Measured) -> str:
    gain = _gain(before, after)
    if is_more(before.held, after.held, max(MAX_MORE_HELD, gain / 2)) and not is_more(after.memory, before.memory):
        return f"arguments and results take {_change(before.held, after.held)} on each device"
    if saves == "compute" and before.seconds is None and is_more(after.work, before.work):
        return ""
    most = MAX_MORE_SENT if saves == "memory" else 0.0
    if is_more(before.bytes, after.bytes, most) and (saves == "memory" or before.seconds is None):
        return "" if _spares_memory(before, after) else "more bytes are sent"
    if saves == "memory":
        return "" if is_more(after.memory, before.memory, LEAST_MEMORY) else "no less memory is needed"
    if before.seconds is not None and after.seconds is not None:
        if is_more(before.seconds, after.seconds, LEAST):
            return "the step is slower on the target"
        if is_more(after.seconds, before.seconds, LEAST):
            return ""
    if saves == "compute" and is_more(after.flops, before.flops):
        return ""
    if is_more(before.flops, after.flops, max(MAX_MORE_FLOPS, gain / 2)):
        return "more operations are computed on each device"
    if before.bytes is None and after.bytes == 0:  # of a loop whose length the compiler does not know
        return ""
    if not is_more(after.bytes, before.bytes):
        return "no fewer bytes are sent"
    if not is_more(_with_later(after), _with_later(before)):
        return f"the next step sends {format_bytes(after.later)} to reshard its arguments"
    return ""


def _spares_memory(before: Measured, after: Measured) -> bool:
    """Return whether a device needs so much less memory that it is worth the bytes that are sent for it."""
    is_less = is_more(after.memory, before.memory, WORTHWHILE_MEMORY)
    is_slower = is_more(before.flops, after.flops) or is_more(before.seconds, after.seconds, LEAST)
    later = after.later - before.later
    return is_less and not is_slower and Experiment("tried", before=before, after=after).worth > later


def is_more(before: float | None, after: float | None, by: float = 0.0) -> bool:
    """Return whether a number grows by more than a share; False where one is not known."""
    return before is not None and after is not None and after > before * (1 + by)


def _growth(before: float | None, after: float | None) -> float:
    return (after - before) / before if before and after is not None else 0.0


def _gain(before: Measured, after: Measured) -> float:
    """The share of the time on the target, or of the bytes that are sent, that a change saves."""
    if before.seconds is not None:
        return -_growth(before.seconds, after.seconds)
    return -_growth(before.bytes, after.bytes)


def _with_later(cost: Measured) -> int | None:
    return None if cost.bytes is None else cost.bytes + cost.later


def _change(before: int | None, after: int | None) -> str:
    return f"{format_bytes(before or 0)} → {format_bytes(after or 0)}"


def _wrong_gradients(after: Side, found: Finding) -> Iterator[str]:
    """Reasons for which gradients over the same axes are still wrong: a fix of one error may leave them so."""
    for each in after.findings:
        is_other = each.rule != found.rule or (each.subject != "" and each.subject == found.subject)
        is_wrong = rule_of(each).of_gradients and each.severity == "error"
        if is_wrong and is_other and set(each.axes) & set(found.axes):
            yield f"still wrong: {each.message}"
