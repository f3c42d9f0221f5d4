"""The table of links from compiled collectives to the stages before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...report.links import Link, LinkedPart
from ..table import Column, Piece, Role, Row, Table

STAGES = {"hlo-spmd": "partitioned", "sdy": "propagated", "stablehlo": "lowered", "jaxpr": "jaxpr"}

ROLES: dict[str, Role] = {"exact": "good", "name": "", "shape": "warning", "none": "warning"}


def links_table(parts: Sequence[LinkedPart]) -> Table:
    """A row for each part of each collective, in text order."""
    return Table(
        id="links",
        title="Links",
        columns=(
            Column("collective", 12, 5),
            Column("part", 8, 4),
            *(Column(title, 10, 3) for title in STAGES.values()),
            Column("confidence", 5, 6),
        ),
        rows=tuple(map(_row, parts)),
        heading="Links of compiled collectives",
        empty_text="There is no compiled collective.",
    )


def _row(part: LinkedPart) -> Row:
    return Row(
        (
            part.collective.name,
            str(part.type) if part.alone else f"{part.index}: {part.type}",
            *("; ".join(_texts(part, stage)) for stage in STAGES),
            Piece(part.confidence, ROLES[part.confidence]),
        ),
        part,
    )


def _texts(part: LinkedPart, stage: str) -> Iterator[str]:
    """Return the text of each link, `%dot.3 (number)`; equal ones once, with their number."""
    links = [link for link in part.links if link.stage == stage]
    for name, evidence, rivals in dict.fromkeys(map(_facts, links)):
        count = sum(_facts(each) == (name, evidence, rivals) for each in links)
        times = f" × {count}" if count > 1 else ""
        others = f", {rivals} rivals" if rivals > 1 else ", 1 rival" if rivals else ""
        yield f"{name}{times} ({evidence}{others})"


def _facts(link: Link) -> tuple[str, str, int]:
    return link.name, link.evidence.value, link.rivals
