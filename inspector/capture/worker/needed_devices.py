"""The number of devices that a script needs, as the exception tells that it raises where there are others."""

from __future__ import annotations

import ast
import linecache
import math
import re
import sys
from types import FrameType
from typing import Any

from . import failures
from .script_objects import attribute

MAX_DEVICES = 1 << 14
"""Nobody simulates more devices in one process."""

MAX_CHAIN = 5

# numpy; jax._src.sharding_impls and mesh_utils (JAX 0.7 to 0.12); XLA's compile of a pmap.
_RESHAPE = r"cannot reshape array of size (\d+) into shape \(([\w, -]*)\)"
_MESH_SHAPE = r"Number of devices \d+ must (?:be >=|equal) the product of mesh_shape \(([\d, ]*)\)"
_REQUIRES = r"requires (\d+) logical devices"

_INDIVISIBLE = (
    r"is partitioned (\d+) times, but (?:the dimension size is|does not evenly divide the dimension size) (\d+)",
    r"should be divisible by (\d+), but it is equal to (\d+)",
    r"but (\d+) does not evenly divide (\d+)",
)  # jax._src: sharding_impls, pjit and shard_map (JAX 0.7 to 0.12)
_SPEAKS = r"(?i)\bdevices\b"
_COUNTS = r"\bdevices\(|device_count"
_NUMBER = r"(?<![\w.])\d+(?![\w.])"
_CONDITION_SPEAKS = r"(?i)device|gpu|tpu|chip|mesh|core|world"

_PURE = (
    ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.operator, ast.Load, ast.Subscript, ast.Call,
)  # fmt: skip
_PURE_CALLS = r"(?:.*\.)?(?:len|prod|(?:local_)?device_count|(?:local_)?devices)"
"""Expressions of a condition that are evaluated again: without effects."""


def needed(error: BaseException) -> int | None:
    """As `_needed`, of an exception or of one in whose place it was raised."""
    current: BaseException | None = error
    for _ in range(MAX_CHAIN):
        if current is None or (number := _needed(current)) is not None:
            return None if current is None else number
        current = attribute(current, "__cause__") or attribute(current, "__context__")
    return None


def _needed(error: BaseException) -> int | None:
    """The number of devices that would have avoided an exception; None where it is not about their number.

    What JAX and NumPy say is understood; of another text that speaks of devices, or a line that counts them, the only
    other number is taken. Where the script compares the number itself, what it compares it with is.
    """
    jax = sys.modules.get("jax")
    message, line = failures.text_of(error), failures.user_line(error)
    condition = _condition(error)
    is_about = re.search(_COUNTS, line) or any(re.search(pattern, message) for pattern in (_RESHAPE, _SPEAKS))
    if jax is None or not (is_about or condition is not None):
        return None
    try:
        count = int(jax.device_count())
    except Exception:  # the backend would not start: that is the error to tell of
        return None
    number = wanted(message, line, count)
    if number is None and condition is not None:
        return _compared_with(*condition, count)
    return number


def fewer(error: BaseException, count: int) -> int | None:
    """A smaller number of devices that divides the dimension which `count` does not; None where it is not about that.

    It is the size of the dimension where that is smaller, else the greatest common divisor.
    """
    text = failures.text_of(error)
    found = next(filter(None, (re.search(pattern, text) for pattern in _INDIVISIBLE)), None)
    if found is None or int(found[1]) != count:
        return None
    size = int(found[2])
    number = size if size < count else math.gcd(size, count)
    return number if 1 < number < count else None


def wanted(message: str, line: str, count: int) -> int | None:
    """The number of devices that the text of an exception, or the line that raised it, wants in place of `count`."""
    number = None
    if (match := re.search(_RESHAPE, message)) and int(match[1]) == count:
        number = _product(match[2])
    elif match := re.search(_MESH_SHAPE, message):
        number = _product(match[1])
    elif match := re.search(_REQUIRES, message):
        number = int(match[1])
    elif re.search(_SPEAKS, message):
        number = _only_other_number(message, count)
    if number is None and re.search(_COUNTS, line):
        number = _only_other_number(line, count)
        if number is not None and "index out of range" in message:
            number += 1
    return _if_possible(number, count)


def _if_possible(number: int | None, count: int) -> int | None:
    return number if number is not None and 0 < number <= MAX_DEVICES and number != count else None


def _product(sizes: str) -> int:
    """The product of sizes; of those that are known, where NumPy is to find one (`newaxis`)."""
    return math.prod(int(size) for size in sizes.split(",") if size.strip().isdecimal())


def _only_other_number(text: str, count: int) -> int | None:
    numbers = {int(number) for number in re.findall(_NUMBER, text)} - {count, 0, 1}
    return numbers.pop() if len(numbers) == 1 else None


def _condition(error: BaseException) -> tuple[ast.expr, FrameType] | None:
    """The condition under which the script raised, if it is about devices: of an assertion, or of an `if` around."""
    frame, line = failures.user_frame(error)
    if frame is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.Assert) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    found = around[-1] if around else None  # the innermost: outer ones are walked through before
    if found is None or not re.search(_CONDITION_SPEAKS, ast.unparse(found)):
        return None
    return found.test, frame


def _compared_with(condition: ast.expr, frame: FrameType, count: int) -> int | None:
    """The number that a condition compares the number of devices with, or that is to divide it."""
    pairs = [
        (node.left, node.comparators[0] if isinstance(node, ast.Compare) else node.right)
        for node in ast.walk(condition)
        if isinstance(node, ast.Compare) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod))
    ]
    for pair in pairs:
        values = [_value(each, frame) for each in pair]
        if count in values:
            other = next((each for each in values if each != count), None)
            if isinstance(other, int) and (number := _if_possible(int(other), count)) is not None and number > 1:
                return number
    return None


def _value(expression: ast.expr, frame: FrameType) -> Any:
    """The value that an expression had in a frame; None where finding it may have effects."""
    nodes = list(ast.walk(expression))
    calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    if not all(isinstance(node, _PURE) for node in nodes) or not all(re.fullmatch(_PURE_CALLS, each) for each in calls):
        return None
    try:
        return eval(compile(ast.Expression(expression), "<string>", "eval"), frame.f_globals, frame.f_locals)
    except Exception:
        return None
