from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hlo import HloModule
    from .mlir import MlirModule


def parse(text: str | bytes | PathLike[str], name: str | None = None) -> HloModule | MlirModule:
    """The module that a text holds, or the file at a path; what was done to the text on its way is undone.

    A `str` of one line that begins no module is a path. Of a text with several modules it is the first.

    Raises:
        ParseError: it is neither HLO nor MLIR.
        OSError: the file cannot be read.
    """
    from . import hlo, mlir
    from .errors import ParseError, Problem
    from .mlir.spacing import in_printers_layout
    from .source import Source, Span
    from .text.modules import language, parts
    from .text.repair import restored

    if isinstance(text, str):
        data = text.encode("utf-8", "replace")
        if "\n" not in text and language(data) is None:
            text = Path(text)
    if isinstance(text, PathLike):
        name, data = name or str(text), Path(text).read_bytes()
    elif isinstance(text, bytes):
        data = text
    data, _ = restored(data)
    found = language(data)
    if found is None:
        place = Span(0, max(data.find(b"\n"), 1))
        raise ParseError(Problem("this is neither HLO nor MLIR text", Source(name or "text", data), place))
    part = parts(data)[0].span
    # The lines keep their numbers.
    data = b"\n" * data.count(b"\n", 0, part.start) + data[part.start : part.end]
    source = Source(name or "text", data)
    return hlo.parse_module(source) if found == "hlo" else mlir.parse_module(in_printers_layout(source))
