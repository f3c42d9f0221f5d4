"""Places that name a computation, found by one scan over a module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..expressions import compiled
from ..record import Record
from .call import CALLING
from .patterns import NAME

if TYPE_CHECKING:
    from .module import HloModule


class CallSite(Record, frozen=True):
    """A place that names a computation: the attribute that does, and an offset inside the calling instruction."""

    attribute: str
    offset: int


_ATTRIBUTES = "|".join(CALLING)
_SITE = compiled(rf", ({_ATTRIBUTES})=(?:%?({NAME})|\{{([^{{}}]*+)\}})".encode(), re.ASCII)
_NAME = compiled(NAME.encode(), re.ASCII)


def call_sites(module: HloModule) -> Mapping[str, tuple[CallSite, ...]]:
    """The sites of all calls by the name of the computation that is called, in text order."""
    found: dict[str, list[CallSite]] = {}
    for callee, site in _sites(module):
        found.setdefault(callee, []).append(site)
    return {callee: tuple(sites) for callee, sites in found.items()}


def _sites(module: HloModule) -> Iterator[tuple[str, CallSite]]:
    if all(computation.is_printed for computation in module.computations) and not module.doubtful_lines:
        for match in _SITE.finditer(module.source.data):
            names = [match[2]] if match[2] is not None else _NAME.findall(match[3])
            for name in names:
                yield name.decode(), CallSite(match[1].decode(), match.start())
        return
    for computation in module.computations:
        for instruction in computation.instructions:
            for attribute, callees in instruction.callees.items():
                for name in callees:
                    yield name, CallSite(attribute, instruction.span.start)
