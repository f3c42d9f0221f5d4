"""Requested shardings of values that have meshes of their own, whose axes have the same names and other sizes."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

from shardscope.inspector.capture.events import events_of
from shardscope.inspector.capture.file import load
from shardscope.inspector.capture.protocol.events import frame_of
from shardscope.inspector.capture.protocol.wire import encode
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.json import to_json

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def like(*mesh, shape=(8, 16)):
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:8]).reshape(mesh), ("a", "b")), P("a", "b"))
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)

@jax.jit
def fn(rows, columns):
    return rows.sum(1), columns.sum(0)

inputs = (like(8, 1), like(1, 8))
"""


def test_each_value_is_placed_as_its_own_mesh_places_it(tmp_path: Path) -> None:
    """JAX's `input_shardings` are the requested ones of both arguments, so that neither differs."""
    (tmp_path / "script.py").write_text(SCRIPT)
    final = last_capture(Request(f"{tmp_path / 'script.py'}:fn", live=False))
    assert final.failure is None, final.failure
    report = inspect(final)
    rows = {row.name: row for row in report.shardings if row.role == "argument"}
    assert {name: str(row.local_type) for name, row in rows.items()} == {"rows": "f32[1,16]", "columns": "f32[8,2]"}
    assert [rows[name].agrees for name in ("rows", "columns")] == [True, True]


THREE_MESHES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

devices = np.array(jax.devices()[:8])
unused = Mesh(devices[::-1].reshape(4, 2), ("a", "b"))
tall, wide = (NamedSharding(Mesh(devices.reshape(shape), ("a", "b")), P("a", "b")) for shape in ((4, 2), (2, 4)))

def fn(x, y):
    return x + 1, y + 1

fn = jax.jit(fn, in_shardings=(tall, wide), out_shardings=(wide, tall))
inputs = (jax.ShapeDtypeStruct((8, 16), jnp.float32),) * 2
"""
SIZES = {"x": [4, 2], "y": [2, 4], "result[0]": [2, 4], "result[1]": [4, 2]}


def test_a_spec_names_its_mesh(tmp_path: Path) -> None:
    """The meshes have axes of the same names; the script gives them to jit, and one of them to nothing."""
    (tmp_path / "script.py").write_text(THREE_MESHES)
    final = last_capture(Request(f"{tmp_path / 'script.py'}:fn", live=False))
    assert final.failure is None, final.failure
    report = inspect(final)
    document = json.loads(to_json(report))
    meshes = {mesh["key"]: mesh for mesh in document["subject"]["mesh"]}
    assert sorted(mesh["device_ids"][0] for mesh in meshes.values()) == [0, 0, 7]
    named = {value["path"]: value for value in (*document["arguments"], *document["outputs"])}
    assert {meshes[value["mesh"]]["device_ids"][0] for value in named.values()} == {0}
    sizes = {path: [axis["size"] for axis in meshes[value["mesh"]]["axes"]] for path, value in named.items()}
    assert sizes == SIZES
    assert all(value["actual_mesh"] == value["mesh"] for value in named.values())
    rows = {row.name: row for row in report.shardings if row.role in ("argument", "output")}
    assert {rows[name].agrees for name in SIZES} == {True}

    # Requested on the other mesh each is elsewhere, which the specs alone do not show.
    keys = {value.mesh for value in final.arguments}
    swapped = tuple(replace(value, mesh=(keys - {value.mesh}).pop()) for value in final.arguments)
    rows = {row.name: row for row in inspect(replace(final, arguments=swapped)).shardings if row.role == "argument"}
    assert [rows[name].agrees for name in ("x", "y")] == [False, False]


def test_captures_without_keys_still_open(tmp_path: Path) -> None:
    """Each value is taken to be on the mesh on which it is placed as it actually is."""
    (tmp_path / "script.py").write_text(THREE_MESHES)
    final = last_capture(Request(f"{tmp_path / 'script.py'}:fn", live=False))
    frames = []
    for event in events_of(final):
        frame = frame_of(event)
        for value in (*frame.event.get("values", ()), *frame.event.get("meshes", ())):
            for name in ("mesh", "actual_mesh", "key"):
                value.pop(name, None)
        frames.append(encode(frame))
    (tmp_path / "old.shardscope").write_bytes(gzip.compress(b"".join(frames)))
    opened = load(tmp_path / "old.shardscope")
    assert opened.complete
    assert {value.mesh for value in opened.arguments} == {None}
    rows = {row.name: row for row in inspect(opened).shardings if row.role in ("argument", "output")}
    assert {rows[name].agrees for name in SIZES} == {True}
