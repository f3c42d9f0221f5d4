"""Archives whose directories are damaged: what is in them is read, or refused with a reason."""

from __future__ import annotations

import io
import random
import re
import zipfile

from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.load import load_bytes
from shardscope.parsers.errors import ParseError

TEXT = "HloModule m\n\nENTRY %main (p: f32[]) -> f32[] {\n  ROOT %p = f32[] parameter(0)\n}\n"


def directory_changed(archive: bytes, chance: random.Random) -> bytes:
    """An archive with another number somewhere in its directory, or in front of a file."""
    changed = bytearray(archive)
    for _ in range(chance.choice([1, 1, 3])):
        signature, size = chance.choice([(b"PK\1\2", 46), (b"PK\3\4", 30), (b"PK\5\6", 22)])
        places = [found.start() for found in re.finditer(re.escape(signature), changed)]
        start = chance.choice(places or [0]) + 4 + 2 * chance.randrange((size - 4) // 2)
        number = chance.choice([b"\0\0", b"\1\0", b"\xff\xff", b"\xff\x7f", chance.randbytes(2)])
        changed[start : start + 2] = number
    return bytes(changed)


def test_archives_with_other_numbers() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("module_0001.jit_f.cpu_after_optimizations.txt", TEXT)
        archive.writestr("é/x.txt", TEXT)
    read = 0
    for seed in range(400):
        try:
            capture = load_bytes("archive.zip", directory_changed(whole.getvalue(), random.Random(seed)))
        except (CaptureError, ParseError):
            continue
        read += 1
        assert {stage.source.data for stage in capture.stages} == {TEXT.encode()}, seed
    assert 40 < read < 360


def test_a_file_without_a_name() -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("x", TEXT)
    changed = bytearray(whole.getvalue())
    for signature, length in ((b"PK\3\4", 26), (b"PK\1\2", 28)):
        at = changed.index(signature) + length
        changed[at : at + 4] = b"\0\0\1\0"  # no name, and one byte of what else is said of it
    assert load_bytes("archive.zip", bytes(changed)).stages
