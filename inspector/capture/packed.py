"""Contents of compressed files and zip archives. They are untrusted: a small file may unpack into all of the memory."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from io import SEEK_CUR, BytesIO
from typing import IO, Any

from ..units import format_bytes
from .model import UnreadableFileError
from .protocol.memory import available_bytes

MAX_BYTES = 1 << 32
"""Limit for one text, and for all that a file unpacks to."""

SHARE_OF_MEMORY = 8
"""Reading a text takes several times as much memory as the text."""

MAX_RATIO = 400
SMALL_BYTES = 1 << 26
"""Texts of compilers compress to a tenth, the most repetitive ones to a hundredth; small ones are always unpacked."""

CHUNK_BYTES = 1 << 9
"""Packed bytes that are unpacked at a time, where the library does not limit what they become."""

MAX_MEMBERS = 100_000

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
"""First bytes of an archive, and of an empty one."""


class Allowance:
    """Bytes that may still be unpacked of what somebody opens, however its files are wrapped in each other.

    Arguments:
        packed: how many bytes there are before anything is unpacked.
    """

    def __init__(self, packed: int) -> None:
        self.most = self.left = max_unpacked(packed)


def max_unpacked(packed: int) -> int:
    """Return how many bytes a file of so many may unpack to."""
    available = available_bytes()
    by_memory = MAX_BYTES if available is None else available // SHARE_OF_MEMORY
    return min(MAX_BYTES, by_memory, max(SMALL_BYTES, packed * MAX_RATIO))


def whole(name: str, stream: IO[bytes]) -> bytes:
    """Return all of a stream, which may have no end: a device, or a pipe.

    Raises:
        UnreadableFileError: it is too much. OSError: it cannot be read.
    """
    return _up_to(name, stream, Allowance(MAX_BYTES))


def unpacked(name: str, data: bytes, allowance: Allowance) -> bytes:
    """Return what a compressed file holds; the data itself where it is not compressed.

    Raises:
        UnreadableFileError: it is damaged, holds too much, or cannot be unpacked here.
    """
    opener = next((opener for magic, opener in _OPENERS.items() if data.startswith(magic)), None)
    return data if opener is None else _read(name, lambda: opener(BytesIO(data)), allowance)


def members(name: str, data: bytes, allowance: Allowance) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Yield the files in a zip archive: name, size as the archive states it, and a function that reads it.

    Raises:
        UnreadableFileError: it is damaged, or holds too much.
    """
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except Exception as error:  # of a damaged directory, those of `struct` and of codecs too
        raise UnreadableFileError(f"cannot read {name}: {error}") from error
    # Not `is_dir`, which fails for a file without a name in Python 3.11.
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MAX_MEMBERS or sum(entry.file_size for entry in entries) > allowance.left:
        raise _too_large(name, allowance)
    for entry in entries:
        # What is stated may be too little.
        read = partial(_read, f"{name}/{entry.filename}", partial(archive.open, entry), allowance)
        yield entry.filename, entry.file_size, read


def _read(name: str, open_it: Callable[[], IO[bytes]], allowance: Allowance) -> bytes:
    """All of a stream that has at most as many bytes as may be unpacked."""
    try:
        with open_it() as stream:
            return _up_to(name, stream, allowance)
    except UnreadableFileError:
        raise
    except Exception as error:  # each format has errors of its own, and some of them no base but this
        raise UnreadableFileError(f"cannot read {name}: {error}") from error


def _up_to(name: str, stream: IO[bytes], allowance: Allowance) -> bytes:
    pieces = []
    while allowance.left >= 0 and (piece := stream.read(1 << 20)):
        pieces.append(piece)
        allowance.left -= len(piece)
    if allowance.left < 0:
        raise _too_large(name, allowance)
    return b"".join(pieces)


def _too_large(name: str, allowance: Allowance) -> UnreadableFileError:
    return UnreadableFileError(f"cannot read {name}: it holds more than {format_bytes(allowance.most)}")


def _zstandard(stream: BytesIO) -> IO[bytes]:
    """The standard library has it from Python 3.14 on."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return _Frames(stream, module.ZstdDecompressor) if name == "zstandard" else module.open(stream, "rb")
    raise RuntimeError("zstd needs Python 3.14 or `pip install zstandard`, or unpack it with `zstd -d`")


class _Frames(BytesIO):
    """The contents of zstd frames, by `zstandard`, whose own files take a frame without its end for a complete one.

    Little is unpacked at a time, as it may become ten thousand times as much.
    """

    def __init__(self, stream: BytesIO, decompressor: Callable[[], Any]) -> None:
        super().__init__()
        self._packed = stream
        self._new = decompressor
        self._frame: Any = None

    def read(self, _: int | None = -1, /) -> bytes:
        """Return the next piece; empty at the end.

        Raises:
            EOFError: the last frame has no end.
        """
        while piece := self._packed.read(CHUNK_BYTES):
            if self._frame is None:
                self._frame = self._new().decompressobj()
            found = self._frame.decompress(piece)
            if self._frame.eof:
                self._packed.seek(-len(self._frame.unused_data), SEEK_CUR)
                self._frame = None
            if found:
                return bytes(found)
        if self._frame is not None:
            raise EOFError("compressed file ended before its end-of-stream marker was reached")
        return b""


_OPENERS: dict[bytes, Callable[[BytesIO], IO[bytes]]] = {
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),  # type: ignore[dict-item, return-value]
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
    b"\x28\xb5\x2f\xfd": _zstandard,
}
"""First bytes of each format, and the function that opens it."""
