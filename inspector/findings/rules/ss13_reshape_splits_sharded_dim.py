"""SS13: a reshape that takes a sharded dimension apart, or puts it together with others, across the cuts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...report import (
    Collective,
    CollectiveCause,
    Finding,
    FindingPlace,
    MovedDimension,
    NamedOperation,
    Report,
    SourcePosition,
)
from ...report.spelled import over_text
from ..compiled import at_most, dimension_of, moved_by_the_partitioner
from ..fixes.calls import call_at
from ..rule import Rule, advice, finding

FUNCTIONS = ("reshape", "ravel", "flatten", "rearrange", "squeeze", "expand_dims")


def check(report: Report) -> Iterator[Finding]:
    """For each reshape, the collectives that it, or what it cut in pieces of an axis, makes necessary."""
    found: dict[tuple[SourcePosition, MovedDimension | None], list[tuple[Collective, CollectiveCause]]] = {}
    for collective, cause in moved_by_the_partitioner(report):
        if cause.effect == "reshard" and (_is_at_fault(cause) or _is_of_pieces(collective, cause)):
            found.setdefault((cause.place, cause.moved), []).append((collective, cause))
    for group in found.values():
        yield _found(report, group)


def _is_at_fault(cause: CollectiveCause) -> bool:
    """Return whether it serves the operand of a reshape that does not pass the axis on in parts.

    What a reshape gives is moved for those that use it, by whatever name. XLA for TPUs takes a reshape behind other
    operations, by the name of which it goes: there it may be gathered for what comes next, unless it has to be.
    Blocks that are blocks of the result are moved for what comes next, too.
    """
    made = cause.operation
    is_behind = isinstance(made, NamedOperation) and made.opcode == "reshape" and cause.is_merged
    is_taken = cause.moved is None or cause.moved.is_operand
    is_of_reshape = (is_behind or cause.primitive == "reshape") and is_taken
    return is_of_reshape and not cause.is_kept and all(each.axis.sub is None for each in cause.against)


def _is_of_pieces(collective: Collective, cause: CollectiveCause) -> bool:
    """Return whether a reshape's result is sharded over parts of an axis, which no user writes.

    Where it is gathered, and no other operand is cut otherwise, a constraint asks for that.
    """
    made_by = None if cause.moved is None else cause.moved.made_by
    is_of_parts = any(axis.sub is not None for axis in collective.axes or ())
    return str(made_by) == "reshape" and is_of_parts and (collective.kind != "all-gather" or bool(cause.against))


def _found(report: Report, group: list[tuple[Collective, CollectiveCause]]) -> Finding:
    collective, cause = group[0]
    axes = tuple(dict.fromkeys(axis.name for each, _ in group for axis in each.axes or ()))
    along = ", ".join(axes)
    call = call_at(report.program, cause.place, FUNCTIONS)
    here = "the reshape" if call is None else ast.unparse(call[1])
    kinds = (f"{each.kind} over {over_text(each)}" for each, _ in group[:6])
    return finding(
        RULE,
        FindingPlace(str(cause.operation), cause.place, collective.stage, collective.span),
        f"reshape splits or merges {dimension_of(cause)} across its shards over {along}",
        confidence="proved",
        subject=dimension_of(cause),
        axes=axes,
        evidence=(
            ("rule", cause.rule or "none"),
            ("sharded as", str(cause.before or "?")),
            ("compiled to", ", ".join(kinds)),
        ),
        fixes=advice(
            f"in {here}, put the dimension sharded over {along} first, with a size divisible by {along}, and"
            " transpose before or after it for the needed order"
        ),
        saves=at_most(*(each for each, _ in group)),
    )


RULE = Rule(
    id="SS13",
    slug="reshape-splits-sharded-dim",
    severity="warning",
    finds="A reshape that splits or merges a sharded dimension across the boundaries of its shards.",
    why="The devices' blocks are not blocks of the result: the partitioner gathers the operand, or exchanges pieces"
    " along parts of the axis.",
    proof="A collective of the compiled program belongs to the reshape, whose operand is sharded over the collective's"
    " axes, or to the use of a result that is sharded over parts of an axis.",
    faulty='heads = x.reshape(tokens, 2, 16)  # the last dimension of x, 32, is sharded over "x" of 4',
    repaired="heads = x.reshape(tokens, 4, 8)",
    check=check,
    by_hand="other code may depend on the order of the dimensions. So the saving is that of the collectives here, and"
    " not what another order sends or spares elsewhere",
)
