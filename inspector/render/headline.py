"""The one line that says what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...parsers.record import Record
from ..report.changes import Change, Diff
from ..units import format_bytes, grouped, plural
from .diff_words import SIGNS, Became, axes_words, became_of, bytes_delta, kinds, otherwise, size_text

PHRASES = 3
"""Maximum number of changes in a headline."""


def headline(found: Diff) -> str:
    """`no change in communication`, or `+2 all-gathers over tp in a loop: +1.2 GiB per device and run`; then the rest.

    The rest is what one would not want to find further down: shardings that differ where communication does not, memory
    that is no longer reused, findings.
    """
    return "; ".join((_communication(found), *_besides(found)))


def _communication(found: Diff) -> str:
    sent = f"{format_bytes(found.after.total_wire)} per device and run"
    regrouped = _listed([change for change in found.changes if change.kind == "regrouped"])
    if not found.communication_differs:
        if regrouped:
            return f"no change in communication volume ({_shortened(regrouped)}; {sent})"
        return f"no change in communication ({plural(found.same, 'collective')}, {sent})"
    phrases = _listed([change for change in found.changes if change.kind != "regrouped"])
    if len(phrases) > PHRASES and 2 * sum(phrase[0] in "+−" for phrase in phrases) > len(phrases):
        phrases = _census(found) or phrases
    before, after = found.before.total_wire, found.after.total_wire
    summary = _shortened(phrases)
    if before != after or before is None:
        summary = f"{summary}: {bytes_delta(before, after)} per device and run"
    return "; ".join(filter(None, (summary, _shortened(regrouped))))


class _Phrase(Record, frozen=True):
    """`2 all-gathers over x combined into 1, now async`, less the numbers; `axes` is empty where they are several."""

    sign: str
    noun: str
    axes: str
    became: Became
    rest: str

    def text(self, before: int, after: Counter[str]) -> str:
        over = f" over {self.axes}" if self.axes else ""
        summary = ", ".join(filter(None, (self.became.text(after), self.rest)))
        return f"{self.sign}{before} {self.noun}{'s' * (before != 1)}{over}{' ' * bool(summary)}{summary}"


def _listed(changes: Sequence[Change]) -> list[str]:
    """A phrase for each kind of change, with their number; where these are many, one for all that became the same."""
    counted: dict[_Phrase, tuple[int, Counter[str]]] = {}
    for change in changes:
        _add(counted, _phrase(change), change.numbers[0] or change.numbers[1], kinds(change.afters, change.count))
    if len(counted) > PHRASES:
        alike = grouped((each if each.sign else (each.became, each.rest), each) for each in counted)
        merged: dict[_Phrase, tuple[int, Counter[str]]] = {}
        for these in alike.values():
            for each in these:
                _add(merged, _common(these), *counted[each])
        counted = merged
    return [phrase.text(before, after) for phrase, (before, after) in counted.items()]


def _add(counted: dict[_Phrase, tuple[int, Counter[str]]], phrase: _Phrase, before: int, after: Counter[str]) -> None:
    so_far, kinds = counted.get(phrase, (0, Counter[str]()))
    counted[phrase] = (so_far + before, kinds + after)


def _common(phrases: Sequence[_Phrase]) -> _Phrase:
    nouns, axes = {each.noun for each in phrases}, {each.axes for each in phrases}
    noun = nouns.pop() if len(nouns) == 1 else "collective"
    return replace(phrases[0], noun=noun, axes=axes.pop() if len(axes) == 1 else "")


def _shortened(phrases: Sequence[str]) -> str:
    others = len(phrases) - PHRASES
    more = phrases[-1] if others == 1 else plural(others, "other change")
    return ", ".join(phrases[:PHRASES]) + (f", and {more}" if others > 0 else "")


def _census(found: Diff) -> list[str]:
    """Return the counts per kind and axes that differ, largest first, and the remaining changes.

    For sides that have little in common, as those of two targets.
    """
    tallies: dict[tuple[str, str], list[int]] = {}
    for place, side in enumerate((found.before, found.after)):
        for transfer, count in side.transfers:
            tally = tallies.setdefault((transfer.work.kind, axes_words(transfer.work)), [0, 0, 0])
            tally[place] += count
            tally[2] += (1, -1)[place] * count * (transfer.work.total_wire or 0)
    differing = sorted((abs(tally[2]), key, tally) for key, tally in tallies.items() if tally[0] != tally[1])
    summary = [f"{kind}s over {axes} {tally[0]} → {tally[1]}" for _, (kind, axes), tally in reversed(differing)]
    changed = sum(change.count for change in found.changes if change.kind == "changed")
    return [*summary[:PHRASES], *([f"{changed} changed"] if summary and changed else [])]


def _besides(found: Diff) -> Iterator[str]:
    if found.borders and not found.changes:
        yield f"{plural(len(found.borders), 'sharding')} of arguments and outputs changed"
    for amount in found.sizes:
        if amount.name == "aliased" and (amount.after or 0) < (amount.before or 0):
            yield f"donation lost: {size_text(amount.after or 0)} reused instead of {size_text(amount.before)}"
    values = found.values
    if values is not None and values.differs and values.same_inputs is not False:
        verb = "has" if len(values.differs) == 1 else "have"
        yield f"{len(values.differs)} of {plural(values.count, 'output')} {verb} other values"
    for sign, side in (("new", "after"), ("gone", "before")):
        rules = Counter[str]()
        for change in found.findings:
            if (key := getattr(change, side)) is not None:
                rules[f"{key.rule} {key.finding.slug}"] += change.count
        if rules:
            listed = ", ".join(rule if count == 1 else f"{count}× {rule}" for rule, count in rules.items())
            yield f"{sign}: {listed}"


def _phrase(change: Change) -> _Phrase:
    only = change.before or change.after
    assert only is not None
    axes = axes_words(only.work)
    if not change.befores or not change.afters:
        rest = "in dead code" if only.work.executions == 0 else "in a loop" if only.in_loop else ""
        return _Phrase(SIGNS[change.kind], only.work.kind, axes, became=Became(), rest=rest)
    noun = only.work.kind if len(kinds(change.befores)) == 1 else "collective"
    return _Phrase("", noun, axes, became=became_of(change), rest=", ".join(otherwise(change)))
