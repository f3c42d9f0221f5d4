"""Axes recovered from groups, against brute force over the devices of a mesh."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.capture.model import Mesh, MeshAxis, Subject
from shardscope.inspector.ir.meshes import axes_of_groups, axes_of_pairs, meshes_of, partition_count
from shardscope.parsers.sharding_syntax.mesh import AxisRef, MeshSyntax

pytestmark = pytest.mark.once


@st.composite
def meshes(draw: st.DrawFn) -> MeshSyntax:
    sizes = draw(
        st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=1, max_size=4).filter(lambda s: math.prod(s) <= 96)
    )
    axes = tuple((f"a{index}", size) for index, size in enumerate(sizes))
    order = draw(st.one_of(st.none(), st.permutations(range(math.prod(sizes))).map(tuple)))
    return MeshSyntax(axes, order)


def array_of(mesh: MeshSyntax) -> np.ndarray:
    ids = range(mesh.size) if mesh.device_ids is None else mesh.device_ids
    return np.array(ids).reshape([size for _, size in mesh.axes])


def brute_groups(array: np.ndarray, dims: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """The devices that share every coordinate except those along `dims`."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in np.ndindex(array.shape):
        rest = tuple(i for dim, i in enumerate(index) if dim not in dims)
        groups.setdefault(rest, []).append(int(array[index]))
    return tuple(map(tuple, groups.values()))


@given(meshes(), st.data())
def test_groups_along_whole_axes_give_the_axes_back(mesh: MeshSyntax, data: st.DataObject) -> None:
    dims = tuple(d for d in range(len(mesh.axes)) if data.draw(st.booleans()))
    groups = [list(group) for group in brute_groups(array_of(mesh), dims)]
    shuffled = tuple(tuple(data.draw(st.permutations(group))) for group in data.draw(st.permutations(groups)))
    expected = tuple(AxisRef(mesh.axes[d][0]) for d in dims if mesh.axes[d][1] > 1)
    assert axes_of_groups(shuffled, mesh) == expected


@given(meshes(), st.data())
def test_groups_along_parts_of_axes(mesh: MeshSyntax, data: st.DataObject) -> None:
    """Split every axis into factors, group along some of them: the axes found must form the same groups."""
    dims, owners = [], []
    for axis, (_, size) in enumerate(mesh.axes):
        factors = data.draw(st.sampled_from(factorizations(size)))
        dims += factors
        owners += [axis] * len(factors)
    array = array_of(mesh).reshape(dims)
    along = tuple(d for d in range(len(dims)) if data.draw(st.booleans()))
    groups = brute_groups(array, along)
    found = axes_of_groups(groups, mesh)
    assert found is not None
    assert math.prod(mesh.axis_size(ref) for ref in found) == math.prod(dims[d] for d in along)
    assert {ref.name for ref in found} == {mesh.axes[owners[d]][0] for d in along if dims[d] > 1}


def factorizations(size: int) -> list[list[int]]:
    ways = [[size]]
    for first in range(2, size):
        if size % first == 0:
            ways += [[first, *rest] for rest in factorizations(size // first)]
    return ways


@given(st.data())
def test_arbitrary_partitions_match_exactly_when_some_axes_form_them(data: st.DataObject) -> None:
    mesh = MeshSyntax((("x", 4), ("y", 2)))
    order = data.draw(st.permutations(range(8)))
    size = data.draw(st.sampled_from([1, 2, 4, 8]))
    groups = tuple(tuple(order[i : i + size]) for i in range(0, 8, size))
    array = np.arange(8).reshape(2, 2, 2)  # x major, x minor, y
    formed = {
        frozenset(map(frozenset, brute_groups(array, dims)))
        for count in range(4)
        for dims in itertools.combinations(range(3), count)
    }
    assert (axes_of_groups(groups, mesh) is not None) == (frozenset(map(frozenset, groups)) in formed)


def test_sub_axes_print_as_shardy_prints_them() -> None:
    mesh = MeshSyntax((("x", 8),))
    assert [str(a) for a in axes_of_groups(((0, 4), (1, 5), (2, 6), (3, 7)), mesh) or ()] == ["x:(1)2"]
    assert [str(a) for a in axes_of_groups(((0, 1), (2, 3), (4, 5), (6, 7)), mesh) or ()] == ["x:(4)2"]
    assert [str(a) for a in axes_of_groups(((0, 1, 4, 5), (2, 3, 6, 7)), mesh) or ()] == ["x:(1)2", "x:(4)2"]


def test_partial_and_foreign_groups_have_no_axes() -> None:
    mesh = MeshSyntax((("x", 4), ("y", 2)))
    assert axes_of_groups(((0, 1),), mesh) is None
    assert axes_of_groups(((8, 9),), mesh) is None
    assert axes_of_groups(((0, 1, 2), (3, 4, 5), (6, 7)), mesh) is None


@given(meshes(), st.data())
def test_pairs_move_along_the_axes_whose_coordinates_change(mesh: MeshSyntax, data: st.DataObject) -> None:
    array = array_of(mesh)
    where = {int(array[index]): index for index in np.ndindex(array.shape)}
    ids = st.sampled_from(sorted(where))
    pairs = data.draw(st.lists(st.tuples(ids, ids)))
    moved = {axis for s, t in pairs for axis in range(array.ndim) if where[s][axis] != where[t][axis]}
    assert axes_of_pairs(pairs, mesh) == tuple(AxisRef(mesh.axes[axis][0]) for axis in sorted(moved))
    assert axes_of_pairs([(mesh.size + 99, 0)], mesh) is None


@given(st.sampled_from([(4,), (2, 3), (2, 1, 2)]), st.data())
def test_a_mesh_is_over_the_partitions_of_its_devices(sizes: tuple[int, ...], data: st.DataObject) -> None:
    """The partition of a device is its place in the program's assignment."""
    count = math.prod(sizes)
    ids = data.draw(st.permutations(range(10, 10 + count)))
    assignment = data.draw(st.sampled_from([tuple(ids), tuple(sorted(ids)), ()]))
    mesh = Mesh(tuple(MeshAxis(f"a{n}", size) for n, size in enumerate(sizes)), tuple(ids))
    elsewhere = Mesh((MeshAxis("b", 1),), (99,))
    subject = Subject("f.py:f", None, "cpu", "cpu", 20, meshes=(elsewhere, mesh), device_assignment=assignment)
    (found,) = (each for each in meshes_of(subject, ()) if each.axes[0][0] != "b")
    expected = [assignment.index(each) if assignment else place for place, each in enumerate(ids)]
    assert array_of(found).ravel().tolist() == expected
    assert found.axes == tuple((f"a{n}", size) for n, size in enumerate(sizes))
    assert len(meshes_of(subject, ())) == (1 if assignment else 2)
    assert partition_count(subject, (), [found]) == count
