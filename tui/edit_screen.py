"""The part of the screen that closes the loop with the editor: capture again, compare, copy, try a fix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from ..inspector.capture.model import Capture, CaptureError
from ..inspector.render.headline import headline
from ..inspector.render.printable import printable
from ..inspector.report import Finding, Report
from ..inspector.report.analyses import Analyses
from ..inspector.report.changes import Diff
from ..inspector.report.places import Selection
from .copying import LINE, copies, whole_text
from .diff_screen import ComparingScreen
from .edit_loop import PERIOD_S, EditLoop, files_of
from .entry_details import Selected
from .feed import Feed
from .reading_screen import ChoiceScreen, ReadingScreen
from .suggest_screen import SuggestScreen
from .text_view import TextView

LONGEST_S = 3600.0
"""Seconds that a message may stay, until what it announces has come."""

NO_REQUEST = "Only functions and scripts can be captured again."


class EditScreen(ComparingScreen):
    """A screen over a capture that may be made again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "rerun", "rerun", tooltip="capture again; this report stays until it ends"),
        Binding("d", "compare", "diff", tooltip="what differs from the run before, or between targets"),
        Binding("y", "copy", "copy", tooltip="copy what is selected"),
        Binding("S", "suggest", "suggest", show=False, tooltip="search for shardings that send or hold less"),
        Binding("A", "apply", "apply fix", show=False, tooltip="apply the fix in a copy, and show what it changes"),
    ]

    capture: reactive[Capture] = reactive(Capture())
    report: reactive[Report | None] = reactive(None)
    selected: reactive[Selected | None] = reactive(None)
    linked: reactive[Selection | None] = reactive(None)
    changed: reactive[str | None] = reactive(None)
    """A file that was saved since it was captured."""
    failed: reactive[Capture | None] = reactive(None)
    """A later run that failed: what is shown is older than the source."""

    def __init__(self, feed: Feed, analyses: Analyses, loop: EditLoop | None = None) -> None:
        super().__init__()
        self._feed = feed
        self._analyses = analyses
        self._edit_loop = loop
        self._run_before: Report | None = None
        self._run_shown = self._run_told = feed.runs
        self.rerunning = ""

    def on_mount(self) -> None:
        if self._edit_loop is not None:
            self.set_interval(PERIOD_S, self._look_at_files)

    @property
    def requested(self) -> Sequence[str]:
        """The function and the target that were asked for; nothing of what was captured before."""
        request = None if self._edit_loop is None else self._edit_loop.request
        return () if request is None else (os.path.basename(request.function), request.target)

    @property
    def line(self) -> str:
        raise NotImplementedError

    def settle(self) -> None:
        """Say anew what is going on."""
        raise NotImplementedError

    def _look_at_files(self) -> None:
        if self._edit_loop is None or (self.rerunning and not self._edit_loop.watch):
            return
        self.changed = self._edit_loop.changed()
        if self.changed is not None and self._edit_loop.watch:
            self.rerunning = ""  # the run of what was saved before is of no use
            self.action_rerun()

    def action_rerun(self) -> None:
        if self._edit_loop is None:
            self.notify(NO_REQUEST)
        elif not self.rerunning:
            self._edit_loop.note()
            self.changed, self.rerunning = None, "rerun: starting Python"
            self._feed.rerun(self._edit_loop.begin)
            self.settle()

    def watch_report(self, report: Report | None) -> None:
        if self._edit_loop is not None and report is not None:
            self._edit_loop.learn(report.capture, files_of(report))

    @on(Feed.Failed)
    def _has_failed(self, event: Feed.Failed) -> None:
        """Leave the last good report on the screen, and say why there is none of what was saved since."""
        self.rerunning, self.failed = "", event.capture
        self.app.clear_notifications()  # they are of runs before
        if self._edit_loop is not None:
            self._edit_loop.learn(event.capture)
        self.settle()
        failure = event.capture.failure
        if failure is not None:
            place = next(iter(failure.stack), None)
            where = "" if place is None else f"\n{os.path.basename(place.file)}:{place.line} {place.function}"
            self.notify(printable(f"{failure.message}{where}"), severity="error", timeout=LONGEST_S, markup=False)

    def capture_for(self, target: str) -> None:
        if self._edit_loop is not None and not self.rerunning:
            self._edit_loop.request = replace(self._edit_loop.request, target=target)
        self.action_rerun()

    @on(Feed.Rerunning)
    def _is_rerunning(self, event: Feed.Rerunning) -> None:
        self.rerunning = f"rerun: {event.phase}"
        self.settle()

    def took_another_run(self) -> bool:
        """Return whether the arriving capture belongs to another run than the shown one."""
        if self._feed.runs == self._run_shown:
            return False
        self._run_shown, self.rerunning, self.failed = self._feed.runs, "", None
        self.app.clear_notifications()
        if self.capture.complete:
            self._run_before = self.report
        return True

    @work(thread=True, exclusive=True, group="compare", description="comparing")
    def tell_what_changed(self, after: Report) -> None:
        before = self._run_before
        if before is None or after.capture.failure is not None or self._run_told == self._run_shown:
            return
        self._run_told = self._run_shown
        with suppress(CaptureError):  # they have no stage in common
            words = f"{headline(before.diff_to(after))}\nd shows what differs"
            self.app.call_from_thread(self.notify, words, title="since the run before", markup=False)

    async def action_compare(self) -> None:
        """Show what differs from the run before; else what the application can compare."""
        if self._run_before is not None and self.report is not None:
            self.app.clear_notifications()
            self.show_diff(partial(self._run_before.diff_to, self.report))
        elif self.app.check_action("diff", ()):
            await self.run_action("app.diff")
        elif self.rerunning:
            self.notify("The rerun goes on; there is nothing to compare with before it has ended.")
        else:
            self.notify("There is no other run to compare with: r captures again." if self._edit_loop else NO_REQUEST)

    def action_suggest(self) -> None:
        """Search for other shardings of the program."""
        if self._edit_loop is None:
            self.notify(NO_REQUEST)
        elif self.report is None or self.report.capture.failure is not None or not self.report.capture.complete:
            self.notify("There is no report to search from yet.")
        else:
            self.app.push_screen(SuggestScreen(self.report, self._edit_loop.request, self._analyses.suggest))

    def action_copy(self) -> None:
        """Copy what is selected; where several texts are of use, ask which."""
        if self.report is None:
            return
        view = self.focused if isinstance(self.focused, TextView) else None
        line = self.line if view is None else view.text_of(view.cursor)
        parts = [*copies(self.report, self.selected, self.linked, line), *whole_text(view)]
        if view is not None:
            parts.sort(key=lambda part: part[0] != LINE)
        names: dict[str, str] = {}
        for name, text in parts:
            names.setdefault(text, name)
        found = [(name, text) for text, name in names.items()]
        if not found:
            self.notify("The selection has nothing to copy.")
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                name, text = found[number]
                self.app.copy_to_clipboard(text)
                self.notify(f"copied {name}: {len(text):,} characters")

        if len(found) == 1:
            chosen(0)
        else:
            self.app.push_screen(ChoiceScreen("copy", found), chosen)

    def read(self, finding: Finding) -> None:
        """Show a finding on the whole screen, and do with it what is wanted then."""
        report = self.report
        if report is None or finding not in report.findings or not self.is_current:
            return
        screen = ReadingScreen(report, report.findings, report.findings.index(finding))

        def done(what: str | None) -> None:
            if what == "apply":
                self._apply(report, screen.finding)
            elif what == "code":
                self.show_code(screen.finding)

        self.app.push_screen(screen, done)

    def show_code(self, what: Selected) -> None:
        raise NotImplementedError

    def action_apply(self) -> None:
        if isinstance(self.selected, Finding) and self.report is not None:
            self._apply(self.report, self.selected)
        else:
            self.notify("Select a finding to apply its fix.")

    def _apply(self, report: Report, finding: Finding) -> None:
        if self._edit_loop is None:
            self.notify(NO_REQUEST)
            return
        words = f"Capturing with the fix of {finding.rule} in a copy of the source …"
        self.notify(words, timeout=LONGEST_S)
        request = self._edit_loop.request

        def applied() -> Diff:
            found = self._analyses.changes_by(finding, report, request)
            self.app.call_from_thread(self.app.clear_notifications)
            return found

        self.show_diff(applied)
