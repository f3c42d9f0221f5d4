"""`shardscope explain`."""

from __future__ import annotations

import pytest

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
    assert b"did you mean psum?" in done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reduce-scatter", ["reduce-scatter: ", "jax.lax.psum_scatter", "stablehlo.reduce_scatter"]),
        ("reduce_scatter", ["reduce-scatter: ", "reduce_scatter: "]),
        ("all_reduce", ["all-reduce: "]),
        ("all-reduce-start", ["all-reduce: "]),
        ("Stablehlo.All_Reduce", ["all-reduce: "]),
        ("lax.psum_scatter", ["lowers to    reduce-scatter"]),
        ("pscatter", ["2023 document", "all_gather_invariant"]),
        (
            "pbroadcast",
            ["lowers to    collective-broadcast", "2023 document's name for pvary", "pvary: the same"],
        ),
        ("psum2", ["psum_invariant: "]),
        ("psum_start", ["psum_invariant: "]),
        ("pcast", ["pvary: ", "preduced: ", "vary_unreduced_cast: "]),
        ("collective-permute", ["collective-permute: ", "jax.lax.ppermute"]),
        ("recv", ["send-recv: "]),
        ("ragged_all_to_all", ["ragged-all-to-all: ", "custom_call @ragged_all_to_all"]),
        ("all-reduce-scatter", ["reduce-scatter: ", "a fusion all-reduce-scatter of all-reduce"]),
    ],
)
def test_every_spelling(shardscope: Shardscope, name: str, said: list[str]) -> None:
    done = shardscope("explain", name)
    assert done.returncode == 0, done.stderr
    for words in said:
        assert words in done.stdout.decode()
