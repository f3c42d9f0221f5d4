"""SS23: communication that nobody wrote."""

from __future__ import annotations

from collections.abc import Iterator

from ....parsers.sharding_syntax.mesh import join_axes
from ...report import Collective, CollectiveCause, Effect, Finding, Report
from ...units import format_bytes, plural
from ..rule import Rule, advice, finding
from ..support.compiled import inserted_collectives, place_in_hlo, saving

DOES: dict[Effect, str] = {
    "sum": "adds up the parts of a sum",
    "reshard": "brings a value into another sharding",
    "move": "works across a dimension that is cut",
    "own": "is how the partitioner divides the work",
}

INSTEAD: dict[Effect, str] = {
    "sum": "leave the summed dimension whole",
    "reshard": "let both sides ask for the same sharding",
    "move": "leave that dimension whole",
    "own": "say by a constraint how it is to be divided",
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
        f"{plural(len(group), first.kind)} over {join_axes(axes) or '?'}, {format_bytes(total)} sent by each device,"
        " that nobody wrote",
        confidence="proved",
        axes=axes,
        evidence=tuple((each.operation, f"{DOES[each.effect]}: {each.value}") for each in list(known)[:6])
        or (("operation", "not known"),),
        fixes=advice(
            ("" if cause is None else f"{INSTEAD[cause.effect]}; or ")
            + "say that it is meant: # shardscope: ignore[SS23] on the line"
        ),
    )


RULE = Rule(
    id="SS23",
    slug="implicit-communication",
    severity="info",
    finds="A collective that the partitioner inserted.",
    why="It is what propagation is for, and mostly right. But it may come with any change of a line elsewhere: with"
    " --strict it is an error where it is not allowed by name.",
    proof="It is in what came out of the partitioner, and not in what went in. The operations that it is there for are"
    " found by their sharding rules.",
    faulty='jnp.mean(x, axis=0)  # x is P("x"): an all-reduce',
    repaired='lax.psum(jnp.sum(x, axis=0), "x") / rows  # in a shard_map over "x": it is written',
    check=check,
    fails_strict=True,
    by_hand="it is for information: what is meant, is said by a comment",
)
