"""Arguments of functions and blocks, and results of functions: `%arg0: tensor<8xf32> {sdy.sharding = …} loc("x")`.

What of a parameter cannot be read raises ParseError when it is asked for. The functions take an offset, `start`, from
which on parameters are found in the text, for the places of errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..source import Span
from .annotations import Annotations
from .forms import ParameterForm, function_form, parameter_form
from .lists import items
from .locations import Location
from .statement import Statement
from .template import OPERATION, Filled, lift
from .text import MlirText
from .types import FunctionType, MlirType


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
    name, parenthesis, arguments = text.source.text(place).removesuffix(":").partition("(")
    return name.rstrip(), listed_arguments(text, place.start, f"({arguments.rstrip()}" if parenthesis else "()")


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


def function_arguments(text: MlirText, start: int, header: Statement) -> tuple[Argument, ...]:
    """The arguments that a function's header lists; raises ParseError."""
    return listed_arguments(text, start, header.filled.text(function_form(header.filled.template).parameters))


def function_results(text: MlirText, start: int, header: Statement) -> tuple[Result, ...]:
    """The results that a function's header lists; raises ParseError."""
    results = function_form(header.filled.template).results
    return () if results is None else listed_results(text, start, header.filled.text(results))


def generic_arguments(
    text: MlirText, start: int, attributes: Mapping[str, str], named: Sequence[Argument]
) -> tuple[Argument, ...]:
    """The arguments of a function in generic form, from its attributes and the arguments of its first block."""
    types = _function_type(text, start, attributes).inputs
    names = [argument.name for argument in named] or [""] * len(types)
    locations = [argument.location_text for argument in named] or [None] * len(types)
    dictionaries = items(attributes.get("arg_attrs", "[]")) or ("{}",) * len(types)
    arguments = zip(map(str, types), dictionaries, names, locations, strict=False)
    return tuple(Argument(text, start, *argument) for argument in arguments)


def generic_results(text: MlirText, start: int, attributes: Mapping[str, str]) -> tuple[Result, ...]:
    """The results of a function in generic form."""
    types = _function_type(text, start, attributes).results
    dictionaries = items(attributes.get("res_attrs", "[]")) or ("{}",) * len(types)
    return tuple(Result(text, start, *result) for result in zip(map(str, types), dictionaries, strict=False))


def _function_type(text: MlirText, start: int, attributes: Mapping[str, str]) -> FunctionType:
    kind = text.type(attributes.get("function_type", "() -> ()"), start)
    return kind if isinstance(kind, FunctionType) else FunctionType((), ())


def _argument(text: MlirText, start: int, filled: Filled, form: ParameterForm) -> Argument:
    return Argument(
        text,
        start,
        filled.text(form.type) if form.type else "",
        filled.text(form.attributes) if form.attributes else "{}",
        filled.text(form.name) if form.name else "",
        filled.text(form.location) if form.location else None,
    )
