"""Cells of notebooks by the names that IPython has for them: `In[3]` for a file like `/tmp/ipykernel_17/4031.py`."""

from __future__ import annotations

import json
import linecache
import sys
from collections.abc import Mapping

from ..protocol.wire import Frame


def names_of_cells() -> Mapping[str, str]:
    """The names of the cells that were executed in this process, by what Python takes for their files."""
    loaded = sys.modules.get("IPython")
    shell = None if loaded is None else loaded.get_ipython()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if name_of is None:
        return {}
    named = ((file, name_of(file)) for file in tuple(linecache.cache) if isinstance(file, str))
    return {file: name[1] for file, name in named if name is not None}


def with_names_of_cells(frame: Frame, cells: Mapping[str, str]) -> Frame:
    """The frame of an event with the names of cells in the places of files, which stand for nothing else."""
    event, text = frame
    for file, name in cells.items():
        text = text.replace(file.encode(), name.encode())
        written = json.dumps(event)
        inside, instead = json.dumps(file)[1:-1], json.dumps(name)[1:-1]
        event = json.loads(written.replace(inside, instead)) if inside in written else event
    return Frame(event, text)
