"""The unchanged program for a target whose compiler is there, where CPUs communicate for what only they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...parsers.errors import ShardscopeError
from ..capture.environment import interpreter_with_jax, packages_of
from ..capture.protocol.request import Request
from ..capture.spawn import last_capture
from ..pipeline import inspect
from ..report import Elsewhere, Report
from ..report.policy import EVERYTHING
from ..targets.available import availability
from .measured import measured

MAX_V5E = 256
PER_NODE = 8


def elsewhere(report: Report, request: Request) -> Elsewhere | None:
    """Return the cost on the first target that it can be compiled for; None where a CPU's bytes are the same."""
    subject = report.capture.subject
    if subject is None or not any(each.cpu_call for each in report.collectives):
        return None
    try:
        python = interpreter_with_jax(request.python)
        there = {each.kind for each in availability(packages_of(python), python) if not each.missing}
    except ShardscopeError:
        return None
    for kind, target in targets_of(subject.device_count):
        if kind in there:
            capture = last_capture(replace(request, target=target, devices=None, live=False))
            if capture.failure is None:
                return Elsewhere(target, measured(inspect(capture, EVERYTHING)))
    return None


def targets_of(devices: int) -> Iterator[tuple[str, str]]:
    """A target of each kind of accelerators with so many devices, where there is one."""
    if devices.bit_count() == 1 and devices <= MAX_V5E:
        rows = 1 << (devices.bit_length() - 1) // 2
        yield "tpu", f"tpu:v5e:{rows}x{devices // rows}"
    if devices <= PER_NODE:
        yield "gpu", f"gpu:h100:{devices}"
    elif devices % PER_NODE == 0:
        yield "gpu", f"gpu:h100:{PER_NODE}x{devices // PER_NODE}"
