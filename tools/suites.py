"""Read the test texts of XLA, Shardy and StableHLO, and compare with their own parsers.

    python -m tools.suites [PROJECT...]                 fetch each project at its revision, and read all its tests
    python -m tools.suites --checkouts DIR [--show]     read the checkouts DIR/xla, DIR/shardy and DIR/stablehlo

A test is a file of HLO or MLIR, or a part of one between lines of `// -----`, or a string with HLO in C++ or
Python; of each, every module that begins on a line of its own. The parsers of jaxlib say which of them are texts. Each
of these is then, by us,

    read       as they read it, without a problem
    reported   read otherwise, or in contradiction to itself, with a problem that says so
    silent     read otherwise, without a problem
    false      read as they read it, with a problem

`--show` prints all texts but those that are read, with what differs. Exit status 1 if any is silent or false.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from shardscope.parsers import parse
from shardscope.parsers.errors import ParseError
from shardscope.parsers.hlo import HloModule
from shardscope.parsers.mlir import MlirModule

from tests.parsers import hlo, mlir
from tests.parsers.conftest import read_in_cpp
from tests.parsers.hlo.agreement import differences as from_xla
from tests.parsers.hlo.agreement import in_our_names
from tests.parsers.mlir.agreement import differences as from_mlir


@dataclass(frozen=True)
class Project:
    """A project of others, at one revision."""

    name: str
    url: str
    revision: str


PROJECTS = (
    Project("xla", "https://github.com/openxla/xla", "841f8d2d5c9e340a998dda6690dec6e1b0b29e9b"),
    Project("shardy", "https://github.com/openxla/shardy", "a0277a83e7f84d40075be0d71a131cb71d806ff6"),
    Project("stablehlo", "https://github.com/openxla/stablehlo", "3c9301c116f97fbaf696959a0ede32712aec587b"),
)
READERS = {".hlo": hlo, ".mlir": mlir}
VERDICTS = ("read", "reported", "silent", "false")
MAX_BYTES = 4 << 20
"""Texts of more bytes than this are left out."""

_CUT = re.compile(r"^// -----.*\n?", re.MULTILINE)
_MODULE = re.compile(r"(?m)^(?=module\b|HloModule\b)")
_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"|"""(.*?)"""', re.DOTALL)
_HLO = re.compile(r"\s*(?://.*\n\s*)*(?:HloModule\b|ENTRY\b|%?[\w.\-]+ (?:\(.*\) -> .*)?\{)")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("projects", nargs="*", default=[each.name for each in PROJECTS], help="xla, shardy, stablehlo")
    parser.add_argument("--checkouts", type=Path, metavar="DIR", help="folder of checkouts; fetched where it lacks one")
    parser.add_argument("--only", metavar="WORD", default="", help="read only texts with this word in their names")
    parser.add_argument("--show", action="store_true", help="print what is not read as the projects' own parsers do")
    options = parser.parse_args()
    failures = 0
    print(f"| {'tests':15} | texts | {' | '.join(VERDICTS)} |\n|---|{'---|' * (len(VERDICTS) + 1)}")
    with tempfile.TemporaryDirectory() as folder:
        for project in (each for each in PROJECTS if each.name in options.projects):
            checkout = (options.checkouts or Path(folder)) / project.name
            if not checkout.exists():
                fetch(project, checkout)
            for suffix in READERS:
                place = Path(folder) / f"{project.name}{suffix}s"
                place.mkdir()
                texts = written(place, suffix, checkout, options.only)
                if texts:
                    verdicts = judged(texts, suffix)
                    counts = Counter(verdict for verdict, _ in verdicts.values())
                    failures += counts["silent"] + counts["false"]
                    cells = " | ".join(str(counts[verdict]) for verdict in VERDICTS)
                    print(f"| {project.name + ' ' + suffix:15} | {len(verdicts)} | {cells} |", flush=True)
                    if options.show:
                        show(texts, verdicts)
    return failures > 0


def fetch(project: Project, checkout: Path) -> None:
    """Bring one revision of a project, without its history."""
    git = ["git", "-C", str(checkout)]
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    subprocess.run([*git, "fetch", "--quiet", "--depth", "1", project.url, project.revision], check=True)
    subprocess.run([*git, "-c", "advice.detachedHead=false", "checkout", "--quiet", "FETCH_HEAD"], check=True)


def written(place: Path, suffix: str, checkout: Path, word: str) -> Mapping[Path, str]:
    """The texts of one language in a checkout, each in a file, with their names."""
    found = {}
    for number, (name, text) in enumerate(texts_in(checkout, suffix)):
        if word in name and len(text) < MAX_BYTES:
            path = place / f"{number}{suffix}"
            path.write_text(text, encoding="utf-8", newline="")
            found[path] = name
    return found


def texts_in(checkout: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """The texts of one language, by file and number."""
    in_code = (".cc", ".h", ".py") if suffix == ".hlo" else ()
    for path in sorted(each for each in checkout.rglob("*") if each.suffix in (suffix, *in_code) and each.is_file()):
        text = path.read_bytes().decode("utf-8", "replace")
        if path.suffix in in_code:
            strings = (found[2] or found[3] or "" for found in _STRING.finditer(text))
            parts = [string for string in strings if _HLO.match(string)]
        else:
            parts = [part for part in _CUT.split(text) if part.strip()]
        for number, part in enumerate(chain.from_iterable(map(modules_of, parts))):
            yield f"{path.relative_to(checkout)}[{number}]", part


def modules_of(text: str) -> Iterator[str]:
    """The modules of a text, with what stands above the first of them; the text, if it has no more than one."""
    starts = [found.start() for found in _MODULE.finditer(text)][1:]
    return (text[start:end] for start, end in pairwise([0, *starts, len(text)]))


def judged(texts: Mapping[Path, str], suffix: str) -> Mapping[Path, tuple[str, str]]:
    """For each text that the project's parser accepts: one of `VERDICTS`, and why."""
    reader = Path(READERS[suffix].__file__ or "").with_name("cpp_reader.py")
    paths = list(texts)
    found = {}
    # Answers are large: a few thousand operations are megabytes.
    for first in range(0, len(paths), 500):
        answers = read_in_cpp(reader, paths[first : first + 500])
        accepted = {path: answer for path, answer in answers.items() if "error" not in answer}
        found |= {path: verdict(path, answer) for path, answer in accepted.items()}
    return found


@cache
def _attributes() -> subprocess.Popen[str]:
    script = Path(mlir.__file__ or "").with_name("cpp_attributes.py")
    return subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def one_attribute(ours: str, theirs: str) -> bool:
    """Whether two texts are the same attribute to MLIR, which prints numbers in its way, and no defaults."""
    process = _attributes()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([ours, theirs]) + "\n")
    process.stdin.flush()
    return process.stdout.readline() == "true\n"


def verdict(path: Path, answer: Mapping[str, Any]) -> tuple[str, str]:
    """How a text is read, compared with the answer of another parser, and the first difference or problem."""
    try:
        module = parse(path.read_bytes(), path.name)
    except ParseError as error:
        return "reported", str(error)
    problems = list(map(str, module.problems))
    try:
        if isinstance(module, HloModule):
            different = next(from_xla(module, in_our_names(module, answer["computations"])), None)
        else:
            different = next(from_mlir(module, answer["operations"], one_attribute), None)
    except ParseError as error:
        different = str(error)
    if different is None and problems:
        return "reported" if _contradicts_itself(module, answer) else "false", problems[0]
    if different is None:
        return "read", ""
    return ("reported", problems[0]) if problems else ("silent", different)


def _contradicts_itself(module: HloModule | MlirModule, answer: Mapping[str, Any]) -> bool:
    """Whether there are groups of other devices than those that the header of the module counts."""
    counts = [int(module.attributes.get(key, 1)) for key in ("replica_count", "num_partitions")]
    rows = (row for _, rows in answer.get("computations", ()) for row in rows)
    sizes = {len(set(chain.from_iterable(row[4]))) for row in rows if row[4]}
    return bool(sizes - {1, *counts, counts[0] * counts[1]})


def show(texts: Mapping[Path, str], verdicts: Mapping[Path, tuple[str, str]]) -> None:
    """Print what is not read as it should be."""
    for path, (kind, why) in verdicts.items():
        if kind != "read":
            print(f"\n{kind}: {texts[path]}\n{why[:2000]}")


if __name__ == "__main__":
    sys.exit(main())
