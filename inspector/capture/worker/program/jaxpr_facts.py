"""The jaxpr as plain data: the JSON of `inspector/ir/jaxpr.py`, whose words are used here.

With the remote effects of a kernel's equation: Mosaic's copies and signals, references on other GPUs (JAX 0.7 to 0.12).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import jax
import numpy as np

from ....catalog.spellings import rule_of
from . import avals, structure
from .structure import Stacks, name_stack

MAX_PARAMETER_CHARACTERS = 2000
"""Characters of one parameter's text; a `dense` constant or a callback may print without end."""

NAMED_AXES = ("axes", "axis_name", "axis_names", "axis")
"""Parameters in which collectives, casts and `axis_index` name mesh axes; in others they hold dimension numbers."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class Table:
    """A whole traced function as a flat table of jaxprs; those that are shared are written once.

    `indices` gives a jaxpr's place by its `id`, and by whether it stands under a check.
    """

    def __init__(self, outermost: Any) -> None:
        self.outermost = structure.opened(outermost)
        self.stacks = Stacks()
        self.jaxprs: list[dict[str, Any]] = []
        self.indices: dict[tuple[int, bool], int] = {}
        self.uses = Counter(id(body) for each in structure.equations_of(outermost) for body in structure.bodies(each))
        self.kept: list[Any] = []  # so that no id is reused
        self.names: dict[Any, str] = {}

    def encode(self) -> bytes:
        """JSON of all of it."""
        self._index(self.outermost, tracked=False, enclosing=[], in_vjp=False)
        keys = ("file", "function", "line", "end_line", "column", "end_column")
        frames = [dict(zip(keys, frame, strict=True)) for frame in self.stacks.frames]
        return json.dumps({"frames": frames, "jaxprs": self.jaxprs}, separators=(",", ":")).encode()

    def _index(self, jaxpr: Any, tracked: bool, enclosing: list[int], in_vjp: bool) -> int:
        """The table index of a jaxpr; `tracked` where it stands in a shard_map with its check on.

        `enclosing` is the stack of the equation that holds it, which is nobody's where several hold it, `in_vjp`
        whether that one is from the functions of a `custom_vjp`.
        """
        key = (id(jaxpr), tracked)
        if key not in self.indices:
            self.kept.append(jaxpr)
            self.indices[key] = len(self.jaxprs)
            record: dict[str, Any] = {}
            self.jaxprs.append(record)
            record["constants"] = [self._variable(v, tracked) for v in jaxpr.constvars]
            record["inputs"] = [self._variable(v, tracked) for v in jaxpr.invars]
            outer = enclosing if self.uses[id(jaxpr)] == 1 else []
            record["equations"] = [self._equation(equation, tracked, outer, in_vjp) for equation in jaxpr.eqns]
            record["outputs"] = [self._atom(v) for v in jaxpr.outvars]
        return self.indices[key]

    def _equation(self, equation: Any, tracked: bool, enclosing: list[int], in_vjp: bool) -> dict[str, Any]:
        stack = self.stacks.of(equation, enclosing)
        in_vjp = in_vjp or structure.is_in_custom_vjp(equation)
        outputs = [self._variable(v, tracked) for v in equation.outvars]
        primitive = equation.primitive.name
        inside = structure.is_checked(equation) if primitive == "shard_map" else tracked
        params, bodies = [], []
        for name, value in equation.params.items():
            found = list(structure.bodies_in(name, value))
            bodies += [(label, self._index(body, inside, stack, in_vjp)) for label, body in found]
            if not found:
                params.append((name, _parameter(value)))
        return {
            "primitive": primitive,
            "inputs": [self._atom(v) for v in equation.invars],
            "outputs": outputs,
            "params": params,
            "axes": named_axes(primitive, equation.params),
            "bodies": bodies,
            "shard_map": structure.shard_map(equation),
            "loop": structure.loop(equation),
            "stack": stack,
            "name_stack": name_stack(equation),
            **({"in_custom_vjp": True} if in_vjp else {}),
            **self._remote(equation),
        }

    def _remote(self, equation: Any) -> dict[str, Any]:
        copied, device = remote_type(equation), remote_device(equation)
        facts: dict[str, Any] = {} if copied is None else {"remote": copied, "device": []}
        return {**facts, "device": [(axis, self._atom(atom)) for axis, atom in device]} if device else facts

    def _variable(self, variable: Any, tracked: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self._name(variable), "type": avals.type_text(variable.aval)}
        return {**fields, **avals.variance(variable.aval)} if tracked else fields

    def _atom(self, atom: Any) -> str:
        if hasattr(atom, "val"):
            return f"{_short(_literal(atom.val))}:{avals.type_text(atom.aval)}"
        return self._name(atom)

    def _name(self, variable: Any) -> str:
        if type(variable).__name__ == "DropVar":
            return "_"
        if variable not in self.names:
            self.names[variable] = _letters(len(self.names))
        return self.names[variable]


def named_axes(primitive: str, params: dict[str, Any]) -> list[str] | None:
    """The mesh axes that an equation's parameters name; None for one that is about no mesh axes."""
    for key in NAMED_AXES:
        if key in params:
            value = params[key]
            axes = value if isinstance(value, (tuple, list, set, frozenset)) else (value,)
            named = [axis for axis in axes if isinstance(axis, str)]
            if named or (not axes and rule_of(primitive) is not None):
                return sorted(named) if isinstance(value, (set, frozenset)) else named
    return None


def is_collective(equation: Any) -> bool:
    """Return whether an equation communicates over mesh axes: it names some, and is neither a cast nor a query."""
    primitive = equation.primitive.name
    rule = rule_of(primitive)
    if rule is not None and rule.lowers_to is None:
        return False
    return not any(structure.bodies(equation)) and bool(named_axes(primitive, equation.params))


def _parameter(value: Any) -> str:
    if isinstance(value, (tuple, list)) and any(map(callable, value)):
        return f"({', '.join(map(_parameter, value))})"
    if callable(value) and hasattr(value, "__name__") and not hasattr(value, "dtype"):
        return str(value.__name__)
    return _short(_text(value))


def _literal(value: Any) -> str:
    """A constant as a number, whichever class of JAX's holds it."""
    is_scalar = isinstance(value, (int, float, complex)) or getattr(value, "shape", None) == ()
    return _text(np.asarray(value) if is_scalar else value)


def _text(value: Any) -> str:
    try:
        return _ADDRESS.sub("", " ".join(str(value).split()))
    except Exception as error:  # a parameter may be any object of a library's
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _short(text: str) -> str:
    return text if len(text) <= MAX_PARAMETER_CHARACTERS else text[:MAX_PARAMETER_CHARACTERS] + "…"


def _letters(number: int) -> str:
    """a, b, … z, ba, bb, …: the names that JAX gives."""
    digits = ""
    while True:
        number, digit = divmod(number, 26)
        digits = chr(ord("a") + digit) + digits
        if not number:
            return digits


DEVICES = {"dma_start": ("tree", 4), "semaphore_signal": ("args_tree", 3)}
"""The parameter of each primitive with its operands' tree, and which is the device, None for its own."""

WRITES = ("swap", "addupdate", "copy_smem_to_gmem")
"""Primitives by which a kernel of a GPU writes to a reference."""

PEER = "PeerMemRef"
"""The class of `jax._src.pallas.mosaic_gpu.core` that a reference on another GPU has among its transforms."""

WITH_INDICES = 9
"""Operands of a copy before JAX 0.8: indices follow each of the four that are references."""


def remote_type(equation: Any) -> str | None:
    """The type of what is copied to another device, `""` for a signal or a size that is not static, else None."""
    operands = _operands(equation, [each.aval for each in equation.invars])
    if _device(equation, operands) is None:
        return None
    if equation.primitive.name != "dma_start":
        return ""
    source = operands[0]
    try:  # a slice of a reference has the shape of what it selects
        return avals.type_text(jax.core.ShapedArray(tuple(map(int, source.shape)), source.dtype))
    except (AttributeError, TypeError, ValueError):
        return ""


def remote_device(equation: Any) -> list[tuple[str, Any]]:
    """The numbers that name the device: coordinates, with their axes where these are given, or one of all devices."""
    found = _device(equation, _operands(equation, equation.invars))
    if found is None:
        found = _of_peer(equation)
    if isinstance(found, dict):
        return [(" ".join(axis) if isinstance(axis, tuple) else str(axis), atom) for axis, atom in found.items()]
    return [("", atom) for atom in jax.tree_util.tree_leaves(found)]


def _device(equation: Any, operands: Any) -> Any:
    _, place = DEVICES.get(equation.primitive.name, ("", 0))
    return operands[place] if place < len(operands) else None


def _operands(equation: Any, leaves: list[Any]) -> Any:
    """The operands by their tree, None for the source of a copy with indices beside it; none of other equations."""
    tree, _ = DEVICES.get(equation.primitive.name, ("", 0))
    structure = equation.params.get(tree)
    if not isinstance(structure, jax.tree_util.PyTreeDef) or structure.num_leaves != len(leaves):
        return ()
    operands = jax.tree_util.tree_unflatten(structure, leaves)
    if equation.primitive.name == "dma_start" and len(operands) == WITH_INDICES:
        source, indices, *others = operands
        return [None if indices else source, *others[::2]]
    return operands


def _of_peer(equation: Any) -> Any:
    """The device that a reference of a GPU kernel is on; None where it is its own, or not known."""
    if equation.primitive.name not in WRITES:
        return None
    trees = {name: tree for name, tree in equation.params.items() if isinstance(tree, jax.tree_util.PyTreeDef)}
    if set(trees) == {"tree"}:  # what indexes the reference comes last
        starts = {"tree": len(equation.invars) - trees["tree"].num_leaves}
    elif set(trees) == {"src_transforms_treedef", "dst_transforms_treedef"}:  # behind both references
        starts = {"src_transforms_treedef": 2, "dst_transforms_treedef": 2 + trees["src_transforms_treedef"].num_leaves}
    else:
        return None
    for name, start in starts.items():
        leaves = equation.invars[start : start + trees[name].num_leaves]
        if start < 0 or len(leaves) != trees[name].num_leaves:
            continue
        found = jax.tree_util.tree_unflatten(trees[name], leaves)
        for each in jax.tree_util.tree_leaves(found, is_leaf=_is_peer):
            if _is_peer(each):
                return each.device_id
    return None


def _is_peer(transform: Any) -> bool:
    return type(transform).__name__ == PEER
