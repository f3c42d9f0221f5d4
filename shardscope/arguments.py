"""The arguments of the command line: which commands there are, and what each of them takes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from difflib import get_close_matches
from glob import glob
from pathlib import Path
from typing import NoReturn

from shardscope.commands import SUMMARIES, load
from shardscope.exit_code import ExitCode
from shardscope.samples.catalogue import samples
from shardscope.version import __version__


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line, its command first; argparse ends the process where it is wrong.

    Without a command it is that of `run`: options, a script, and everything after it, which is the script's own.
    argparse takes a script's arguments for ours if options precede their `--`.
    """
    name, own, argv = _split(list(given))
    options, unknown = _parser(name)[0].parse_known_args(own)
    if unknown:
        _refuse_option(options.command_name, " ".join(unknown))
    if argv:
        options.argv = [*options.argv, *argv]
    return options


def _split(given: list[str]) -> tuple[str | None, list[str], list[str]]:
    first = next((argument for argument in given if not argument.startswith("-")), None)
    if first in SUMMARIES and given[0] == first:
        if first != "run" or "--" not in given:
            return first, given, []
        at = given.index("--")
        return first, given[:at], given[at + 1 :]
    if not given or given[0] in ("-h", "--help", "--version"):
        return None, given, []
    at = _place_of_script(given)
    if at == len(given):
        return "run", ["run", *given], []
    script, argv = given[at], given[at + 1 :]
    is_module, is_separated = (at > 0 and given[at - 1] == text for text in ("-m", "--"))
    if script in SUMMARIES and not (is_module or is_separated or os.path.exists(script)):
        return _split([script, *given[:at], *argv])  # its options may be in front of it
    is_path = is_module or any(mark in script for mark in "./:") or os.path.exists(script)
    if not is_path and script not in {each.name for each in samples()}:
        options = [text for action in _options_of("run") for text in action.option_strings]
        unknown = next((text for text in given[:at] if not any(each.startswith(text) for each in options)), None)
        _refuse(script) if unknown is None or not unknown.startswith("-") else _refuse_option("run", unknown)
    before = given[: at - 1] if is_module else given[:at]
    if not is_module and argv[:1] != ["--"] and any(text.startswith("-") for text in argv):
        _note_options(script, argv)
    return "run", ["run", *before, "--", script], argv[1:] if argv[:1] == ["--"] else argv


def _note_options(script: str, argv: Sequence[str]) -> None:
    """Say which arguments of a script, that it does not mention, are options of ours."""
    from shardscope.terminal import say

    known = {text for action in _options_of("run") for text in action.option_strings}
    names = [name for text in argv if (name := text.partition("=")[0]) in known]
    path = script.rpartition(":")[0] or script
    own = Path(path).read_text(errors="replace").replace("-", "_") if names and os.path.isfile(path) else ""
    if foreign := [name for name in names if name.removeprefix("--").replace("-", "_") not in own]:
        say(
            f"shardscope: {os.path.basename(path)} gets {', '.join(foreign)} behind it:"
            " options of shardscope stand in front of the script"
        )


def _place_of_script(given: Sequence[str]) -> int:
    """The position of the first argument that is neither an option of `run` nor the value of one."""
    options = {text: action for action in _options_of("run") for text in action.option_strings}
    at = 0
    while at < len(given) and given[at].startswith("-") and given[at] not in ("-m", "--"):
        known = [action for text, action in options.items() if text.startswith(given[at])]
        action = options.get(given[at]) or (known[0] if known and given[at].startswith("--") else None)
        at += 2 if action is not None and action.nargs != 0 else 1
    return min(at + (given[at : at + 1] in (["-m"], ["--"])), len(given))


def _options_of(name: str) -> Sequence[argparse.Action]:
    parser = argparse.ArgumentParser()
    load(name).configure(parser)
    return parser._actions


def _refuse_option(command: str, text: str) -> NoReturn:
    """Say that a command has no such option, and which is like it; raises SystemExit."""
    known = [each for action in _options_of(command) for each in action.option_strings]
    near = get_close_matches(text.split()[0].partition("=")[0], known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    _Parser(prog=f"shardscope {command}").error(f"unrecognized arguments: {text}{meant}")


def _refuse(text: str) -> NoReturn:
    near = get_close_matches(text, [*SUMMARIES, *(each.name for each in samples()), *glob("*.py")], n=3)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    _Parser(prog="shardscope").error(f"there is no command, script or sample {text!r}{meant}")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors pass the door to the terminal, as they quote what was given."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        from shardscope.terminal import say

        say(f"{self.prog}: {message}{'' if 'did you mean' in message else f'; see {self.prog} --help'}")
        raise SystemExit(ExitCode.USAGE)


ALL = "all"


def parser_of_all() -> tuple[argparse.ArgumentParser, list[argparse.ArgumentParser]]:
    """The parser, and those of all commands."""
    return _parser(ALL)


def _parser(chosen: str | None) -> tuple[argparse.ArgumentParser, list[argparse.ArgumentParser]]:
    configured: list[argparse.ArgumentParser] = []
    parser = _Parser(
        prog="shardscope",
        description="See how JAX shards a function, what it communicates, and from which line.",
        usage="shardscope [OPTIONS] SCRIPT[:FUNCTION] [ARGUMENTS OF THE SCRIPT]\n       shardscope COMMAND …",
        epilog="SCRIPT is a file, a notebook, or -m MODULE; its options are those of `shardscope run`."
        " Try it: shardscope fsdp_tp:grad",
    )
    parser.add_argument("--version", action="version", version=f"shardscope {__version__}")
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, prog="shardscope", dest="command_name"
    )
    for name, summary in SUMMARIES.items():
        subparser = subparsers.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if chosen in (name, ALL):
            command = load(name)
            subparser.description = command.description
            command.configure(subparser)
            subparser.set_defaults(run=command.run)
            configured.append(subparser)
    return parser, configured
