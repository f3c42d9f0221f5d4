"""A trace while its command runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..capture.protocol.trace import CompiledProgram, Inexact, ProcessStarted
from .event_file import EventFiles
from .read import calls_of, program_of, ranked, with_event
from .trace import Process, Program, Trace


class LiveTrace:
    """The records of running processes; the text of each program is read once."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        self._files = EventFiles(folder)
        self._command = tuple(command)
        self._processes: dict[Path, Process] = {}
        self._programs: dict[tuple[Path, int], Program] = {}
        self._inexact: dict[Path, set[int]] = {}

    def read(self) -> Trace:
        """The trace with what is new."""
        for folder, event in self._files.read():
            match event:
                case ProcessStarted():
                    self._processes[folder] = Process(event)
                case CompiledProgram() if folder in self._processes:
                    number = list(self._processes).index(folder)
                    self._programs[folder, event.number] = program_of(number, event, folder, set())
                case Inexact(numbers):
                    self._inexact.setdefault(folder, set()).update(numbers)
            if folder in self._processes:
                self._processes[folder] = with_event(self._processes[folder], event)
        counted = (
            replace(program, calls=calls_of(folder, number, self._inexact.get(folder, set())))
            for (folder, number), program in self._programs.items()
        )
        return Trace(self._command, tuple(self._processes.values()), ranked(counted))
