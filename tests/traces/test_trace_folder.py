"""Where a trace is kept: in a new folder, or in place of an earlier trace, and never over anything else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest
from shardscope.inspector.capture import file
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.traces.read import capture_of, keep_propagated, read_trace

from shardscope.commands.tracing import folder_of

from .conftest import Recorded


def record(folder: Path, text: str) -> None:
    for name in (".python", "host-1"):
        (folder / name).mkdir(parents=True)
    (folder / "host-1" / "events").write_text(text)
    (folder / "output-1.txt").write_text(text)


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def fail(folder: Path, error: BaseException, after: Callable[[Path], None]) -> None:
    """A command that does something in a folder, and ends with an error."""

    def run() -> None:
        with folder_of(str(folder)) as path:
            after(path)
            raise error

    with pytest.raises(type(error)):
        run()


def test_a_second_trace_replaces_the_first(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with folder_of(str(tmp_path / "kept")) as folder:
            record(folder, text)
    assert set(files(tmp_path).values()) == {"second"}
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_the_first_stays_if_nothing_is_recorded(tmp_path: Path) -> None:
    with folder_of(str(tmp_path / "kept")) as folder:
        record(folder, "first")
    before = files(tmp_path)
    fail(tmp_path / "kept", ZeroDivisionError(), lambda folder: (folder / ".python").mkdir(parents=True))
    assert files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_was_recorded_before_a_failure_stays(tmp_path: Path) -> None:
    with folder_of(str(tmp_path / "kept")) as folder:
        record(folder, "first")
    fail(tmp_path / "kept", KeyboardInterrupt(), lambda folder: record(folder, "second"))
    assert set(files(tmp_path).values()) == {"second"}


def test_a_folder_that_failed_at_once_is_removed_and_an_empty_one_stays(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        fail(tmp_path / name, ZeroDivisionError(), lambda folder: None)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.mark.parametrize("name", ["file", "folder", "link", "mixed"])
def test_anything_else_of_that_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    record(tmp_path / "mixed", "a trace")
    (tmp_path / "mixed" / "thesis.tex").write_text("mine")
    before = files(tmp_path)
    with pytest.raises(CaptureError, match="--save takes"), folder_of(str(tmp_path / name)):
        pytest.fail("it began")
    assert files(tmp_path) == before


def test_a_kept_capture_has_what_xla_propagated(training: Recorded, tmp_path: Path) -> None:
    """Where shardings come from is in the file, and no interpreter is asked for it; of the live report it is that."""
    path = training.programs["train_step"].path
    assert path is not None
    live = capture_of(training.programs["train_step"], sys.executable).stage("sdy")
    copytree(path.parent, tmp_path / path.parent.name)
    keep_propagated(read_trace(tmp_path), sys.executable)
    kept = file.load(tmp_path / path.parent.name / path.name).stage("sdy")
    assert live is not None
    assert kept is not None
    assert b"sdy.sharding_origins" in kept.source.data
    assert kept.source.data == live.source.data
    assert not list(tmp_path.rglob("*.mlir"))
