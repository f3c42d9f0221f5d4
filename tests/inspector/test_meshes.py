"""What bare texts tell of the user's mesh."""

from __future__ import annotations

import re

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.pipeline import inspect

from tests.conftest import SampleCapture


@pytest.mark.parametrize("name", ["fsdp_tp:grad", "moe:loss", "data_parallel:grad", "matmul_psum:automatic"])
@pytest.mark.parametrize("stage", ["hlo-before", "hlo"])
def test_axes_in_hlo(sample: SampleCapture, name: str, stage: str) -> None:
    """XLA writes the mesh to the groups that the user's own collectives have, and makes one up for its own."""
    whole = sample(name)
    found = whole.stage(stage)
    assert found is not None
    names = {axis.name for mesh in (whole.subject.meshes if whole.subject else ()) for axis in mesh.axes}
    has_axes = any(b"'%s'=" % axis.encode() in found.source.data for axis in names)
    report = inspect(Capture(stages=(found,), complete=True))
    assert set(report.meshes) == (set(inspect(whole).meshes) if has_axes else set())
    axes = [each.axes for each in report.collectives if each.stage == stage]
    written = re.findall(rb" (?:all-(?:reduce|gather|to-all)|reduce-scatter|collective-permute)\(", found.source.data)
    assert len(axes) == len(written)
    known = [each.axes for each in inspect(whole).collectives if each.stage == stage]
    assert [each is not None for each in axes] == [has_axes] * len(written)
    assert not (has_axes and known) or axes == known
