"""Undefined references of a module: values, functions, and devices outside of its replica groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ..errors import Problem, readable
from ..expressions import compiled
from ..sharding_syntax.replica_groups import device_counts, fault_of
from ..source import Span
from .lists import symbol
from .patterns import STRING, WORD

if TYPE_CHECKING:
    from .function import Function
    from .module import MlirModule

_VALUE = compiled(rf"%([{WORD}\-]++#?+)(?!:\d)".encode())
"""A use; `%0#1`, one of several results, with its mark."""
_DEFINED = compiled(rf"%([{WORD}\-]++)(?: *+=|:(?!\d))".encode())
"""In front of operations, as arguments of functions and of blocks, and `(%iterArg = %0)` of a loop."""
_NUMBERED = compiled(rf"%([{WORD}\-]++):\d".encode())
"""The name of several results, `%0:2`."""
_SEVERAL = compiled(rf"^[ \t]*+((?:%[{WORD}\-]++(?::\d++)?+, *+)++)%[{WORD}\-:]++ *+=".encode(), re.MULTILINE)
"""All but the last of an operation's results with a name each."""
_STRING = compiled(rf"{STRING}|//[^\n]*+".encode())
_CALL = compiled(rb'call"? (@(?:[\w.$\-]++|"[^"\n]*+"))')
_BEFORE_CALL = compiled(rb'(?<![\w.$])"?(?:func\.)?\Z')
"""Looked for where a call is found: in front of it, it would be looked for at every character."""
_GROUPS = compiled(rb"replica_groups = (dense<[^>]*+> : tensor<[^>]*+>)")


def broken_references(module: MlirModule) -> Iterator[Problem]:
    """The problems of a module that can be read, each name and each list of groups once."""
    source = module.source
    names = {function.name for function in module.functions}
    for function in module.functions:
        for message, place in _undefined(source.data, function):
            yield Problem(message, source, place)
    if module.operation is None:
        return  # in a part of a module, functions and meshes are missing anyhow
    calls = (
        each
        for each in _CALL.finditer(source.data)
        if _BEFORE_CALL.search(source.data, max(0, each.start() - 6), each.start())
    )
    called = {symbol(found[1].decode("utf-8", "replace")): found.span(1) for found in calls}
    for name in called.keys() - names:
        if module.operation_at(called[name][0]) is not None:
            yield Problem(f"there is no function {name!r} here", source, Span(*called[name]))
    yield from _uncovered(module)


def _undefined(data: bytes, function: Function) -> Iterator[tuple[str, Span]]:
    place = function.span
    used = set(_VALUE.findall(data, place.start, place.end))
    used.difference_update(_DEFINED.findall(data, place.start, place.end))
    if not used or used <= _defined(data[place.start : place.end]):
        return
    # Text may be in strings, too.
    written = _STRING.sub(lambda found: b" " * len(found[0]), data[place.start : place.end])
    defined = _defined(written)
    missing = set(_VALUE.findall(written)) - defined
    for found in _VALUE.finditer(written) if missing else ():
        if found[1] in missing:
            missing.discard(found[1])
            name = found[1].rstrip(b"#")
            other = name if found[1] != name else name + b"#"
            numbered = "this use of %{} is not read: of several results, one is `%name#0`"
            message = numbered if other in defined else "there is no value %{} in this function"
            yield message.format(name.decode()), Span(place.start + found.start(), place.start + found.end())


def _defined(text: bytes) -> set[bytes]:
    several = (name for names in _SEVERAL.findall(text) for name in _VALUE.findall(names))
    return {*_DEFINED.findall(text), *several, *(name + b"#" for name in _NUMBERED.findall(text))}


def _uncovered(module: MlirModule) -> Iterator[Problem]:
    """Groups that name a device twice, or leave one out (StableHLO, docs/spec.md, all_gather and its like)."""
    seen = set()
    for found in _GROUPS.finditer(module.source.data):
        if found[1] not in seen:
            seen.add(found[1])
            operation = module.operation_at(found.start())
            groups = None if operation is None else readable(partial(getattr, operation, "replica_groups"))
            wrong = None if groups is None else fault_of(groups.members, _device_counts(module))
            if wrong:
                yield Problem(f"these groups {wrong}", module.source, Span(found.start(1), found.end(1)))


def _device_counts(module: MlirModule) -> set[int]:
    given = [module.attributes.get(f"mhlo.num_{each}", "").split() for each in ("replicas", "partitions")]
    return device_counts(*(each[0] for each in given)) if all(given) else set()
