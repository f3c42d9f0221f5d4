"""The program that a capture recorded: the owner of all that is parsed and derived of it, and of its source files."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...parsers.hlo import HloModule
from ...parsers.mlir import MlirModule
from ...parsers.sharding_syntax.mesh import MeshSyntax
from ...parsers.source import Source
from ..capture.model import Capture, Device
from .jaxpr_text import JaxprText
from .meshes import KeyedMeshes, devices_of, keyed_meshes_of, meshes_of, partition_count
from .stage import ParsedStage


class Program:
    """All that is read of one capture. Everything is read on first use, nothing twice, and all is freed with it.

    Analyses keep their results in `derived`, or in that of the stage that they are about: see `derived.py`.
    """

    def __init__(self, capture: Capture, read: Iterable[ParsedStage] = ()) -> None:
        """`read` are stages that were read before; those that the capture has are taken as they are."""
        self.capture = capture
        self.derived: dict[Hashable, object] = {}
        known = {id(each.stage): each for each in read}
        self.stages = tuple(known.get(id(stage)) or ParsedStage(stage) for stage in capture.stages)
        self._files: dict[str, SourceFile | None] = {}

    def grown(self, capture: Capture) -> Program:
        """The program of a later state of the same capture. The stages that both have are read once."""
        if capture is self.capture:
            return self
        found = Program(capture, self.stages)
        if capture.script_text is self.capture.script_text:
            found._files, found.script = self._files, self.script
        return found

    def stage(self, name: str) -> ParsedStage | None:
        """The stage of that name, if it was reached."""
        return next((stage for stage in self.stages if stage.name == name), None)

    def hlo(self, name: str) -> HloModule | None:
        """The module of HLO of that stage, if there is one that can be read."""
        stage = self.stage(name)
        return None if stage is None else stage.hlo

    def mlir(self, name: str) -> MlirModule | None:
        """The module of MLIR of that stage, if there is one that can be read."""
        stage = self.stage(name)
        return None if stage is None else stage.mlir

    @property
    def jaxpr(self) -> JaxprText | None:
        """The jaxpr, if there is one that can be read."""
        stage = self.stage("jaxpr")
        return None if stage is None else stage.jaxpr

    @cached_property
    def meshes(self) -> tuple[MeshSyntax, ...]:
        """The meshes, over partition numbers."""
        return meshes_of(self.capture.subject, self.stages)

    @cached_property
    def keyed_meshes(self) -> KeyedMeshes:
        """The meshes that arguments and results name, over partition numbers."""
        return keyed_meshes_of(self.capture.subject)

    @cached_property
    def declared_partitions(self) -> int:
        """Number of partitions; 0 where none is declared."""
        return partition_count(self.capture.subject, self.stages, self.meshes)

    @property
    def partitions(self) -> int:
        """Number of partitions; 1 where none is declared."""
        return self.declared_partitions or 1

    @cached_property
    def devices(self) -> tuple[Device, ...]:
        """The device of each partition; none where they are fake."""
        return devices_of(self.capture.subject)

    def file(self, name: str) -> SourceFile | None:
        """The file that a stack frame names, as it was captured or is on disk; None where there is none to be had."""
        if name not in self._files:
            is_script = self.script is not None and os.path.normpath(self.script.name) == os.path.normpath(name)
            self._files[name] = self.script if is_script else self.file_on_disk(name)
        return self._files[name]

    def file_on_disk(self, name: str) -> SourceFile | None:
        """The file as it is on disk; of other people's captures only one under the working directory."""
        try:
            return file_on_disk(name) if not self.capture.foreign or _is_below(name, os.getcwd()) else None
        except FileNotFoundError:  # the working directory is gone
            return None

    @cached_property
    def script(self) -> SourceFile | None:
        """The script as it was captured."""
        text = self.capture.script_text
        return None if text is None else SourceFile(text.name, text.data, captured=True)


MAX_BYTES = 4 << 20
"""A capture names files, and what it names must not fill the memory."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceFile(Source):
    """The text of a file; `captured` where it was recorded, and not read from disk."""

    captured: bool = False
    derived: dict[Hashable, object] = field(default_factory=dict, repr=False)


def _is_below(name: str, folder: str) -> bool:
    try:
        return Path(os.path.realpath(name)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):  # a name that no file can have
        return False


def file_on_disk(name: str) -> SourceFile | None:
    """A Python file that is there. Devices and pipes, which a crafted capture may name, are never opened."""
    if not name.endswith(".py"):
        return None
    try:
        status = os.stat(name)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        with open(name, "rb") as opened:
            return SourceFile(name, opened.read(MAX_BYTES))
    except (OSError, ValueError):
        return None
