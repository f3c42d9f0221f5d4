"""Opening the line of the source in the user's editor."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from shardscope.inspector.capture.model import Capture
from shardscope.inspector.ir.program import Program
from shardscope.tui.navigation import NoEditorError, editor_command

from .conftest import Opened
from .test_looks import kept


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("vi", "code", "subl"):
        (tmp_path / name).touch(mode=0o755)
    return {"PATH": str(tmp_path)}


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vi", ["vi", "+7", "/there/-x;$(id).py"]),
        ("code --wait", ["code", "--wait", "--goto", "/there/-x;$(id).py:7"]),
        ("subl -n", ["subl", "-n", "/there/-x;$(id).py:7"]),
    ],
)
def test_the_command(environment: dict[str, str], editor: str, command: list[str]) -> None:
    """The file is one word of it, whatever it is called."""
    assert editor_command({**environment, "EDITOR": editor}, "/there/-x;$(id).py", 7) == command
    assert editor_command({**environment, "EDITOR": "none", "VISUAL": editor}, "/there/-x;$(id).py", 7) == command
    assert os.path.isabs(editor_command({**environment, "EDITOR": editor}, "-x.py", 7)[-1].partition(":")[0])


@pytest.mark.parametrize("editor", ["", "nothing --like it", "vi 'unclosed"])
def test_no_editor(environment: dict[str, str], editor: str) -> None:
    with pytest.raises(NoEditorError, match="EDITOR"):
        editor_command({**environment, "EDITOR": editor}, "x.py", 1)


def test_whose_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's capture opens no files but those under the working directory."""
    (tmp_path / "here").mkdir()
    for name in ("mine.py", "here/below.py"):
        (tmp_path / name).write_text("x = 1")
    (tmp_path / "here" / "linked.py").symlink_to(tmp_path / "mine.py")
    monkeypatch.chdir(tmp_path / "here")
    own, foreign = Program(Capture()), Program(replace(Capture(), foreign=True))
    names = [str(tmp_path / "mine.py"), "below.py", "linked.py", "/dev/zero", "nothing.py"]
    assert [own.file_on_disk(name) is not None for name in names] == [True, True, True, False, False]
    assert [foreign.file_on_disk(name) is not None for name in names] == [False, True, False, False, False]


async def test_the_key(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal to give away, and no file, nothing is started."""
    monkeypatch.setenv("EDITOR", "false")
    async with opened(kept(), size=(120, 40)) as driver:
        await driver.ready()
        await driver.press("e")
        assert "not on disk" in next(iter(driver.app._notifications)).message
