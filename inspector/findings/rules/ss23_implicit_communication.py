"""SS23: communication that the partitioner inserted."""

from __future__ import annotations

from collections.abc import Iterator

from ....parsers.sharding_syntax.mesh import join_axes
from ...report import Collective, CollectiveCause, Effect, Finding, Report
from ...units import format_bytes, plural
from ..rule import Rule, advice, finding
from ..support.compiled import inserted_collectives, place_in_hlo, saving

DOES: dict[Effect, str] = {
    "sum": "reduces partial sums",
    "reshard": "reshards",
    "move": "works across a sharded dimension",
    "own": "is partitioned without a Shardy rule",
}

INSTEAD: dict[Effect, str] = {
    "sum": "keep the contracting dimension unsharded",
    "reshard": "make both shardings agree",
    "move": "keep that dimension unsharded",
    "own": "add a constraint on its operands",
}


def check(report: Report) -> Iterator[Finding]:
    """For each line, kind and axes, the collectives that the partitioner inserted."""
    groups: dict[tuple[object, ...], list[tuple[Collective, CollectiveCause | None]]] = {}
    for collective, causes in inserted_collectives(report):
        key = (collective.kind, collective.axes, collective.source.file, collective.source.line)
        groups.setdefault(key, []).append((collective, causes[0] if causes else None))
    for group in groups.values():
        yield _found(group)


def _found(group: list[tuple[Collective, CollectiveCause | None]]) -> Finding:
    first, cause = group[0]
    known = dict.fromkeys(each for _, each in group if each is not None)
    total = saving(*(each for each, _ in group), times=None).bytes
    axes = first.axes or ()
    return finding(
        RULE,
        place_in_hlo(first),
        f"{plural(len(group), first.kind)} over {join_axes(axes) or '?'} inserted by the partitioner,"
        f" {format_bytes(total)} sent per device",
        confidence="proved",
        axes=axes,
        evidence=tuple((str(each.operation), f"{DOES[each.effect]}: {each.moved or ''}") for each in list(known)[:6])
        or (("operation", "not known"),),
        fixes=advice(
            ("" if cause is None else f"{INSTEAD[cause.effect]}, or ")
            + "suppress with # shardscope: ignore[SS23] on the line"
        ),
    )


RULE = Rule(
    id="SS23",
    slug="implicit-communication",
    severity="info",
    finds="A collective that the partitioner inserted.",
    why="It is what propagation is for, and mostly right. But a change of any other line may add more: with"
    " --strict it is an error unless it is suppressed.",
    proof="It is in what came out of the partitioner, and not in what went in. The operations that it is there for are"
    " found by their sharding rules.",
    faulty='jnp.mean(x, axis=0)  # x is P("x"): an all-reduce',
    repaired='lax.psum(jnp.sum(x, axis=0), "x") / rows  # in a shard_map over "x": it is written',
    check=check,
    fails_strict=True,
    by_hand="it is a note: suppress what is intended",
)
