"""Scripts for older versions of JAX: the first remedy runs under plain JAX, with what the installed one has."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from shardscope.inspector.ir.program import SourceFile
from shardscope.inspector.report.edits import applied
from shardscope.inspector.trace_errors.remedies import explained_run
from shardscope.inspector.trace_errors.renamed import ADVICE, MODULES, RENAMED
from shardscope.inspector.trace_errors.trying import Command

from tests.sweeps import sampled, xla_flags

PROGRAMS = Path(__file__).parent / "programs"


IS_WITHOUT_THEM = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="names that this JAX has yet")


def _exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
            for part in parts[count:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return True
    return False


@IS_WITHOUT_THEM
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_are_gone_and_their_successors_are_there() -> None:
    assert [name for name in (*RENAMED, *ADVICE, *MODULES) if _exists(name)] == []
    assert [name for name in RENAMED.values() if not _exists(name)] == []


@IS_WITHOUT_THEM
@pytest.mark.parametrize(
    ("program", "title"),
    sampled(
        [
            ("old_pjit", "this JAX has no jax.config any more"),
            ("old_shard_map", "this JAX has no jax.tree_map any more"),
            ("old_pmap", "this JAX has no jax.device_put_replicated any more"),
        ],
        2,
        1,
    ),
)
def test_a_script_is_rewritten_for_this_jax(program: str, title: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text((PROGRAMS / f"{program}.py").read_text())
    found = explained_run(Command(str(script), devices=8))
    assert found is not None
    assert found.title == title
    assert found.fixes[0].helps
    text = applied(SourceFile(str(script), script.read_bytes()), list(found.fixes[0].edits))
    assert text is not None
    script.write_bytes(text)
    flags = xla_flags(8)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    ended = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]
