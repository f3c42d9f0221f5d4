"""The Report: what all analyses found in one capture. Every front end renders this value and nothing else.

Sizes are bytes per device and execution; unknown is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import field

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ...parsers.source import Frame, Span
from ..capture.model import Capture, CaptureError, Device
from ..ir.program import Program
from ..ir.stage import ParsedStage
from .changes import Diff, PassChange
from .collectives import Collective, UncountedCommunication
from .communication import AxisUse, StrategyTotal
from .cost import FunctionCost
from .findings import Elsewhere, Explanation, Finding, PlacedMessage, Severity, Suppressed, Suppression
from .places import Place, Selection, StagePlace
from .position import starts_at
from .shardings import CollectiveCause, Conflict, NodeAxis, PropagationSteps, ShardedValue, Why
from .stage_summary import StageSummary
from .timeline import Timeline
from .values import AxisEntry, Divergence, LiveValue, PeakMemory, ProbedValue, VariableVariance


def _none(*asked: object, **options: object) -> tuple[()]:
    return ()


def _no_diff(before: Report, after: Report) -> Diff:
    raise CaptureError("no program was inspected")


class Torus(Record, frozen=True):
    """The chips of a slice, whose axes are `closed` where they form rings, and devices by number of partition."""

    shape: tuple[int, ...]
    closed: tuple[bool, ...]
    devices: tuple[Device, ...] = ()


class OnDemand(Record, frozen=True):
    """Each as the analysis with its name says; nothing is known of a program that was not inspected.

    `causes` are those of a collective, `why` and `reasons` have at most so many steps, `way` leads from where an axis
    entered to a value, `listed_stages` are those whose collectives a report lists, and `timeline` is that of a device,
    and a `torus` is what its chips form, if any. `pass_changes` are the passes that change communication, in order.
    `diff` is from the first report to the second, `linked` is all that belongs to a place, with its places in the text
    of a stage, and `values_at` are those that the operation at a place makes.
    """

    causes: Callable[[Collective], tuple[CollectiveCause, ...]] = _none
    conflicts: Callable[[], tuple[Conflict, ...]] = _none
    in_conflict: Callable[[Sequence[ShardedValue]], frozenset[int]] = lambda _: frozenset()
    values: Callable[[], tuple[ShardedValue, ...]] = _none
    why: Callable[[ShardedValue, int | None], tuple[Why, ...]] = _none
    reasons: Callable[[Iterable[NodeAxis], int | None], tuple[Why, ...]] = _none
    way: Callable[[VariableVariance, AxisEntry], tuple[VariableVariance, ...]] = _none
    collectives: Callable[[ParsedStage], tuple[Collective, ...]] = _none
    listed_stages: Callable[[], tuple[ParsedStage, ...]] = _none
    stage_summaries: Callable[[], tuple[StageSummary, ...]] = _none
    alive_at_peak: Callable[[], tuple[LiveValue, ...]] = _none
    timeline: Callable[[], Timeline | None] = lambda: None
    torus: Callable[[], Torus | None] = lambda: None
    pass_changes: Callable[[], tuple[PassChange, ...]] = _none
    diff: Callable[[Report, Report], Diff] = _no_diff
    linked: Callable[[Report, Place, ParsedStage], Selection] = lambda report, place, stage: Selection(place)
    values_at: Callable[[StagePlace], tuple[ShardedValue, ...]] = _none
    propagation: Callable[[], PropagationSteps | None] = lambda: None


class Report(Record, frozen=True):
    """All that is known of one capture; `meshes` are over the numbers of its `partitions`.

    `most_sent` are the most bytes that one step sends on each device, None where a loop has no known bound.
    `shardings` are those at the borders: of arguments and outputs, at constraints and shard_maps. Those of all other
    values, which may be very many, and what else is long to make, `on_demand` has. `thresholds` are those of rules that
    the user has set, by id; `lists_implicit` is set where all implicit communication is wanted as findings; `idle` are
    suppressions that suppress nothing; `rules` are all that there are. `elsewhere` is the cost on another target,
    where CPUs communicate for what only they do.
    """

    as_html: ClassVar[Callable[[Report], str] | None] = None
    """The renderer for notebooks, set by the front door: reports know no renderer."""

    program: Program
    meshes: tuple[MeshSyntax, ...] = ()
    partitions: int = 1
    collectives: tuple[Collective, ...] = ()
    communication: tuple[StrategyTotal, ...] = ()
    axes: tuple[AxisUse, ...] = ()
    most_sent: int | None = None
    uncounted: tuple[UncountedCommunication, ...] = ()
    variance: tuple[VariableVariance, ...] = ()
    shardings: tuple[ShardedValue, ...] = ()
    probes: tuple[ProbedValue, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    cost: FunctionCost | None = None
    peak: PeakMemory | None = None
    messages: tuple[PlacedMessage, ...] = ()
    explanation: Explanation | None = None
    elsewhere: Elsewhere | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    lists_implicit: bool = False
    rules: tuple[Rule, ...] = ()
    findings: tuple[Finding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    idle: tuple[Suppression, ...] = ()
    on_demand: OnDemand = OnDemand()

    @property
    def script(self) -> str | None:
        """The file of the inspected function; None of a capture that was not made from one."""
        return None if self.capture.subject is None else self.capture.subject.script

    @property
    def capture(self) -> Capture:
        """The recorded capture."""
        return self.program.capture

    def could_be_read(self, stage: str) -> bool:
        """Return whether all of a stage's text could be read: if not, it may hold more than is known."""
        found = self.program.stage(stage)
        return found is None or not found.problems

    def diff_to(self, after: Report) -> Diff:
        """Compare with another report at the last stage that both have; raises CaptureError where there is none."""
        return self.on_demand.diff(self, after)

    def equation_span(self, equation: str) -> Span | None:
        """Return the place in the jaxpr's text of an equation, by the id that `VariableVariance.equation` holds."""
        text = self.program.jaxpr
        equations = () if text is None else text.equations
        return next((place.span for place in equations if place.id == equation), None)

    def collectives_of_line(self, frame: Frame) -> tuple[Collective, ...]:
        """The listed collectives from a line; those from lines that it calls come last."""
        inside = [c for c in self.collectives if any(starts_at((one,), frame) for one in c.source.stack)]
        return tuple(sorted(inside, key=lambda c: not starts_at(c.source.stack, frame)))

    def _repr_html_(self) -> str | None:
        """The HTML for a notebook, which shows plain text where there is none."""
        return None if Report.as_html is None else Report.as_html(self)


class Rule(Record, frozen=True):
    """One diagnostic, whose module is all that there is of it. A finding may have another `severity`.

    `finds`, `why` and `proof` are sentences: the pattern, what is bad about it, and what a finding rests on. `tries`
    says which edits its fixes have, and `by_hand` why only a person can write the others. `faulty` and `repaired` are
    the same few lines with the fault and without it. `check` looks at a report and gives what it found, made by
    `finding`.

    `saves` is what its fixes are to lessen. Findings of one that `fails_strict` are errors where the reader is strict.
    One that `reads` suppressions is checked when it is known which of them suppress something. Errors of one that is
    `of_gradients` say that gradients are wrong. Findings of one that `is_observation` are what the program does against
    what its author requested: they are as severe whether a fix is known or not. Those of one that `is_outcome` follow
    from what was requested, and come after what was. Fixes of one that `narrows` compute in `bf16`, and may differ by
    its rounding.
    """

    id: str
    slug: str
    severity: Severity
    finds: str
    why: str
    proof: str
    faulty: str
    repaired: str
    check: Callable[[Report], Iterator[Finding]]
    tries: str = ""
    by_hand: str = ""
    threshold: float | None = None
    threshold_is: str = ""
    saves: Literal["communication", "memory", "compute"] = "communication"
    fails_strict: bool = False
    of_gradients: bool = False
    is_observation: bool = False
    is_outcome: bool = False
    narrows: bool = False
    reads: Literal["program", "suppressions"] = "program"
