"""Pieces of the capturing process, in this one: where a derivative is taken, diverted messages, kinds of reductions."""

from __future__ import annotations

import copy
import ctypes
import itertools
import linecache
import os
import resource
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from shardscope.inspector.capture.children import Children
from shardscope.inspector.capture.endings import Ending
from shardscope.inspector.capture.events import decode
from shardscope.inspector.capture.process import Process, _peak
from shardscope.inspector.capture.protocol.events import Failure
from shardscope.inspector.capture.protocol.trace import EVENTS_FILE, Overhead, TraceOptions
from shardscope.inspector.capture.protocol.wire import Frame, encode, read
from shardscope.inspector.capture.protocol.workspace import diverted
from shardscope.inspector.capture.worker import channel, patches
from shardscope.inspector.capture.worker.binaries import _protos
from shardscope.inspector.capture.worker.inputs import costliest
from shardscope.inspector.capture.worker.inputs.running import _observed
from shardscope.inspector.capture.worker.probes.gradients import _place
from shardscope.inspector.capture.worker.probes.partial import REDUCTIONS, _reduction
from shardscope.inspector.capture.worker.script_trial import _facts, _Values
from shardscope.inspector.capture.worker.tracing import hooks
from shardscope.inspector.capture.worker.tracing.recorder import Recorder
from shardscope.inspector.capture.worker.tracing.transfers import Transfers


class Copied:
    """Notes the frame that copies it, which is of Python's own library."""

    def __deepcopy__(self, known: object) -> FrameType:
        return sys._getframe(1)


def test_the_line_that_takes_a_derivative_is_the_users() -> None:
    """Of the frames around a call the innermost that is neither Python's nor JAX's."""
    own = sys._getframe()
    assert _place(own) == (__file__, own.f_lineno)
    frames, line = copy.deepcopy([Copied()]), own.f_lineno
    assert frames[0].f_code.co_filename == copy.__file__
    assert _place(frames[0]) == (__file__, own.f_lineno)
    assert line < own.f_lineno


@pytest.mark.parametrize("kind", [None, "sum", "max", "min", "MAX"])
def test_reductions_by_the_kind_of_unreduced_axes(kind: str | None) -> None:
    """A text, or a member of an enumeration; without one it is a sum, as before JAX 0.12."""
    for given in (kind, None if kind is None else SimpleNamespace(name=kind)):
        spec = SimpleNamespace() if given is None else SimpleNamespace(unreduced_kind=given)
        assert _reduction(SimpleNamespace(spec=spec)) is REDUCTIONS[(kind or "sum").lower()]
    with pytest.raises(NotImplementedError, match="xor"):
        _reduction(SimpleNamespace(spec=SimpleNamespace(unreduced_kind="xor")))


def test_messages_are_diverted_for_a_while(tmp_path: Path) -> None:
    """What libraries write to descriptor 2, not to `sys.stderr`; nothing is left open."""
    before, descriptors = os.fstat(2), sorted(os.listdir("/dev/fd"))
    with diverted(tmp_path / "said"):
        os.write(2, b"one\n")
    with diverted(tmp_path / "said"):
        os.write(2, b"two\n")
    assert (tmp_path / "said").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "said").stat().st_mode & 0o777 == 0o600
    assert (os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino)
    assert sorted(os.listdir("/dev/fd")) == descriptors


@pytest.mark.parametrize("stdin", [None, "said", "missing"])
def test_a_process_reads_what_it_is_given_and_leaves_no_descriptor(tmp_path: Path, stdin: str | None) -> None:
    (tmp_path / "said").write_text("said")
    delivered: list[Any] = []
    before = len(os.listdir("/dev/fd"))
    code = "import sys; print(sys.stdin.read())"
    with Children() as children:
        given = None if stdin is None else str(tmp_path / stdin)
        command = [sys.executable, "-S", "-c", code]
        process = Process(children, lambda _: command, os.environ, None, delivered.append, given)
        process.join()
    (ending,) = delivered
    if stdin == "missing":
        assert isinstance(ending, FileNotFoundError)
    else:
        assert isinstance(ending, Ending)
        assert (ending.status, ending.stdout, ending.damage) == (0, f"{stdin or ''}\n".encode(), None)
    assert len(os.listdir("/dev/fd")) == before


class Heard:
    """A listener that keeps what it hears, and lets JAX do its work."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def heard(*args: Any) -> Any:
            self.said.append(args[0] if name == "complain" else name)
            return args[0]() if name == "compile_module" else args[1] if name == "counting" else None

        return heard


CHANGES = {
    hooks._change_transfers: ("_device_put_impl", ["put"]),
    hooks._change_compiler: ("compile_or_get_cached", ["compile_module"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_hook_is_told_and_calls_what_it_replaces(change: Any) -> None:
    name, said = CHANGES[change]
    heard = Heard()
    module = SimpleNamespace(**{name: lambda *args, **kwargs: (args, kwargs)})
    change(module, heard)
    assert getattr(module, name)("one", *(("two",) if name.startswith("compile") else ()), device=3) == (
        (("one", "two") if name.startswith("compile") else ("one",)),
        {"device": 3},
    )
    assert heard.said == said


@pytest.mark.parametrize("change", [*CHANGES, hooks._change_programs])
def test_what_jax_no_longer_has_is_complained_of(change: Any) -> None:
    heard = Heard()
    change(SimpleNamespace(), heard)
    assert heard.said
    assert all(each.startswith("has no ") for each in heard.said)
    for only in ("ExecuteReplicated", "MeshExecutableFastpathData", "lower_sharding_computation", "MeshComputation"):
        half = Heard()
        hooks._change_programs(SimpleNamespace(**{only: SimpleNamespace(__call__=None, compile=None)}), half)  # type: ignore[arg-type]
        assert len(half.said) == 2


def test_arrays_meshes_and_shardings_that_a_frame_names() -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    devices = Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("a", "b"))

    def frame() -> tuple[Any, ...]:
        state = {"w": np.ones((3, 4)), "spec": PartitionSpec(("x", "y"), None)}
        rows, gone, there = NamedSharding(mesh, PartitionSpec(None, "x")), jnp.ones(5), jnp.ones((2, 3))
        placed = jax.device_put(there, NamedSharding(devices, PartitionSpec("a")))
        count, text, meshes, model = 3, "text", (mesh, devices), SimpleNamespace(w=np.ones(2), n=1)
        gone.delete()
        return sys._getframe(), state, rows, placed, count, text, meshes, model

    found = {each.pop("name"): each for each in _facts(frame()[0]) if not each["name"].startswith("devices.")}
    on = {"mesh": [["x", 4], ["y", 2]], "types": ["Explicit", "Auto"]}
    one = {"mesh": [["a", 1], ["b", 1]], "types": ["Auto", "Auto"], "devices": [jax.devices()[0].id]}
    assert found == {
        "state['w']": {"kind": "host", "shape": [3, 4]},
        "state['spec']": {"kind": "spec", "spec": [["x", "y"], []]},
        "model.w": {"kind": "host", "shape": [2]},
        "rows": {"kind": "sharding", "spec": [[], ["x"]], **on},
        "gone": {"kind": "deleted", "shape": [5]},
        "there": {"kind": "array", "shape": [2, 3], "devices": [jax.devices()[0].id]},
        "placed": {"kind": "array", "shape": [2, 3], "spec": [["a"]], **one},
        "meshes[0]": {"kind": "mesh", **on},
        "meshes[1]": {"kind": "mesh", **one},
        "mesh": {"kind": "mesh", **on},
        "devices": {"kind": "mesh", **one},
    }


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1024), ("darwin", 1)])
def test_the_peak_of_another_process_where_it_is_above_our_own(
    platform: str, unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    more, less = (SimpleNamespace(ru_maxrss=size) for size in (2 * own, own // 2))
    assert _peak(more) == 2 * own * unit  # type: ignore[arg-type]
    assert _peak(less) is None  # type: ignore[arg-type]


def test_modules_with_the_name_are_observed(tmp_path: Path) -> None:
    file = str(tmp_path / "model.py")
    code = _observed(b"def other(): return step(1)", file, "step")
    assert code is not None
    assert code.co_filename == file
    assert _observed(b"def other(): return 1", file, "step") is None
    assert _observed(b"def step(", file, "step") is None
    assert _observed(b"def step(): return 1", np.__file__, "step") is None


def test_values_that_a_script_had() -> None:
    """By function, call and variable: shape, kind, norm and sums, as NumPy computes them."""
    values, array = _Values(), np.linspace(-1, 2, 6).reshape(2, 3)
    assert values.record("step", {"x": array, "text": "no number"}, result={"loss": 2.0}) == {"loss": 2.0}
    assert values.record("step", {"x": jnp.asarray(array, jnp.bfloat16)}) is None
    for _ in range(5):
        values.record("other.step", {"n": 3})
    values.printed(True, 1 + 2j, step)
    assert values.has_call_of("step")
    assert values.has_call_of("other.step")
    assert not values.has_call_of("tep")
    assert set(values.kept) == {
        "step#0 x",
        "step#0 return['loss']",
        "step#1 x",
        *(f"other.step#{number} n" for number in range(3)),
        "print#0 argument 0",
        "print#0 argument 1",
    }
    shape, kind, ((norm, _), (total, _), _) = values.kept["step#0 x"]
    assert (shape, kind) == ([2, 3], "float32")
    assert (norm, total) == (pytest.approx(np.linalg.norm(array)), pytest.approx(array.sum()))
    assert values.kept["step#1 x"][1] == "bf16"
    assert values.kept["print#0 argument 1"][2][1] == [1.0, 2.0]
    reversed_ = _Values()
    reversed_.record("step", {"x": array[::-1, ::-1]})
    assert np.allclose(reversed_.kept["step#0 x"][2][:2], values.kept["step#0 x"][2][:2])
    assert not np.allclose(reversed_.kept["step#0 x"][2], values.kept["step#0 x"][2])


def step() -> None: ...


@pytest.mark.parametrize(
    ("then", "status", "is_damaged"),
    [("time.sleep(600)", -9, True), ("os.abort()", -6, False), ("os._exit(3)", 3, False)],
)
def test_a_frame_that_is_cut_off_is_no_damage_where_its_writer_died(then: str, status: int, is_damaged: bool) -> None:
    delivered: list[Any] = []
    half = encode(Frame({"event": "end"}, b"text"))[:-2]
    code = f"import os, sys, time; os.write(int(sys.argv[1]), {half!r}); os.close(int(sys.argv[1])); {then}"
    with Children() as children:
        process = Process(
            children,
            lambda descriptor: [sys.executable, "-S", "-c", code, str(descriptor)],
            os.environ,
            None,
            delivered.append,
        )
        process.join()
    (ending,) = delivered
    assert (ending.status, ending.damage is not None) == (status, is_damaged)


def test_arrays_that_are_put_elsewhere() -> None:
    """From the host, by its bytes, and each time; not where they are already, and no scalars."""
    written: list[Any] = []
    transfers, (device, *_) = Transfers(written.append), jax.devices()
    host, there = np.ones((3, 4), np.float32), jax.device_put(np.ones(5), device)
    mesh = Mesh(np.array([device]).reshape(1, 1), ("x", "y"))
    for _ in range(5):
        for value, target in (
            (host, device),
            (host, NamedSharding(mesh, PartitionSpec("x"))),
            (there, device),
            (np.float32(1), device),
            (host, None),
            (host, "cpu"),
        ):
            transfers.put(value, target)
    transfers.end()
    last = {each.number: each for each in written}
    assert [(each.source, each.target, each.calls) for each in last.values()] == [
        ("host", f"device {device.id}", 5),
        ("host", "P('x') of x=1, y=1", 5),
    ]
    assert all((each.most, each.received, each.pairs) == (48, 48, ()) for each in last.values())
    assert [each.calls for each in written if each.number == 0] == [1, 2, 4, 5]
    assert all(each.call is not None and each.call.file == __file__ for each in written)


@pytest.mark.parametrize("size", [1, 127, 128, 300, 16_384, 70_000])
def test_the_first_field_of_a_protocol_buffer(size: int) -> None:
    """Its length has seven bits in each byte, the lowest first, and a bit in all but the last."""
    digits = [size >> shift & 127 for shift in range(0, max(size.bit_length(), 1), 7)]
    length = bytes([*(digit | 128 for digit in digits[:-1]), digits[-1]])
    proto = b"\n" + b"x" * (size - 1)
    data = b"\n" + length + proto + b"more"
    assert list(_protos(data)) == [proto, data]
    assert list(_protos(proto)) == [proto]


PR_GET_PDEATHSIG = 2  # linux/prctl.h


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has it")
def test_the_system_ends_a_process_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the signal that the system says; where the parent had ended before, the process ends itself."""
    left: list[int] = []
    monkeypatch.setattr(channel, "_exit", left.append)
    libc, found = ctypes.CDLL(None), ctypes.c_int()
    try:
        channel.die_with_parent()
        libc.prctl(PR_GET_PDEATHSIG, ctypes.byref(found))
        assert (found.value, left) == (signal.SIGKILL, [])
        parents = iter((os.getppid(), 1))
        monkeypatch.setattr(os, "getppid", lambda: next(parents))
        channel.die_with_parent()
    finally:
        libc.prctl(channel.PR_SET_PDEATHSIG, 0)
    assert left == [1]


def test_tracebacks_quote_a_text_in_place_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("changed\n" * 3)
    patches.quote(b"first\n\nvalue = 1 / 0  # \xe2\x80\xa8 in one line", str(file))
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile("\n\n1 / 0", str(file), "exec"))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "value = 1 / 0  # \u2028 in one line"
    assert linecache.getlines(str(file))[:2] == ["first\n", "\n"]


def test_the_collector_goes_on_after_an_import_of_jax_that_raises(tmp_path: Path) -> None:
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("import gc, jax.version\nassert gc.get_threshold()[0] == 0\nraise ImportError")
    (package / "version.py").touch()
    script = """if True:
        import gc, sys
        sys.path[:0] = sys.argv[1:]
        from shardscope.inspector.capture.worker import patches
        before = gc.get_threshold()
        patches.pause_collector()
        try:
            import jax
        except ImportError:
            assert gc.get_threshold() == before, gc.get_threshold()
            print("raised")"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, check=True, text=True)
    assert done.stdout == "raised\n"


def test_an_uncaught_error_of_a_script_is_shown_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    before, error = sys.excepthook, ValueError("of the script")
    clock = itertools.count()
    monkeypatch.setattr("time.thread_time", lambda: next(clock))
    recorder = Recorder(str(tmp_path), TraceOptions())
    sys.excepthook(ValueError, error, None)
    recorder.close()
    assert shown == [(ValueError, error, None)]
    assert sys.excepthook is before
    (file,) = tmp_path.glob(f"*/{EVENTS_FILE}")
    with file.open("rb") as frames:
        events = list(map(decode, read(frames)))
    assert [event.said for event in events if isinstance(event, Failure)] == ["of the script"]
    *_, overhead = (event for event in events if isinstance(event, Overhead))
    assert overhead == Overhead(1, 0)


@pytest.mark.parametrize(("newest", "patience"), [(3.0, costliest.MIN_SECONDS), (10.0, 5.0)])
@pytest.mark.parametrize("calls", [costliest.MIN_CALLS - 1, costliest.MIN_CALLS])
def test_a_script_may_only_repeat_what_it_has_done(
    newest: float, patience: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some calls and seconds without a new program, or half of the time until the last; by the test's clock."""
    now, finished = [newest], []
    monkeypatch.setattr(costliest, "time", SimpleNamespace(monotonic=lambda: now[0]))
    observer = costliest._Observer(finished.append, started=0.0, newest=newest)  # type: ignore[arg-type]
    for _ in range(calls):
        observer.may_only_repeat(jnp.ones(2))
    now[0] += patience
    observer.since -= 1
    observer.may_only_repeat(jnp.ones(2))
    assert (finished, observer.is_over) == ([], False)
    now[0] += 0.1
    observer.since -= 1
    observer.may_only_repeat(jnp.ones(2))
    assert observer.is_over == (calls >= costliest.MIN_CALLS)
    assert finished == [observer] * observer.is_over
