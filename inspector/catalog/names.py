"""What a name means, in whichever language and of whichever year it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from .collective import CollectiveKind, CollectiveRule, FormerName
from .collectives import FORMER_NAMES, KINDS
from .spellings import TABLE

Entry = CollectiveKind | CollectiveRule | FormerName

ENTRIES: tuple[Entry, ...] = (*KINDS, *TABLE, *FORMER_NAMES)

_AROUND = re.compile(r"\A(?:jax\.lax\.|jax\.|lax\.|stablehlo\.|mhlo\.)|_(?:start|done|p)\Z")
"""Where a name is from, and which half of an asynchronous collective it means."""


def entries_named(name: str) -> tuple[Entry, ...]:
    """Return what a name means, kinds first: a function, a primitive, an operation or an opcode of a collective."""
    wanted = _plain(name)
    return tuple(entry for entry in ENTRIES if wanted in _names_of(entry))


def similar_names(name: str) -> list[str]:
    """Return the known names that are spelled much like one that is not known."""
    known = {spelled: None for entry in ENTRIES for spelled in _names_of(entry)}
    return get_close_matches(_plain(name), known, 3, 0.7)


def _plain(name: str) -> str:
    return _AROUND.sub("", name.strip().lower().replace("-", "_"))


def _names_of(entry: Entry) -> Iterator[str]:
    match entry:
        case CollectiveKind(name, _, operations, opcodes, fused, calls, partners, transfers, also):
            spelled = (name, *operations, *opcodes, *calls, *partners, *transfers, *also, *(fused or ())[1:])
            yield from map(_plain, spelled)
        case CollectiveRule():
            yield from map(_plain, (*entry.functions, entry.primitive, *entry.aliases))
        case FormerName():
            yield entry.name
