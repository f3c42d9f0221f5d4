"""The package as users get it: a wheel made from the source distribution, in an environment of its own."""

from __future__ import annotations

import importlib.metadata
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
from packaging.requirements import Requirement

from tests.sweeps import sampled

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
FOLDERS = ("inspector", "parsers", "samples", "shardscope", "tui")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "tests")

MAX_BYTES = 80_000_000
"""Limit of an environment without JAX."""


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


def test_indexes_accept_the_distributions(distributions: tuple[Path, Path]) -> None:
    for command in (("twine", "check", "--strict", *distributions), ("check_wheel_contents", distributions[1])):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def without_jax(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment with the wheel, and only the packages that it requires, linked from here."""
    folder = tmp_path_factory.mktemp("without_jax")
    venv.create(folder, with_pip=False, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--no-index", distributions[1]], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (own,) = importlib.metadata.distributions(name="shardscope", path=[str(packages)])
    for distribution in required_by(own):
        for file in distribution.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                (packages / file).symlink_to(file.locate())
    return folder


def required_by(distribution: importlib.metadata.Distribution) -> list[importlib.metadata.Distribution]:
    """The distributions that are installed with one, without extras."""
    found: dict[str, importlib.metadata.Distribution] = {}
    todo = [distribution]
    while todo:
        for text in todo.pop().requires or ():
            requirement = Requirement(text)
            if (requirement.marker is None or requirement.marker.evaluate({"extra": ""})) and (
                requirement.name not in found
            ):
                found[requirement.name] = importlib.metadata.distribution(requirement.name)
                todo.append(found[requirement.name])
    return list(found.values())


def test_it_is_small_without_jax(without_jax: Path) -> None:
    names = {path.name for path in without_jax.glob("lib/python*/site-packages/*")}
    assert not names & {"jax", "jaxlib", "numpy", "scipy"}
    assert sum(path.stat().st_size for path in without_jax.rglob("*") if path.is_file()) < MAX_BYTES


def test_an_environment_without_jax(without_jax: Path, tmp_path: Path) -> None:
    environment = {"PATH": "/no/such/folder", "HOME": str(tmp_path)}
    folder = tmp_path / "inner"
    folder.mkdir()

    def shardscope(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [without_jax / "bin" / "shardscope", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env=environment | more, timeout=120, check=False
        )

    none = shardscope("run", "psum", "--format", "text")
    assert none.returncode == 2
    assert f"no JAX found in {without_jax}/bin/python" in none.stdout
    assert "pip install 'shardscope[jax]'" in none.stdout
    (tmp_path / "script.py").write_text("import jax\n")
    assert "no JAX found" in shardscope("trace", "../script.py").stderr

    active = shardscope("run", "psum", "--save", "a.shardscope", "--format", "text", VIRTUAL_ENV=sys.prefix)
    assert active.returncode == 0, active.stdout + active.stderr
    assert f"jax {importlib.metadata.version('jax')} in {sys.prefix}/bin/python" in active.stdout
    (tmp_path / ".venv").symlink_to(sys.prefix)
    above = shardscope("run", "psum", "--save", "b.shardscope", "--format", "json")
    assert above.returncode == 0, above.stderr
    (tmp_path / ".venv").unlink()

    opened = shardscope("open", "b.shardscope", "--format", "json")
    assert json.loads(opened.stdout)["collectives"] == json.loads(above.stdout)["collectives"]
    (folder / "a.hlo").write_text(shardscope("open", "a.shardscope", "--stage", "hlo").stdout)
    differing = shardscope("diff", "a.hlo", "a.hlo", "--format", "json")
    assert differing.returncode == 0, differing.stderr
    for command in (("rules",), ("explain", "psum"), ("samples",)):
        assert shardscope(*command).returncode == 0


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


@pytest.mark.parametrize("kind", sampled(["wheel", "editable"], 1))
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
