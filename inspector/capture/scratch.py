"""Temporary folders of this process: they go with it, and what a kill has left is removed at the next start.

Whoever makes one holds a lock on it as long as it lives. A folder of ours without a lock is nobody's any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType

PREFIX = "shardscope-scratch-"
"""Prefix of the folders' names: whatever begins with it is removed, so no person would name a folder like this."""

ATTEMPTS = 20
"""To remove a folder."""

MAKING_S = 60.0
"""Seconds for which a folder may be there without a lock; until then its name begins with a dot."""

NOTE = "worktree-of"
"""A file in a folder: the git directory in which a worktree in this folder is registered."""


class Scratch:
    """A temporary folder, `path`, until `remove` is called, the block ends, or the process does.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self) -> None:
        sweep(tempfile.gettempdir())
        making = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
        self.path = making.with_name(making.name[1:])
        try:
            self._lock = os.open(making, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks: it is never swept
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(making, self.path)
            self.remove = weakref.finalize(self, _remove, self.path, self._lock)
        except BaseException:
            for path in (making, self.path):
                shutil.rmtree(path, ignore_errors=True)
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()


def forget_worktrees(folder: Path) -> bool:
    """Take the worktrees in a folder out of the repository that its note names, in whatever state git left them.

    Gives whether none is registered any more.
    """
    try:
        registered = Path((folder / NOTE).read_text(), "worktrees")
        entries = list(registered.iterdir())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    gone = [_forgotten(entry, folder) for entry in entries]
    with suppress(OSError):
        registered.rmdir()
    return all(gone)


def _forgotten(entry: Path, folder: Path) -> bool:
    try:
        tree = Path((entry / "gitdir").read_text().strip()).parent
        return not (tree.parent == folder or tree.parent.resolve() == folder.resolve()) or _removed(entry)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # somebody else's, or gone
        return True
    except OSError:
        return False


def _remove(folder: Path, lock: int) -> None:
    try:
        _clear(folder)
    except BaseException:  # a signal that ends this process, which is the last
        _clear(folder)
        raise
    finally:
        os.close(lock)


def _clear(folder: Path) -> None:
    for _ in range(ATTEMPTS):
        if forget_worktrees(folder):  # it is the folder's note that tells the next start of them
            _removed(folder)
            break
        time.sleep(0.01)


def _removed(folder: Path) -> bool:
    """Remove a folder, into which a process that is being ended may still write; returns whether it is gone."""
    for _ in range(ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return True
        time.sleep(0.01)
    return False


@cache
def sweep(place: str) -> None:
    """Remove the folders that ended processes of this user have left; once for each place."""
    for path in _left_in(place):
        with suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
            else:
                _remove(path, lock)


def _left_in(place: str) -> Iterator[Path]:
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith((PREFIX, f".{PREFIX}")) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    being_made = entry.name.startswith(".") and time.time() - status.st_mtime < MAKING_S
                    if status.st_uid == os.getuid() and not being_made:
                        yield Path(entry.path)
