"""A commit of the user's repository, checked out aside: the user's own tree, index and branches stay as they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shardscope.inspector.capture.guardian import run
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.scratch import NOTE, Scratch
from shardscope.parsers.record import Record

NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
"""Options that keep the repository's hooks from running on this checkout."""


class Checkout(Record, frozen=True):
    """The repository at `top`, and the commit in the folder `tree`."""

    top: Path
    tree: Path

    def counterpart(self, path: Path) -> Path | None:
        """Return the file of the commit for `path` in the repository; None for a path outside."""
        path = path.resolve()
        return self.tree / path.relative_to(self.top) if path.is_relative_to(self.top) else None


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Checkout]:
    """A worktree of a commit of the repository around a folder, as long as the block runs.

    Raises:
        CaptureError: there is no git, no repository around the folder, or no such commit.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel")).resolve()
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    common = Path(top, _git(top, "rev-parse", "--git-common-dir")).resolve()
    with Scratch() as parent:
        (parent / NOTE).write_text(str(common))  # by which it is taken out of the repository again, whatever happens
        tree = parent / (top.name or "tree")
        _git(top, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        yield Checkout(top, tree)


def _git(folder: Path, *arguments: str) -> str:
    try:
        git = run(["git", *NO_HOOKS, *arguments], folder=folder)
    except OSError as error:
        raise CaptureError(f"cannot run git: {error.strerror}") from error
    if git.returncode:
        raise CaptureError(f"git {arguments[0]} {arguments[-1]}: {os.fsdecode(git.stderr).strip()}")
    return os.fsdecode(git.stdout).strip()
