"""Runs tests with a mutant where it can do no harm: in a mount and process namespace of its own.

The mutant is mounted over its file, so that every process sees it. Everything else is read-only but for a fresh
temporary folder; what the mutant starts ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .mutants import Mutant

ROOT = Path(__file__).parents[2]
MAX_TESTS = 200
START_S = 60
"""Seconds in which Python and pytest have started, and for whatever a mutant slows down."""

GUARDED = """
set -e
mount --bind "$1" "$2"
mount --bind "$3" /tmp
mount -t tmpfs tmpfs /dev/shm
for place in $(cut -d ' ' -f 5 /proc/self/mountinfo); do
  case "$place" in /tmp|/proc|/dev/shm|/dev/pts) ;; *) mount -o remount,bind,ro "$place" 2>/dev/null || : ;; esac
done
cd "$4"
shift 4
! touch "$PWD/harm" 2>/dev/null
exec "$@"
"""


def survives(mutant: Mutant, tests: Mapping[str, float], seconds: float) -> bool:
    """Whether the quickest of the tests, as many as take so long together, all pass with a mutant."""
    chosen: dict[str, float] = {}
    for test in sorted(tests, key=lambda name: tests[name])[:MAX_TESTS]:
        if not chosen or sum(chosen.values()) + tests[test] <= seconds:
            chosen[test] = tests[test]
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        file, scratch, listed = (Path(folder, name) for name in ("mutant.py", "tmp", "tmp/tests"))
        file.write_bytes(mutant.text)
        scratch.mkdir()
        listed.write_text("\n".join(chosen))
        files = sorted({test.partition("::")[0] for test in chosen})
        pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "tools.mutate.plugin"]
        guard = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", GUARDED, "sh"]
        places = [str(file), str(mutant.file), str(scratch), str(ROOT)]
        own = {"MUTATE_TESTS": "/tmp/tests", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": "/tmp"}
        try:
            ended = subprocess.run(
                [*guard, *places, *pytest, *files],
                env=os.environ | own,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=START_S + 10 * sum(chosen.values()),
            )
        except subprocess.TimeoutExpired:
            return False
        if ended.returncode not in (0, 1, 2, 3):
            raise SystemExit(ended.stdout.decode() + ended.stderr.decode())
        return ended.returncode == 0
