"""Notes which of some lines each test executes, in every Python process that it starts.

Python imports this file by its name at start, since its folder is on `PYTHONPATH`. `MUTATE_LINES` names a file with
the lines, `PATH:LINE` each, and `MUTATE_HITS` the file that gets, for each line that a test reaches, its number in that
file and the checksum of the test's name, or of its file's while that is imported: a run of all tests reaches millions.
"""

import fcntl
import os
import sys
import zlib

LOWEST = 200
"""Descriptors from this number on are nobody's."""


def _watch(lines: str, hits: str) -> None:
    with open(lines) as file:
        wanted = {line: number for number, line in enumerate(file.read().splitlines())}
    files = {line.rpartition(":")[0] for line in wanted}
    monitoring = sys.monitoring
    noted = -1
    place = None
    seen: set[tuple[int, str]] = set()

    def note(data):  # type: ignore[no-untyped-def]
        """Programs close descriptors that they do not know, and give their numbers to others."""
        nonlocal noted, place
        try:
            here = os.fstat(noted)
        except OSError:
            here = None
        if here is None or place != (here.st_dev, here.st_ino):
            opened = os.open(hits, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            noted = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, LOWEST)
            os.close(opened)
            here = os.fstat(noted)
            place = here.st_dev, here.st_ino
        os.write(noted, data)

    def entered(code, offset):  # type: ignore[no-untyped-def]
        if code.co_filename in files:
            monitoring.set_local_events(monitoring.COVERAGE_ID, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def executed(code, line):  # type: ignore[no-untyped-def]
        number = wanted.get(f"{code.co_filename}:{line}")
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0] or os.environ.get("MUTATE_FILE", "")
        if number is not None and (number, test) not in seen:
            seen.add((number, test))
            note(f"{number} {zlib.crc32(test.encode())}\n".encode())
        return monitoring.DISABLE  # until the next test restarts the events

    monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutate")
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_START, entered)
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, executed)
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_START)


if "MUTATE_LINES" in os.environ:
    _watch(os.environ["MUTATE_LINES"], os.environ["MUTATE_HITS"])
