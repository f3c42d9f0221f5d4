"""`shardscope check`: goldens and budgets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from shardscope.inspector.capture.file import save
from shardscope.inspector.capture.spawn import Request, capture
from shardscope.inspector.render.json.diff import check_json_schema

from .conftest import Shardscope
from .test_diff import ARGUMENT, CHANGED, SCRIPT

PUBLISHED = Path(__file__).parent.parent.parent / "docs" / "check.schema.json"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the captures of the script, before and after its change."""
    folder = tmp_path_factory.mktemp("captures")
    for name, text in (("before", SCRIPT), ("kept", CHANGED)):
        (folder / "step.py").write_text(text)
        *_, captured = capture(Request(f"{folder}/step.py:step", args=ARGUMENT[1:], live=False))
        assert captured.complete, captured.failure
        save(captured, folder / f"{name}.shardscope")
    return folder


@pytest.fixture
def kept(captures: Path, tmp_path: Path) -> Path:
    """The changed script's capture, beside it: two all-reduces over tp, both the user's, that send 96 bytes."""
    shutil.copytree(captures, tmp_path, dirs_exist_ok=True)
    return tmp_path / "kept.shardscope"


def test_a_golden(shardscope: Shardscope, kept: Path) -> None:
    script, golden = kept.parent / "step.py", kept.parent / "golden.json"
    check = ("check", "step.py:step", *ARGUMENT, "--golden", "golden.json")
    assert shardscope("check", "kept.shardscope", "--golden", "golden.json", "--update").returncode == 0
    assert json.loads(golden.read_bytes())["schema"] == "shardscope.golden/1"
    renamed = CHANGED.replace("(x)", "(value)").replace("x * ", "value * ").replace("pmax(x", "pmax(value")
    script.write_text(f"\n\n\n# moved\n{renamed}")
    same = shardscope(*check)
    assert same.returncode == 0, same.stdout + same.stderr
    assert same.stdout.startswith(b"passed step.py:step: no change in communication")
    unchanged = shardscope("check", "kept.shardscope", *check[-2:], "--update")
    assert unchanged.stderr.decode().strip() == "golden.json: unchanged"
    script.write_text(SCRIPT)
    differs = shardscope(*check)
    assert differs.returncode == 1
    assert differs.stdout.decode().startswith("FAILED step.py:step: −1 all-reduce over tp: −48 B per device and run")
    again = ("check", "before.shardscope", *check[-2:])
    (document,) = json.loads(shardscope(*again, "--format", "json").stdout)["checks"]
    Draft202012Validator(json.loads(PUBLISHED.read_text())).validate(
        {"schema": "shardscope.check/1", "passed": False, "checks": [document]}
    )
    assert [change["change"] for change in document["changes"]["changes"]] == ["removed"]
    assert "| **failed** | before.shardscope |" in shardscope(*again, "--format", "markdown").stdout.decode()
    assert shardscope(*check, "--update").returncode == 0
    assert shardscope(*check).returncode == 0


@pytest.mark.skipif(msgspec.__version__ < "0.20", reason="older msgspec writes its schemas otherwise")
def test_the_published_schema() -> None:
    assert json.loads(PUBLISHED.read_text()) == check_json_schema()


def test_settings(shardscope: Shardscope, kept: Path) -> None:
    """Without a function, all of the settings are checked; paths are relative to their file."""
    folder = kept.parent
    (folder / "pyproject.toml").write_text(
        """
        [tool.shardscope.check]
        budgets = ["all-gather: none"]
        [tool.shardscope.check.functions."step.py:step"]
        arg = ["f32[8,4]"]
        golden = "goldens/step.json"
        budgets = ["collectives <= 2"]
        """
    )
    (folder / "below").mkdir()
    assert shardscope("check", folder=folder / "below").returncode == 2  # no golden yet
    assert shardscope("check", "--update", folder=folder / "below").returncode == 0
    assert (folder / "goldens" / "step.json").exists()
    done = shardscope("check", "../step.py:step", "--budget", "wire bytes <= 1 kB", folder=folder / "below")
    assert done.returncode == 0, done.stderr
    assert "; 3 budgets kept" in done.stdout.decode()
    over = shardscope("check", "--budget", "all-reduce over tp: 1", folder=folder / "below")
    assert over.returncode == 1
    assert over.stdout.startswith(b"FAILED step.py:step: ")
    assert "step.py:11, in step: return lax.psum(x * lax.pmax(x" in over.stdout.decode()
    settings = folder / "pyproject.toml"
    settings.write_text(settings.read_text().replace("golden =", "goldne ="))
    wrong = shardscope("check", folder=folder)
    assert wrong.returncode == 2
    assert "goldne" in wrong.stderr.decode()


def test_what_the_partitioner_adds_is_implicit(shardscope: Shardscope) -> None:
    done = shardscope("check", "tensor_parallel:loss", "--budget", "no implicit communication")
    assert done.returncode == 1
    shown = done.stdout.decode()
    assert "inserted by the partitioner" in shown
    assert "because " in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to check"),
        (("--update",), "nothing to check"),
        (("--budget", "all-gathr: none"), "all-gathr"),
        (("--budget", "all-reduce: 4", "--update"), "--golden FILE"),
        (("--golden", "none.json"), "none.json"),
        (("--golden", "bad.json"), "is not a golden"),
    ],
)
def test_what_cannot_be_checked(shardscope: Shardscope, kept: Path, arguments: tuple[str, ...], words: str) -> None:
    (kept.parent / "bad.json").write_text('{"schema": "shardscope.golden/1", "collectives": 3}')
    done = shardscope("check", kept.name, *arguments)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
