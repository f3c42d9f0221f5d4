"""SS11: a dimension that the mesh axes asked for do not divide."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Finding, FindingPlace, Report, ShardedValue
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """Each constraint, argument and output that was asked to be cut into parts that are not equal."""
    for value in report.shardings:
        shape, sharding = value.type.shape, value.sharding
        if value.requested is None or sharding is None or value.manual:
            continue
        if shape is None or len(shape) != len(sharding.parts):
            continue
        for dim, (size, parts) in enumerate(zip(shape, sharding.parts, strict=True)):
            if size % parts:
                yield _found(value, dim, size, parts)


def _found(value: ShardedValue, dim: int, size: int, parts: int) -> Finding:
    assert value.sharding is not None
    axes = tuple(dict.fromkeys(axis.name for axis in value.sharding.dims[dim].axes))
    padded = -(-size // parts) * parts
    return finding(
        RULE,
        FindingPlace(value.name, value.source, value.stage, value.span),
        f"{value.requested} shards dimension {dim} of {value.type} {parts} ways: {size} is not divisible",
        confidence="proved",
        subject=value.name,
        axes=axes,
        evidence=(
            ("requested", value.requested or ""),
            ("per device", f"{value.local_type}: {padded - size} of {padded} along dimension {dim} are padding"),
        ),
        fixes=advice(f"pad dimension {dim} to {padded} before sharding it, or shard a dimension divisible by {parts}"),
    )


RULE = Rule(
    id="SS11",
    slug="indivisible-constraint",
    severity="warning",
    finds="A requested sharding that does not divide the dimension.",
    why="Inside jit nothing rejects it. The parts are padded and the padding is computed on; at the boundary of the"
    " function, where padding is not possible, every device gets the full array.",
    proof="The size of the dimension, and the number of its parts after propagation.",
    faulty='x = lax.with_sharding_constraint(x, P("x"))  # 17 rows over 8 devices',
    repaired="""padded = jnp.pad(x, ((0, -len(x) % 8), (0, 0)))
x = lax.with_sharding_constraint(padded, P("x"))""",
    check=check,
    is_observation=True,
    by_hand="padding and sharding another dimension are both possible",
)
