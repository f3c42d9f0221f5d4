"""The package as users get it: a wheel made from the source distribution, in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
FOLDERS = ("inspector", "parsers", "samples", "shardscope", "tui")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "tests")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("distributions")
    shutil.copytree(ROOT, folder / "tree", ignore=LEFT_OUT)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "tree"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    (wheel,) = (folder / "dist").glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def installed(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and with the dependencies that are here already."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*command, distributions[1]], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # A path that a .pth file adds is searched for packages, but no editable install in it takes effect.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return python


def test_the_wheel_holds_the_package_and_nothing_else(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = {
        str(path.relative_to(ROOT) if folder == "shardscope" else Path("shardscope") / path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == expected


def test_the_source_distribution_can_be_built_from(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "parsers/hlo.lark", "tui/app.tcss"} <= names


def test_a_sample_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    listed = subprocess.run([installed.parent / "shardscope", "samples"], capture_output=True, text=True, check=True)
    assert "fsdp_tp" in listed.stdout
    rules = subprocess.run([installed.parent / "shardscope", "rules"], capture_output=True, text=True, check=True)
    assert len(rules.stdout.splitlines()) == len(list((ROOT / "inspector/findings/rules").glob("ss*.py")))
    command = [installed, "-m", "shardscope", "run", "fsdp_tp:grad", "--format", "json"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert "site-packages" in report["subject"]["script"]
    assert len([each for each in report["collectives"] if each["stage"] == "hlo"]) >= 18
    assert report["execution"]["ran"]
    assert os.listdir(tmp_path) == []


PROJECT = {
    "parsers/__init__.py": "mine = 'their own parsers'",
    "inspector/__init__.py": "",
    "inspector/collectives.py": "from parsers import mine",
    "tui/__init__.py": "",
    "samples/__init__.py": "",
    "shard.py": "",
    "script.py": """
import jax, jax.numpy as jnp
import inspector.collectives, tui, samples
assert inspector.collectives.mine == 'their own parsers'
mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())
def total(a):
    return jax.lax.psum(a, "x")

total_inputs = (jnp.arange(4.0),)
""",
}


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_a_project_with_packages_of_the_same_names(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    python = request.getfixturevalue("installed") if kind == "wheel" else Path(sys.executable)
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    # With -m the folder is on the path of the front process too.
    command = [python, "-m", "shardscope", "run", "script.py:total", "--format", "json"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert {each["kind"] for each in json.loads(done.stdout)["collectives"]} == {"all-reduce"}


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_the_package_is_whole_at_the_root_of_a_checkout(kind: str, request: pytest.FixtureRequest) -> None:
    python = request.getfixturevalue("installed") if kind == "wheel" else sys.executable
    program = "import shardscope.cli, shardscope.parsers.hlo as hlo, shardscope.tui.app as app; print(hlo.__file__)"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert Path(done.stdout.strip()) == ROOT / "parsers" / "hlo" / "__init__.py"


def test_folders_of_others_are_not_taken_for_its_own(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "shardscope", tmp_path / "shardscope", ignore=LEFT_OUT)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "parsers").mkdir()
    (tmp_path / "parsers" / "__init__.py").write_text("")
    command = [installed, "-c", "import shardscope.parsers"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, check=False)
    assert b"No module named 'shardscope.parsers'" in done.stderr


def test_nothing_generic_can_be_imported(installed: Path, tmp_path: Path) -> None:
    for name in set(FOLDERS) - {"shardscope"}:
        done = subprocess.run([installed, "-c", f"import {name}"], capture_output=True, cwd=tmp_path, check=False)
        assert b"ModuleNotFoundError" in done.stderr, name
