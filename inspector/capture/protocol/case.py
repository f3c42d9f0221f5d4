"""The names of the files of a validation: what the worker writes, and `inspector/evaluate/` reads."""

from __future__ import annotations

SOURCE = "source.hlo"
"""The HLO that the compiler was given."""

OPTIMIZED = "optimized.hlo"
"""The HLO that it returned."""

INPUTS = "inputs.npz"
"""Values of the parameters, `arr_0` and so on, all of each."""

PROGRAM = "program.json"
"""The number of devices, their ids and slices; for each parameter and output its path and its block on each device."""

PASSES = "passes"
"""The folder with the modules after each pass, if they were recorded."""

SMALLER = "smaller"
"""The folder with the case of a smaller program that differs, if one was found."""

UNAVAILABLE = "unavailable.txt"
"""The reason why there is none of these."""
