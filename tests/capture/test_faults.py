"""Real faults in scripts and in XLA: each ends in one clear failure, of the right kind, with what was reached."""

from __future__ import annotations

import re
import resource
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest
from shardscope.inspector.capture import attempt
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request

from .conftest import Captured, last

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and limits as Linux has them"),
]


def imported(text: str) -> str:
    """A script that is only imported, since its inputs are in it; that is what fails before it comes to them."""
    return f"{textwrap.dedent(text)}\ndef fn(): return 0\nfn_inputs = ()\n"


def failure(capture: Capture, kind: str, phase: str) -> str:
    """The message and details of a failure that is as it should be."""
    assert capture.failure is not None
    assert (capture.failure.kind, capture.failure.phase) == (kind, phase), capture.failure
    assert not capture.complete
    assert capture.progress is None
    return f"{capture.failure.message}\n{capture.failure.details}"


def test_exception_at_import(captured: Captured) -> None:
    told = failure(captured(imported("def helper():\n    return {}['missing']\nhelper()\n")), "function", "import")
    assert told.startswith("KeyError: 'missing'")
    assert "line 2, in helper\n    return {}['missing']" in told
    assert "importlib" not in told
    assert "_shardscope" not in told


def test_syntax_error(captured: Captured) -> None:
    told = failure(captured("def fn(:\n    pass\n"), "function", "script")
    assert "script.py" in told
    assert "def fn(:" in told


def test_exception_in_the_function(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        def inner(x):
            return jax.lax.scan(lambda c, _: (c @ x, None), x, None, length=2)[0]
        def fn(x):
            return jax.grad(lambda y: inner(y).sum())(x)
        fn_inputs = (jnp.ones((3, 4)),)
    """)
    told = failure(capture, "function", "trace")
    assert "dot_general requires contracting dimensions to have the same shape" in told
    assert "in inner\n    return jax.lax.scan(lambda c, _: (c @ x, None), x, None, length=2)[0]" in told
    assert "frames of JAX" in told
    assert "site-packages/jax" not in told
    assert capture.script_text is not None
    assert capture.subject is not None


def test_exception_of_the_compiler_leaves_the_stages_before(captured: Captured) -> None:
    capture = captured("""
        import jax, jax.numpy as jnp
        def fn(x):
            return jax.lax.ragged_all_to_all(x, x, jnp.zeros(2, int), jnp.ones(2, int), jnp.zeros(2, int),
                                             jnp.ones(2, int), axis_name="i")
        mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        fn = jax.shard_map(fn, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"), check_vma=False)
        fn_inputs = (jnp.ones((8, 4)),)
    """)
    told = failure(capture, "function", "compile")
    assert "ragged-all-to-all" in told.lower().replace("_", "-")
    assert {"jaxpr", "stablehlo", "sdy"} <= {stage.name for stage in capture.stages}


CRASH_IN_THE_COMPILER = """
    import ctypes, os, sys
    import jax, numpy as np
    from jax.experimental.custom_partitioning import custom_partitioning
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()), ("x",))

    @custom_partitioning
    def identity(x):
        return x

    def partition(mesh, arguments, result):
        os.write(2, b"last words of the compiler\\n")
        {fault}

    identity.def_partition(partition=partition, sharding_rule="i -> i",
                           infer_sharding_from_operands=lambda mesh, arguments, result: arguments[0].sharding)

    def fn(x):
        return identity(x) * 2

    fn_inputs = (jax.ShapeDtypeStruct((16,), "float32", sharding=NamedSharding(mesh, P("x"))),)
"""


@pytest.mark.parametrize(
    ("fault", "name"),
    [("os.abort()", "SIGABRT"), ("ctypes.string_at(0)", "SIGSEGV"), ("os.kill(os.getpid(), 9)", "SIGKILL")],
)
def test_crash_of_the_compiler_leaves_what_it_had_written(captured: Captured, fault: str, name: str) -> None:
    capture = captured(CRASH_IN_THE_COMPILER.format(fault=fault))
    told = failure(capture, "died", "compile")
    assert f"the capture died while compiling: {'it was killed' if name == 'SIGKILL' else ''}" in told
    assert name in told
    assert "last words of the compiler" in told
    assert [stage.name for stage in capture.stages] == ["jaxpr", "stablehlo", "sdy", "hlo-before"]
    before = capture.stage("hlo-before")
    assert before is not None
    assert before.source.data.startswith(b"HloModule jit_fn")
    assert any("last words of the compiler" in message.text for message in capture.messages)


@pytest.mark.once
def test_an_endless_compilation(captured: Captured) -> None:
    capture = captured(CRASH_IN_THE_COMPILER.format(fault="while True: pass"), timeout=6.0)
    told = failure(capture, "died", "compile")
    assert "timed out after 6 s, while compiling" in told
    assert "in partition" in told
    assert capture.stage("hlo-before") is not None


def test_an_interpreter_that_is_too_old(tmp_path: Path) -> None:
    python = tmp_path / "python3.8"
    hello = '{"event":"hello","python":"3.8.18"}'
    python.write_text(f"#!{sys.executable}\nimport os, sys\nos.write(int(sys.argv[5]), b'{len(hello)} 0\\n{hello}')\n")
    python.chmod(0o755)
    capture = last(Request(f"{tmp_path}/script.py:fn", python=str(python)))
    assert "is Python 3.8.18: too old" in failure(capture, "usage", "start")


def test_an_interpreter_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for until it must have begun, whether the capture has a time limit or not."""
    monkeypatch.setattr(attempt, "SLOWEST_START", 0.2)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 30\n")
    python.chmod(0o755)
    begin = time.monotonic()
    capture = last(Request(f"{tmp_path}/script.py:fn", python=str(python)))
    assert "does not run as a Python interpreter" in failure(capture, "usage", "start")
    assert time.monotonic() - begin < 20


def test_sys_exit(captured: Captured) -> None:
    capture = captured(imported("import sys\nprint('bye')\nsys.exit(3)\n"))
    assert "sys.exit(3) while it was imported" in failure(capture, "function", "import")
    assert capture.failure is not None
    assert "__main__" in (capture.failure.hint or "")
    assert capture.stdout == "bye\n"


def test_sys_exit_in_the_function(captured: Captured) -> None:
    assert "sys.exit()" in failure(captured("import sys\ndef fn(): sys.exit()\n"), "function", "trace")


def test_os_exit(captured: Captured) -> None:
    capture = captured(imported("import os, sys\nprint('last words', file=sys.stderr)\nos._exit(7)\n"))
    told = failure(capture, "died", "import")
    assert "exited with status 7" in told
    assert "last words" in told


@pytest.mark.parametrize(
    ("text", "name", "where"),
    [
        ("import os\ndef stop(): os.abort()\nstop()\n", signal.SIGABRT.name, "line 2 in stop"),
        ("import ctypes\ndef deep(): ctypes.string_at(0)\ndeep()\n", signal.SIGSEGV.name, "line 2 in deep"),
    ],
)
def test_crash(captured: Captured, text: str, name: str, where: str) -> None:
    told = failure(captured(imported(text)), "died", "import")
    assert name in told
    assert where in told
    assert "capture/worker" not in told


def test_crash_while_tracing_keeps_what_was_known(captured: Captured) -> None:
    capture = captured(
        "import ctypes\ndef fn(x): return ctypes.string_at(0)\nimport jax\nfn_inputs = (jax.numpy.ones(2),)\n"
    )
    failure(capture, "died", "trace")
    assert capture.subject is not None
    assert capture.subject.jax is not None


def test_xla_gives_up(captured: Captured) -> None:
    told = failure(
        captured(
            imported("""
            import os
            os.environ["XLA_FLAGS"] = "--xla_no_such_flag=1"
            import jax
            jax.devices()
            """)
        ),
        "died",
        "import",
    )
    assert "XLA gave up: Unknown flag" in told
    assert "--xla_no_such_flag=1" in told


@pytest.mark.once
def test_killed_as_for_memory(captured: Captured) -> None:
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # of a process that took less nothing is known
    capture = captured(imported(f"import os, signal\nx = b'x' * {own + 10**9}\nos.kill(os.getpid(), signal.SIGKILL)\n"))
    told = failure(capture, "died", "import")
    assert "SIGKILL" in told
    used = re.search(r"used ([\d.]+) GB", told)
    assert used
    assert abs(float(used[1]) * 1e9 - own - 10**9) < 4e8  # the interpreter's, and what is rounded
    assert capture.failure is not None
    assert "memory" in (capture.failure.hint or "")


def test_out_of_memory(captured: Captured) -> None:
    told = failure(
        captured(
            imported("""
            import resource
            resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
            x = bytearray(1 << 40)
            """)
        ),
        "function",
        "import",
    )
    assert told.startswith("MemoryError")


def test_endless_loop(captured: Captured) -> None:
    told = failure(captured(imported("def spin():\n    while True: pass\nspin()\n"), timeout=1.0), "died", "import")
    assert "timed out after 1 s, while importing the script" in told
    assert "line 2 in spin" in told


def test_endless_loop_that_ignores_signals(captured: Captured) -> None:
    script = """
        import signal, faulthandler, time
        faulthandler.disable()
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
        while True:
            time.sleep(0.1)
    """
    capture = captured(imported(script), timeout=0.7)
    assert "timed out after 0.7 s" in failure(capture, "died", "import")


def test_missing_file(tmp_path: Path, captured: Captured) -> None:
    (tmp_path / "train.py").write_text("def loss(): pass\n")
    capture = captured("", function="loss", name="unrelated.py")
    assert "no 'loss'" in failure(capture, "usage", "import")


def test_exception_with_a_cause_and_notes(captured: Captured) -> None:
    told = failure(
        captured(
            imported("""
            try:
                1 / 0
            except ZeroDivisionError as error:
                problem = ValueError("second")
                problem.add_note("a note of the user's")
                raise problem from error
            """)
        ),
        "function",
        "import",
    )
    assert "ZeroDivisionError: division by zero" in told
    assert "direct cause" in told
    assert "a note of the user's" in told
