"""The first line: what was captured, on which mesh, and how far the capture is."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget

from ..inspector.capture.model import PHASES, Capture, devices_text
from ..inspector.render.finding_facts import counted
from ..inspector.render.overview import jax_text
from ..inspector.report import Report
from ..inspector.units import format_seconds
from .painted import axis_hue, axis_hues, data, severity_style

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PERIOD = 0.1
"""Seconds between two pictures of the spinner."""


class TitleBar(Widget):
    """The subject to the left, with the axes of the mesh in their colours; the state of the capture to the right."""

    capture: reactive[Capture] = reactive(Capture())
    report: reactive[Report | None] = reactive(None)
    waiting: reactive[str] = reactive("")
    changed: reactive[str | None] = reactive(None)
    failed: reactive[Capture | None] = reactive(None)

    def __init__(self, requested: Sequence[str] = ()) -> None:
        """`requested` stands for the subject until that is known."""
        super().__init__()
        self._requested = requested

    def on_mount(self) -> None:
        self._began = time.monotonic()
        self._timer: Timer = self.set_interval(PERIOD, self.refresh, pause=True)

    def watch_waiting(self, before: str, waiting: str) -> None:
        if waiting and not before:
            self._began = time.monotonic()
        self._tick()

    def _tick(self) -> None:
        if not self.is_mounted:
            return
        if self.waiting:
            self._timer.resume()
        else:
            self._timer.pause()
            self.refresh()

    watch_capture = _tick

    def render(self) -> Content:
        state = self._state()
        room = self.size.width - state.cell_length - 2
        parts = self._subject()
        while len(parts) > 1 and sum(part.cell_length + 3 for part in parts) > room:
            parts.pop()
        subject = Content("   ").join(parts).truncate(max(room, 0), ellipsis=True)
        return subject.pad_right(max(room + 2 - subject.cell_length, 1)) + state

    def _subject(self) -> list[Content]:
        """Return the captured function's parts; the least important comes last."""
        subject = self.capture.subject
        if subject is None:
            names = ", ".join(dict.fromkeys(os.path.basename(stage.source.name) for stage in self.capture.stages))
            first, *others = self._requested or (names or "shardscope",)
            parts = [data(first, "bold"), *map(data, others)]
        else:
            script = f"{os.path.basename(subject.script)}:" if subject.script else ""
            parts = [data(f"{script}{subject.function}", "bold")]
        meshes = () if self.report is None else self.report.meshes
        hues = axis_hues(meshes)
        for mesh in meshes:
            axes = [data(name, f"bold {axis_hue(name, hues)}") + Content(f"={size}") for name, size in mesh.axes] or [
                Content("of one device")
            ]
            parts.append(Content.assemble(("mesh ", "$aside"), Content(" ").join(axes)))
        if subject is not None:
            parts.append(data(devices_text(subject)))
            if self.report is not None and self.report.findings:
                found = Content.styled(counted(self.report), severity_style(self.report.findings[0].severity))
                parts.append(found.stylize(Style.from_meta({"@click": "screen.table('findings')"})))
            parts += [data(jax_text(subject), "$aside")] if subject.jax else []
        return parts

    def _state(self) -> Content:
        capture = self.capture
        picture = SPINNER[int(time.monotonic() / PERIOD) % len(SPINNER)]
        if self.waiting:
            elapsed = f"{time.monotonic() - self._began:.1f} s"
            return Content.assemble((f"{picture} {self.waiting} ", "$warning"), (elapsed, "$aside"))
        if self.failed is not None and self.failed.failure is not None:
            why = self.failed.failure
            what = why.type or f"stopped while {PHASES[why.phase]}"
            return Content.assemble(
                data(f"✗ {what} ", "bold $error"), ("stale: the report before the edit", "$warning")
            )
        if self.changed is not None:
            name = os.path.basename(self.changed)
            return Content.assemble(data(f"{name} changed ", "$warning"), ("r reruns", "$aside"))
        if capture.failure is not None:
            return Content.styled(f"✗ stopped while {PHASES[capture.failure.phase]}", "bold $error")
        if capture.damage is not None:
            return Content.styled("✗ damaged", "bold $error")
        total = sum(capture.timings.values())
        return Content.styled(f"✓ {format_seconds(total)}" if total else "✓", "$success")
