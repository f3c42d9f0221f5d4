"""SS36: a sharded array that a jitted function closes over."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.types import jax_type
from ...report import Finding, FindingPlace, Report, SourcePosition
from ...units import format_bytes, known_sum, plural, with_more
from ..rule import MIN_SPLIT_ELEMENTS, Rule, advice, finding


def check(report: Report) -> Iterator[Finding]:
    """The sharded arrays among the constants."""
    capture = report.capture
    typed = [(each, jax_type(each.type)) for each in capture.closed_over]
    held = [(each, type) for each, type in typed if (type.elements or 0) >= MIN_SPLIT_ELEMENTS]
    if not held or capture.subject is None:
        return
    held.sort(key=lambda pair: -(pair[1].bytes or 0))
    first, size = held[0][0], known_sum(type.bytes for _, type in held)
    name = "" if first.path.startswith("constant ") else first.path
    arrays = with_more(name or f"{first.type} as {first.spec}", len(held))
    size_of_one = f" ({first.type}, {first.spec})" if name else ""
    yield finding(
        RULE,
        FindingPlace(capture.subject.function, SourcePosition()),
        f"{capture.subject.function} closes over {arrays}{size_of_one}: a constant, whole on each device",
        confidence="proved",
        subject=name or first.type,
        evidence=(
            ("closed over", ", ".join(f"{each.path} {each.type} as {each.spec}" for each, _ in held[:6])),
            ("per device", f"{format_bytes(size or 0)} in {plural(len(held), 'constant')}, in the program itself"),
        ),
        fixes=advice("pass it as an argument: arguments keep their shardings"),
    )


RULE = Rule(
    id="SS36",
    slug="closed-over-array",
    severity="warning",
    finds="A sharded array that a jitted function takes from the scope around it.",
    why="It becomes a constant of the program, without its sharding: each device holds all of it, computes with all of"
    " it, and the program is compiled again for another one.",
    proof="The constants of the function's jaxpr, which are the arrays themselves.",
    faulty="""step = jax.jit(lambda params: loss(params, batch))""",
    repaired="""step = jax.jit(loss)
step(params, batch)""",
    check=check,
    by_hand="all callers change with the arguments",
    saves="memory",
    is_observation=True,
)
