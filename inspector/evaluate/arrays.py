"""Shapes, parts and sums of arrays: `broadcast`, `slice`, `pad`, `dot`, `reduce`, `sort` and the like."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from .arithmetic import REDUCTIONS
from .element_types import TYPES, Array, Value, array_type, converted
from .errors import NotEvaluatedError
from .memory import bitcast
from .operation import Meaning, Operation, integers


def bitcasted(operation: Operation) -> Meaning:
    """`bitcast`."""
    given, wanted = array_type(operation.operand_types[0]), array_type(operation.type)
    return lambda x: bitcast(x, given, wanted)


def broadcast(operation: Operation) -> Meaning:
    """`broadcast`: dimension i of the operand becomes dimension `dimensions[i]`."""
    dims, places = operation.dims, operation.numbers("dimensions")
    if not dims:
        return lambda x: x

    def broadcasted(x: Array) -> Array:
        shape = [1] * len(dims)
        for place, size in zip(places, x.shape, strict=True):
            shape[place] = size
        return np.broadcast_to(x.transpose(np.argsort(places)).reshape(shape) if x.ndim else x, dims)

    return broadcasted


def reshape(operation: Operation) -> Meaning:
    """`reshape`, row-major."""
    dims = operation.dims
    if not dims and not array_type(operation.operand_types[0]).dims:
        return lambda x: x
    return lambda x: x.reshape(dims)


def transpose(operation: Operation) -> Meaning:
    """`transpose`."""
    places = operation.numbers("dimensions")
    return lambda x: x.transpose(places)


def iota(operation: Operation) -> Meaning:
    """`iota`."""
    dims, place = operation.dims, operation.number("iota_dimension", 0)
    shape = [size if each == place else 1 for each, size in enumerate(dims)]
    numbers = np.broadcast_to(converted(np.arange(dims[place]).reshape(shape), operation.dtype), dims)
    return lambda: numbers


_RANGE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


def slice_(operation: Operation) -> Meaning:
    """`slice`."""
    found = _RANGE.findall(operation.attributes.get("slice", ""))
    part = tuple(slice(int(start), int(stop), int(step or 1)) for start, stop, step in found)
    return lambda x: x[part]


def dynamic_slice(operation: Operation) -> Meaning:
    """`dynamic-slice`: the start is moved so that all of the slice is inside."""
    sizes = operation.numbers("dynamic_slice_sizes")
    return lambda x, *starts: x[_inside(starts, x.shape, sizes)]


def dynamic_update_slice(operation: Operation) -> Meaning:
    """`dynamic-update-slice`."""

    def updated(x: Array, update: Array, *starts: Array) -> Array:
        found = np.array(x)
        found[_inside(starts, x.shape, update.shape)] = update
        return found

    return updated


def _inside(starts: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    given = starts if len(starts) == len(shape) else np.asarray(starts[0]).reshape(-1) if starts else ()
    fitting = [min(max(int(start), 0), whole - size) for start, whole, size in zip(given, shape, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(fitting, sizes, strict=True))


def concatenate(operation: Operation) -> Meaning:
    """`concatenate`."""
    place = operation.number("dimensions")
    return lambda *parts: np.concatenate(parts, place)


def reverse(operation: Operation) -> Meaning:
    """`reverse`."""
    places = operation.numbers("dimensions")
    return lambda x: np.flip(x, places)


def pad(operation: Operation) -> Meaning:
    """`pad`: between elements, then at the edges, where a negative number takes elements away."""
    parts = [integers(part) for part in operation.attributes["padding"].split("x")] if operation.dims else []
    low, high, inner = [each[0] for each in parts], [each[1] for each in parts], [(*each, 0)[2] for each in parts]
    return lambda x, value: padded(x, value, low, high, inner)


def padded(x: Array, value: Array, low: Sequence[int], high: Sequence[int], inner: Sequence[int]) -> Array:
    """The array with so many copies of `value` before, behind and between its elements along each dimension."""
    if any(inner):
        spread = np.full(
            [max((size - 1) * (gap + 1) + 1, 0) for size, gap in zip(x.shape, inner, strict=True)], value, x.dtype
        )
        spread[tuple(slice(None, None, gap + 1) for gap in inner)] = x
        x = spread
    if not any(low) and not any(high):
        return x
    kept = [
        slice(max(-before, 0), max(size - max(-after, 0), 0))
        for before, after, size in zip(low, high, x.shape, strict=True)
    ]
    x = x[tuple(kept)]
    found = np.full(
        [max(before, 0) + size + max(after, 0) for before, size, after in zip(low, x.shape, high, strict=True)],
        value,
        x.dtype,
    )
    found[tuple(slice(max(before, 0), max(before, 0) + size) for before, size in zip(low, x.shape, strict=True))] = x
    return found


def dot(operation: Operation) -> Meaning:
    """`dot`: batch dimensions, then those of the left operand that are left, then of the right."""
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    left_batch, right_batch, left, right = map(operation.numbers, names)
    return lambda x, y, *_: product(x, y, (left_batch, right_batch), (left, right), operation.dtype)


def ragged_dot(operation: Operation) -> Meaning:
    """`ragged-dot`: each group of the left operand's rows with a matrix of its own, or summed by itself.

    The groups follow each other along the ragged dimension; without dimensions of groups in the right operand, the
    ragged dimension is contracted, and the result has the groups first.
    """
    names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    left_batch, right_batch, left, right = map(operation.numbers, names)
    ragged, groups = operation.number("lhs_ragged_dims"), operation.numbers("rhs_group_dims")
    if ragged in left_batch or len(groups) > 1 or len(array_type(operation.operand_types[2]).dims) != 1:
        raise NotEvaluatedError("ragged-dot with groups for each batch")
    batch, contracted = (
        (places, tuple(each - (each > groups[0]) for each in others)) if groups else (places, others)
        for places, others in ((left_batch, right_batch), (left, right))
    )

    def multiplied(x: Array, y: Array, sizes: Array) -> Array:
        row = np.arange(x.shape[ragged]).reshape([-1 if place == ragged else 1 for place in range(x.ndim)])
        ends = np.cumsum(sizes)
        parts = []
        for group, (size, end) in enumerate(zip(sizes, ends, strict=True)):
            own = np.where((row >= end - size) & (row < end), x, 0)
            matrix = np.take(y, group, groups[0]) if groups else y
            parts.append(product(own, matrix, batch, contracted, operation.dtype))
        return np.sum(parts, 0, dtype=parts[0].dtype) if groups else np.stack(parts)

    return multiplied


Pair = tuple[tuple[int, ...], tuple[int, ...]]


def product(x: Array, y: Array, batch: Pair, contracted: Pair, name: str) -> Array:
    """The products of two arrays, summed over the contracted dimensions; as one multiplication of matrices."""
    wanted = TYPES[name]
    if wanted.kind in "iu":
        x, y = x.astype(wanted), y.astype(wanted)
    own = [
        [place for place in range(array.ndim) if place not in shared and place not in summed]
        for array, shared, summed in ((x, batch[0], contracted[0]), (y, batch[1], contracted[1]))
    ]
    shape = [x.shape[place] for place in (*batch[0], *own[0])] + [y.shape[place] for place in own[1]]
    many = [x.shape[place] for place in batch[0]]
    length = int(np.prod([x.shape[place] for place in contracted[0]], dtype=np.int64))
    rows = int(np.prod([x.shape[place] for place in own[0]], dtype=np.int64))
    columns = int(np.prod([y.shape[place] for place in own[1]], dtype=np.int64))
    first = x.transpose((*batch[0], *own[0], *contracted[0])).reshape(*many, rows, length)
    second = y.transpose((*batch[1], *contracted[1], *own[1])).reshape(*many, length, columns)
    return converted((first @ second).reshape(shape), name)


def reduce(operation: Operation) -> Meaning:
    """`reduce`, of one array or of several together."""
    places, name = operation.numbers("dimensions"), operation.callee()
    count = len(operation.operand_types) // 2
    simple = operation.simple(name) if count == 1 else None
    rest = [place for place in range(len(array_type(operation.operand_types[0]).dims)) if place not in places]

    def reduced(*operands: Array) -> Value:
        data, initial = operands[:count], operands[count:]
        if simple is not None:
            found = np.asarray(reduced_by(simple, data[0], places))
            return operation.results([combined(simple, found, np.asarray(initial[0]))])
        rows = [x.transpose((*places, *rest)).reshape(-1, *[x.shape[place] for place in rest]) for x in data]
        held: Value = [np.broadcast_to(start, x.shape[1:]) for start, x in zip(initial, rows, strict=True)]
        for number in range(rows[0].shape[0]):
            found = operation.apply(name, *held, *[x[number] for x in rows])
            held = list(found) if isinstance(found, tuple) else [found]
        return operation.results(held)

    return reduced


def combined(opcode: str, x: Array, y: Array) -> Array:
    """Two arrays by the opcode of a reduction."""
    if x.dtype == bool:
        opcode = {"add": "or", "multiply": "and"}.get(opcode, opcode)
    return np.asarray(REDUCTIONS[opcode](x, y))


def reduced_by(opcode: str, x: Array, places: tuple[int, ...]) -> Array:
    """The reduction along some dimensions."""
    if x.dtype == bool:
        opcode = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}.get(opcode, opcode)
    if not x.size and opcode in ("maximum", "minimum"):
        edge = {"f": np.inf, "c": np.inf}.get(x.dtype.kind)
        high = edge if edge is not None else np.iinfo(x.dtype).max
        low = -edge if edge is not None else np.iinfo(x.dtype).min
        return np.full(
            [size for place, size in enumerate(x.shape) if place not in places],
            high if opcode == "minimum" else low,
            x.dtype,
        )
    return REDUCTIONS[opcode].reduce(x, axis=places, **({"dtype": x.dtype} if opcode in ("add", "multiply") else {}))


def map_(operation: Operation) -> Meaning:
    """`map`."""
    name = operation.callee()
    return lambda *operands: operation.apply(name, *operands)


def sort(operation: Operation) -> Meaning:
    """`sort`, by any comparison.

    Most comparisons order by the elements of one or two operands. Such an order is tried, and is right if the
    comparison puts no element before the one that precedes it, as comparisons are transitive.
    """
    place, name = operation.number("dimensions", 0), operation.callee()

    def sorted_(*operands: Array) -> Value:
        columns = [np.moveaxis(x, place, -1) for x in operands]
        order = _order_of(columns, lambda *pairs: operation.apply(name, *pairs))
        return operation.results([np.moveaxis(np.take_along_axis(x, order, -1), -1, place) for x in columns])

    return sorted_


MAX_COMPARED = 4096
"""Maximum length that is sorted by comparisons of neighbours, which takes as many steps."""


def _order_of(columns: list[Array], before: Callable[..., Array]) -> Array:
    for keys, is_reversed in (([0], False), ([0], True), ([0, 1], False), ([1], False), ([1], True)):
        if max(keys) < len(columns):
            order = _stable([columns[key] for key in keys], is_reversed=is_reversed)
            if _is_sorted(columns, order, before):
                return order
    length = columns[0].shape[-1]
    if length > MAX_COMPARED:
        raise NotEvaluatedError(f"sort of {length} elements by a comparison of several operands")
    return _compared(columns, before)


def _stable(keys: list[Array], *, is_reversed: bool) -> Array:
    ranks = [np.where(np.isnan(key), np.inf, key) if key.dtype.kind == "f" else key for key in keys]
    if not is_reversed:
        return np.lexsort(ranks[::-1], axis=-1) if len(ranks) > 1 else np.argsort(ranks[0], axis=-1, kind="stable")
    key = ranks[0]
    negated = ~key if key.dtype.kind in "biu" else -key
    return np.argsort(negated, axis=-1, kind="stable")


def _is_sorted(columns: list[Array], order: Array, before: Callable[..., Array]) -> bool:
    if order.shape[-1] < 2:
        return True
    placed = [np.take_along_axis(x, order, -1) for x in columns]
    pairs = [part for x in placed for part in (x[..., 1:], x[..., :-1])]
    if np.asarray(before(*pairs)).any():
        return False
    swapped = [part for x in placed for part in (x[..., :-1], x[..., 1:])]
    is_tie = ~np.asarray(before(*swapped))
    return not (is_tie & (order[..., 1:] < order[..., :-1])).any()


def _compared(columns: list[Array], before: Callable[..., Array]) -> Array:
    """Exchange of neighbours, in turn those after even and after odd places: stable."""
    length = columns[0].shape[-1]
    order = np.broadcast_to(np.arange(length), columns[0].shape).copy()
    for step in range(length):
        low, high = slice(step % 2, length - 1, 2), slice(step % 2 + 1, length, 2)
        placed = [np.take_along_axis(x, order, -1) for x in columns]
        swap = np.asarray(before(*[part for x in placed for part in (x[..., high], x[..., low])]))
        first, second = order[..., low].copy(), order[..., high].copy()
        order[..., low], order[..., high] = np.where(swap, second, first), np.where(swap, first, second)
    return order


def topk(operation: Operation) -> Meaning:
    """`topk`, and the calls of that name: the largest (or least) along the last dimension, and their places."""
    count = operation.dims[-1]
    is_largest = operation.attributes.get("largest", "true") == "true"
    place_type = TYPES[array_type(operation.types[1]).dtype]

    def largest(x: Array, *_: Array) -> Value:
        order = _stable([x], is_reversed=is_largest)[..., :count]
        return np.take_along_axis(x, order, -1), order.astype(place_type)

    return largest


def scan(operation: Operation) -> Meaning:
    """`scan`: a computation of carries and a row, for each row; the rows that it gives, then the last carries."""
    place, carries, name = operation.number("dimensions"), operation.number("num_carries"), operation.callee()
    is_reversed = operation.attributes.get("is_reverse") == "true"

    def scanned(*operands: Array) -> Value:
        data = [np.moveaxis(x, place, 0) for x in operands[:-carries]]
        held, rows = list(operands[-carries:]), []
        numbers = range(data[0].shape[0])
        for number in reversed(numbers) if is_reversed else numbers:
            found = operation.apply(name, *[x[number] for x in data], *held)
            rows.append(found[:-carries])
            held = list(found[-carries:])
        if is_reversed:
            rows.reverse()
        return operation.results([*(np.moveaxis(np.stack(row), 0, place) for row in zip(*rows, strict=True)), *held])

    return scanned


def fft(operation: Operation) -> Meaning:
    """`fft`."""
    lengths = operation.numbers("fft_length")
    places = tuple(range(len(operation.dims) - len(lengths), len(operation.dims)))
    kinds = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
    compute = kinds[operation.attributes["fft_type"]]
    return lambda x: converted(compute(x, lengths, places), operation.dtype)


def cholesky(operation: Operation) -> Meaning:
    """`cholesky`: the factor on and below the diagonal; what is on the other side has no meaning, and is zero."""
    if operation.attributes.get("lower", "true") != "true":
        raise NotEvaluatedError("cholesky with lower=false")

    return lambda x: converted(lower_factor(x), operation.dtype)


def lower_factor(x: Array) -> Array:
    """The Cholesky factors of what the lower triangles of matrices hold; NaN of a matrix that has none."""
    whole = np.tril(x) + np.conj(np.swapaxes(np.tril(x, -1), -1, -2))
    flat = whole.reshape(-1, *x.shape[-2:])
    found = np.full_like(flat, np.nan)
    for number, one in enumerate(flat):
        with suppress(np.linalg.LinAlgError):
            found[number] = np.linalg.cholesky(one)
    return found.reshape(x.shape)


def triangular_solve(operation: Operation) -> Meaning:
    """`triangular-solve`: of a·x = b, or x·a = b."""
    return solve_of(operation.attributes, operation.dtype)


def solve_of(options: Mapping[str, Any], dtype: str) -> Meaning:
    """The solution of a triangular system, by XLA's `TriangularSolveOptions`: attributes, or a backend's JSON."""
    is_left, is_lower, is_unit = (options.get(key) in ("true", True) for key in ("left_side", "lower", "unit_diagonal"))
    form = options.get("transpose_a", "NO_TRANSPOSE")

    def solved(a: Array, b: Array) -> Array:
        a = np.tril(a) if is_lower else np.triu(a)
        if is_unit:
            one = np.eye(a.shape[-1])
            a = a * (1 - one) + one
        a = a if form == "NO_TRANSPOSE" else np.swapaxes(a, -1, -2)
        a = np.conj(a) if form == "ADJOINT" else a
        try:
            if is_left:
                return converted(np.linalg.solve(a, b), dtype)
            return converted(
                np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2), dtype
            )
        except np.linalg.LinAlgError:
            return np.full_like(b, np.nan)

    return solved


MEANINGS: dict[str, Callable[[Operation], Meaning]] = {
    "bitcast": bitcasted,
    "broadcast": broadcast,
    "cholesky": cholesky,
    "concatenate": concatenate,
    "dot": dot,
    "ragged-dot": ragged_dot,
    "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice,
    "fft": fft,
    "iota": iota,
    "map": map_,
    "pad": pad,
    "reduce": reduce,
    "reshape": reshape,
    "reverse": reverse,
    "scan": scan,
    "slice": slice_,
    "sort": sort,
    "topk": topk,
    "transpose": transpose,
    "triangular-solve": triangular_solve,
}
