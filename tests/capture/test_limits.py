"""Limits, at the last value that is allowed and the first that is not; and figures that the system says elsewhere."""

from __future__ import annotations

import gzip
import inspect
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture import dumps, file, packed
from shardscope.inspector.capture.children import STARVED_SHARE, processor_seconds, ready_seconds
from shardscope.inspector.capture.endings import LAST_WORDS, Ending, died, timed_out
from shardscope.inspector.capture.environment import child_environment, user_devices
from shardscope.inspector.capture.model import CaptureError, UnreadableFileError
from shardscope.inspector.capture.protocol import wire
from shardscope.inspector.capture.protocol.wire import SCHEMA, Frame, FrameError, encode
from shardscope.inspector.capture.protocol.workspace import (
    MAX_MESSAGE_CHARACTERS,
    MAX_MESSAGES,
    drop_propagation,
    find_propagation,
    find_stages,
    keep_propagation,
    kept_propagation,
    read_messages,
    read_peak,
)
from shardscope.inspector.capture.worker.inputs.wrappers import parameter_names
from shardscope.inspector.targets.target import parse_target

FIRST = Frame({"event": "capture", "schema": SCHEMA})


def frames(data: bytes, largest: int = wire.MAX_TEXT_BYTES) -> int:
    return len(list(wire.read(io.BytesIO(data), largest)))


def test_the_longest_text_and_event(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(Frame({"event": "x"}, b"12345"))
    assert frames(data, 5) == 1
    with pytest.raises(FrameError, match="larger"):
        frames(data, 4)
    monkeypatch.setattr(wire, "MAX_TEXT_BYTES", 4)
    with pytest.raises(FrameError, match="larger"):
        frames(data, 5)
    monkeypatch.setattr(wire, "MAX_TEXT_BYTES", 5)
    monkeypatch.setattr(wire, "MAX_EVENT_BYTES", len('{"event":"x"}'))
    assert frames(data) == 1
    monkeypatch.setattr(wire, "MAX_EVENT_BYTES", len('{"event":"x"}') - 1)
    with pytest.raises(FrameError, match="larger"):
        frames(data)


def test_the_longest_header() -> None:
    padded = f"{'0' * 100}13 0\n"[-wire.MAX_HEADER_BYTES :].encode() + b'{"event":"x"}'
    assert frames(padded) == 1
    with pytest.raises(FrameError, match="header"):
        frames(b"0" + padded)


def test_the_most_events_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = Frame({"event": "message", "level": "info", "text": "x", "phase": "run", "location": None})
    (tmp_path / "c").write_bytes(gzip.compress(b"".join(map(encode, (FIRST, message, message)))))
    monkeypatch.setattr(file, "MAX_EVENTS", 2)
    assert file.load(tmp_path / "c").damage is None
    monkeypatch.setattr(file, "MAX_EVENTS", 1)
    assert "1 events" in (file.load(tmp_path / "c").damage or "")


@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_the_most_that_is_unpacked(size: int) -> None:
    data = gzip.compress(bytes(size))
    allowance = packed.Allowance(0)
    allowance.left = allowance.most = size
    assert packed.unpacked("x", data, allowance) == bytes(size)
    assert allowance.left == 0
    allowance.left = allowance.most = size - 1
    with pytest.raises(UnreadableFileError):
        packed.unpacked("x", data, allowance)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("y", bytes(size))
    allowance.left = allowance.most = size
    [(_, _, read)] = packed.members("x", archive.getvalue(), allowance)
    assert read() == bytes(size)


def test_the_most_files_of_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        for name in "abc":
            opened.writestr(name, name)
    monkeypatch.setattr(packed, "MAX_MEMBERS", 3)
    assert [read() for *_, read in packed.members("x", archive.getvalue(), packed.Allowance(9))] == [b"a", b"b", b"c"]
    monkeypatch.setattr(packed, "MAX_MEMBERS", 2)
    with pytest.raises(UnreadableFileError):
        list(packed.members("x", archive.getvalue(), packed.Allowance(9)))


def test_how_much_a_file_may_unpack_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for available, size, most in [
        (None, 0, packed.SMALL_BYTES),
        (None, packed.SMALL_BYTES, packed.MAX_BYTES),
        (None, 1 << 20, packed.MAX_RATIO << 20),
        (80, 0, 80 // packed.SHARE_OF_MEMORY),
    ]:
        monkeypatch.setattr(packed, "available_bytes", lambda available=available: available)
        assert packed.max_unpacked(size) == most


@pytest.mark.parametrize("count", [1, dumps.MAX_NAMES - 1, dumps.MAX_NAMES, dumps.MAX_NAMES + 1, dumps.MAX_NAMES + 5])
def test_names_of_modules_are_listed_up_to_a_number(count: int) -> None:
    modules = {f"m{number:02}": dict[str, dumps.Text]() for number in range(count)}
    with pytest.raises(CaptureError) as caught:
        dumps.capture_of(modules, "other", "here")
    shown = re.findall(r"\bm\d\d\b", str(caught.value))
    left_out = re.search(r"and (\d+) more", str(caught.value))
    assert shown == sorted(modules)[: dumps.MAX_NAMES]
    assert len(shown) + (int(left_out[1]) if left_out else 0) == count


def test_processor_time_of_what_a_process_started() -> None:
    """Its own clock says the same; a process that is not under it counts for nothing."""
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    inner = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        spent = processor_seconds([process.pid])
        assert spent is not None
        assert 0.25 <= spent < 3
        process.communicate(b"\n")
    assert processor_seconds([process.pid]) == 0


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not say it")
def test_what_waits_for_a_processor_is_ready() -> None:
    """Of two that share a processor, each is ready all the time; one that waits for its input never is."""
    share = f"import os\nos.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nprint(flush=True)\n"
    started = [
        subprocess.Popen([sys.executable, "-c", share + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for code in ("while True: pass", "while True: pass", "input()")
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        before, since = [ready_of(process) for process in started], time.monotonic()
        one, other, waiting, passed = 0.0, 0.0, 0.0, 0.0
        while min(one, other) <= STARVED_SHARE * passed < 30:
            time.sleep(0.3)
            passed = time.monotonic() - since
            one, other, waiting = (ready_of(process) - at for process, at in zip(started, before, strict=True))
        assert min(one, other) > STARVED_SHARE * passed > waiting
    finally:
        for process in started:
            process.kill()
            process.communicate()


def ready_of(process: subprocess.Popen[bytes]) -> float:
    return max(ready_seconds([process.pid]).values())


def test_of_several_modules_the_largest_is_found(tmp_path: Path) -> None:
    small, large = (tmp_path / f"module_000{n}.jit_f.after_spmd-partitioning.before_x.txt" for n in (1, 2))
    small.write_text("x")
    large.write_text("xy")
    (tmp_path / "module_0003.jit_f.after_spmd-partitioning.before_x.txt").symlink_to(__file__)
    assert find_stages(str(tmp_path)) == {"hlo-spmd": large}
    assert find_propagation(str(tmp_path)) is None


@pytest.mark.parametrize("missing", ["", "behind", "before", "after"])
def test_files_of_shardy_are_kept_beside_a_capture(missing: str, tmp_path: Path) -> None:
    """Each of its files, or none where one of them is missing; until they are dropped."""
    dump, capture = tmp_path / "dump", tmp_path / "capture"
    names = {
        "behind": dump / "module_0001.jit_f.0003.p.after_shardy-xla.before_x.txt",
        "before": dump / "module_0001.jit_f" / "01.before_propagation.mlir",
        "after": dump / "module_0001.jit_f" / "02.after_propagation.mlir",
    }
    for name, path in names.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if name != missing:
            path.write_text(name)
    found = find_propagation(str(dump))
    assert found == (None if missing else tuple(names.values()))
    keep_propagation(str(dump), capture)
    kept = kept_propagation(capture)
    assert (kept and [path.read_text() for path in kept]) == (None if missing else list(names))
    drop_propagation(capture)
    assert kept_propagation(capture) is None
    assert [path.name for path in tmp_path.iterdir()] == ["dump"]


@pytest.mark.parametrize("before", ["", "BufferAssignment:\nx\n"])
@pytest.mark.parametrize("after", ["", "Stack trace breakdown for peak usage: 1\n"])
def test_the_schedule_of_live_ranges(before: str, after: str, tmp_path: Path) -> None:
    (tmp_path / "m.cpu_after_optimizations-live-range.txt").write_text(
        f"{before}HloLiveRange (max 3):\n  a: 1\n\n{after}"
    )
    assert read_peak(str(tmp_path)) == b"HloLiveRange (max 3):\n  a: 1\n"


def test_without_a_schedule_there_are_no_live_ranges(tmp_path: Path) -> None:
    assert read_peak(str(tmp_path)) is None
    (tmp_path / "m.cpu_after_optimizations-live-range.txt").write_text("BufferAssignment:\n")
    assert read_peak(str(tmp_path)) is None


@pytest.mark.parametrize("count", [1, MAX_MESSAGES, MAX_MESSAGES + 1])
def test_messages_of_the_compiler_are_counted_and_cut(count: int, tmp_path: Path) -> None:
    long = "y" * (MAX_MESSAGE_CHARACTERS + 1)
    heads = (f"W1121 06:14:37.827144   18479 a/b.cc:{number}] text {number}\n" for number in range(count))
    (tmp_path / "log").write_text(f"W1121 06:14:37.827144   18479 a/b.cc:99999] {long}\n{''.join(heads)}")
    found = read_messages(tmp_path / "log", "compile")
    assert len(found) == min(count + 1, MAX_MESSAGES)
    assert found[0].text == long[:-1]
    assert [(each.location, each.text) for each in found[1:]] == [
        (f"b.cc:{number}", f"text {number}") for number in range(len(found) - 1)
    ]


def one(x: Any, /, y: Any, *rest: Any, z: Any = 0, **others: Any) -> None: ...
def two(x: Any, y: Any = 1) -> None: ...
def three(*, z: Any = 1) -> None: ...


@pytest.mark.parametrize("function", [one, two])
@pytest.mark.parametrize("count", range(5))
def test_names_of_arguments_are_those_that_python_binds(function: Callable[..., None], count: int) -> None:
    try:
        bound = inspect.signature(function).bind_partial(*range(count)).arguments
    except TypeError:
        return
    named = {
        number: f"{name}[{index}]" if isinstance(value, tuple) else name
        for name, value in bound.items()
        for index, number in enumerate(value if isinstance(value, tuple) else (value,))
    }
    assert parameter_names(function, count) == [named[number] for number in range(count)]


def test_arguments_that_nothing_names() -> None:
    assert parameter_names(None, 2) == ["arg0", "arg1"]
    assert parameter_names(two, 3) == ["x", "y", "arg2"]
    assert parameter_names(three, 1) == ["arg0"]


def ended(script: str) -> Ending:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    return Ending(done.returncode, 3_000_000_000, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "it was killed (SIGKILL) when it used 3 GB of memory"),
        ("import os; os.kill(os.getpid(), 15)", "it was terminated (SIGTERM)"),
        ("import os; os.kill(os.getpid(), 10)", "a signal (SIGUSR1)"),
        ("import os; os.kill(os.getpid(), 40)", "a signal (signal 40)"),
        ("raise SystemExit(7)", "the process exited with status 7"),
    ],
)
def test_how_a_process_ended(script: str, said: str, tmp_path: Path) -> None:
    failure = died("compile", ended(script), tmp_path)
    assert failure.message.endswith(f": {said}")
    assert (failure.hint is not None) == ("SIGKILL" in said)


@pytest.mark.parametrize("size", [LAST_WORDS - 1, LAST_WORDS, LAST_WORDS + 1])
def test_the_last_words_are_the_end(size: int, tmp_path: Path) -> None:
    text = ("x" * size)[:-3] + "end"
    failure = timed_out(2.5, "run", Ending(-signal.SIGABRT, None, b"", text.encode()), tmp_path)
    assert "timed out after 2.5 s" in failure.message
    assert failure.details == (text if size <= LAST_WORDS else "…" + text[-LAST_WORDS:])


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, None),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3 --x --xla_force_host_platform_device_count=4"}, 4),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_NUM_CPU_DEVICES": " 2"}, 2),
        ({"JAX_NUM_CPU_DEVICES": "all"}, None),
    ],
)
def test_devices_of_the_environment(variables: dict[str, str], count: int | None) -> None:
    assert user_devices(variables) == count
    for target in ("cpu", "tpu:v5p:2x2x1"):
        child = child_environment(variables, parse_target(target), 6)
        assert user_devices(child) == 6
        assert child_environment(variables, parse_target(target), None).get("XLA_FLAGS") == variables.get("XLA_FLAGS")


def test_what_cannot_be_in_an_event_is_refused() -> None:
    for number in (math.inf, math.nan):
        with pytest.raises(ValueError, match="JSON"):
            encode(Frame({"event": "x", "value": number}))
        data = json.dumps({"event": "x", "value": number}).encode()
        with pytest.raises(FrameError):
            frames(b"%d 0\n%b" % (len(data), data))
