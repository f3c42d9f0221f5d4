"""The meshes that an HLO text has in its groups and shardings."""

from __future__ import annotations

import pytest
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.sharding_syntax.mesh import MeshSyntax
from shardscope.parsers.source import Source

XY = (("x", 4), ("y", 2))


@pytest.mark.parametrize(
    ("attributes", "meshes"),
    [
        ("replica_groups=mesh['x'=4,'y'=2] {'y'}", [MeshSyntax(XY)]),
        ("sharding={mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)), [{'x'}]}", [MeshSyntax(XY, (0, 4, 1, 5, 2, 6, 3, 7))]),
        ("sharding={mesh['x'=4,'y'=2], device_ids=(7,6,5,4,3,2,1,0), []}", [MeshSyntax(XY, tuple(range(8))[::-1])]),
        ("sharding={mesh[x=8], [{x}]}, replica_groups=mesh['x'=8] {'x'}", [MeshSyntax((("x", 8),))]),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}", []),
        ("replica_groups=mesh[] {}", []),
        ("replica_groups=mesh['x'=8,'x'=2] {'x'}", []),
        ("replica_groups=[2,4]<=[8]", []),
    ],
)
def test_meshes(attributes: str, meshes: list[MeshSyntax]) -> None:
    text = f"HloModule m\n\nENTRY %e (p: f32[]) -> f32[] {{\n  ROOT %p = f32[] parameter(0), {attributes}\n}}\n"
    assert list(parse_module(Source("m", text.encode())).meshes) == meshes
