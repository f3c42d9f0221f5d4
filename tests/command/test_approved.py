"""Reports of captures that are kept, in every format, as somebody has looked at them and approved of them.

They do not depend on JAX or the machine. `make approve` writes them anew; what changes in them is to be looked at. The
captures in `approved/` are of the scripts there: `shardscope run step.py:manual --save manual.capture`, `target` of
`train` with `--target tpu:v5p:2x2x1`, and `ranks` of `shardscope ranks --processes 2 --save ranks several.py`.
"""

from __future__ import annotations

import json
import re
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from shardscope.version import __version__

from .conftest import Shardscope

pytestmark = pytest.mark.once

HERE = Path(__file__).parent / "approved"

SHOWN = 4
"""Items of a long list that are written; of the others there is a checksum."""

ALL = ("--details", "all")
BUDGETS = (
    *("all-reduce: none", "all-reduce over tp: none", "collectives <= 2", "wire bytes <= 20 B", "peak memory <= 1 KiB"),
    *("peak memory <= 90 %", "time <= 1 ms", "no implicit communication"),
)
CHECK = ("--golden", "revised.golden.json", *(word for budget in BUDGETS for word in ("--budget", budget)))

Commands = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]

REPORTS: Commands = {
    "manual": (("open", "manual.capture", *ALL), ("text", "json", "html", "markdown", "sarif", "github")),
    "target": (("open", "target.capture", *ALL), ("text", "json", "markdown", "perfetto")),
    "counted": (("open", "counted.capture", *ALL), ("text", "markdown", "sarif", "github")),
    "broken": (("open", "broken.capture", *ALL), ("text", "json", "markdown", "html")),
    "exchange": (("open", "exchange.capture", *ALL), ("text", "json")),
    "typed": (("open", "typed.capture", *ALL), ("text",)),
    "embedded": (("open", "embedded.capture", *ALL), ("text", "sarif")),
    "gathered_twice": (("open", "gathered_twice.capture", *ALL, "--strict"), ("text", "markdown")),
    "only_hlo": (("open", "only.hlo", *ALL), ("text",)),
    "only_stablehlo": (("open", "only.mlir", *ALL), ("text",)),
    "rounds": (("open", "rounds.capture", *ALL), ("text",)),
    "rare": (("open", "rare.capture", *ALL), ("text",)),
    "counted_on_chips": (("open", "counted_on_chips.capture", *ALL), ("text", "html")),
    "short": (("open", "manual.capture"), ("text",)),
    "unwritten": (("open", "target.capture", "--strict"), ("text", "github")),
    "trace": (("open", "ranks"), ("text", "json")),
    "program": (("open", "ranks", "--module", "same"), ("text",)),
}

COMPARISONS: Commands = {
    "diff": (("diff", "manual.capture", "revised.capture"), ("text", "json", "markdown", "html")),
    "larger": (("diff", "counted.capture", "target.capture", "--around", "1"), ("text", "markdown")),
    "chips": (("diff", "counted.capture", "counted_on_chips.capture"), ("text",)),
    "same": (("diff", "manual.capture", "manual.capture"), ("text", "json", "markdown", "html")),
    "passed": (("check", "revised.capture", *CHECK[:2]), ("text", "json", "markdown", "html")),
    "failed": (("check", "manual.capture", *CHECK), ("text", "json", "markdown", "html")),
    "fits": (("check", "target.capture", *CHECK[2:]), ("text", "json", "markdown")),
}


def cases(commands: Commands) -> list[tuple[str, str]]:
    return [(name, format) for name, (_, formats) in commands.items() for format in formats]


@pytest.mark.parametrize(("name", "format"), cases(REPORTS))
def test_reports(shardscope: Shardscope, name: str, format: str, request: pytest.FixtureRequest) -> None:
    compare(shardscope(*REPORTS[name][0], "--format", format, folder=HERE), f"{name}.{format}", request)


@pytest.mark.parametrize(("name", "format"), cases(COMPARISONS))
def test_comparisons(shardscope: Shardscope, name: str, format: str, request: pytest.FixtureRequest) -> None:
    compare(shardscope(*COMPARISONS[name][0], "--format", format, folder=HERE), f"{name}.{format}", request)


def compare(done: subprocess.CompletedProcess[bytes], name: str, request: pytest.FixtureRequest) -> None:
    """Compare what a command wrote with the text of that name, or write that."""
    found = readable(name.rpartition(".")[2], done.stdout.decode().replace(__version__, "VERSION"))
    text = f"exit status {done.returncode}\n{done.stderr.decode()}{found}\n"
    path = HERE / "texts" / name
    if request.config.getoption("--snapshot-update"):
        path.write_text(text)
    assert text.splitlines() == path.read_text().splitlines()


def readable(format: str, text: str) -> str:
    """What a format holds of the capture, in lines."""
    match format:
        case "json":
            return "\n".join(lines_of(json.loads(text)))
        case "sarif":
            return "\n".join(lines_of(json.loads(text)["runs"][0]["results"]))
        case "perfetto":
            return "\n".join(lines_of(json.loads(text)["traceEvents"], most=40))
        case "html":
            text = re.sub(r"(?s)<(style|script)>.*?</\1>", "", text)
            return re.sub(r"(?=<(?!/))", "\n", re.sub(r"(?s)(</tr>)(.*?)(?=</tbody>|</table>)", after_some_rows, text))
    return text


def after_some_rows(rest: re.Match[str]) -> str:
    """The first rows of a table, and a checksum of the others."""
    rows = rest[2].split("</tr>")
    return "</tr>".join([rest[1], *rows[:SHOWN], checksum(rows[SHOWN:])])


def lines_of(tree: object, opening: str = "", closing: str = "", most: int = SHOWN) -> Iterator[str]:
    """JSON in lines: what is short in one, and the first items of a list, with a checksum of the others."""
    depth = len(opening) - len(opening.lstrip())
    if not isinstance(tree, dict | list) or len(json.dumps(tree)) < 110:
        yield f"{opening}{json.dumps(tree, ensure_ascii=False)}{closing}"
        return
    named = tree.items() if isinstance(tree, dict) else (("", each) for each in tree[:most])
    yield f"{opening}{'{' if isinstance(tree, dict) else '['}"
    for name, each in named:
        yield from lines_of(each, " " * (depth + 1) + (f"{json.dumps(name)}: " if name else ""), ",")
    if isinstance(tree, list) and tree[most:]:
        yield " " * (depth + 1) + checksum(tree[most:])
    yield f"{' ' * depth}{'}' if isinstance(tree, dict) else ']'}{closing}"


def checksum(items: Sequence[object]) -> str:
    """How many there are, and a number that changes with any of them."""
    return f"… {len(items)} more, {zlib.crc32(json.dumps(items).encode()):08x}"
