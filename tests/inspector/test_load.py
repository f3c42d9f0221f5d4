"""Files as people have them: compressed, archived, as bytecode and protocol buffers, written by jaxlib and the standard
library, say what the text in them says; and none unpacks into all of the memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from shardscope.inspector.capture import dumps, packed
from shardscope.inspector.capture.dumps import MAX_NAMES, MAX_WRAPPINGS
from shardscope.inspector.capture.endings import Ending
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.diff.passes import pass_changes
from shardscope.inspector.ir.program import Program
from shardscope.inspector.load import load, load_bytes
from shardscope.inspector.pipeline import inspect, stage_summaries
from shardscope.inspector.render.overview import attention
from shardscope.parsers.errors import ParseError, ShardscopeError

from tests.conftest import SampleCapture

TEXT = b"HloModule m, is_scheduled=true\n\nENTRY %e {\n  ROOT %c = f32[] constant(0)\n}\n"


@pytest.fixture(scope="session")
def captured(sample: SampleCapture) -> Capture:
    return sample("fsdp_tp:grad")


def text_of(capture: Capture, stage: str) -> bytes:
    found = capture.stage(stage)
    assert found is not None
    return found.source.data


@pytest.mark.parametrize("before", [b"", b"HLO: ", b"\xef\xbb\xbf"])
def test_a_text_is_kept_as_a_compiler_printed_it(before: bytes) -> None:
    found = load_bytes("f", before + TEXT)
    assert text_of(found, "hlo") == TEXT
    assert len(found.messages) == bool(before)


@pytest.mark.parametrize("above", ["", "x\n", "x\n\ny\n", "$ make\n*** Begin\n"])
@pytest.mark.parametrize("between", ["", "\n", "\n-\n", "\n*** of XLA\nof a log\n"])
@pytest.mark.parametrize("below", ["", ".\n", ".\n\n*** End\n"])
def test_lines_outside_of_modules_are_counted(above: str, between: str, below: str) -> None:
    """All that are not empty, and not XLA's own."""
    text = f"{above}{TEXT.decode()}{between}{TEXT.decode()}{below}"
    lines = [line for line in f"{above}\n{between}\n{below}".splitlines() if line and not line.startswith("*** ")]
    said = [message.text for message in load_bytes("t", text.encode()).messages if "outside" in message.text]
    counted = f"of t, {len(lines)} line{'s' if len(lines) > 1 else ''} outside of any module left out"
    assert said == ([counted] if lines else [])


def zipped_bytes(**members: bytes) -> bytes:
    data = BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return data.getvalue()


def zipped(path: Path, **members: bytes) -> Path:
    path.write_bytes(zipped_bytes(**members))
    return path


def said(capture: Capture) -> list[tuple[object, ...]]:
    """What a text says of its collectives, as far as no print of it differs."""
    found = inspect(capture).collectives
    return [(each.stage, each.kind, each.operand_types, each.result_types, each.groups) for each in found]


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, bz2.compress, lambda data: lzma.compress(gzip.compress(data))]
)
def test_compressed_texts(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "f").write_bytes(pack(TEXT))
    (stage,) = load(str(tmp_path / "f")).stages
    assert (stage.name, stage.source.data) == ("hlo", TEXT)


@pytest.mark.parametrize("times", range(6))
def test_packed_and_packed_again(tmp_path: Path, times: int) -> None:
    """Nobody does so more often than the limit; a file that does may go on without end."""
    data = TEXT
    for _ in range(times):
        data = gzip.compress(data)
    (tmp_path / "f").write_bytes(data)
    with nullcontext() if times <= MAX_WRAPPINGS else pytest.raises(ShardscopeError):
        assert load(str(tmp_path / "f")).stages[0].source.data == TEXT


def test_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can read it, the message says what would."""
    (tmp_path / "f").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(9))
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(CaptureError, match="pip install zstandard"):
        load(str(tmp_path / "f"))
    monkeypatch.undo()
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    packed = zstd.compress(TEXT)
    (tmp_path / "cut").write_bytes(packed[:-3])
    with pytest.raises(CaptureError, match="end"):
        load(str(tmp_path / "cut"))
    (tmp_path / "f").write_bytes(packed)
    assert load(str(tmp_path / "f")).stages[0].source.data == TEXT


def test_archives(tmp_path: Path, captured: Capture) -> None:
    one = load(str(zipped(tmp_path / "one", text=TEXT)))
    assert [stage.source.data for stage in one.stages] == [TEXT]
    save(captured, tmp_path / "saved")
    again = load(str(zipped(tmp_path / "packed", saved=(tmp_path / "saved").read_bytes())))
    assert [stage.source.data for stage in again.stages] == [stage.source.data for stage in captured.stages]
    with pytest.raises(CaptureError, match="leave out --module other"):
        load(str(tmp_path / "saved"), "other")
    two = zipped(tmp_path / "two", **{"a/x.hlo": TEXT, "README": b"see there"}, **{"b.mlir": b"module @m {\n}\n"})
    assert load(str(two), "b.mlir").stages[0].name == "stablehlo"
    with pytest.raises(CaptureError, match=r"a/x\.hlo"):
        load(str(two), "c")
    for empty in ({}, {"README": b"x", "more": b"y"}):
        with pytest.raises(CaptureError, match="neither a module"):
            load(str(zipped(tmp_path / "none", **empty)))


def test_a_dump_in_an_archive_or_compressed(tmp_path: Path, captured: Capture) -> None:
    names = {
        "hlo-before": "module_0001.jit_f.0003.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt",
        "hlo-spmd": "module_0001.jit_f.0004.spmd-partitioner.after_spmd-partitioning.before_dce.txt",
        "hlo": "module_0001.jit_f.cpu_after_optimizations.txt",
    }
    texts = {file: text_of(captured, stage) for stage, file in names.items()}
    found = load(str(zipped(tmp_path / "dump.zip", **texts)))
    (tmp_path / "dump").mkdir()
    for file, data in texts.items():
        (tmp_path / "dump" / f"{file}.gz").write_bytes(gzip.compress(data))
    for each in (found, load(str(tmp_path / "dump"))):
        assert {stage.name: stage.source.data for stage in each.stages} == {
            stage: text_of(captured, stage) for stage in names
        }


@pytest.mark.once
def test_bytecode(tmp_path: Path, captured: Capture) -> None:
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    text = text_of(captured, "stablehlo")
    module = ir.Module.parse(text, mlir.make_ir_context())
    (tmp_path / "f").write_bytes(mlir.module_to_bytecode(module))
    found = load(str(tmp_path / "f"))
    assert found.stages[0].source.data == module.operation.get_asm(enable_debug_info=True).encode()
    (tmp_path / "g").write_bytes(text)
    assert said(found) == said(load(str(tmp_path / "g")))
    # A FlatBuffer: where its table begins, something, and a vector with its length before it.
    vector = mlir.module_to_bytecode(module)
    exported = (60).to_bytes(4, "little") + bytes(64) + len(vector).to_bytes(4, "little") + vector + b"\1\2\3"
    (tmp_path / "h").write_bytes(exported)
    assert said(load(str(tmp_path / "h"))) == said(found)
    (tmp_path / "h").write_bytes(exported[:-10])
    with pytest.raises(ParseError, match="neither HLO nor MLIR"):
        load(str(tmp_path / "h"))


@pytest.mark.parametrize("text", ["once upon a time", "int main() {\n}\n", "ä\n\n", "\nHlo", ""])
def test_of_what_is_no_module_the_first_line_is_underlined(text: str) -> None:
    with pytest.raises(ParseError, match="neither HLO nor MLIR") as raised:
        load_bytes("f", text.encode())
    shown = str(raised.value).splitlines()
    first = text.partition("\n")[0]
    assert shown[1:3] == [f"1 | {first}", f"  | {'^' * max(len(first), 1)}"]


def test_a_function_that_was_exported(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    import jax.export
    import jax.numpy as jnp

    exported = jax.export.export(jax.jit(jnp.tanh))(jax.ShapeDtypeStruct((4,), jnp.float32))
    (tmp_path / "f").write_bytes(exported.serialize())
    assert b"stablehlo.tanh" in load(str(tmp_path / "f")).stages[0].source.data


def test_protocol_buffers(tmp_path: Path, captured: Capture) -> None:
    """An HloProto is, to begin with, the module as its first field."""
    xla = pytest.importorskip("jaxlib._hlo")

    text = text_of(captured, "hlo")
    module = xla.hlo_module_from_text(text.decode()).as_serialized_hlo_module_proto()
    length, prefix = len(module), b"\n"
    while length > 0x7F:
        prefix, length = prefix + bytes([length & 0x7F | 0x80]), length >> 7
    (tmp_path / "f.pb").write_bytes(prefix + bytes([length]) + module)
    (tmp_path / "f").write_bytes(text)
    assert said(load(str(tmp_path / "f.pb"))) == said(load(str(tmp_path / "f")))


@pytest.mark.once
def test_what_jaxlib_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"ML\xefR\rMLIR23")
    with pytest.raises(CaptureError, match="MLIR bytecode"):
        load(str(tmp_path / "f"))
    with pytest.raises(CaptureError, match="nowhere"):
        load(str(tmp_path / "f"), python="/nowhere")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, lambda data: zipped_bytes(one=data, other=b"x")])
def test_a_small_file_does_not_unpack_into_all_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(packed, "SMALL_BYTES", 1 << 20)
    (tmp_path / "bomb").write_bytes(pack(bytes(1 << 23)))
    with pytest.raises(CaptureError, match="holds more than"):
        load(str(tmp_path / "bomb"))


def test_damaged_files(tmp_path: Path) -> None:
    for pack in (gzip.compress, lzma.compress, bz2.compress):
        (tmp_path / "f").write_bytes(pack(TEXT)[:-5])
        with pytest.raises(CaptureError, match="cannot read"):
            load(str(tmp_path / "f"))
    (tmp_path / "f").write_bytes(zipped(tmp_path / "z", f=TEXT).read_bytes()[:-30])
    with pytest.raises(CaptureError, match="cannot read"):
        load(str(tmp_path / "f"))


PARTITIONED = b"HloModule m, num_partitions=2\n\nENTRY %main.1_spmd (p: f32[2]) -> f32[2] {\n"


@pytest.mark.parametrize(
    ("text", "name", "stage"),
    [
        (TEXT, "f", "hlo"),
        (TEXT.replace(b"is_scheduled=true", b"num_partitions=2"), "f", "hlo-before"),
        (PARTITIONED, "f", "hlo-spmd"),
        (PARTITIONED, "module_1.m.0007.spmd-partitioner.after_spmd-partitioning.before_x.txt", "hlo-spmd"),
        (TEXT.split(b"\n\n")[1], "module_1.m.0007.spmd-partitioner.after_spmd-partitioning.txt", "hlo-spmd"),
        (TEXT.split(b"\n\n")[1], "f", "hlo"),
        (TEXT, "module_1.jit_f.before_optimizations.txt", "hlo-before"),
    ],
)
def test_which_stage_a_text_is(tmp_path: Path, text: bytes, name: str, stage: str) -> None:
    (tmp_path / name).write_bytes(text)
    assert [each.name for each in load(str(tmp_path / name)).stages] == [stage]


def test_what_is_said_of_the_place_of_a_text(tmp_path: Path) -> None:
    dce = tmp_path / "module_1.m.0008.spmd-cleanup.after_dce.before_tuple-simplifier.txt"
    dce.write_bytes(TEXT)
    (note,) = load(str(dce)).messages
    assert "after pass 'dce' of 'spmd-cleanup', before 'tuple-simplifier'" in note.text
    (tmp_path / "f").write_bytes(TEXT.split(b"\n\n")[1])
    (note,) = load(str(tmp_path / "f")).messages
    assert "no HloModule line" in note.text


@pytest.mark.parametrize("stage", ["hlo", "hlo-spmd", "hlo-before"])
def test_collectives_of_every_stage_of_hlo(sample: SampleCapture, stage: str) -> None:
    """Those of a stage by itself are as many as XLA's text has."""
    found = sample("ring_attention:attend").stage(stage)
    assert found is not None
    listed = inspect(Capture(stages=(found,), complete=True)).collectives
    assert len(listed) == found.source.data.count(b"channel_id=") > 0
    assert {each.stage for each in listed} == {stage}


PASSES = """
import sys
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
jax.config.update("jax_num_cpu_devices", 8)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
x = jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(mesh, P("x")))
def step(a, b):
    return (a @ b).sum(), jnp.sin(b) @ a
jax.jit(step).lower(x, x).compile()
"""


@pytest.mark.once
def test_a_folder_lists_the_collectives_of_each_stage_and_pass(tmp_path: Path) -> None:
    """Compared with the lines of the files themselves."""
    dump = tmp_path / "dump"
    environment = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_pass_re=.*", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", PASSES], env=environment, check=True, capture_output=True)
    found = load(str(dump))
    counts = {stage.name: stage.collective_counts for stage in stage_summaries(Program(found))}
    assert counts["hlo-before"] == {}
    assert counts["hlo-spmd"]["all-gather"] == counts["hlo"]["all-gather"] > 0

    def kinds(text: str) -> list[str]:
        return sorted(re.findall(r" (all-gather|all-reduce|all-to-all)\(%", text))

    named = {stage.source.name: kinds(stage.source.text()) for stage in found.stages if stage.dialect == "hlo"}
    assert {name: sum(counts.values()) for name, counts in zip(named, map(dict, _hlo(counts)), strict=True)} == {
        name: len(each) for name, each in named.items()
    }
    in_order = [path.read_text() for path in sorted(dump.glob("*jit_step.[0-9]*.txt"))]
    changes = [(a, b) for a, b in pairwise(in_order) if kinds(a) != kinds(b)]
    assert [kinds(b) for _, b in changes] == [["all-gather", "all-gather", "all-reduce"]]
    (change,) = pass_changes(Program(found))
    assert change.name == "spmd-partitioning"
    texts = (change.diff.before.text, change.diff.after.text)
    assert [None if text is None else text.source.text() for text in texts] == list(changes[0])
    assert sorted(kind for one, count in change.diff.after.transfers for kind in [one.work.kind] * count) == kinds(
        changes[0][1]
    )
    # A single file says where it is from.
    (after,) = dump.glob("*.after_spmd-partitioning.before_*")
    alone = inspect(load(str(after)))
    assert sorted(each.kind for each in alone.collectives) == kinds(after.read_text())
    assert "the module after pass 'spmd-partitioning'" in alone.messages[0].message.text


def _hlo(counts: dict[str, Mapping[str, int]]) -> list[Mapping[str, int]]:
    return [each for name, each in counts.items() if name.startswith("hlo")]


def test_a_folder_of_single_passes(tmp_path: Path) -> None:
    name = "module_0001.jit_f.{}.p.after_{}.before_x.txt"
    gather = b"  %g = f32[8]{0} all-gather(%p), dimensions={0}\n"
    for number, (after, lines) in enumerate((("start", b""), ("one", gather), ("two", gather), ("three", b""))):
        text = TEXT.replace(b"{\n", b"{\n  %p = f32[1] parameter(0)\n" + lines)
        (tmp_path / name.format(f"{number:04}", after)).write_bytes(text)
    found = load(str(tmp_path))
    assert [stage.source.name for stage in found.stages] == [name.format("0003", "three")]
    changes = pass_changes(Program(found))
    assert [(each.name, each.pipeline, each.diff.before.count, each.diff.after.count) for each in changes] == [
        ("one", "p", 0, 1),
        ("three", "p", 1, 0),
    ]


@pytest.mark.parametrize("others", [1, MAX_NAMES, MAX_NAMES + 1])
def test_other_modules_are_named_or_counted(others: int) -> None:
    body = "\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n\n"
    text = "".join(f"HloModule m{number:02}{body}" for number in range(others + 1))
    (said,) = [message.text for message in load_bytes("t", text.encode()).messages if "--module" in message.text]
    more = others - said.count(", m") - 1
    assert said.endswith(f" and {more} more" if more else f"m{others:02}")
    assert more == max(0, others - MAX_NAMES)


ALL_DEVICES = """HloModule m{counts}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY e {{
  p = f32[1024] parameter(0)
  sum = f32[1024] all-reduce(p), replica_groups={{}}, to_apply=add
  ROOT gathered = f32[4096] all-gather(sum), replica_groups={{}}, dimensions={{0}}
}}
"""


@pytest.mark.parametrize("counts", ["", ", num_partitions=4", ", replica_count=4"])
def test_the_number_of_all_devices_is_in_the_header_or_unknown(counts: str, tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(ALL_DEVICES.format(counts=counts))
    report = inspect(load(str(path)))
    assert [each.groups for each in report.collectives] == [((0, 1, 2, 3),) if counts else ()] * 2
    # 2 · 3/4 and 3/4 of 4 and 16 KiB.
    assert [each.wire_bytes for each in report.collectives] == ([6144, 12288] if counts else [None, None])
    (gathered,) = (each for each in report.collectives if each.kind == "all-gather")
    assert list(map(str, (*gathered.operand_types, *gathered.result_types))) == ["f32[1024]", "f32[4096]"]
    assert any("unknown" in str(cell) for cell in attention(report)) == (not counts)


def test_groups_that_are_written_out_need_no_number_of_devices(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(ALL_DEVICES.format(counts="").replace("groups={}", "groups={{0,1,2,3}}"))
    report = inspect(load(str(path)))
    assert [each.wire_bytes for each in report.collectives] == [6144, 12288]
    assert not any("unknown" in str(cell) for cell in attention(report))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (subprocess.TimeoutExpired("python", 120), "timed out after 120 s"),
    ],
)
def test_why_an_interpreter_cannot_print_a_module(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise error

    monkeypatch.setattr(dumps, "interpreter_with_jax", lambda python: "/usr/bin/python3")
    monkeypatch.setattr(dumps, "run", run)
    with pytest.raises(CaptureError) as caught:
        dumps.text_of("module", b"ML\xefR\x0d", None)
    assert str(caught.value).endswith(f"/usr/bin/python3 cannot print it: {reason}")
    assert dumps.text_of("module", b"HloModule m", None) == b"HloModule m"


@pytest.mark.parametrize(
    ("status", "stderr", "reason"), [(1, b"first\nlast\n", "(last)"), (-11, b" \n", "(status -11)")]
)
def test_why_a_module_cannot_be_read(status: int, stderr: bytes, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Ending(status, None, b"", stderr)
    monkeypatch.setattr(dumps, "interpreter_with_jax", lambda python: "/usr/bin/python3")
    monkeypatch.setattr(dumps, "run", lambda *_: done)
    with pytest.raises(CaptureError, match=re.escape(reason)):
        dumps.text_of("module", b"ML\xefR\x0d", None)
