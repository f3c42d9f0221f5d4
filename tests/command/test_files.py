"""Where results are written: refused before anything is captured, complete or not at all, and never lost."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.output_file import written

from tests.conftest import SampleCapture

from .conftest import Shardscope

pytestmark = pytest.mark.once

MARK = "import pathlib; pathlib.Path(__file__).with_name('captured').touch()\n"


@pytest.fixture
def kept(sample: SampleCapture, tmp_path: Path) -> Capture:
    """A capture, saved as `kept.shardscope`."""
    capture = sample("psum_2d:over_both")
    save(capture, tmp_path / "kept.shardscope")
    return capture


@pytest.mark.parametrize("option", ["--save", "-o"])
@pytest.mark.parametrize("place", ["no/such/file", "folder", "new/", "", "script.py/x", "/proc/x", "x" * 300])
def test_refused_before_the_capture(shardscope: Shardscope, tmp_path: Path, option: str, place: str) -> None:
    (tmp_path / "script.py").write_text(MARK)
    (tmp_path / "folder").mkdir()
    done = shardscope("run", "script.py:fn", option, place)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"shardscope: cannot write {place}: ")
    assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "captured").exists()


def test_damage_is_said_where_the_report_is_elsewhere(shardscope: Shardscope, kept: Capture, tmp_path: Path) -> None:
    whole = (tmp_path / "kept.shardscope").read_bytes()
    (tmp_path / "kept.shardscope").write_bytes(whole[: len(whole) * 3 // 4])
    for options in (("-o", "out"), ("--quiet",)):
        done = shardscope("open", "kept.shardscope", *options)
        assert done.returncode == 5
        assert done.stderr.startswith(b"shardscope: the file is damaged, what follows is missing: ")
        assert done.stderr.count(b"\n") == 1


def test_what_is_no_regular_file_is_written_to(shardscope: Shardscope, kept: Capture, tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("target")
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    for place in (link, pipe, Path("/dev/null")):
        assert shardscope("open", "kept.shardscope", "--format", "json", "-o", str(place)).returncode == 0
    reader.join(30)
    expected = shardscope("open", "kept.shardscope", "--format", "json").stdout
    assert received == [expected]
    assert target.read_bytes() == expected
    assert link.is_symlink()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    save(kept, link)
    assert link.is_symlink()
    assert target.read_bytes() == (tmp_path / "kept.shardscope").read_bytes()


def test_modes_are_kept(shardscope: Shardscope, kept: Capture, tmp_path: Path) -> None:
    report, hard = tmp_path / "report", tmp_path / "hard"
    report.touch(0o640)
    report.chmod(0o640)
    assert shardscope("open", "kept.shardscope", "-o", "report").returncode == 0
    assert stat.S_IMODE(report.stat().st_mode) == 0o640
    hard.hardlink_to(report)
    save(kept, report)
    assert hard.read_bytes() == (tmp_path / "kept.shardscope").read_bytes()


def test_nothing_half_written(tmp_path: Path) -> None:
    place = tmp_path / "report"
    place.write_text("before")
    with suppress(KeyboardInterrupt), written(place) as file:
        file.write(b"x" * (1 << 20))
        raise KeyboardInterrupt
    assert place.read_text() == "before"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("option", ["--save", "-o"])
def test_a_report_is_not_lost(
    shardscope: Shardscope, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.fsync

    def fsync(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(tmp_path)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        full(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    done = shardscope("run", "psum", "--no-live", option, "result")
    assert done.returncode == 6
    assert done.stderr == b"shardscope: cannot write result: No space left on device\n"
    assert b"all-reduce" in done.stdout
    assert not list(tmp_path.iterdir())


SHELL = '"$PYTHON" -m shardscope '


@pytest.mark.parametrize(
    ("command", "status", "why"),
    [
        ("explain psum > /dev/full", 6, "No space left on device"),
        ("open kept.shardscope > /dev/full", 6, "No space left on device"),
        ("open kept.shardscope >&-", 6, "it is closed"),
        ("open kept.shardscope --format json -o report >&- 2>&-", 0, ""),
        ("open missing 2>&-", 2, ""),
        ("open kept.shardscope --format json | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("check kept.shardscope --budget 'all-reduce: none' | true; exit ${PIPESTATUS[0]}", 1, ""),
    ],
)  # fmt: skip
def test_standard_output_that_takes_nothing(kept: Capture, tmp_path: Path, command: str, status: int, why: str) -> None:
    done = subprocess.run(
        ["bash", "-c", SHELL + command],
        cwd=tmp_path,
        env=os.environ | {"PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = f"shardscope: cannot write to standard output: {why}\n".encode() if why else b""
    assert (done.returncode, done.stderr, done.stdout) == (status, said, b"")


@pytest.mark.parametrize("command", ["trace", "ranks"])
def test_a_trace_of_nothing_leaves_no_folder(shardscope: Shardscope, tmp_path: Path, command: str) -> None:
    assert shardscope(command, "--save", "new", "--", "no-such-command").returncode == 2
    (tmp_path / "own").mkdir()
    assert shardscope(command, "--save", "own", "--", "no-such-command").returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("open kept.shardscope -o kept.shardscope", "kept.shardscope"),
        ("open kept.shardscope -o link", "link"),
        ("diff other kept.shardscope --format json -o ./kept.shardscope", "./kept.shardscope"),
        ("run script.py:fn --save script.py", "script.py"),
        ("run script.py:fn --inputs inputs.py:inputs -o inputs.py", "inputs.py"),
        ("run script.py:fn --save new -o ./new", "new"),
        ("check script.py:fn --update --golden script.py", "script.py"),
    ],
)
def test_what_is_read_is_not_written(
    shardscope: Shardscope, kept: Capture, tmp_path: Path, command: str, place: str
) -> None:
    (tmp_path / "link").symlink_to("kept.shardscope")
    (tmp_path / "other").write_bytes((tmp_path / "kept.shardscope").read_bytes())
    for name in ("script.py", "inputs.py"):
        (tmp_path / name).write_text(MARK)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = shardscope(*command.split())
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"shardscope: cannot write {place}: ")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_stage_may_be_written_to_a_file_of_its_name(shardscope: Shardscope, kept: Capture, tmp_path: Path) -> None:
    for _ in range(2):
        assert shardscope("open", "kept.shardscope", "--stage", "hlo", "-o", "hlo").returncode == 0
    assert (tmp_path / "hlo").read_bytes().startswith(b"HloModule")


def test_a_golden_makes_no_folder_of_a_capture_that_fails(shardscope: Shardscope, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def fn():\n    raise ValueError\n")
    assert shardscope("check", "script.py:fn", "--update", "--golden", "no/such/golden.json").returncode == 3
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
    assert shardscope("check", "script.py:fn", "--update", "--golden", "script.py/x/golden.json").returncode == 2


@pytest.mark.parametrize("format", ["text", "json", "html", "markdown", "sarif", "github"])
def test_a_working_directory_that_is_gone(kept: Capture, tmp_path: Path, format: str) -> None:
    (tmp_path / "gone").mkdir()
    command = [sys.executable, "-m", "shardscope", "open", str(tmp_path / "kept.shardscope"), "--format", format]
    gone = f'cd {tmp_path}/gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(["sh", "-c", gone, "sh", *command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
