"""Runs the programs of public threads through shardscope, grades the answers, and writes docs/answers.md.

    python tools/answers.py [--python PATH] [--jobs N] [NAME ...]

An error is answered *at once* if the report explains it and its first remedy was tried: its edits are applied to a copy
here, which then runs under plain JAX, on eight fake CPU devices, to the end. Another question is answered at once if
the first finding is of the rule that is expected, and its first fix was tried, and runs likewise; or if nothing is to
be found, and nothing is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ERRORS, QUESTIONS = HERE / "threads" / "errors", HERE / "threads" / "questions"
TABLE = HERE.parent / "docs" / "answers.md"
DEVICES = 8


class Answer(NamedTuple):
    """A thread's question, what is known to be right, and what shardscope says."""

    name: str
    thread: str
    asks: str
    truth: str
    grade: str
    said: str
    remedy: str


def asked(script: Path, python: str, *options: str) -> dict[str, Any]:
    """The report of a script as JSON; nothing where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "shardscope", *options, "--devices", str(DEVICES), "--python", python]
        command += ["--format", "json", "-o", str(report), str(script)]
        subprocess.run(command, capture_output=True, check=False)
        return json.loads(report.read_text()) if report.exists() else {}  # type: ignore[no-any-return]


def answer(script: Path, python: str) -> Answer:
    """Ask shardscope about a script, and run the first change that it has tried."""
    head = dict(re.findall(r"^# (thread|asks|truth|finds): (.*)$", script.read_text(), re.MULTILINE))
    if script.parent == QUESTIONS:
        return _found(script, python, head)
    explanation = asked(script, python, "trace").get("explanation")
    remedies = [each for each in (explanation or {}).get("remedies", []) if each["state"] == "tried"]
    grade = "not" if explanation is None else "partly"
    if remedies and runs(script, remedies[0]["edits"], python):
        grade = "at once"
    elif remedies:
        grade = "wrong"
    said = "" if explanation is None else explanation["message"]
    where = "" if explanation is None else f" (line {explanation['where']['line']})"
    remedy = remedies[0]["title"] if remedies else ""
    return Answer(script.stem, head["thread"], head["asks"], head["truth"], grade, said + where, remedy)


def _found(script: Path, python: str, head: dict[str, str]) -> Answer:
    """The grade of the first finding that is no note."""
    report = asked(script, python)
    findings = [each for each in report.get("findings", []) if each["severity"] != "info"]
    first = findings[0] if findings else {"rule": "nothing", "message": "no findings", "fixes": []}
    tried = [each for each in first["fixes"] if each["state"] == "tried"]
    grade = "not" if not findings else "wrong"
    if first["rule"] == head["finds"] and report:
        is_done = not findings or (bool(tried) and runs(script, tried[0]["edits"], python))
        grade = "at once" if is_done else "wrong" if tried else "partly"
    rule, remedy = f"{first['rule']}: " if findings else "", tried[0]["title"] if tried else ""
    return Answer(script.stem, head["thread"], head["asks"], head["truth"], grade, rule + first["message"], remedy)


def applied(script: Path, edits: list[dict[str, Any]]) -> bytes:
    """The text of a script with edits."""
    data = script.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda each: (each["line"], each["column"], each["end_line"]), reverse=True):
        start, end = starts[edit["line"] - 1] + edit["column"], starts[edit["end_line"] - 1] + edit["end_column"]
        data = data[:start] + edit["text"].encode() + data[end:]
    return data


def runs(script: Path, edits: list[dict[str, Any]], python: str) -> bool:
    """Return whether a copy of a script with edits runs to its end."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, script.name)
        copy.write_bytes(applied(script, edits))
        flags = f"--xla_force_host_platform_device_count={DEVICES}"
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
        return subprocess.run([python, str(copy)], env=environment, capture_output=True, check=False).returncode == 0


def programs() -> list[Path]:
    """The scripts of all threads, errors first."""
    return [path for folder in (ERRORS, QUESTIONS) for path in sorted(folder.glob("*.py"))]


def table(answers: list[Answer]) -> str:
    """The page: the score, and a row for each thread."""
    count = {grade: sum(each.grade == grade for each in answers) for grade in ("at once", "partly", "not", "wrong")}
    score = ", ".join(f"{number} {grade}" for grade, number in count.items())
    lines = [
        "# Answers",
        "",
        f"**{len(answers)} of {len(programs())} programs asked: {score}.**",
        "",
        "Programs as users post them, written anew from public threads where one is named; `tools/answers.py` asks",
        "`shardscope trace --devices 8` why each of `tools/threads/errors` fails, and `shardscope --devices 8` what is",
        "wrong with each of `tools/threads/questions`. *At once*: the cause is named, and the first change that was",
        "tried, made in a copy, runs under plain JAX; or nothing is wrong, and nothing is found. *Partly*: the cause",
        "is named, no change found. *Wrong*: the change does not run, or another finding stands first. Programs that",
        "were left out of this run have no row, and are not in the score.",
        "",
        "| program | thread | question | answer | remedy, as tried | truth | |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in answers:
        cells = (each.name, _link(each.thread), each.asks, each.said, each.remedy, each.truth, each.grade)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _link(thread: str) -> str:
    repository, _, number = thread.partition("#")
    return f"[{thread}](https://github.com/{repository}/issues/{number})" if number else ""


def main() -> None:
    """Grade the programs that are named, or all, and write the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the programs")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the table of those that are named")
    options = parser.parse_args()
    scripts = [each for each in programs() if not options.names or each.stem in options.names]
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = []
        for each in pool.map(lambda script: answer(script, options.python), scripts):
            print(f"{each.grade:8} {each.name}: {each.said} / {each.remedy}", flush=True)
            answers.append(each)
            if not options.names or options.write:
                TABLE.write_text(table(answers))


if __name__ == "__main__":
    main()
