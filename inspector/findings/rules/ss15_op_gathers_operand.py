"""SS15: an operation for which the partitioner gathers all of an operand."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Collective, Finding, FindingPlace, Report
from ...shardings.situation import CollectiveCause
from ..rule import Rule, finding
from ..support.compiled import is_combined
from ..support.gathering import IDIOMS, only_on, targets_that_gather
from ..support.inserted import dimension_of, moved_by_the_partitioner
from ..support.shapes import elements_of

LOOKUPS = ("gather", "scatter", "scatter-add")


def check(report: Report) -> Iterator[Finding]:
    """Each gather by the partitioner for an operation that works across a cut dimension."""
    seen = set()
    for collective, cause in moved_by_the_partitioner(report):
        if collective.kind != "all-gather":
            continue
        known = cause.operation in IDIOMS
        is_lookup = cause.operation in LOOKUPS  # where only what is looked up is meant, by rows, and not where to look
        crosses = cause.effect == "move" or (cause.effect in ("reshard", "own") and known and not is_lookup)
        moved = [type for type in collective.operand_types if elements_of(type) == cause.elements]
        is_whole = cause.value.startswith("operand") and moved
        if is_lookup and any(type[:1] in "iu" for type in moved):
            continue
        if crosses and is_whole and (known or cause.rule) and (cause.operation, cause.value) not in seen:
            seen.add((cause.operation, cause.value))
            yield _found(report, collective, cause)


def _found(report: Report, collective: Collective, cause: CollectiveCause) -> Finding:
    subject, axes = report.capture.subject, collective.axes or ()
    platform = "" if subject is None else subject.platform
    gathers = targets_that_gather(cause.operation)
    evidence = [
        ("it is", f"{cause.value}, cut as {cause.before}"),
        ("compiled to", f"{collective.kind} {collective.name}, {', '.join(collective.result_types)}"),
    ]
    if gathers:
        evidence.append(("known to gather on", "; ".join(gathers)))
    # What only the CPU does is no reason to change a program.
    only_here = platform == "cpu" and only_on(cause.operation, "cpu")
    times = None if is_combined(collective) else collective.executions
    wire, estimate = collective.wire_bytes, collective.estimate
    return finding(
        RULE,
        FindingPlace(cause.operation, cause.place, "hlo", collective.span),
        f"{cause.operation} {'works across' if cause.effect == 'move' else 'takes'} {dimension_of(cause)},"
        f" which {', '.join(axes)} cuts: all of it is gathered" + (", on CPUs only" if only_here else ""),
        severity="info" if only_here else "warning",
        confidence="proved",
        axes=axes,
        evidence=tuple(evidence),
        fix=IDIOMS.get(cause.operation, "let another dimension be cut, or work on each part in a shard_map"),
        saved_bytes=None if wire is None or times is None else wire * times,
        saved_seconds=None if estimate is None or times is None else estimate.seconds * times,
    )


RULE = Rule(
    id="SS15",
    slug="op-gathers-operand",
    severity="warning",
    finds="An operation along a sharded dimension for which the partitioner gathers the whole operand.",
    why="Every device receives everything, and mostly does all of the work as well.",
    proof="A gather of the compiled program, inserted by the partitioner, belongs to the operation. Which operations"
    " gather on which targets was tried with each supported compiler (findings/support/gathering.toml); what only CPUs"
    " gather is `info` there.",
    faulty='jnp.cumsum(x, axis=0)  # x is P("x")',
    repaired="""def own(x):  # in a shard_map over "x": each part, and what the parts before it add up to
    sums = jnp.cumsum(x, axis=0)
    totals = lax.all_gather(sums[-1], "x")
    before = jnp.arange(len(totals)) < lax.axis_index("x")
    return sums + jnp.sum(jnp.where(before[:, None], totals, 0), axis=0)""",
    check=check,
)
