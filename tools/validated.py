"""Validate every function of the samples on targets: `python tools/validated.py TARGET …`.

`--functions SCRIPT:FN …` validates others, `--python FILE` compiles with another environment. `--write` puts the table
into docs/validate.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from pathlib import Path

from shardscope.inspector.capture.protocol.request import Request
from shardscope.inspector.capture.validation import begin_validated
from shardscope.samples.catalogue import samples

DOCUMENT = Path(__file__).parents[1] / "docs" / "validate.md"
MARK = "<!-- the last table -->\n"
TIMEOUT_S = 300


def main() -> int:
    """Prints a line for each validation, and the table; 1 if a program differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--functions", nargs="+", metavar="SCRIPT:FN")
    parser.add_argument("--python", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    every = [f"{sample.path}:{function}" for sample in samples() for function in sample.functions]
    functions = options.functions or every
    rows, reasons, errors = [], Counter[str](), 0
    for target in options.targets:
        counts, largest = Counter[str](), 0.0
        for function in functions:
            status, error, reason = validated(function, target, options.python)
            counts[status] += 1
            largest = max(largest, error)
            if reason:
                reasons[f"{target}, {Path(function).name}: {reason}"] += 1
            print(f"{target:14} {Path(function).name:50} {status} {error:.1g} {reason}", flush=True)
        errors += counts["differs"]
        cells = (counts["same"], counts["differs"], counts["not evaluated"], counts["not compiled"], f"{largest:.0e}")
        rows.append(f"| `{target}` | {len(functions)} | {' | '.join(map(str, cells))} |")
    names = ("target", "programs", "same", "differ", "not evaluated", "not compiled", "largest error")
    head = [f"| {' | '.join(names)} |", "|---|" + "---:|" * 6]
    table = "\n".join([*head, *rows, "", *(f"- {each}" for each in reasons)]) + "\n"
    print(table)
    if options.write:
        before, mark, _ = DOCUMENT.read_text().partition(MARK)
        DOCUMENT.write_text(before + mark + table)
    return errors > 0


def validated(function: str, target: str, python: str | None) -> tuple[str, float, str]:
    """The status, the largest error, and why there is none."""
    request = Request(function, target=target, python=python, live=False, probe="none", timeout=TIMEOUT_S)
    captured = deque(begin_validated(request, TIMEOUT_S).captures, maxlen=1).pop()
    found = captured.validation
    if found is None:
        return "not compiled", 0.0, "?" if captured.failure is None else captured.failure.message.partition("\n")[0]
    reason = f"{found.reason} {found.place}".strip() if found.status == "not evaluated" else ""
    return found.status, found.error, reason


if __name__ == "__main__":
    sys.exit(main())
