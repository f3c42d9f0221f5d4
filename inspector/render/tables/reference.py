"""The values that differ from those of a run on one device."""

from __future__ import annotations

from collections.abc import Sequence

from ....parsers.record import Record
from ...capture.protocol.values import Apart, Reference
from ...report import ProbedValue, Report, file_and_line
from ...units import grouped, plural, ranges_text, with_more
from ..table import Cell, Piece, Row, Table, titled
from .device_values import devices_text

TITLE = "Against a run on one device"
Place = tuple[tuple[str, ...], str, int]
"""The equations around a value, the side of the last one on which it is, and its number there."""

FAR_OFF = 1e100
"""Multiples that no number has: of a NaN, an infinity, another shape or another integer."""

LONG = 1e6
"""Multiples that are written with an exponent."""


class Deviation(Record, frozen=True):
    """One value in all iterations and on all devices where it differs; `first` is the first in program order."""

    differs: tuple[Apart, ...]
    value: ProbedValue | None
    is_first: bool

    @property
    def label(self) -> str:
        """The value's name, or that of the operation where it was not recorded."""
        each = self.differs[0]
        if self.value is not None:
            return self.value.label
        return f"result of {each.primitive}" if each.primitive else f"{each.when} {each.position}"

    def line(self, script: str | None) -> str:
        """The line of source that computes it; empty where that is not known."""
        if self.value is not None:
            return self.value.source.text(script)
        line = self.differs[0].line
        if line is None:
            return ""
        return f"line {line.line}" if line.file == script else file_and_line(line.file, line.line)

    @property
    def factor(self) -> float | None:
        """The number by which the value of one device is multiplied, in all iterations."""
        factors = {round(each.factor, 3) for each in self.differs if each.factor is not None}
        return factors.pop() if len(factors) == 1 and all(each.factor is not None for each in self.differs) else None

    @property
    def amount(self) -> float:
        """The largest distance, as a multiple of what rounding explains."""
        return max(each.distance for each in self.differs)

    @property
    def place(self) -> Place:
        """The value's place."""
        each = self.differs[0]
        return each.path, each.when, each.position

    @property
    def times(self) -> str:
        """The largest distance as a multiple; of infinities, NaNs and other integers without a number."""
        if self.amount > FAR_OFF:
            return "far off"
        return f"{self.amount:,.0f}×" if 100 <= self.amount < LONG else f"{self.amount:.3g}×"

    @property
    def off_by(self) -> str:
        """The same, with what it is a multiple of."""
        if self.factor is not None:
            return f"a factor of {self.factor:.4g}"
        return self.times if self.amount > FAR_OFF else f"{self.times} the rounding tolerance"

    @property
    def iterations(self) -> str:
        """The iterations in which it differs; of nested loops the first."""
        found = sorted({each.iteration for each in self.differs})
        if all(len(each) == 1 for each in found):
            return ranges_text([number for (number,) in found])
        return with_more(", ".join(map(str, found[0])), len(found))

    @property
    def devices(self) -> str:
        """The devices whose values differ."""
        places = {each.coordinates for each in self.differs}
        if self.value is None:
            return "all" if places == {()} else plural(len(places), "device")
        probe = self.value.probe
        numbers = [number for number, shard in enumerate(probe.shards) if shard.coordinates in places]
        if () in places or len(numbers) == len(probe.shards):
            return "all"
        return devices_text(probe, numbers, has_part=False) if numbers else plural(len(places), "device")


def deviations(report: Report) -> Sequence[Deviation]:
    """The first value that differs in program order, then the others, largest deviation first."""
    found = report.capture.reference
    differs = () if found is None or found.undefined is not None else found.differs
    values: dict[Place, ProbedValue] = {(v.probe.path, v.probe.when, v.probe.position): v for v in report.probes}
    places = grouped(((each.path, each.when, each.position), each) for each in differs)
    first = next(iter(places), None)
    deviating = [Deviation(tuple(those), values.get(place), place == first) for place, those in places.items()]
    return sorted(deviating, key=lambda each: (not each.is_first, -each.amount))


def differing_text(report: Report) -> str:
    """`3 of 40 values differ from a run on one device, first result [0] (line 7)`; empty where none does."""
    found = report.capture.reference
    ranked = deviations(report)
    if found is None or not ranked:
        return ""
    more = "more than " if found.left_out else ""
    count = len({(each.path, each.when, each.position, each.iteration) for each in found.differs})
    first = ranked[0]
    line = first.line(report.script)
    name = f"{first.label}{f' ({line})' if line else ''}, by {first.off_by}"
    verb = "differs" if count == 1 else "differ"
    return f"{more}{count} of {plural(found.compared, 'value')} {verb} from a run on one device, first {name}"


def equal_text(found: Reference) -> str:
    """`40 values equal to a run on one device`, where none differs."""
    more = f", {found.amplified} apart only by amplified rounding" if found.amplified else ""
    return f"{plural(found.compared - found.amplified, 'value')} equal to a run on one device{more}"


def reference(report: Report) -> Table:
    """The first value that differs in program order, then the others, farthest off first; or that none does."""
    found = report.capture.reference
    return Table(
        id="reference",
        title="One device",
        columns=titled("", "value", "iteration", "devices", "off by", "from"),
        rows=tuple(Row(_cells(each, report.script), each) for each in deviations(report)),
        heading="" if found is None else _heading(report, found),
        empty_text="" if found is None else _empty(found),
        most=8,
        unit="value",
    )


def _heading(report: Report, found: Reference) -> str:
    text = differing_text(report)
    ranked = ", largest after the first" if len(deviations(report)) > 1 else ""
    return f"{TITLE}: {text.partition(' from a run')[0]}{ranked}" if text else TITLE


def _empty(found: Reference) -> str:
    if found.undefined is not None:
        return f"not defined: {found.undefined}"
    return equal_text(found)


def _cells(each: Deviation, script: str | None) -> tuple[Cell, ...]:
    return (
        Piece("▲ first", "error") if each.is_first else "",
        each.label,
        each.iterations,
        each.devices,
        Piece(each.off_by, amount=each.amount),
        each.line(script),
    )
