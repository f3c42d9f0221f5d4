"""Damaged captures: each is refused, or read as far as it can be, and every format writes a report of it."""

from __future__ import annotations

import bz2
import gzip
import html
import io
import lzma
import os
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture import file, packed
from shardscope.inspector.capture.model import Capture, CaptureError, Stage
from shardscope.inspector.capture.protocol.events import frame_of
from shardscope.inspector.capture.protocol.trace import CompiledProgram, ProcessStarted
from shardscope.inspector.capture.protocol.wire import Frame, encode
from shardscope.inspector.capture.worker import binaries
from shardscope.inspector.check import golden
from shardscope.inspector.check.golden import read_golden
from shardscope.inspector.collectives import participants
from shardscope.inspector.cost.matmul import matmul_flops
from shardscope.inspector.dataflow.hlo import HloFlow, HloValue
from shardscope.inspector.dataflow.integers import PartitionNumbers
from shardscope.inspector.ir.program import Program
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.renderers import formats
from shardscope.inspector.traces.read import is_trace, read_trace
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import parse_module
from shardscope.parsers.sharding_syntax.mesh import MAX_DEVICES
from shardscope.parsers.source import Source

from tests.capture.mutants import frames_of, mutant, opened, written
from tests.conftest import SampleCapture
from tests.parsers.damage import is_linear

KEPT = Path(__file__).parents[1] / "command" / "approved"

MUTANTS = 40
"""Of each capture; `python -m tests.capture.mutants 10000 CAPTURE...` opens more."""


@pytest.fixture(scope="session")
def saved(sample: SampleCapture, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Frame]]:
    def frames(name: str) -> list[Frame]:
        path = tmp_path_factory.mktemp("saved") / "capture"
        file.save(sample(name), path)
        return frames_of(path)

    return frames


@pytest.mark.once
@pytest.mark.parametrize("name", ["psum:psum", "fsdp_tp:grad"])
def test_mutants(saved: Callable[[str], list[Frame]], name: str) -> None:
    frames = saved(name)
    for seed in range(MUTANTS):
        capture = opened(mutant(frames, seed))
        if capture is not None:
            assert len(list(written(inspect(capture)))) == len(formats("report", "reports")), seed


@pytest.mark.once
@pytest.mark.parametrize("name", ["stablehlo", "sdy", "hlo"])
def test_operations_that_cannot_be_read(name: str) -> None:
    """One in each stage that the others go with: what is asked of it has no answer, in any format."""
    whole = load(str(KEPT / "manual.capture"))
    stage = whole.stage(name)
    assert stage is not None
    data = stage.source.data
    of_shardy, others = rb"= sdy\.\w+", rb"^ +(?:ROOT )?%\S+ ="
    found = [*re.finditer(of_shardy, data), *[*re.finditer(others, data, re.MULTILINE)][::8]]
    for place in [match.end() for match in found]:
        broken = replace(stage, source=Source(name, data[:place] + b" \xff]" + data[place:]))
        stages = tuple(broken if each is stage else each for each in whole.stages)
        report = inspect(replace(whole, stages=stages))
        assert len(list(written(report))) == len(formats("report", "reports")), place


@pytest.mark.parametrize("place", [10, 100, 1000])
def test_a_jaxpr_that_is_not_utf8(saved: Callable[[str], list[Frame]], place: int) -> None:
    broken = [
        Frame(frame.event, frame.text[:place] + b"\xff" + frame.text[place + 1 :])
        if frame.event.get("name") == "jaxpr"
        else frame
        for frame in saved("psum:psum")
    ]
    capture = opened(gzip.compress(b"".join(map(encode, broken))))
    assert capture is not None
    report = inspect(capture)
    assert len(list(written(report))) == len(formats("report", "reports"))
    assert report.could_be_read("jaxpr") == (report.program.jaxpr is not None)


def chained(count: int) -> str:
    """A program with one collective of so many values, which are added up."""
    types = ", ".join(["f32[8]"] * count)
    elements = "".join(
        f"  %g{n} = f32[8] get-tuple-element(%all), index={n}\n"
        f"  %s{n} = f32[8] add(%g{n}, %{'p' if n == 0 else f's{n - 1}'})\n"
        for n in range(count)
    )
    return f"""HloModule m, is_scheduled=true, num_partitions=4

%sum (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}}

ENTRY %main (p: f32[8]) -> f32[8] {{
  %p = f32[8] parameter(0)
  %all = ({types}) all-reduce({", ".join(["%p"] * count)}), channel_id=1, replica_groups=[1,4]<=[4], \
use_global_device_ids=true, to_apply=%sum
{elements}  ROOT %r = f32[8] negate(%s{count - 1})
}}
"""


def test_work_grows_with_the_collectives() -> None:
    def read(text: str) -> None:
        inspect(Capture(stages=(Stage("hlo", "hlo", Source("f", text.encode())),), complete=True))

    assert is_linear(read, *map(chained, (5, 20, 80, 160)))


def grouped(groups: Iterable[str], partitions: int) -> str:
    """A program with a collective over each of these groups."""
    lines = (
        f"  %r{n} = f32[8] all-reduce(%p), channel_id={n + 1}, replica_groups={each}, use_global_device_ids=true, "
        "to_apply=%sum\n"
        for n, each in enumerate(groups)
    )
    head, _, _ = chained(1).replace("num_partitions=4", f"num_partitions={partitions}").partition("  %all")
    return f"{head}{''.join(lines)}  ROOT %n = f32[8] negate(%r0)\n}}\n"


@pytest.mark.parametrize("partitions", [MAX_DEVICES + 1, 9_999_999, 999_999_999, 10**18])
def test_devices_that_no_program_has(partitions: int) -> None:
    """A header says of how many devices `{}` are; nobody lists them all."""
    source = Source("f", grouped(["{}"], partitions).encode())
    report = inspect(Capture(stages=(Stage("hlo", "hlo", source),), complete=True))
    assert report.partitions == 1
    header = f"mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 9999999 : i32"
    source = Source("f", f"module attributes {{{header}}} {{\n}}\n".encode())
    report = inspect(Capture(stages=(Stage("stablehlo", "mlir", source),), complete=True))
    assert report.partitions == 1


LABELS = "dim_labels=b01f_01io->b01f"
GEMM = '"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":[%s]}}'


@pytest.mark.parametrize(
    ("opcode", "attributes", "flops"),
    [
        ("convolution", f"window={{size=3x3 pad=1_1x1_1}}, {LABELS}", 2 * 8 * 8 * 8 * (8 * 3 - 2) ** 2),
        ("convolution", f"window={{size=3x3 lhs_dilate=0x0}}, {LABELS}", None),
        ("convolution", f"window={{size=3x3 pad=a_1x1_1}}, {LABELS}", None),
        ("convolution", f"window={{size=3x3 stride={'9' * 5000}x1}}, {LABELS}", None),
        ("convolution", "window={size=3x3}, dim_labels=b01f_01io->bxyz", None),
        ("dot", f"lhs_contracting_dims={{{'9' * 5000}}}", 2 * 8**4),
        *(("custom-call", f"backend_config={{{GEMM % each}}}", None) for each in ('"x"', "-10", "null", "[]", "1e999")),
        ("custom-call", f"backend_config={{{GEMM % 1}}}", 2 * 8**5),
    ],
)
def test_attributes_that_are_no_numbers(opcode: str, attributes: str, flops: int | None) -> None:
    text = f"""HloModule m

ENTRY %main (p: f32[8,8,8,8], k: f32[3,3,8,8]) -> f32[8,8,8,8] {{
  %p = f32[8,8,8,8] parameter(0)
  %k = f32[3,3,8,8] parameter(1)
  ROOT %r = f32[8,8,8,8] {opcode}(%p, %k), {attributes}
}}
"""
    entry = parse_module(Source("f", text.encode())).entry
    assert entry is not None
    assert entry.root is not None
    assert matmul_flops(entry.root, [entry.instructions[0].type, entry.instructions[1].type]) == flops


def test_operations_in_a_circle_and_without_operands() -> None:
    text = grouped(["[1,4]<=[4]", "[1,4]<=[4]"], 4).replace(
        "all-reduce(%p), channel_id=2", "all-reduce(%u), channel_id=2"
    )
    text = text.replace(
        "ENTRY",
        """%body (b: (f32[8])) -> (f32[8]) {
  ROOT %b = (f32[8]) parameter(0)
}

%condition (c: (f32[8])) -> pred[] {
  %c = (f32[8]) parameter(0)
  %one = pred[] copy(%other)
  ROOT %other = pred[] copy(%one)
}

ENTRY""",
    ).replace(
        "  %r0",
        """  %t = (f32[8]) tuple(%p)
  %w = (f32[8]) while(%t), condition=%condition, body=%body
  %u = f32[8] dynamic-update-slice()
  %r0""",
        1,
    )
    report = inspect(Capture(stages=(Stage("hlo", "hlo", Source("f", text.encode())),), complete=True))
    assert len(list(written(report))) == len(formats("report", "reports"))


def test_groups_that_are_spelled_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line names up to a million devices: those that are spelled alike are one list, and others have a limit."""
    monkeypatch.setattr(participants, "MAX_MEMBERS", 3 * 64)
    spelled = [f"[{64 >> n},{1 << n}]<=[64]" for n in (1, 1, 2, 1, 3, 4, 5, 1)]
    source = Source("f", grouped(spelled, 64).encode())
    report = inspect(Capture(stages=(Stage("hlo", "hlo", source),), complete=True))
    groups = [each.groups for each in report.collectives if each.stage == "hlo"]
    assert [len(each) for each in groups] == [32, 32, 16, 32, 8, 0, 0, 32]
    assert groups[0] is groups[1] is groups[7]


def test_lines_of_other_files_are_not_shown(
    sample: SampleCapture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A capture names files of whoever opens it: only those under the working directory are theirs to show."""
    captured = replace(sample("missing_reduce_scatter:faulty"), script_text=None)
    assert captured.subject is not None
    script = Path(captured.subject.script or "")
    lines = {line.strip() for line in script.read_text().splitlines() if len(line) > 20}
    file.save(captured, tmp_path / "foreign")

    def shown() -> set[str]:
        """The lines of the script that some format quotes."""
        found = inspect(file.load(tmp_path / "foreign"))
        everything = "".join(text.decode() if isinstance(text, bytes) else text for text in written(found))
        return {line for line in lines if line in html.unescape(everything)}

    monkeypatch.chdir(script.parent)
    assert shown()
    monkeypatch.chdir(tmp_path)
    assert not shown()
    (tmp_path / "link.py").symlink_to(script)
    (tmp_path / "own.py").write_text("own = 1\n")
    here, foreign = Program(Capture()), Program(Capture(foreign=True))
    for name in (str(script), "link.py", "own.py", f"../{tmp_path.name}/own.py"):
        assert here.file(name) is not None
        assert (foreign.file(name) is not None) == name.endswith("own.py")


@pytest.mark.parametrize(
    ("step", "count", "number"),
    [("add", 20, 3 << 20), ("add", 50, 0), ("add", 400, None), ("multiply", 4, 3**16), ("multiply", 40, 1)],
)
def test_numbers_in_many_steps(step: str, count: int, number: int | None) -> None:
    """Neither Python's stack nor integers without end are at the mercy of a file."""
    steps = "".join(f"  %i{n + 1} = s32[] {step}(%i{n}, %i{n})\n" for n in range(count))
    head = "HloModule m\n\nENTRY %main (p: f32[]) -> s32[] {\n  %i0 = s32[] constant(3)\n"
    module = parse_module(Source("f", f"{head}{steps}  ROOT %r = s32[] copy(%i{count})\n}}\n".encode()))
    assert module.entry is not None
    assert module.entry.root is not None
    found = PartitionNumbers(HloFlow(module), 2).scalar(HloValue(module.entry.root))
    assert found == (None if number is None else (number, number))


def zipped(*files: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return data.getvalue()


def in_itself(data: bytes, times: int) -> bytes:
    for _ in range(times):
        data = zipped(("inner", data), compression=zipfile.ZIP_STORED)
    return data


SPACES = b"HloModule m\n" + b" " * (1 << 20)
"""A mebibyte, and more by a line."""

BOMBS = {
    "gz": gzip.compress(SPACES),
    "xz": lzma.compress(SPACES),
    "bz2": bz2.compress(SPACES),
    "gz in gz": gzip.compress(gzip.compress(SPACES)),
    "zip": zipped(("a.hlo", SPACES), ("b.hlo", SPACES)),
    "texts in zip": zipped(*((f"{number}.gz", gzip.compress(SPACES[: 1 << 18])) for number in range(8))),
    "zip in zip": in_itself(b"HloModule m", 2000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_a_small_file_unpacks_to_is_bounded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is wrapped: the limits are lowered here, so that a mebibyte is too much of a small file."""
    monkeypatch.setattr(packed, "SMALL_BYTES", 1 << 20)
    monkeypatch.setattr(packed, "MAX_RATIO", 1)
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name])
    with pytest.raises((CaptureError, ParseError)):
        load(str(path))


def test_what_jaxlib_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads what is no text: a damaged protocol buffer of 7 kB had it take 8 GB, and another had no end."""
    resource = pytest.importorskip("resource")
    taken: dict[int, int] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: taken.update({kind: limits[0]}))
    monkeypatch.setattr(binaries, "available_bytes", lambda: 1 << 40)
    binaries.limit(7000)
    few = dict(taken)
    assert 1 << 31 < few[resource.RLIMIT_DATA] < 1 << 33
    assert few[resource.RLIMIT_CPU] < 60
    binaries.limit(10 << 20)
    assert taken[resource.RLIMIT_DATA] - few[resource.RLIMIT_DATA] >= 100 * (10 << 20)
    assert taken[resource.RLIMIT_CPU] - few[resource.RLIMIT_CPU] >= 10
    monkeypatch.setattr(binaries, "available_bytes", lambda: 1 << 30)  # as in a small container
    binaries.limit(7000)
    assert taken[resource.RLIMIT_DATA] == 1 << 30
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10, 20))
    binaries.limit(7000)
    assert set(taken.values()) == {10}


def test_files_of_a_folder_have_one_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "SMALL_BYTES", 1 << 20)
    monkeypatch.setattr(packed, "MAX_RATIO", 1)
    for stage in ("before_optimizations", "cpu_after_optimizations"):
        (tmp_path / f"module_0001.m.{stage}.txt.gz").write_bytes(gzip.compress(SPACES[: 3 << 18]))
    with pytest.raises(CaptureError, match="holds more than"):
        load(str(tmp_path))


STARTED = ProcessStarted(1, ("train.py",), "3.13", 0.0)


@pytest.mark.parametrize("name", ["events", "calls", "0000.capture"])
def test_only_regular_files_of_a_trace(name: str, tmp_path: Path) -> None:
    events = (STARTED, CompiledProgram(0, "step", "step", captured="full"))
    (tmp_path / "host-1").mkdir()
    (tmp_path / "host-1" / "events").write_bytes(b"".join(encode(frame_of(event)) for event in events))
    assert is_trace(tmp_path)
    (tmp_path / "host-1" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "host-1" / name)  # to read it would take until somebody writes
    assert is_trace(tmp_path) == (name != "events")
    assert len(read_trace(tmp_path).programs) == (name != "events")


@pytest.mark.parametrize("number", [-1, 1 << 16, 10**19, 10**300])
def test_numbers_of_programs(number: int, tmp_path: Path) -> None:
    """They are places in a file, and names of files."""
    (tmp_path / "host-1").mkdir()
    good = CompiledProgram(0, "step", "step")
    events = (STARTED, good, good, replace(good, number=number, captured="full"), replace(good, number=1))
    (tmp_path / "host-1" / "events").write_bytes(b"".join(encode(frame_of(event)) for event in events))
    (tmp_path / "host-1" / "calls").write_bytes(bytes(8))
    assert [program.compiled for program in read_trace(tmp_path).programs] == [good]


def test_only_regular_files_of_a_folder(tmp_path: Path) -> None:
    name, text = "module_0001.{}.cpu_after_optimizations.txt", chained(1)
    (tmp_path / "outside.txt").write_text(text.replace("HloModule m", "HloModule much_larger_than_the_other"))
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / name.format("m")).write_text(text)
    (folder / name.format("linked")).symlink_to(tmp_path / "outside.txt")
    os.mkfifo(folder / name.format("pipe"))  # to read it would take until somebody writes
    found = load(str(folder))
    assert [stage.source.data.split()[1] for stage in found.stages] == [b"m,"]
    assert not found.messages


@pytest.mark.parametrize("read", [load, read_golden])
def test_a_device_without_an_end(read: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(golden, "MAX_BYTES", 1 << 20)
    with pytest.raises(CaptureError, match=r"(?:holds more|larger) than"):
        read("/dev/zero")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev"])
def test_sources_are_regular_files(device: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").symlink_to(device)
    assert Program(Capture()).file(str(tmp_path / "a.py")) is None
