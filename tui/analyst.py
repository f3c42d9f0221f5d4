"""Everything that takes long, in one thread: reading stages, reports, and what is linked to what.

Reading the text of a large program can take a minute and cannot be called off. The thread is therefore a daemon, so
that leaving the application never waits for it, and there is one only, so that nothing is read twice. Of the requests
of one kind that have come meanwhile only the last is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from textual.message import Message

from ..inspector.capture.model import Capture
from ..inspector.ir.program import Program, SourceFile
from ..inspector.render.table import Table
from ..inspector.report import Collective, Report
from ..inspector.report.analyses import Analyses
from ..inspector.report.places import Place, Selection, StagePlace
from ..parsers.garbage import keep_what_is_there
from ..parsers.record import Record
from ..parsers.source import Source
from .tab_tables import tab_tables

LARGE = 8 << 20
"""Bytes of text of which a report takes seconds."""


IDLE_WAIT_S = 0.5
"""Seconds that the rest of a report waits for other requests."""


class Improve(Protocol):
    """Makes a better report of one that is complete, which may take minutes.

    `tell` hears what is being done, and `show` gets each report that is better than the one before.
    """

    def __call__(self, report: Report, *, tell: Callable[[str], None], show: Callable[[Report], None]) -> Report: ...


class View(Record, frozen=True):
    """One stage as it is to be shown: its text, the collectives in it, and what is linked to the selected place.

    `line` is what stands there, of a place in a stage; `source` the file of its innermost frame in the user's program.
    """

    stage: str
    place: Place | None
    text: Source
    collectives: tuple[Collective, ...]
    linked: Selection | None
    line: str
    source: SourceFile | None


class Analyst:
    """Answers with messages, in the order: reports first, for the views need what is read for them."""

    @dataclass
    class Reported(Message):
        """A report is ready, with its tables; one that is not `whole` is a first look, and has none."""

        report: Report
        whole: bool = True
        tables: Mapping[str, Table] = field(default_factory=dict)

    @dataclass
    class Improving(Message):
        """Work on a better report of a capture; none when that has ended."""

        capture: Capture
        what: str

    @dataclass
    class Viewed(Message):
        """A stage is ready to be shown."""

        view: View

    @dataclass
    class Asked(Message):
        """A pane wants something that takes long: of one `kind` only the last is done. `post` takes the answer."""

        kind: str
        work: Callable[[], Message]
        post: Callable[[Message], object]

    @dataclass
    class Broke(Message):
        """An analysis raised what it should not have."""

        what: str

    def __init__(
        self,
        post: Callable[[Message], object],
        analyses: Analyses,
        improve: Improve | None = None,
    ) -> None:
        """`improve` is done in a thread of its own."""
        self._post = post
        self._analyses = analyses
        self._improve = improve
        self._improved: Capture | None = None
        self._waiting: dict[str, Analyst.Asked] = {}
        self._awake = threading.Condition()
        self._over = False

    @property
    def improves(self) -> bool:
        """Return whether a report of a complete capture is made better."""
        return self._improve is not None

    def start(self) -> None:
        threading.Thread(target=self._run, name="shardscope-analyst", daemon=True).start()

    def stop(self) -> None:
        with self._awake:
            self._over = True
            self._awake.notify()

    def report(self, program: Program) -> None:
        rest = self.Asked("rest", lambda: self._reported(self._analyses.inspect(program)), self._post)
        with self._awake:
            self._waiting.pop("rest", None)
            if _is_large(program):
                self._waiting["rest"] = rest
                look = self._analyses.first_look
                first = self.Asked("report", lambda: self.Reported(look(program), whole=False), self._post)
                self._waiting["report"] = first
            else:
                self._waiting["report"] = rest
            self._awake.notify()

    def view(self, report: Report, stage: str, place: Place | None) -> None:
        self.ask(self.Asked("view", lambda: self.Viewed(view_of(report, stage, place)), self._post))

    def ask(self, request: Asked) -> None:
        """Ask for what a pane wants; what is to be shown at once goes first."""
        with self._awake:
            self._waiting[request.kind] = request
            self._awake.notify()

    def _next(self) -> Asked | None:
        with self._awake:
            # After a first look, what is requested because of it goes before the rest.
            self._awake.wait_for(
                lambda: self._over or self._waiting.keys() - {"rest"},
                timeout=IDLE_WAIT_S if "rest" in self._waiting else None,
            )
            return None if self._over else self._waiting.pop(min(self._waiting, key=_turn))

    def _run(self) -> None:
        while (request := self._next()) is not None:
            post = request.post
            try:
                answer = request.work()
            except Exception as error:
                answer, post = self.Broke(f"{type(error).__name__}: {error}"), self._post
            if not self._over:
                post(answer)
            if self._improve is not None and isinstance(answer, self.Reported) and answer.whole:
                self._begin_to_improve(self._improve, answer.report)

    def _begin_to_improve(self, improve: Improve, report: Report) -> None:
        if _is_over(report) and report.capture is not self._improved:
            self._improved = report.capture
            threading.Thread(target=self._better, args=(improve, report), daemon=True).start()

    def _reported(self, report: Report) -> Reported:
        tables = tab_tables(report)
        if _is_large(report.program) and _is_over(report):
            keep_what_is_there()  # a walk through all of it would stop the keys for half a second, at any time
        return self.Reported(report, tables=tables)

    def _better(self, improve: Improve, report: Report) -> None:
        """Post a better report, unless another capture has come meanwhile."""

        def post(message: Message) -> None:
            if not self._over and self._improved is report.capture:
                self._post(message)

        try:
            better = improve(
                report,
                tell=lambda what: post(self.Improving(report.capture, what)),
                show=lambda now: post(self._reported(now)),
            )
            answer: Message = self._reported(better)
        except Exception as error:
            answer = self.Broke(f"{type(error).__name__}: {error}")
        post(answer)
        post(self.Improving(report.capture, ""))


def _turn(kind: str) -> int:
    return {"report": 0, "view": 1, "rest": 3}.get(kind, 2)


def _is_large(program: Program) -> bool:
    return sum(len(stage.source.data) for stage in program.stages) > LARGE


def _is_over(report: Report) -> bool:
    return report.capture.complete or report.capture.failure is not None


def view_of(report: Report, stage: str, place: Place | None) -> View:
    """The stage, which the capture must have, as it is to be shown."""
    found = report.program.stage(stage)
    if found is None:
        raise KeyError(stage)
    links = None if place is None else report.on_demand.linked(report, place, found)
    frame = links.stack[links.own_frame] if links is not None and links.stack else None
    return View(
        stage=stage,
        place=place,
        text=found.text,
        collectives=report.on_demand.collectives(found),
        linked=links,
        line=_line_at(report, place) if isinstance(place, StagePlace) else "",
        source=None if frame is None else report.program.file(frame.file),
    )


def _line_at(report: Report, place: StagePlace) -> str:
    stage = report.program.stage(place.stage)
    return "" if stage is None else stage.text.text(stage.text.line_around(place.offset))
