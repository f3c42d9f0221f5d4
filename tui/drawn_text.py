"""Drawing of the visible lines of a text, with the tokens of code in colours.

Lines are read one by one, as they become visible. A highlighter takes the number of a line, from 0, and its text, and
gives the tokens in it that stand out. Of a line that is too long to be looked at whole it gets a piece, with the number
-1.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.cache import LRUCache
from textual.reactive import reactive
from textual.strip import Strip

from ..inspector.capture.model import Dialect
from ..inspector.catalog.spellings import PRIMITIVES
from ..inspector.ir.language import Token
from ..inspector.ir.languages import LANGUAGES
from ..parsers.record import Record
from ..parsers.source import Source
from .cursor_view import CURSOR, LINKED, CursorView
from .text_index import LineIndex, matches_in
from .text_lines import EMPTY, FOLD, TextLines, indent_of, rows_of

Highlighter = Callable[[int, str], list[Token]]

MAX_BYTES = 1 << 20
"""Bytes; a Python file larger than that stays plain."""


def of_dialect(dialect: Dialect) -> Highlighter:
    """The highlighter for the texts of a stage."""
    language = LANGUAGES[dialect]
    return lambda line, text: language.tokens(text)


def plain(line: int, text: str) -> list[Token]:
    """Nothing stands out."""
    return []


def of_python(source: Source) -> Highlighter:
    """The highlighter for one Python file. What comes after an error in it stays plain."""
    tokens: dict[int, list[Token]] = {}
    if len(source.data) <= MAX_BYTES:
        try:
            for token in tokenize.generate_tokens(io.StringIO(source.text()).readline):
                _add(token, tokens)
        except (tokenize.TokenError, SyntaxError):
            pass
    return lambda line, text: tokens.get(line, [])


def _add(token: tokenize.TokenInfo, tokens: dict[int, list[Token]]) -> None:
    kind = _python_kind(token)
    (first, start), (last, end) = token.start, token.end
    if kind is not None:
        for line in range(first, last + 1):
            stop = end if line == last else 1 << 30
            tokens.setdefault(line - 1, []).append((start if line == first else 0, stop, kind))


def _python_kind(token: tokenize.TokenInfo) -> str | None:
    match token.type:
        case tokenize.COMMENT:
            return "aside"
        case tokenize.STRING:
            return "string"
        case tokenize.NAME if keyword.iskeyword(token.string):
            return "keyword"
        case tokenize.NAME if token.string in PRIMITIVES or token.string in ("pmean", "with_sharding_constraint"):
            return "collective"
        case _ if tokenize.tok_name[token.type].startswith("FSTRING"):
            return "string"
        case _:
            return None


BEFORE = 256
"""Bytes decoded to the left of such a piece, so that the word at its edge is recognized."""

TAB = 4

Mark = tuple[str, str]
"""The sign before a line, and its style."""

COMMUNICATES = "●"
"""The sign of a line with a collective."""

STYLES: Mapping[str, str] = {
    "aside": "$aside",
    "collective": "bold $code-collective",
    **{kind: f"$code-{kind}" for kind in ("string", "type", "operation", "keyword", "groups")},
}
"""The members of `KINDS` that are not drawn as the text is."""


class DrawnText(CursorView):
    """Lines with numbers, a cursor, marks, and the lines that are linked to what is selected elsewhere.

    Lines count from 0 here, and from 1 where they are shown.
    """

    linked: reactive[frozenset[int]] = reactive(frozenset())
    marks: reactive[Mapping[int, Mark]] = reactive({})
    needle = reactive("")
    wrapped = reactive(False)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines = TextLines(EMPTY)
        self._highlight: Highlighter = plain
        self._widest = 0
        self._rows: tuple[tuple[int, TextLayout], list[Row]] | None = None
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(512)

    @property
    def source(self) -> Source:
        return self.lines.source

    @property
    def index(self) -> LineIndex:
        return self.lines.index

    @property
    def number_width(self) -> int:
        """Digits of the last line's number."""
        return max(3, len(str(self.index.count)))

    @property
    def margin_width(self) -> int:
        """Columns to the left of the text."""
        return self.number_width + 4

    @property
    def count(self) -> int:
        return self.index.count

    @property
    def _shown_width(self) -> int:
        return max(self.scrollable_content_region.width - self.margin_width, 1)

    @property
    def _layout(self) -> TextLayout:
        height = self.scrollable_content_region.height
        return TextLayout(self.lines, self._shown_width, height, left=None if self.wrapped else self.scroll_offset.x)

    @property
    def rows(self) -> list[Row]:
        top, layout = self.scroll_offset.y, self._layout
        if self._rows is None or self._rows[0] != (top, layout):
            self._rows = (top, layout), layout.rows_from(top)
        return self._rows[1]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        row = self.rows[y]
        key = (row, width, row.line == self.cursor, self.has_focus, row.line in self.linked)
        if (strip := self._strips.get(key)) is None:
            strip = self._strips[key] = self._drawn(row)
        return strip

    def _drawn(self, row: Row) -> Strip:
        line, style, mark = row.line, self._row_style(row.line), self.marks.get(row.line)
        number = style + self.rich(STYLES["aside"])
        sign = self.sign if line == self.cursor and row.begins else "┃" if line in self.linked else " "
        gutter = [
            Segment(sign, style + self.rich(STYLES["keyword"])),
            Segment(f"{line + 1 if row.begins else '':>{self.number_width}} ", number),
            Segment(f"{mark[0] if mark and row.begins else ' '} ", style + self.rich(mark[1] if mark else None)),
        ]
        text, left = self._coloured(line, row.first, row.last - row.first, style)
        strip = Strip(text.render(self.app.console))
        indent = 0 if row.begins else indent_of(text.plain, self._shown_width)
        strip = strip.crop(left, left + row.last - row.first).apply_offsets(row.first, line)
        strip = Strip.join([Strip([Segment(" " * indent, style)]), strip]).adjust_cell_length(self._shown_width, style)
        strip = Strip.join([Strip(gutter), strip])
        return self.under_cursor(strip) if line == self.cursor else strip

    def _coloured(self, line: int, x: int, shown: int, row: Style) -> tuple[Text, int]:
        """The part of a line that holds the columns in view, and how many columns of it are left of them."""
        is_long = self.lines.is_long(line)
        first = max(x - BEFORE, 0) if is_long else 0
        piece = self.lines.decoded(line, first, x - first + shown + BEFORE) if is_long else ""
        content = piece if is_long else self.lines.displayed(line).text
        text = Text(content, no_wrap=True, end="")
        text.stylize(row)
        for begin, stop, kind in self._highlight(-1 if first else line, content):
            text.stylize(self.rich(STYLES.get(kind)), begin, stop)
        if self.needle:
            match = self.rich("$background on $warning")
            for begin, stop in matches_in(content, self.needle):
                text.stylize(match, begin, stop)
        if "\t" in content:
            text.expand_tabs(TAB)
        if hidden := self.lines.folding.lines_hidden_at(line):
            text.append(f" {FOLD} {hidden:,} lines", self.rich(STYLES["aside"]))
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(line)) is not None:
            style = self.screen.get_component_rich_style("screen--selection")
            text.stylize(style, span[0] - first, len(text) if span[1] < 0 else span[1] - first)
        return text, x - first

    def _row_style(self, line: int) -> Style:
        style = self.rich_style
        if line == self.cursor:
            return style + self.rich(CURSOR)
        if line in self.linked:
            return style + self.rich(LINKED)
        return style


class Row(NamedTuple):
    """The characters of a line from `first` to before `last`; whether the line `begins` there."""

    line: int
    first: int
    last: int
    begins: bool


class TextLayout(Record, frozen=True):
    """A text in a view of so many columns and rows, with its lines cut from column `left` on, or wrapped: None.

    Positions are those of lines that are not folded.
    """

    lines: TextLines
    width: int
    height: int
    left: int | None

    def rows_of(self, line: int) -> list[Row]:
        """The rows of a line, as many as there is room for."""
        if self.left is not None:
            return [Row(line, self.left, self.left + self.width, begins=True)]
        height = max(self.height, 1)
        is_long = self.lines.is_long(line)
        text = self.lines.decoded(line, 0, self.width * height) if is_long else self.lines.displayed(line).text
        return [Row(line, *span, begins=span[0] == 0) for span in rows_of(text, self.width, height)]

    def rows_from(self, top: int) -> list[Row]:
        rows: list[Row] = []
        folding = self.lines.folding
        for position in range(top, min(top + self.height, folding.count)):
            rows += self.rows_of(folding.line(position))
            if len(rows) >= self.height:
                break
        return rows[: self.height]

    def top_to_see(self, position: int, top: int) -> int:
        """The position at the top from which all rows of one are in view; `top` if they are."""
        height = max(self.height, 1)
        if not top <= position < top + height:
            top = max(0, position - height // 3)
        return top if self.left is not None else max(top, self._highest_with(position, height))

    def _highest_with(self, position: int, height: int) -> int:
        top = position + 1
        while top and (height := height - len(self.rows_of(self.lines.folding.line(top - 1)))) >= 0:
            top -= 1
        return min(top, position)
