"""Results of a program for a target that is not there: its optimized module, evaluated in exact arithmetic."""

from __future__ import annotations

from pathlib import Path

from ..capture.model import Capture, Execution, OutputSummary
from ..capture.validation import evaluated

SECONDS = 10.0
"""Seconds in which a program has to be evaluated."""

DIGITS = 9
"""Significant digits of the projections of an output that do not depend on the order of sums."""


def evaluated_results(captured: Capture, case: Path) -> Execution | None:
    """The results of a captured program, whose case is in a folder, as those of a run.

    None where it was not evaluated, or is not what its source says.
    """
    validation, _ = evaluated(case, SECONDS, values=False)
    if validation.status != "same" or len(validation.outputs) != len(captured.outputs):
        return None
    outputs = []
    for output, value in zip(validation.outputs, captured.outputs, strict=True):
        projections = output.projections
        digest = None if projections is None else " ".join(f"{each:.{DIGITS}g}" for each in projections)
        non_finite = int(output.path in validation.not_finite)
        outputs.append(
            OutputSummary(value.path, value.type, None, non_finite=non_finite, digest=digest, projections=projections)
        )
    return Execution(tuple(outputs))
