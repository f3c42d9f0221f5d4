"""The last line: the keys that work here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget

ALWAYS = ("help", "leave", "dismiss", "side_by_side")
"""The ends of the actions that are never left out: what teaches the other keys, what leads out, and other targets."""


class Shown(NamedTuple):
    """A key, how it is written, and what it does."""

    key: str
    display: str
    words: str
    tooltip: str
    enabled: bool
    stays: bool

    @property
    def width(self) -> int:
        """Its letters, the blank between key and words, and the one after them."""
        return cell_len(self.display) + cell_len(self.words) + 2


class KeyFooter(Widget):
    """The footer: as many keys as fit; those for help and for leaving are always shown.

    One widget draws them all: Textual's `Footer` makes one for each key, anew whenever the focus moves.
    """

    ALLOW_SELECT = False

    keys: reactive[tuple[Shown, ...]] = reactive(())
    hovered: reactive[str | None] = reactive(None)

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[object]) -> None:
        if self.app.app_focus:
            self.call_after_refresh(self._take)

    def _take(self) -> None:
        if not self.is_attached:  # its screen has been left meanwhile
            return
        actions = {}
        for _, binding, enabled, tooltip in self.screen.active_bindings.values():
            if binding.show and binding.action not in actions:
                display = self.app.get_key_display(binding)
                stays = binding.action.endswith(ALWAYS)
                actions[binding.action] = Shown(binding.key, display, binding.description, tooltip, enabled, stays)
        self.keys = tuple(actions.values())

    def render(self) -> Content:
        return Content(" ").join(self._drawn(each) for each in self._with_room())

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.hovered = event.style.meta.get("key")
        self.tooltip = next((each.tooltip for each in self.keys if each.key == self.hovered), None) or None

    def on_leave(self) -> None:
        self.hovered = None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if (key := event.style.meta.get("key")) is not None:
            self.app.simulate_key(key)

    def _with_room(self) -> Iterable[Shown]:
        room = self.size.width - sum(each.width for each in self.keys if each.stays)
        for each in self.keys:
            if not each.stays:
                room -= each.width
            if each.stays or room >= 0:
                yield each

    def _drawn(self, key: Shown) -> Content:
        over = " on $block-hover-background" if key.key == self.hovered else ""
        dim = "" if key.enabled else " dim"
        content = Content.assemble(
            (key.display, f"bold $footer-key-foreground{over}{dim}"),
            (f" {key.words}", f"$footer-description-foreground{over}{dim}"),
        )
        return content.stylize(Style.from_meta({"key": key.key}))
