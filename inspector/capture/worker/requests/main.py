"""Prices changes of the requests of a lowered module. A process of its own: Shardy may crash."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from .. import modules
from ..channel import die_with_parent
from .candidates import Requests
from .lowered import Change, Lowered, spec_in
from .price import Price, Pricing
from .search import Point, Search

MAX_MORE = {"arguments": 0.002, "held": 0.05, "flops": 0.1}
"""Shares by which bytes of arguments, of arguments and results, and operations may grow."""


def main() -> None:
    """Read a job from standard input, and write the candidates that cost less than the program, the cheapest first.

    The lines of a job are the path of the StableHLO, that of the result, and the seconds that it may take.
    """
    die_with_parent()
    source, destination, seconds = sys.stdin.read().split("\n")
    with modules.context(), ir.Location.unknown():
        found = priced(Lowered(Path(source).read_bytes()), time.monotonic() + float(seconds))
    Path(destination).write_text(json.dumps(found))
    os._exit(0)  # taking an interpreter with jaxlib apart takes longer than many a job


def suggest() -> None:
    """The same for other shardings of all arguments; further lines of the job are paths that are kept as they are."""
    die_with_parent()
    source, destination, seconds, *kept = sys.stdin.read().split("\n")
    with modules.context(), ir.Location.unknown():
        search = Search(Lowered(Path(source).read_bytes()), frozenset(kept))
        points = search.points(time.monotonic() + float(seconds))
        rows = [_row(search, point) for point in points]
    Path(destination).write_text(json.dumps({"size": search.size, "rows": rows}))
    os._exit(0)


def _row(search: Search, point: Point) -> dict[str, Any]:
    """An assignment; constraints on state follow what is requested for it."""
    own = (each for each in point.changes if each.kind != "constraint" or each.number not in search.state)
    changes = [_change(search.requests, each) for each in own]
    return {"changes": changes, "price": point.price.bytes, "held": point.held}


def priced(lowered: Lowered, deadline: float) -> dict[str, Any]:
    """Return the price of the program, and the candidates that cost less, with their prices."""
    requests, pricing = Requests(lowered), Pricing(lowered)
    today = pricing.of(requests.pinned(()))
    found = []
    for each in requests.candidates(pricing):
        if time.monotonic() > deadline:
            break
        try:
            price = pricing.of(requests.pinned(each.changes))
        except Exception:  # Shardy refuses some programs; what it cannot propagate is not advised
            continue
        if (price.bytes < today.bytes or price.flops < today.flops) and _is_allowed(price, today):
            found.append((each, price))
    found.sort(key=lambda pair: (pair[1].bytes, pair[0].is_removal, len(pair[0].changes)))
    return {
        "today": today._asdict(),
        "candidates": [
            {
                "kind": each.kind,
                "changes": [_change(requests, change) for change in each.changes],
                "price": price.bytes,
                "flops": price.flops,
            }
            for each, price in found
        ],
    }


def _is_allowed(price: Price, today: Price) -> bool:
    return (
        price.arguments <= today.arguments * (1 + MAX_MORE["arguments"])
        and price.arguments + price.results <= (today.arguments + today.results) * (1 + MAX_MORE["held"])
        and price.flops <= today.flops * (1 + MAX_MORE["flops"])
    )


def _change(requests: Requests, change: Change) -> dict[str, Any]:
    """A change in names: paths of arguments and results, frames of operations, and specs as JAX spells them."""
    lowered = requests.lowered
    found: dict[str, Any] = {"kind": change.kind, "spec": None if change.spec is None else str(change.spec)}
    found["spelled"] = change.spec is None or change.spec.is_spelled
    if change.kind == "argument":
        return found | {"name": lowered.names[change.number], "now": str(lowered.arguments[change.number])}
    if change.kind == "result":
        now = lowered.results[change.number]
        tied = requests.tied
        home = requests.home.get(tied[change.number]) if change.number in tied else None
        parameter = next((result for result, argument in tied.items() if argument == home), None)
        return found | {
            "name": lowered.result_names[change.number],
            "now": None if now is None else str(now),
            "parameter": "" if parameter is None else lowered.result_names[parameter],
            "frames": [list(each) for each in lowered.result_stack(change.number)],
        }
    operation = lowered.operations[change.number]
    attributes = modules.attributes_of(operation)
    requested = str(spec_in(str(attributes["sharding"]))) if change.kind == "constraint" else None
    return found | {
        "name": operation.name,
        "now": requested,
        "frames": [list(each) for each in lowered.stack(change.number)],
    }
