"""How targets are written."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardscope.inspector.targets.chips import chip_of_kind, chips_of
from shardscope.inspector.targets.target import Target, TargetError, parse_target, topology_of, wraps


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("cpu", None),
        ("cpu:16", 16),
        ("cpu:16384", 16384),
        ("local", None),
        ("tpu:v4:2x2x1", 4),
        ("tpu:v4:2x2x1:cores", 8),
        ("tpu:v5p:4x4x4", 64),
        ("tpu:v5p:2x2x2*2", 16),
        ("tpu:v5e:4x4", 16),
        ("tpu:v7x:2x2x1", 8),
        ("tpu:V5P:8x8x16", 1024),
        ("gpu:h100:8", 8),
        ("gpu:b200:8x4", 32),
        ("gpu:gb200:72", 72),
    ],
)
def test_number_of_devices(text: str, devices: int | None) -> None:
    assert parse_target(text).devices == devices


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "targets are"),
        ("toaster", "targets are"),
        ("cpu:0", "0 devices"),
        ("cpu:x", "a number of devices"),
        ("cpu:16385", "16385 devices; from 1 to 16384"),
        ("cpu:1000000000", "a number of devices, at most 16384"),
        ("cpu:٤", "a number of devices"),
        ("cpu:8:8", "a number of devices"),
        ("local:2", "nothing after it"),
        ("tpu", "v5p"),
        ("tpu:", "v5p"),
        ("tpu:v9:2x2", "unknown TPU 'v9'; known: v3, v4, v5e"),
        ("tpu:v5p", "tpu:v5p:4x4x4"),
        ("tpu:v5p:4x", "tpu:v5p:4x4x4"),
        ("tpu:v5p:0x4x4", "zero"),
        ("tpu:v5p:4x4x4*0", "zero"),
        ("tpu:v5e:4x4x4", "2 axes"),
        ("tpu:v5e:4x4:cores", "1 device per chip"),
        ("tpu:v7x:2x2x1:cores", "2 devices per chip"),
        ("tpu:v5p:999x999x999", "devices"),
        ("tpu:v5p:4x4x4:megacore", "add a size"),
        ("gpu:h100", "gpu:h100:8"),
        ("gpu:h100:16", "8x4"),
        ("gpu:h100:8x2x2", "nodes"),
        ("gpu:h100:8*2", "add a size"),
        ("gpu:h1000:8", "unknown GPU 'h1000'"),
        ("tpu:v5p:٤x٤x٤", "add a size"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(TargetError, match="cannot compile for target") as raised:
        parse_target(text)
    assert words in str(raised.value)


@given(st.text() | st.from_regex(r"(tpu|gpu|cpu|local)(:[a-z0-9x*:]*)?", fullmatch=True))
def test_anything_else_is_an_error_of_ours(text: str) -> None:
    try:
        target = parse_target(text)
    except TargetError:
        return
    assert isinstance(target, Target)
    assert target.devices is None or target.devices >= 1


@given(st.sampled_from(["v4", "v5p", "v7x"]), st.lists(st.integers(1, 8), min_size=1, max_size=3), st.integers(1, 3))
def test_tpu_devices_multiply(chip: str, shape: list[int], slices: int) -> None:
    text = f"tpu:{chip}:{'x'.join(map(str, shape))}*{slices}"
    per_chip = 2 if chip == "v7x" else 1
    assert parse_target(text).devices == math.prod(shape) * slices * per_chip


def test_every_figure_has_a_source() -> None:
    for platform, names in (("tpu", ("link_bandwidth", "hop_latency")), ("gpu", ("link_bandwidth", "ring_ll_call"))):
        for chip in chips_of(platform).values():  # type: ignore[arg-type]
            for name in (*names, "flops", "flops_int8", "hbm_bytes", "hbm_bandwidth", "network_bandwidth"):
                assert chip.figures[name].value > 0, (chip.name, name)
                assert len(chip.figures[name].source) > 10
            assert all(chip_of_kind(kind) is chip for kind in chip.kinds)


def test_rings_close_as_the_machines_are_built() -> None:
    v5p, v5e = chips_of("tpu")["v5p"], chips_of("tpu")["v5e"]
    assert wraps(v5p, (4, 2, 12)) == (True, False, True)
    assert wraps(v5p, (6, 1, 8)) == (False, False, True)
    assert wraps(v5e, (8, 16)) == (False, True, False)
    assert wraps(v5p, ()) == (False, False, False)  # a device without coordinates


def test_what_the_plugins_are_told() -> None:
    tpu = topology_of(parse_target("tpu:v4:2x2x1*2"))
    assert tpu is not None
    assert (tpu["name"], tpu["options"]["chip_config_name"], tpu["options"]["num_slices"]) == (
        "v4:2x2x1",
        "megacore",
        2,
    )
    gpu = topology_of(parse_target("gpu:a100:8x4"))
    assert gpu is not None
    assert gpu["options"]["topology"] == "4x1x8"
    assert "cuda_compute_capability { major: 8 }" in gpu["options"]["target_config"]
    assert 'name: "NVIDIA A100-SXM4-80GB"' in gpu["options"]["target_config"]
    assert topology_of(parse_target("cpu:4")) is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("tpu:v5e:4x4", {"wrap": (False, False, False)}),
        ("tpu:v5e:4x16*2", {"wrap": (False, True, False), "num_slices": 2}),
        ("tpu:v5p:4", {"wrap": (True, False, False), "chip_config_name": "megacore"}),
        ("tpu:v4:4x4x4", {"wrap": (True, True, True), "chip_config_name": "megacore"}),
        ("tpu:v4:2x2x1:cores", {"wrap": (False, False, False)}),
    ],
)
def test_what_libtpu_is_told(text: str, options: dict[str, object]) -> None:
    """No slices where there is one, no name of a configuration where a chip has one only."""
    topology = topology_of(parse_target(text))
    assert topology is not None
    assert topology["options"] == options


@pytest.mark.parametrize(("gpu", "links"), [("a100", 12), ("h100", 18), ("mi300x", 0)])
def test_what_the_plugins_of_gpus_are_told(gpu: str, links: int) -> None:
    """NVLinks as the data sheets count them; of the links of AMD's GPUs the description says nothing."""
    topology = topology_of(parse_target(f"gpu:{gpu}:8"))
    assert topology is not None
    plugin = "rocm" if gpu == "mi300x" else "cuda"
    assert (topology["plugin"], topology["lowering"]) == (plugin, plugin)
    described = topology["options"]["target_config"]
    assert f'platform_name: "{plugin.upper()}"' in described
    assert (f"device_interconnect_info {{ active_links: {links} }}" in described) == bool(links)
    assert ("device_interconnect_info" in described) == bool(links)
