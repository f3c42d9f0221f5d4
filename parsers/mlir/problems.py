"""The parts of a text that cannot be read.

Operations that differ only in names and numbers that cannot be wrong are read once for all of them.
Locations are not read here: there are as many of them as operations, and nothing but a place is lost with one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..errors import ParseError, Problem
from ..expressions import compiled
from ..source import Span
from .annotations import Annotation, Annotations
from .function import Function
from .operation import Operation
from .parameters import Parameter, label
from .patterns import OPERATIONS, USE, for_bytes
from .scan import spans_in
from .statement import FUNCTION
from .structure import Run
from .text import MlirText, nests_in

_LOCATION = compiled(rb"#loc\d*+")
_IN_RECORDS = (re.compile(rb"step-\d++"), re.compile(rb'_\d++(?=")'), re.compile(rb': \d++(?=")'))
"""Numbers of steps of a propagation, and those in the names of origins: each begins with what is searched for fast."""

_ANNOTATIONS = tuple(name for name, member in vars(Annotations).items() if isinstance(member, Annotation))


def problems_in(text: MlirText) -> Iterator[Problem]:
    """The problems of a text, in no order."""
    tree, found = text.outline
    yield from found
    yield from text.meshes[1]
    right: set[bytes] = set()
    blocks = list(tree.blocks)
    for nest in nests_in(text):
        yield from _of_operation(Operation(text, nest.span, nest))
        for region in nest.regions:
            blocks += text.region(region).blocks
            if isinstance(region, Span):
                yield from text.structured(region)[1]
    for block in blocks:
        if block.label:
            yield from _of_label(text, block.label)
        for item in block.items:
            if isinstance(item, Run):
                yield from _of_run(text, item.span, right)


def _of_run(text: MlirText, run: Span, right: set[bytes]) -> Iterator[Problem]:
    """The problems of operations in a row; `right` collects what has none."""
    found = for_bytes(OPERATIONS).findall(_without_names(text.source.data[run.start : run.end]))
    texts = [each for each in found if each]
    first = dict(zip(reversed(texts), reversed(range(len(texts))), strict=True))
    doubtful = {index for each, index in first.items() if each not in right}
    wrong = {texts[index] for index, operation in _numbered(text, run, doubtful) if any(_of_operation(operation))}
    right.update(first.keys() - wrong)
    for _, operation in _numbered(text, run, {index for index, each in enumerate(texts) if each in wrong}):
        yield from _of_operation(operation)


def _without_names(data: bytes) -> bytes:
    """The text without what may differ: names of values, numbers of locations, and those in Shardy's records."""
    # One after the other, each search skips to what it begins with.
    data = _LOCATION.sub(b"%", for_bytes(USE).sub(b"%", data))
    for pattern in _IN_RECORDS if b"propagation" in data or b"origin" in data else ():
        data = pattern.sub(b"%", data)
    return data


def _numbered(text: MlirText, run: Span, numbers: set[int]) -> Iterator[tuple[int, Operation]]:
    """The operations in a row that have these numbers, counted from 0."""
    last = max(numbers, default=-1)
    for number, span in zip(range(last + 1), spans_in(text.source.data, run), strict=False):
        if number in numbers:
            yield number, Operation(text, span)


def _of_label(text: MlirText, place: Span) -> Iterator[Problem]:
    try:
        _read_parameters(label(text, place)[1])
    except ParseError as error:
        yield text.placed(error, place.start).problem


def _of_operation(operation: Operation) -> Iterator[Problem]:
    for read in _READINGS:
        try:
            read(operation)
        except ParseError as error:
            yield error.problem
            # What else is wrong with it follows from this, as likely as not.
            return


def _parameters(operation: Operation) -> None:
    if operation.name == FUNCTION:
        function = Function(operation)
        _read_parameters((*function.read_arguments(), *function.read_results()))


def _read_parameters(parameters: Iterable[Parameter]) -> None:
    distinct = {(each.type_text, each.attributes_text): each for each in parameters}
    for parameter in distinct.values():
        _ = parameter.type
        _read_all(parameter.annotations)


def _read_all(annotations: Annotations) -> None:
    for name in _ANNOTATIONS:
        getattr(annotations, name)


_UNREAD = frozenset({"scf.for", "scf.forall", "scf.index_switch", "scf.parallel", "vector.mask"})
"""Operations whose forms define values, or order regions, in ways that are not read."""


def _form(operation: Operation) -> None:
    is_unread = operation.name in _UNREAD
    if operation.name == "scf.if":
        is_unread = len(operation.regions) < 2  # the other one is there, and empty
    elif operation.name == "llvm.func":
        is_unread = bool(operation.operands)  # these are its arguments
    if is_unread and not operation.head.is_quoted:
        place = Span(operation.span.start, operation.head.end)
        raise ParseError(Problem(f"the form of {operation.name} is not read", operation.text.source, place))


_READINGS = (
    _form,
    lambda operation: operation.operand_types,
    lambda operation: operation.replica_groups,
    lambda operation: operation.source_target_pairs,
    lambda operation: operation.channel,
    lambda operation: _read_all(operation.annotations),
    _parameters,
)
