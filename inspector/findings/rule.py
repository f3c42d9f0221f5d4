"""A rule: words for the reader, and the function that looks and writes the fixes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...parsers.sharding_syntax.mesh import AxisRef
from ..report import Certainty, Edit, Finding, FindingPlace, Fix, Severity
from ..report import Rule as Rule

MAX_ALTERNATIVES = 4
"""Different edits for one finding."""

MAX_MESSAGE_CHARACTERS = 140

MIN_SPLIT_ELEMENTS = 1024
"""Elements of a value that is worth splitting among devices."""


class Saving(NamedTuple):
    """Bytes that a device sends less in one run at most, and the time of that; None where it is not known."""

    bytes: int | None = None
    seconds: float | None = None


def rank(found: Finding) -> tuple[tuple[int, bool, bool], float, float]:
    """Return the sorting key of findings: worse ones first, then those that cost more."""
    done = next((fix.experiment for fix in found.fixes if fix.helps), None)
    worth = (found.saved_bytes or 0) if done is None or found.severity == "error" else done.worth
    return found.rank, -(found.saved_seconds or 0.0), -worth


def finding(
    rule: Rule,
    place: FindingPlace,
    message: str,
    *,
    confidence: Certainty,
    axes: Iterable[AxisRef | str] = (),
    severity: Severity | None = None,
    related: Iterable[FindingPlace] = (),
    evidence: Iterable[tuple[str, str]] = (),
    fixes: tuple[Fix, ...] = (),
    saves: Saving = Saving(),  # noqa: B008
    subject: str = "",
) -> Finding:
    """A finding of a rule, of its severity where no other is given; long names are cut off at the message's end."""
    if len(message) > MAX_MESSAGE_CHARACTERS:
        message = f"{message[: MAX_MESSAGE_CHARACTERS - 1]}…"
    named = tuple(AxisRef(axis) if isinstance(axis, str) else axis for axis in axes)
    level, related, evidence = severity or rule.severity, tuple(related), tuple(evidence)
    words = (rule.id, rule.slug, level, confidence, named, message, place, related, evidence, fixes)
    return Finding(*words, *saves, subject, rule.of_gradients)


def advice(title: str) -> tuple[Fix, ...]:
    """A fix that takes a person to write it."""
    return (Fix(title),)


def keep_whole(axes: Iterable[AxisRef]) -> str:
    """Return the advice for parts of axes, which code cannot name; empty where there are none."""
    names = ", ".join(dict.fromkeys(repr(axis.name) for axis in axes if axis.sub is not None))
    whole = f"keep {names} whole where a reshape splits what it shards"
    return f"{whole}: no PartitionSpec can name a part of an axis" if names else ""


def alternatives(title: str, changes: Iterable[tuple[Edit, ...]]) -> tuple[Fix, ...]:
    """A fix for each different change that can be written; advice where none can."""
    written = list(dict.fromkeys(filter(None, changes)))[:MAX_ALTERNATIVES]
    return tuple(Fix(title, edits) for edits in written) or advice(title)
