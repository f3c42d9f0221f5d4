"""The kept captures, one archive of them: `python -m tests.inspector.complete.kept FILE…` adds some to it."""

from __future__ import annotations

import gzip
import io
import re
import sys
import tarfile
from functools import cache
from pathlib import Path

from shardscope.inspector.capture.file import read
from shardscope.inspector.capture.model import Capture

ARCHIVE = Path(__file__).parent / "captures.tar.xz"

_FOLDER = re.compile(rb"/(?:work|tmp|root|home)/(?:[\w.-]+/)*(?=[\w-]+\.py\b)")
"""Where the scripts were."""


@cache
def _unpacked() -> dict[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        return {each.name: opened.read() for each in archive if (opened := archive.extractfile(each)) is not None}


def names() -> tuple[str, ...]:
    """The names of the captures."""
    return tuple(_unpacked())


def kept(name: str) -> Capture:
    """A capture by its name."""
    return read(name, io.BytesIO(gzip.compress(_unpacked()[name], 1)))


def main(files: list[str]) -> None:
    """Pack captures beside those that are there, with other folders of the same length: texts say how long they are."""
    found = dict(_unpacked()) if ARCHIVE.exists() else {}
    for file in map(Path, files):
        data = _FOLDER.sub(lambda place: b"/" + b"p" * (len(place[0]) - 2) + b"/", gzip.decompress(file.read_bytes()))
        found[file.name.partition(".capture")[0].partition(".shardscope")[0]] = data
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name, data in sorted(found.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main(sys.argv[1:])
