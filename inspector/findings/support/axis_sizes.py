"""How many devices there are along each mesh axis."""

from __future__ import annotations

from ...report import Report


def axis_sizes(report: Report) -> dict[str, int]:
    """The sizes of all mesh axes by name; not those that have different ones in different meshes."""
    sizes: dict[str, set[int]] = {}
    for mesh in report.capture.subject.meshes if report.capture.subject else ():
        for axis in mesh.axes:
            sizes.setdefault(axis.name, set()).add(axis.size)
    return {name: size.pop() for name, size in sizes.items() if len(size) == 1}
