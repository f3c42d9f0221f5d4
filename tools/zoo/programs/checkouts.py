"""Modules of checkouts of public repositories, which are in the folder that $ZOO_CHECKOUTS names."""

import importlib.util
import json
import os
import sys
import types
from contextlib import suppress

FOLDER = os.environ["ZOO_CHECKOUTS"]


def importable(*folders):
    """Let what is in these folders be imported."""
    sys.path[:0] = [os.path.join(FOLDER, folder) for folder in folders]


def script(path, lines=None):
    """The module that a script is, or that the first of its lines are."""
    name = os.path.basename(path).removesuffix(".py").replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with open(spec.origin) as file:
        text = "".join(file.readlines()[:lines])
    exec(compile(text, spec.origin, "exec"), vars(module))
    return module


def notebook(path, last=None):
    """What the cells of a notebook leave behind, all in one module, or those up to the one of this number.

    Cells that fail are left: some show an error.
    """
    with open(os.path.join(FOLDER, path)) as file:
        cells = json.load(file)["cells"]
    module = types.ModuleType("notebook")
    sys.modules["notebook"] = module
    for cell in cells[: None if last is None else last + 1]:
        if cell["cell_type"] == "code" and not "".join(cell["source"]).startswith("%%"):
            with suppress(Exception):
                exec(compile("".join(cell["source"]), path, "exec"), vars(module))
    return module
