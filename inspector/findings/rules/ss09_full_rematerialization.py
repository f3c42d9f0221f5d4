"""SS09: the partitioner gathers everything everywhere, and says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ...ir.types import jax_type, types_text
from ...report import WRITTEN, Collective, Finding, FindingPlace, Fix, Report, SourcePosition
from ...shardings.collective_causes import causes_of
from ..compiled import certainty, compiled_to, in_hlo, place_in_hlo
from ..fixes.constraints import through_both
from ..rule import Rule, finding

_SAYS = re.compile(r"full rematerialization", re.IGNORECASE)
_FROM_TO = re.compile(r"from sharding (\{.*?\}) to (\{.*?\}) (?:efficiently|without|for)")
_OPERATION = re.compile(r"%?(\S+) = (\w+\[[\d,]*\])")
_OP_NAME = re.compile(r'op_name="([^"]*)"')


def check(report: Report) -> Iterator[Finding]:
    """Each of the compiler's messages about it, with the line of the gather that it means."""
    seen = set()
    for placed in report.messages:
        text = placed.message.text
        # What goes to one device alone goes to the host: SS16 tells of it.
        if _SAYS.search(text) and "to {maximal" not in text and text not in seen:
            seen.add(text)
            yield _found(report, text, placed.source)


def _found(report: Report, text: str, source: SourcePosition) -> Finding:
    shardings, operation, op_name = _FROM_TO.search(text), _OPERATION.search(text), _OP_NAME.search(text)
    local = jax_type(operation[2]).shape if operation is not None else None
    gather = _gather(report, local, op_name[1] if op_name is not None else "")
    named = op_name[1].rpartition("/")[2] if op_name is not None else _moved(report, gather, operation)
    evidence = [("compiler", text if len(text) < 300 else f"{text[:300]}…")]
    if shardings is not None:
        evidence = [("from", shardings[1]), ("to", shardings[2]), *evidence]
    if gather is not None:
        evidence.append(compiled_to(gather, f", {types_text(gather.result_types)}"))
    place = FindingPlace(named, source)
    if gather is not None:
        place = replace(place_in_hlo(gather), what=named)
    return finding(
        RULE,
        place,
        f"resharding {named} gathers the full value on every device",
        confidence=certainty(gather),
        subject=named,
        axes=() if gather is None or gather.axes is None else gather.axes,
        evidence=evidence,
        fixes=(
            Fix(
                "reshard in two constraints: first shard further over the requested axes, which moves nothing, then"
                " gather over the others",
                () if shardings is None else through_both(report, place.source, shardings[1], shardings[2]),
            ),
        ),
    )


def _moved(report: Report, gather: Collective | None, operation: re.Match[str] | None) -> str:
    """Return the resharded value by its path, or by its type: XLA's name of it says nothing."""
    causes = () if gather is None else causes_of(report.program, gather)
    moved = next((cause.moved.value for cause in causes if cause.moved is not None), None)
    if moved is not None and moved.made_by is None:
        return str(moved)
    return "a value" if operation is None else f"{jax_type(operation[2])} per device"


def _gather(report: Report, local: tuple[int, ...] | None, op_name: str) -> Collective | None:
    inserted = [c for c in in_hlo(report, "all-gather") if c.origin not in WRITTEN]
    gathers = [c for c in inserted if local is not None and local in [type.shape for type in c.operand_types]]
    named = [c for c in gathers if op_name and c.op_name == op_name]
    found = named or gathers
    return found[0] if len(found) == 1 else None


RULE = Rule(
    id="SS09",
    slug="full-rematerialization",
    severity="warning",
    finds="A change of sharding that the partitioner can only make by gathering the full value on every device.",
    why="Every device receives and briefly holds the full value, and discards most of it at once.",
    proof="The partitioner's own warning. `proved` if the compiled program has exactly one such gather.",
    faulty='y = 2 * lax.with_sharding_constraint(x, P("data", None))  # x is P(None, "model")',
    repaired="""x = lax.with_sharding_constraint(x, P("data", "model"))
y = 2 * lax.with_sharding_constraint(x, P("data", None))""",
    check=check,
    tries="an additional constraint to the axes of both shardings",
)
