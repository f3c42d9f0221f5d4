"""Entries of the palette: every key with an action, stages, findings, targets, and lines of the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

from textual.binding import ActiveBinding, Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.keys import format_key
from textual.markup import escape
from textual.system_commands import SystemCommandsProvider

from ..inspector.targets.target import TargetError, parse_target
from .text_view import TextView

MAX_LINES = 20
"""Lines of a text that are offered for one query."""

MAX_CHARACTERS = 120
"""Maximum length of a shown line."""


class Actions(Provider):
    """The keys that do something here, by what they do: first the tabs, last what moves the cursor."""

    def _actions(self) -> Iterator[tuple[Binding, str]]:
        listed = set()
        for active in sorted(self.screen.active_bindings.values(), key=self._rank):
            binding = active.binding
            words = binding.tooltip or binding.description
            if words and active.enabled and binding.action not in listed:
                listed.add(binding.action)
                yield binding, words

    def _rank(self, active: ActiveBinding) -> int:
        is_tab = active.binding.action.startswith("table(")
        return 0 if is_tab else 2 if active.node is self.focused else 1

    async def discover(self) -> Hits:
        for binding, words in self._actions():
            yield DiscoveryHit(f"{words}  ({format_key(binding.key)})", self._run(binding), text=words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for binding, words in self._actions():
            if (score := matcher.match(words)) > 0:
                yield Hit(score, Content.assemble(words, (f"  {format_key(binding.key)}", "dim")), self._run(binding))

    def _run(self, binding: Binding) -> partial[None]:
        return partial(self.app.simulate_key, binding.key)


@runtime_checkable
class HasPlaces(Protocol):
    """A screen that has stages and findings to go to."""

    def places(self) -> Iterator[tuple[str, str | None, Callable[[], None]]]:
        """Return the name of each place, more about it, and the action that goes there."""


class Places(Provider):
    """The stages and the findings."""

    async def discover(self) -> Hits:
        for words, more, go in self.screen.places() if isinstance(self.screen, HasPlaces) else ():
            yield DiscoveryHit(escape(words), go, text=words, help=more and escape(more))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for words, more, go in self.screen.places() if isinstance(self.screen, HasPlaces) else ():
            if (score := matcher.match(words)) > 0:
                yield Hit(score, Content(words), go, help=more and escape(more))


@runtime_checkable
class CapturesAgain(Protocol):
    """A screen over a function that can be compiled for another target."""

    def capture_for(self, target: str) -> None:
        """Compile for it."""


EXAMPLES = ("cpu", "tpu:v5p:2x2x2", "tpu:v6e:2x4", "gpu:h100:8")
"""Targets that are offered; any other can be typed."""


class Targets(Provider):
    """Other targets to compile for."""

    async def search(self, query: str) -> Hits:
        screen, typed = self.screen, query.strip().lower()
        if not isinstance(screen, CapturesAgain):
            return
        matcher = self.matcher(query)
        for target in dict.fromkeys((*EXAMPLES, *filter(_is_target, (typed,)))):
            words = f"compile for {target}"
            if (score := 1.0 if target == typed else matcher.match(words)) > 0:
                yield Hit(score, Content(words), partial(screen.capture_for, target), help="any target can be typed")


def _is_target(text: str) -> bool:
    try:
        parse_target(text)
    except TargetError:
        return False
    return True


class Lines(Provider):
    """A line of the text that has the focus by its number, and lines of all texts by what they say."""

    async def search(self, query: str) -> Hits:
        views = [view for view in self.screen.query(TextView) if view.display and view.index.count]
        focused = self.focused if isinstance(self.focused, TextView) else next(iter(views), None)
        if query.isdecimal() and focused is not None:
            yield Hit(1.0, Content(f"line {query} of {name_of(focused)}"), partial(go_to, focused, int(query) - 1))
            return
        needle = query.lower().encode()
        for view in views if len(query) > 2 else ():
            for line in matching_lines(view, needle):
                words = f"{name_of(view)}:{line + 1}  {view.text_of(line).strip()[:MAX_CHARACTERS]}"
                yield Hit(0.4, Content(words), partial(go_to, view, line))


class Everything(Provider):
    """All entries in one order: what this program can do, and after it what any program of Textual's can."""

    PROVIDERS: ClassVar[Sequence[type[Provider]]] = (Actions, Places, Targets, Lines, SystemCommandsProvider)

    async def discover(self) -> Hits:
        for provider in self.PROVIDERS:
            async for hit in provider(self.screen, self.match_style).discover():
                yield hit

    async def search(self, query: str) -> Hits:
        for provider in self.PROVIDERS:
            async for hit in provider(self.screen, self.match_style).search(query):
                yield hit


def matching_lines(view: TextView, needle: bytes) -> Iterator[int]:
    """The first lines that hold a text."""
    data, position = view.source.data.lower(), 0
    for _ in range(MAX_LINES):
        if (position := data.find(needle, position)) < 0:
            return
        line = view.index.line_at(position)
        yield line
        position = view.index.span(line)[1]


def name_of(view: TextView) -> str:
    """Return the title of a text."""
    return view.source.name.rpartition("/")[2]


def go_to(view: TextView, line: int) -> None:
    """Show a line, as if the user had gone there."""
    view.focus()
    view.move_to(line)
