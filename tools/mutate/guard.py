"""Where mutants can do no harm: a mount and process namespace in which only a fresh temporary folder can be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

GUARDED = """
set -e
mount --bind "$1" /tmp
mount -t tmpfs tmpfs /dev/shm
for place in $(cut -d ' ' -f 5 /proc/self/mountinfo); do
  case "$place" in /tmp|/proc|/dev/shm|/dev/pts) ;; *) mount -o remount,bind,ro "$place" 2>/dev/null || : ;; esac
done
cd "$2"
shift 2
! touch "$PWD/harm" 2>/dev/null
exec "$@"
"""


def guarded(command: Sequence[str], temporary: Path, directory: Path) -> list[str]:
    """A command that runs another in such a namespace, in a directory; what it starts ends with it."""
    namespace = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*namespace, "sh", "-c", GUARDED, "sh", str(temporary), str(directory), *command]
