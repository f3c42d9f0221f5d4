"""One operation's own text: its results and its name, and by its form operands, types and attributes.

All of it comes out as text. What an attribute means is for the grammar of its own language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import NamedTuple

from ..errors import ParseError
from ..expressions import compiled
from ..source import Source, Span
from . import template
from .forms import OperationForm, operation_form, unread_form
from .lists import entries
from .patterns import HEAD_PARTS, STRING, for_bytes
from .template import Filled, Place, lift
from .types import Types, is_understood, signature

FUNCTION = "func.func"
MAX_RESULTS = 1 << 16
"""More results of one operation than this are taken for a broken text."""

_WORD = ""
POSITIONAL: Mapping[str, tuple[tuple[str, str], ...]] = {
    "call": (("@", "callee"),),
    "func.call": (("@", "callee"),),
    "module": (("@", "sym_name"),),
    "builtin.module": (("@", "sym_name"),),
    "mhlo.custom_call": (("@", "call_target_name"),),
    "sdy.all_gather": (("[", "gathering_axes"),),
    "sdy.all_reduce": ((_WORD, "reduction_op"), ("{", "reduction_axes")),
    "sdy.all_slice": (("[", "slicing_axes"),),
    "sdy.all_to_all": (("[", "params"),),
    "sdy.constant": ((_WORD, "value"),),
    "sdy.named_computation": (("<", "name"),),
    "sdy.reduce_scatter": ((_WORD, "reduction_op"), ("[", "reduce_scatter_axes")),
    "sdy.replicated_to_unreduced": (("{", "axes"),),
    "sdy.reshard": (("<", "sharding"),),
    "sdy.sharded_to_unreduced": (("[", "axes"),),
    "sdy.sharding_constraint": (("<", "sharding"),),
    "stablehlo.compare": ((_WORD, "comparison_direction"), (_WORD, "compare_type")),
    "stablehlo.composite": (('"', "name"),),
    "stablehlo.constant": ((_WORD, "value"),),
    "stablehlo.custom_call": (("@", "call_target_name"),),
    "stablehlo.get_tuple_element": (("[", "index"),),
    "stablehlo.slice": (("[", "ranges"),),
}
"""Names of attributes that pretty forms write without a name, by the character that they begin with.

Names as in the operations' definitions (stablehlo/dialect/StablehloOps.td, shardy/dialect/sdy/ir/ops.td), except for
`ranges`, which are three attributes there.
"""

_RESULT = compiled(r"(%[\w$.\-]*+)(?::(\d++))?+")


class Head(NamedTuple):
    """The head of an operation: its results as written, `%0:2, %values`, and its name; `end` is behind them."""

    results: str
    name: str
    is_quoted: bool
    end: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its results, `%3` or `%3#0` and `%3#1`; none of more than one can believe."""
        try:
            return result_names(self.results)
        except ValueError:
            return ()


@dataclass(frozen=True)
class Statement:
    """An operation without its regions: its name, and the text behind the name, in which `form` says what is where."""

    name: str
    filled: Filled
    form: OperationForm

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands as they are written, `%3#1`."""
        return tuple(map(self.filled.parts.__getitem__, self.form.operands))

    @property
    def types(self) -> tuple[str, ...]:
        """The types behind the colon, up to the arrow if there is one."""
        return tuple(map(self.filled.text, self.form.types))

    @property
    def result_types(self) -> tuple[str, ...] | None:
        """The types behind the arrow, if there is one."""
        return None if self.form.result_types is None else tuple(map(self.filled.text, self.form.result_types))

    def typed(self, results: int, resolved: Callable[[str], str]) -> tuple[Types, Types]:
        """The types of its operands and of as many results; raises ParseError, or ValueError when there are others.

        `resolved` replaces aliases.
        """
        if self.form.has_plain_types:
            return _plain_signature(self.name, results, self.filled.template)
        written = self.result_types
        result_types = None if written is None else tuple(map(resolved, written))
        return signature(self.name, len(self.form.operands), results, tuple(map(resolved, self.types)), result_types)

    @property
    def location(self) -> str | None:
        """`loc(…)`, if it is written."""
        return None if self.form.location is None else self.filled.text(self.form.location)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """All attributes, by the names of the generic form where those are known; raises ParseError."""
        text = self.filled.text
        positional = [text(place) for place in self.form.positional]
        dictionaries = [text(place) for place in self.form.dictionaries]
        found = {}
        for opening, name in POSITIONAL.get(self.name, ()):
            choices = dictionaries if opening == "{" else positional
            value = next((value for value in choices if _opening(value) == opening), None)
            if value is not None:
                choices.remove(value)
                found[name] = value
        for key, place in self.form.keyed:
            if isinstance(key, Place):
                found |= {"sym_name": text(key), self.name.rpartition(".")[2]: text(place)}
            else:
                found[key] = text(place)
        for dictionary in dictionaries:
            found |= entries(dictionary.removeprefix("<").removesuffix(">"))
        return MappingProxyType(found)


def read_head(source: Source, start: int) -> Head:
    """The start of the operation at an offset; without results and name where a broken line opens a region."""
    match = for_bytes(HEAD_PARTS).match(source.data, start)
    if match is None:
        return Head("", "", False, start)
    results, named, alone = match.groups(b"")
    name = named or alone
    return Head(results.decode(), name.strip(b'"').decode(), name.startswith(b'"'), match.end())


def result_names(written: str) -> tuple[str, ...]:
    """The names of results, from how they are written: of `%0:2, %values` they are `%0#0`, `%0#1` and `%values`.

    Raises ValueError for more results than one can believe.
    """
    if ":" not in written and "," not in written:
        return (written.strip(),) if written else ()
    names: list[str] = []
    for name, number in _RESULT.findall(written):
        count = int(number[: len(str(MAX_RESULTS)) + 1] or 1)
        if count > MAX_RESULTS:
            raise ValueError(f"more than {MAX_RESULTS} results")
        names += (f"{name}#{index}" for index in range(count)) if number else (name,)
    return tuple(names)


def read_statement(source: Source, head: Head, pieces: Sequence[Span]) -> Statement:
    """The operation with this head, whose text is in `pieces`, between which its regions are; raises ParseError."""
    line = OneLine(source, (Span(head.end, pieces[0].end), *pieces[1:]))
    is_function = head.name == FUNCTION and not head.is_quoted
    filled = lift(template.FUNCTION if is_function else template.OPERATION, line.text)
    try:
        form = operation_form(filled.template, filled.lifting)
    except ParseError as error:
        if is_understood(head.name):
            raise line.of_source(filled.of_text(error)) from None
        form = unread_form(filled.template)
    return Statement(head.name, filled, form)


@lru_cache(maxsize=16384)
def _plain_signature(name: str, results: int, template: str) -> tuple[Types, Types]:
    """The types of all operations of that name and template, where nothing was lifted out of the types."""
    form = operation_form(template)
    types = tuple(place.text for place in form.types)
    result_types = None if form.result_types is None else tuple(place.text for place in form.result_types)
    return signature(name, len(form.operands), results, types, result_types)


def _opening(value: str) -> str:
    return value[0] if value[0] in '@[<{"' else _WORD


_LAYOUT = compiled(rf"({STRING})|(?://[^\n]*+|\s++)++")


def on_one_line(text: str) -> str:
    """The text without comments, line breaks and other white space that a printer would not write."""
    if "\n" not in text and "//" not in text:
        return text
    return _LAYOUT.sub(_blank, text).strip()


@dataclass(frozen=True)
class OneLine:
    """Texts from some places of a source, joined into one line."""

    source: Source
    places: Sequence[Span]

    @cached_property
    def text(self) -> str:
        """The line."""
        return on_one_line(self._written)

    def of_source(self, error: ParseError) -> ParseError:
        """The error, which is of the line, with its place in the source."""
        data, span = error.problem.source.data, error.problem.span
        start, end = (self._offset(len(data[:offset].decode("utf-8", "replace"))) for offset in (span.start, span.end))
        return ParseError(replace(error.problem, source=self.source, span=Span(start, max(start, end))))

    @cached_property
    def _written(self) -> str:
        return "".join(map(self.source.text, self.places))

    def _offset(self, character: int) -> int:
        """Return the offset in the source of a character of the line."""
        if self.text is not self._written:
            character = self._as_written(character)
        for place in self.places[:-1]:
            length = len(self.source.text(place))
            if character < length:
                break
            character -= length
        else:
            place = self.places[-1]
        return place.start + len(self.source.text(place)[:character].encode("utf-8", "replace"))

    def _as_written(self, character: int) -> int:
        """Return the offset as written of a character of the line."""
        blanks = [match.span() for match in _LAYOUT.finditer(self._written) if not match[1]]
        if blanks and blanks[0][0] == 0:
            character += 1
        for start, end in blanks:
            if start >= character:
                break
            character += end - start - 1
        return character


def _blank(match: re.Match[str]) -> str:
    return match[1] or " "
