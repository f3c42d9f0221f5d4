"""How a Python interpreter is started with a module of the worker, without installing anything in it."""

from __future__ import annotations

from pathlib import Path

FOLDER = str(Path(__file__).parents[2])
"""The folder that is loaded as a package: of `inspector/`, the worker imports `capture/protocol/` beside itself."""

PACKAGE = "_shardscope"

LOAD = f"""\
import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
import importlib.util, os
folder, entry, hello = sys.argv[1:4]
if hello:
    text = '{{"event":"hello","python":"%d.%d.%d"}}' % sys.version_info[:3]
    os.write(int(hello), ("%d 0\\n%s" % (len(text), text)).encode())
if sys.version_info < (3, 10):
    sys.exit(1)
spec = importlib.util.spec_from_file_location("{PACKAGE}", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
module, _, function = entry.partition(":")
getattr(importlib.import_module("{PACKAGE}.capture.worker." + module), function or "main")(*sys.argv[4:])
"""
"""Run with `python -c LOAD folder module[:function] hello arguments…`.

The working directory, which `-c` puts first on `sys.path`, goes before anything is imported: a `json.py` that lies
there must not be taken for the standard library's. Where `hello` is a file descriptor, the first frame is written
to it by hand, so that whoever waits knows that this is Python, and which, even if nothing else works.
"""


def command(python: str, entry: str, *arguments: str, hello: str = "") -> list[str]:
    """The command line that runs a function of the worker: `module:function`, or `module` for its `main`."""
    return [python, "-c", LOAD, FOLDER, entry, hello, *arguments]
