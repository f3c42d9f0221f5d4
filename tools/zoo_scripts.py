"""Trace public scripts as they are, and compare with XLA: `python tools/zoo_scripts.py --checkouts DIR [WORD …]`.

The scripts are listed in tools/zoo/scripts.toml. Each runs twice: by itself, when XLA writes what it compiles into a
folder, and under `shardscope trace`. The programs that the list shows have to be those that XLA wrote, kind of
collective by kind, and the report of the step has to have the groups in XLA's text. `by_hand` names a function of
tools/zoo/programs/ that was taken out of the script by hand: `shardscope run` captures it, and both reports have to say
the same. `--write` puts the rows in `--results` into docs/zoo.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from shardscope.inspector.render.json import resolved

HERE = Path(__file__).parent / "zoo"
DOCUMENT = Path(__file__).parents[1] / "docs" / "zoo.md"
MARKS = ("<!-- the last scripts -->\n", "<!-- end of the last scripts -->\n")
TITLES = ("script", "of", "JAX", "s bare", "s traced", "programs", "collectives", "step", "compared", "by hand")
TIMEOUT_S = 600
DEVICES = 8
NOTEBOOK = (
    "--",
    "python",
    "-m",
    "nbconvert",
    "--to",
    "notebook",
    "--execute",
    "--allow-errors",
    "--output-dir",
    "/tmp",
)
MAPPED = "fun"
"""What XLA's module is called for a function that `pmap` maps (JAX 0.8 to 0.12)."""
KEEP_FLAGS = "import jax; jax.devices()\n"
"""The `sitecustomize` of a script or notebook that sets XLA_FLAGS: XLA has read them before."""

sys.path.insert(0, str(HERE))
import made_up  # noqa: E402
import oracle  # noqa: E402


def main() -> int:
    """Run the scripts; 1 if what is listed differs from what XLA compiled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--python", required=True, help="an interpreter that has what the scripts import")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=PYTHON", help="that of scripts with this env"
    )
    parser.add_argument("--results", type=Path, help="keep each script's row and reports in this folder")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    checkouts, rows, wrong = asked.checkouts.resolve(), [], False
    pythons = dict(each.split("=", 1) for each in asked.env)
    for name, script in tomllib.loads((HERE / "scripts.toml").read_text()).items():
        if asked.words and not any(word in name for word in asked.words):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            kept = asked.results / name if asked.results else Path(scratch)
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            facts = run(script, checkouts, pythons.get(script.get("env", ""), asked.python), kept)
        wrong |= "wrong" in facts["compared"] + facts.get("by hand", "")
        rows.append(
            " | ".join(("", name, script["is_of"], *(str(facts.get(each, "")) for each in TITLES[2:]), "")).strip()
        )
        print(rows[-1], flush=True)
        if asked.results:
            (asked.results / f"{name}.row").write_text(rows[-1])
    if asked.write:
        write([path.read_text() for path in sorted(asked.results.glob("*.row"))] if asked.results else rows)
    return wrong


def run(script: Mapping[str, Any], checkouts: Path, python: str, kept: Path) -> dict[str, Any]:
    """The row of one script."""
    if "data" in script:
        getattr(made_up, script["data"])(checkouts)
    cwd, command = checkouts / script["cwd"], list(script.get("command") or (*NOTEBOOK, script["notebook"]))
    paths = [str(checkouts / each) for each in script.get("paths", ())]
    own = {"PATH": f"{Path(python).parent}:{os.environ['PATH']}", "PYTHONPATH": ":".join(paths), "JAX_PLATFORMS": "cpu"}
    environ = {**os.environ, **own, "MPLBACKEND": "agg", "WANDB_MODE": "offline", **script.get("environ", {})}
    dump, devices = kept / "xla", f"--xla_force_host_platform_device_count={script.get('devices', DEVICES)}"
    flags = f"{devices} --xla_dump_to={dump} --xla_dump_hlo_as_text"
    bare = command[1:] if command[0] == "--" else [python, *command]
    before = dict(environ)
    if script.get("flags"):
        (kept / "sitecustomize.py").write_text(KEEP_FLAGS)
        before["PYTHONPATH"] = ":".join((str(kept), *paths))
    limit = script.get("stop_s", TIMEOUT_S)
    done, seconds = timed(bare, cwd, {**before, "XLA_FLAGS": flags}, kept / "bare.log", limit)
    facts: dict[str, Any] = {"s bare": "endless" if "stop_s" in script else f"{seconds:.1f}"}
    if done and "stop_s" not in script:
        return facts | {"compared": f"fails by itself: {last(kept / 'bare.log')}"}
    trace = [sys.executable, "-m", "shardscope", "trace", "--python", python, "--save", str(kept / "trace")]
    trace += ["--format", "json", "-o", str(kept / "list.json"), "--devices", str(script.get("devices", DEVICES))]
    if "stop_s" in script:
        trace += ["--match", script["step"], "--steps", "2"]
    done, seconds = timed([*trace, *command], cwd, environ, kept / "trace.log")
    facts["s traced"] = f"{seconds:.1f}"
    if "stop_s" in script:
        again = [sys.executable, "-m", "shardscope", "open", str(kept / "trace"), "--format", "json"]
        subprocess.run([*again, "-o", str(kept / "list.json")], capture_output=True, check=False)
    if done or not (kept / "list.json").exists():
        return facts | {"compared": f"fails when traced: {last(kept / 'trace.log')}"}
    told = json.loads((kept / "list.json").read_text())
    programs = told["programs"]
    found = [each for each in programs if fnmatch(each["function"], script["step"]) and not each["helper"]]
    found = [each for each in found if each["id"] == script.get("id", each["id"])]
    facts |= {
        "JAX": next((each["jax"] for each in told["processes"] if each["jax"]), ""),
        "programs": len(programs),
        "collectives": sum(sum((each["collectives"] or {}).values()) for each in programs),
    }
    if not found:
        return facts | {
            "compared": f"wrong: no {script['step']} among {sorted({each['function'] for each in programs})}"
        }
    facts["step"] = f"`{found[0]['id']}`"
    if not of_one_name(found[0], modules(dump)):
        return facts | {"compared": "not compared: the script sets XLA_FLAGS, and XLA writes nothing"}
    problems = [*differences(programs, modules(dump)), *step_problems(found[0], kept, modules(dump))]
    facts["compared"] = f"wrong: {problems[0]}" if problems else "equal"
    if "by_hand" in script:
        mine = [*hand_problems(script, checkouts, python, kept)]
        facts["by hand"] = f"wrong: {mine[0]}" if mine else f"equal to `{script['by_hand']}`"
        problems += mine
    (kept / "problems").write_text("\n".join(problems))
    return facts


def timed(
    command: Sequence[str], cwd: Path, environ: Mapping[str, str], log: Path, limit: float = TIMEOUT_S
) -> tuple[int, float]:
    """Exit status and seconds."""
    started = time.perf_counter()
    with log.open("w") as file:
        try:
            done = subprocess.run(command, cwd=cwd, env=environ, stdout=file, stderr=file, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            done = 124
    return done, time.perf_counter() - started


def modules(folder: Path) -> list[tuple[str, Counter[Any]]]:
    """Name of each module that XLA compiled, and its collectives by kind and groups."""
    import numpy as np

    listed = []
    for path in sorted(folder.glob("*after_optimizations.txt")):
        text = path.read_text()
        count = int((re.search(r"(?:num_partitions|replica_count)=(\d+)", text) or [0, 1])[1])
        found = oracle.COLLECTIVE.findall(text)
        listed.append(
            (
                bare_name(path.name.split(".")[1]),
                Counter((kind, oracle.groups_of(rest, np, count)) for kind, rest in found),
            )
        )
    return listed


def bare_name(name: str) -> str:
    """The name that JAX gives a module, without what it was made by."""
    return re.sub(r"^(jit|pmap|xmap)_+|_+$", "", re.sub(r"\W", "_", name)).strip("_")


def of_one_name(program: Any, compiled: Sequence[tuple[str, Counter[Any]]]) -> list[Counter[Any]]:
    """The collectives of each module that has the name of a program, or that of all mapped functions."""
    own = bare_name(program["function"])
    return [found for name, found in compiled if name == own] or [found for name, found in compiled if name == MAPPED]


def kinds(counted: Mapping[Any, int]) -> tuple[tuple[str, int], ...]:
    """How often each kind is there, as one value."""
    total: Counter[str] = Counter()
    for (kind, _), count in counted.items():
        total[kind] += count
    return tuple(sorted(total.items()))


def differences(programs: Sequence[Any], compiled: Sequence[tuple[str, Counter[Any]]]) -> Iterator[str]:
    """Programs that only one side has."""
    listed = Counter(
        (bare_name(each["function"]), tuple(sorted((each["collectives"] or {}).items()))) for each in programs
    )
    known = Counter((name, kinds(found)) for name, found in compiled)
    missing, invented = known - listed, listed - known
    for name, found in list(invented):  # the list has the user's name of a mapped function, XLA has JAX's
        both = min(invented[name, found], missing[MAPPED, found])
        missing[MAPPED, found] -= both
        invented[name, found] -= both
    for each, count in (+missing).items():
        yield f"not listed: {count} of {each}"
    for each, count in (+invented).items():
        yield f"XLA has no {each}: {count}"


def step_problems(program: Any, kept: Path, compiled: Sequence[tuple[str, Counter[Any]]]) -> Iterator[str]:
    """What the report of the step has otherwise than every module of its name."""
    base = [
        sys.executable,
        "-m",
        "shardscope",
        "open",
        str(kept / "trace"),
        "--module",
        program["id"],
        "--details",
        "all",
    ]
    for form in ("json", "text"):
        done = subprocess.run(
            [*base, "--format", form, "-o", str(kept / f"report.{form}")], capture_output=True, text=True
        )
        if done.returncode:
            yield f"its report: {done.stderr[-200:]}"
            return
    subprocess.run([*base[:-2], "--format", "text", "-o", str(kept / "short.text")], capture_output=True)
    report = resolved(json.loads((kept / "report.json").read_text()))
    mine = Counter(
        (each["kind"], frozenset(map(tuple, each.get("pairs", ()))) or oracle.members(each.get("groups", ())))
        for each in report["collectives"]
        if each["stage"] == "hlo"
    )
    same = of_one_name(program, compiled)
    if mine not in same:
        nearest = min(same, key=lambda each: sum(((each - mine) + (mine - each)).values()), default=Counter())
        yield f"groups of the step: missing {[*(nearest - mine)][:2]}, invented {[*(mine - nearest)][:2]}"
    for each in report["messages"]:
        if each.get("severity") == "error":
            yield f"error: {each['text'][:120]}"


def hand_problems(script: Mapping[str, Any], checkouts: Path, python: str, kept: Path) -> Iterator[str]:
    """What the report of the step says otherwise than that of the function taken out by hand."""
    command = [sys.executable, "-m", "shardscope", "run", str(HERE / "programs" / script["by_hand"]), "--no-live"]
    command += ["--python", python, "--devices", str(script.get("devices", DEVICES)), "--format", "json"]
    environ = {**os.environ, "ZOO_CHECKOUTS": str(checkouts), "MPLBACKEND": "agg", "PYTHONPATH": ""}
    done, _ = timed([*command, "-o", str(kept / "by_hand.json")], checkouts, environ, kept / "by_hand.log")
    if done:
        yield f"by hand: {last(kept / 'by_hand.log')}"
        return
    traced, by_hand = (resolved(json.loads((kept / name).read_text())) for name in ("report.json", "by_hand.json"))
    for what, fact in FACTS.items():
        if fact(traced) != fact(by_hand):
            yield f"{what}: {str(fact(traced))[:200]}, by hand {str(fact(by_hand))[:200]}"


FACTS: dict[str, Callable[[Any], Any]] = {
    "collectives": lambda report: sorted(
        (
            each["kind"],
            str(each.get("pairs") or each.get("groups")),
            each.get("wire_bytes"),
            str(each.get("executions")),
        )
        for each in report["collectives"]
        if each["stage"] == "hlo"
    ),
    "arguments": lambda report: [
        (each["path"], each["type"], each.get("requested"), each.get("actual")) for each in report["arguments"]
    ],
    "results": lambda report: [(each["type"], each.get("actual")) for each in report["outputs"]],
    "memory": lambda report: {
        name: report["memory"][name] for name in ("arguments", "outputs", "temporaries", "aliased")
    },
}
"""What two reports of one function have to agree on; what is alive at the peak is known of a capture in full alone."""


def last(log: Path) -> str:
    """The last line that says something."""
    lines = [each.strip() for each in log.read_text(errors="replace").splitlines() if each.strip()]
    return (lines or ["nothing was printed"])[-1][:160].replace("|", "\\|")


def write(rows: Sequence[str]) -> None:
    """Put the table into its document."""
    head = (f"| {' | '.join(TITLES)} |", f"|{' --- |' * len(TITLES)}")
    before, rest = DOCUMENT.read_text().split(MARKS[0])
    DOCUMENT.write_text(MARKS[0].join((before, "\n".join((*head, *rows, "")) + MARKS[1] + rest.split(MARKS[1])[1])))


if __name__ == "__main__":
    sys.exit(main())
