"""An estimate of what a compiled program costs, from its text: enough to say which of several costs most."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import cache

from ....catalog.collective import CollectiveKind
from ....catalog.collectives import KINDS

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_KINDS = {opcode: kind for kind in KINDS for opcode in kind.hlo}
_COLLECTIVE = re.compile(rf" = (.*?) ({'|'.join(_KINDS)})(-start)?\(")
_ARRAY = re.compile(r"\b[a-z]+(\d+)?\w*\[([\d,]*)\]")
_CALLED = re.compile(r"\b(?:body|calls|to_apply|branch_computations)=\{?([%\w.\-, ]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_DEVICES = re.compile(r"\b(?:num_partitions|replica_count)=(\d+)")
_LISTED = re.compile(r"replica_groups=\{\{([\d,]+)\}")
_TILED = re.compile(r"replica_groups=\[\d+,(\d+)\]")
_OF_AXES = re.compile(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}")


def sent_bytes(text: str) -> int:
    """Bytes that each device sends in collectives, as often as loops of known length execute them."""
    own: defaultdict[str, int] = defaultdict(int)
    called: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    entry = current = ""
    devices = math.prod(map(int, _DEVICES.findall(text.partition("\n")[0])))
    for line in text.splitlines():
        if match := _COMPUTATION.match(line):
            current = match[2]
            entry = current if match[1] else entry
        elif match := _COLLECTIVE.search(line):
            own[current] += _sent(_KINDS[match[2]], _sizes(match), _group_size(line, devices))
        elif match := _CALLED.search(line):
            trips = int(found[1]) if (found := _TRIPS.search(line)) else 1
            called[current] += [(name.strip(" %"), trips) for name in match[1].split(",")]

    @cache
    def total(name: str) -> int:
        return own[name] + sum(trips * total(each) for each, trips in called[name])

    return total(entry)


def _sizes(collective: re.Match[str]) -> list[int]:
    """Bytes of the results; the start of an asynchronous one gives its operands, too, before them."""
    found = [_bytes_of(each) for each in _ARRAY.finditer(collective[1])]
    if not collective[3] or collective[2] == "all-reduce":
        return found
    return found[1:2] if collective[2] == "collective-permute" else found[len(found) // 2 :]


def _sent(kind: CollectiveKind, results: list[int], group_size: int) -> int:
    size = sum(results)
    return kind.wire_bytes(group_size, size * group_size if kind.sides == "scattered" else size, size) or 0


def _group_size(line: str, devices: int) -> int:
    if found := _LISTED.search(line):
        return found[1].count(",") + 1
    if found := _TILED.search(line):
        return int(found[1])
    if found := _OF_AXES.search(line):
        sizes = dict(re.findall(r"'(\w+)'=(\d+)", found[1]))
        return math.prod(int(sizes.get(axis, 1)) for axis in re.findall(r"'(\w+)'", found[2]))
    return devices


def _bytes_of(array: re.Match[str]) -> int:
    return math.prod(int(size) for size in array[2].split(",") if size) * max(int(array[1] or 8) // 8, 1)
