"""SS14: a value that is exchanged between devices, and then as before."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.spellings import functions_of
from ...report import Finding, Fix, Report
from ...shardings.collective_causes import causes_of
from ..fixes.calls import call_to_leave_out
from ..fixes.constraints import without_constraints
from ..fixes.edits import together, without_call
from ..rule import Rule, advice, finding
from ..support.compiled import at_most, compiled_to, place_in_hlo
from ..support.exchanges import Exchanges, exchanged_twice


def check(report: Report) -> Iterator[Finding]:
    """The exchanges that others over the same devices follow, those with the same fixes together."""
    groups: dict[object, list[Exchanges]] = {}
    for each in exchanged_twice(report):
        groups.setdefault((each.first.source, _fixes(report, each)), []).append(each)
    for group in groups.values():
        yield _found(report, group)


def _fixes(report: Report, twice: Exchanges) -> tuple[Fix, ...]:
    if not twice.is_written:
        return without_constraints(report, twice.first) or advice("make the shardings before and after it agree")
    functions = functions_of(twice.first.kind)
    calls = [call_to_leave_out(report.program, each.source, functions) for each in (twice.first, *twice.again)]
    edits = [without_call(report.program, call) for call in calls]
    return (Fix("remove both", together(*edits) if all(edits) else ()),)


def _found(report: Report, group: list[Exchanges]) -> Finding:
    first = group[0].first
    compiled = dict.fromkeys(each for twice in group for each in (twice.first, *twice.again))
    causes = () if group[0].is_written else causes_of(report.program, first)
    moved = next((cause.moved.value for cause in causes if cause.moved is not None), first.result_types[0])
    axes = tuple(dict.fromkeys(axis for each in compiled for axis in each.axes or ()))
    over = ", ".join(dict.fromkeys(axis.name for axis in axes))
    nearest = max(compiled, key=lambda each: len(each.source.stack))  # the partitioner's may have the caller's line
    verb = "permuted" if {each.kind for each in compiled} == {"collective-permute"} else "exchanged"
    return finding(
        RULE,
        place_in_hlo(nearest),
        f"{moved} is {verb} over {over} and back, elementwise operations in between",
        confidence="likely",
        axes=axes,
        subject=str(moved),
        related=[place_in_hlo(each) for each in compiled if each is not nearest],
        evidence=[compiled_to(each) for each in compiled],
        fixes=_fixes(report, group[0]),
        saves=at_most(*compiled),
    )


RULE = Rule(
    id="SS14",
    slug="ping-pong-reshard",
    severity="warning",
    finds="A value that is resharded to another dimension and back, with only elementwise operations in between.",
    why="Two all-to-alls, or permutations where axes trade places, each of which moves nearly all of"
    " the value. XLA does not cancel them.",
    proof="In the partitioner's output, an all-to-all over the same devices, or the inverse of a permutation, is all"
    " that becomes of an exchanged value, through elementwise operations and reshapes; the compiled program has both."
    " Whether both can be left out, the trial decides.",
    faulty="""y = lax.with_sharding_constraint(2 * x, P(None, "x"))  # x is P("x", None)
return lax.with_sharding_constraint(jnp.sin(y), P("x", None))""",
    repaired='return lax.with_sharding_constraint(jnp.sin(2 * x), P("x", None))',
    check=check,
    tries="the program without the constraint in between, or without both exchanges",
)
