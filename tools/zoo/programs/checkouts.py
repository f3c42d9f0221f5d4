"""Modules of checkouts of public repositories, which are in the folder that $ZOO_CHECKOUTS names."""

import importlib.util
import json
import os
import sys
import types

FOLDER = os.environ["ZOO_CHECKOUTS"]


def importable(*folders):
    """Let what is in these folders be imported."""
    sys.path[:0] = [os.path.join(FOLDER, folder) for folder in folders]


def script(path):
    """The module that a script is."""
    name = os.path.basename(path).removesuffix(".py").replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def notebook(path):
    """What the cells of a notebook leave behind, all in one module."""
    with open(os.path.join(FOLDER, path)) as file:
        cells = json.load(file)["cells"]
    module = types.ModuleType("notebook")
    sys.modules["notebook"] = module
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), path, "exec"), vars(module))
    return module
