"""Facts of a finding, or of a function that failed, in words; every renderer uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..report import SEVERITIES, Experiment, Explanation, Finding, Fix, Report, Suppression, file_and_line
from ..units import format_bytes, format_count, format_seconds, known_sum, plural

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


LARGE_SHARE = 0.25
"""Share of what a step sends from which a note is worth a line of the short report."""


def largest_note(report: Report) -> str:
    """The proved notes with one idea that cost the most communication, if that is much; empty otherwise.

    Notes of which a change was tried are left out: where it does not help, the communication is needed.
    """
    sent = known_sum(each.wire_bytes for each in report.communication) or 0
    costs: dict[tuple[str, str], list[tuple[int, Finding]]] = {}
    for each in report.findings:
        is_open = each.severity == "info" and {fix.state for fix in each.fixes} == {"idea"}
        if is_open and each.confidence == "proved" and each.expected[0]:
            costs.setdefault((each.rule, each.fixes[0].title), []).append((each.expected[0], each))
    alike = max(costs.values(), key=lambda found: sum(size for size, _ in found), default=[])
    share = sum(size for size, _ in alike) / sent if sent else 0.0
    if share < LARGE_SHARE:
        return ""
    (_, first), *more = sorted(alike, key=lambda each: -each[0])
    places = f"{where(first)}{f' and {len(more)} more' if more else ''}"
    return (
        f"{first.rule} {places}, {min(share, 1.0):.0%} of what is sent: {first.message}; idea: {first.fixes[0].title}"
    )


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


def fix_facts(found: Finding, *, in_full: bool = True) -> list[tuple[str, str]]:
    """The fixes that were tried and help, each with what came of it, else the first idea; `in_full`, all others too."""
    lines = []
    helping = [fix for fix in found.fixes if fix.helps]
    for fix in helping:
        lines += [("fix", fix.title), ("tried", experiment_text(fix.experiment))]
    ideas = [fix for fix in found.fixes if fix.state in ("idea", "untried")]
    whys = (f"not tried: {fix.why}" if fix.why else "not tried" for fix in ideas)
    titles = [f"{fix.title} ({why})" if in_full else fix.title for fix, why in zip(ideas, whys, strict=True)]
    lines += [("idea", title) for title in dict.fromkeys(titles if in_full else [] if helping else titles[:1])]
    others = [fix for fix in found.fixes if fix not in ideas and not fix.helps]
    return [*lines, *((fix.state, _failed(fix)) for fix in others if in_full)]


def _failed(fix: Fix) -> str:
    """`leave out the constraint: no fewer bytes are sent; 24.8 → 24.8 MiB`."""
    done = fix.experiment or Experiment("untried")
    changes = f" ({_changes(done)})" if done.changes else ""
    return "; ".join(filter(None, (f"{fix.title}: {done.why}{changes}", experiment_text(done))))


BY = {"run": "", "evaluation": " in exact arithmetic", "runs on CPUs": " on CPUs"}


def experiment_text(done: Experiment | None) -> str:
    """`197 → 149 MiB, est. 31 → 24 ms, memory 1.0 → 1.2 GiB, values equal`: per device and step."""
    if done is None:
        return ""
    before, after = done.before, done.after
    parts = []
    if after.bytes is not None and (before.bytes is not None or after.bytes == 0):
        was, sent = "unknown" if before.bytes is None else format_bytes(before.bytes), format_bytes(after.bytes)
        parts.append(f"{sent} sent as before" if was == sent else f"{_from_to(was, sent)} sent")
    if before.seconds is not None and after.seconds is not None:
        parts.append(f"est. {_from_to(format_seconds(before.seconds), format_seconds(after.seconds))}")
    if before.flops and after.flops and not 0.99 < after.flops / before.flops < 1.01:
        parts.append(f"{_from_to(format_count(before.flops), format_count(after.flops))} FLOP")
    if before.memory and after.memory and not 0.99 < after.memory / before.memory < 1.01:
        parts.append(f"memory {_from_to(format_bytes(before.memory), format_bytes(after.memory))}")
    if done.helps and done.gone and all("→" not in each for each in parts):
        parts.insert(0, "no longer found")
    if done.is_next and parts:
        parts.append("from the second step on")
    if parts or done.values != "not compared":
        by = BY[done.compared_by]
        parts.append("values not compared" if done.values == "not compared" else f"values {done.values}{by}")
    return ", ".join(parts)


def _from_to(before: str, after: str) -> str:
    """`197 → 149 MiB`: the unit once where both have the same; `197 MiB as before`."""
    if before == after:
        return f"{before} as before"
    number, _, unit = before.partition(" ")
    return f"{number if len(unit) > 1 and after.endswith(f' {unit}') else before} → {after}"


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


def _changes(trial: Experiment) -> str:
    """`result[0], its norm 2.2 → 4.4`, of the first results that a change gives otherwise."""
    rest = len(trial.changes) - MAX_RELATED
    return "; ".join((*trial.changes[:MAX_RELATED], *([f"and {rest} more"] if rest > 0 else [])))


def fixes_shown(found: Explanation) -> Sequence[Fix]:
    """The fixes that work; all of them if none does."""
    working = [fix for fix in found.fixes if fix.helps]
    return working or found.fixes


def verdict(fix: Fix) -> str:
    """The result of trying a fix."""
    if fix.experiment is None:
        return "idea, not tried"
    if fix.experiment.state == "untried":
        return f"tried: {fix.experiment.why}"
    if not fix.helps:
        return f"tried, refused: {fix.experiment.why}"
    if fix.experiment.values == "not compared":
        return f"tried: runs{f', {fix.experiment.why}' if fix.experiment.why else '; no values to compare'}"
    return f"tried: runs, {fix.experiment.why or 'and gives the same values as on one device'}"
