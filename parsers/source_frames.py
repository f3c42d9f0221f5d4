"""Positions in the user's source files, as compilers record them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a recorded call stack.

    Lines count from 1; columns are as recorded, and JAX records Python's, which count from 0. A line of 0 stands for a
    position that was not recorded, an empty function for a name that was not.
    """

    file: str
    function: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0
