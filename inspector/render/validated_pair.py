"""Two evaluated programs in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..capture.model import Validation
from ..diff.validations import compare_validations
from ..units import listed, plural
from .table import Piece
from .validation import MAX_OUTPUTS, validation_lines


def pair_lines(before: Validation | None, after: Validation | None) -> Iterator[Piece]:
    """Each side of a diff by itself, and whether both compute the same."""
    for side, found in (("A", before), ("B", after)):
        if found is not None:
            for piece in validation_lines(found):
                yield Piece(f"{side}: {piece.text}" if not piece.text.startswith(" ") else piece.text, piece.role)
    pair = compare_validations(before, after)
    if pair.reason:
        yield Piece(f"A and B not compared by values: {pair.reason}", "warning")
    elif pair.differing:
        yield Piece(
            f"A and B compute something else, off by {pair.error:.1g}: {listed(pair.differing, MAX_OUTPUTS)}", "error"
        )
    else:
        yield Piece(f"A and B compute the same: {plural(pair.outputs, 'output')}, {pair.error:.0e}", "good")
