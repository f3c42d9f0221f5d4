"""The meaning of the forms of operations and functions: which names are operands, and the written types and attributes.

The grammar is `stablehlo.lark`. It reads templates, so all that a form says, it says by place in the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from typing import Any

from ..expressions import compiled
from ..grammar import Grammar
from ..lalr import Token
from ..record import Record
from .template import FUNCTION, OPERATION, Lifting, Place, completed, placeholders


class ParameterForm(Record, frozen=True):
    """A parameter of a function, a region or a block: `%name: type {attributes} loc(…)`.

    Results of functions have no name, and the parameters of a loop have their types elsewhere.
    """

    name: Place | None
    type: Place | None = None
    attributes: Place | None = None
    location: Place | None = None


class OperationForm(Record, frozen=True):
    """The meaning of an operation's text after its name."""

    inputs: tuple[Place, ...] = ()
    initial: tuple[Place, ...] = ()
    """Initial values of a reduction; as operands, these follow all inputs."""
    parameters: tuple[tuple[ParameterForm, ...], ...] = ()
    """The parameters of its regions as they are grouped by parentheses."""
    keyed: tuple[tuple[str | Place, Place], ...] = ()
    """`key = value` outside of braces; the key of `@symbol = value` is the place of the symbol."""
    dictionaries: tuple[Place, ...] = ()
    """Attributes in braces."""
    positional: tuple[Place, ...] = ()
    """Words, symbols, numbers, literals and brackets that mean something by their place."""
    applied: str | None = None
    """The operation of a compact reduction."""
    signature: Place | None = None
    """All that is behind the colon about types."""
    types: tuple[Place, ...] = ()
    """The types in it, up to the arrow if there is one."""
    result_types: tuple[Place, ...] | None = None
    """The types behind the arrow."""
    operands: tuple[int, ...] = ()
    """All operands, by number among what was lifted out."""
    has_plain_types: bool = False
    """True if the types are in the template as they are in every text of it."""
    location: Place | None = None


# An alias for a type; the types of dialects have a dot in their names.
_ALIAS = compiled(r"[!#][A-Za-z_]\w*+(?![\w.<])")


@lru_cache(maxsize=16384)
def operation_form(template: str, lifting: Lifting = OPERATION) -> OperationForm:
    """The form of an operation's text, or with `FUNCTION` of a function's header; raises ParseError with a place in
    the template."""
    rule = "function" if lifting is FUNCTION else "operation"
    form: OperationForm = completed(_GRAMMAR.parse(template, rule), template, lifting)
    types = form.signature
    return replace(
        form,
        operands=tuple(place.first for place in form.inputs + form.initial),
        has_plain_types=types is not None and types.count == 0 and not _ALIAS.search(types.text),
    )


@lru_cache(maxsize=4096)
def parameter_form(template: str) -> ParameterForm:
    """The form of one parameter or result; raises ParseError with a place in the template."""
    form: ParameterForm = completed(_GRAMMAR.parse(template, "parameter"), template, OPERATION)
    return form


def unread_form(template: str) -> OperationForm:
    """The form of an operation whose text is not understood: every name in it is an operand, and no type is known."""
    found = placeholders(template, OPERATION)
    names, dictionaries, locations = (tuple(place for place in found if place.text == text) for text in _KEPT)
    operands = tuple(place.first for place in names)
    return OperationForm(names, dictionaries=dictionaries, operands=operands, location=next(iter(locations), None))


_KEPT = ("%", "{}", "loc()")


class _Atom(Record, frozen=True):
    """A word, or several that belong together; `uses` are the names of values in it."""

    place: Place
    word: str = ""
    uses: tuple[Place, ...] = ()


def _word(token: Token) -> _Atom:
    place = Place(token.start, token.end)
    return _Atom(place, token.text, (place,) if token.kind == "USE" else ())


def _joined(*atoms: _Atom) -> _Atom:
    uses = chain.from_iterable(atom.uses for atom in atoms)
    return _Atom(Place(atoms[0].place.start, atoms[-1].place.end), uses=tuple(uses))


def _merged(*forms: OperationForm) -> OperationForm:
    """All that the forms say: lists one behind the other, and of anything else what is said first."""
    merged: dict[str, Any] = {}
    for form, name in product(forms, OperationForm.__struct_fields__):
        value = getattr(form, name)
        if isinstance(value, tuple):
            merged.setdefault(name, []).extend(value)
        elif value:
            merged.setdefault(name, value)
    said: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in merged.items()}
    return OperationForm(**said)


def _group(*members: OperationForm) -> OperationForm:
    merged = _merged(*members)
    parameters = tuple(chain.from_iterable(merged.parameters))
    return replace(merged, parameters=(parameters,) if parameters else ())


def _types(*atoms: _Atom) -> OperationForm:
    arrow = next((place for place, atom in enumerate(atoms) if atom.word in ("->", "to")), len(atoms))
    return OperationForm(
        signature=_joined(*atoms).place,
        types=_places(atoms[:arrow]),
        result_types=_places(atoms[arrow:]) if arrow < len(atoms) else None,
    )


def _places(atoms: Sequence[_Atom]) -> tuple[Place, ...]:
    return tuple(atom.place for atom in atoms if not atom.word)


def _parameter(*parts: _Atom | OperationForm) -> ParameterForm:
    atoms = [part for part in parts if isinstance(part, _Atom)]
    others = _merged(*(part for part in parts if isinstance(part, OperationForm)))
    name = atoms[0].place if atoms[0].word == "%" else None
    attributes = next(iter(others.dictionaries), None)
    return ParameterForm(name, atoms[-1].place, attributes, others.location)


def _function(*parts: _Atom | OperationForm) -> OperationForm:
    """A function without operands, whose parameters and results are positional."""
    atoms = [part for part in parts if isinstance(part, _Atom)]
    others = _merged(*(part for part in parts if isinstance(part, OperationForm)))
    symbol = next(place for place, atom in enumerate(atoms) if atom.word.startswith("@"))
    names = ("sym_visibility", "sym_name") if symbol else ("sym_name",)
    keyed = tuple((name, atom.place) for name, atom in zip(names, atoms, strict=False))
    listed = (atom.place for atom in atoms[symbol + 1 :] if atom.word not in ("->", "attributes"))
    return replace(others, keyed=keyed, positional=tuple(listed))


_TERMINALS = (
    *("USE", "DICT", "PROPERTIES", "STRING", "DENSE", "LOC", "LIST", "WORD", "SYMBOL", "HASH", "BANG", "NUMBER"),
    *("LANGLE", "RANGLE", "LSQUARE", "RSQUARE", "LPAR", "RPAR", "ARROW", "X", "INIT", "TO", "APPLIES", "PUNCTUATION"),
)
_GRAMMAR = Grammar(
    "stablehlo",
    {
        **dict.fromkeys(_TERMINALS, _word),
        **dict.fromkeys(("value", "type", "angle", "square", "round"), _joined),
        "operation": _merged,
        "operand": lambda name: OperationForm(inputs=name.uses),
        "keyed": lambda key, value: OperationForm(keyed=((key.word, value.place),)),
        "defined": lambda symbol, value: OperationForm(keyed=((symbol.place, value.place),)),
        "applied": lambda _, name: OperationForm(applied=name.word),
        "dictionary": lambda braces: OperationForm(dictionaries=(braces.place,)),
        "positional": lambda *atoms: OperationForm(inputs=_joined(*atoms).uses, positional=(_joined(*atoms).place,)),
        "group": _group,
        "parameter_of_region": lambda *parts: OperationForm(parameters=((_parameter(*parts),),)),
        "binding": lambda name, value: OperationForm(inputs=value.uses, parameters=((ParameterForm(name.place),),)),
        "initialized": lambda value, _, initial: OperationForm(inputs=value.uses, initial=initial.uses),
        "types": _types,
        "location": lambda location: OperationForm(location=location.place),
        "parameter": _parameter,
        "function": _function,
    },
    placed=True,
)
