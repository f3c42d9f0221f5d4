"""Prices of requests, by Shardy's own passes alone: a hundred times as fast as a compilation.

Propagation, then the reshards that it inserts as collectives by axes, in loops times the trip count. Good programs are
priced exactly or up to 45 % high. Bad ones are priced low where the operands of a product conflict, as XLA then sends
more than Shardy's reshards: a price is for the order in which changes are compiled, and is never shown.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from jaxlib.mlir import ir

from .. import modules
from .lowered import Lowered, Spec, spec_in

_QUOTED = re.compile(r'"[^"]+"(?::\(\d+\)\d+)?')
_LISTED = re.compile(r"<@\w+, (\[.*?\])(?=[,>])")
_GROUPS = re.compile(r"tensor<\d+x(\d+)xi64>")
_CONV = re.compile(r"\[([^\]]*)\]x\[([^\]]*)\]->\[([^\]]*)\]")
_DIMS = {side: re.compile(rf"{side}_contracting_dimensions = \[([^\]]*)\]") for side in ("lhs", "rhs")}

WIDTHS = {"i1": 1, "i8": 1, "ui8": 1, "i16": 2, "ui16": 2, "bf16": 2, "f16": 2, "i64": 8, "ui64": 8, "f64": 8}
WIDTHS |= {"complex<f32>": 8, "complex<f64>": 16}

AXES_OF = {
    "all_gather": "gathering_axes",
    "all_reduce": "reduction_axes",
    "all_to_all": "params",
    "reduce_scatter": "reduce_scatter_axes",
    "collective_permute": "",
}
"""The collectives, and the attribute that names the axes of each."""

PROPAGATE = (
    "sdy-constant-or-scalar-splitter",
    "sdy-manual-axes-cleanup",
    "sdy-add-data-flow-edges",
    "sdy-apply-sharding-constraints",
    "sdy-sharding-group-import",
    "sdy-user-priority-propagate",
)

DEEP, QUICK = 2000, "sdy-basic-propagate"
"""Operations from which propagation is without priorities: in a third of the time, and most often in the same order."""

INSERT = (
    ("sdy-sink-data-flow-edges", ""),
    ("sdy-constant-or-scalar-merger", ""),
    ("sdy-update-non-divisible-input-output-shardings", ""),
    ("sdy-close-shardings", ""),
    ("sdy-sharding-constraint-to-reshard", ""),
    ("sdy-insert-explicit-reshards", "enable-full-version=true"),
    ("sdy-reshard-to-collectives", ""),
    ("cse", ""),
)


Specs = dict[tuple[ir.Attribute, int], Spec]
"""The specs that attributes have for results, each read once."""


class Price(NamedTuple):
    """Bytes that a device sends in one step, those of its arguments and of its results, and FLOPs of its products."""

    bytes: float
    arguments: float
    results: float
    flops: float


class Pricing:
    """Prices of changes of one lowered module."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self.propagate = tuple(found for name in PROPAGATE for found in modules.pass_if_there(name))
        is_deep = len(lowered.light.places) > DEEP
        propagate = (QUICK if is_deep and "user-priority" in each else each for each in self.propagate)
        insert = (modules.pass_of(name, options) for name, options in INSERT if modules.pass_if_there(name))
        self._passes = (*propagate, *insert)
        self._specs: Specs = {}
        self._sizes = [list(map(size, types)) for types in (lowered.types, lowered.result_types)]

    def of(self, changes: Any = ()) -> Price:
        """Return the price of the program with some changes."""
        lowered = self._lowered
        module = self._partitioned(changes)
        totals: Counter[str] = Counter()
        main = modules.main_of(module)
        arguments, results = (modules.attributes(main, side) for side in get_args(modules.Side))
        _Walk(lowered, main, arguments, self._specs).block(modules.body_of(main), 1, totals)
        held = [
            sum(count / self._parts(each.get("sdy.sharding")) for count, each in zip(sizes, found, strict=True))
            for sizes, found in zip(self._sizes, (arguments, results), strict=True)
        ]
        return Price(totals["bytes"], held[0], held[1], totals["flops"])

    def propagated(self, changes: Any) -> list[Spec]:
        """The specs of all arguments of the changed program after propagation, which completes those left open."""
        lowered = self._lowered
        module = lowered.changed(changes, lowered.light)
        modules.run(module, *self._passes[: len(self.propagate)])
        found = [each.get("sdy.sharding") for each in modules.attributes(modules.main_of(module), "arg_attrs")]
        return [now if each is None else spec_in(str(each)) for now, each in zip(lowered.arguments, found, strict=True)]

    def sliced(self, changes: Any) -> dict[int, Spec]:
        """The arguments of which each device slices a part wherever it uses them, with the specs of these parts.

        State that is only read is returned as it came.
        """
        module = self._partitioned(changes)
        found: dict[int, Spec] = {}
        for number, argument in enumerate(modules.body_of(modules.main_of(module)).arguments):
            users = [use.owner for use in argument.uses if not use.owner.name.endswith(".return")]
            parts = {str(each.attributes["out_sharding"]) if each.name == "sdy.all_slice" else "" for each in users}
            if len(parts) == 1 and parts != {""}:
                found[number] = spec_in(parts.pop())
        return found

    def _partitioned(self, changes: Any) -> Any:
        module = self._lowered.changed(changes, self._lowered.light)
        modules.run(module, *self._passes)
        return module

    def _parts(self, attribute: ir.Attribute | None) -> int:
        return 1 if attribute is None else self._lowered.parts(spec_of(attribute, 0, self._specs))


class _Walk:
    """Adds up what a module with collectives sends and computes."""

    def __init__(self, lowered: Lowered, main: Any, arguments: list[dict[str, ir.Attribute]], specs: Specs) -> None:
        self._lowered, self._specs = lowered, specs
        self._main = modules.body_of(main)
        self._arguments = [each.get("sdy.sharding") for each in arguments]

    def block(self, block: Any, times: int, totals: Counter[str], *, is_manual: bool = False) -> None:
        for view in block.operations:
            operation = view.operation
            dialect, _, name = operation.name.partition(".")
            if dialect == "sdy" and name in AXES_OF:
                self._collective(operation, name, times, totals)
            elif name in ("manual_computation", "named_computation"):
                is_inside = is_manual or name == "manual_computation"
                self.block(operation.regions[0].blocks[0], times, totals, is_manual=is_inside)
            elif name == "while":
                for region in operation.regions:
                    self.block(region.blocks[0], times * trips(operation), totals, is_manual=is_manual)
            elif name in ("case", "if"):
                branches: list[Counter[str]] = []
                for region in operation.regions:
                    branches.append(Counter())
                    self.block(region.blocks[0], times, branches[-1], is_manual=is_manual)
                totals.update(max(branches, key=lambda each: each["bytes"], default=Counter()))
            elif name == "dot_general":
                totals["flops"] += int(times * self._flops(operation, is_manual))
            elif name == "convolution":
                totals["flops"] += int(times * self._convolution_flops(operation, is_manual))
                totals["bytes"] += 0 if is_manual else int(times * self._halo(operation, _conv_windows(operation)))
            elif name == "reduce_window" and not is_manual:
                totals["bytes"] += int(times * self._halo(operation, _pool_windows(operation)))
            elif is_manual and name in AXES_OF:
                self._manual(operation, name, times, totals)

    def _collective(self, operation: Any, name: str, times: int, totals: Counter[str]) -> None:
        out = spec_in(str(operation.attributes["out_sharding"]))
        local = size(ir.RankedTensorType(operation.results[0].type)) / self._lowered.parts(out)
        axes = _QUOTED.findall(str(operation.attributes[AXES_OF[name]])) if AXES_OF[name] else []
        members = self._lowered.ways(axis.replace('"', "") for axis in axes) if axes else 2
        totals["bytes"] += int(times * sent(name, local, members))

    def _manual(self, operation: Any, name: str, times: int, totals: Counter[str]) -> None:
        groups = str(operation.attributes["replica_groups"]) if "replica_groups" in operation.attributes else ""
        found = _GROUPS.search(groups)
        named = [axis.replace('"', "") for axis in _QUOTED.findall(groups)]
        members = int(found[1]) if found else self._lowered.ways(name for name in named if name in self._lowered.axes)
        for result in operation.results:
            totals["bytes"] += int(times * sent(name, size(ir.RankedTensorType(result.type)), max(members, 2)))

    def _flops(self, operation: Any, is_manual: bool) -> float:
        sides = _contracted(str(operation.attributes["dot_dimension_numbers"]))
        left = ir.RankedTensorType(operation.operands[0].type)
        result = ir.RankedTensorType(operation.results[0].type)
        flops = float(2 * math.prod(result.shape) * math.prod(left.shape[dim] for dim in sides[0]))
        if is_manual:
            return flops
        contracted = (self._parts(value, dims) for value, dims in zip(operation.operands, sides, strict=True))
        return flops / (self._parts(operation.results[0]) * max(contracted))

    def _convolution_flops(self, operation: Any, is_manual: bool) -> float:
        result, kernel = (ir.RankedTensorType(each.type) for each in (operation.results[0], operation.operands[1]))
        features = _CONV.search(str(operation.attributes["dimension_numbers"]))
        out = kernel.shape[features[2].replace(" ", "").split(",").index("o")] if features else 1
        flops = 2.0 * math.prod(result.shape) * math.prod(kernel.shape) / out
        parts = 1 if is_manual else max(self._parts(operation.operands[0]), self._parts(operation.results[0]))
        return float(flops / parts)

    def _halo(self, operation: Any, rows: dict[int, int]) -> float:
        """Bytes of the rows of neighbours that windows along sharded dimensions reach into, as many as `rows`."""
        value = operation.operands[0]
        type, parts = ir.RankedTensorType(value.type), self._parts(value)
        along = {dim: self._parts(value, (dim,)) for dim in rows}
        shares = (rows[dim] * ways / type.shape[dim] for dim, ways in along.items() if ways > 1)
        return float(size(type) / parts * sum(shares))

    def _parts(self, value: Any, dims: tuple[int, ...] | None = None) -> int:
        """Return into how many parts a value is divided, in all or along some dimensions."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            number = ir.BlockArgument(value).arg_number
            attribute, number = (self._arguments[number] if owner == self._main else None), 0
        else:
            found, number = owner.attributes, ir.OpResult(value).result_number
            name = next((each for each in ("sdy.sharding", "out_sharding") if each in found), None)
            attribute = None if name is None else found[name]
        return 1 if attribute is None else self._lowered.parts(spec_of(attribute, number, self._specs), dims)


def spec_of(attribute: ir.Attribute, number: int, known: Specs) -> Spec:
    """The spec that an attribute has for the result of that number, unless it is `known`."""
    key = attribute, number
    if key not in known:
        text = str(attribute)
        known[key] = spec_in(_LISTED.findall(text)[number] if "sharding_per_value" in text else text)
    return known[key]


def _conv_windows(operation: Any) -> dict[int, int]:
    """The rows, for each spatial dimension of the input, of which a window has more than one."""
    found = _CONV.search(str(operation.attributes["dimension_numbers"]))
    if found is None:
        return {}
    source, kernel, result = ([each.strip() for each in side.split(",")] for side in found.groups())
    window, out = (ir.RankedTensorType(each.type).shape for each in (operation.operands[1], operation.results[0]))
    spatial = [each for each in source if each.isdecimal()]
    # Of a kernel's gradient the window is as large as an image, and the result as small as the kernel.
    rows = {each: min(window[kernel.index(each)], out[result.index(each)]) - 1 for each in spatial}
    return {source.index(each): rows[each] for each in spatial if rows[each] > 0}


def _pool_windows(operation: Any) -> dict[int, int]:
    names = ("window_dimensions", "window_strides")
    window, strides = (
        list(ir.DenseI64ArrayAttr(operation.attributes[each])) if each in operation.attributes else [] for each in names
    )
    pairs = zip(window, strides or [1] * len(window), strict=True)
    return {dim: each - step for dim, (each, step) in enumerate(pairs) if each > step}


@lru_cache(maxsize=256)
def _contracted(numbers: str) -> tuple[tuple[int, ...], ...]:
    """The contracting dimensions of both sides of a product."""
    found = (each.search(numbers) for each in _DIMS.values())
    return tuple(tuple(map(int, each[1].replace(",", " ").split())) if each else () for each in found)


def size(type: Any) -> int:
    """Bytes of an array."""
    return int(math.prod(type.shape)) * WIDTHS.get(str(type.element_type), 4)


def sent(kind: str, local: float, members: int) -> float:
    """Bytes that each of so many devices sends for a result of so many bytes, in a ring."""
    share = (members - 1) / members
    shares = {"all_gather": share, "all_reduce": 2 * share, "all_to_all": share, "reduce_scatter": members - 1}
    return local * shares.get(kind, 1)


def trips(loop: Any) -> int:
    """The constant that the counter of a loop is compared with; 1 where there is none."""
    for view in loop.regions[0].blocks[0].operations:
        if view.operation.name != "stablehlo.compare":
            continue
        for value in view.operation.operands:
            owner = value.owner
            if isinstance(owner, ir.Block):
                owner = loop.operands[ir.BlockArgument(value).arg_number].owner
            if not isinstance(owner, ir.Block) and owner.name.endswith(".constant"):
                found = re.search(r"dense<(-?\d+)>", str(owner.attributes["value"]))
                if found and int(found[1]):
                    return int(found[1])
    return 1
