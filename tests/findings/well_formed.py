"""What holds of every finding, whatever it is about."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

from shardscope.inspector.report import Report
from shardscope.inspector.report.edits import edited


def assert_well_formed(report: Report) -> None:
    """Places are in texts, evidence says something, axes are axes, and edits give other programs of Python."""
    axes = {name for mesh in report.meshes for name, _ in mesh.axes}
    for each in report.findings:
        assert {axis.name for axis in each.axes} <= axes, each
        assert all(label.strip() and text.strip() not in ("", "None") for label, text in each.evidence), each
        assert all(saved is None or saved > 0 for saved in (each.saved_bytes, each.saved_seconds)), each
        for place in (each.place, *each.related):
            assert (place.span is None) == (place.stage is None), place
            if place.stage is not None and place.span is not None:
                stage = report.program.stage(place.stage)
                assert stage is not None
                text = stage.text.data[place.span.start : place.span.end].decode()
                assert text.strip(), place
                if place.stage == "jaxpr":
                    assert place.what in text or place.what.partition(" = ")[2] in text, (place.what, text)
        for fix in each.fixes:
            changed = edited(report.program, fix.edits) or {}
            assert bool(changed) == bool(fix.edits), fix
            for file, data in changed.items():
                before = report.program.file(file).data
                assert ast.dump(ast.parse(data)) != ast.dump(ast.parse(before)), fix
                assert _unbound(data) <= _unbound(before), fix


def _unbound(text: bytes) -> set[str]:
    """The names of a module that neither it nor Python defines, by pyflakes' rule in ruff."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", "--output-format=json", "-"]
    found = json.loads(subprocess.run(command, input=text, capture_output=True, check=False).stdout)
    return {each["message"] for each in found}
