"""`shardscope explain`."""

from __future__ import annotations

from .conftest import Shardscope


def test_a_collective(shardscope: Shardscope) -> None:
    done = shardscope("explain", "psum")
    assert done.returncode == 0
    text = done.stdout.decode()
    for said in ("psum_invariant: the sum", "varying → invariant", "lowers to    all-reduce", "transposes   to pvary"):
        assert said in text


def test_all(shardscope: Shardscope) -> None:
    done = shardscope("explain")
    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.decode().splitlines()} >= {"ppermute", "axis_index", "all_to_all"}


def test_what_is_not_known(shardscope: Shardscope) -> None:
    done = shardscope("explain", "psam")
    assert done.returncode == 2
    assert b"'psam'" in done.stderr
    assert b"psum" in done.stderr
