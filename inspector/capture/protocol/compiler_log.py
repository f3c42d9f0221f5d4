"""What XLA says while it compiles. It writes to file descriptor 2, past Python's `sys.stderr`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from .events import Level, Message, Phase
from .workspace import COMPILER_LOG

MOST_MESSAGES = 500
LONGEST_MESSAGE = 16_000

# W1121 06:14:37.827144   18479 spmd_partitioner.cc:656] text      (absl/log, also `E0000 00:00:1732167891.123456 …`)
# 2026-11-21 07:10:29.321446: W external/xla/xla/service/spmd/spmd_partitioner.cc:656] text      (JAX 0.7)
_LOGGED = re.compile(
    r"^(?:(?P<level>[IWEF])\d{4} \S+\s+\d+ |\d{4}-\d\d-\d\d \S+: (?P<old_level>[IWEF]) )"
    r"(?:[\w.-]+/)*(?P<place>[\w.-]+:\d+)\] ?",
    re.MULTILINE,
)
_LEVELS: dict[str, Level] = {"I": "info", "W": "warning", "E": "error", "F": "error"}


@contextmanager
def diverted(workspace: str) -> Iterator[str]:
    """Send file descriptor 2 to a file of the workspace; gives the file's path."""
    path = os.path.join(workspace, COMPILER_LOG)
    sys.stderr.flush()
    kept = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 2)
        yield path
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(file)
        os.close(kept)


def read_messages(path: str, phase: Phase) -> list[Message]:
    """The messages in such a file; a message goes on until the next one's head."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_MESSAGES * LONGEST_MESSAGE).decode("utf-8", "replace")
    except OSError:
        return []
    unique = {(message.text, message.location): message for _, message in split_log(text, phase)}
    return [replace(m, text=m.text[:LONGEST_MESSAGE]) for m in unique.values()][:MOST_MESSAGES]


def fatal_message(text: str) -> tuple[str, str] | None:
    """What a failed check of XLA's said before it ended the process, and where in XLA; None if none did."""
    found = [message for level, message in split_log(text) if level == "F"]
    return (found[-1].text.partition("\n")[0], found[-1].location or "") if found else None


def split_log(text: str, phase: Phase = "compile") -> Iterator[tuple[str, Message]]:
    """The log's own letter for the level, and the message, for each piece of a text."""
    heads = list(_LOGGED.finditer(text))
    if before := text[: heads[0].start() if heads else None].strip():
        yield "I", Message("info", before, phase)
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        level = head["level"] or head["old_level"]
        yield level, Message(_LEVELS[level], text[head.end() : end].strip(), phase, head["place"])
