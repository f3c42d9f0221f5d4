"""Run shardscope on public programs, and compare with what JAX says: `python tools/zoo.py --checkouts DIR [WORD …]`.

The programs are listed in tools/zoo/programs.toml: wrappers around public packages, which are installed in an
environment of their own (`--env`), and around checkouts of public repositories, which are looked for by name in the
folder of `--checkouts`. What can be had is run; with words, those whose names hold one. `--write` puts the table into
docs/zoo.md. Exit status 1 if a collective or a sharding is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shardscope.inspector.render.json import resolved

HERE = Path(__file__).parent / "zoo"
DOCUMENT = Path(__file__).parents[1] / "docs" / "zoo.md"
MARK = "<!-- the last table -->\n"
TIMEOUT_S = 600
DEVICES = 8


@dataclass(frozen=True)
class Program:
    """A program of the list: `function` is `script.py:name`, `needs` the checkouts, `packages` what pip installs."""

    name: str
    is_of: str
    function: str
    packages: tuple[str, ...]
    needs: tuple[str, ...]
    options: tuple[str, ...]
    own: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """`problems` are what is wrong, `why` why it could not be compared."""

    program: Program
    facts: Mapping[str, Any]
    problems: tuple[str, ...] = ()
    why: str = ""


def main() -> int:
    """Run the programs; 1 if anything that shardscope says is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--checkouts", type=Path, default=Path("checkouts"))
    parser.add_argument("--env", type=Path, default=Path(tempfile.gettempdir()) / "shardscope-zoo")
    parser.add_argument("--python", help="an interpreter that has the packages, instead of an environment")
    parser.add_argument("--results", type=Path, help="a folder for the captures, which `shardscope open` shows")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    wanted = [each for each in programs() if not asked.words or any(word in each.name for word in asked.words)]
    present = [each for each in wanted if all((asked.checkouts / folder).is_dir() for folder in each.needs)]
    python = asked.python or environment(asked.env, present)
    environ = os.environ | {"ZOO_CHECKOUTS": str(asked.checkouts.resolve()), "JAX_PLATFORMS": "cpu"}
    outcomes = []
    for each in present:
        outcomes.append(run(each, python, environ, asked.results))
        print(line(outcomes[-1]), flush=True)
        for problem in outcomes[-1].problems:
            print(f"    {problem}")
    if asked.write:
        text = DOCUMENT.read_text()
        DOCUMENT.write_text(text[: text.index(MARK) + len(MARK)] + table(outcomes))
    for each in wanted:
        if each not in present:
            print(f"{each.name}: needs {', '.join(each.needs)} in {asked.checkouts}")
    return any(each.problems for each in outcomes)


def programs() -> Iterator[Program]:
    """The programs of the list."""
    for name, each in tomllib.loads((HERE / "programs.toml").read_text()).items():
        lists = (tuple(each.get(key, ())) for key in ("packages", "needs", "options", "own"))
        yield Program(name, each["is_of"], each["function"], *lists)


def environment(folder: Path, wanted: Sequence[Program]) -> str:
    """The interpreter of an environment with all packages that the programs need."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    packages = sorted({package for each in wanted for package in each.packages} | {"jax"})
    subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
    return str(python)


def run(program: Program, python: str, environ: Mapping[str, str], results: Path | None = None) -> Outcome:
    """Capture a program, keep the capture in `results`, and compare the report with the oracle's."""
    script, _, function = program.function.partition(":")
    path = HERE / "programs" / script
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "shardscope", "run", f"{path}:{function}", "--python", python, "--no-live"]
        command += ["--devices", str(DEVICES), "--details", "all", "--format", "json", "-o", str(report)]
        command += program.options
        command += ["--save", str(results / f"{program.name}.shardscope")] if results else []
        started = time.perf_counter()
        done = _done(command, environ)
        facts = {"seconds": time.perf_counter() - started}
        if done.returncode or not report.exists():
            failure = json.loads(report.read_bytes()).get("failure") if report.exists() else None
            return Outcome(program, facts, why=_last(failure["message"] if failure else done.stderr or done.stdout))
        document = resolved(json.loads(report.read_bytes()))
        report.write_text(json.dumps(document))
        facts |= {"findings": [each["rule"] for each in document["findings"]], "version": document["subject"]["jax"]}
        problems = [*_foreign_lines(program, document, path, environ), *_errors(document)]
        if "--target" in program.options:
            listed = sum(each["stage"] == "hlo" for each in document["collectives"])
            facts["collectives"] = f"{listed}, and {sum(each['count'] for each in document['uncounted'])} by kernels"
            return Outcome(program, facts, tuple(problems), why="not compared: the target is not there")
        flags = f"{environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={DEVICES}"
        oracle = [python, str(HERE / "oracle.py"), str(path), function, str(report)]
        truth = _done(oracle, {**environ, "XLA_FLAGS": flags})
    if truth.returncode:
        return Outcome(program, facts, tuple(problems), why=f"the oracle: {_last(truth.stderr)}")
    known = json.loads(truth.stdout.splitlines()[-1])
    problems += [f"missing: {each}" for each in known["missing"]]
    problems += [f"not in the program: {each}" for each in known["invented"]]
    problems += known["wrong_shardings"]
    facts |= {"bare": known["seconds"], "shardings": known["shardings"]}
    return Outcome(program, facts | {"collectives": sum(known["collectives"].values())}, tuple(problems))


def _done(command: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"longer than {TIMEOUT_S} s")


def _foreign_lines(program: Program, document: Any, path: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Collectives whose line is in a file that is not the program's own."""
    folders = (str(path.parent), *(os.path.join(environ["ZOO_CHECKOUTS"], each) for each in program.needs))
    for each in document["collectives"]:
        file = each.get("source", {}).get("file")
        if file is not None and not file.startswith(folders) and not any(name in file for name in program.own):
            yield f"{each['stage']} {each['name']}: its line is in {file}"


def _errors(document: Any) -> Iterator[str]:
    for message in document.get("messages", ()):
        if "shardscope" in str(message.get("text", "")) and message.get("severity") == "error":
            yield f"internal error: {message['text'][:200]}"


def _last(text: str) -> str:
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    return (lines or ["nothing was printed"])[-1][:160]


def line(outcome: Outcome) -> str:
    """One row of the table."""
    facts = outcome.facts

    def number(key: str, form: str = "{}") -> str:
        return form.format(facts[key]) if key in facts else ""

    verdict = outcome.why or (f"{len(outcome.problems)} wrong" if outcome.problems else "right")
    cells = (
        outcome.program.name,
        outcome.program.is_of,
        number("version"),
        number("bare", "{:.1f}"),
        number("seconds", "{:.1f}"),
        number("collectives"),
        number("shardings"),
        " ".join(facts.get("findings", ())),
        verdict.replace("|", "\\|"),
    )
    return f"| {' | '.join(map(str, cells))} |"


def table(outcomes: Sequence[Outcome]) -> str:
    """The table of docs/zoo.md."""
    titles = ("program", "of", "JAX", "s bare", "s captured", "collectives", "shardings", "findings", "compared")
    head = (f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}")
    return "\n".join((*head, *map(line, outcomes), ""))


if __name__ == "__main__":
    sys.exit(main())
