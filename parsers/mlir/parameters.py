"""Arguments of functions and blocks, and results of functions: `%arg0: tensor<8xf32> {sdy.sharding = …} loc("x")`.

What of a parameter cannot be read raises ParseError when it is asked for. The functions take an offset, `start`, from
which on parameters are found in the text, for the places of errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..source import Span
from .annotations import Annotations
from .forms import ParameterForm, function_form, parameter_form
from .lists import items
from .locations import Location
from .patterns import BRACKETS
from .statement import Statement
from .template import OPERATION, Filled, lift
from .text import MlirText
from .types import FunctionType, MlirType

_LABEL = re.compile(rf"(\^[\w$.\-]++)\s*+({BRACKETS})?+")


@dataclass(frozen=True)
class _Parameter:
    """What an argument and a result have in common; `start` is an offset in the text from which on it is found."""

    text: MlirText = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    type_text: str
    attributes_text: str

    @property
    def type(self) -> MlirType:
        """Its type."""
        return self.text.type(self.type_text, self.start)

    @property
    def attributes(self) -> Mapping[str, str]:
        """Its attributes as text, by name."""
        return self.text.entries(self.attributes_text, self.start)

    @property
    def annotations(self) -> Annotations:
        """What its attributes say about sharding."""
        return Annotations(self.text, self.attributes, self.start)


@dataclass(frozen=True)
class Argument(_Parameter):
    """An argument of a function or a block. In a function that is only declared it has no name."""

    name: str
    location_text: str | None

    @property
    def location(self) -> Location:
        """Where it comes from."""
        return self.text.location(self.location_text)


@dataclass(frozen=True)
class Result(_Parameter):
    """A result of a function."""


def listed_arguments(text: MlirText, start: int, listed: str) -> tuple[Argument, ...]:
    """The arguments in a list in parentheses; raises ParseError."""
    filled = (lift(OPERATION, item) for item in items(listed))
    return tuple(_argument(text, start, each, parameter_form(each.template)) for each in filled)


def listed_results(text: MlirText, start: int, listed: str) -> tuple[Result, ...]:
    """The results in a list in parentheses, or the type of a single one; raises ParseError."""
    arguments = listed_arguments(text, start, listed if listed.startswith("(") else f"({listed})")
    return tuple(Result(text, start, argument.type_text, argument.attributes_text) for argument in arguments)


def label(text: MlirText, place: Span) -> tuple[str, tuple[Argument, ...]]:
    """The name and the arguments of a block from its label, `^bb0(%a: tensor<f32>):`; raises ParseError."""
    match = _LABEL.match(text.source.text(place))
    assert match is not None
    return match[1], listed_arguments(text, place.start, match[2] or "()")


def region_arguments(text: MlirText, start: int, statement: Statement) -> tuple[Argument, ...]:
    """The arguments of an operation's regions, where they are listed outside of them.

    A loop does not repeat the types of its operands. A reduction lists a pair for each input; in its region the first
    ones of all pairs come before the second ones.
    """
    lists = statement.form.parameters
    if statement.name.endswith(".reduce"):
        lists = tuple(zip(*lists, strict=False))
    arguments = [_argument(text, start, statement.filled, form) for listed in lists for form in listed]
    if all(argument.type_text for argument in arguments):
        return tuple(arguments)
    types = zip(arguments, statement.types, strict=False)
    return tuple(replace(argument, type_text=written) for argument, written in types)


def function_signature(
    text: MlirText, start: int, header: Statement
) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
    """The arguments and results that a function's header lists; raises ParseError."""
    form = function_form(header.filled.template)
    results = () if form.results is None else listed_results(text, start, header.filled.text(form.results))
    return listed_arguments(text, start, header.filled.text(form.parameters)), results


def generic_signature(
    text: MlirText, start: int, attributes: Mapping[str, str], named: Sequence[Argument]
) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
    """The arguments and results of a function in generic form, where its attributes and its first block tell them."""
    kind = text.type(attributes.get("function_type", "() -> ()"), start)
    inputs, results = (kind.inputs, kind.results) if isinstance(kind, FunctionType) else ((), ())
    names = [argument.name for argument in named] or [""] * len(inputs)
    locations = [argument.location_text for argument in named] or [None] * len(inputs)
    of_arguments = items(attributes.get("arg_attrs", "[]")) or ("{}",) * len(inputs)
    of_results = items(attributes.get("res_attrs", "[]")) or ("{}",) * len(results)
    arguments = zip(map(str, inputs), of_arguments, names, locations, strict=False)
    return (
        tuple(Argument(text, start, *argument) for argument in arguments),
        tuple(Result(text, start, *result) for result in zip(map(str, results), of_results, strict=False)),
    )


def _argument(text: MlirText, start: int, filled: Filled, form: ParameterForm) -> Argument:
    return Argument(
        text,
        start,
        filled.text(form.type) if form.type else "",
        filled.text(form.attributes) if form.attributes else "{}",
        filled.text(form.name) if form.name else "",
        filled.text(form.location) if form.location else None,
    )
