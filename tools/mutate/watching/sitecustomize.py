"""Notes which of some lines each test executes, in every Python process that it starts.

Python imports this file by its name at start, since its folder is on `PYTHONPATH`. `MUTATE_LINES` names a file with
the lines, `PATH:LINE` each, and `MUTATE_HITS` the file that gets `PATH:LINE TEST` for each line that a test reaches.
"""

import os
import sys


def _watch(lines: str, hits: str) -> None:
    with open(lines) as file:
        wanted = frozenset(file.read().split())
    files = {line.rpartition(":")[0] for line in wanted}
    monitoring = sys.monitoring
    noted = os.open(hits, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    seen: set[tuple[str, str]] = set()

    def entered(code, offset):  # type: ignore[no-untyped-def]
        if code.co_filename in files:
            monitoring.set_local_events(monitoring.COVERAGE_ID, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def executed(code, line):  # type: ignore[no-untyped-def]
        name = f"{code.co_filename}:{line}"
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        if name in wanted and test and (name, test) not in seen:
            seen.add((name, test))
            os.write(noted, f"{name} {test}\n".encode())
        return monitoring.DISABLE  # until the next test restarts the events

    monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutate")
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.PY_START, entered)
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, executed)
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_START)


if "MUTATE_LINES" in os.environ:
    _watch(os.environ["MUTATE_LINES"], os.environ["MUTATE_HITS"])
