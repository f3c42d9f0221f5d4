"""An estimate of what a compiled program costs, from its text: enough to say which of several costs most."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import cache

from ....catalog.spellings import HLO_OPCODES

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_COLLECTIVE = re.compile(rf" = (.*?) (?:{'|'.join(HLO_OPCODES)})(?:-start)?\(")
_ARRAY = re.compile(r"\b[a-z]+(\d+)?\w*\[([\d,]*)\]")
_CALLED = re.compile(r"\b(?:body|calls|to_apply|branch_computations)=\{?([%\w.\-, ]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')


def sent_bytes(text: str) -> int:
    """Bytes of the results of all collectives, as often as loops of known length execute them."""
    own: defaultdict[str, int] = defaultdict(int)
    called: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    entry = current = ""
    for line in text.splitlines():
        if match := _COMPUTATION.match(line):
            current = match[2]
            entry = current if match[1] else entry
        elif match := _COLLECTIVE.search(line):
            own[current] += sum(map(_bytes_of, _ARRAY.finditer(match[1])))
        elif match := _CALLED.search(line):
            trips = int(found[1]) if (found := _TRIPS.search(line)) else 1
            called[current] += [(name.strip(" %"), trips) for name in match[1].split(",")]

    @cache
    def total(name: str) -> int:
        return own[name] + sum(trips * total(each) for each, trips in called[name])

    return total(entry)


def _bytes_of(array: re.Match[str]) -> int:
    return math.prod(int(size) for size in array[2].split(",") if size) * max(int(array[1] or 8) // 8, 1)
