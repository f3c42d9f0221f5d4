"""Modules of checkouts of public repositories, which are in the folder that $ZOO_CHECKOUTS names."""

import importlib.util
import os
import sys

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
