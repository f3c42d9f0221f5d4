"""Compare what a function communicates with a golden file and with budgets, for continuous integration.

  shardscope check script.py:step --golden step.golden.json --update       (writes the golden)
  shardscope check script.py:step --golden step.golden.json                (exits with 1 if it differs)
  shardscope check script.py:step --budget 'all-gather over tp: none' --budget 'wire bytes <= 2 GB'
  shardscope check script.py:step --budget 'no implicit communication'
  shardscope check                       (all functions that [tool.shardscope.check] in pyproject.toml names)

A golden holds what is communicated, not names and numbers: it survives a JAX upgrade that communicates the same.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from shardscope.commands.capturing import (
    add_capture_options,
    add_validation_option,
    beginning,
    capture_side,
    complain,
    request_of,
    settings_of,
)
from shardscope.commands.job import policy_of
from shardscope.commands.output import add_output_options, exit_code, output_of, reported_last, write_rendered
from shardscope.configuration import Devices, Found, validated
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.model import CaptureError
from shardscope.inspector.capture.output_file import OutputError, check_writable, written
from shardscope.inspector.capture.protocol.request import Request, is_file, split_function
from shardscope.inspector.check.budget import parse_budget
from shardscope.inspector.check.golden import golden_of, read_golden
from shardscope.inspector.check.verdict import judge
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.renderers import renderer
from shardscope.inspector.report.policy import Policy
from shardscope.inspector.report.verdict import Budget, Verdict
from shardscope.parsers.record import Record
from shardscope.terminal import progress, say


class Check(Record, frozen=True):
    """One function, by the name that it is reported by, and what it is checked against; `request` is its capture."""

    name: str
    function: str
    request: Request
    golden: Path | None
    budgets: tuple[Budget, ...]
    policy: Policy


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("function", nargs="?", help="a function, a saved capture, a text, or a folder of dumps")
    parser.add_argument("--golden", metavar="FILE", help="the golden file to compare with")
    parser.add_argument("--update", action="store_true", help="write golden files instead of comparing")
    parser.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="TEXT",
        help="an upper limit on communication; see docs/check.md",
    )
    add_capture_options(parser)
    add_validation_option(parser)
    add_output_options(parser, "verdicts", screen=False)


def run(options: argparse.Namespace) -> ExitCode:
    """Capture, check, report."""
    checks = _checks(options)
    if options.update and not any(check.golden for check in checks):
        raise CaptureError("--update needs the golden file to write: --golden FILE, or [tool.shardscope.check]")
    for check in checks if options.update else ():
        if check.golden is not None:
            _prepare(check.golden)
    goldens = [None if check.golden is None or options.update else read_golden(str(check.golden)) for check in checks]
    verdicts, code = [], ExitCode.DONE
    with ExitStack() as stack:
        for check, golden in zip(checks, goldens, strict=True):
            captured = capture_side(check.function, check.request, quiet=options.quiet, begin=beginning(options))
            if (failed := exit_code(captured)) != ExitCode.DONE:
                code = max(code, complain(check.name, captured, failed))
                continue
            with progress(f"checking {check.name}", quiet=options.quiet):
                verdict = judge(check.name, inspect(captured, check.policy), golden, check.budgets)
            if options.update and check.golden is not None:
                with reported_last(stack):
                    _update(check.golden, verdict)
            verdicts.append(verdict)
        _, render = renderer(options.format, "verdicts")
        write_rendered(render, verdicts, output_of(options))
    return max(code, ExitCode.DONE if all(verdict.passed for verdict in verdicts) else ExitCode.FINDINGS)


def _checks(options: argparse.Namespace) -> Sequence[Check]:
    if options.function is not None:
        check = _check(options.function, options.function, options, settings_of(options.function))
        if check.golden is None and not check.budgets and not options.validate:
            wanted = "--golden FILE, --budget TEXT or --validate"
            raise CaptureError(f"nothing to check: give {wanted}, or set them in pyproject.toml")
        return (check,)
    found = settings_of("")
    said = check_settings(found)
    if not said.functions:
        raise CaptureError("name a function to check, here or as [tool.shardscope.check.functions.'script.py:fn']")
    if options.golden is not None:
        raise CaptureError("--golden needs the name of a function")
    return [_check(name, from_settings(name, found), options, found) for name in said.functions]


def _check(name: str, function: str, options: argparse.Namespace, found: Found) -> Check:
    every = check_settings(found)
    said = said_of(function, every, found)
    kept = None if said.golden is None else folder_of(found) / said.golden
    chosen = argparse.Namespace(**vars(options))
    chosen.args = options.args or list(said.arg)
    chosen.inputs = options.inputs or said.inputs
    chosen.devices = options.devices or said.devices
    return Check(
        name=name,
        function=function,
        request=request_of(chosen, function, found, target=options.target or said.target),
        golden=kept if options.golden is None else Path(options.golden),
        budgets=tuple(parse_budget(text) for text in (*every.budgets, *said.budgets, *options.budget)),
        policy=policy_of(found),
    )


def _prepare(path: Path) -> None:
    """Refuse a place to which no golden can be written, in a folder that is there, or that can be made."""
    folder = next((each for each in path.parents if os.path.lexists(each)), path.parent)
    check_writable(folder / path.name if folder != path.parent else path)


def _update(path: Path, verdict: Verdict) -> None:
    """Write a golden, if it says anything else than the one that is there."""
    try:
        kept = judge(verdict.name, verdict.report, read_golden(str(path)), ())
    except CaptureError:
        kept = None
    if kept is not None and not kept.differs:
        word = "unchanged"
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot make {path.parent}: {error.strerror}") from error
        with written(path) as file:
            file.write(golden_of(verdict.found))
        word = "written"
    say(f"{path}: {word}")


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
    """`[tool.shardscope.check]`: `budgets` are of every function, `functions` those that it checks by itself.

    Paths are relative to the file.
    """

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
