"""Chips as data: what is in `tpu.toml` and `gpu.toml`, each figure with its source."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from ...parsers.record import Record

Platform = Literal["tpu", "gpu"]
PLATFORMS: tuple[Platform, ...] = ("tpu", "gpu")


class Figure(Record, frozen=True):
    """A number about a chip, and where it is published."""

    value: float
    source: str


class Chip(Record, frozen=True, eq=False):
    """One kind of chip. `kinds` are the device kinds by which JAX knows it.

    `figures` are in bytes, seconds, and FLOPs per second, per chip; `facts` are what a compiler needs to know.
    """

    name: str
    platform: Platform
    title: str
    kinds: tuple[str, ...]
    figures: Mapping[str, Figure]
    facts: Mapping[str, Any]

    def figure(self, name: str) -> float:
        """The value of a figure that every chip of the platform has."""
        return self.figures[name].value

    def integer(self, name: str) -> int:
        """A whole number among the facts."""
        return int(self.facts[name])

    def text(self, name: str) -> str:
        """A text among the facts; empty where there is none."""
        return str(self.facts.get(name, ""))


@cache
def chips_of(platform: Platform) -> Mapping[str, Chip]:
    """The known chips of a platform by name."""
    data = tomllib.loads(files(__package__).joinpath(f"{platform}.toml").read_text("utf-8"))
    sources = data.pop("sources")
    common = data.pop("common", {})
    return {name: _chip(name, platform, {**common, **fields}, sources) for name, fields in data.items()}


def chip_of_kind(kind: str) -> Chip | None:
    """The chip that JAX calls `device_kind`; None for one that is not known."""
    known = (chip for platform in PLATFORMS for chip in chips_of(platform).values())
    return next((chip for chip in known if kind in chip.kinds), None)


def _chip(name: str, platform: Platform, fields: dict[str, Any], sources: Mapping[str, str]) -> Chip:
    figures = {
        key: Figure(float(value[0]), sources[value[1]])
        for key, value in fields.items()
        if isinstance(value, list) and len(value) == 2 and value[1] in sources
    }
    facts = {key: value for key, value in fields.items() if key not in figures}
    return Chip(name, platform, facts["title"], kinds=tuple(facts["kinds"]), figures=figures, facts=facts)
