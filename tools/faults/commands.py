"""The commands that are tried, and the files that they take."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from pathlib import Path

SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P
mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
def fn(v):
    return jax.lax.psum(v, "x")
inputs = (jnp.arange(8.0),)
if __name__ == "__main__":
    fn(*inputs)
"""

FAST: dict[str, Sequence[str]] = {
    "open": ("open", "kept.shardscope"),
    "open -o": ("open", "kept.shardscope", "--format", "json", "-o", "out"),
    "open text": ("open", "text.hlo", "--format", "markdown"),
    "diff": ("diff", "kept.shardscope", "kept.shardscope"),
    "check": ("check", "kept.shardscope", "--golden", "golden.json", "--budget", "all-reduce: none"),
    "check --update": ("check", "kept.shardscope", "--golden", "other/golden.json", "--update"),
    "explain": ("explain", "psum"),
    "open html": ("open", "kept.shardscope", "--format", "html", "-o", "out"),
    "open perfetto": ("open", "timed.shardscope", "--format", "perfetto", "-o", "out"),
    "diff -o": ("diff", "kept.shardscope", "timed.shardscope", "--format", "markdown", "-o", "out"),
    "rules": ("rules",),
    "samples": ("samples",),
    "open sarif": ("open", "kept.shardscope", "--format", "sarif", "-o", "out"),
    "open github": ("open", "kept.shardscope", "--format", "github"),
    "open folder": ("open", "dump", "--format", "json"),
    "open trace": ("open", "traced", "--format", "json"),
    "open archive": ("open", "dump.zip"),
    "explain rule": ("explain", "SS01"),
    "diff html": ("diff", "kept.shardscope", "timed.shardscope", "--format", "html", "-o", "out"),
}
SLOW: dict[str, Sequence[str]] = {
    "run": ("run", "script.py:fn", "--save", "saved", "--format", "json"),
    "run --no-live": ("run", "script.py:fn", "--no-live"),
    "diff --git": ("diff", "script.py:fn", "--git", "HEAD"),
    "trace": ("trace", "--devices", "4", "script.py"),
    "trace --save": ("trace", "--save", "saved", "--match", "fn", "--format", "json", "--devices", "4", "script.py"),
    "check script": ("check", "script.py:fn", "--budget", "all-reduce: none"),
    "run --passes": ("run", "script.py:fn", "--passes", "--save", "saved", "--format", "json"),
    "run html": ("run", "script.py:fn", "--format", "html", "-o", "out"),
    "run targets": ("run", "script.py:fn", "--target", "cpu:4", "--target", "cpu:8", "--no-live"),
    "trace several": ("trace", "--processes", "2", "--devices", "4", "script.py"),
    "run --verify": ("run", "missing_reduce_scatter:faulty", "--no-live", "--verify"),
    "targets": ("targets",),
    "ranks --save": ("ranks", "--save", "saved", "--format", "json", "--processes", "2", "--devices", "4", "script.py"),
    "ranks": ("ranks", "--processes", "2", "--devices", "4", "script.py"),
}
ENDLESS: dict[str, Sequence[str]] = {
    "run --watch": ("run", "script.py:fn", "--watch", "--format", "tui"),
    "open screen": ("open", "kept.shardscope", "--format", "tui"),
    "diff screen": ("diff", "kept.shardscope", "timed.shardscope", "--format", "tui"),
    "trace screen": ("trace", "--devices", "4", "--format", "tui", "script.py"),
    "run screen": ("run", "script.py:fn", "--format", "tui"),
    "serve": ("serve", "open", "kept.shardscope"),
}
"""What ends by a signal alone, on a terminal."""


def prepare(folder: Path) -> None:
    """The files that the commands take."""
    (folder / "script.py").write_text(SCRIPT)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(folder)]
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *arguments], check=True)
    (folder / "script.py").write_text(SCRIPT.replace("return jax", "return 2 * jax"))
    target = ("--target", "tpu:v5e:2x2") if find_spec("libtpu") else ()
    for command in (
        ("run", "psum", "--no-live", "--save", "kept.shardscope", "-o", "report"),
        ("run", "psum", "--no-live", *target, "--save", "timed.shardscope", "-o", "report"),
        ("check", "kept.shardscope", "--golden", "golden.json", "--update"),
        ("trace", "--save", "traced", "--devices", "4", "-o", "report", "script.py"),
    ):
        whole = [sys.executable, "-m", "shardscope", *command]
        subprocess.run(whole, cwd=folder, check=True, capture_output=True)
    from shardscope.inspector.load import load

    found = load(str(folder / "kept.shardscope")).stage("hlo")
    assert found is not None
    (folder / "text.hlo").write_bytes(found.source.data)
    (folder / "dump").mkdir()
    (folder / "dump" / "module_0001.jit_fn.cpu_after_optimizations.txt").write_bytes(found.source.data)
    shutil.make_archive(str(folder / "dump"), "zip", folder, "dump")


def import_what_it_needs(folder: Path, command: Sequence[str]) -> None:
    """Run a command in this process, so that the calls that are counted in its forks are its own."""
    import shardscope.tui.app  # noqa: F401 (what has no end is not run)

    from shardscope.cli import main

    if command in ENDLESS.values():
        return

    here = os.getcwd()
    os.chdir(folder)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        main(command)
    os.chdir(here)


def run(command: Sequence[str]) -> int:
    """The exit status of a command in this process; 99, and a traceback, where it raises."""
    from shardscope.cli import main

    try:
        return main(command)
    except SystemExit as ending:
        return int(ending.code or 0)
    except BaseException:
        traceback.print_exc()
        return 99
