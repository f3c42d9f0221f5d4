"""SS14: a value that is cut along another dimension, and then as before."""

from __future__ import annotations

from collections.abc import Iterator

from ...report import Finding, Report
from ..fixes.constraints import inserted_detours
from ..rule import Rule


def check(report: Report) -> Iterator[Finding]:
    """Each dimension that an axis leaves for another one, and to which it returns before that makes a difference."""
    for found in inserted_detours(report, "all-to-all"):
        detour = found.detour
        yield found.finding(
            RULE,
            f"{found.name(detour.source)}: {detour.axis} moves from dimension {detour.dim} to"
            f" {detour.elsewhere}, and back for nothing",
            ("in between", "back at"),
            ", and another",
            times=2,
        )


RULE = Rule(
    id="SS14",
    slug="ping-pong-reshard",
    severity="warning",
    finds="A value that is cut along another dimension and, with only element by element work in between, as before.",
    why="Two all-to-alls, each of which moves nearly all of the value. XLA does not cancel them.",
    proof="After propagation an axis cuts one dimension of a value, another one of what is made of it element by"
    " element, and the first one again of all that is made of that. `proved` when the compiled program has the"
    " all-to-all; silent when the compiler did without it.",
    faulty="""y = lax.with_sharding_constraint(2 * x, P(None, "x"))  # x is P("x", None)
return lax.with_sharding_constraint(jnp.sin(y), P("x", None))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x", None))',
    check=check,
    tries="no constraint in between",
)
