"""The Report: what all analyses found in one capture. Every front end renders this value and nothing else.

Sizes are bytes per device and execution; unknown is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Literal

from msgspec import field

from ...parsers.record import Record
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.model import Capture
from ..ir.program import Program
from .collectives import Collective, UncountedCommunication
from .communication import AxisUse, StrategyTotal
from .cost import FunctionCost
from .findings import Elsewhere, Explanation, Finding, PlacedMessage, Severity, Suppressed, Suppression
from .on_demand import OnDemand
from .shardings import ShardedValue
from .values import Divergence, PeakMemory, ProbedValue, VariableVariance


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

    @property
    def untried(self) -> bool:
        """True if there are changes that were not tried."""
        return any(fix.state == "untried" for found in self.findings for fix in found.fixes)

    def could_be_read(self, stage: str) -> bool:
        """Return whether all of a stage's text could be read: if not, it may hold more than is known."""
        found = self.program.stage(stage)
        return found is None or not found.problems

    def _repr_html_(self) -> str | None:
        """The HTML for a notebook, which shows plain text where there is none."""
        return None if Report.as_html is None else Report.as_html(self)


class Rule(Record, frozen=True):
    """One diagnostic, whose module is all that there is of it. A finding may have another `severity`.

    `finds`, `why` and `proof` are sentences: the pattern, what is bad about it, and what a finding rests on. `tries`
    says which edits its fixes have, or `by_hand` why only a person can write them. `faulty` and `repaired` are the same
    few lines with the fault and without it. `check` looks at a report and gives what it found, made by `finding`.

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
