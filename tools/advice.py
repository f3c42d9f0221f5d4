"""Does what the default report advises to copies of programs, and counts again without shardscope.

    python tools/advice.py --python PATH [--checkouts DIR] [NAME or SCRIPT:FUNCTION …]

Programs are those of tools/zoo/programs.toml whose checkouts are there, or scripts with functions whose inputs have
the function's name and `_inputs`. Each fix that is shown was tried; its edits are made in a copy, which
`tools/zoo/sent.py` compiles under plain JAX. It holds if it saves at least four fifths of what the report says, in
bytes or in memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from answers import applied
from zoo import DEVICES, HERE, programs

HELD = 0.8


def main() -> None:
    """Print a row for each fix, and at the end how many were shown, and how many held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--checkouts", type=Path, default=Path("checkouts"))
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    os.environ |= {"ZOO_CHECKOUTS": str(asked.checkouts.resolve()), "JAX_PLATFORMS": "cpu"}
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    count = {"programs": 0, "shown": 0, "held": 0}
    for function in functions(asked.names, asked.checkouts):
        report = report_of(function, asked.python)
        if report is None or report.get("failure"):
            print(f"{function}: {'no report' if report is None else report['failure']['message'][:100]}")
            continue
        count["programs"] += 1
        fixes = [
            (each, fix)
            for each in report["findings"]
            if each["severity"] != "info"
            for fix in each["fixes"]
            if fix["state"] == "tried"
        ]
        print(f"{function}: {len(fixes)} fixes shown", flush=True)
        before = sent(function, [], asked.python) if fixes else None
        for found, fix in fixes:
            after = sent(function, fix["edits"], asked.python)
            is_held = before is not None and after is not None and holds(fix["experiment"], before, after)
            count["shown"] += 1
            count["held"] += is_held
            print(
                f"    {found['rule']} {fix['title']}: {said(fix['experiment'])}; counted {before} → {after}: {is_held}"
            )
    print(", ".join(f"{number} {what}" for what, number in count.items()))


def functions(names: list[str], checkouts: Path) -> Iterator[str]:
    """The functions that are named, or all of the list whose checkouts are there and that need no other target."""
    yield from (name for name in names if ":" in name)
    for each in programs():
        wanted = not names or each.name in names
        if wanted and not each.options and all((checkouts / folder).is_dir() for folder in each.needs):
            yield f"{HERE / 'programs'}/{each.function}"


def report_of(function: str, python: str) -> dict[str, Any] | None:
    """The default report as JSON; None where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        command = [sys.executable, "-m", "shardscope", "run", "--no-live", "--python", python]
        command += ["--devices", str(DEVICES), "--format", "json", "-o", str(path), function]
        subprocess.run(command, capture_output=True, check=False)
        return json.loads(path.read_text()) if path.exists() else None  # type: ignore[no-any-return]


def sent(function: str, edits: list[dict[str, Any]], python: str) -> dict[str, int] | None:
    """What a copy of the program sends and holds, with edits in files of its folder; None where it does not compile."""
    script, _, name = function.rpartition(":")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        shutil.copytree(Path(script).parent, copy)
        for file in {each["file"] for each in edits}:
            target = copy / Path(file).name
            own = [each for each in edits if each["file"] == file]
            target.write_bytes(applied(Path(script).parent / Path(file).name, own))
        command = [python, str(HERE / "sent.py"), str(copy / Path(script).name), name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"bytes"')]
        return json.loads(lines[-1]) if lines else None  # type: ignore[no-any-return]


def holds(experiment: dict[str, Any], before: dict[str, int], after: dict[str, int]) -> bool:
    """Return whether what the report says is saved is, in bytes or in memory, whichever it says more of."""
    shares = []
    for said_as, counted in (("bytes", "bytes"), ("memory", "memory")):
        one, other = experiment["before"][said_as], experiment["after"][said_as]
        if one and other is not None and before[counted]:
            shares.append(((one - other) / one, (before[counted] - after[counted]) / before[counted]))
    if all(claimed <= 0 for claimed, _ in shares):  # it ends a finding, and costs nothing
        return all(true >= claimed for claimed, true in shares)
    return any(claimed > 0 and true >= HELD * claimed for claimed, true in shares)


def said(experiment: dict[str, Any]) -> str:
    """What the report says of bytes and memory."""
    one, other = experiment["before"], experiment["after"]
    return f"said {one['bytes']} → {other['bytes']} bytes, memory {one['memory']} → {other['memory']}"


if __name__ == "__main__":
    main()
