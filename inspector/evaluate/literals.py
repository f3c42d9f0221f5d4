"""Constants: the text in the parentheses as an array."""

from __future__ import annotations

import re

import numpy as np

from ...parsers.hlo import HloType, TupleShape
from .element_types import Value, array_type, converted, numpy_type
from .errors import NotEvaluatedError

_REMARK = re.compile(r"/\*.*?\*/")
_WORD = re.compile(r"\([^()]*\)|[^\s,{}]+")


def literal(text: str, type: HloType) -> Value:
    """The value of a constant.

    Raises:
        NotEvaluatedError: the text leaves elements out.
    """
    if isinstance(type, TupleShape):
        raise NotEvaluatedError("a constant tuple")
    shape = array_type(type)
    text = _REMARK.sub("", text)
    if "..." in text:
        raise NotEvaluatedError("the text does not have the constant's elements")
    words = _WORD.findall(text)
    element = numpy_type(shape)
    if element.kind == "b":
        array = np.array([word in ("true", "1") for word in words], bool)
    elif element.kind == "c":
        array = np.array([complex(*map(float, word[1:-1].split(","))) for word in words], element)
    elif element.kind in "iu":
        array = np.array([int(word) for word in words], element)
    else:
        array = np.array([np.nan if "nan" in word else float(word) for word in words], element)
    array = converted(array, shape.dtype)
    return np.broadcast_to(array.reshape(()), shape.dims) if array.size == 1 else array.reshape(shape.dims)
