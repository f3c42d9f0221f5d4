"""Damaged captures: changed in their bytes, in their events, and in the texts and jaxprs that these carry.

    python -m tests.capture.mutants 10000 CAPTURE...        (from the root of the checkout)

opens that many of them, writes the reports in all formats, and prints the seed and the traceback of each that fails.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from shardscope.inspector.capture import file
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.capture.output_file import OutputError
from shardscope.inspector.capture.protocol.wire import Frame, encode, read
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.renderers import formats, renderer
from shardscope.inspector.report import Report

from tests.parsers.damage import damaged

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        2**31,
        2**63,
        -(2**63),
        10**40,
        0.5,
        1e308,
        "",
        "x",
        "é" * 50,
        "\x1b]52;c;aGk=\x07",
        "\u202e",
    ),
    *("a\nb", "%0", "f32[8]", "f32[999999999999,999999999999]", "P('x',)", "/etc/passwd", "/dev/zero", "y" * 5000),
    *([], {}, [[]], [1, 2], ["x"], {"x": 1}, [[["x"]]], [0] * 300),
)
BYTES = (b"\xff", b"\x80\x80", b"\xed\xa0\x80", b"\x00", b"\\ud800", b'"', b"}", b"]", b"-", b"9" * 30, b"1e999")


def frames_of(path: Path) -> list[Frame]:
    """The frames of a capture."""
    with gzip.open(path, "rb") as stream:
        return list(read(stream))  # type: ignore[arg-type]


def mutant(frames: list[Frame], seed: int) -> bytes:
    """A capture with something wrong in it, compressed."""
    chance = random.Random(seed)
    if chance.random() < 0.15:
        data = bytearray(b"".join(map(encode, frames)))
        for _ in range(chance.choice([1, 1, 3, 20])):
            data[chance.randrange(len(data))] = chance.randrange(256)
        return gzip.compress(bytes(data), 1)
    changed = list(frames)
    for _ in range(chance.choice([1, 1, 2, 5])):
        place = chance.randrange(1, len(changed)) if len(changed) > 1 else 0
        changed[place : place + 1] = _frames(chance, changed[place], chance.choice(frames))
    return gzip.compress(b"".join(map(encode, changed)), 1)


def _frames(chance: random.Random, frame: Frame, other: Frame) -> list[Frame]:
    """What stands in the place of a frame."""
    match chance.randrange(12):
        case 0:
            return []
        case 1:
            return [frame, frame]
        case 2:
            return [frame, other]
        case 3:
            return [Frame(frame.event, other.text)]
        case 4 | 5 | 6 if frame.text:
            return [Frame(frame.event, damaged(chance, frame.text, other.text))]
        case 7 if frame.text:
            place = chance.randrange(len(frame.text))
            return [Frame(frame.event, frame.text[:place] + chance.choice(BYTES) + frame.text[place:])]
    text = frame.text
    if frame.event.get("name") == "jaxpr" and chance.random() < 0.8:
        with suppress(ValueError):  # it was changed before
            text = json.dumps(_changed(chance, json.loads(text)), ensure_ascii=False).encode("utf-8", "replace")
        return [Frame(frame.event, text)]
    event = _changed(chance, json.loads(json.dumps(frame.event)))
    return [Frame(event if isinstance(event, dict) and isinstance(event.get("event"), str) else frame.event, text)]


def _changed(chance: random.Random, tree: Any) -> Any:
    """A tree of JSON with one place in it changed."""
    places: list[tuple[Any, Any]] = []
    waiting = [tree]
    for node in waiting:
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        places += [(node, key) for key in keys if not (node is tree and key == "event")]
        waiting += [node[key] for key in keys]
    if not places:
        return tree
    node, key = chance.choice(places)
    match chance.randrange(6):
        case 0:
            del node[key]
        case 1:
            other, name = chance.choice(places)
            node[key] = json.loads(json.dumps(other[name]))
        case 2 if isinstance(node, list):
            node.insert(key, node[key])
        case _:
            node[key] = chance.choice(VALUES)
    return tree


def opened(data: bytes) -> Capture | None:
    """The capture that is left of a mutant; None where it is refused."""
    try:
        return file.read("mutant", io.BytesIO(data))
    except CaptureError:
        return None


def written(report: Report) -> Iterator[str]:
    """The report in every format."""
    for format in formats("report", "reports"):
        kind, render = renderer(format, "report", "reports")
        subject: Any = report if kind == "report" else (report,)
        if format == "text":
            console = Console(file=io.StringIO(), width=160)
            render(subject, console=console)
            yield console.file.getvalue()  # type: ignore[attr-defined]
        else:
            try:
                made = render(subject, version="0") if "version" in render.__code__.co_varnames else render(subject)
            except OutputError as error:  # there is nothing for this format to show
                made = str(error)
            yield made if isinstance(made, str) else made.decode()


def main(count: str, *captures: str) -> None:
    """Open so many mutants of some captures, and print what fails or takes long."""
    originals = [frames_of(Path(capture)) for capture in captures]
    failed = refused = 0
    for seed in range(int(count)):
        start = time.perf_counter()
        try:
            capture = opened(mutant(originals[seed % len(originals)], seed))
            refused += capture is None
            if capture is not None:
                for _ in written(inspect(capture)):
                    pass
        except Exception:
            failed += 1
            print(f"seed {seed}\n{traceback.format_exc()}", flush=True)
        if (seconds := time.perf_counter() - start) > 10:
            print(f"seed {seed}: {seconds:.0f} s", flush=True)
    print(f"{count} mutants: {failed} failed, {refused} refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
