"""Parameters of functions and blocks, and results of functions: `%arg0: tensor<8xf32> {sdy.sharding = …} loc("x")`.

What of a parameter cannot be read raises ParseError on use. The functions take an offset, `start`, from
which on parameters are found in the text, for the places of errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..source import Span
from .annotations import Annotations
from .forms import ParameterForm, parameter_form
from .lists import items
from .locations import Location
from .statement import Statement
from .template import OPERATION, Filled, lift
from .text import MlirText
from .types import FunctionType, MlirType


@dataclass(frozen=True)
class Parameter:
    """An argument of a function or a block, or a result of a function; `start` is an offset in the text from which on
    it is found. Results, and the arguments of a function that is only declared, have no names."""

    text: MlirText = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    type_text: str
    attributes_text: str
    name: str = ""
    location_text: str | None = None

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
        """Attributes about sharding."""
        return Annotations(self.text, self.attributes, self.start)

    @property
    def location(self) -> Location:
        """Origin of the parameter."""
        return self.text.location(self.location_text)


def listed(text: MlirText, start: int, written: str) -> tuple[Parameter, ...]:
    """The parameters in a list in parentheses, or the type of a single one; raises ParseError."""
    filled = (lift(OPERATION, item) for item in items(written if written.startswith("(") else f"({written})"))
    return tuple(_parameter(text, start, each, parameter_form(each.template)) for each in filled)


def label(text: MlirText, place: Span) -> tuple[str, tuple[Parameter, ...]]:
    """The name and the arguments of a block from its label, `^bb0(%a: tensor<f32>):`; raises ParseError."""
    name, parenthesis, arguments = text.source.text(place).removesuffix(":").partition("(")
    return name.rstrip(), listed(text, place.start, f"({arguments.rstrip()}" if parenthesis else "()")


def region_arguments(text: MlirText, start: int, statement: Statement) -> tuple[Parameter, ...]:
    """The arguments of an operation's regions, where they are listed outside of them.

    A loop does not repeat the types of its operands. A reduction lists a pair for each input; in its region the first
    ones of all pairs come before the second ones.
    """
    lists = statement.form.parameters
    if statement.name.endswith(".reduce"):
        lists = tuple(zip(*lists, strict=False))
    arguments = [_parameter(text, start, statement.filled, form) for forms in lists for form in forms]
    if all(argument.type_text for argument in arguments):
        return tuple(arguments)
    types = zip(arguments, statement.types, strict=False)
    return tuple(replace(argument, type_text=written) for argument, written in types)


def function_parameters(text: MlirText, start: int, header: Statement, *, results: bool) -> tuple[Parameter, ...]:
    """The arguments, or the results, that a function's header lists; raises ParseError."""
    places = header.form.positional[1:] if results else header.form.positional[:1]
    return tuple(each for place in places for each in listed(text, start, header.filled.text(place)))


def generic_parameters(
    text: MlirText, start: int, attributes: Mapping[str, str], named: Sequence[Parameter], *, results: bool
) -> tuple[Parameter, ...]:
    """The same of a function in generic form, from its attributes; `named` are the arguments of its first block."""
    kind = text.type(attributes.get("function_type", "() -> ()"), start)
    if not isinstance(kind, FunctionType):
        return ()
    types, key = (kind.results, "res_attrs") if results else (kind.inputs, "arg_attrs")
    dictionaries = items(attributes.get(key, "[]")) or ("{}",) * len(types)
    names = [(each.name, each.location_text) for each in named] or [("", None)] * len(types)
    found = zip(types, dictionaries, names, strict=False)
    return tuple(Parameter(text, start, str(type), dictionary, *name) for type, dictionary, name in found)


def _parameter(text: MlirText, start: int, filled: Filled, form: ParameterForm) -> Parameter:
    return Parameter(
        text,
        start,
        filled.text(form.type) if form.type else "",
        filled.text(form.attributes) if form.attributes else "{}",
        filled.text(form.name) if form.name else "",
        filled.text(form.location) if form.location else None,
    )
