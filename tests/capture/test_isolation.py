"""A script runs as Python itself would run it, and whatever it does stays in its own process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shardscope.inspector.capture.spawn import Request

from .conftest import Captured, last

pytestmark = pytest.mark.once

NOTHING = "def fn():\n    return 1\n"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_path_and_arguments_are_those_of_a_script(captured: Captured, tmp_path: Path) -> None:
    write(tmp_path, {"helper.py": "value = 5\n"})
    capture = captured("import helper, sys\nprint(sys.path[0], sys.argv, __name__)\n" + NOTHING, argv=("--steps", "3"))
    assert capture.stdout == f"{tmp_path} {[str(tmp_path / 'script.py'), '--steps', '3']} script\n"


@pytest.mark.cold
@pytest.mark.parametrize("first", ["", "gc.disable()\n"])
def test_the_collector_pauses_while_jax_is_imported(captured: Captured, first: str) -> None:
    counts = "sum(each['collections'] for each in gc.get_stats())"
    text = f"import gc\n{first}before = {counts}\nimport jax\nprint({counts} - before < 100, gc.isenabled())\n"
    assert captured(text + NOTHING).stdout == f"True {not first}\n"


def test_a_script_leaves_no_bytecode(captured: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python SCRIPT`: a text of the same length, written in the same second, is not taken for the one before."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for number in range(1, 4):
        path = tmp_path / "script.py"
        path.write_text(f"print({number})\n" + NOTHING)
        os.utime(path, (1e9, 1e9))
        assert last(Request(f"{path}:fn", live=False)).stdout == f"{number}\n"
    assert os.listdir(tmp_path) == ["script.py"]


def test_the_main_part_does_not_run(captured: Captured) -> None:
    capture = captured(NOTHING + 'if __name__ == "__main__":\n    print("main")\n')
    assert capture.complete
    assert capture.stdout == ""


def test_modules_of_the_user_named_as_ours(captured: Captured, tmp_path: Path) -> None:
    names = (
        "parsers",
        "inspector",
        "stages",
        "tui",
        "frames",
        "channel",
        "request",
        "main",
        "values",
        "live",
        "samples",
    )
    write(tmp_path, {f"{name}.py": f"mine = {name!r}\n" for name in names})
    text = "".join(f"import {name}\nassert {name}.mine == {name!r}\n" for name in names)
    assert captured(text + NOTHING).complete


def test_modules_of_the_user_named_as_pythons(captured: Captured, tmp_path: Path) -> None:
    write(tmp_path, {"gzip.py": "mine = True\n"})
    assert captured("import gzip\nprint(gzip.mine)\n" + NOTHING, live=False).stdout == "True\n"


def test_the_working_directory_shadows_nothing(captured: Captured, tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/json.py": "raise SystemExit('the wrong json')\n"})
    assert captured(NOTHING, name="scripts/script.py", directory=str(tmp_path / "elsewhere")).complete


def test_a_file_inside_a_package(tmp_path: Path) -> None:
    model = "from ..scale import up\nprint(__name__)\ndef fn(): return up(3)\n"
    scale = "def up(x): return 2 * x\n"
    files = {"__init__.py": "", "scale.py": scale, "inner/__init__.py": "", "inner/model.py": model}
    write(tmp_path / "outer", files)
    capture = last(Request(f"{tmp_path}/outer/inner/model.py:fn"))
    assert capture.complete, capture.failure
    assert capture.stdout == "outer.inner.model\n"


def test_a_module_in_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path / "pkg", {"__init__.py": "", "model.py": "import sys\nprint(sys.path[0])\n" + NOTHING})
    capture = last(Request("pkg.model:fn", directory=str(tmp_path)))
    assert capture.complete, capture.failure
    assert capture.stdout == f"{tmp_path}\n"
    assert capture.script_text is not None
    assert capture.script_text.name == str(tmp_path / "pkg/model.py")


def test_standard_input_is_empty(captured: Captured) -> None:
    capture = captured("import sys\nprint(repr(sys.stdin.read()))\n" + NOTHING)
    assert capture.complete
    assert capture.stdout == "''\n"


def test_megabytes_of_output_keep_both_ends(captured: Captured) -> None:
    capture = captured("for i in range(200_000):\n    print('line', i)\n" + NOTHING)
    assert capture.complete
    assert capture.stdout.startswith("line 0\nline 1\n")
    assert capture.stdout.endswith("line 199998\nline 199999\n")
    assert "bytes are left out" in capture.stdout
    assert len(capture.stdout) < 200_000


def test_prints_of_file_descriptors_and_of_the_function(captured: Captured) -> None:
    capture = captured("""
        import os, jax
        os.write(1, b"raw out\\n")
        os.write(2, b"raw err\\n")
        def fn():
            print("tracing")
            jax.debug.print("running {}", 3)
            return 1
    """)
    assert capture.complete
    assert capture.stdout.startswith("raw out\ntracing\n")
    assert "running 3" in capture.stdout
    assert capture.stderr == "raw err\n"


def test_threads_that_never_end(captured: Captured) -> None:
    capture = captured("import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\n" + NOTHING)
    assert capture.complete


def test_a_fork_sends_nothing(captured: Captured) -> None:
    capture = captured("""
        import os
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        print("forked" if pid == 0 else "here")
        def fn():
            return 1
    """)
    assert capture.complete
    assert capture.stdout.count("forked") == 1
    assert [stage.name for stage in capture.stages].count("jaxpr") == 1


def test_a_started_program_gets_no_pipe_and_does_not_survive(captured: Captured, tmp_path: Path) -> None:
    capture = captured(f"""
        import os, subprocess
        listing = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout
        print(*sorted(line.split("->")[1].split(":")[0].strip() for line in listing.splitlines() if "->" in line))
        started = subprocess.Popen(["sleep", "1000"])
        open({str(tmp_path / "pid")!r}, "w").write(str(started.pid))
        def fn():
            return 1
    """)
    assert capture.complete
    # Standard input, the pipe of its output, standard error, and the folder that is listed: no pipe of ours.
    assert capture.stdout.split().count("pipe") == 2
    assert not alive(int((tmp_path / "pid").read_text()))


def test_the_users_flags_reach_the_script(captured: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false --xla_force_host_platform_device_count=3")
    capture = captured("import os, jax\nprint(os.environ['XLA_FLAGS'], jax.device_count())\n" + NOTHING)
    assert capture.stdout == "--xla_cpu_enable_fast_math=false --xla_force_host_platform_device_count=3 3\n"


def test_what_is_in_front_never_imports_jax() -> None:
    modules = ("spawn", "file", "events", "model")
    text = "".join(f"import shardscope.inspector.capture.{name}\n" for name in modules)
    text += "import sys\nassert not {'jax', 'jaxlib', 'numpy'} & set(sys.modules)\n"
    subprocess.run([sys.executable, "-c", text], check=True)


def alive(pid: int) -> bool:
    """Whether a process runs, a moment after it should not."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True
