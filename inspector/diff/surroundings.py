"""The text around a collective on both sides: which operation of one is which of the other."""

from __future__ import annotations

from collections.abc import Sequence

from ...parsers.source import Span
from ..report.changes import Change, Facing, Fingerprint, Node, Transfer
from . import hlo_graph, mlir_graph
from .nodes import AnyGraph, facings, in_text_order

STEPS = 3
"""Steps around a collective that are shown."""

MAX_OPERATIONS = 60
"""Operations on each side."""

LANDMARKS = 40
"""Collectives that both sides have, by which the place of one is found that only one side has."""


def around(
    sides: tuple[Fingerprint, Fingerprint], same: Sequence[tuple[Transfer, Transfer]], change: Change
) -> tuple[Facing, ...]:
    """Return the text around a change on both sides; empty where a side has no text, such as a golden.

    Around one that is on one side only the other side is found through the nearest collective that is the `same`.
    """
    before, after = _placed(sides[0], change.before), _placed(sides[1], change.after)
    if before is not None and after is not None:
        return surroundings(*before, *after)
    if before is not None:
        turned = _anchored(*before, [(other, one) for one, other in _landmarks(same, before[1], 0)], sides[1])
        return tuple(Facing(each.after, each.before, each.same) for each in turned)
    return () if after is None else _anchored(*after, _landmarks(same, after[1], 1), sides[0])


def surroundings(before_graph: AnyGraph, before: Node, after_graph: AnyGraph, after: Node) -> tuple[Facing, ...]:
    """Return the text around two paired collectives."""
    ones, others = before_graph.near(before, STEPS, MAX_OPERATIONS), after_graph.near(after, STEPS, MAX_OPERATIONS)
    return facings([(before, after)], ones, others)


def _placed(side: Fingerprint, transfer: Transfer | None) -> tuple[AnyGraph, Node] | None:
    if transfer is None or transfer.span is None:
        return None
    graph = _graph(side, transfer.span)
    node = None if graph is None else graph.at(transfer.span.start)
    return None if graph is None or node is None else (graph, node)


def _graph(side: Fingerprint, span: Span) -> AnyGraph | None:
    if side.text is None:
        return None
    if side.text.hlo is not None:
        return hlo_graph.graph_around(side.text.hlo, span.start)
    return None if side.text.mlir is None else mlir_graph.graph_around(side.text.mlir, span.start)


def _landmarks(same: Sequence[tuple[Transfer, Transfer]], start: Node, side: int) -> list[tuple[Span, Span]]:
    placed = [(one.span, other.span) for one, other in same]
    known = [(one, other) for one, other in placed if one is not None and other is not None]
    known.sort(key=lambda pair: abs(pair[side].start - start.span.start))
    return known[:LANDMARKS]


def _anchored(
    graph: AnyGraph, alone: Node, known: Sequence[tuple[Span, Span]], other_side: Fingerprint
) -> tuple[Facing, ...]:
    """Return the text around an operation on the side after, with its counterparts on the side before."""
    own = graph.near(alone, STEPS, MAX_OPERATIONS)
    here = [(there, node) for there, span in known if (node := graph.at(span.start)) is not None]
    there = _graph(other_side, here[0][0]) if here else None
    pairs = [] if there is None else [(one, node) for span, node in here if (one := there.at(span.start)) is not None]
    if there is None or not pairs:
        return tuple(Facing(None, each) for each in own)
    anchors = pairs[0]
    ones, wide = (
        side.near(node, 4 * STEPS, 4 * MAX_OPERATIONS) for side, node in zip((there, graph), anchors, strict=True)
    )
    others = in_text_order({each.name: each for each in (*wide, *own)}.values())
    shown = {each.name for each in (*own, anchors[1])}
    matched = facings(pairs, ones, others, alone.name)
    return tuple(each for each in matched if each.after is not None and each.after.name in shown)
