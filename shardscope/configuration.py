"""`[tool.shardscope]` in the pyproject.toml above a script: what holds where the command line says nothing.

Numbers have bounds in both: what is beyond them on the command line ends in one line and exit status 2.
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta, Struct

from shardscope.parsers.errors import ShardscopeError
from shardscope.parsers.record import Record

FILE = "pyproject.toml"
TABLE = "tool.shardscope"
MAX_DEVICES = 1 << 14
MAX_TIMEOUT_S = 1 << 24
MAX_BYTES = 4 << 20
"""Bytes of a file that is read."""

Severity = Literal["error", "warning", "info"]
"""Severities of findings; not imported from the report, as a capture begins before that is imported."""

_T = TypeVar("_T")

_Rules = Annotated[tuple[str, ...], Meta(description="a list of rules, as in ['SS01', 'psum-of-invariant']")]

Devices = Annotated[
    Annotated[int, Meta(ge=1, le=MAX_DEVICES)] | None,
    Meta(description=f"a number of fake CPU devices, at most {MAX_DEVICES:,}"),
]


class Configuration(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The settings' table; None, or nothing, where unset. `check` is for `shardscope check`."""

    target: Annotated[str | tuple[str, ...] | None, Meta(description="a target, or a list of them")] = None
    devices: Devices = None
    python: Annotated[str | None, Meta(description="the path of an interpreter")] = None
    live: Annotated[bool | None, Meta(description="true or false")] = None
    timeout: Annotated[
        Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_S)] | None, Meta(description="a number of seconds")
    ] = None
    select: _Rules | None = None
    ignore: _Rules = ()
    fail_on: Annotated[Severity | None, Meta(description="'error', 'warning' or 'info'")] = None
    strict: Annotated[bool, Meta(description="true or false")] = False
    verify: Annotated[bool, Meta(description="true or false")] = False
    per_path_ignores: Annotated[
        dict[str, tuple[str, ...]], Meta(description="a table of lists of rules, as in {'tests/*' = ['SS04']}")
    ] = {}
    thresholds: Annotated[
        dict[str, Annotated[float, Meta(ge=0)]], Meta(description="a table of numbers, as in {SS12 = 1e6}")
    ] = {}
    check: Annotated[dict[str, Any], Meta(description="a table")] = {}


class Found(Record, frozen=True):
    """A configuration, and the file that it is from; None where there was none."""

    configuration: Configuration
    file: Path | None = None

    @property
    def python(self) -> str | None:
        """The interpreter, its path being relative to the file."""
        python = self.configuration.python
        return str(self.file.parent / python) if python and self.file and os.path.dirname(python) else python


def configuration_above(start: Path) -> Found:
    """The configuration in the first pyproject.toml from a file, or a folder, upwards that has one.

    Raises:
        ShardscopeError: it is no TOML, or not what is expected; the text says where, and what is.
    """
    try:
        path = start.absolute()
    except FileNotFoundError:  # the working directory is gone
        path = start
    for folder in (path, *path.parents):
        file = folder / FILE
        table = _table(file) if file.is_file() else None
        if table is not None:
            return Found(validated(file, TABLE, table, Configuration), file)
    return Found(Configuration())


def validated(file: Path, name: str, table: Mapping[str, Any], kind: type[_T]) -> _T:
    """A table as a `msgspec.Struct` whose fields have descriptions of what they hold.

    Raises:
        ShardscopeError: it is not one; the text names the file, the key, and what was expected.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ShardscopeError(f"{file}: {_explained(str(error), name, table, kind)}") from None


def _table(file: Path) -> Mapping[str, Any] | None:
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ShardscopeError(f"{file} is larger than {MAX_BYTES >> 20} MiB")
        document = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ShardscopeError(f"{file} is not TOML: {error}") from None
    except (OSError, RecursionError) as error:
        raise ShardscopeError(f"{file} cannot be read: {error}") from None
    table = document.get("tool", {})
    table = table.get("shardscope") if isinstance(table, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ShardscopeError(f"{file}: [{TABLE}]: expected a table, got {table!r}")
    return table


_WHERE = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def _explained(message: str, name: str, table: Mapping[str, Any], kind: type) -> str:
    """msgspec's message in the words of who writes the file."""
    parts = _WHERE.fullmatch(message)
    what, path = (parts[1], parts[2] or "") if parts else (message, "")
    unknown = _UNKNOWN.fullmatch(what)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(kind)}
    if unknown and not path:
        near = difflib.get_close_matches(unknown[1], fields, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(fields)}"
        return f"[{name}]: unknown key {unknown[1]!r}; {hint}"
    key = next((step[1] for step in _STEP.finditer(path) if step[1]), "")
    hints = get_type_hints(kind, include_extras=True)
    metas = _metas(hints.get(fields.get(key, ""), None))
    expected = next((meta.description for meta in metas if meta.description), "")
    value = f", got {table[key]!r}" if key in table else ""
    return f"[{name}] {key}: expected {expected}{value}" if expected else f"[{name}] {key}: {what}"


def _metas(hint: Any) -> Iterable[Meta]:
    for argument in get_args(hint):
        if isinstance(argument, Meta):
            yield argument
        else:
            yield from _metas(argument)


def whole(least: int, most: int, what: str = "a number") -> Callable[[str], int]:
    """A reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or len(text) > len(str(most)) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what} from {least} to {most}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """A time that is more than nothing, and ends."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {MAX_TIMEOUT_S:,}")
    return found


devices = whole(1, MAX_DEVICES, "a number of devices")
