"""Report what changed between two lowerings: collectives that were added, removed or changed.

Each side is a function (as `run` takes it), a saved capture, a text of StableHLO or HLO, or a folder of dumps. Names,
numbers, source positions and the order of operations are ignored.

  shardscope diff before.shardscope after.shardscope
  shardscope diff script.py:step --git main                        (that commit against the files as they are)
  shardscope diff script.py:step --python-a old/bin/python --python-b new/bin/python
  shardscope diff script.py:step --target-a tpu:v5p:2x2x1 --target-b gpu:h100:4
  shardscope diff script.py:step --with check_vma=off              (off in B; --with-a changes A)
  shardscope diff script.py:step --with mesh=x:4,y:2
  shardscope diff script.py:step --pass spmd-partitioning          (the program before and after a pass of XLA's)
  shardscope diff missing_reduce_scatter:faulty missing_reduce_scatter:repaired
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from shardscope.commands.capturing import (
    add_capture_options,
    add_validation_option,
    beginning,
    capture_side,
    complain,
    is_kept,
    request_of,
    settings_of,
)
from shardscope.commands.job import policy_of
from shardscope.commands.output import Output, add_output_options, exit_code, output_of, write_rendered
from shardscope.configuration import whole
from shardscope.exit_code import ExitCode
from shardscope.inspector.capture.children import run as run_program
from shardscope.inspector.capture.model import Capture, CaptureError
from shardscope.inspector.capture.protocol.request import Request, UsageError, is_file, read_overrides, split_function
from shardscope.inspector.capture.scratch import NOTE, Scratch
from shardscope.inspector.diff.diff import diff
from shardscope.inspector.diff.passes import pass_changes
from shardscope.inspector.ir.program import Program
from shardscope.inspector.pipeline import inspect
from shardscope.inspector.render.change_rows import pair_lines
from shardscope.inspector.render.printable import printable
from shardscope.inspector.render.renderers import renderer
from shardscope.inspector.report.changes import Diff, Fingerprint
from shardscope.parsers.record import Record
from shardscope.terminal import progress, say


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("before", metavar="A", help="a function, a saved capture, a text, or a folder of dumps")
    parser.add_argument("after", metavar="B", nargs="?", help="same as A; without it, A with the options of B")
    parser.add_argument("--git", metavar="REV", help="take A from this commit, in a temporary checkout")
    for side in "ab":
        parser.add_argument(f"--target-{side}", metavar="TARGET", help=f"target to compile {side.upper()} for")
        parser.add_argument(f"--python-{side}", metavar="PATH", help=f"the interpreter that captures {side.upper()}")
        parser.add_argument(
            *([f"--with-{side}"] if side == "a" else ["--with", "--with-b"]),
            action="append",
            default=[],
            type=_change,
            dest=f"with_{side}",
            metavar="CHANGE",
            help=f"override in {side.upper()}: check_vma=on, check_vma=off, axis_types=auto, mesh=x:2,y:4",
        )
    add_capture_options(parser)
    parser.add_argument(
        "--around",
        type=whole(0, 10_000),
        default=0,
        metavar="N",
        help="show the program text around the N largest changes",
    )
    parser.add_argument(
        "--pass", dest="pass_name", metavar="PASS", help="show what this XLA pass changes in A: its name or number"
    )
    parser.add_argument("--live", action="store_true", help="run both sides, and compare the values of their outputs")
    add_validation_option(parser)
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when communication differs")
    add_output_options(parser, "diff")


def run(options: argparse.Namespace) -> ExitCode:
    """Get both sides, compare, show."""
    if options.pass_name is not None:
        return _of_pass(options)
    after = options.after or options.before
    per_side = (options.git, options.target_a, options.target_b, options.python_a, options.python_b)
    per_side += (*options.with_a, *options.with_b)
    if options.after is None and not any(per_side):
        raise CaptureError("nothing to compare with: give B, or one of --git, --target-b, --python-b, --with")
    with ExitStack() as stack:
        request = _request(options, options.before, "a")
        if options.git is not None:
            request = _at_revision(request, options.before, options.git, stack)
        # Settings that say what they may not are reported before anything is captured.
        policies = policy_of(settings_of(options.before)), policy_of(settings_of(after))
        begin = beginning(options)
        one = capture_side(options.before, request, quiet=options.quiet, begin=begin)
        if (failed := exit_code(one)) != ExitCode.DONE:
            return complain("A", one, failed)
        other = capture_side(after, _request(options, after, "b"), quiet=options.quiet, begin=begin)
        if (failed := exit_code(other)) != ExitCode.DONE:
            return complain("B", other, failed)
        with progress("comparing", quiet=options.quiet):
            found = diff(*map(inspect, (one, other), policies))
    found = replace(
        found,
        before=_titled(found.before, [*filter(None, [options.git]), *options.with_a]),
        after=_titled(found.after, options.with_b),
    )
    write_diff(found, output_of(options))
    is_wrong = options.validate and _validated(one, other)
    return ExitCode.FINDINGS if is_wrong or (options.exit_code and found.communication_differs) else ExitCode.DONE


def _validated(one: Capture, other: Capture) -> bool:
    """Report whether both sides compute what was written, and the same; return whether one does not."""
    lines = list(pair_lines(one.validation, other.validation))
    say("\n".join(printable(line.text) for line in lines))
    return any(line.role == "error" for line in lines)


def _of_pass(options: argparse.Namespace) -> ExitCode:
    request = replace(_request(options, options.before, "a"), passes="communication", live=False)
    one = capture_side(options.before, request, quiet=options.quiet)
    if (failed := exit_code(one)) != ExitCode.DONE:
        return complain("A", one, failed)
    with progress("comparing", quiet=options.quiet):
        changes = pass_changes(Program(one))
    named = [
        each for number, each in enumerate(changes, 1) if options.pass_name in (each.name, each.pipeline, str(number))
    ]
    if len(named) != 1:
        listed = ", ".join(f"{number} {each.name} ({each.pipeline})" for number, each in enumerate(changes, 1))
        how_many = f"{len(named)} passes are" if named else "no pass that changes communication is"
        raise CaptureError(f"{how_many} called {options.pass_name!r}; by number: {listed or 'none'}")
    write_diff(named[0].diff, output_of(options))
    return ExitCode.FINDINGS if options.exit_code and named[0].diff.communication_differs else ExitCode.DONE


def _request(options: argparse.Namespace, function: str, side: str) -> Request:
    target, python, overrides = (getattr(options, f"{name}_{side}") for name in ("target", "python", "with"))
    found = settings_of(function)
    return request_of(options, function, found, target=target, python=python, overrides=overrides)


def write_diff(found: Diff, output: Output) -> None:
    """Show a diff on the screen, or write it."""
    if output.format == "tui":
        from shardscope.tui.app import show_diff

        show_diff(found)
        return
    _, render = renderer(output.format, "diff")
    write_rendered(render, found, output)


def _at_revision(request: Request, given: str, revision: str, stack: ExitStack) -> Request:
    place, name = split_function(given)
    if is_kept(given):
        raise CaptureError(f"--git takes a function of a script from another commit, but {given} is not a function")
    script = Path(place).resolve() if is_file(place) else None
    checkout = stack.enter_context(checked_out(revision, Path.cwd() if script is None else script.parent))
    directory = checkout.counterpart(Path.cwd())
    if script is None:
        return replace(request, directory=None if directory is None else str(directory))
    moved = checkout.counterpart(script)
    if moved is None or not moved.is_file():
        raise CaptureError(f"{revision} has no {place}")
    function = f"{moved}:{name}" if name else str(moved)
    return replace(request, function=function, directory=str(directory or moved.parent))


def _change(text: str) -> str:
    """Parse a change of `--with`; unknown ones are refused before anything is captured."""
    try:
        read_overrides((text,))
    except UsageError as error:
        raise argparse.ArgumentTypeError(": ".join(filter(None, (str(error), error.hint)))) from None
    return text


def _titled(side: Fingerprint, notes: Sequence[str]) -> Fingerprint:
    return replace(side, title=", ".join((side.title, *notes)))


NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
"""Options that keep the repository's hooks from running on this checkout."""


class Checkout(Record, frozen=True):
    """The repository at `top`, and the commit in the folder `tree`."""

    top: Path
    tree: Path

    def counterpart(self, path: Path) -> Path | None:
        """Return the file of the commit for `path` in the repository; None for a path outside."""
        path = path.resolve()
        return self.tree / path.relative_to(self.top) if path.is_relative_to(self.top) else None


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Checkout]:
    """A worktree of a commit of the repository around a folder, as long as the block runs.

    Raises:
        CaptureError: there is no git, no repository around the folder, or no such commit.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel")).resolve()
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    common = Path(top, _git(top, "rev-parse", "--git-common-dir")).resolve()
    with Scratch() as parent:
        (parent / NOTE).write_text(str(common))  # by which it is taken out of the repository again, whatever happens
        tree = parent / (top.name or "tree")
        _git(top, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        yield Checkout(top, tree)


def _git(folder: Path, *arguments: str) -> str:
    try:
        git = run_program(["git", *NO_HOOKS, *arguments], folder=folder)
    except OSError as error:
        raise CaptureError(f"cannot run git: {error.strerror}") from error
    if git.status:
        raise CaptureError(f"git {arguments[0]} {arguments[-1]}: {os.fsdecode(git.stderr).strip()}")
    return os.fsdecode(git.stdout).strip()
