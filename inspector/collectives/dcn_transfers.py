"""Programs of several TPU slices, which XLA compiles for one of them.

Such a module counts the devices of its slice: its groups and pairs are those of one slice, and the same in every other.
What goes between slices is a transfer by the host, a `send` and a `recv` that the megascale runtime carries out. Their
frontend attributes say what it is in effect, and between which devices, as libtpu writes it in one of these ways:
`{1,2}x{0:3}`, devices 0 to 3 of slices 1 and 2; `{{100000,200000},…}`, groups; `{{100000->200000},…}`, pairs. The id
of a device is JAX's: 100,000 times its slice, counted from 1, and its number there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...parsers.hlo import HloModule, Instruction
from ...parsers.record import Record
from ...parsers.sharding_syntax.replica_groups import Groups
from ..capture.model import Device
from ..catalog.spellings import PRIMITIVES, TRANSFERS
from ..report import Kind
from ..units import grouped

RENDEZVOUS = "_xla_host_transfer_rendezvous"
"""The frontend attribute that a send and its recv have in common."""

DEVICES_OF_SLICE = 100_000
MAX_MEMBERS = 1 << 20
"""More devices than this are taken for a broken text."""

_PRODUCT = re.compile(r"\{([\d,]+)\}x\{([\d,:]+)\}", re.ASCII)
_ROW = re.compile(r"\{([\d,]+)\}", re.ASCII)
_PAIR = re.compile(r"\{(\d+)->(\d+)\}", re.ASCII)
_NUMBERED = re.compile(r"(?:[._]\d+)+\Z", re.ASCII)


class Transfer(Record, frozen=True):
    """The effect of a send between slices; `groups` and `pairs` are device ids.

    `primitive` is that of JAX after which it is called, if it is; `reduction` is `sum`, `max`, ….
    """

    kind: Kind
    groups: Groups = ()
    pairs: Groups = ()
    reduction: str | None = None
    primitive: str | None = None


def transfer_of(attributes: Mapping[str, str]) -> Transfer | None:
    """The transfer between slices that an instruction with these frontend attributes is a half of, if it is one."""
    kind = TRANSFERS.get(attributes.get("_xla_megascale_transfer_type", ""))
    if kind is None:
        return None
    target = attributes.get("_xla_megascale_target", "")
    reduction = attributes.get("_xla_megascale_reduce_operation")
    called = _NUMBERED.sub("", attributes.get(RENDEZVOUS, ""))
    return Transfer(
        kind,
        groups=_groups(target),
        pairs=tuple((_id(source), _id(there)) for source, there in _PAIR.findall(target)),
        reduction=None if reduction is None else reduction.lower(),
        primitive=called if called in PRIMITIVES else None,
    )


def is_host_transfer(instruction: Instruction) -> bool:
    """Return whether a send or recv is to or from the host itself, not to another slice by way of it."""
    is_transfer = instruction.attributes.get("is_host_transfer") == "true"
    return is_transfer and transfer_of(instruction.frontend_attributes) is None


def slices_of(module: HloModule, devices: Sequence[Device]) -> tuple[tuple[int, ...], ...]:
    """The partitions on each slice, in their order; none where the module is of all devices."""
    members = grouped((device.slice, partition) for partition, device in enumerate(devices))
    slices = tuple(tuple(members[number]) for number in sorted(members))
    own = module.attributes.get("num_partitions", "1"), module.attributes.get("replica_count", "1")
    return slices if len(slices) > 1 and own in ((str(len(slices[0])), "1"), ("1", str(len(slices[0])))) else ()


def in_every_slice(rows: Groups, slices: Sequence[Sequence[int]]) -> Groups:
    """Groups or pairs of one slice, in each of them; nothing where a slice has no such device."""
    least = min(map(len, slices))
    if any(not 0 <= member < least for row in rows for member in row):
        return ()
    return tuple(tuple(members[each] for each in row) for members in slices for row in rows)


def as_partitions(rows: Groups, devices: Sequence[Device]) -> Groups:
    """Rows of device ids as partitions; nothing where any of them runs none."""
    partition_of = {device.id: partition for partition, device in enumerate(devices)}
    if any(device not in partition_of for row in rows for device in row):
        return ()
    return tuple(tuple(partition_of[device] for device in row) for row in rows)


def _groups(target: str) -> Groups:
    product = _PRODUCT.fullmatch(target)
    if product is None:
        return tuple(tuple(map(_id, row.split(","))) for row in _ROW.findall(target) if row.strip(","))
    slices = [_id(each) for each in product[1].split(",") if each]
    places: list[int] = []
    for part in product[2].split(","):
        first, _, last = part.partition(":")
        start, stop = _id(first), _id(last or first)
        if stop - start + len(places) >= MAX_MEMBERS:
            return ()
        places += range(start, stop + 1)
    return tuple(tuple(each * DEVICES_OF_SLICE + place for each in slices) for place in places)


def _id(digits: str) -> int:
    """A number; -1, which no device has, for what is none or too long for one."""
    return int(digits) if digits.isdecimal() and len(digits) < 12 else -1
