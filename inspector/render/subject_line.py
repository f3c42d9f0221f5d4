"""What was captured, in one line."""

from __future__ import annotations

import os

from rich.text import Text

from ...parsers.sharding_syntax.mesh import MeshSyntax
from ..report import Report
from .printable import printable


def subject_line(report: Report) -> Text:
    """`fsdp.py:loss   mesh data=4 model=2   cpu × 8   jax 0.12.0`."""
    subject = report.capture.subject
    if subject is None:
        names = sorted({stage.source.name for stage in report.capture.stages}) or ["nothing captured"]
        parts = [", ".join(names)]
    else:
        script = f"{os.path.basename(subject.script)}:" if subject.script else ""
        parts = [f"{script}{subject.function}"]
    parts += [f"mesh {mesh_text(mesh)}" for mesh in report.meshes]
    if subject is not None:
        parts.append(f"{subject.target} × {subject.device_count}")
        if subject.jax:
            parts.append(f"jax {subject.jax}")
    line = Text(printable("   ".join(parts)))
    line.stylize("bold", 0, len(printable(parts[0])))
    return line


def mesh_text(mesh: MeshSyntax) -> str:
    """`data=4 model=2`."""
    return " ".join(f"{name}={size}" for name, size in mesh.axes) or "of one device"
