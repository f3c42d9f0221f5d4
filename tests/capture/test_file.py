"""Saved captures: written whole or not at all, read as far as they can be, and never trusted."""

from __future__ import annotations

import gzip
import os
import random
import stat
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.file import load, save
from shardscope.inspector.capture.model import STAGES, Capture, CaptureError
from shardscope.inspector.capture.protocol.wire import SCHEMA, Frame, encode

from .conftest import Captured
from .test_events import FULL, plain

pytestmark = pytest.mark.once

FIRST = encode(Frame({"event": "capture", "schema": SCHEMA}))


def packed(path: Path, *frames: bytes) -> Path:
    path.write_bytes(gzip.compress(b"".join(frames)))
    return path


def test_there_and_back(tmp_path: Path, program: Captured) -> None:
    for capture in (FULL, Capture(), program("kinds.py:looped")):
        save(capture, tmp_path / "c.shardscope")
        assert plain(load(tmp_path / "c.shardscope")) == plain(replace(capture, foreign=True))


def test_equal_captures_make_equal_files(tmp_path: Path) -> None:
    save(FULL, tmp_path / "one")
    save(FULL, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_says_nothing_of_when_it_was_written(tmp_path: Path) -> None:
    """Four bytes behind the first four, by RFC 1952: zero where no time is known."""
    save(FULL, tmp_path / "a")
    assert (tmp_path / "a").read_bytes()[4:8] == bytes(4)


def test_opened_without_jax(tmp_path: Path) -> None:
    save(FULL, tmp_path / "c.shardscope")
    text = (
        "import sys\nfrom shardscope.inspector.capture.file import load\n"
        "print(load(sys.argv[1]).subject.function, {'jax', 'jaxlib', 'numpy', 'pickle'} & set(sys.modules))"
    )
    run = [sys.executable, "-c", text, str(tmp_path / "c.shardscope")]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "f.py:f set()\n"


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.shardscope"
    save(FULL, path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(gzip.GzipFile, "write", full)
    with pytest.raises(CaptureError, match="No space left"):
        save(Capture(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_cut_off_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "c.shardscope"
    save(FULL, path)
    whole = path.read_bytes()
    reached = set()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with suppress(CaptureError):
            capture = load(path)
            assert capture.damage is not None
            assert not capture.complete
            reached.add(len(capture.stages))
    assert max(reached) == len(STAGES)


def test_changed_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "c.shardscope"
    save(FULL, path)
    whole = path.read_bytes()
    chance = random.Random(1)
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        path.write_bytes(changed)
        with suppress(CaptureError):
            assert isinstance(load(path), Capture)


def test_what_comes_before_a_bad_event_is_kept(tmp_path: Path) -> None:
    stage = encode(Frame({"event": "stage", "name": "hlo", "seconds": 1.0}, b"HloModule m"))
    bad = encode(Frame({"event": "memory", "arguments": "lots"}))
    capture = load(packed(tmp_path / "c", FIRST, stage, bad, stage))
    assert [stage.name for stage in capture.stages] == ["hlo"]
    assert capture.damage is not None
    assert "memory" in capture.damage


@pytest.mark.parametrize(
    "frames",
    [
        (),
        (b"PK\x03\x04",),
        (encode(Frame({"event": "end"})),),
        (encode(Frame({"event": "capture", "schema": "shardscope.capture/9"})),),
    ],
)
def test_what_is_no_capture(tmp_path: Path, frames: tuple[bytes, ...]) -> None:
    with pytest.raises(CaptureError):
        load(packed(tmp_path / "c", *frames))


@pytest.mark.parametrize("content", [b"", b"HloModule m", bytes(1000)])
def test_what_is_not_even_compressed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(CaptureError):
        load(tmp_path / "c")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file"):
        load(tmp_path / "c")
    with pytest.raises(CaptureError, match="Is a directory"):
        load(tmp_path)
    with pytest.raises(CaptureError, match="No such file"):
        save(FULL, tmp_path / "none" / "c")


def test_a_small_file_does_not_unpack_into_all_of_the_memory(tmp_path: Path) -> None:
    stage = encode(Frame({"event": "stage", "name": "hlo", "seconds": None}, bytes(1 << 20)))
    path = packed(tmp_path / "c", FIRST, *([stage] * 30))
    assert path.stat().st_size < 100_000
    capture = load(path, largest=1 << 24)
    assert capture.damage is not None
    assert "more than" in capture.damage
    one = packed(
        tmp_path / "c", FIRST, encode(Frame({"event": "stage", "name": "hlo", "seconds": None}, bytes(1 << 25)))
    )
    assert load(one, largest=1 << 24).damage is not None


def test_messages_without_end(tmp_path: Path) -> None:
    said = encode(Frame({"event": "message", "level": "info", "text": "x", "phase": "start"}))
    capture = load(packed(tmp_path / "c", FIRST, said * 300))
    assert (len(capture.messages), capture.damage) == (300, None)
    capture = load(packed(tmp_path / "c", FIRST, *[encode(Frame({"event": "later"}))] * 200_100))
    assert capture.damage is not None
    assert "200000 events" in capture.damage
