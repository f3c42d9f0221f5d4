"""A commit of the user's repository, checked out aside: the user's own tree, index and branches stay as they are."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shardscope.inspector.capture.model import CaptureError

NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
"""What the repository does on a checkout is not done for this one."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The repository at `top`, and the commit in the folder `tree`."""

    top: Path
    tree: Path

    def counterpart(self, path: Path) -> Path | None:
        """What is in the commit where `path` is in the repository; None for a path that is not in it."""
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
    with tempfile.TemporaryDirectory(prefix="shardscope-git-") as parent:
        tree = Path(parent, top.name)
        _git(top, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield Checkout(top, tree)
        finally:
            _git(top, "worktree", "remove", "--force", str(tree))


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *NO_HOOKS, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CaptureError(f"cannot run git: {error.strerror}") from error
    if done.returncode:
        raise CaptureError(f"git {arguments[0]} {arguments[-1]}: {done.stderr.strip()}")
    return done.stdout.strip()
