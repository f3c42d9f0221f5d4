"""The texts that are measured: one program's, from 60 kB to more than 50 MB.

Compiling takes longer the longer a program is, so the longest texts are shorter ones with their computations, or their
main function, repeated under other names.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

COMPILED = {
    "cpu": (0, 3, 20, 100, 200),
    "tpu": (1, 20),
    "stablehlo": (1, 20, 125),
    "stablehlo-locations": (1, 20, 125),
}
"""How many layers the program has for the texts of each kind."""

LARGE = 55_000_000
"""Bytes, about, of the texts that are made by repeating."""

_HEADER = re.compile(rb"^(?:ENTRY )?(?=%)", re.MULTILINE)


def ladder(folder: Path) -> list[Path]:
    """Make the texts that a folder does not have yet; all of them, by kind and size."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, sizes in COMPILED.items():
        if kind == "tpu" and not find_spec("libtpu"):
            continue
        suffix = "mlir" if kind.startswith("stablehlo") else "hlo"
        for layers in sizes:
            paths.append(folder / f"{kind}-{layers:03}.{suffix}")
            if not paths[-1].exists():
                script = Path(__file__).with_name("train_step.py")
                subprocess.run([sys.executable, script, kind, str(layers), paths[-1]], check=True, capture_output=True)
        paths.append(folder / f"{kind}-{sizes[-1]:03}-repeated.{suffix}")
        if not paths[-1].exists():
            text = paths[-2].read_bytes()
            repeat = repeated_mlir if suffix == "mlir" else repeated_hlo
            paths[-1].write_bytes(repeat(text, round(LARGE / len(text))))
    return paths


def repeated_mlir(text: bytes, times: int) -> bytes:
    """A module with its main function there several times; the copies' names end in `_copy1`, `_copy2`, …"""
    main = b"  func.func public @main("
    start = text.index(main)
    end = text.index(b"\n  }", start)
    end = text.index(b"\n", end + 1) + 1
    copies = [text[start:end].replace(b"@main(", b"@main_copy%d(" % number, 1) for number in range(1, times)]
    return b"".join((text[:end], *copies, text[end:]))


def repeated_hlo(text: bytes, times: int) -> bytes:
    """An HLO module with all its computations there several times; the copies' names end in `.copy1`, `.copy2`, …"""
    first = _HEADER.search(text)
    assert first is not None
    prologue, computations = text[: first.start()], text[first.start() :].rstrip() + b"\n\n"
    copies = [
        re.sub(rb"%[\w.\-]+", rb"\g<0>.copy%d" % number, re.sub(rb"^ENTRY ", b"", computations, flags=re.MULTILINE))
        for number in range(1, times)
    ]
    return b"".join((prologue, *copies, computations))
