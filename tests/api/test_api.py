"""`shardscope.inspect` and the assertions, from a program of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest

from .conftest import Python

TELLS_LINES = pytest.mark.skipif(
    jax.__version_info__ < (0, 10), reason="older JAX gives what is in a shard_map the line of the call"
)

INSPECTING = """
import json, shardscope
from program import *

report = shardscope.inspect(matmul, a, b)
(collective,) = [c for c in report.collectives if c.stage == "hlo"]
page = report._repr_html_()
shardscope.assert_collectives(report, all_reduce=1, all_gather={}, reduce_scatter=0)
again = shardscope.assert_collectives(matmul, a, b, all_reduce={"y": 1}, all_gather=0)
shardscope.assert_no_implicit_communication(matmul, a, b)

def refused(call):
    try:
        call()
    except AssertionError as error:
        return str(error)

try:
    shardscope.inspect(lambda x: x @ x, jnp.ones((2, 3)))
except TypeError as error:
    raised = str(error)

print(json.dumps({
    "axes": list(map(str, collective.axes)),
    "line": collective.source.frame.line,
    "files": sorted({frame.file.rpartition("/")[2] for c in report.collectives for frame in c.source.stack}),
    "stages": [stage.name for stage in report.capture.stages],
    "complete": report.capture.complete,
    "origins": any(value.spec for value in report.shardings),
    "page": page,
    "same": len(again.collectives) == len(report.collectives),
    "other axis": refused(lambda: shardscope.assert_collectives(report, all_reduce={"x": 1})),
    "implicit": refused(lambda: shardscope.assert_no_implicit_communication(columns_whole, x)),
    "raised": raised,
    "runs": float(matmul(a, b)[0, 0]),
    "cache": jax.config.jax_enable_compilation_cache,
}))
"""


@pytest.mark.once
@TELLS_LINES
def test_a_program_that_inspects_itself(python: Python, tmp_path: Path) -> None:
    (tmp_path / "inspecting.py").write_text(INSPECTING)
    done = python("inspecting.py")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["axes"] == ["y"]
    assert told["line"] == 12
    assert told["files"] == ["inspecting.py", "program.py"]
    assert told["stages"] == ["jaxpr", "stablehlo", "sdy", "hlo-before", "hlo-spmd", "hlo"]
    assert told["complete"]
    assert told["origins"]
    assert "all-reduce" in told["page"]
    assert told["page"].startswith('<div class="shardscope">')
    assert told["same"]
    assert told["other axis"].splitlines() == [
        "expected 1 all-reduce over x, found none",
        "expected 0 all-reduces over y, found 1:",
        "  all-reduce over y, f32[2,4], 32 B sent per device, written here",
        f'    {tmp_path}/program.py:12, in matmul: return lax.psum(a @ b, "y")',
    ]
    implicit = told["implicit"].splitlines()
    assert implicit[0] == "1 collective that the source does not request:"
    assert implicit[1].endswith("inserted by the partitioner")
    assert "program.py:16, in columns_whole" in implicit[2]
    assert implicit[3].strip().startswith("because ")
    assert "contracting dimensions" in told["raised"]
    assert told["runs"] == 16
    assert told["cache"] is True


GOLDEN_TEST = """
from program import *

def test_matmul(shardscope_golden):
    shardscope_golden(matmul, a, b, budgets=["all-gather: none"])

def test_two(shardscope_golden):
    shardscope_golden(matmul, a, b, golden_name="mat mul")
    shardscope_golden(columns_whole, x, golden_name="columns")
"""


@pytest.fixture
def tested(python: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Python:
    (tmp_path / "test_golden.py").write_text(GOLDEN_TEST)
    # Whether the package's entry point is installed or not: once, and from this tree.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugin = ("-p", "shardscope.pytest_plugin", "-p", "no:cacheprovider")
    return lambda *arguments: python("-m", "pytest", "-q", *plugin, *arguments)


@pytest.mark.once
@TELLS_LINES
def test_goldens_of_tests(tested: Python, tmp_path: Path) -> None:
    missing = tested("-k", "matmul")
    assert missing.returncode == 1
    assert "run `pytest --shardscope-update` to write it" in missing.stdout
    assert tested("--shardscope-update").returncode == 0
    goldens = tmp_path / "__shardscope__" / "test_golden"
    assert sorted(path.name for path in goldens.iterdir()) == [
        "test_matmul.json",
        "test_two-columns.json",
        "test_two-mat-mul.json",
    ]
    held = tested()
    assert held.returncode == 0, held.stdout
    program = tmp_path / "program.py"
    program.write_text(program.read_text().replace('lax.psum(a @ b, "y")', 'lax.psum(lax.pmax(a @ b, "y"), "y")'))
    broken = tested("-k", "matmul")
    assert broken.returncode == 1
    assert "FAILED matmul: +1 all-reduce over y" in broken.stdout
    assert f'{program}:12, in matmul: return lax.psum(lax.pmax(a @ b, "y"), "y")' in broken.stdout
    assert "Traceback" not in broken.stdout
    assert "pytest --shardscope-update" in broken.stdout


def test_the_entry_point_is_the_plugin() -> None:
    import tomllib

    settings = tomllib.loads((Path(__file__).parent.parent.parent / "pyproject.toml").read_text())
    assert settings["project"]["entry-points"]["pytest11"] == {"shardscope": "shardscope.pytest_plugin"}


LOADING = """
import json, shardscope
from program import *

text = matmul.lower(a, b).compile().as_text()
open("f.hlo", "w").write(text)
reports = [shardscope.load(given) for given in ("f.hlo", text, text.encode())]
print(json.dumps([[(each.kind, each.stage) for each in report.collectives] for report in reports]))
"""


def test_reports_of_files_and_texts(python: Python, tmp_path: Path) -> None:
    (tmp_path / "loading.py").write_text(LOADING)
    done = python("loading.py")
    assert json.loads(done.stdout) == [[["all-reduce", "hlo"]]] * 3, done.stderr
