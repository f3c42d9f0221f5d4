"""`[tool.shardscope]`: where it is found, what it changes, and how its faults are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from shardscope.inspector.capture.file import save
from shardscope.parsers.errors import ShardscopeError

from shardscope.commands.job import policy_of
from shardscope.configuration import Configuration, configuration_above, validated
from tests.conftest import SampleCapture

from .conftest import Shardscope


def write(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_the_nearest_file_that_has_the_table(tmp_path: Path) -> None:
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    outer = write(tmp_path, "[tool.shardscope]\nfail-on = 'warning'\n")
    write(tmp_path / "package", "[tool.other]\nfail-on = 3\n")
    found = configuration_above(inner / "script.py")
    assert (found.file, found.configuration.fail_on) == (outer, "warning")
    write(inner, "[tool.shardscope]\nfail-on = 'info'\n")
    assert configuration_above(inner).configuration.fail_on == "info"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    write(tmp_path, "[tool.shardscope]\npython = 'env/bin/python'\n")
    assert configuration_above(tmp_path / "a" / "b").python == str(tmp_path / "env/bin/python")
    write(tmp_path, "[tool.shardscope]\npython = 'python3.13'\n")
    assert configuration_above(tmp_path).python == "python3.13"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.shardscope]\nfail-on = 'worse'", ["fail-on", "'error', 'warning' or 'info'", "'worse'"]),
        ("[tool.shardscope]\nselect = 'SS01'", ["select", "a list of rules", "'SS01'"]),
        ("[tool.shardscope]\nignore = [1]", ["ignore", "a list of rules"]),
        ("[tool.shardscope]\nignore = ['SS99']", ["ignore", "unknown rule 'SS99'", "shardscope rules"]),
        ("[tool.shardscope]\ndevices = 0", ["devices", "a number of fake CPU devices", "0"]),
        ("[tool.shardscope]\nfail_on = 'error'", ["unknown key 'fail_on'", "did you mean 'fail-on'"]),
        ("[tool.shardscope]\nxyz = 1", ["unknown key 'xyz'", "expected one of target, devices"]),
        ("[tool.shardscope.per-path-ignores]\n'a/*' = 'SS01'", ["per-path-ignores", "a table of lists of rules"]),
        ("[tool.shardscope.per-path-ignores]\n'a/*' = ['SS98']", ["per-path-ignores.'a/*'", "unknown rule 'SS98'"]),
        ("[tool.shardscope.thresholds]\nSS01 = 3", ["thresholds", "SS01 missing-reduce-scatter has no threshold"]),
        ("[tool]\nshardscope = 3", ["expected a table", "3"]),
        ("[tool.shardscope]\nx = = 1", ["not TOML", "line 2"]),
    ],
)
def test_faults_name_file_key_and_expectation(tmp_path: Path, text: str, words: list[str]) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ShardscopeError) as raised:
        policy_of(configuration_above(tmp_path))
    for word in (str(file), *words):
        assert word in str(raised.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(Configuration.__struct_encode_fields__) | st.text()


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_whatever_it_holds_is_taken_or_explained(table: dict[str, object]) -> None:
    told = ""
    try:
        validated(Path("pyproject.toml"), "tool.shardscope", table, Configuration)
    except ShardscopeError as error:
        told = str(error)
    assert not told or told.startswith("pyproject.toml: [tool.shardscope]")


class Nested(Struct):
    number: int


def test_what_has_no_words_is_told_in_those_of_msgspec() -> None:
    with pytest.raises(ShardscopeError, match=r"number: Expected `int`, got `str`"):
        validated(Path("x.toml"), "tool.shardscope.check", {"number": "a"}, Nested)


@pytest.fixture
def faulty(sample: SampleCapture, tmp_path: Path) -> str:
    """A saved capture with one note, SS01, whose fix was not tried."""
    path = str(tmp_path / "faulty.shardscope")
    save(sample("missing_reduce_scatter:faulty"), path)
    return path


@pytest.mark.parametrize(
    ("settings", "options", "code"),
    [
        ("fail-on = 'info'", (), 1),
        ("fail-on = 'warning'", (), 0),
        ("fail-on = 'info'\nignore = ['SS01']", (), 0),
        ("fail-on = 'info'\nignore = ['SS01']", ("--ignore", "SS04"), 1),
        ("fail-on = 'error'", ("--fail-on", "info"), 1),
        ("fail-on = 'info'\nselect = ['SS04']", (), 0),
        ("fail-on = 'worse'", (), 2),
    ],
)
def test_what_the_command_line_leaves_open(
    shardscope: Shardscope, tmp_path: Path, faulty: str, settings: str, options: tuple[str, ...], code: int
) -> None:
    write(tmp_path, f"[tool.shardscope]\n{settings}\n")
    assert shardscope("open", faulty, *options).returncode == code


def test_per_path_ignores_are_counted(shardscope: Shardscope, tmp_path: Path, faulty: str) -> None:
    write(tmp_path, "[tool.shardscope.per-path-ignores]\n'*_reduce_scatter.py' = ['SS01']\n")
    done = shardscope("open", faulty, "--fail-on", "info")
    assert done.returncode == 0
    assert b"1 suppressed" in done.stdout
    (known,) = json.loads(shardscope("open", faulty, "--format", "json").stdout)["suppressed"]
    assert known["file"] == str(tmp_path / "pyproject.toml")
    assert known["finding"]["rule"] == "SS01"


def test_defaults_of_a_run(shardscope: Shardscope, tmp_path: Path) -> None:
    folder = tmp_path / "project" / "scripts"
    folder.mkdir(parents=True)
    write(folder.parent, "[tool.shardscope]\ntarget = 'cpu:2'\nlive = false\n")
    (folder / "script.py").write_text("import jax\n\ndef fn():\n    return jax.device_count()\n")
    report = json.loads(shardscope("run", "project/scripts/script.py:fn", "--format", "json").stdout)
    assert (report["subject"]["device_count"], report["execution"]["ran"]) == (2, False)
    arguments = ("run", "project/scripts/script.py:fn", "--target", "cpu:3", "--live", "--format", "json")
    report = json.loads(shardscope(*arguments).stdout)
    assert (report["subject"]["device_count"], report["execution"]["ran"]) == (3, True)
