"""Files that results are written to: complete or not at all, with the mode that they had.

A device, a pipe and what a symbolic link leads to are written to, and never replaced.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .model import CaptureError

DESCRIPTORS = "/proc/self/fd"
"""The folder that names every open file, also those without a name of their own."""


class OutputError(CaptureError):
    """A result that could not be written."""


def check_writable(path: Path | str) -> None:
    """Refuse a place to which no file can be written; what is there stays as it is.

    Raises:
        CaptureError: there is no such folder, it is one, or it may not be written to.
    """
    place = Path(os.path.realpath(path))
    try:
        kept = _status(place)
        if kept is None and str(path).endswith(os.sep):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if kept is None or _replaceable(place, kept):
            name, descriptor = _beside(place)
            os.close(descriptor)
            if name is not None:
                os.unlink(name)
        elif stat.S_ISDIR(kept.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise CaptureError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def written(path: Path | str) -> Iterator[BinaryIO]:
    """A file to write to. A regular one appears, or is replaced, when the block ends without an error.

    Raises:
        OutputError: it cannot be written.
    """
    place = Path(os.path.realpath(path))
    try:
        kept = _status(place)
        if kept is not None and not _replaceable(place, kept):
            with open(os.open(place, os.O_WRONLY | (os.O_TRUNC if stat.S_ISREG(kept.st_mode) else 0)), "wb") as file:
                yield file
            return
        name, descriptor = _beside(place)
        try:
            with open(descriptor, "wb") as file:
                if kept is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(kept.st_mode))
                yield file
                file.flush()
                os.fsync(file.fileno())
                if name is None:
                    name = _linked(file.fileno(), place)
            os.replace(name, place)
        except BaseException:
            if name is not None:
                with suppress(OSError):
                    os.unlink(name)
            raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _status(place: Path) -> os.stat_result | None:
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _replaceable(place: Path, kept: os.stat_result) -> bool:
    """Return whether a file can be replaced without anybody noticing: it is ours, in a folder of ours."""
    own = kept.st_uid == os.geteuid() and kept.st_nlink == 1
    return stat.S_ISREG(kept.st_mode) and own and os.access(place.parent, os.W_OK | os.X_OK)


def _beside(place: Path) -> tuple[Path | None, int]:
    """An empty file in the same folder, and its descriptor; without a name where the system has such files."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir(DESCRIPTORS):
        with suppress(OSError):
            return None, os.open(place.parent, os.O_WRONLY | os.O_TMPFILE, 0o666)
    name = _new_name(place)
    return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _new_name(place: Path) -> Path:
    return place.with_name(f".shardscope-{secrets.token_hex(8)}")


def _linked(descriptor: int, place: Path) -> Path:
    """A name for a file that has none, in the same folder."""
    name = _new_name(place)
    folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.link(f"{DESCRIPTORS}/{descriptor}", name.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
    return name
