"""The part of the main screen that goes from pane to pane, from stage to stage, along what is linked, and back."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import ClassVar

from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widget import Widget

from ..inspector.capture.model import STAGES
from ..inspector.render.finding_facts import where
from ..inspector.render.printable import printable
from ..inspector.render.tables.value_sites import neighbour
from ..inspector.report import Collective, Finding
from ..inspector.report.analyses import Analyses
from ..inspector.report.places import ProbePlace, StagePlace
from ..parsers.record import Record
from .collectives_pane import CollectivesPane
from .edit_loop import EditLoop
from .edit_screen import EditScreen
from .entry_details import Selected
from .feed import Feed
from .inspect_pane import InspectPane
from .overview_pane import OverviewPane
from .prompt import PromptedScreen
from .row_table import RowTable
from .shardings_pane import ShardingsPane
from .stage_pane import SourcePane, StagePane
from .tables_pane import TABS, TablesPane
from .text_view import TextView

MAX_JUMPS = 200


class Stop(Record, frozen=True):
    """A view of the screen: the tab, the stage, what was selected, and the id of what had the focus."""

    tab: str
    stage: str
    selected: Selected | None
    focus: str | None


class Jumps:
    """The stops, and at which of them one is."""

    def __init__(self) -> None:
        self._back: list[Stop] = []
        self._forward: list[Stop] = []

    def leave(self, here: Stop) -> None:
        if not self._back or self._back[-1] != here:
            self._back = [*self._back[-MAX_JUMPS:], here]
        self._forward = []

    def back(self, here: Stop) -> Stop | None:
        return self._move(self._back, self._forward, here)

    def forward(self, here: Stop) -> Stop | None:
        return self._move(self._forward, self._back, here)

    @staticmethod
    def _move(source: list[Stop], target: list[Stop], here: Stop) -> Stop | None:
        if not source:
            return None
        target.append(here)
        return source.pop()


class NavigationScreen(EditScreen):
    """Has the panes, and knows which stage is shown and where one has been."""

    PANES = (SourcePane, StagePane, InspectPane, TablesPane)

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key, f"table('{name}')", label, show=False) for name, (label, key) in TABS.items()),
        Binding("tab", "pane(1)", "pane", tooltip="next pane"),
        Binding("shift+tab", "pane(-1)", "pane before", show=False),
        Binding("less_than_sign", "next_stage(-1)", "stage before", show=False),
        Binding("greater_than_sign", "next_stage(1)", "next stage", show=False),
        Binding("left_square_bracket", "frame(-1)", "inner frame", show=False, tooltip="the frame that was called"),
        Binding("right_square_bracket", "frame(1)", "outer frame", show=False, tooltip="the caller's frame"),
        Binding("c", "next_collective", "next collective", show=False, tooltip="the next collective of this line"),
        Binding("e", "edit", "edit", show=False, tooltip="open the line of the source in $EDITOR"),
        Binding("o", "next_linked", "next linked line", show=False, tooltip="the next line that belongs to it"),
        Binding("comma", "step_in(-1)", "step back", show=False, tooltip="the group, or the iteration, before"),
        Binding("full_stop", "step_in(1)", "step", show=False, tooltip="the next group, or the next iteration"),
        Binding("ctrl+o,alt+left", "jump(-1)", "jump back", show=False),
        Binding("ctrl+i,alt+right", "jump(1)", "jump forward", show=False, tooltip="forward, after a jump back"),
    ]

    stage = reactive("")
    frame_number = reactive(0)
    """The frame of the selected stack that the source pane shows."""

    def __init__(self, feed: Feed, analyses: Analyses, loop: EditLoop | None = None) -> None:
        super().__init__(feed, analyses, loop)
        self.program = feed.latest
        self.stage_chosen = False
        self.place_to_show: StagePlace | None = None
        self.jumps = Jumps()
        self._of_one_line: tuple[Collective, ...] = ()

    def select(self, what: Selected) -> None:
        raise NotImplementedError

    @property
    def here(self) -> Stop:
        focus = None if self.focused is None else self.focused.id
        return Stop(self.query_one(TablesPane).chosen, self.stage, self.selected, focus=focus)

    def action_jump(self, direction: int) -> None:
        stop = self.jumps.back(self.here) if direction < 0 else self.jumps.forward(self.here)
        if stop is None:
            return
        self.query_one(TablesPane).chosen = stop.tab
        self.stage = stop.stage
        if stop.selected is not None:
            self.place_to_show = stop.selected if isinstance(stop.selected, StagePlace) else None
            self.select(stop.selected)
        if stop.focus is not None:
            self.focus_pane(self.query_one(f"#{stop.focus}"))

    def action_stage(self, name: str) -> None:
        self.stage_chosen = True
        self.remove_class("-source")
        self.stage = name
        if self.query_one(StagePane).view.display:
            self.focus_pane(self.query_one(StagePane).view)

    def action_next_stage(self, direction: int) -> None:
        names = list(STAGES)
        here = names.index(self.stage) if self.stage in names else 0
        self.stage_chosen = True
        self.stage = names[(here + direction) % len(names)]

    def action_source(self) -> None:
        self.add_class("-source")
        self.focus_pane(self.query_one(SourcePane).view)

    def action_edit(self) -> None:
        """Open the file and the line that the source pane shows in the user's editor."""
        view = self.query_one(SourcePane).view
        if self.program.file_on_disk(view.source.name) is None:
            self.notify("The file is not on disk, or not under the working directory.", severity="warning")
            return
        try:
            command = editor_command(os.environ, view.source.name, view.cursor + 1)
            with self.app.suspend(), suppress(OSError):
                subprocess.run(command, check=False)
        except NoEditorError as error:
            self.notify(printable(str(error)), severity="warning", markup=False)
        except SuspendNotSupported:
            self.notify("There is no editor in a browser.", severity="warning")

    def action_table(self, name: str) -> None:
        pane = self.query_one(TablesPane)
        self.jumps.leave(self.here)
        pane.chosen = name
        self.focus_pane(pane.shown)
        pane.select()

    def places(self) -> Iterator[tuple[str, str | None, Callable[[], None]]]:
        """Return the destinations of the palette: the stages and the findings."""
        for name, kind in STAGES.items():
            yield f"stage {kind.label}", None, partial(self.action_stage, name)
        for found in () if self.report is None else self.report.findings:
            go = partial(self._go_to_finding, found)
            yield f"{found.rule} {found.slug}  {where(found)}", printable(found.message), go

    def _go_to_finding(self, finding: Finding) -> None:
        self.query_one(TablesPane).go_to("findings", finding)
        self.action_table("findings")

    def action_pane(self, direction: int) -> None:
        source, stage = self.query_one(SourcePane).view, self.query_one(StagePane)
        code = stage.view if stage.view.display else stage.notice_view
        order: list[Widget] = [self.query_one(TablesPane).shown, self.query_one(InspectPane), source, code]
        here = next((number for number, one in enumerate(order) if one.has_focus), -1 if direction > 0 else 0)
        there = order[(here + direction) % len(order)]
        self.set_class(there is source, "-source")
        self.focus_pane(there)

    def focus_pane(self, widget: Widget) -> None:
        """Give a pane the focus; what a narrow screen hides must be shown first."""
        code = widget in self.query_one("#lower").walk_children()
        self.set_class(code, "-code")
        if self.maximized is not None and self.maximized not in widget.ancestors_with_self:
            self.minimize()
        widget.focus()

    def action_frame(self, direction: int) -> None:
        stack = self.linked.stack if self.linked is not None else ()
        if stack:
            self.action_show_frame(min(max(self.frame_number + direction, 0), len(stack) - 1))

    def action_show_frame(self, number: int) -> None:
        stack, self.frame_number = self.linked.stack if self.linked is not None else (), number
        if number < len(stack) and (source := self.program.file(stack[number].file)) is not None:
            pane = self.query_one(SourcePane)
            pane.show(source, captured=source.captured)
            pane.link(frozenset({stack[number].line}), stack[number].line)
        else:
            name = os.path.basename(stack[number].file) if number < len(stack) else "the file"
            self.notify(f"{name} is neither in the capture nor on disk here.", severity="warning", markup=False)

    def action_next_linked(self) -> None:
        """Go to the next of the lines that belong to what is selected, in the text that has the focus or the stage."""
        view = self.focused if isinstance(self.focused, TextView) else self.query_one(StagePane).view
        if not view.linked:
            self.notify("No line of this text belongs to the selection.")
            return
        view.go_to(min((line for line in view.linked if line > view.cursor), default=min(view.linked)))

    def action_step_in(self, direction: int) -> None:
        report, selected = self.report, self.selected
        if not isinstance(selected, ProbePlace) or report is None:
            self.query_one(InspectPane).step(direction)
        elif (number := neighbour(report.probes, selected.number, direction)) is not None:
            self.select(ProbePlace(number))

    def action_next_collective(self) -> None:
        linked, report = self.linked, self.report
        if linked is None or report is None:
            return
        if self.selected not in self._of_one_line:
            shown = linked.stack[self.frame_number : self.frame_number + 1]
            self._of_one_line = report.collectives_of_line(shown[0]) if shown else linked.collectives
        found = self._of_one_line
        if not found or found == (self.selected,):
            self.notify("No other collective comes from this line." if found else "No collective comes from this line.")
            return
        here = found.index(self.selected) if self.selected in found else -1
        self.jumps.leave(self.here)
        self.select(found[(here + 1) % len(found)])

    @classmethod
    def key_sections(cls) -> Sequence[tuple[str, Sequence[BindingType]]]:
        return (
            ("everywhere", (*PromptedScreen.BINDINGS, *EditScreen.BINDINGS, *NavigationScreen.BINDINGS, *cls.BINDINGS)),
            ("in a text", TextView.BINDINGS),
            ("in a table", (*RowTable.BINDINGS, *OverviewPane.BINDINGS)),
            ("in the collectives", CollectivesPane.BINDINGS),
            ("in what is selected", InspectPane.BINDINGS),
            ("in the shardings", ShardingsPane.BINDINGS),
        )


PLUS = ("+{line}", "{file}")
"""Editors that take a line as vi, Emacs, nano and most others in a terminal do."""

ARGUMENTS = {
    **dict.fromkeys(("code", "code-insiders", "codium", "cursor", "windsurf"), ("--goto", "{file}:{line}")),
    **dict.fromkeys(("hx", "helix", "subl", "zed"), ("{file}:{line}",)),
    **dict.fromkeys(("pycharm", "idea", "charm"), ("--line", "{line}", "{file}")),
}
"""Arguments by which other editors take a line."""


class NoEditorError(Exception):
    """The reason why no editor can be started."""


def editor_command(environment: Mapping[str, str], file: str, line: int) -> list[str]:
    """The command that opens a file at a line, which counts from 1, in `$VISUAL` or `$EDITOR`; no shell reads it.

    Raises:
        NoEditorError: neither is set, or it cannot be found.
    """
    words = environment.get("VISUAL") or environment.get("EDITOR") or ""
    try:
        command = shlex.split(words)
    except ValueError as error:
        raise NoEditorError(f"$EDITOR is {words!r}: {error}") from None
    if not command:
        raise NoEditorError("Set $EDITOR to an editor.")
    if shutil.which(command[0], path=environment.get("PATH")) is None:
        raise NoEditorError(f"$EDITOR is {words!r}, which is not installed.")
    # An absolute path is no option, whatever the file is called.
    place = {"file": os.path.abspath(file), "line": line}
    return [*command, *(part.format(**place) for part in ARGUMENTS.get(PurePath(command[0]).name, PLUS))]
