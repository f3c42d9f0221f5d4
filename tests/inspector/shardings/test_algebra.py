"""The sharding algebra against brute force over devices, JAX's own index maps, and XLA's tile assignments."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.ir.array_sharding import ArraySharding, merged
from shardscope.inspector.ir.placement import placement_of, same
from shardscope.inspector.ir.sharding_spellings import as_gspmd, from_gspmd, from_sdy, from_spec, from_type
from shardscope.parsers.mlir.sdy import DimensionSharding
from shardscope.parsers.mlir.sdy_parser import parse_sharding
from shardscope.parsers.sharding_syntax import gspmd
from shardscope.parsers.sharding_syntax.jax_arrays import parse_array_type, parse_spec
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

from tests.inspector.shardings.boxes import pieces

ORACLE = Path(__file__).with_name("jax_oracle.py")
GUIDE = MeshSyntax((("data", 4), ("model", 2)))


@st.composite
def shardings(draw: st.DrawFn) -> ArraySharding:
    """Any mesh of up to 48 devices in any order, split into parts of axes, each of which does something."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), max_size=3).filter(lambda s: math.prod(s) <= 48))
    count = math.prod(sizes)
    order = draw(st.one_of(st.none(), st.permutations(range(count)).map(tuple)))
    mesh = MeshSyntax(tuple((f"a{n}", size) for n, size in enumerate(sizes)), order)
    rank = draw(st.integers(0, 3))
    uses: dict[str, list[AxisRef]] = {"unreduced": [], "manual": [], "nothing": []}
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    for name, size in mesh.axes:
        for part in draw(st.sampled_from(splits(name, size))):
            use = draw(st.sampled_from([*range(rank), *uses]))
            (dims[use] if isinstance(use, int) else uses[use]).append(part)
    listed = tuple(DimensionSharding(tuple(draw(st.permutations(axes)))) for axes in dims)
    return ArraySharding(mesh, listed, unreduced=tuple(uses["unreduced"]), manual=tuple(uses["manual"]))


@lru_cache
def splits(name: str, size: int) -> list[list[AxisRef]]:
    found = [[AxisRef(name)]]
    found += [[AxisRef(name, (1, n)), AxisRef(name, (n, size // n))] for n in range(2, size) if size % n == 0]
    return found


def brute(sharding: ArraySharding, device: int, axes: tuple[AxisRef, ...]) -> int:
    """The number of a device along some axes: numpy finds it in the mesh, and splits its coordinates."""
    mesh = sharding.mesh
    shape = [size for _, size in mesh.axes]
    grid = np.array(mesh.device_ids or range(mesh.size)).reshape(shape)
    where = dict(zip([name for name, _ in mesh.axes], np.argwhere(grid == device)[0], strict=True))
    number = 0
    for axis in axes:
        size = dict(mesh.axes)[axis.name]
        before, length = axis.sub or (1, size)
        split = np.unravel_index(where[axis.name], (before, length, size // before // length))
        number = number * length + int(split[1])
    return number


@given(shardings(), st.lists(st.integers(0, 20), min_size=3, max_size=3))
def test_pieces_against_brute_force(sharding: ArraySharding, sizes: list[int]) -> None:
    shape = tuple(sizes[: len(sharding.dims)])
    found = pieces(sharding, shape)
    assert sorted(found) == list(range(sharding.mesh.size))
    for device, box in found.items():
        for dim, size, length, (start, stop) in zip(
            sharding.dims, shape, sharding.local_shape(shape), box, strict=True
        ):
            parts = math.prod(map(sharding.mesh.axis_size, dim.axes))
            # An array padded to equal parts, cut by numpy; what is padding is in nobody's piece.
            padded = np.pad(np.arange(size), (0, -size % parts), constant_values=-1)
            mine = np.split(padded, parts)[brute(sharding, device, dim.axes)]
            assert list(range(start, stop)) == [element for element in mine if element >= 0]
            assert len(mine) == length


@given(shardings())
def test_copies_against_brute_force(sharding: ArraySharding) -> None:
    used = (*sharding.sharded, *sharding.unreduced, *sharding.manual)
    holders: dict[int, int] = {}
    for device in range(sharding.mesh.size):
        number = brute(sharding, device, used)
        holders[number] = holders.get(number, 0) + 1
    assert set(holders.values()) == {sharding.copies}


@given(shardings())
def test_gspmd_and_back(sharding: ArraySharding) -> None:
    """Names are lost and found again: the axes may be others, the placement is not."""
    written = as_gspmd(sharding)
    if isinstance(written, gspmd.MaximalSharding):
        assert sharding.mesh.size == 1
        return
    back = from_gspmd(written, len(sharding.dims), sharding.mesh)
    if isinstance(written, gspmd.UniformSharding) or back.mesh == sharding.mesh:
        assert same(back, sharding)
    ones = sum(size == 1 for _, size in sharding.mesh.axes)
    assert back.mesh == sharding.mesh or ones, "axes of this mesh form the tiles, and none were found"


@given(shardings(), shardings())
def test_the_same_is_the_same_everywhere(one: ArraySharding, other: ArraySharding) -> None:
    if one.mesh != other.mesh or len(one.dims) != len(other.dims):
        return
    shape = [dim_size * 5 for dim_size in one.parts]
    if same(one, other):
        assert pieces(one, shape) == pieces(other, shape)
    elif not (one.unreduced or one.manual or other.unreduced or other.manual):
        assert one.parts != other.parts or pieces(one, shape) != pieces(other, shape)


def test_sums_and_runs_are_part_of_the_meaning() -> None:
    dims = (DimensionSharding((AxisRef("data"),)),)
    plain, summed, inside = (
        ArraySharding(GUIDE, dims),
        ArraySharding(GUIDE, dims, unreduced=(AxisRef("model"),)),
        ArraySharding(GUIDE, dims, manual=(AxisRef("model"),)),
    )
    assert not same(plain, summed)
    assert not same(plain, inside)
    assert not same(summed, inside)
    assert placement_of(summed).sums == (0, 1) * 4
    assert placement_of(inside).manual == (0, 1) * 4
    # Which of two devices comes first in a sum means nothing.
    swapped = MeshSyntax(GUIDE.axes, (1, 0, 3, 2, 5, 4, 7, 6))
    assert same(summed, ArraySharding(swapped, dims, unreduced=(AxisRef("model"),)))
    maximal = ArraySharding(GUIDE, dims, unreduced=(AxisRef("model"),), reduction="max")
    assert not same(summed, maximal)


@pytest.fixture(scope="module")
def cases() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Random NamedShardings, and what JAX and XLA say of them."""
    chosen = random.Random(0)
    asked = []
    for number in range(80):
        sizes = chosen.choice([[4, 2], [2, 2, 2], [8], [2, 4, 2], [3, 2], [1, 4], [16]])
        order = list(range(math.prod(sizes)))
        if number % 3 == 0:
            chosen.shuffle(order)
        axes = [[f"a{n}", size] for n, size in enumerate(sizes)]
        rank = chosen.randint(1, 3)
        entries: list[list[str]] = [[] for _ in range(rank)]
        unreduced = []
        for name, _ in chosen.sample(axes, len(axes)):
            use = chosen.randint(-2, rank - 1)
            if use >= 0:
                entries[use].append(name)
            elif use == -1 and number % 4 == 0:
                unreduced.append(name)
        parts = [math.prod(dict(axes)[name] for name in entry) for entry in entries]
        shape = [count * chosen.choice([1, 3, 4]) for count in parts]
        asked.append({"axes": axes, "order": order, "entries": entries, "unreduced": unreduced, "shape": shape})
    done = subprocess.run(
        [sys.executable, ORACLE],
        input="\n".join(map(json.dumps, asked)),
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return list(zip(asked, map(json.loads, done.stdout.splitlines()), strict=True))


def test_against_jax_and_xla(cases: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """`devices_indices_map`, `HloSharding`'s tiles and the text of Shardy's attribute, all of the same shardings."""
    named = unwritten = 0
    for case, told in cases:
        axes = tuple((name, size) for name, size in case["axes"])
        rank = len(case["shape"])
        by_device = from_spec(parse_spec(told["spec"]), MeshSyntax(axes, tuple(case["order"])), rank)
        if told["pieces"]:
            expected = {int(device): tuple(map(tuple, box)) for device, box in told["pieces"].items()}
            assert pieces(by_device, case["shape"]) == expected, case
        mesh = MeshSyntax(axes)
        ours = from_spec(parse_spec(told["spec"]), mesh, rank)
        assert same(from_sdy(parse_sharding(told["sdy"]), {"mesh": mesh}), ours), told["sdy"]
        if told["gspmd"] is None:
            unwritten += 1
            continue
        written = as_gspmd(ours)
        if isinstance(written, gspmd.TiledSharding):
            assert (list(written.tiles), list(written.devices)) == (told["tiles"], told["devices"]), told["gspmd"]
            assert list(written.subgroups) == told["subgroups"]
        else:
            assert told["uniform"]
        read = from_gspmd(gspmd.parse_sharding(told["gspmd"]), rank, mesh)
        assert same(read, ours), told["gspmd"]
        named += read.mesh == mesh
    assert named == len(cases) - unwritten
    assert unwritten < len(cases) / 4


TABLE = [
    # JAX, GSPMD and Shardy of one sharding, as the Shardy guide for JAX users sets them side by side.
    (
        "P('data', None)",
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
        '#sdy.sharding<@mesh, [{"data"}, {}]>',
    ),
    (
        "P(None, 'model')",
        "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
        '#sdy.sharding<@mesh, [{}, {"model"}]>',
    ),
    # with_sharding_constraint of P('data', UNCONSTRAINED): GSPMD says which dimensions are free beside the sharding.
    (
        "P('data', P.UNCONSTRAINED)",
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
        '<@mesh, [{"data"}, {?}]>',
    ),
    # shard_map's in_specs, P('data'), and out_specs, P().
    ("P('data')", "{devices=[4,1,2]<=[8] last_tile_dim_replicate}", '<@mesh, [{"data"}, {}]>'),
    ("P()", "{replicated}", "<@mesh, [{}, {}]>"),
]


@pytest.mark.parametrize(("spec", "hlo", "shardy"), TABLE)
def test_the_guides_table(spec: str, hlo: str, shardy: str) -> None:
    jax = from_spec(parse_spec(spec), GUIDE, 2)
    assert same(jax, from_gspmd(gspmd.parse_sharding(hlo), 2, GUIDE))
    assert jax == from_sdy(parse_sharding(shardy), {"mesh": GUIDE})
    assert str(from_gspmd(gspmd.parse_sharding(hlo), 2, GUIDE).closed()) == str(jax.closed())


def test_the_guides_manual_values() -> None:
    """Inside its shard_map GSPMD says `{manual}`; Shardy has a body, in which nothing is said."""
    inside = from_sdy(parse_sharding("<@mesh, [{}, {}]>"), {"mesh": GUIDE}, (AxisRef("data"), AxisRef("model")))
    assert same(inside, from_gspmd(gspmd.parse_sharding("{manual}"), 2, GUIDE))
    partly = inside.__class__(GUIDE, inside.dims, manual=(AxisRef("data"),))
    text = "{devices=[1,1,4,2]<=[8] last_tile_dims={manual, replicated}}"
    assert same(partly, from_gspmd(gspmd.parse_sharding(text), 2, GUIDE))


def test_sub_axes_and_versions() -> None:
    mesh = MeshSyntax((("x", 8), ("y", 2)))
    sub = from_sdy(parse_sharding('<@mesh, [{"x":(2)2}, {}]>'), {"mesh": mesh})
    assert sub.parts == (2, 1)
    assert str(sub) == "P('x:(2)2', None)"
    old = "{devices=[2,1,8]<=[2,2,2,2]T(1,0,2,3) last_tile_dim_replicate}"
    assert from_gspmd(gspmd.parse_sharding(old), 2, mesh).dims == sub.dims
    third = gspmd.parse_sharding("{mesh['a'=8,'b'=2], [{'a':(2)2}, {}]}")
    assert same(from_gspmd(third, 2, mesh), sub)
    whole = from_gspmd(gspmd.parse_sharding("{devices=[2,4,2]<=[16] last_tile_dim_replicate}"), 2, mesh)
    assert str(whole) == "P('x:(1)2', 'x:(2)4')"


def test_types_spell_shardings_too() -> None:
    mesh = MeshSyntax((("x", 2), ("y", 4)))
    found = from_type(parse_array_type("f32[8@x,16,4@y]"), mesh)
    assert found == from_spec(parse_spec("P('x', None, 'y')"), mesh, 3)
    summed = from_type(parse_array_type("f32[8@x,16]{U:y}"), mesh)
    assert summed == from_spec(parse_spec("P('x', None, unreduced={'y'})"), mesh, 2)
    assert str(summed) == "P('x', None, unreduced={'y'})"


def test_merged_parts() -> None:
    mesh = MeshSyntax((("x", 8), ("y", 2)))
    whole = [AxisRef("x", (1, 2)), AxisRef("x", (2, 2)), AxisRef("x", (4, 2)), AxisRef("y")]
    assert merged(whole, mesh) == (AxisRef("x"), AxisRef("y"))
    crossed = [AxisRef("x", (2, 4)), AxisRef("x", (1, 2))]
    assert list(merged(crossed, mesh)) == crossed


@pytest.mark.parametrize("kind", ["manual", "unreduced"])
def test_without_dimensions_nothing_is_cut(kind: str) -> None:
    """XLA's own account in version 2 is tiles `[4,2]` of subgroups alone: no dimension has any."""
    text = f"{{mesh['data'=4,'model'=2], [], {kind}={{'data'}}}}"
    found = from_gspmd(gspmd.parse_sharding(text), 2, GUIDE)
    assert same(found, ArraySharding(GUIDE, (DimensionSharding(()),) * 2, **{kind: (AxisRef("data"),)}))


def test_a_single_device() -> None:
    found = from_gspmd(gspmd.parse_sharding("{maximal device=3}"), 2, GUIDE)
    assert pieces(found, (4, 4)) == {3: ((0, 4), (0, 4))}
    assert str(found) == "device 3"
    shardy = from_sdy(parse_sharding("<@one, [{}, {}]>"), {"one": MeshSyntax((), (3,))})
    assert same(found, shardy)


@pytest.mark.parametrize(
    ("text", "rank"), [("{unknown}", 1), ("{{replicated}, {manual}}", 1), ("{devices=[2,4]<=[8]}", 1)]
)
def test_what_is_no_sharding_of_an_array(text: str, rank: int) -> None:
    with pytest.raises(ValueError, match=r"say|element|dimensions"):
        from_gspmd(gspmd.parse_sharding(text), rank, GUIDE)
