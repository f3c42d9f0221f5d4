"""Replica groups: what each spelling expands to, by hand, by numpy and by XLA."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.parsers.errors import ParseError
from shardscope.parsers.mlir.collectives import parse_groups, parse_integers
from shardscope.parsers.sharding_syntax.mesh import MAX_DEVICES, AxisRef, MeshSyntax, iota_devices
from shardscope.parsers.sharding_syntax.replica_groups import (
    Groups,
    IotaGroups,
    ListGroups,
    MeshGroups,
    device_counts,
    parse_mesh,
    parse_pairs,
    parse_replica_groups,
)


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ((0, 1, 2, 3),)),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{ {0, 4}, {3} }", ((0, 4), (3,))),
        ("{{}}", ((),)),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("[2,2] <= [2,2] T(1,0)", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'1'}", ((0, 1), (2, 3))),
        ("mesh['1'=2,'y'=2] {'1'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2], {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'x','y'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
        ("mesh['x'=2] {}", ((0,), (1,))),
        ("mesh[] {}", ((0,),)),
        ("mesh['x'=8] {'x':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['x'=8] {'x':(4)2,'x':(1)2}", ((0, 4, 1, 5), (2, 6, 3, 7))),
        ("mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", ((0, 2), (1, 3))),
        ("mesh[axis_0=2,axis_1=2] {axis_1}", ((0, 1), (2, 3))),
        (r"""mesh['<a> \'b'=2,"z/w"=1] {"z/w"}""", ((0,), (1,))),
    ],
)
def test_spellings(text: str, groups: Groups) -> None:
    assert parse_replica_groups(text).devices(4) == groups


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "1:1: unexpected end of the text"),
        ("{{0,1},{2", "1:1: unexpected '{'"),
        ("{{0,1,},{2}}", "1:1: Illegal trailing comma|1:1: Expecting value"),
        ("{{{0}}}", "1:1: unexpected '{'"),
        ("[4]<=[4]", "iota groups have two dimensions"),
        ("[2,2]<=[5]", "2 groups of 2 do not divide an iota of"),
        ("[2,2]<=[2,2]T(0)", "no permutation of 2 dimensions"),
        ("[2,2]<=[2,2]T(0,0)", "no permutation of 2 dimensions"),
        ("[0,0]<=[0]", "0 groups of 0 do not divide"),
        ("[1048576,1048576]<=[1099511627776]", "do not divide"),
        ("[2,2]<=[2,", "1:10: unexpected ','"),
        ("mesh['x'=2] {'y'}", "the mesh has no axis 'y'"),
        ("mesh['x'=2,'x'=2] {'x'}", "named twice"),
        ("mesh['x'=0] {'x'}", "no devices"),
        ("mesh['x'=8] {'x':(3)2}", "is no part of an axis of size 8"),
        ("mesh['x'=8] {'x':(1)4,'x':(2)2}", "overlaps"),
        ("mesh['x'=2,'y'=2], device_ids=(0,1) {'x'}", "2 device ids for a mesh of 4"),
        ("mesh['x'=2 {'x'}", "1:12: unexpected '{'"),
        ("{{0,1}} {", "1:9: unexpected '{'"),
        ("[" + "9" * 5000 + ",1]<=[4]", "Exceeds the limit"),
    ],
)
def test_errors(text: str, error: str) -> None:
    with pytest.raises(ParseError, match=error):
        parse_replica_groups(text)


def test_pairs() -> None:
    assert parse_pairs("{{0,1},{3, 2}}") == ((0, 1), (3, 2))
    assert parse_pairs("{}") == ()
    with pytest.raises(ParseError, match="a pair has a source and a target"):
        parse_pairs("{{0,1,2}}")


def test_equal_texts_are_one_object() -> None:
    assert parse_replica_groups("[2,4]<=[4,2]T(1,0)") is parse_replica_groups("[2,4]<=[4,2]T(1,0)")


@st.composite
def iotas(draw: st.DrawFn) -> IotaGroups:
    dims = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    total = math.prod(dims)
    count = draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    return IotaGroups(count, total // count, tuple(dims), tuple(draw(st.permutations(range(len(dims))))))


@given(iotas())
def test_iotas_are_reshaped_transposed_and_reshaped(groups: IotaGroups) -> None:
    expected = np.arange(math.prod(groups.dims)).reshape(groups.dims).transpose(groups.perm)
    assert groups.devices(0) == tuple(map(tuple, expected.reshape(groups.count, groups.size).tolist()))
    perm = ",".join(map(str, groups.perm))
    text = f"[{groups.count},{groups.size}]<=[{','.join(map(str, groups.dims))}]T({perm})"
    assert parse_replica_groups(text) == groups


@st.composite
def parts_of_meshes(draw: st.DrawFn) -> MeshGroups:
    """Groups along some axes and parts of axes, in any order, of a mesh with its devices in any order."""
    factors = {name: draw(st.lists(st.integers(2, 3), max_size=3)) for name in draw(st.sets(st.sampled_from("abc")))}
    sizes = {name: math.prod(parts) for name, parts in factors.items()}
    parts = [
        AxisRef(name, None if len(sub) == 1 else (math.prod(sub[:place]), sub[place]))
        for name, sub in factors.items()
        for place in range(len(sub))
    ]
    axes = draw(st.permutations(parts))[: draw(st.integers(0, len(parts)))]
    count = math.prod(sizes.values())
    devices = draw(st.none() | st.permutations(range(count)).map(tuple)) if count < 60 else None
    return MeshGroups(MeshSyntax(tuple(sizes.items()), devices), tuple(axes))


@given(parts_of_meshes())
def test_groups_of_meshes_differ_along_the_axes_only(groups: MeshGroups) -> None:
    """By the definition: each device, its coordinate along every part, and those along `axes` last."""
    mesh = groups.mesh
    coordinates = np.indices([size for _, size in mesh.axes]).reshape(len(mesh.axes), mesh.size)
    names = [name for name, _ in mesh.axes]

    def along(axis: AxisRef) -> np.ndarray:
        pre_size, size = axis.sub or (1, mesh.axis_size(axis))
        row = coordinates[names.index(axis.name)]
        return row // (dict(mesh.axes)[axis.name] // (pre_size * size)) % size

    inside = [along(axis) for axis in groups.axes]
    rest = coordinates.copy()
    for axis, coordinate in zip(groups.axes, inside, strict=True):
        pre_size, size = axis.sub or (1, mesh.axis_size(axis))
        rest[names.index(axis.name)] -= coordinate * (dict(mesh.axes)[axis.name] // (pre_size * size))
    order = np.lexsort([*inside[::-1], *rest[::-1]]) if len(names) else np.zeros(1, int)
    devices = np.array(mesh.device_ids or range(mesh.size))[order]
    expected = devices.reshape(-1, math.prod(map(mesh.axis_size, groups.axes)))
    assert groups.devices(0) == tuple(map(tuple, expected.tolist()))
    axes = ",".join(f"'{axis.name}'{str(axis).removeprefix(axis.name)}" for axis in groups.axes)
    sizes = ",".join(f"'{name}'={size}" for name, size in mesh.axes)
    ids = "" if mesh.device_ids is None else f", device_ids=({','.join(map(str, mesh.device_ids))})"
    assert parse_replica_groups(f"mesh[{sizes}]{ids} {{{axes}}}") == groups


def test_no_more_devices_than_there_can_be() -> None:
    for text in (f"mesh['x'={MAX_DEVICES + 1}] {{'x'}}", f"mesh['x'=2], device_ids=([{MAX_DEVICES + 1}]) {{'x'}}"):
        with pytest.raises(ParseError, match=f"more than {MAX_DEVICES} device"):
            parse_replica_groups(text)
    assert parse_mesh(f"mesh['x'={MAX_DEVICES}]").size == MAX_DEVICES
    assert iota_devices((MAX_DEVICES,), None) == tuple(range(MAX_DEVICES))
    assert len(parse_replica_groups("[1024,1024]<=[1048576]").devices(0)) == 1024


@pytest.mark.parametrize(
    ("replicas", "partitions", "counts"),
    [
        ("", "", {1}),
        ("2", "", {1, 2}),
        ("", "4", {1, 4}),
        ("2", "4", {2, 4, 8}),
        ("1", f"{MAX_DEVICES}", {1, MAX_DEVICES}),
        ("2", f"{MAX_DEVICES // 2}", {2, MAX_DEVICES // 2, MAX_DEVICES}),
        ("1", f"{MAX_DEVICES + 1}", set()),
        ("4096", "4096", set()),
        ("9999999", "1", set()),
        ("10000000", "4", {1, 4}),
        ("-2", "x", {1}),
    ],
)
def test_numbers_of_devices_that_groups_can_have(replicas: str, partitions: str, counts: set[int]) -> None:
    """Replicas, partitions, or both, as far as that are numbers; none where no program has so many."""
    assert device_counts(replicas, partitions) == counts


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 4), (0, 2), (3, 1)])
def test_literals_of_bytes_as_numpy_writes_them(dtype: str, shape: tuple[int, int]) -> None:
    """In groups of different sizes the shorter ones are filled up with -1."""
    array = np.random.default_rng(len(dtype)).integers(-1, 3, shape, dtype)
    element = f"i{array.dtype.itemsize * 8}"
    text = f'dense<"0x{array.tobytes().hex().upper()}"> : tensor<{shape[0]}x{shape[1]}x{element}>'
    assert parse_integers(text) == parse_integers(f"dense<{array.tolist()}> : tensor<{shape[0]}x{shape[1]}x{element}>")
    assert parse_integers(text).rows == tuple(map(tuple, array.tolist()))
    groups = parse_groups(text, lambda name: None)
    assert groups == ListGroups(tuple(tuple(device for device in row if device >= 0) for row in array.tolist()))


def test_pieces_of_split_axes_are_digits() -> None:
    """A place along an axis, written with the pieces' sizes as bases, has in each the place along that part."""
    for size in (1, 2, 8, 12):
        parts = [(pre, part) for pre in range(1, 13) for part in range(1, 13) if size % (pre * part) == 0]
        for wanted in (*combinations(parts, 0), *combinations(parts, 1), *combinations(parts, 2)):
            axes = [AxisRef("a", sub) for sub in wanted]
            try:
                pieces = MeshSyntax((("b", 3), ("a", size))).split(axes)
            except ValueError:
                (pre, part), (other, _) = sorted(wanted)
                assert other % (pre * part)
                continue
            assert (pieces[0][0].name, pieces[0][1]) == ("b", 3)
            sizes = [count for _, count in pieces[1:]]
            assert math.prod(sizes) == size
            assert {*axes} <= {axis for axis, _ in pieces}
            for place in range(size):
                digits = np.unravel_index(place, sizes) if sizes else ()
                for (axis, count), digit in zip(pieces[1:], digits, strict=True):
                    pre, part = axis.sub or (1, size)
                    assert count == part
                    assert digit == place // (size // (pre * part)) % part
