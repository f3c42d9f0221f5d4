"""The collectives of the compiled program: where they are, and what they cost."""

from __future__ import annotations

from ...catalog.spellings import primitives_of
from ...report import BoundaryOrigin, Certainty, Collective, CollectiveCause, FindingPlace, Kind, Report
from ...units import known_sum
from ..rule import Saving

GATHERS = primitives_of("all-gather")

SUMS = ("psum", "psum_invariant", "psum2", "unreduced_psum")


def is_compiled(report: Report) -> bool:
    """Return whether there is a compiled program."""
    return report.capture.stage("hlo") is not None


def in_hlo(report: Report, kind: Kind | None = None) -> list[Collective]:
    """The collectives of the compiled program, of one kind or of all; of the partitioned one if the backend refused."""
    stage = "hlo" if is_compiled(report) else "hlo-spmd"
    return [each for each in report.collectives if each.stage == stage and kind in (None, each.kind)]


def place_in_hlo(collective: Collective, of: CollectiveCause | None = None) -> FindingPlace:
    """A collective as what a finding is about; one without a line by what is known `of` it."""
    if of is not None and collective.source.frame is None and isinstance(of.operation, BoundaryOrigin):
        return FindingPlace(str(of.operation), of.place, collective.stage, collective.span)
    return FindingPlace(collective.name, collective.source, collective.stage, collective.span)


def certainty(compiled: Collective | None) -> Certainty:
    """Return how certain a statement about the program is, given its compiled collective."""
    return "likely" if compiled is None else "proved"


def compiled_to(compiled: Collective | None, then: str = "") -> tuple[str, str]:
    """Return what something was compiled to, as evidence, and the uses behind it."""
    if compiled is None:
        return "compiled to", "not compiled"
    by = "compiled to" if compiled.stage == "hlo" else "partitioned to"
    return by, f"{compiled.kind} {compiled.name}{then}"


def on_another_target(report: Report, words: str) -> tuple[tuple[str, str], ...]:
    """Return what another target's compiler may do, as evidence where this target is the CPU."""
    return (("target", words),) if platform_of(report) == "cpu" else ()


def platform_of(report: Report) -> str:
    """The platform of the target; empty where nothing was run."""
    return "" if report.capture.subject is None else report.capture.subject.platform


def at_most(*collectives: Collective | None) -> Saving:
    """What some collectives cost in one run: a change of them saves no more, and a trial says how much."""
    known = [each for each in collectives if each is not None]
    return Saving(
        known_sum(each.step_bytes for each in known) or None, known_sum(each.step_seconds for each in known) or None
    )
