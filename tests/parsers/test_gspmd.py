"""Sharding strings: what is read from them, compared with what XLA's parser makes of the same text."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardscope.parsers.errors import ParseError
from shardscope.parsers.sharding_syntax.gspmd import (
    DimSharding,
    MaximalSharding,
    MeshSharding,
    ShardGroup,
    Sharding,
    TiledSharding,
    TupleSharding,
    UniformSharding,
    parse_sharding,
)
from shardscope.parsers.sharding_syntax.mesh import AxisRef

GOOD = r"""
{replicated}
{manual}
{unknown}
{unreduced}
{maximal device=3}
{devices=[2,2]0,1,2,3}
{devices=[2,2]3, 1, 0, 2}
{devices=[4,1,2]<=[8] last_tile_dim_replicate}
{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}
{devices=[2,2,2,2]<=[16] last_tile_dims={manual, replicated}}
{devices=[2,1,4]<=[8] last_tile_dims={unreduced}}
{devices=[2,2]<=[4] shard_like 3}
{devices=[2,2]<=[4] last_tile_dims={manual, replicated}}
{manual shard_as 1}
{replicated metadata={op_name="foo"}}
{replicated metadata={{op_name="foo"}, {op_name="a}b\"c"}}}
{maximal device=3 metadata={op_name="foo"}}
{{maximal device=0}, {replicated}}
{{replicated}, {replicated}, {replicated}, {replicated}, {replicated}, /*index=5*/{manual}}
{mesh['data'=2,'fsdp'=2,'tensor'=2], [{'data', 'fsdp'}, {}]}
{mesh['a'=2], [{}]}
{mesh['a'=2], []}
{mesh['a'=2,'b'=4], replicated}
{mesh['a'=2,'b'=4], manual}
{mesh['a'=2,'b'=4], unreduced}
{mesh['a'=2,'b'=4], [{'a', ?}, {?}]}
{mesh['a'=2,'d'=8,'c'=2], [{'d':(4)2, 'c'}, {}]}
{mesh['a'=8], [{'a':(2)2, 'a':(1)2}]}
{mesh['a'=2,'b'=4], [{'a'}], replicated={'b'}}
{mesh['a'=2,'d'=8], [{'a'}], unreduced={'d':(4)2}}
{mesh['x'=2,'b'=4], [{'b'}], manual={'x'}}
{mesh['x'=2,'b'=4], [{'b'}], manual={'x'}, metadata={{op_name="foo"}}}
{mesh['a'=4,'b'=16], device_ids=([16,4]T(1,0)), [{'a'}, {'b'}]}
{mesh['a'=2,'b'=2], device_ids=(0,2,1,3), [{'a'}, {'b'}]}
{mesh['<axis> def'=2,'z/w'=2], [{'<axis> def'}, {'z/w'}]}
{maximal_mesh[device_id=5]}
{{mesh['a'=2], [{'a'}]}, {replicated}, {devices=[2]<=[2]}}
{mesh[], replicated}
""".strip().splitlines()

SINCE_0_12 = r"""
{mesh['a'=2,'b'=4], unreduced=max}
{mesh['x'=2,'b'=4], [{}], unreduced=max{'x'}}
{mesh['a'=2,'b'=4] [{'a'}, {}]}
{mesh['a'=2,'b'=4] replicated}
{mesh['a'=2,'b'=4], [{'1'}, {}], replicated={'0'}}
{single_device[device_id=5]}
""".strip().splitlines()
"""What parsers of earlier jaxlibs refuse."""

BAD = r"""
{{{replicated}}}
{{}}
{replicated
{foo}
{devices=[2,2]<=[5]}
{devices=[2,1,2]<=[4] last_tile_dims={manual, replicated, unreduced, manual}}
{mesh['a'=2], [{'b'}]}
{mesh['a'=2], [{'a'},{'a'}]}
{mesh['a'=2], [{?,'a'}]}
{mesh['a'=8], [{'a':(3)2}]}
{mesh['a'=8], [{'a':(1)2, 'a':(1)4}]}
{mesh['a'=8], [{'a':(1)2}, {'a'}]}
{mesh['a'=2,'a'=4], [{'a'}]}
{mesh['a'=2,'b'=4], [{'a'}], replicated={'b'}, unreduced={'b'}}
{mesh['a'=2,'b'=4], [{'a'}], unknown={'b'}}
""".strip().splitlines()


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """XLA's account of every text above."""
    if not find_spec("jaxlib._hlo"):
        pytest.skip("this jaxlib shows nothing of what its parser reads")
    script = Path(__file__).with_name("cpp_shardings.py")
    found: dict[str, dict[str, Any]] = {}
    rest = GOOD + SINCE_0_12 + BAD
    while rest:
        lines = "".join(json.dumps(text) + "\n" for text in rest)
        done = subprocess.run([sys.executable, script], input=lines, capture_output=True, text=True, check=False)
        said = [answer for line in done.stdout.splitlines() if "started" not in (answer := json.loads(line))]
        if done.returncode:
            said.append({"error": "aborted"})
        found |= dict(zip(rest, said, strict=False))
        rest = rest[len(said) :]
    return found


@pytest.mark.parametrize("text", GOOD + SINCE_0_12)
def test_means_what_it_means_to_xla(text: str, answers: dict[str, dict[str, Any]]) -> None:
    answer = answers[text]
    if "error" in answer and text in SINCE_0_12:
        pytest.skip("this jaxlib does not know it")
    assert described(parse_sharding(text)) == comparable(answer)


@pytest.mark.parametrize("text", BAD)
def test_refuses_what_xla_refuses(text: str, answers: dict[str, dict[str, Any]]) -> None:
    assert "error" in answers[text]
    with pytest.raises(ParseError):
        parse_sharding(text)


Comparable = Any
"""A kind; for a tiled sharding the tile of each device, and how many devices each kind of subgroup spans."""


def comparable(answer: dict[str, Any]) -> Comparable:
    if "elements" in answer:
        return list(map(comparable, answer["elements"]))
    if answer["kind"] == "maximal":
        return "maximal", answer["devices"][0]
    if answer["kind"] != "tiled":
        return answer["kind"]
    return tiled(answer["tiles"], answer["devices"], answer["subgroups"])


def tiled(tiles: list[int], devices: list[int], subgroups: list[str]) -> Comparable:
    data = len(tiles) - len(subgroups)
    coordinates = np.indices(tiles).reshape(len(tiles), -1)[:data].T.tolist()
    sizes = {kind: size for kind, size in zip(subgroups, tiles[data:], strict=True) if size > 1}
    return {device: tuple(place) for device, place in zip(devices, coordinates, strict=True)}, sizes


def described(sharding: Sharding) -> Comparable:
    """The same of what we read; shardings on a mesh are worked out here from their axes."""
    match sharding:
        case TupleSharding(elements):
            return list(map(described, elements))
        case UniformSharding(kind):
            return kind
        case MaximalSharding(device):
            return "maximal", device
        case TiledSharding():
            return tiled(list(sharding.tiles), list(sharding.devices), list(sharding.subgroups))
        case MeshSharding(kind=str(kind)):
            return kind
        case MeshSharding(mesh) if mesh.axes == () and mesh.device_ids:
            return "maximal", mesh.device_ids[0]
    pieces = sharding.mesh.split([axis for dim in sharding.dims for axis in dim.axes] + listed(sharding))
    if not any(dim.axes for dim in sharding.dims) and not listed(sharding):
        return "replicated"
    grid = np.array(sharding.mesh.device_ids or range(sharding.mesh.size)).reshape([size for _, size in pieces])
    where = {piece: place for place, (piece, _) in enumerate(pieces)}
    places = {}
    for coordinate in np.ndindex(grid.shape):
        tile = []
        for dim in sharding.dims:
            number = 0
            for axis in dim.axes:
                number = number * grid.shape[where[axis]] + coordinate[where[axis]]
            tile.append(number)
        places[int(grid[coordinate])] = tuple(tile)
    used = {axis for dim in sharding.dims for axis in dim.axes}
    sizes = {
        "unreduced": math.prod(map(sharding.mesh.axis_size, sharding.unreduced)),
        "manual": math.prod(map(sharding.mesh.axis_size, sharding.manual)),
    }
    spanned = math.prod(map(sharding.mesh.axis_size, used))
    sizes["replicated"] = sharding.mesh.size // (spanned * sizes["unreduced"] * sizes["manual"])
    return places, {kind: size for kind, size in sizes.items() if size > 1}


def listed(sharding: MeshSharding) -> list[AxisRef]:
    return [*sharding.replicated, *sharding.unreduced, *sharding.manual]


def test_open_dimensions() -> None:
    sharding = parse_sharding("{mesh['a'=2,'b'=4], [{'a', ?}, {?}, {}]}")
    assert isinstance(sharding, MeshSharding)
    assert sharding.dims == (
        DimSharding((AxisRef("a"),), is_open=True),
        DimSharding((), is_open=True),
        DimSharding((), is_open=False),
    )


def test_what_else_a_sharding_says() -> None:
    assert parse_sharding("{manual shard_as 1}") == UniformSharding("manual", ShardGroup("as", 1))
    assert parse_sharding('{devices=[2]<=[2] shard_like 3 metadata={op_name="f"}}') == TiledSharding(
        (2,), (0, 1), (), ShardGroup("like", 3), '{op_name="f"}'
    )
    sharding = parse_sharding("{mesh['x'=2,'b'=4], [{}], unreduced=max{'x'}}")
    assert isinstance(sharding, MeshSharding)
    assert (sharding.unreduced, sharding.unreduced_kind) == ((AxisRef("x"),), "max")


def test_dimensions_without_the_subgroups() -> None:
    sharding = parse_sharding("{devices=[4,1,2]<=[8] last_tile_dim_replicate}")
    assert isinstance(sharding, TiledSharding)
    assert sharding.dims == (4, 1)


def test_axes_without_quotes_as_older_texts_have_them() -> None:
    assert parse_sharding("{mesh[a=2,b=4], [{a}, {b}]}") == parse_sharding("{mesh['a'=2,'b'=4], [{'a'}, {'b'}]}")


@pytest.mark.parametrize("depth", [3, 100, 20_000])
def test_tuples_are_not_nested(depth: int) -> None:
    with pytest.raises(ParseError, match="1:3: unexpected"):
        parse_sharding("{" * depth + "replicated" + "}" * depth)
