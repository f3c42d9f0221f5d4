"""Options that cannot be meant: one line, status 2, and nothing is captured."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from shardscope.arguments import parsed
from shardscope.commands import SUMMARIES, load
from shardscope.commands.output import output_of

from .conftest import Shardscope


@pytest.mark.parametrize(
    "option",
    [
        *("--probe nothing", "--probe 1", "--probe all,none", "--probe="),
        *("--devices 0", "--devices -1", "--devices 100000", "--devices many", "--devices 99999999999999999999"),
        *("--timeout nan", "--timeout inf", "--timeout -1", "--timeout 0", "--timeout soon", "--timeout 1e999"),
        *("--iterations 0-", "--iterations -3", "--iterations x", "--window 1,,2", "--iterations 5-3"),
        *("--iterations 0-1000", "--iterations 0-999,1000", "--iterations 0-999999999", "--seed 2147483648"),
        *("--devices 16385", "--timeout 16777217"),
    ],
)
def test_refused(shardscope: Shardscope, tmp_path: Path, option: str) -> None:
    (tmp_path / "script.py").write_text("import pathlib; pathlib.Path(__file__).with_name('captured').touch()\n")
    done = shardscope("run", "script.py:fn", *option.replace(" ", "=").split())
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert option.split()[0].split("=")[0].encode() in done.stderr
    assert not (tmp_path / "captured").exists()


NO_NUMBERS = ("nan", "-1", "inf", "-inf", "", "1e400", "1e30", "x", "²", "9" * 30, "9" * 5000)
"""What no option takes for a number."""


@pytest.mark.parametrize("name", SUMMARIES)
def test_every_option_has_bounds(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is no text for the command refuses what is no number of its kind."""
    parser = argparse.ArgumentParser(prog="p")
    load(name).configure(parser)
    for action in parser._actions:
        if not action.option_strings or (action.type is None and not action.choices) or action.dest == "details":
            continue
        for value in NO_NUMBERS:
            with pytest.raises(SystemExit) as ended:
                parser.parse_args([f"{action.option_strings[-1]}={value}"])
            assert ended.value.code == 2
            said = capsys.readouterr().err
            assert action.option_strings[-1] in said.splitlines()[-1], value
            assert "Traceback" not in said


@pytest.mark.parametrize("setting", ["timeout = nan", "timeout = inf", "timeout = -1", "devices = 100000"])
def test_refused_in_settings(shardscope: Shardscope, tmp_path: Path, setting: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.shardscope]\n{setting}\n")
    done = shardscope("run", "psum")
    assert done.returncode == 2
    assert setting.split()[0].encode() in done.stderr


def test_ids_of_no_equation(shardscope: Shardscope) -> None:
    done = shardscope("run", "psum", "--probe", "0.0,7.31")
    assert done.returncode == 2
    assert b"the program has no equation 7.31" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--iterations=0-999", tuple(range(1000))),
        ("--iterations=7,3-5", (7, 3, 4, 5)),
        ("--seed=2147483647", 2**31 - 1),
        ("--devices=16384", 16384),
        ("--timeout=16777216", 2.0**24),
    ],
)
def test_the_most_that_is_taken(option: str, value: object) -> None:
    options = vars(parsed(["run", "script.py:fn", option]))
    assert options[option.removeprefix("--").partition("=")[0]] == value


@pytest.mark.parametrize(("port", "taken"), [(65535, True), (65536, False)])
def test_ports(port: int, taken: bool) -> None:
    parser = argparse.ArgumentParser()
    load("serve").configure(parser)
    with nullcontext() if taken else pytest.raises(SystemExit):
        assert parser.parse_args([f"--port={port}", "open", "x"]).port == port


@pytest.mark.parametrize("more", [0, 1])
def test_the_largest_settings(shardscope: Shardscope, tmp_path: Path, more: int) -> None:
    """What is behind the limit may be a part of the table."""
    text = "[tool.shardscope]\ntimeout = 1\n"
    (tmp_path / "pyproject.toml").write_text(text + "#" * ((4 << 20) - len(text) + more))
    done = shardscope("open", "no.capture")
    said = b"pyproject.toml is larger than 4 MiB\n" if more else b"cannot read no.capture: No such file or directory\n"
    assert (done.returncode, done.stderr.endswith(said)) == (2, True), done.stderr


@pytest.mark.parametrize("name", SUMMARIES)
def test_what_a_terminal_gets_is_a_format_of_the_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` has no screen."""
    parser = argparse.ArgumentParser()
    load(name).configure(parser)
    format = next((action for action in parser._actions if "--format" in action.option_strings), None)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if format is not None:
        given = {"diff": ["a.py", "b.py"], "transfer": ["f32[8]", "P()", "P()", "--mesh", "x=2"]}
        options = parser.parse_args(given.get(name, ["a.py"]))
        assert output_of(options).format in (format.choices or ())
        assert ("tui" in (format.choices or ())) == (output_of(options).format == "tui")


@pytest.mark.once
@pytest.mark.parametrize("options", [(), ("--no-live",), ("--format", "text", "--save", "step.shardscope")])
def test_what_follows_two_dashes_is_the_scripts(options: tuple[str, ...]) -> None:
    given = parsed(["run", "step.py:step", *options, "--", "256", "--help"])
    assert (given.function, given.argv) == ("step.py:step", ["256", "--help"])
    assert parsed(["run", *options, "step.py:step"]).argv == []


@pytest.mark.once
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["rnu", "script.py:fn"], "run"),
        (["--selct", "SS01", "script.py:fn"], "--select"),
        (["run", "script.py:fn", "--devises", "8"], "--devices"),
        (["--select", "missing-reduce-scater", "fsdp_tp:grad"], "missing-reduce-scatter"),
        (["--target", "tpu:v5:2x2", "fsdp_tp:grad"], "v5p"),
        (["--select", "SS4", "fsdp_tp:grad"], "SS04"),
        (["explain", "ss4"], "SS04"),
        (["explain", "psum-of-invarient"], "psum-of-invariant or psum_invariant"),
        (["explain", "missing-reduce-scater"], "missing-reduce-scatter"),
    ],
)
def test_did_you_mean(shardscope: Shardscope, arguments: list[str], meant: str) -> None:
    done = shardscope(*arguments)
    assert done.returncode == 2
    assert f"did you mean {meant}" in (done.stdout + done.stderr).decode()


@pytest.mark.once
@pytest.mark.parametrize(
    ("given", "own", "argv"),
    [
        (
            ["train.py:step", "--lr", "0.1", "--devices", "2"],
            {"function": "train.py:step"},
            ["--lr", "0.1", "--devices", "2"],
        ),
        (
            ["--devices", "4", "--no-live", "train.py", "x"],
            {"function": "train.py", "devices": 4, "live": False},
            ["x"],
        ),
        (
            ["-q", "--arg=f32[8]", "-m", "package.train:step", "-m"],
            {"function": "package.train:step", "quiet": True},
            ["-m"],
        ),
        (["run", "a.py:f", "--seed", "3", "--", "--seed", "4"], {"function": "a.py:f", "seed": 3}, ["--seed", "4"]),
        (["--devices", "4", "-m", "trace", "x"], {"function": "trace", "devices": 4}, ["x"]),
        (["--devices", "4", "run", "a.py:f", "--", "x"], {"function": "a.py:f", "devices": 4}, ["x"]),
        (["-v", "./script", "--", "--x"], {"function": "./script", "details": ("all",)}, ["--x"]),
    ],
)
def test_options_end_at_the_script(given: list[str], own: dict[str, object], argv: list[str]) -> None:
    options = parsed(given)
    assert {name: getattr(options, name) for name in own} == own
    assert options.argv == argv


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--details", "findings"], "train.py gets --details behind it"),
        (["-v", "--details=findings", "--target", "tpu"], "train.py gets -v, --details behind it"),
        (["--target", "tpu"], ""),
        (["--", "--details", "findings"], ""),
        (["256"], ""),
    ],
)
def test_options_behind_a_script_are_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    """They are the script's; it is said of those that it does not mention."""
    script = tmp_path / "train.py"
    script.write_text("parser.add_argument('--target')\n")
    assert parsed([f"{script}:step", *given]).argv == given[given[:1] == ["--"] :]
    err = capsys.readouterr().err
    assert said in err if said else not err


@pytest.mark.once
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(shardscope: Shardscope, shell: str) -> None:
    printed = shardscope("completion", shell).stdout.decode()
    assert "ranks" in printed
    assert "check-gradients" in printed
