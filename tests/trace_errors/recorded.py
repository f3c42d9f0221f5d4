"""Runs of failing scripts and of their edited copies, as plain JAX ended them: explanations without a process.

`python -m tests.trace_errors.recorded [NAME…]` runs scripts anew, with the installed JAX, and writes `runs.json.xz`.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from shardscope.inspector.capture.protocol.events import StackFrame
from shardscope.inspector.capture.spawn import Request
from shardscope.inspector.trace_errors import remedies
from shardscope.inspector.trace_errors.problem import Candidate, Problem
from shardscope.inspector.trace_errors.trying import Command, Run, Runner, Texts

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNS = HERE / "runs.json.xz"

Runs = dict[str, dict[str, Any]]
"""The runs of a script by what is changed in them."""


def commands() -> dict[str, Command]:
    """All that fail, by their names."""
    scripts = [*(ROOT / "tools" / "threads" / "errors").glob("*.py"), *(HERE / "programs").glob("*.py")]
    found = {script.stem: Command(str(script), devices=8) for script in sorted(scripts)}
    for file in (HERE / "broken.py", HERE / "explicit.py", HERE / "mapped.py"):
        for name in re.findall(r"\b(\w+)_inputs\b", file.read_text()):
            found[name] = Command(str(file), devices=8, request=Request(f"{file}:{name}").encode())
    return found


def _key(texts: Texts, one: bool, unchecked: bool) -> str:
    changed = hashlib.sha256()
    for file, text in sorted(texts.items()):
        changed.update(str(Path(file).relative_to(ROOT)).encode() + b"\0" + text + b"\0")
    return f"{changed.hexdigest()[:16]} {one:d}{unchecked:d}"


class _Replaying:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def __enter__(self) -> _Replaying:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, texts: Texts, *, one: bool = False, unchecked: bool = False) -> Run:
        known = self._runs.get(_key(texts, one, unchecked))
        return Run("unknown", "a text that was not recorded") if known is None else _run(known)


class _Recording(Runner):
    runs: Runs

    def run(self, texts: Texts, *, one: bool = False, unchecked: bool = False) -> Run:
        key = _key(texts, one, unchecked)
        if key not in self.runs:
            found = super().run(texts, one=one, unchecked=unchecked)
            self.runs[key] = {
                "error": found.error,
                "said": found.said,
                "stack": [[getattr(frame, name) for name in StackFrame.__match_args__] for frame in found.stack],
                "facts": found.facts,
                "values": found.values,
                "axes": sorted(found.axes),
            }
        return _run(self.runs[key])


def _run(known: Mapping[str, Any]) -> Run:
    frames = tuple(StackFrame(*frame) for frame in known["stack"])
    facts = tuple(map(tuple, known["facts"]))
    return Run(known["error"], known["said"], frames, facts, known["values"], frozenset(known["axes"]))


@cache
def recorded() -> dict[str, Runs]:
    """The runs of each script."""
    found: dict[str, Runs] = json.loads(lzma.decompress(RUNS.read_bytes()).replace(b"{ROOT}", str(ROOT).encode()))
    return found


def replaying(runs: Runs) -> Any:
    """A context in which scripts run as they were recorded."""
    return patch.object(remedies, "Runner", lambda command: _Replaying(runs))


def ended(name: str) -> Iterator[tuple[Candidate, Texts | None, Run | None]]:
    """The edits for a script's first error, its texts with each of them, and how that ends."""
    with remedies.Runner(commands()[name]) as runner:
        problem = Problem(runner.run({}), {}, commands()[name].script)
        reason = remedies.reason_of(problem)
        for candidate in () if reason is None else reason.candidates:
            texts = remedies.changed(problem, candidate)
            yield candidate, texts, None if texts is None else runner.run(texts)


def main(names: list[str]) -> None:
    """Record scripts, all of them if none is named."""
    found = dict(recorded()) if RUNS.exists() and names else {}
    with patch.object(remedies, "Runner", _Recording), patch.object(remedies, "MAX_SECONDS", math.inf):
        for name in names or commands():
            _Recording.runs = found[name] = {}
            remedies.explained_run(commands()[name])
            print(name, len(found[name]), len(list(ended(name))), len(found[name]), flush=True)
    text = json.dumps(found, sort_keys=True).replace(str(ROOT), "{ROOT}").replace(tempfile.gettempdir(), "{TMP}")
    RUNS.write_bytes(lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    main(sys.argv[1:])
