"""What a warm server starts is what would have been started without it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture import attempt, warm
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.protocol.bootstrap import LOAD
from shardscope.inspector.capture.protocol.wire import Frame
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.warm import Warmth
from shardscope.samples.catalogue import samples

from tests.sweeps import sampled

pytestmark = [pytest.mark.once, pytest.mark.skipif(sys.platform != "linux", reason="servers run on Linux only")]

MEASURED = {"seconds", "since", "started", "duration", "late", "median"}
"""Fields that hold what no two processes share."""

SCRIPT = """
import gzip, os, sys
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib", "numpy", "threading")))
print(sys.argv, sys.orig_argv[:2], sys.path, sys.flags, __name__, sorted(vars(sys.modules["__main__"])))
print(gzip.__file__, os.getcwd(), os.getpid() == os.getsid(0) == os.getpgid(0))
print(sorted(fd if int(fd) < 5 else "other" for fd in os.listdir("/proc/self/fd")))
print(sorted((os.environ | {"SHARDSCOPE_GUARDED": "each its own"}).items()), repr(sys.stdin.read()))
import jax, threading
print(len(jax.devices()), threading.active_count(), "jax.numpy" in sys.modules)
def fn():
    return jax.numpy.arange(8.0)
"""

Captured = Callable[[Request, bool], tuple["Frames", Capture]]
Frames = list[tuple[dict[str, Any], bytes]]


def without_measures(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_measures(each) for name, each in value.items() if name not in MEASURED}
    if isinstance(value, list | tuple):
        return [without_measures(each) for each in value]
    return value


def plain(text: str) -> str:
    """Without addresses, and without sizes of memory."""
    return re.sub(r"0x[0-9a-f]+|[0-9.]+ GB", "…", re.sub(r" when it used \S+ GB of memory", "", text))


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch, warmth: Warmth) -> Captured:
    """Captures; gives the events, but for what is measured, and the Capture that they add up to."""
    decode = attempt.decode
    monkeypatch.setenv("PYTHONHASHSEED", "1")  # by which JAX orders the sets that it prints

    def run(request: Request, warm: bool) -> tuple[Frames, Capture]:
        found: Frames = []

        def recorded(frame: Frame) -> object:
            found.append((without_measures(frame.event), frame.text))
            return decode(frame)

        monkeypatch.setattr(attempt, "decode", recorded)
        monkeypatch.setattr(warmth, "enabled", warm)
        if warm:
            last_capture(request)  # for the server to be there
        found.clear()
        before = warmth.forked
        last = last_capture(request)
        assert (warmth.forked > before) == warm
        stages = [({"stage": stage.name}, stage.source.data) for stage in last.stages]
        others = [each for each in found if each[0]["event"] != "stage"]  # what the compiler writes may come early
        return [*stages, *sorted(others, key=repr)], last

    return run


SAMPLES = {sample.name: sample.path for sample in samples()}


@pytest.mark.parametrize(
    ("name", "live"),
    sampled([("fsdp_tp:grad", True), ("psum:psum", True), ("moe:loss", False)], ("psum:psum", "moe:loss")),
)
def test_samples(frames: Captured, name: str, live: bool) -> None:
    sample, _, function = name.partition(":")
    request = Request(f"{SAMPLES[sample]}:{function}", live=live)
    (cold, one), (warm, other) = frames(request, False), frames(request, True)
    assert one.complete
    assert cold == warm
    assert (one.stdout, one.stderr) == (other.stdout, other.stderr)


def test_what_a_script_sees_of_its_process(frames: Captured, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "gzip.py").write_text("")
    request = Request(f"{tmp_path}/script.py:fn", argv=("--steps", "3"), directory=str(tmp_path), devices=3)
    (cold, one), (warm, other) = frames(request, False), frames(request, True)
    assert one.complete, one.failure
    assert cold == warm
    assert one.stdout.splitlines() == other.stdout.splitlines()


@pytest.mark.parametrize("overrides", sampled([(("check_vma=off",),), (("mesh=tp:4",),), (("mesh=nothing:4",),)], 1))
def test_changes_after_the_import_of_jax(frames: Captured, overrides: tuple[str, ...]) -> None:
    request = Request(f"{SAMPLES['megatron_mlp']}:block", overrides=overrides, live=False)
    assert frames(request, False)[0] == frames(request, True)[0]


@pytest.mark.once
@pytest.mark.parametrize(
    "end", ["os.abort()", "os._exit(3)", "os.kill(os.getpid(), 9)", "sys.exit(4)", "1 / 0", "time.sleep(100)"]
)
def test_how_it_ends(frames: Captured, tmp_path: Path, end: str) -> None:
    (tmp_path / "script.py").write_text(f"import jax, os, sys, time\n{end}\n")
    request = Request(f"{tmp_path}/script.py:fn", timeout=20.0)
    (_, one), (_, other) = frames(request, False), frames(request, True)
    assert one.failure is not None
    assert other.failure is not None
    assert plain(one.failure.details) == plain(other.failure.details)
    assert (one.failure.kind, plain(one.failure.message)) == (other.failure.kind, plain(other.failure.message))


def test_an_environment_that_comes_too_late_starts_it_as_usual(warmth: Warmth, tmp_path: Path) -> None:
    text = (
        "import os\nos.environ['JAX_ENABLE_X64'] = '1'\nimport jax\ndef fn():\n    return jax.numpy.arange(3.0) / 7\n"
    )
    (tmp_path / "script.py").write_text(text)
    before = warmth.forked
    found = [last_capture(Request(f"{tmp_path}/script.py:fn")) for _ in range(3)]
    assert warmth.forked > before
    assert not warmth.enabled
    assert all(each.complete for each in found), found
    assert [each.outputs[0].type for each in found] == ["f64[3]"] * 3


def test_a_server_is_of_one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What XLA reads when it starts, behind the fork, may differ."""
    monkeypatch.setattr(warm, "COLD_STARTS", 2)
    warmth, command = Warmth(), (sys.executable, "-c", LOAD, "folder", "main")
    for environment in ({"A": "1"}, {"A": "1", "XLA_FLAGS": "--x"}, {"A": "2"}):
        assert warmth.fork(command, None, environment, None, None) is None
    assert {dict(variables)["A"]: count for (_, _, variables), count in warmth._requests.items()} == {"1": 2, "2": 1}


def test_a_server_that_is_gone_is_done_without(warmth: Warmth) -> None:
    request = Request(f"{SAMPLES['psum']}:psum", live=False)
    for _ in range(3):
        assert last_capture(request).complete
    for server in warmth._servers.values():
        server._process.kill()
    before = warmth.forked
    assert last_capture(request).complete
    assert warmth.forked == before


def test_a_server_that_has_grown_is_replaced(warmth: Warmth, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(f"{SAMPLES['psum']}:psum", live=False)
    for _ in range(3):
        assert last_capture(request).complete
    (*_, server) = warmth._servers.values()
    assert 50 << 20 < server.memory < warm.MAX_BYTES
    monkeypatch.setattr(warm, "MAX_BYTES", server.memory // 2)
    before = warmth.forked
    assert last_capture(request).complete
    assert warmth.forked > before
    assert server.memory == 0
    assert server not in warmth._servers.values()


@pytest.mark.once
def test_servers_end_with_the_front_process() -> None:
    program = """
import os, signal
from shardscope.inspector.capture.spawn import Request, last_capture
from shardscope.inspector.capture.warm import WARMTH
from shardscope.samples.catalogue import samples
path = next(each.path for each in samples() if each.name == "psum")
for _ in range(3):
    assert last_capture(Request(f"{path}:psum", live=False)).complete
print(WARMTH.forked, *(each._process.pid for each in WARMTH._servers.values()), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    forked, *servers = map(int, done.stdout.split())
    assert forked
    assert servers
    deadline = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in servers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_interpreter_that_imports_nothing_as_it_starts(
    warmth: Warmth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in most environments: those of editable installations import a finder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    monkeypatch.setenv("PYTHONPATH", next(path for path in sys.path if path.endswith("site-packages")))
    loaded = subprocess.run([python, "-c", "import sys; print('importlib' in sys.modules)"], capture_output=True)
    assert loaded.stdout == b"False\n"
    before = warmth.forked
    found = [last_capture(Request(f"{SAMPLES['psum']}:psum", python=python, live=False)) for _ in range(3)]
    assert warmth.forked > before
    assert all(each.complete for each in found), [each.failure for each in found]


class Served:
    """A server that starts no process."""

    all: list[Served]

    def __init__(self, python: str, folder: str, environment: Mapping[str, str]) -> None:
        self.memory, self.is_closed, self.fails = 0, False, False
        Served.all.append(self)

    def fork(self, request: Any, ends: Any) -> int:
        if self.fails:
            raise OSError
        return 1234

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Warmth:
    Served.all = []
    monkeypatch.setattr(warm, "_Server", Served)
    found = Warmth()
    found.enabled = True
    return found


def asked(warmth: Warmth, times: int = 1, name: str = "A", late: str = "", **options: Any) -> list[int | None]:
    args = ["python", "-c", LOAD, "/folder", "main"]
    given: dict[str, Any] = {"args": args, "cwd": None, "env": {name: "1"}} | options
    env = given["env"] and given["env"] | dict.fromkeys(sorted(warm.LATE)[:1], late)
    return [warmth.fork(given["args"], given["cwd"], env, {}, []) for _ in range(times)]


def test_the_first_of_an_environment_are_started_as_usual(served: Warmth, tmp_path: Path) -> None:
    cold = [None] * warm.COLD_STARTS
    assert asked(served, warm.COLD_STARTS + 2) == [*cold, 1234, 1234]
    assert asked(served, 1, late="other") == [1234]
    assert len(Served.all) == 1
    assert asked(served, warm.COLD_STARTS + 1, "B") == [*cold, 1234]
    assert (len(Served.all), served.forked) == (2, 4)
    for other in ({"env": None}, {"args": "python -c x"}, {"args": ["python", "-m", "x"]}, {"cwd": f"{tmp_path}/no"}):
        assert asked(served, 1, **other) == [None]
    served.enabled = False
    assert asked(served) == [None]
    served.close()
    assert all(each.is_closed for each in Served.all)


def test_after_a_failure_another_server_is_tried_only_later(served: Warmth) -> None:
    asked(served, warm.COLD_STARTS + 1)
    (first,) = Served.all
    first.fails = True
    assert asked(served, warm.COLD_STARTS + 2) == [*[None] * (warm.COLD_STARTS + 1), 1234]
    assert first.is_closed
    assert len(Served.all) == 2


def test_servers_that_grow_or_are_too_many_are_closed(served: Warmth) -> None:
    served.prepare()
    assert Served.all == []
    asked(served)
    served.prepare()
    assert asked(served) == [1234]
    Served.all[0].memory = warm.MAX_BYTES + 1
    assert asked(served) == [1234]
    assert [each.is_closed for each in Served.all] == [True, False]
    for number in range(warm.MAX_SERVERS):
        asked(served, warm.COLD_STARTS + 1, f"NAME{number}")
    closed = [each.is_closed for each in Served.all]
    assert closed == [True, True] + [False] * warm.MAX_SERVERS
