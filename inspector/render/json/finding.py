"""Findings and their fixes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ... import report as values
from .references import Text, shaped
from .shaped import SourceRef


class FindingPlace(Struct, frozen=True):
    """The subject of a finding; `start` and `end` are bytes in the shown text of `stage`, null where none shows it.

    `call_site` is the call of the helper that has the line, null where only one call of it has findings or collectives.
    """

    what: str
    stage: str | None
    start: int | None
    end: int | None
    source: SourceRef
    call_site: SourceRef | None


class Saves(Struct, frozen=True):
    """The saving of a fix in one execution: bytes that a device sends, and the time of that on the target."""

    bytes: int | None
    seconds: float | None


Values = Literal["equal", "close", "differ", "not compared"]


class Sent(Struct, frozen=True):
    """One side of an experiment, per device and step: executions of each kind of collective by axes, the bytes sent, by
    axes and in all, the estimated time on the target, peak memory, and FLOPs of matrix products.
    """

    collectives: dict[str, int]
    axes: dict[str, int]
    bytes: int | None
    seconds: float | None
    memory: int | None
    flops: int | None


class Elsewhere(Struct, frozen=True):
    """The unchanged program on another target, where CPUs communicate for what only they do."""

    target: str
    cost: Sent


class Trial(Struct, frozen=True):
    """The program without and with the edits of a finding; `values` are compared by a run on the target, or where that
    is not there by an evaluation of its programs, or by runs on CPUs; `changes` is what differs. If `next_step`,
    `after` is of the second step: the first one returns state in another sharding than it takes it.
    """

    why: str
    before: Sent
    after: Sent
    values: Values
    compared_by: Literal["run", "evaluation", "runs on CPUs"]
    changes: list[str]
    is_next: bool = field(name="next_step")


class Fix(Struct, frozen=True):
    """A change: `tried` where it helps, the only state in which it is a fix. An `idea` says `why` it was not tried."""

    title: str
    edits: list[values.Edit]
    state: Literal["tried", "untried", "idea", "not helping", "does not trace", "values differ"]
    why: str
    experiment: Trial | None


class Finding(Struct, frozen=True):
    """One diagnostic at one place. `shardscope explain RULE` tells what `rule` looks for and what proves it."""

    rule: str
    slug: str
    severity: Literal["error", "warning", "info"]
    confidence: Literal["proved", "likely", "possible"]
    axes: list[Text]
    message: str
    stage: str | None
    location: FindingPlace
    related: list[FindingPlace]
    evidence: dict[str, str]
    fix: str | None
    saves: Saves
    edits: list[values.Edit]
    verified: Literal["yes", "no", "not tried"]
    trial: Trial | None
    fixes: list[Fix]


class StoryStep(Struct, frozen=True):
    """One step of how a value came to be what it is."""

    what: str
    source: SourceRef


class Remedy(Struct, frozen=True):
    """A change that may help; `works` says whether the program ran with it, null where it was not tried.

    `state` is as in findings: `tried` where it did, `values differ` where one device gives other values. `values`
    are those of a run, beside one with every mesh axis on one device.
    """

    title: str
    what: str
    state: Literal["tried", "untried", "idea", "not helping", "does not trace", "values differ"]
    edits: list[values.Edit]
    works: bool | None
    why: str
    values: Values
    changes: list[str]


class Where(Struct, frozen=True):
    """The user's line that failed, and the argument that it is about, as in `params['w']`."""

    file: str | None
    line: int | None
    function: str | None
    argument: str


class Explanation(Struct, frozen=True):
    """The reason why a program fails: `message` in one sentence, which is also the `title`."""

    message: str
    where: Where
    title: str
    steps: list[StoryStep]
    remedies: list[Remedy]


def explanation_of(found: values.Explanation) -> Explanation:
    """An explanation in its JSON shape."""
    where = where_of(found)
    return shaped(Explanation, found, message=found.title, where=where, remedies=list(map(remedy_of, found.fixes)))


def where_of(found: values.Explanation) -> Where:
    """The position of an explanation in its JSON shape."""
    return Where(found.where.file, found.where.line, found.where.function, argument=found.argument)


NOT_TRIED = values.Experiment("untried")


def remedy_of(fix: values.Fix) -> Remedy:
    """A remedy in its JSON shape."""
    trial = fix.experiment or NOT_TRIED
    works = None if fix.experiment is None else trial.helps
    return shaped(Remedy, trial, title=fix.title, what=fix.title, state=fix.state, edits=fix.edits, works=works)


class Suppressed(Struct, frozen=True):
    """A finding that is not told: for what reason, and in which line of which file that is said; 0 for settings."""

    finding: Finding
    reason: str
    file: str
    line: int


def suppressed_of(known: values.Suppressed) -> Suppressed:
    """A suppressed finding in its JSON shape."""
    return shaped(Suppressed, known.by, finding=finding_of(known.finding))


def finding_of(found: values.Finding, *, in_full: bool = True) -> Finding:
    """A finding in its JSON shape; unless it is `in_full`, a note has no evidence."""
    return shaped(
        Finding,
        found,
        stage=found.place.stage,
        location=_place_of(found.place),
        related=list(map(_place_of, found.related)),
        evidence=dict(found.evidence) if in_full or found.severity != "info" else {},
        fix=None if found.advised is None else found.advised.title,
        saves=Saves(found.saved_bytes, found.saved_seconds),
        edits=() if found.proposal is None else found.proposal.edits,
        verified="not tried" if found.experiment is None else "yes" if found.experiment.helps else "no",
        trial=trial_of(found.experiment),
        fixes=[_fix_of(fix) for fix in found.fixes],
    )


def _fix_of(fix: values.Fix) -> Fix:
    why = fix.why if fix.experiment is None else fix.experiment.why
    return shaped(Fix, fix, why=why, experiment=trial_of(fix.experiment))


def trial_of(done: values.Experiment | None) -> Trial | None:
    """An experiment in its JSON shape."""
    return None if done is None else shaped(Trial, done, before=_sent_of(done.before), after=_sent_of(done.after))


def elsewhere_of(found: values.Elsewhere) -> Elsewhere:
    """The cost on another target in its JSON shape."""
    return Elsewhere(found.target, _sent_of(found.cost))


def _sent_of(cost: values.Measured) -> Sent:
    return shaped(Sent, cost, collectives=dict(cost.collectives), axes=dict(cost.by_axes))


def _place_of(place: values.FindingPlace) -> FindingPlace:
    start, end = (None, None) if place.span is None else (place.span.start, place.span.end)
    return shaped(FindingPlace, place, start=start, end=end)
