"""The collectives of the compiled program: where they are, and what they cost."""

from __future__ import annotations

from dataclasses import replace

from ...catalog.spellings import primitives_of
from ...correspondence.collectives import is_combined
from ...cost.collectives import estimate
from ...cost.places import machine_of
from ...report import BoundaryOrigin, Certainty, Collective, CollectiveCause, FindingPlace, Kind, Report
from ...units import known_product
from ..rule import Saving, in_all

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


def saving(*collectives: Collective | None, times: int | None = 1, combined: bool = True) -> Saving:
    """Return the saving of running these so many times less, or as often as they run where `times` is None.

    Not known of those that were made of several unless `combined`.
    """
    savings: list[Saving] = []
    for each in collectives:
        count = None if each is None else each.executions if times is None else times
        if each is None or count is None or (is_combined(each) and not combined):
            return Saving()
        seconds = None if each.estimate is None else each.estimate.seconds * count
        savings.append(Saving(known_product(each.wire_bytes, count), seconds))
    return in_all(savings)


def saved_seconds(report: Report, now: Collective | None, instead: Kind, size: int | None = None) -> float | None:
    """The time that another kind of collective saves over the same groups, with the same operand or one of a `size`."""
    machine = machine_of(report.program)
    if machine is None or now is None or now.estimate is None:
        return None
    other = replace(now, kind=instead)
    then = estimate(other if size is None else replace(other, bytes_in=size, bytes_out=size), machine)
    return None if then is None else now.estimate.seconds - then.seconds
