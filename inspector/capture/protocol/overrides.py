"""What `--with` changes of a program: `check_vma=on|off` of every shard_map, `mesh=x:2,y:4` of every mesh."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .request import UsageError

EXPECTED = "expected check_vma=on, check_vma=off, or mesh=x:2,y:4"


@dataclass(frozen=True, slots=True)
class Overrides:
    """The changes; `texts` are them as they were written, by what is changed."""

    check: bool | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)


def read_overrides(texts: Iterable[str]) -> Overrides:
    """Return the changes that are written so; of two to the same thing the last counts.

    Raises:
        UsageError: one of them is none of those that there are.
    """
    read = Overrides()
    for text in texts:
        name, _, value = text.partition("=")
        if name == "check_vma" and value in ("on", "off"):
            read = replace(read, check=value == "on")
        elif name == "mesh":
            read = replace(read, sizes=_sizes(text, value))
        else:
            raise UsageError(f"{text!r} is nothing that can be changed from outside", EXPECTED)
        read.texts[name] = text
    return read


def _sizes(text: str, value: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in value.split(","):
        name, _, size = part.partition(":")
        if not name or not size.isdecimal() or not 0 < int(size) < 1 << 20:
            raise UsageError(f"{text!r}: {part!r} is no axis with its size", EXPECTED)
        sizes[name] = int(size)
    return sizes
