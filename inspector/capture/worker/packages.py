"""The versions of the packages that decide what an interpreter can compile for, as JSON on standard output."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re

WANTED = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d+-(plugin|pjrt)|nvidia-(cuda-nvcc|nvvm)(-cu\d+)?")


def main() -> None:
    """Print them, with the version of Python."""
    found = {"python": platform.python_version()}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"] or "")).lower()
        if WANTED.fullmatch(name):
            found[name] = distribution.version
    print(json.dumps(found))
