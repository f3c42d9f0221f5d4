"""Exit statuses of the command."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses; a shell script or a CI job may rely on them."""

    DONE = 0
    FINDINGS = 1
    USAGE = 2
    FUNCTION_FAILED = 3
    CAPTURE_DIED = 4
    UNREADABLE_INPUT = 5
    SYSTEM_FAILED = 6
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143
