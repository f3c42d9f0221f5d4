"""The first and the last lines of a report: what was captured, what it takes, and what is in order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from statistics import median

from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..capture.environment import interpreter_text
from ..capture.model import PHASES, Capture, Execution, Subject, devices_text
from ..report import Report
from ..report.elements import unequal_copies
from ..report.gradients import wrong_gradients
from ..units import format_bytes, format_seconds, known_sum, listed, plural
from .collective_rows import folded_names
from .table import Cell, Piece
from .tables.collectives import programs
from .tables.communication import sent_text
from .tables.cost import unknown_text
from .tables.reference import differing_text, equal_text
from .validation import same_text, validation_lines

"""Values that one line names."""


MIN_FOLDED = 3
"""So many axes of size 1 are counted instead of listed."""


def subject_text(report: Report) -> str:
    """`fsdp.py:loss · mesh data=4 model=2 · cpu × 8 · jax 0.12.0`."""
    capture = report.capture
    subject = capture.subject
    if subject is None:
        names = sorted({stage.source.name for stage in capture.stages})
        parts = [", ".join(names) or _what_happened(capture)]
    else:
        script = f"{os.path.basename(subject.script)}:" if subject.script else ""
        parts = [f"{script}{subject.function}"]
    parts += [f"mesh {mesh_text(mesh)}" for mesh in report.meshes]
    if subject is not None:
        parts.append(devices_text(subject))
        parts += [jax_text(subject)] if subject.jax else []
    return " · ".join(parts)


def _what_happened(capture: Capture) -> str:
    """`train.py · stopped while running the script`, where there is no program to tell of."""
    why = capture.failure
    if is_refused(capture) and why is not None:
        return why.message
    name = [] if capture.script_text is None else [os.path.basename(capture.script_text.name)]
    doing = "nothing has run yet" if why is None else f"stopped while {PHASES[why.phase]}"
    return " · ".join([*name, doing])


def is_refused(capture: Capture) -> bool:
    """Return whether all that there is to tell is why the request cannot be carried out."""
    return capture.failure is not None and capture.failure.kind == "usage" and capture.subject is None


def jax_text(subject: Subject) -> str:
    """`jax 0.12.0`; `jax 0.12.0 in .venv/bin/python` where it is not in shardscope's own environment."""
    return f"jax {subject.jax}" + (f" in {interpreter_text(subject.interpreter)}" if subject.interpreter else "")


def mesh_text(mesh: MeshSyntax) -> str:
    """`data=4 model=2`; `fsdp=4 tensor=2 and 10 axes of size 1` for a mesh with room for every strategy."""
    used = [(name, size) for name, size in mesh.axes if size != 1]
    unused = len(mesh.axes) - len(used)
    listed = used if used and unused >= MIN_FOLDED else mesh.axes
    more = f" and {unused} axes of size 1" if listed is used else ""
    return " ".join(f"{name}={size}" for name, size in listed) + more or "of one device"


def resources_text(report: Report) -> str:
    """The resources of a step, as far as known: time to compile, memory, bytes sent, estimated time."""
    hlo = report.program.stage("hlo")
    compiled = None if hlo is None else hlo.stage.seconds
    parts = [] if compiled is None else [f"compiled in {format_seconds(compiled)}"]
    peak, cost = report.peak, report.cost
    if peak is not None and peak.bytes:
        of = "" if peak.capacity is None else f" of {format_bytes(peak.capacity)}"
        parts.append(f"memory {format_bytes(peak.bytes)}{of} per device")
    if report.communication:
        complete = all(report.could_be_read(stage) for stage in programs(report))
        complete = complete and not any(each.does in ("copy", "unknown") for each in report.uncounted)
        parts.append(f"{sent_text(report, is_complete=complete)} sent per device per step{_on_cpus_alone(report)}")
    if cost is not None:
        least, bound = ("at least ", "") if cost.at_least else ("", f", bound by {cost.bound}")
        parts.append(f"est. {least}{format_seconds(cost.total)} per step on {cost.chip}{bound}{unknown_text(cost)}")
    return " · ".join(parts)


def _on_cpus_alone(report: Report) -> str:
    """The bytes that other targets do not send, and what they send instead, as far as it was measured."""
    these = [each for each in report.collectives if each.cpu_call]
    if not these:
        return ""
    calls, other = listed(list(dict.fromkeys(each.cpu_call for each in these))), report.elsewhere
    there = "" if other is None else f"; {format_bytes(other.cost.bytes)} on {other.target}"
    return f" ({format_bytes(known_sum(each.step_bytes for each in these))} for the CPU's {calls}{there})"


def sent_elsewhere(report: Report) -> str:
    """The bytes that are sent on another target, where those here are also of what only CPUs send."""
    other = report.elsewhere
    if other is None or not any(each.cpu_call for each in report.collectives):
        return ""
    return f"on {other.target} {format_bytes(other.cost.bytes)} sent per device per step"


def nothing_sent(report: Report) -> str:
    """That there are no collectives, as far as that is known; empty where there are some."""
    if report.communication or report.uncounted or not report.capture.stages:
        return ""
    stage = next(iter(programs(report)), None)
    if stage is None:
        return "" if report.capture.failure else "Collectives: not known without StableHLO or HLO."
    if not report.could_be_read(stage):
        return "No collectives in what could be read."
    if stage == "stablehlo":
        return "No collectives are written in the function; it was not partitioned."
    return "No collectives." if stage == "hlo" else "No collectives after partitioning; the program was not compiled."


def attention(report: Report) -> Iterator[Cell]:
    """Problems that are no findings: one line each."""
    peak, reference, ran = report.peak, report.capture.reference, report.capture.execution
    gradients, validation = report.capture.gradients, report.capture.validation
    differing = folded_names(value.name for value in report.shardings if value.agrees is False)
    if differing:
        names = listed(differing)
        differ = "differs" if len(differing) == 1 else "differ"
        yield Piece(f"{plural(len(differing), 'sharding')} {differ} from requested: {names}", "warning")
    nowhere = sum(not each.groups and not each.pairs for each in report.collectives)
    if nowhere and not report.program.declared_partitions:
        of = plural(nowhere, "collective")
        yield Piece(f"sizes of {of} over all devices are unknown: the text does not say how many there are", "warning")
    if peak is not None and peak.fits is False:
        yield Piece(f"does not fit: {format_bytes(peak.bytes)} of {format_bytes(peak.capacity)} per device", "error")
    known = {found.subject for found in report.findings}
    first = [found for found in report.divergences if found.is_first and found.value not in known]
    if first and all(found.severity != "error" for found in report.findings):
        names = listed([f"{found.value} over {found.axis}" for found in first])
        yield Piece(f"declared equal on all devices, but values differ: {names}", "error")
    unequal = [report.probes[number] for number in unequal_copies(report.capture.probes)]
    if arguments := [value.label for value in unequal if value.probe.when == "argument"]:
        yield Piece(f"devices hold different copies of {listed(arguments)}", "error")
    elif unequal and not report.divergences and all(found.severity != "error" for found in report.findings):
        yield Piece(f"devices hold different copies of {listed([value.label for value in unequal])}", "error")
    if apart := differing_text(report):
        yield Piece(apart, "error")
    if reference is not None and reference.undefined is not None:
        yield Piece(f"not compared with a run on one device: {reference.undefined}", "warning")
    if gradients is not None and gradients.undefined is not None:
        yield Piece(f"gradients not checked: {gradients.undefined}", "warning")
    if validation is not None and validation.status != "same":
        yield from validation_lines(validation)
    if ran is not None and (bad := folded_names(output.path for output in ran.outputs if output.non_finite)):
        inputs = " on synthetic inputs" if ran.seeded_inputs else ""
        yield Piece(f"not finite (NaN or infinity){inputs}: {listed(bad)}", "warning" if inputs else "error")


def _left_out(count: int, what: str = "not compared") -> str:
    """The number of things that a statement is not about, in parentheses; empty for none."""
    return f" ({count:,} {what})" if count else ""


def in_order(report: Report) -> str:
    """Checks that passed."""
    parts = []
    capture, peak, ran = report.capture, report.peak, report.capture.execution
    not_compared = 0 if capture.probed is None else capture.probed.left_out
    asked = [value for value in report.shardings if value.agrees is not None]
    requested = [value.agrees for value in asked if not value.uneven]
    if requested and all(requested):
        unknown = sum(value.requested is not None and value.agrees is None for value in report.shardings)
        holds = f"{plural(len(requested), 'requested sharding')} {'hold' if len(requested) > 1 else 'holds'}"
        parts.append(
            f"{holds}{_left_out(unknown, 'not known')}{_left_out(len(asked) - len(requested), 'not divisible')}"
        )
    if capture.compared and not report.divergences and not unequal_copies(capture.probes):
        parts.append(f"no unexpected differences between devices{_left_out(not_compared)}")
    if capture.reference is not None and capture.reference.undefined is None and not capture.reference.differs:
        parts.append(f"{equal_text(capture.reference)}{_left_out(not_compared)}")
    if (gradients := capture.gradients) is not None and gradients.checked and not wrong_gradients(gradients):
        equal = f"{plural(len(gradients.checked), 'gradient')} equal to finite differences"
        parts.append(f"{equal}{_left_out(gradients.left_out)}")
    if capture.validation is not None and capture.validation.status == "same":
        parts.append(same_text(capture.validation))
    if peak is not None and peak.fits:
        parts.append("fits in memory")
    if ran is not None:
        parts.append(_ran(ran))
    if not report.findings and not capture.failure and capture.stages:
        read = all(report.could_be_read(stage.name) for stage in capture.stages)
        parts.append("no findings" if read else "no findings in what could be read")
    return " · ".join(parts)


def _ran(execution: Execution) -> str:
    seconds = execution.seconds
    inputs = " on synthetic inputs" if execution.seeded_inputs else ""
    if len(seconds) > 1:
        return f"ran {len(seconds)} times{inputs}, median {format_seconds(median(seconds))}"
    return f"ran once{inputs}, in {format_seconds(seconds[0])}" if seconds else f"ran{inputs}"
