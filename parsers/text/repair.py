"""Undo what mail, terminals, logs and editors do to a text on its way.

    I0000 00:00:1795.316252  23117 dump.cc:55] HloModule jit_f      a log's prefix, before every line of a text
    > HloModule jit_f                                               a quotation, and in the same way numbers of lines
    +  %sum = f32[] add(%x, %y)                                     a diff, of which the side after the change is left
    HLO: HloModule jit_f                                            print("HLO:", text), and with "HLO:\\n" a blank

and byte order marks, UTF-16, strings of Python and JSON, HTML, no-break blanks, indentation, the colours of terminals,
and lines that were broken where a terminal ended.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from itertools import pairwise

from ..expressions import compiled
from ..source import occurrences

_BEGINNING = rb'(?:HloModule [\w.\-%$]|"?(?:builtin\.)?module\b"? *(?:@|attributes\b|\{|\()|func\.func |sdy\.mesh @)'
_PLAIN = compiled(rb"^[ \t]*+" + _BEGINNING, re.MULTILINE)
_PREFIXED = compiled(rb"^([^\n]{1,200}?)" + _BEGINNING, re.MULTILINE)
_VARIABLE = compiled(rb"(\d+|[ \t]+)")
_SEARCHED = 1 << 20
"""Bytes in which a text has to begin, for its lines to lose a prefix."""
_CANDIDATES = 50
_REMARKS = (b"//", b"#")
_LONGEST_LINE = 1 << 12
"""Bytes before a module in which the line above it ends."""
_FOLLOWING = 3
"""Number of lines after a prefix that must have it too."""

_HUNK = compiled(rb"^@@ -\d++(?:,\d++)? \+\d++(?:,\d++)? @@", re.MULTILINE)
_NOT_AFTER = compiled(rb"^(?:diff |index |--- |\+\+\+ |@@ |-|\\)[^\n]*+|^[+ ]", re.MULTILINE)

_MARKUP = ((b"-&gt;", b"->"), (b"tensor&lt;", b"tensor<"))
"""Pairs of markup: a module in HTML has the first and not the second."""
_ENTITY = compiled(rb"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,4}|#x[\da-fA-F]{2,4});")

_LITERAL = rb'"(?:[^"\\\n]|\\.)*+"'
_NO_BREAK = "\u00a0", "\u2007", "\u202f"
_NO_WIDTH = "\u200b", "\u2060", "\ufeff"
_UNUSUAL = compiled(rb"(%b)|(%b)|%b" % (_LITERAL, "|".join(_NO_BREAK).encode(), "|".join(_NO_WIDTH).encode()))
"""Literals, which stay as they are, blanks, and characters of no width."""

_WORDS = (b"HloModule ", b"module ", b"module@")
_LONGEST_LABEL = 200
"""Bytes between the start of a line and the word that begins a module."""
_LABEL = rb'(?P<label>[^\n"]{0,100}?)(?P<blanks>[ \t]*+)(?<![\w.\-%])(?<!ENTRY )'
_SHIFTED = compiled(
    _LABEL
    + rb"(?:HloModule [\w.\-%$]++(?P<more>,[^\n]*+)?+"
    + rb"|(?:builtin\.)?+module\b *+(?:(?:@|attributes )[^\n]*|)(?P<body>\{))[ \t\r]*+(?=\n|\Z)"
)
_EMPTY = compiled(rb"\s*+")
_ALIAS = compiled(_LABEL + rb"[#!]\w++ = ")
"""A line in which a module begins, though not at its start."""

_QUOTED = compiled(rb"\A[^\n]{0,200}?[\"'](?=(?:#\w++ = |%b)[^\n]*?\\n[^\n]*?\\n)" % _BEGINNING)
"""The start of a string with a module in it, whose ends of lines are written out."""
_WRITTEN = compiled(rb"\\([nt\"'\\])")
_QUOTE_END = compiled(rb"[\"'][\s,})\]]*\Z")

_ESCAPE = compiled(rb"\x1b\[[0-?]*+[ -/]*+[@-~]")

_WIDTHS = range(40, 400)
"""Widths of terminals, in characters. The first lines that compilers print are longer."""
_MAX_COPY_BYTES = 1 << 24
"""Bytes; nobody copies more out of a terminal."""
_ANEW = compiled(
    rb"\s*+(?:(?:ROOT )?(?:%[\w.:\-]++ = |[\w.\-]++ = (?:\(|[a-z]\w*+\[))|ENTRY |%?[\w.\-]++ \([^\n]*\{$"
    rb"|#\w++ = |\d++ [\"{]|(?:\w++\.)?return |$)"
)
"""Beginnings of a line that is no continuation of another."""
_CLOSES = compiled(rb"\s*+\}\s*+(?:loc\([^\n]*+)?")
"""A line that may end a body, or the attributes of the line before."""


def restored(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The text as a compiler printed it, and in words what was undone for that.

    Lines keep their numbers, except where lines are put together again.
    """
    done = []
    for undo in (
        _decoded,
        _unquoted,
        _without_colours,
        _out_of_html,
        _with_plain_blanks,
        _after_a_change,
        _without_prefix,
        _moved_back,
        _unwrapped,
    ):
        data, words = undo(data)
        done += [words] if words else []
    return data, tuple(done)


def _decoded(data: bytes) -> tuple[bytes, str]:
    if data.startswith(codecs.BOM_UTF8):
        return data.removeprefix(codecs.BOM_UTF8), "a byte order mark was left out"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode("utf-8", "replace"), "it was read as UTF-16"
    return data, ""


def _unquoted(data: bytes) -> tuple[bytes, str]:
    start = _QUOTED.match(data)
    if start is None or data.count(b"\n", 0, _SEARCHED) > 2:
        return data, ""
    written = _QUOTE_END.sub(b"", data[start.end() :])
    plain = _WRITTEN.sub(lambda escape: {b"n": b"\n", b"t": b"\t"}.get(escape[1], escape[1]), written)
    return plain, "it was written as a string of Python or JSON"


def _without_colours(data: bytes) -> tuple[bytes, str]:
    # One byte is found ten times as fast as two.
    if b"\x1b" not in data:
        return data, ""
    plain, count = _ESCAPE.subn(b"", data)
    return plain, "the escape sequences of a terminal were left out" if count else ""


def _out_of_html(data: bytes) -> tuple[bytes, str]:
    if not any(escaped in data and plain not in data for escaped, plain in _MARKUP):
        return data, ""
    plain = _ENTITY.sub(lambda entity: html.unescape(entity[0].decode()).encode("utf-8", "replace"), data)
    return plain, "its characters were escaped as HTML"


def _with_plain_blanks(data: bytes) -> tuple[bytes, str]:
    if not any(each.encode() in data for each in (*_NO_BREAK, *_NO_WIDTH)):
        return data, ""
    plain = _UNUSUAL.sub(lambda found: found[1] or (b" " if found[2] else b""), data)
    return plain, "no-break blanks were replaced" if plain != data else ""


def _after_a_change(data: bytes) -> tuple[bytes, str]:
    if data.find(b"@@ -", 0, _SEARCHED) < 0 or not _HUNK.search(data, 0, _SEARCHED):
        return data, ""
    return _NOT_AFTER.sub(b"", data), "it is a diff: this is the side after the change, without the lines before it"


def _without_prefix(data: bytes) -> tuple[bytes, str]:
    """Without what stands in front of every line of a text that begins behind it; numbers in it may differ."""
    if _PLAIN.search(data, 0, _SEARCHED):
        return data, ""
    for number, candidate in enumerate(_PREFIXED.finditer(data, 0, _SEARCHED)):
        prefix = candidate[1].rstrip(b" \t")
        blanks = len(candidate[1]) - len(prefix)
        parts = [_number_or_blanks(part) or re.escape(part) for part in _VARIABLE.split(prefix)]
        pattern = b"".join(parts) + rb"[ \t]{0,%d}+" % blanks
        lines = data[candidate.end() : candidate.end() + _SEARCHED].split(b"\n", _FOLLOWING + 1)[1 : _FOLLOWING + 1]
        has_it = [re.match(pattern, line) is not None for line in lines if line]
        if prefix and not prefix.startswith(_REMARKS) and any(has_it) and all(has_it):
            shown = candidate[1].decode("utf-8", "replace")
            return re.sub(rb"^" + pattern, b"", data, flags=re.MULTILINE), f"the prefix {shown!r} of lines was left out"
        if number >= _CANDIDATES:
            break
    return data, ""


def _number_or_blanks(part: bytes) -> bytes:
    if part.isdigit():
        return rb"\d++"
    return rb"[ \t]*+" if part and not part.strip() else b""


def _moved_back(data: bytes) -> tuple[bytes, str]:
    """With modules at the start of their lines: `print` puts a blank or a label there, in Markdown it is indented."""
    pieces, done, words = [], 0, ""
    for shifted in _shifted_lines(data):
        label, blanks, line = shifted["label"], shifted["blanks"], shifted.start()
        if line < done:
            continue
        pieces.append(data[done:line])
        done = shifted.end("blanks")
        if label:
            words = f"{label.decode('utf-8', 'replace')!r} before a module was left out"
        elif end := _end_of_indented(data, shifted.end(), blanks):
            if _EMPTY.fullmatch(data, 0, line) and _EMPTY.fullmatch(data, end):
                return data, ""
            pieces.append(re.sub(rb"^" + blanks, b"", data[done:end], flags=re.MULTILINE))
            done, words = end, "the indentation of a module was left out"
    return (b"".join((*pieces, data[done:])), words) if pieces else (data, "")


def _shifted_lines(data: bytes) -> Iterator[re.Match[bytes]]:
    """The lines in which modules begin behind something, those left out that are in other modules."""
    places = (at for word in _WORDS for at in occurrences(data, word))
    for line in sorted({data.rfind(b"\n", max(at - _LONGEST_LABEL, 0), at) + 1 for at in places}):
        shifted = _first_line(data, line)
        if shifted and (shifted["label"] or shifted["blanks"]) and not shifted["label"].startswith(_REMARKS):
            above = data[max(shifted.start() - _LONGEST_LINE, 0) : shifted.start()].rstrip().rpartition(b"\n")[2]
            if shifted["label"] or not (above.startswith((b" ", b"\t")) or above.endswith(b"{")):
                yield shifted


def _first_line(data: bytes, line: int) -> re.Match[bytes] | None:
    """The line in which a module begins, or the first of the aliases above it."""
    shifted = _SHIFTED.match(data, line)
    if shifted and not shifted["more"] and not shifted["body"] and shifted["label"][-1:].isalnum():
        return None
    while shifted and shifted.start() and not shifted["label"]:
        alias = _ALIAS.match(data, data.rfind(b"\n", 0, shifted.start() - 1) + 1)
        if alias is None or ((alias["label"] or alias["blanks"] != shifted["blanks"]) and shifted["blanks"]):
            break
        shifted = alias
    return shifted


def _end_of_indented(data: bytes, start: int, blanks: bytes) -> int:
    """Return the end of a module whose lines are all indented like its first; 0 if there is none."""
    first_less = re.compile(rb"\n(?!%b|[ \t]*+(?:\n|\Z))" % blanks).search(data, start)
    end = first_less.start() if first_less else len(data)
    is_closed = data.find(b"\n" + blanks + b"}", start, end) >= 0
    return end if is_closed or first_less is None else 0


def _unwrapped(data: bytes) -> tuple[bytes, str]:
    """With those lines in one again that were broken at the width of a terminal: many are as long as the longest."""
    width = max(map(len, data[: _WIDTHS.stop << 6].splitlines()), default=0)
    if width not in _WIDTHS or len(data) > _MAX_COPY_BYTES:
        return data, ""
    pairs = list(pairwise([*data.splitlines(), b""]))
    if max(len(line) for line, _ in pairs) > width:
        return data, ""
    full = [(line, rest) for line, rest in pairs if len(line) == width]
    # Who breaks lines by hand does not break words.
    if sum(_breaks_a_word(*pair) and not _ANEW.match(pair[1]) for pair in full) < max(_FOLLOWING, len(full) / 4):
        return data, ""
    joined = b"".join(line if len(line) == width and _goes_on(line, rest) else line + b"\n" for line, rest in pairs)
    return joined, f"lines that were broken after {width} characters were put together: line numbers are those of then"


def _goes_on(line: bytes, rest: bytes) -> bool:
    """Return whether the next line continues a full one."""
    if _CLOSES.fullmatch(rest):
        return line.count(b"{") > line.count(b"}")
    return _breaks_a_word(line, rest) or not _ANEW.match(rest)


def _breaks_a_word(line: bytes, rest: bytes) -> bool:
    return line[-1:].isalnum() and rest[:1].isalnum()
