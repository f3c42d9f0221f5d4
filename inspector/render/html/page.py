"""The file around what is shown, and its look. A script adds filtering, folding and the scale of the
time line; the rest is there without it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files

from .elements import element, text

OWN_PAGE = "body { margin: 0; } body > .shardscope { min-height: 100vh; box-sizing: border-box; }"
"""The background reaches to the end of the window if nothing else is on the page."""


@cache
def style() -> str:
    """The style sheet."""
    return _own("page.css")


@cache
def script() -> str:
    """The script, which a page allows by its hash."""
    return _own("page.js")


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def page(title: str, parts: Iterable[str], links: Iterable[tuple[str, str]] = ()) -> str:
    """A file that needs nothing from elsewhere; `links` are the anchors that can be gone to, with their names."""
    allowed = b64encode(sha256(script().encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{allowed}'"
    )
    listed = "".join(element("a", text(name), href=f"#{anchor}") for anchor, name in links)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{text(title)}</title>\n<style>{OWN_PAGE}</style>\n</head>\n<body>\n"
        f"{fragment([element('nav', listed), *parts])}<script>{script()}</script>\n</body>\n</html>\n"
    )


def fragment(parts: Iterable[str]) -> str:
    """The same to be put into a page of someone else's."""
    inside = "\n".join(parts)
    return f'<div class="shardscope">\n<style>{style()}</style>\n{inside}\n</div>\n'
