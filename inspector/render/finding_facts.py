"""Facts of a finding, or of a function that failed, in words; every renderer uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..report import SEVERITIES, Explanation, Finding, Fix, Report, Suppression, Trial, file_and_line
from ..units import format_bytes, format_seconds, plural

MAX_RELATED = 4
"""Other places of one finding that are shown."""


def counted(report: Report) -> str:
    """`1 error, 2 warnings, 1 note, 3 suppressed`."""
    counts = Counter(each.severity for each in report.findings)
    words = [plural(counts[each], each) for each in SEVERITIES if counts[each] and each != "info"]
    words += [plural(counts["info"], "note")] if counts["info"] else []
    words += [f"{len(report.suppressed)} suppressed"] if report.suppressed else []
    return ", ".join(words)


def notes_text(report: Report) -> str:
    """`10 notes (SS23 × 10), 2 suppressed`: what the short report counts and does not list."""
    rules = Counter(each.rule for each in report.findings if each.severity == "info")
    listed = ", ".join(f"{rule} × {count}" if count > 1 else rule for rule, count in rules.items())
    words = [f"{plural(rules.total(), 'note')} ({listed})"] if rules else []
    words += [f"{len(report.suppressed)} suppressed"] if report.suppressed else []
    return ", ".join(words)


def facts(found: Finding) -> list[tuple[str, str]]:
    """All of it: how it is known, and what fixes it."""
    return [*evidence(found), *fix_facts(found)]


def evidence(found: Finding) -> list[tuple[str, str]]:
    """The evidence, and related places."""
    lines = list(found.evidence)
    if found.related:
        places = dict.fromkeys(f"{place.what} {place.text}".rstrip() for place in found.related)
        more = f" and {len(places) - MAX_RELATED} more" if len(places) > MAX_RELATED else ""
        lines.append(("see", "; ".join(list(places)[:MAX_RELATED]) + more))
    return lines


def fix_facts(found: Finding) -> list[tuple[str, str]]:
    """The fix, what it saves, and what came of trying it."""
    lines = []
    if found.fixes:
        lines.append(("fix", found.fixes[0].title))
    if found.saved_bytes is not None:
        seconds = "" if found.saved_seconds is None else f", {format_seconds(found.saved_seconds)}"
        lines.append(("saves", f"{format_bytes(found.saved_bytes)} per device per step{seconds}"))
    if found.trial is not None:
        lines.append(("verified" if found.trial.verified else "not verified", trial_text(found.trial)))
    return lines


def trial_text(trial: Trial) -> str:
    """`the finding is gone; all-reduce x 2 → 1; 448 B → 224 B in all; values equal`."""
    parts = [trial.why]
    before, after = dict(trial.before), dict(trial.after)
    for name in dict.fromkeys((*before, *after)):
        if before.get(name, 0) != after.get(name, 0):
            parts.append(f"{name} {before.get(name, 0)} → {after.get(name, 0)}")
    if trial.bytes_before is not None and trial.bytes_after is not None:
        parts.append(f"{format_bytes(trial.bytes_before)} → {format_bytes(trial.bytes_after)} sent per device per step")
    if trial.seconds_before is not None and trial.seconds_after is not None:
        parts.append(f"{format_seconds(trial.seconds_before)} → {format_seconds(trial.seconds_after)}")
    if trial.values != "not compared":
        parts.append(f"values {trial.values}{f': {_changes(trial)}' if trial.changes else ''}")
    return "; ".join(parts)


def where(found: Finding) -> str:
    """The line of a finding, with the call of a helper; without one, what it is about."""
    return found.place.text or found.place.what


def suppressed_by(by: Suppression) -> str:
    """`in model.py:8: not on the critical path`."""
    return f"in {file_and_line(by.file, by.line)}: {by.reason or 'no reason given'}"


def failure_text(report: Report) -> str:
    """The reason why a capture ended, what to do next, and the details; one line each."""
    failure, found = report.capture.failure, report.explanation
    lines = [] if failure is None else [failure.message, failure.hint]
    if found is not None:
        lines += [found.title, *(f"{verdict(fix)}: {fix.title}" for fix in fixes_shown(found))]
    return "\n".join(filter(None, lines))


def fixes_shown(found: Explanation) -> Sequence[Fix]:
    """The fixes that work; all of them if none does."""
    working = [fix for fix in found.fixes if fix.verified]
    return working or found.fixes


def verdict(fix: Fix) -> str:
    """The result of trying a fix."""
    if fix.trial is None:
        return "not tried"
    if not fix.verified:
        return f"fixes this, but then tracing fails ({fix.trial.why})"
    match fix.trial.values:
        case "equal" | "close":
            return "traces and keeps the numbers"
        case "differ":
            return f"traces and changes the numbers ({_changes(fix.trial)})"
    return "traces; what it gives was not compared"


def _changes(trial: Trial) -> str:
    """`result[0], its norm 2.2 → 4.4`, of the first results that a change gives otherwise."""
    rest = len(trial.changes) - MAX_RELATED
    return "; ".join((*trial.changes[:MAX_RELATED], *([f"and {rest} more"] if rest > 0 else [])))
