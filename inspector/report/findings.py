"""Problems of a program, including those that keep it from tracing; their fixes, and suppressions."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import AxisRef
from ...parsers.source import Span
from ..capture.model import Message
from .position import SourcePosition, called_from

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Worst first."""

Certainty = Literal["proved", "likely", "possible"]


class FindingPlace(Record, frozen=True):
    """The subject of a finding: a name for `what` it is, and its position.

    `span` is in the shown text of `stage`; both are None where nothing stands for it in a text. `call_site` is the call
    of the helper that has the line, where findings or collectives of several calls share it.
    """

    what: str
    source: SourcePosition
    stage: str | None = None
    span: Span | None = None
    call_site: SourcePosition | None = None

    @property
    def text(self) -> str:
        """`model.py:18 ← model.py:7`: its line, with the call of a helper; empty where no line is known."""
        return called_from(self.call_site, self.source.text())


class Edit(Record, frozen=True):
    """A piece of a user's file to be replaced by `text`.

    Lines count from 1, columns are bytes of UTF-8 from 0, both as Python's `ast` has them; the end is not included.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


State = Literal["tried", "untried", "idea", "not helping", "does not trace", "values differ"]
"""States of a change: `tried` helps, an `idea` is no edit, and the last three were tried and are no fixes."""

Values = Literal["equal", "close", "differ", "not compared"]
ComparedBy = Literal["run", "evaluation", "runs on CPUs"]


FLOPS_PER_BYTE = 2000
"""Operations of an accelerator in the time in which it sends a byte, by order of magnitude."""

MEMORY_PER_BYTE = 20
"""Bytes of its own memory that an accelerator writes in the time in which it sends a byte, by order of magnitude."""


class Measured(Record, frozen=True):
    """One side of an experiment, per device and step: executions of collectives by kind and axes, the bytes sent, by
    axes and in all, the estimated time on the target, peak memory, FLOPs of matrix products; None where not known.

    `held` are the bytes of arguments and results, which stay between steps; `later` those that the next step sends to
    get its arguments from the results of this one.
    """

    collectives: tuple[tuple[str, int], ...] = ()
    by_axes: tuple[tuple[str, int], ...] = ()
    bytes: int | None = None
    seconds: float | None = None
    memory: int | None = None
    flops: int | None = None
    held: int | None = None
    later: int = 0

    @property
    def work(self) -> float | None:
        """Bytes that are sent, and operations as the bytes that take as long: where no time on a target is known."""
        return self.bytes if self.bytes is None else self.bytes + (self.flops or 0) / FLOPS_PER_BYTE


class Elsewhere(Record, frozen=True):
    """The unchanged program, compiled for another target."""

    target: str
    cost: Measured


class Experiment(Record, frozen=True):
    """A change that was made in a copy of the source, compiled, and compared with the unchanged program.

    `why` says what was in the way. `values` are those of a run on the same inputs, or for a target that is not there
    of an evaluation of its programs, or of runs on CPUs, as `compared_by` says; `changes` are the results that differ,
    and how. `gone` and `new` are rules of which there are fewer and more findings, once for each. If `is_next`, `after`
    is of the second step: the changed program returns state in another sharding than it takes it in the first one.
    """

    state: State
    why: str = ""
    before: Measured = Measured()
    after: Measured = Measured()
    values: Values = "not compared"
    changes: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    compared_by: ComparedBy = "run"
    is_next: bool = False

    @property
    def helps(self) -> bool:
        """True if the change is worth making: the only state that is shown as a fix."""
        return self.state == "tried"

    @property
    def bytes_saved(self) -> int | None:
        """Bytes that a device sends less; None where that is not known."""
        before, after = self.before.bytes, self.after.bytes
        return None if before is None or after is None else before - after

    @property
    def work_saved(self) -> float:
        """The same with operations as bytes; 0 where that is not known."""
        before, after = self.before.work, self.after.work
        return 0.0 if before is None or after is None else before - after

    @property
    def worth(self) -> float:
        """The same with memory as the bytes that are sent while as much is written."""
        before, after = self.before.memory, self.after.memory
        return self.work_saved + (0 if before is None or after is None else before - after) / MEMORY_PER_BYTE

    @property
    def seconds_saved(self) -> float | None:
        """The time by which the program is faster on the target; None where that is not known."""
        before, after = self.before.seconds, self.after.seconds
        return None if before is None or after is None else before - after


class Fix(Record, frozen=True):
    """A change that may fix something: `title` on one line, and the edits that make it; without edits it is an idea.

    `experiment` is what came of making it, None where it was not tried; then `why` says why not, where that is known.
    `requests` are the specs that it is to give arguments, by their paths.
    """

    title: str
    edits: tuple[Edit, ...] = ()
    experiment: Experiment | None = None
    why: str = ""
    requests: tuple[tuple[str, str], ...] = ()

    @property
    def helps(self) -> bool:
        """True if it was tried, and is worth making."""
        return self.experiment is not None and self.experiment.helps

    @property
    def lines(self) -> int:
        """Number of lines that it changes."""
        return len({(edit.file, edit.line) for edit in self.edits})

    @property
    def state(self) -> State:
        """The state of the experiment, or why there is none."""
        if self.experiment is not None:
            return self.experiment.state
        return "untried" if self.edits and not self.why else "idea"


class Finding(Record, frozen=True):
    """One diagnostic at one place: what is wrong, how that is known, and what to do about it.

    `error` is a wrong result, `warning` is cost. It is `proved` where the levels agree or live values show it, `likely`
    where one level says so, `possible` where it depends on what is not known. `evidence` are names and texts, `fixes`
    alternatives in the user's own names, the likeliest first. `subject` names the value or operation that it is about,
    where one line can have several: findings that differ in its numbers alone are alike. `saved_bytes` are those that a
    device sends less in one step, `saved_seconds` is the time of that on the target: as measured by an experiment, else
    None. `expected` are both as the rule expects them, for the order of experiments; they are not shown. Errors
    `of_gradients` come before others, which may follow from them: a norm of wrong gradients is summed of values that
    are alike.
    """

    rule: str
    slug: str
    severity: Severity
    confidence: Certainty
    axes: tuple[AxisRef, ...]
    message: str
    place: FindingPlace
    related: tuple[FindingPlace, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    fixes: tuple[Fix, ...] = ()
    saved_bytes: int | None = None
    saved_seconds: float | None = None
    subject: str = ""
    of_gradients: bool = False
    expected: tuple[int | None, float | None] = (None, None)

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """The sorting key: worse findings first, and last those over parts of axes, as a reshape causes them."""
        is_later = not (self.of_gradients and self.severity == "error")
        return SEVERITIES.index(self.severity), is_later, any(axis.sub is not None for axis in self.axes)

    @property
    def advised(self) -> Fix | None:
        """The first fix that helps, else the first that was not tried."""
        hoped = [fix for fix in self.fixes if fix.state in ("idea", "untried")]
        return next((fix for fix in self.fixes if fix.helps), next(iter(hoped), None))

    @property
    def proposal(self) -> Fix | None:
        """The fix to show as edits: the first that helps, else one that was tried, else the only one with edits."""
        editable = [fix for fix in self.fixes if fix.edits]
        tried = [fix for fix in editable if fix.experiment is not None]
        best = sorted(tried, key=lambda fix: not fix.helps) or (editable if len(editable) == 1 else [])
        return best[0] if best else None

    @property
    def experiment(self) -> Experiment | None:
        """The experiment with the proposal."""
        return None if self.proposal is None else self.proposal.experiment


class Suppression(Record, frozen=True):
    """Words of the user's that findings of some `rules`, by id or slug, are known at a place, and for what `reason`.

    They stand at `line` of `file`, 0 where that is no source but the settings, and hold for the lines from `first` to
    `last`. `problem` says why they are of no use, where that is to be told.
    """

    file: str
    line: int
    rules: tuple[str, ...]
    reason: str
    first: int = 0
    last: int = 0
    problem: str | None = None


class Suppressed(Record, frozen=True):
    """A finding that is not told, and by whose word."""

    finding: Finding
    by: Suppression


class StoryStep(Record, frozen=True):
    """One step of how a value came to be what it is: in words, and where."""

    what: str
    source: SourcePosition = field(default_factory=SourcePosition)


class Explanation(Record, frozen=True):
    """The reason why a program fails: in short, in steps, and possible fixes.

    `where` is the user's position at the error, `argument` the expression that it is about, as in `params['w']`.
    """

    title: str
    steps: tuple[StoryStep, ...] = ()
    fixes: tuple[Fix, ...] = ()
    where: SourcePosition = field(default_factory=SourcePosition)
    argument: str = ""


class PlacedMessage(Record, frozen=True):
    """A message of the compiler or JAX, what it is `about`, and the position of that in the user's source."""

    message: Message
    about: str | None = None
    source: SourcePosition = field(default_factory=SourcePosition)
