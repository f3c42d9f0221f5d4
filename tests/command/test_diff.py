"""`shardscope diff`: both sides, and how it exits."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from .conftest import Shardscope

pytestmark = pytest.mark.once

SCRIPT = """
from functools import partial
import jax
from jax import P, lax
from jax.sharding import AxisType
mesh = jax.make_mesh((4,), ("tp",), axis_types=(AxisType.Auto,))

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=P("tp"), out_specs=P())
def step(x):
    return lax.psum(x * x, "tp")
"""

CHANGED = SCRIPT.replace("x * x", 'x * lax.pmax(x, "tp")')

ARGUMENT = ("--arg", "f32[8,4]")


def git(folder: Path, *arguments: str) -> str:
    own = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", f"core.hooksPath={os.devnull}")
    return subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose script has one psum, and in the working tree a pmax more."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "step.py").write_text(SCRIPT)
    git(tmp_path, "add", "step.py")
    git(tmp_path, "commit", "--quiet", "-m", "one psum")
    (tmp_path / "step.py").write_text(CHANGED)
    return tmp_path


def test_against_a_commit(shardscope: Shardscope, repository: Path) -> None:
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{repository}/hooked'\n")  # a hook runs in the folder that goes
        hook.chmod(0o755)
    before = git(repository, "status", "--short", "--branch")
    (repository / "hooked").unlink(missing_ok=True)
    done = shardscope("diff", "step.py:step", *ARGUMENT, "--git", "HEAD", "--exit-code", "--format", "json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["headline"] == "+1 all-reduce over tp: +48 B per device and run"
    assert document["before"]["title"].endswith(", HEAD")
    assert not (repository / "hooked").exists()
    assert git(repository, "status", "--short", "--branch") == before
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert (repository / "step.py").read_text() == CHANGED


def test_saved_captures(shardscope: Shardscope, repository: Path) -> None:
    assert shardscope("run", "step.py:step", *ARGUMENT, "--no-live", "--save", "kept.shardscope").returncode == 0
    done = shardscope("diff", "kept.shardscope", "kept.shardscope", "--exit-code")
    assert done.returncode == 0
    assert done.stdout.startswith(b"no change in communication (2 collectives, 96 B per device and run)")


@pytest.mark.parametrize(
    ("change", "headline"),
    [
        ("check_vma=off", "no change in communication (2 collectives, 96 B per device and run)"),
        ("mesh=tp:2", "2 all-reduces over tp 32 B → 64 B each: +32 B per device and run"),
        ("mesh=tp:8", "2 all-reduces over tp 32 B → 16 B each: −40 B per device and run"),
    ],
)
def test_changes_from_outside(shardscope: Shardscope, repository: Path, change: str, headline: str) -> None:
    done = shardscope("diff", "step.py:step", *ARGUMENT, "--with", change)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].partition(";")[0] == headline
    assert lines[2].endswith(f", {change}")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("step.py:step",), 2, "nothing to compare with"),
        (("step.py:step", "--git", "no-such-revision"), 2, "no-such-revision"),
        (("step.py:step", "--git=--all"), 2, "--all"),
        (("missing.hlo", "step.py:step"), 2, "missing"),
        (("step.py:step", *ARGUMENT, "--with", "mesh=dp:2"), 2, "no mesh of the axes dp"),
        (("step.py:step", "--with", "check_vma=maybe"), 2, "expected check_vma=on"),
        (("step.py:step", "--with-a", "mesh=tp"), 2, "'tp' is not an axis with a size"),
        (("step.py:steq", "step.py:step"), 2, "steq"),
    ],
)
def test_what_cannot_be_compared(
    shardscope: Shardscope, repository: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = shardscope("diff", *arguments)
    assert done.returncode == status
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
