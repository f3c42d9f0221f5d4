"""Starting a Python interpreter with a module of the worker, without installing anything in it."""

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

SITE = f"""\
def _start():
    import importlib, importlib.machinery, importlib.util, os, sys
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path_importer_cache.pop(here, None)
    try:
        if sys.version_info >= (3, 11):
            folder = {FOLDER!r}
            spec = importlib.util.spec_from_file_location(
                "{PACKAGE}", folder + "/__init__.py", submodule_search_locations=[folder]
            )
            sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[spec.name])
            importlib.import_module("{PACKAGE}.capture.worker.tracing.start").start()
    except Exception as error:
        print("shardscope: this process is not recorded: %s: %s" % (type(error).__name__, error), file=sys.stderr)
    own = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if own is not None:
        sys.modules["sitecustomize"] = importlib.util.module_from_spec(own)
        own.loader.exec_module(sys.modules["sitecustomize"])
_start()
"""
"""A `sitecustomize.py`, which Python imports before a script begins: records the process, then imports the user's own.

The folder that holds it is on PYTHONPATH, for the processes that the script starts, but not on `sys.path`.
"""


def command(python: str, entry: str, *arguments: str, hello: str = "") -> list[str]:
    """The command line that runs a function of the worker: `module:function`, or `module` for its `main`."""
    return [python, "-c", LOAD, FOLDER, entry, hello, *arguments]
