"""Call sites of helpers, which tell apart the operations of one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...parsers.source import Frame
from .position import SourcePosition, own_frames

ARROW = " ← "

CallSites = Mapping[SourcePosition, SourcePosition]
NO_SITES: CallSites = {}


def call_sites(positions: Iterable[SourcePosition]) -> CallSites:
    """Return, for positions on a line reached by several paths, the line where these diverge: the call of a helper."""
    stacks: dict[tuple[str, int], dict[SourcePosition, tuple[Frame, ...]]] = {}
    for position in positions:
        if frames := own_frames(position.stack):
            stacks.setdefault((frames[0].file, frames[0].line), {})[position] = frames
    found = {}
    for group in stacks.values():
        ways = [[(frame.file, frame.line) for frame in frames] for frames in group.values()]
        depth = next((n for n, lines in enumerate(zip(*ways, strict=False)) if len(set(lines)) > 1), None)
        if depth is not None:
            for position, frames in group.items():
                found[position] = SourcePosition.exact(frames[depth:])
    return found


def with_call_site(sites: CallSites, position: SourcePosition, text: str, script: str | None) -> str:
    """`line 18 ← line 7 gather`; the text alone where nothing has to be told apart."""
    return called_from(sites.get(position), text, script)


def called_from(site: SourcePosition | None, text: str, script: str | None = None) -> str:
    """A text behind its call site, if it has one."""
    return ARROW.join(filter(None, (site.text(script) if site is not None else "", text)))
