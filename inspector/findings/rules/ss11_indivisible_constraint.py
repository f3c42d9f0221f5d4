"""SS11: a dimension that the mesh axes asked for do not divide."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Finding, FindingPlace, Report, ShardedValue
from ..fixes.calls import call_at, operand_text
from ..rule import Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """Each constraint, argument and output that was asked to be cut into parts that are not equal."""
    for value in report.shardings:
        yield from (_found(report, value, dim) for dim in value.uneven)


def _found(report: Report, value: ShardedValue, dim: int) -> Finding:
    assert value.sharding is not None
    assert value.type.shape is not None
    size, parts = value.type.shape[dim], value.sharding.parts[dim]
    call = call_at(report.program, value.source, ("with_sharding_constraint",)) if value.role == "constraint" else None
    name = operand_text(call, value.name)
    axes = tuple(dict.fromkeys(axis.name for axis in value.sharding.dims[dim].axes))
    padded = -(-size // parts) * parts
    return finding(
        RULE,
        FindingPlace(value.name, value.source, value.stage, value.span),
        f"{value.requested} shards dimension {dim} of {name} {value.type} {parts} ways: {size} is not divisible",
        confidence="proved",
        subject=name,
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
    tries="other specs of the constraint, as of a dimension that divides",
)
