"""Notebooks: their cells have IPython's names, `In[2]`, and not those of the files that it makes up."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest

from .conftest import Python

NOTEBOOK = """
import json, linecache, sys, types

CELLS = {
    1: "from program import *",
    2: "def layer(a, b):\\n    return lax.psum(a @ b, 'y')",
    3: '''
@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def step(a, b):
    return layer(a, b)
step(a, b)''',
}
# The interface of IPython.core.compilerop.CachingCompiler, and the names that ipykernel gives to cells.
files = {f"/tmp/ipykernel_17/{4000 + number}.py": number for number in CELLS}
def format_code_name(file):
    return ("Cell", f"In[{files[file]}]") if file in files else None
compiler = types.SimpleNamespace(format_code_name=format_code_name)
sys.modules["IPython"] = ipython = types.ModuleType("IPython")
ipython.get_ipython = lambda: types.SimpleNamespace(compile=compiler)

import shardscope
sys.modules["__main__"] = main = types.ModuleType("__main__")  # a kernel's has no file
names = vars(main)
def execute():
    for file, number in files.items():
        linecache.cache[file] = (len(CELLS[number]), None, CELLS[number].splitlines(True), file)
        exec(compile(CELLS[number], file, "exec"), names)
"""

INSPECTED = (
    NOTEBOOK
    + """
execute()
report = shardscope.inspect(names["step"], names["a"], names["b"])
places = [each.source for each in (*report.collectives, *report.shardings, *report.variance)]
print(json.dumps({
    "script": report.script,
    "text": report.capture.script_text.data.decode(),
    "from": sorted({(frame.file, frame.line) for place in places for frame in place.stack}),
    "leaks": [str(stage.name) for stage in report.capture.stages if b"ipykernel" in stage.source.data],
}))
"""
)

TRACED = (
    NOTEBOOK
    + """
with shardscope.record("trace"):
    execute()
"""
)


def test_cells_of_an_inspected_function(python: Python, tmp_path: Path) -> None:
    (tmp_path / "notebook.py").write_text(INSPECTED)
    done = python("notebook.py")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["script"] == "In[3]"
    assert printed["text"].startswith("\n@jax.jit")
    assert ["In[2]", 2] in printed["from"]
    # The caller of `layer`; that of `step` is in the cell only where JAX kept the trace of the cell's own call.
    assert ["In[3]", 5] in printed["from"]
    assert {file for file, _ in printed["from"]} <= {"In[2]", "In[3]", str(tmp_path / "notebook.py")}
    assert printed["leaks"] == []


@pytest.mark.once
def test_cells_of_a_recorded_notebook(python: Python, tmp_path: Path) -> None:
    (tmp_path / "notebook.py").write_text(TRACED)
    assert (done := python("notebook.py")).returncode == 0, done.stderr
    listed = python("-m", "shardscope", "open", "trace", "--format", "json")
    assert "ipykernel" not in listed.stdout, listed.stderr
    (step,) = [each for each in json.loads(listed.stdout)["programs"] if "step" in each.values()]
    assert "In[3]" in json.dumps(step)
    report = python("-m", "shardscope", "open", "trace", "--module", "step", "--format", "text", "--details", "all")
    assert report.stdout.startswith("In[3]:step"), report.stderr
    # Older JAX gives what is in a shard_map the line of the call.
    assert "In[2]:2 layer" in report.stdout or jax.__version_info__ < (0, 8)
    assert "ipykernel" not in report.stdout
