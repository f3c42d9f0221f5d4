"""What `diff` and `check` say of every sample under two versions of JAX.

    python tools/versions.py --python-a OLD/bin/python --python-b NEW/bin/python [--target gpu:h100:8] [--keep FOLDER]

One line for each function: the headline, and whether a golden of each version passes with the other. The last lines
count them; where communication is the same and a golden does not pass, the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.check.golden import golden_of, read_golden
from shardscope.inspector.check.verdict import judge
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.headline import headline
from shardscope.inspector.report import Report
from shardscope.samples.catalogue import samples


def main() -> int:
    """Prints a line for each function, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python-a", required=True)
    parser.add_argument("--python-b", required=True)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--keep", type=Path, help="a folder where captures are kept, and looked for first")
    parser.add_argument("names", nargs="*", help="samples as NAME:FUNCTION (default: all)")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="versions-"))
    folder.mkdir(parents=True, exist_ok=True)
    functions = {f"{each.name}:{name}": f"{each.path}:{name}" for each in samples() for name in each.functions}
    counts = {"without a change": 0, "with one": 0, "not captured": 0, "golden that should pass and does not": 0}
    for name in options.names or functions:
        kept = [folder / f"{name.replace(':', '-')}.{side}.shardscope" for side in "ab"]
        pythons = (options.python_a, options.python_b)
        sides = [_captured(functions[name], *each, options.target) for each in zip(pythons, kept, strict=True)]
        if failed := [side.failure.message if side.failure else side.damage for side in sides if not side.complete]:
            counts["not captured"] += 1
            print(f"{name}: {failed[0]}", flush=True)
            continue
        reports = [inspect(side) for side in sides]
        found = diff(*reports)
        pair = list(zip((name, name), reports, strict=True))
        passes = [_passes(*pair[one], reports[not one], folder / "golden.json") for one in (0, 1)]
        same = not found.communication_differs and not found.borders
        counts["with one" if found.communication_differs else "without a change"] += 1
        counts["golden that should pass and does not"] += same and not all(passes)
        print(f"{name}: {headline(found)}; golden {'passes' if all(passes) else 'does not pass'}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["golden that should pass and does not"] else 0


def _captured(function: str, python: str, kept: Path, target: str) -> Capture:
    if kept.exists():
        return load(str(kept))
    *_, found = capture(Request(function, live=False, python=python, target=target, timeout=120))
    if found.complete:
        save(found, str(kept))
    return found


def _passes(name: str, one: Report, other: Report, path: Path) -> bool:
    path.write_bytes(golden_of(judge(name, one, None, ()).found))
    return judge(name, other, read_golden(str(path)), ()).passed


if __name__ == "__main__":
    sys.exit(main())
