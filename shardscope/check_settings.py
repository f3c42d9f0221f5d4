"""`[tool.shardscope.check]`: which functions are checked, against which goldens and budgets.

[tool.shardscope.check]
budgets = ["no implicit communication"]                 # of every function

[tool.shardscope.check.functions."train.py:step"]
golden = "goldens/step.json"
budgets = ["all-gather over tp: none", "wire bytes <= 2 GB"]
target = "tpu:v5p:2x2x1"

Paths are relative to the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from shardscope.configuration import Devices, Found, validated
from shardscope.inspector.capture.protocol.request import is_file, split_function

NAME = "tool.shardscope.check"

_Texts = Annotated[tuple[str, ...], Meta(description="a list of texts")]


class FunctionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one function; None, or nothing, where unset."""

    golden: Annotated[str | None, Meta(description="the path of a file")] = None
    budgets: _Texts = ()
    arg: _Texts = ()
    inputs: Annotated[str | None, Meta(description="a name in the script")] = None
    devices: Devices = None
    target: Annotated[str | None, Meta(description="a target")] = None


class CheckSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table: `budgets` are of every function, `functions` those that `shardscope check` takes by itself."""

    budgets: _Texts = ()
    functions: Annotated[dict[str, FunctionSettings], Meta(description="a table of tables, by function")] = {}


def check_settings(found: Found) -> CheckSettings:
    """The table in the settings that hold; ShardscopeError where it says what it may not."""
    table = found.configuration.check
    return CheckSettings() if found.file is None else validated(found.file, NAME, table, CheckSettings)


def said_of(function: str, said: CheckSettings, found: Found) -> FunctionSettings:
    """Return the settings of a function, however its script's path is written."""
    place = _place(function, Path())
    for name, settings in said.functions.items():
        if name == function or _place(name, folder_of(found)) == place:
            return settings
    return FunctionSettings()


def folder_of(found: Found) -> Path:
    """Return the base of relative paths in the settings."""
    return Path() if found.file is None else found.file.parent


def from_settings(function: str, found: Found) -> str:
    """A function as the settings write it, as it is called from here."""
    place, name = split_function(function)
    return f"{folder_of(found) / place}:{name}" if is_file(place) else function


def _place(function: str, folder: Path) -> tuple[str, str]:
    place, name = split_function(function)
    return (str((folder / place).resolve()) if is_file(place) else place, name)
