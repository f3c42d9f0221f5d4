"""Dimensions that the devices along their mesh axes do not divide."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Edits, Placed, instead, parenthesized, together, wrapped
from ..report import Edit, StoryStep
from .operands import spec_of, text_of
from .problem import ARRAYS, Candidate, Problem, Reason, argument_of, entries_of

_SHARDING = r"\w*Sharding\(mesh=(?P<mesh>.*?), spec=P(?:artitionSpec)?\((?P<spec>(?:[^()]|\([^()]*\))*)\)"
INDIVISIBLE = re.compile(
    rf"(?:One of (?P<what>[^.]*?)(?: with pytree key path (?P<path>\S+))? was given the sharding )?(?:of |Sharding )?"
    rf"{_SHARDING}.*?(?:array axis (?P<dim>\d+) is partitioned (?P<parts>\d+) times, but the dimension size is"
    r" (?P<size>\d+) \(full shape: (?P<shape>\([^)]*\))"
    r"|size of its dimension (?P<dim2>\d+) should be divisible by (?P<parts2>\d+), but it is equal to (?P<size2>\d+)"
    r" \(full shape: (?P<shape2>\([^)]*\)))",
    re.DOTALL,
)
IN_SPECS = re.compile(
    r"passed (?P<path>\S+) of shape \w+\[(?P<shape>[\d,]*)\], where \S+ is bound to (?P<function>\S+)'s parameter"
    r" '(?P<name>\w+)', corresponds to in_specs\S* of value P(?:artitionSpec)?\((?P<spec>.*?)\), which maps array axis"
    r" (?P<dim>\d+) \(of size (?P<size>\d+)\) to mesh ax\w+ (?P<axes>.*?) \(of (?:total )?size (?P<parts>\d+)\)"
)
_AXIS_SIZE = re.compile(r"'(\w+)': (\d+)")
BATCH = re.compile(r"^(data|batch|dp|ddp|replica\w*|d|x|i|devices?|fsdp)$")
MAPS = ("map", "tree_map", "map_with_path", "tree_map_with_path")
WEIGHT = re.compile(r"kernel|weight|bias|param|embed|scale|\bw\d*\b|\bb\d*\b|head", re.IGNORECASE)


class _Uneven:
    """A dimension, the parts that it is to have, and where that is written."""

    def __init__(self, problem: Problem, found: dict[str, str | None], sizes: dict[str, int]) -> None:
        self.problem = problem
        self.dim, self.size, self.parts = (int(_either(found, name)) for name in ("dim", "size", "parts"))
        self.shape = tuple(int(each) for each in re.findall(r"\d+", _either(found, "shape")))
        self.spec = list(spec_of(found["spec"] or ""))
        self.axes = self.spec[self.dim] if self.dim < len(self.spec) else ()
        self.sizes = sizes
        self.path = (found.get("name") or found.get("path") or "").strip()
        self.is_result = "output" in (found.get("what") or "")
        self.is_mapped = bool(found.get("name"))
        self.argument = self._argument()

    def _argument(self) -> str:
        alike = [each for each in self.problem.arguments if each.shape == self.shape and each.kind in ARRAYS]
        named = [each for each in alike if self.path and each.name.endswith(self.path)]
        used = {node.id for _, top in self.problem.expressions for node in ast.walk(top) if isinstance(node, ast.Name)}
        near = [each for each in alike if each.root in used]
        leaves = [each for each in near if "[" in each.name or "." in each.name] if self._is_of_tree else []
        found = next((each.name for each in (*named, *leaves, *near)), self.path)
        return found or next((each.name for each in alike), "") or self._result()

    def _result(self) -> str:
        """A result by the key of its sharding in a dict, or by its keyword."""
        places, found = [call for _, call in self.problem.specs(self.spec)], list[str]()
        for _, node in self.problem.nodes:
            match node:
                case ast.Dict(keys=keys, values=values):
                    named = [
                        (f"result[{ast.unparse(key)}]", value) for key, value in zip(keys, values, strict=True) if key
                    ]
                case ast.Call(keywords=keywords) if name_of(node.func) not in ("jit", "partial", "pjit"):
                    named = [(f"result.{each.arg}", each.value) for each in keywords]
                case _:
                    continue
            found += [name for name, value in named if any(each in places for each in ast.walk(value))]
        return found[0] if len(found) == 1 else ""

    @property
    def _is_of_tree(self) -> bool:
        return any(isinstance(node, ast.Call) and name_of(node.func) in MAPS for _, node in self.problem.expressions)

    @property
    def is_weight(self) -> bool:
        """True of a parameter of a model, as far as names tell."""
        named = f"{self.argument} {self.path}"
        return self.is_result or self.dim > 0 or bool(WEIGHT.search(named)) or not any(map(BATCH.match, self.axes))


def _either(found: dict[str, str | None], name: str) -> str:
    return found.get(name) or found.get(f"{name}2") or ""


def explain(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain which dimension of which argument, and how it can still be sharded."""
    found = said.groupdict()
    sizes = {name: int(size) for name, size in _AXIS_SIZE.findall(found.get("mesh") or "")}
    if not sizes:
        axes = re.findall(r"\w+", found.get("axes") or "")
        sizes = next((dict(mesh.mesh) for mesh in problem.meshes() if set(axes) <= {n for n, _ in mesh.mesh}), {})
    uneven = _Uneven(problem, found, sizes)
    what = uneven.argument or "the array"
    over = ", ".join(map(repr, uneven.axes)) or "its mesh axes"
    title = (
        f"dimension {uneven.dim} of {what} has size {uneven.size}, which the {uneven.parts} devices along {over} do not"
        " divide"
    )
    step = StoryStep(f"{what} has shape {uneven.shape}, and its spec is {text_of(tuple(uneven.spec))}", problem.place)
    return Reason(title, uneven.argument, (step,), candidates=tuple(_candidates(uneven)))


def _candidates(uneven: _Uneven) -> Iterator[Candidate]:
    yield from _fewer_axes(uneven)
    whole = [*_other_dimension(uneven), *_whole(uneven)] if uneven.size < uneven.parts else [*_whole(uneven)]
    if uneven.size > uneven.parts and uneven.is_mapped:
        yield from _padded(uneven)
    if uneven.is_weight:
        yield from _by_leaf(uneven)
        yield from whole
        yield from _rounded(uneven)
    elif uneven.size == 1:
        yield from whole
    elif uneven.problem.in_loop():
        yield from _by_rows(uneven)
        yield from _without_rest(uneven)
        yield from _rounded(uneven)
        yield from _smaller_mesh(uneven)
        yield from whole
    else:
        yield from _padded(uneven)
        yield from _smaller_mesh(uneven)
        yield from _rounded(uneven)
        yield from _by_leaf(uneven)
        yield from whole


def _with_entry(uneven: _Uneven, axes: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [axes if dim == uneven.dim else each for dim, each in enumerate(uneven.spec)]


def _written(uneven: _Uneven, spec: Sequence[Sequence[str]], title: str) -> Iterator[Candidate]:
    problem = uneven.problem
    places = [(placed, problem.spec_like(placed[1], spec)) for placed in problem.specs(uneven.spec)]
    yield from (Candidate(title, instead(*each)) for each in places)
    if len(places) > 1:  # an argument, and the result that is like it
        yield Candidate(title, together(*(instead(*each) for each in places)))
    if not places:  # the axes alone, as in `nnx.with_partitioning(init, (None, "model"))`
        entries = repr(tuple(each[0] if len(each) == 1 else each or None for each in spec))
        for file, node in problem.nodes:
            if isinstance(node, ast.Tuple | ast.List) and entries_of(node) == list(uneven.spec):
                yield Candidate(title, instead((file, node), entries))
    # A helper that makes the spec of names is called with them.
    for file, call in problem.expressions[1:2]:
        if isinstance(call, ast.Call):
            names = [each for each in call.args if isinstance(each, ast.Constant)]
            if uneven.dim < len(names) and not spec[uneven.dim]:
                yield Candidate(title, instead((file, names[uneven.dim]), "None"))


def _fewer_axes(uneven: _Uneven) -> Iterator[Candidate]:
    if len(uneven.axes) > 1:
        for count in range(len(uneven.axes) - 1, 0, -1):
            for axes in (uneven.axes[:count], uneven.axes[-count:]):
                parts = math.prod(uneven.sizes.get(axis, 0) for axis in axes)
                if parts > 1 and uneven.size % parts == 0:
                    title = f"shard dimension {uneven.dim} over {', '.join(map(repr, axes))} only, which divide it"
                    yield from _written(uneven, _with_entry(uneven, axes), title)


def _other_dimension(uneven: _Uneven) -> Iterator[Candidate]:
    for dim in range(uneven.dim + 1, len(uneven.shape)):
        taken = uneven.spec[dim] if dim < len(uneven.spec) else ()
        if uneven.shape[dim] % uneven.parts == 0 and not taken:
            spec = [*_with_entry(uneven, ()), *[()] * (len(uneven.shape) - len(uneven.spec))]
            spec[dim] = uneven.axes
            title = f"shard dimension {dim} (size {uneven.shape[dim]}) over {', '.join(map(repr, uneven.axes))} instead"
            yield from _written(uneven, spec, title)
            return


def _whole(uneven: _Uneven) -> Iterator[Candidate]:
    title = f"keep dimension {uneven.dim} unsharded; everything else keeps its sharding"
    yield from _written(uneven, _with_entry(uneven, ()), title)


def _condition(uneven: _Uneven, leaf: str) -> str:
    size = f"{leaf}.shape[{uneven.dim}] % {uneven.parts} == 0"
    return f"{leaf}.ndim > {uneven.dim} and {size}"


PLACING = {
    "device_put": "device",
    "make_array_from_process_local_data": "sharding",
    "make_array_from_callback": "sharding",
    "with_sharding_constraint": "shardings",
    "filter_shard": "device_or_shardings",
}
"""Functions that place or constrain a value, and their keywords for its sharding."""


def placements(problem: Problem) -> Iterator[tuple[str, ast.Call, ast.expr, ast.expr]]:
    """The call in the user's frames that places or constrains a value, its sharding, and the value."""
    for file, call in problem.calls(*PLACING):
        name = name_of(call.func)
        is_local = name == "make_array_from_process_local_data"
        given = argument_of(call, 0 if is_local else 1, PLACING[name])
        if given is not None and len(call.args) > is_local:
            yield file, call, given, call.args[is_local]
            return


def _by_leaf(uneven: _Uneven) -> Iterator[Candidate]:
    """Each leaf of a tree sharded if it can be: where it is placed, or in the function that makes its sharding."""
    problem = uneven.problem
    title = f"shard the leaves whose dimension {uneven.dim} the devices divide, and keep the others whole"
    for file, call in problem.specs(uneven.spec):
        for leaf in _leaf_of(problem, file, call):
            otherwise = problem.spec_like(call, _with_entry(uneven, ()))
            chosen = f"({ast.unparse(call)} if {_condition(uneven, leaf)} else {otherwise})"
            yield Candidate(title, instead((file, call), chosen))
    for file, call, sharding, value in placements(problem):
        subject = ast.unparse(value)
        text, spec = ast.unparse(sharding), problem.spec_name
        mesh = f"{parenthesized(text)}.mesh"
        if isinstance(sharding, ast.Call) and name_of(sharding.func) == "NamedSharding" and sharding.args:
            mesh = ast.unparse(sharding.args[0])
        otherwise = f"{problem.named('NamedSharding')}({mesh}, {spec}())"
        is_leaf = any(each.name == subject for each in problem.arguments)
        if is_leaf:
            chosen = f"{text} if {_condition(uneven, subject)} else {otherwise}"
            yield Candidate(title, instead((file, sharding), chosen))
        else:
            chosen = f"{text} if {_condition(uneven, 'leaf')} else {otherwise}"
            yield Candidate(title, placed_by_leaf(file, call, value, sharding, chosen))


def _leaf_of(problem: Problem, file: str, call: ast.Call) -> Iterator[str]:
    """The last parameter of a function around a spec that is called for each leaf of a tree."""
    nodes = [node for at, node in problem.nodes if at == file]
    mapped = [each.args[0] for each in nodes if isinstance(each, ast.Call) and each.args and name_of(each.func) in MAPS]
    names = {each.id for each in mapped if isinstance(each, ast.Name)}
    functions = [node for node in nodes if node in mapped or getattr(node, "name", "") in names]
    for node in functions:
        if isinstance(node, ast.Lambda | ast.FunctionDef) and node.args.args and call in ast.walk(node):
            yield node.args.args[-1].arg


def placed_by_leaf(file: str, call: ast.Call, tree: ast.expr, sharding: ast.expr, chosen: str) -> Edits:
    """The placement of a tree as one of each leaf, with a sharding that is chosen for it."""
    texts = {id(tree): "leaf", id(sharding): chosen}
    named = [*(("", each) for each in call.args), *((f"{each.arg}=", each.value) for each in call.keywords)]
    given = ", ".join(f"{name}{texts.get(id(each), ast.unparse(each))}" for name, each in named)
    placed = f"{ast.unparse(call.func)}({given})"
    if name_of(call.func) == "filter_shard":  # its trees have functions among their leaves
        placed += " if isinstance(leaf, jax.Array) else leaf"
    return instead((file, call), f"jax.tree.map(lambda leaf: {placed}, {ast.unparse(tree)})")


def _by_rows(uneven: _Uneven) -> Iterator[Candidate]:
    for each in _by_leaf(uneven):
        title = f"shard the batches whose rows {uneven.parts} divides; the other one, of {uneven.size}, stays whole"
        yield Candidate(title, each.edits, is_split=True)


def _without_rest(uneven: _Uneven) -> Iterator[Candidate]:
    for file, node in uneven.problem.nodes:
        match node:
            case ast.Call(func=ast.Name("range"), args=[_, stop, step]):
                end, by = ast.unparse(stop), ast.unparse(step)
                text = f"{end} - {end} % {by}"
                title = f"leave out the last batch, of {uneven.size} rows (drop_remainder)"
                yield Candidate(title, instead((file, stop), text), is_other_data=True)


def _rounded(uneven: _Uneven) -> Iterator[Candidate]:
    """The size as it is written in the script, rounded to a multiple. A 1 may stand for anything."""
    rounded = -(-uneven.size // uneven.parts) * uneven.parts
    literals: list[Placed] = [
        (file, node)
        for file, node in uneven.problem.nodes
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == uneven.size > 1
    ]
    title = f"make the size {rounded}, a multiple of {uneven.parts}"
    if literals:
        edits = together(*(instead(each, str(rounded)) for each in literals))
        yield Candidate(title, edits, is_other_data=True)
        if len(literals) > 1:
            for each in literals[:2]:
                yield Candidate(title, instead(each, str(rounded)), is_other_data=True)


def _padded(uneven: _Uneven) -> Iterator[Candidate]:
    problem = uneven.problem
    more = -uneven.size % uneven.parts
    pad = ", ".join(f"(0, {more if dim == uneven.dim else 0})" for dim in range(len(uneven.shape)))
    for file, node in problem.expressions[:1]:
        if not isinstance(node, ast.Call) or name_of(node.func) in ("device_put", "make_array_from_process_local_data"):
            continue
        for argument in node.args:
            if ast.unparse(argument) == uneven.argument or len(node.args) == 1:
                edits = wrapped((file, argument), "jnp.pad(", f", ({pad}))")
                title = f"pad {ast.unparse(argument)} with {more} rows of zeros"
                if not uneven.dim and _has_rows(uneven):
                    sliced: Edits = wrapped((file, node), "", f"[:{uneven.size}]")
                    yield Candidate(f"{title}, and slice the result", together(edits, sliced))
                yield Candidate(title, edits)


def _has_rows(uneven: _Uneven) -> bool:
    calls = [call for _, call in uneven.problem.calls("shard_map")]
    specs = [each.value for call in calls for each in call.keywords if each.arg == "out_specs"]
    return not specs or any(repr(axis) in ast.unparse(each) for each in specs for axis in uneven.axes)


def _smaller_mesh(uneven: _Uneven) -> Iterator[Candidate]:
    if len(uneven.axes) != 1 or uneven.axes[0] not in uneven.sizes:
        return
    sizes, dim = list(uneven.sizes.values()), list(uneven.sizes).index(uneven.axes[0])
    count = max(n for n in range(1, uneven.parts + 1) if uneven.size % n == 0)
    if count < 2:
        return
    sizes[dim], idle = count, uneven.problem.in_loop()
    title = f"use {count} of the {uneven.parts} devices along {uneven.axes[0]!r}, which divide {uneven.size}"
    for file, node in uneven.problem.nodes:
        match node:
            case ast.Call(func=function, args=[shape, *_]) if name_of(function) == "make_mesh":
                if any(each.arg == "devices" for each in node.keywords):
                    continue
                end = (node.end_lineno or node.lineno, (node.end_col_offset or 1) - 1)
                added = Edit(file, *end, *end, f", devices=jax.devices()[:{math.prod(sizes)}]")
                yield Candidate(title, (*instead((file, shape), repr(tuple(sizes))), added), is_fewer=idle)
            case ast.Call(func=function, args=[devices, *_]) if name_of(function) == "Mesh":
                blocks = ", ".join([":"] * dim + [f":{count}"])
                edits = instead((file, devices), f"{parenthesized(ast.unparse(devices))}[{blocks}]")
                yield Candidate(title, edits, is_fewer=idle)


SCATTERED = re.compile(
    r"tiled (?:reduce_scatter|psum_scatter) operand scatter dimension size (?P<size>\d+) must be divisible by"
    r" shard_count (?P<parts>\d+)"
)


def explain_scattered(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a psum_scatter of a dimension that the devices do not divide."""
    size, parts = int(said["size"]), int(said["parts"])
    title = f"psum_scatter splits a dimension of size {size} among {parts} devices, which do not divide it"
    candidates = []
    for file, call in problem.calls("psum_scatter"):
        if call.args:
            dim = argument_of(call, 2, "scatter_dimension")
            number = dim.value if isinstance(dim, ast.Constant) and isinstance(dim.value, int) else 0
            operand = ast.unparse(call.args[0])
            pads = f"[(0, {-size % parts} if d == {number} else 0) for d in range({operand}.ndim)]"
            edits = wrapped((file, call.args[0]), "jnp.pad(", f", {pads})")
            text = f"pad {operand} to {size + -size % parts} with zeros"
            for outer in [each for each in problem.expressions[1:] if isinstance(each[1], ast.Call)][:3]:
                sliced = wrapped(outer, "", f"[{':, ' * number}:{size}]")
                candidates.append(Candidate(f"{text}, and leave them out of the result", together(edits, sliced)))
            candidates.append(Candidate(text, edits))
    return Reason(title, "", (StoryStep("the dimension is split evenly", problem.place),), candidates=tuple(candidates))
