"""SS23: communication that the partitioner inserted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ...catalog.spellings import KIND_OF
from ...dataflow.meaning import Does, meaning_of
from ...report import Collective, CollectiveCause, Effect, Finding, Fix, Report
from ...report.spelled import over_text
from ...units import format_bytes, known_sum, plural
from ..blocks import gathers_in_blocks
from ..compiled import inserted_collectives, place_in_hlo
from ..fixes.batched import vmapped_lookups
from ..fixes.edits import together
from ..fixes.stacked import row_by_row
from ..rule import Rule, alternatives, finding
from ..suppressions import Comments
from .ss14_ping_pong_reshard import exchanged_twice

DOES: dict[Effect, str] = {
    "sum": "reduces partial sums",
    "reshard": "reshards",
    "move": "works across a sharded dimension",
    "own": "is partitioned otherwise than by a Shardy rule",
}

MAX_OPERATIONS = 6
"""Operations that are listed."""

Inserted = tuple[Collective, CollectiveCause | None]


def check(report: Report) -> Iterator[Finding]:
    """For each kind and axes, the collectives that the partitioner inserted, if they are news.

    Where all are listed those of each line by themselves; those of lines with a suppression in any case.
    """
    groups: dict[tuple[object, ...], list[Inserted]] = {}
    contracted = {total.axes for total in report.communication if total.strategy == "tensor parallelism"}
    planned = [
        total
        for total in report.communication
        if (total.is_planned and total.strategy != "ring exchange")  # the partitioner's are gathers beside a matmul
        or (total.strategy == "reductions" and total.axes in contracted)
    ]
    known = {each.span.start for total in planned for each in total.collectives}
    needless = {each.collective for each in gathers_in_blocks(report)}  # which SS02 and SS14 report
    needless |= {each for twice in exchanged_twice(report) for each in (twice.first, *twice.again)}
    explicit, comments = _explicit_axes(report), Comments(report.program)
    for collective, causes in inserted_collectives(report):
        is_explicit = bool({axis.name for axis in collective.axes or ()} & explicit)
        is_known = collective.span.start in known and not is_explicit
        place = place_in_hlo(collective, *causes[:1]).source
        is_suppressed = comments.about(place, RULE.id, RULE.slug) is not None
        if not report.lists_implicit and (is_known or (collective in needless and not is_suppressed)):
            continue
        apart = report.lists_implicit or is_suppressed
        key = (collective.kind, collective.axes, (place.file, place.line) if apart else None)
        groups.setdefault(key, []).append((collective, causes[0] if causes else None))
    every = [cause for group in groups.values() for _, cause in group if cause is not None]
    fixes = _fixes(report, every)
    rows = tuple(dict.fromkeys(row_by_row(report.program, (each.place for each in every if _is_joined(each)))))
    for group in sorted(groups.values(), key=lambda group: -sum(map(_size, group))):
        yield _found(sorted(group, key=_size, reverse=True), fixes, rows)


def _is_joined(cause: CollectiveCause) -> bool:
    """Return whether it is there for batches that are joined, or split again, along a sharded dimension."""
    is_joined = meaning_of(cause.primitive).of(0) in Does.PLACE | Does.SLICE
    return is_joined and cause.moved is not None and cause.moved.dim == 0


def _size(inserted: Inserted) -> int:
    return inserted[0].step_bytes or 0


def _explicit_axes(report: Report) -> set[str]:
    meshes = report.capture.subject.meshes if report.capture.subject is not None else ()
    types = [(axis.name, axis.type) for mesh in meshes for axis in mesh.axes]
    return {name for name, type in types if type == "explicit"} - {name for name, type in types if type == "auto"}


def _found(group: list[Inserted], lookups: tuple[Fix, ...], rows: tuple[Fix, ...]) -> Finding:
    first, cause = group[0]
    known = dict.fromkeys(each for _, each in group if each is not None)
    total = known_sum(each.step_bytes for each, _ in group)
    axes = first.axes or ()
    return finding(
        RULE,
        place_in_hlo(first, cause),
        f"{plural(len(group), first.kind)} over {over_text(first)} inserted by the partitioner,"
        f" {format_bytes(total)} sent per device per step",
        subject=first.kind,
        confidence="proved",
        axes=axes,
        evidence=tuple(
            islice(
                dict.fromkeys((str(each.operation), f"{_does(each, first)}: {each.moved or ''}") for each in known),
                MAX_OPERATIONS,
            )
        )
        or (("operation", "not known"),),
        related=[place_in_hlo(each) for each, _ in group[1:] if each.source.frame != first.source.frame],
        fixes=(
            *(lookups if any(each.is_lookup for each in known) else ()),
            *(rows if any(map(_is_joined, known)) else ()),
        ),
    )


def _fixes(report: Report, causes: Iterable[CollectiveCause]) -> tuple[Fix, ...]:
    """All lookups by `vmap`, for what some of them communicate; or one of them."""
    places = dict.fromkeys(each.place for each in causes if each.is_lookup)
    edits = dict.fromkeys(found for place in places for found in vmapped_lookups(report.program, place) if found)
    every = together(*edits)
    return alternatives("look up in each element of the batch by itself, with vmap", (every, *edits)) if every else ()


def _is_gathered(cause: CollectiveCause, collective: Collective) -> bool:
    return cause.effect == "sum" and not KIND_OF[collective.kind].reduces


def _does(cause: CollectiveCause, collective: Collective) -> str:
    return "reduces over a sharded dimension" if _is_gathered(cause, collective) else DOES[cause.effect]


RULE = Rule(
    id="SS23",
    slug="implicit-communication",
    severity="info",
    finds="A collective that the partitioner inserted, and that belongs to no known strategy.",
    why="Collectives of a strategy, such as weight gathers, gradient sync or tensor parallelism, are in the table of"
    " communication. Other implicit communication is rarely intended. With --strict, or --select SS23, all of it"
    " is listed; with --strict it is an error unless it is suppressed.",
    proof="The collective is in the partitioner's output but not in its input. Sharding rules identify the operations"
    " that need it. Collectives of one kind over the same axes are one finding, with --strict one per line. Over"
    " Explicit axes, where the program states all shardings, those of strategies are listed too.",
    faulty='jnp.mean(x, axis=0)  # x is P("x"): an all-reduce',
    repaired='lax.psum(jnp.sum(x, axis=0), "x") / rows  # in a shard_map over "x": it is written',
    check=check,
    fails_strict=True,
    tries="lookups by vmap; the rows of joined batches in turn; other specs of arguments, results and constraints,"
    " and the program without a constraint,"
    " the cheapest first by Shardy's own passes; one call of a function that communicates instead"
    " of two. If a change saves communication and keeps the numbers, it is a finding"
    " of its own",
)
