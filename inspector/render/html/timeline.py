"""The time line of a step as bars: loops, computing, waiting, transfers and copies, each in a lane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...report import Collective, Report
from ...report.spelled import transfer_text
from ...report.timeline import Activity, Timeline
from ...units import format_bytes, format_seconds, grouped, plural
from .elements import element, section, text

MAX_BARS = 2500
MAX_ACTIVITIES = 100_000
FINEST = (1 / 20_000, 1 / 5_000, 1 / 2_000, 1 / 1_000, 1 / 500, 1 / 250)
"""Shares of the step below which a bar joins the one before it on its lane, until there are `MAX_BARS` at most."""

FAINTEST = 0.1
"""Least strength of a bar's colour, which shows how much of its time is busy."""


@dataclass(slots=True)
class Bar:
    """Some activities of one lane that follow each other; of more than one, `busy` are the seconds that they take."""

    lane: str
    style: str
    start: float
    end: float
    title: str
    says: str
    count: int = 1
    link: str = ""
    busy: float = 0.0

    def __post_init__(self) -> None:
        self.busy = self.busy or self.end - self.start


def timeline_section(report: Report, prefix: str, links: Mapping[Collective, str]) -> str:
    """The bars; empty for a device that there are no figures for. `links` are the anchors of collectives."""
    found = report.on_demand.timeline()
    if found is None or not found.activities or not found.total:
        return ""
    lanes = grouped((bar.lane, bar) for bar in _few(list(_bars(found, report, links)), found.total))
    loops, transfers = (sorted(name for name in lanes if name.startswith(kind)) for kind in ("loops", "transfers"))
    order = (*loops, "compute", "waits", *transfers, "copies")
    drawn = _memory(found) + "".join(_lane(name, lanes[name], found.total) for name in order if name in lanes)
    exposed = f", {format_seconds(found.exposed)} exposed" if found.exposed else ""
    said = f"{format_seconds(found.total)} per step on {found.chip}, by the cost model{exposed}"
    said += f"; only the first {MAX_ACTIVITIES:,} activities" if found.is_longer(MAX_ACTIVITIES) else ""
    inside = element("p", text(said)) + element(
        "div", element("div", drawn, "track"), "lanes", **{"data-seconds": f"{found.total:.6g}"}
    )
    return section(f"{prefix}timeline", "Time line", inside)


def _memory(found: Timeline) -> str:
    """The bytes that are alive, as steps; empty where that is not known."""
    if not found.peak:
        return ""
    corners, height = ["0,100"], 100.0
    for moment, size in found.memory:
        at = 1000 * moment / found.total
        corners.append(f"{at:.2f},{height:.2f}")
        height = 100 - 96 * size / found.peak
        corners.append(f"{at:.2f},{height:.2f}")
    corners += [f"1000,{height:.2f}", "1000,100"]
    area = element("polygon", "", points=" ".join(corners))
    says = f"at most {format_bytes(found.peak)} alive, before values share buffers"
    picture = element("svg", element("title", text(says)) + area, viewBox="0 0 1000 100", preserveAspectRatio="none")
    return element("div", element("b", text("memory")) + element("div", picture, "bars memory"), "lane", title=says)


def _bars(found: Timeline, report: Report, links: Mapping[Collective, str]) -> Iterator[Bar]:
    around: list[float] = []
    for moment in found.unrolled(MAX_ACTIVITIES):
        activity, start, end = moment.activity, moment.start, moment.end
        title = _title(activity)
        says = f"{title}, {format_seconds(activity.seconds)} from {format_seconds(start)}"
        place = activity.source.function_text(report.script)
        says += f", {place}" if place else ""
        if activity.inside:
            around = [until for until in around if until > start]
            yield Bar(f"loops {len(around) + 1}" if around else "loops", "loop", start, end=end, title=title, says=says)
            around.append(end)
        elif activity.lane == "compute":
            yield Bar("compute", "compute", start, end=end, title=title, says=says)
        elif activity.lane == "copies":
            yield Bar("copies", "copies", start, end=end, title=title, says=says)
        else:
            says += f", the device waits {format_seconds(activity.exposed)} for it" if activity.exposed else ", hidden"
            link = links.get(activity.collectives[0], "") if activity.collectives else ""
            yield Bar(f"transfers {moment.beside + 1}", "links", start, end=end, title=title, says=says, link=link)
        if activity.exposed:
            yield Bar("waits", "waits", end - activity.exposed, end, f"waits for {title}", f"waits for {says}")


def _title(activity: Activity) -> str:
    if activity.collectives:
        return transfer_text(activity.collectives)
    if activity.inside and activity.instruction.opcode == "while":
        return f"loop × {'?' if activity.rounds is None else activity.rounds}"
    return activity.instruction.name


def _few(bars: Sequence[Bar], total: float) -> list[Bar]:
    """At most `MAX_BARS`, as fine as that allows."""
    merged: list[Bar] = []
    for finest in FINEST:
        merged = list(_merged(bars, total * finest))
        if len(merged) < MAX_BARS:
            break
    return merged


def _merged(bars: Iterable[Bar], finest: float) -> Iterator[Bar]:
    """Bars that are too short to be seen, together; beyond `MAX_BARS` no more are begun."""
    last: dict[str, Bar] = {}
    begun = 0
    for bar in bars:
        before = last.get(bar.lane)
        if before is not None and bar.style != "loop" and (begun >= MAX_BARS or _joins(before, bar, finest)):
            before.end = max(before.end, bar.end)
            before.count += 1
            before.busy += bar.busy
            span = format_seconds(before.end - before.start)
            before.says = f"{plural(before.count, 'instruction')}, {format_seconds(before.busy)} of {span}"
            before.title = plural(before.count, "instruction")
            continue
        if begun >= MAX_BARS:
            continue
        begun += 1
        if before is not None:
            yield before
        last[bar.lane] = replace(bar)
    yield from last.values()


def _joins(before: Bar, bar: Bar, finest: float) -> bool:
    """Return whether two bars, and the gap between them, are too short to be seen."""
    return max(bar.end - bar.start, bar.start - before.end, before.end - before.start) < finest


def _lane(name: str, bars: list[Bar], total: float) -> str:
    drawn = "".join(_drawn(bar, total) for bar in sorted(bars, key=lambda bar: (bar.start, -bar.end)))
    return element("div", element("b", text(name)) + element("div", drawn, "bars"), "lane")


def _drawn(bar: Bar, total: float) -> str:
    at = f"left:{bar.start / total:.4%};width:{(bar.end - bar.start) / total:.4%}"
    if bar.count > 1 and bar.style != "loop":
        # As full as the time is: what computes a tenth of the time must not look busy.
        at += f";opacity:{max(bar.busy / (bar.end - bar.start), FAINTEST):.2f}"
    # Where several are drawn as one, their number is no name, and their colour too faint to write on.
    named = {"data-name": bar.title} if bar.count == 1 else {}
    title = text(bar.title) if named and bar.end - bar.start > total / 100 else ""
    if bar.link:
        return element("a", title, f"bar {bar.style}", style=at, title=bar.says, href=f"#{bar.link}", **named)
    return element("div", title, f"bar {bar.style}", style=at, title=bar.says, **named)
