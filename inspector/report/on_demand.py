"""Analyses that few readers need: made when somebody asks, and kept by the program that they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...parsers.record import Record
from ..capture.model import Device
from ..ir.stage import ParsedStage
from .changes import PassChange
from .collectives import Collective
from .shardings import CollectiveCause, Conflict, NodeAxis, ShardedValue, Why
from .stage_summary import StageSummary
from .timeline import Timeline
from .values import AxisEntry, LiveValue, VariableVariance


def _none(*asked: object, **options: object) -> tuple[()]:
    return ()


class Torus(Record, frozen=True):
    """The chips of a slice, whose axes are `closed` where they form rings, and the devices by number of partition."""

    shape: tuple[int, ...]
    closed: tuple[bool, bool, bool]
    devices: tuple[Device, ...]


class OnDemand(Record, frozen=True):
    """Each as the analysis with its name says; nothing is known of a program that was not inspected.

    `causes` are those of a collective, `why` and `reasons` have at most so many steps, `way` leads from where an axis
    entered to a value, `listed_stages` are those whose collectives a report lists, and `timeline` is that of a device,
    and a `torus` is what its chips form, if any. `pass_changes` are the passes that change communication, in order.
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
