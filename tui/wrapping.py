"""A line of code on several rows, broken between words."""

from __future__ import annotations

from rich.cells import cell_len

MAX_INDENT = 8


def indent_of(text: str, width: int) -> int:
    """Columns before the second and further rows of a line."""
    return min(len(text) - len(text.lstrip()) + 4, MAX_INDENT, width // 3)


def rows_of(text: str, width: int, most: int) -> list[tuple[int, int]]:
    """The spans of characters on each row; the rows after `most` are left out."""
    rows: list[tuple[int, int]] = []
    start = indent = 0
    while len(rows) < most:
        end = _end(text, start, max(width - indent, 8))
        rows.append((start, end))
        if end >= len(text):
            break
        start, indent = end, indent_of(text, width)
    return rows


def _end(text: str, start: int, width: int) -> int:
    """Return the end of a row: after the last blank or comma on it, else where it is full."""
    end = min(start + width, len(text))
    while end > start + 1 and cell_len(text[start:end]) > width:
        end -= 1
    if end == len(text):
        return end
    return max(text.rfind(" ", start + width // 2, end), text.rfind(",", start + width // 2, end)) + 1 or end
