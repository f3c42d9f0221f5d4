"""`shardscope targets`."""

from __future__ import annotations

from .conftest import Shardscope


def test_list_and_figures(shardscope: Shardscope) -> None:
    done = shardscope("targets")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith("cpu        yes, with jax")
    assert any("--target tpu:v5p:4x4x4" in line for line in lines)
    done = shardscope("targets", "--chips")
    assert done.returncode == 0
    assert b"hop_latency" in done.stdout
    assert shardscope("targets", "--python", "/no/such/python").returncode == 2
