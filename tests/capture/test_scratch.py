"""Temporary folders: which are swept, and that they go although something is in their way."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from shardscope.inspector.capture import scratch
from shardscope.inspector.capture.scratch import ATTEMPTS, MAKING_S, NOTE, PREFIX, Scratch, forget_worktrees, sweep


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def folder(path: Path, age_s: float = 0.0) -> Path:
    """A folder with something in it, made so long ago."""
    (path / "inner").mkdir(parents=True)
    (path / "inner" / "file").write_text("x")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_only_what_nobody_holds_is_swept(place: Path) -> None:
    gone = [folder(place / f"{PREFIX}left"), folder(place / f".{PREFIX}old", MAKING_S + 5)]
    kept = [folder(place / f".{PREFIX}made"), folder(place / "mine"), folder(place / f"x{PREFIX}", 1000.0)]
    (place / f"{PREFIX}file").write_text("x")
    (place / f"{PREFIX}link").symlink_to(kept[1], target_is_directory=True)
    with Scratch() as held:  # sweeps the place first
        assert held.parent == place
        assert held.name.startswith(PREFIX)
        assert not any(path.exists() for path in gone)
        assert all((path / "inner" / "file").exists() for path in kept)
        assert (place / f"{PREFIX}file").exists()
        assert (place / f"{PREFIX}link").is_symlink()
        sweep.__wrapped__(str(place))
        assert held.exists()
    assert not held.exists()


def test_folders_of_others_are_theirs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = folder(place / f"{PREFIX}left")
    monkeypatch.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
    sweep.__wrapped__(str(place))
    assert left.exists()


@pytest.mark.parametrize("failures", [0, 1, 3, ATTEMPTS])
def test_a_folder_that_is_still_written_to(place: Path, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be removed at first is tried again, for a while, and nothing is raised."""
    monkeypatch.setattr(scratch.time, "sleep", lambda seconds: None)
    own = folder(place / "own")
    remove, tries = os.rmdir, 0

    def rmdir(path: str, *, dir_fd: int | None = None) -> None:
        nonlocal tries
        if Path(path).name == own.name:
            tries += 1
            if tries <= failures:
                raise OSError(39, "Directory not empty")
        remove(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    assert scratch._removed(own) == (failures < ATTEMPTS)
    assert own.exists() == (failures == ATTEMPTS)
    assert tries == min(failures + 1, ATTEMPTS)


def test_worktrees_are_forgotten_with_their_folder(place: Path) -> None:
    """By git itself: of two worktrees, the one in the folder is none any more, the other one is."""

    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        done = subprocess.run(["git", "-C", str(place / "repo"), *who, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (place / "repo").mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    with Scratch() as own:
        git("worktree", "add", "-q", "--detach", str(own / "tree"))
        git("worktree", "add", "-q", "--detach", str(place / "other"))
        assert forget_worktrees(own)  # no note: nothing is known of any
        assert git("worktree", "list").count("\n") == 3
        (own / NOTE).write_text(str(place / "repo" / ".git"))
    listed = git("worktree", "list", "--porcelain")
    assert [line for line in listed.splitlines() if line.startswith("worktree")] == [
        f"worktree {place / 'repo'}",
        f"worktree {place / 'other'}",
    ]
    git("worktree", "remove", "--force", str(place / "other"))
    assert not own.exists()


@pytest.mark.parametrize("note", ["/nowhere/at/all", "a\0b", ""])
def test_notes_that_lead_nowhere(place: Path, note: str) -> None:
    with Scratch() as own:
        (own / NOTE).write_text(note)
        assert forget_worktrees(own)
    assert not own.exists()
