"""Syntax trees of Python."""

from __future__ import annotations

import ast
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shardscope.parsers.python import expression_in, module_in

SOURCE = Path(ast.__file__).read_text()


class _Slow:
    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0.0005)  # another thread goes on


def test_trees_are_those_of_python_in_any_thread() -> None:
    """Python 3.11 loses count of their depth where two threads make some and the garbage collector runs."""

    def texts(_: int) -> list[str]:
        _Slow()
        return [ast.dump(module_in(SOURCE)), ast.dump(expression_in("P('x', None)"))]

    before = gc.get_threshold()
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(texts, range(30)))
    finally:
        gc.set_threshold(*before)
    wanted = [ast.dump(ast.parse(SOURCE)), ast.dump(ast.parse("P('x', None)", mode="eval").body)]
    assert all(each == wanted for each in found)
