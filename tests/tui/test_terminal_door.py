"""Nothing that a file holds controls the terminal: hostile files on a real pseudo-terminal, byte by byte."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import typing
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from shardscope.inspector.capture.events import decode
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.model import Capture, CaptureError, PassSnapshot
from shardscope.inspector.capture.protocol import wire
from shardscope.inspector.capture.protocol.events import Failure, Message, Subject
from shardscope.inspector.capture.protocol.values import Derivative, Gradients, Probed
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.diff.targets import compare
from shardscope.inspector.load import load
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.html import comparison_page, diff_page, report_page
from shardscope.inspector.render.markdown import plain as plain_markdown
from shardscope.inspector.render.markdown import table
from shardscope.inspector.render.printable import UNSAFE, escaped_json, printable, without_commands
from shardscope.inspector.report import Report
from shardscope.inspector.traces.read import read_trace

from shardscope.cli import main
from shardscope.commands.live_list import painted
from tests.browser import CHROMIUM, browser
from tests.inspector.test_html import Page, assert_ours

pytestmark = pytest.mark.once

KEPT = Path(__file__).parents[1] / "command" / "approved"

HOSTILE = (
    "\x1b]52;c;SE9TVElMRQ==\x07",  # writes to the clipboard
    "\x1b]8;;http://hostile\x1b\\x\x1b]8;;\x1b\\",  # a link
    "\x9d52;c;SE9TVElMRQ==\x9c",  # the same with C1 controls
    "\x1b[41;5;7z\x1b[3J\x1bc\x1b_hostile\x1b\\\x1bPhostile\x1b\\",  # a private sequence, erase, reset, APC, DCS
    "\x9b6n\x07\x08\x7f\r",
    "\u202etxet\u2066\u200b\u200d\ufeff\u00ad\u2028",  # direction, zero width, line separator
    "\U000e0041\U000e0100\ue000",  # tags, variation selectors; the last one is only odd
    "[link=http://hostile]markup[/]",
    "\n::error::hostile\n",
    "</style></pre><script>document.title = 'HOSTILE'</script><img src=x onerror=alert(1)>\" onload='x'&lt;",
)
"""Each is in every text of a hostile file."""

ALL = "".join(HOSTILE)

TEXTS = {
    "name",
    "function",
    "script",
    "target",
    "platform",
    "jax",
    "jaxlib",
    "python",
    "device_kind",
    "path",
    "type",
    "inputs",
}
TEXTS |= {"compiler", "file_after", "file_before", "files", "interpreter", "kernels", "not_finite", "opcode", "place"}
TEXTS |= {
    "chosen",
    "previous",
    "primitive",
    "program",
    "reason",
    "reduced",
    "reproduction",
    "rounding",
    "shape",
    "stands",
}
TEXTS |= {"spec", "actual", "text", "location", "values", "digest", "message", "details", "hint", "said", "file"}
TEXTS |= {
    "axis",
    "axes",
    "loops",
    "part",
    "dtype",
    "undefined",
    "pipeline",
    "layout",
    "shown",
    "probed",
    "of",
    "argument",
    "mesh",
    "actual_mesh",
    "key",
}
"""The fields of events with words of the script or of the compiler."""

CHILD = """
import asyncio, sys
from shardscope.cli import main
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.load import load
from shardscope.inspector.on_screen import analyses
from shardscope.inspector.pipeline import inspect
from shardscope.tui.app import ScreenApp, ShardscopeApp
from shardscope.tui.diff_screen import DiffScreen

def visiting(keys):
    async def visit(pilot):
        for key in keys.split():
            await pilot.press(key)
            await pilot.pause()
        pilot.app.exit()
    return visit

found = [load(path) for path in sys.argv[1:]]
for capture in found[:-1]:
    ShardscopeApp((capture,), analyses()).run(auto_pilot=visiting("9"))
ShardscopeApp((found[-1],), analyses()).run(auto_pilot=visiting("2 4 5 6 7 8 9 0 3 enter 1 tab tab tab tab"))
ScreenApp(DiffScreen, diff(inspect(found[-1]), inspect(found[-1]))).run(auto_pilot=visiting("down"))
print("END OF SCREENS", flush=True)
for path in sys.argv[-1:]:
    for format in ("text", "json", "github"):
        main(["open", path, "--format", format])
    main(["open", f"{path} {found[-1].stdout}", "--format", "text"])
"""

TOKEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)


def on_a_terminal(*paths: Path) -> tuple[bytes, bytes]:
    """What a terminal gets when these files are opened: from the screens, and from the formats."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 170, 0, 0))
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    environment = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    command = [sys.executable, "-c", CHILD, *map(str, paths)]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as child:
        os.close(slave)
        data = b""
        try:
            while piece := os.read(master, 1 << 16):
                data += piece
        except OSError:  # what Linux says when the other end is closed
            pass
        os.close(master)
    assert child.returncode == 0, data[-4000:]
    screens, _, rest = data.partition(b"END OF SCREENS")
    assert rest
    return screens, rest


def kinds(data: bytes) -> set[bytes]:
    """The kinds of sequences in a stream: what they are, without colours and positions."""
    return {re.sub(rb"[0-9;]+", b"0", match[0]) for match in TOKEN.finditer(data)}


def unsafe(data: bytes) -> set[str]:
    """The characters outside of sequences that are not shown, but for ends of lines and tabs."""
    text = TOKEN.sub(b"", data).decode()
    return {c for c in set(text) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t\r"}


def spoilt(value: Any, name: str = "") -> Any:
    """A value of an event, with hostile words after each of its own."""
    if is_dataclass(value) and not isinstance(value, type):
        hints = typing.get_type_hints(type(value))
        return replace(
            value,
            **{
                field.name: spoilt(getattr(value, field.name), field.name)
                for field in fields(value)
                if typing.get_origin(hints[field.name]) is not typing.Literal
            },
        )
    if isinstance(value, str) and name in TEXTS:
        return value + ALL
    if isinstance(value, tuple):
        return tuple(spoilt(item, name) for item in value)
    if isinstance(value, dict) and name in TEXTS:
        return {spoilt(key, name): item for key, item in value.items()}
    return value


def with_words(kind: type, known: set[type]) -> Iterator[str]:
    """The fields of a type of events, and of what it holds, that can have words."""
    if kind in known:
        return
    known.add(kind)
    hints = typing.get_type_hints(kind)
    for name, hint in ((field.name, hints[field.name]) for field in fields(kind)):
        parts = [*parts_of(hint)]
        if str in parts:
            yield name
        for part in parts:
            if isinstance(part, type) and is_dataclass(part):
                yield from with_words(part, known)


def parts_of(hint: Any) -> Iterator[Any]:
    yield hint
    if typing.get_origin(hint) is not typing.Literal:
        for part in typing.get_args(hint):
            yield from parts_of(part)


def hostile_text(text: bytes, names: tuple[bytes, ...]) -> bytes:
    """A program whose axes, paths and names end with hostile words, raw and as MLIR escapes them."""
    word = re.sub(r'[\n"\\{}()]', "", ALL).encode()
    escaped = b"".join(b"\\%02X" % byte for byte in word)
    for name in names:
        text = text.replace(b'"%b"' % name, b'"%b%b"' % (name, escaped)).replace(
            b"'%b'" % name, b"'%b%b'" % (name, word)
        )
    text = re.sub(rb'loc\("([^"]+)"', lambda match: b'loc("%b%b"' % (match[1], escaped), text)
    text = re.sub(rb'(op_name|source_file)="([^"]+)"', lambda match: b'%b="%b%b"' % (match[1], match[2], word), text)
    return text + b"\n// " + word + b"\n"


SOURCES = ("stages", "script_text", "peak", "stdout", "stderr", "numbers", "timings", "passes", "damage")
"""What is spoilt otherwise, is no text, or is not in a file."""


@pytest.fixture(scope="module")
def plain(sample: Callable[[str], Capture]) -> Capture:
    """A capture with something in each pane."""
    capture = sample("psum_2d:over_both")
    messages = (Message("warning", "odd", "compile", "a.cc:1"), Message("error", "odd", "trace", "a.py:2"))
    before, after = capture.stages[-1:] * 2
    return replace(
        capture,
        messages=messages,
        stdout="printed",
        stderr="printed too",
        passes=(PassSnapshot("first", "before", before, False), PassSnapshot("first", "after", after, True)),
        probed=Probed({"all-reduce": 1}, {"all-gather": 2}),
        gradients=Gradients((Derivative("loss", "x", 1.0, 2.0, 0.0, "a.py", 3),)),
    )


@pytest.fixture(scope="module")
def hostile(plain: Capture, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Hostile files: a text of each language, a capture, and one that failed."""
    folder = tmp_path_factory.mktemp("hostile")
    assert plain.subject is not None
    names = tuple({axis.name.encode() for mesh in plain.subject.meshes for axis in mesh.axes})
    stages = tuple(
        replace(each, source=replace(each.source, data=hostile_text(each.source.data, names))) for each in plain.stages
    )
    for stage in stages:
        if stage.name in ("sdy", "hlo"):
            (folder / f"{stage.name}.txt").write_bytes(stage.source.data)
    whole = replace(
        plain,
        **{field.name: spoilt(getattr(plain, field.name)) for field in fields(plain) if field.name not in SOURCES},
        stages=stages,
        passes=tuple(spoilt(replace(each, stage=replace(stages[-1], name=ALL))) for each in plain.passes),
        stdout=ALL,
        stderr=ALL,
    )
    failure = Failure("function", ALL, "compile", ALL * 2, ALL, ALL)
    save(whole, folder / "whole.shardscope")
    save(replace(whole, stages=stages[:1], complete=False, failure=failure), folder / "failed.shardscope")
    return sorted(folder.iterdir())


def test_every_field_with_words_is_hostile() -> None:
    assert {*with_words(Capture, set())} <= {*TEXTS, *SOURCES}


def test_hostile_files_send_no_sequences(plain: Capture, hostile: list[Path], tmp_path: Path) -> None:
    save(plain, tmp_path / "plain.shardscope")
    expected, found = on_a_terminal(tmp_path / "plain.shardscope"), on_a_terminal(*hostile)
    for part in (0, 1):
        assert b"hostile" in found[part], "the test shows nothing of what it is about"
        assert kinds(found[part]) <= kinds(expected[part])
        assert not unsafe(found[part])


@pytest.mark.parametrize("format", ["text", "markdown"])
def test_no_commands_of_actions(hostile: list[Path], format: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for path in hostile:
        main(["open", str(path), "--format", format])
    written = b"".join(capfdbinary.readouterr())
    assert b"::error::hostile" in written
    assert not re.search(rb"^[^\S\n]*::error", written, re.MULTILINE)


@pytest.mark.parametrize("format", ["text", "markdown"])
def test_no_sequences_in_a_difference(
    plain: Capture, hostile: list[Path], tmp_path: Path, format: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    save(plain, tmp_path / "plain.shardscope")
    for pair in ((tmp_path / "plain.shardscope", hostile[-1]), (hostile[-1], tmp_path / "plain.shardscope")):
        main(["diff", *map(str, pair), "--format", format])
    written = b"".join(capfdbinary.readouterr())
    assert b"hostile" in written
    assert not kinds(written)
    assert not unsafe(written)


def test_no_sequences_in_traces(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """In the report on a trace of two processes, and in the list that is painted while it runs."""
    shutil.copytree(KEPT / "ranks", tmp_path / "ranks")
    for path in (tmp_path / "ranks").glob("*/events"):
        with path.open("rb") as stream:
            frames = [*wire.read(stream)]
        path.write_bytes(b"".join(wire.encode(frame._replace(event=hostile_event(frame.event))) for frame in frames))
    for format in ("text", "json"):
        main(["open", str(tmp_path / "ranks"), "--format", format])
        written = b"".join(capfdbinary.readouterr())
        assert b"hostile" in written
        assert not kinds(written)
    shown = "\n".join(painted(read_trace(tmp_path / "ranks", ("python", ALL)), 120)).encode()
    assert b"hostile" in shown
    assert kinds(shown) <= {b"\x1b[0m"}
    assert not unsafe(shown)


def hostile_event(event: dict[str, Any]) -> dict[str, Any]:
    """An event with hostile words after its own, as far as it still is one."""
    for name, value in event.items():
        if name == "event":
            continue
        spoiled = [each + ALL for each in value] if isinstance(value, list) and all(map(is_text, value)) else value
        spoiled = value + ALL if is_text(value) else spoiled
        with suppress(CaptureError):
            decode(wire.Frame(event | {name: spoiled}))
            event = event | {name: spoiled}
    return event


def is_text(value: object) -> bool:
    return isinstance(value, str)


def test_html_has_no_markup_of_theirs(plain: Capture, hostile: list[Path], tmp_path: Path) -> None:
    """In every field; and, where there is a browser, no script of theirs runs, and nothing is asked for."""
    reports = [inspect(load(str(path))) for path in hostile]
    on_chip = [inspect(replace(report.program.capture, subject=of_a_chip(report))) for report in reports[-1:]]
    pages = [report_page(report) for report in (*reports, *on_chip)]
    pages.append(comparison_page(compare((ALL, "b"), (reports[-1], on_chip[-1]))))
    pages.append(diff_page(diff(inspect(plain), reports[-1])))
    for page in map(Page, pages):
        assert_ours(page)
        assert page.tags.count("script") == 1
        assert "onerror" in page.text, "the test shows nothing of what it is about"
    if CHROMIUM is None:
        return
    with browser(tmp_path / "profile") as shown:
        for number, text in enumerate(pages):
            file = tmp_path / f"{number}.html"
            file.write_text(text, "utf-8")
            shown.open(file.as_uri())
            shown.until("document.querySelector('.scripted') !== null")
            assert shown.value("document.title") != "HOSTILE"
        assert shown.said == [(tmp_path / f"{number}.html").as_uri() for number in range(len(pages))]


def of_a_chip(report: Report) -> Subject:
    """The subject as if it were compiled for a chip that there are figures for: its page has a time line."""
    subject = report.program.capture.subject
    assert subject is not None
    return replace(subject, target="tpu:v5e:2x2", platform="tpu", device_kind="TPU v5 lite")


def test_every_invisible_character_is_unsafe() -> None:
    every = (chr(code) for code in range(sys.maxunicode + 1))
    hidden = [c for c in every if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\t\n"]
    assert printable("".join(hidden)) == "�" * len(hidden)
    shown = [c for c in map(chr, range(32, 0x3000)) if unicodedata.category(c)[0] in "LNPSM"]
    assert {c for c in shown if re.match(UNSAFE, c)} <= set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f")


def test_json_is_the_same_document() -> None:
    text = json.dumps({ALL: [ALL, "ä→😀"]}, ensure_ascii=False)
    assert json.loads(escaped_json(text)) == json.loads(text)
    assert printable(escaped_json(text)) == escaped_json(text)


@pytest.mark.parametrize(
    "line", ["::error::x", "  ::set-output name=x::y", "##[error]x", "a ##[group]b", "\t::stop::x"]
)
def test_commands_in_a_log(line: str) -> None:
    shown = without_commands(f"before\n{line}")
    assert not shown.splitlines()[1].lstrip().startswith("::")
    assert "##[" not in shown
    assert shown.replace("\\", "") == f"before\n{line}"


def test_pipes_end_no_cells() -> None:
    cells = ["a|b", "\\|", "`|`", "|"]
    row = table(["one"] * len(cells), [[plain_markdown(cell) for cell in cells]]).splitlines()[-1]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == len(cells) + 1


def test_only_regular_files_of_a_folder_are_read(plain: Capture, tmp_path: Path) -> None:
    stage = plain.stage("hlo")
    assert stage is not None
    (tmp_path / "elsewhere.txt").write_bytes(stage.source.data)
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "module_0000.jit_f.after_optimizations.txt").symlink_to(tmp_path / "elsewhere.txt")
    os.mkfifo(folder / "module_0001.jit_f.after_optimizations.txt")
    with pytest.raises(CaptureError, match="has no dump"):
        load(str(folder))
