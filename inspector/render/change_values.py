"""The values of outputs that differ between two runs, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..capture.model import OutputSummary
from ..diff.diff import Diff
from ..diff.values import OutputChange
from ..units import plural

MAX_VALUES = 40
"""Characters of an output's elements; of more, the norm is shown."""


def value_rows(found: Diff) -> Iterator[tuple[str, str]]:
    """The rows of compared outputs: the equal ones in one, then each that differs; none unless both sides were run."""
    values = found.values
    if values is None:
        return
    if values.same_inputs is False:
        yield "inputs", "differ, so that the outputs of both runs cannot be compared"
        return
    if values.differs and values.same_inputs is None:
        yield "inputs", "not known to be the same in both runs"
    if equal := values.equal + values.close:
        yield plural(equal, "output"), _equal(values.equal, values.close)
    if values.unknown:
        yield plural(values.unknown, "output"), "not compared: not described closely enough, or too large"
    for each in values.differs:
        yield each.after.path, differing_text(each)


def _equal(equal: int, close: int) -> str:
    if not close:
        return "the same in every bit"
    return "equal within rounding" + (f", {equal} of them in every bit" if equal else "")


def differing_text(each: OutputChange) -> str:
    """`norm 1.25 → 1.5, 2,000× the rounding tolerance`."""
    return f"{_shown(each.before, each.after)}, {off_by(each)}"


def off_by(each: OutputChange) -> str:
    """`1,448× the rounding tolerance`; of integers and of NaNs, their number."""
    if math.isfinite(each.distance):
        times = f"{each.distance:,.0f}" if 100 <= each.distance < 1e6 else f"{each.distance:.3g}"
        return f"{times}× the rounding tolerance"
    counts = [one.non_finite or 0 for one in (each.before, each.after)]
    return f"{counts[0]} → {counts[1]} elements not finite" if counts[0] != counts[1] else "not by rounding"


def _shown(before: OutputSummary, after: OutputSummary) -> str:
    """The elements where they are few, else the norms."""
    texts = [" ".join((each.values or "").split()) for each in (before, after)]
    if all(texts) and texts[0] != texts[1] and max(map(len, texts)) <= MAX_VALUES:
        return f"{texts[0]} → {texts[1]}"
    norms = [each.projections[0] for each in (before, after) if each.projections is not None]
    return f"norm {norms[0]:.7g} → {norms[1]:.7g}" if len(norms) == 2 else "other values"
