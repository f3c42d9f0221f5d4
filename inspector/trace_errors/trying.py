"""Runs of a failing script, as it is or edited, on its devices or with every mesh on one of them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ...parsers.record import Record
from ..capture.children import Children
from ..capture.environment import child_environment
from ..capture.protocol import bootstrap
from ..capture.protocol.events import StackFrame
from ..capture.scratch import Scratch
from ..targets.target import parse_target
from ..values.distances import ROUNDING

Texts = Mapping[str, bytes]
"""The changed texts of files, by their paths."""

TIMEOUT_S = 60.0
"""Seconds that a run may take."""


class Command(Record, frozen=True):
    """A script with its arguments; with a `request`, the function of it that is called."""

    script: str
    argv: tuple[str, ...] = ()
    devices: int | None = None
    python: str | None = None
    directory: str | None = None
    request: str = ""


class Run(Record, frozen=True):
    """The end of a run: `error` is the exception's class, empty where the script ended well; `said` is its text.

    `stack` are the user's frames, innermost first, `facts` the arrays, meshes, shardings and numbers in each of them.
    `values` are those that the script had at the end, `axes` the mesh axes over which it sharded arrays.
    """

    error: str = ""
    said: str = ""
    stack: tuple[StackFrame, ...] = ()
    facts: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    values: Mapping[str, Any] = {}
    axes: frozenset[str] = frozenset()


class Runner:
    """Runs a command with changed texts; each run is a fork of one process that has imported JAX.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._scratch = Scratch()
        self._count = 0
        environment = child_environment(os.environ, parse_target("cpu"), command.devices)
        reading, writing = os.pipe()
        self._children = Children()
        self._process = self._children.begin(
            bootstrap.command(command.python or sys.executable, "script_trial", str(writing)),
            environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            cwd=command.directory,
        )
        os.close(writing)
        self._answers = open(reading, encoding="utf-8")  # noqa: SIM115 (closed with the runner)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._children.close()
        self._answers.close()
        self._scratch.remove()

    def run(self, texts: Texts, *, one: bool = False, unchecked: bool = False) -> Run:
        """Run it with changed texts; with every mesh on `one` device; with the checks of shard_map off."""
        self._count += 1
        folder = self._scratch.path / str(self._count)
        folder.mkdir()
        job = {
            "script": self._command.script,
            "argv": self._command.argv,
            "request": self._command.request,
            "replaced": list(_written(texts, folder)),
            "one": one,
            "unchecked": unchecked,
            "timeout": TIMEOUT_S,
            "stderr": str(folder / "stderr"),
            "fault": str(folder / "fault"),
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
            answer = json.loads(self._answers.readline())
        except (OSError, ValueError) as error:
            return Run("died", f"cannot be run: {error}")
        return Run(
            answer.get("error", ""),
            answer.get("said", ""),
            tuple(StackFrame(*frame) for frame in answer.get("stack", ())),
            tuple(tuple(facts) for facts in answer.get("facts", ())),
            answer.get("values", {}),
            frozenset(answer.get("axes", ())),
        )


def _written(texts: Texts, folder: Path) -> list[tuple[str, str]]:
    pairs = []
    for number, (file, text) in enumerate(texts.items()):
        path = folder / f"{number}.py"
        path.write_bytes(text)
        pairs.append((file, str(path)))
    return pairs


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[list[str], int]:
    """The names of values that two runs have differently, and how many they have both.

    A variable may have another shape, as one that is padded; what is printed or returned to the request may not.
    """
    both = [name for name in one if name in other]
    alike = [name for name in both if one[name][0] == other[name][0]]
    others = [name for name in both if name not in alike and name.startswith(("print#", "#0 result"))]
    return [*others, *(name for name in alike if _apart(one[name], other[name]))], len(alike) + len(others)


def _apart(one: Sequence[Any], other: Sequence[Any]) -> bool:
    size = math.prod(one[0])
    kinds = {"float64": "f64", "complex128": "f64", "float16": "f16", "bf16": "bf16"}
    rounding = max(ROUNDING[kinds.get(each[1], "f32")] for each in (one, other))
    scale = max(abs(complex(*one[2][0])), abs(complex(*other[2][0])))
    tolerance = rounding * scale * max(1.0, math.sqrt(size)) + 1e-6
    pairs = zip(one[2], other[2], strict=True)
    return any(not _close(complex(*a), complex(*b), tolerance) for a, b in pairs)


def _close(one: complex, other: complex, tolerance: float) -> bool:
    return one == other or abs(one - other) <= tolerance or (one != one and other != other)
