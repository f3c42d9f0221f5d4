"""The format of pipes and files, and what is not in it."""

from __future__ import annotations

import io
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardscope.inspector.capture.protocol.wire import Frame, FrameError, encode, read

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
FRAMES = st.builds(
    lambda name, fields, text: Frame({**fields, "event": name}, text),
    st.text(),
    st.dictionaries(st.text(), JSON, max_size=4),
    st.binary(),
)


@settings(deadline=None)
@given(st.lists(FRAMES, max_size=5))
def test_what_is_written_is_read(frames: list[Frame]) -> None:
    assert list(read(io.BytesIO(b"".join(map(encode, frames))))) == frames


@settings(deadline=None)
@given(st.lists(FRAMES, min_size=1, max_size=3), st.data())
def test_of_a_cut_stream_the_whole_frames_are_read(frames: list[Frame], data: Any) -> None:
    written = b"".join(map(encode, frames))
    cut = data.draw(st.integers(0, len(written) - 1))
    found: list[Frame] = []
    try:
        for frame in read(io.BytesIO(written[:cut])):
            found.append(frame)
    except FrameError:
        pass
    assert found == frames[: len(found)]
    assert sum(len(encode(frame)) for frame in found) <= cut


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_of_anything_else_only_the_error_comes(data: bytes) -> None:
    with suppress(FrameError):
        list(read(io.BytesIO(data)))


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"12 0\n",
        b"2 0\n{}",
        b'13 0\n{"event": 12}',
        b"-1 0\n",
        b"9999999999999999999999 0\n{}",
        b"2 9999999999999\n{}",
        b"4 0\nnull",
        b'21 0\n{"event":"x","v":NaN}',
        b'23 0\n{"event":"x","v":1e999}',
        b'24 0\n{"event":"x","v":"\\ud800"}',
        b"200000 0\n" + b"[" * 200_000,
        b"1" * 100,
    ],
)
def test_what_is_not_a_frame(data: bytes) -> None:
    with pytest.raises(FrameError):
        list(read(io.BytesIO(data)))


def test_a_backslash_before_a_u_is_no_escape() -> None:
    frame = Frame({"event": "x", "path": r"C:\users\ud8ab"})
    assert list(read(io.BytesIO(encode(frame)))) == [frame]


def test_a_lying_length_asks_for_no_memory() -> None:
    tracemalloc.start()
    with pytest.raises(FrameError, match="cut off"):
        list(read(io.BytesIO(b'13 1000000000\n{"event":"x"}few')))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000
