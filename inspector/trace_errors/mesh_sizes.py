"""Meshes of more or fewer devices than there are."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import instead, parenthesized, together
from ..report import Edit, StoryStep
from .problem import Candidate, Problem, Reason

MESH = re.compile(
    r"Number of devices (?P<has>\d+) must (?:be >=|equal) the product of mesh_shape [\[(](?P<shape>[\d, ]+)[\])]"
    r"|cannot reshape array of size (?P<has2>\d+) into shape \((?P<shape2>[\d, ]+)\)"
)
NAMES = re.compile(r"devices\.ndim == (?P<has>\d+) and len\(axis_names\) == (?P<names>\d+)")
MAKERS = ("make_mesh", "create_device_mesh", "create_mesh", "reshape")
MAX_SHAPES = 3


def explain_mesh(problem: Problem, said: re.Match[str]) -> Reason | None:
    """Explain a mesh whose sizes do not multiply to the number of devices."""
    has = int(said["has"] or said["has2"])
    shape = tuple(int(each) for each in re.findall(r"\d+", said["shape"] or said["shape2"]))
    candidates: list[Candidate] = []
    for file, call in problem.calls(*MAKERS):
        devices = call.func.value if isinstance(call.func, ast.Attribute) else None
        if name_of(call.func) == "reshape":
            text = "" if devices is None else ast.unparse(devices)
            text += " ".join(
                ast.unparse(each) for name in re.findall(r"\w+", text) for each in problem.assigned(file, name)
            )
            if "devices" not in text:
                continue
        if (file, call) not in problem.expressions and candidates:
            continue
        for sizes in _shapes(shape, has):
            title = f"use a mesh of shape {sizes}: there are {has} devices"
            written = call.args[:1] if len(call.args) == 1 or name_of(call.func) != "reshape" else call.args
            texts = [repr(sizes)] if len(written) == 1 else list(map(repr, sizes))
            if len(written) == 1 and len(sizes) == 1:
                texts = [f"({sizes[0]},)"]
            edits = together(*(instead((file, each), text) for each, text in zip(written, texts, strict=False)))
            candidates.append(Candidate(title, edits))
        if devices is not None and name_of(call.func) == "reshape" and math.prod(shape) < has:
            text = f"{parenthesized(ast.unparse(devices))}[:{math.prod(shape)}]"
            title = f"use {math.prod(shape)} of the {has} devices"
            candidates.append(Candidate(title, instead((file, devices), text)))
    if not candidates:
        return None
    title = f"a mesh of shape {shape} has {math.prod(shape)} devices, but there are {has}"
    return Reason(title, "", (StoryStep("the mesh takes each device once", problem.place),), tuple(candidates))


def explain_names(problem: Problem, said: re.Match[str]) -> Reason | None:
    """Explain a mesh with another number of names than its array of devices has dimensions."""
    count = int(said["names"])
    shapes = {1: ["-1"], 2: ["-1, 2", "2, -1", "-1, 1"], 3: ["-1, 2, 2", "-1, 2, 1", "-1, 1, 1"]}.get(count, [])
    candidates = []
    for file, call in problem.calls("Mesh"):
        devices = call.args[0] if call.args else None
        imports = [node for where, node in problem.nodes if where == file and isinstance(node, ast.Import)]
        named = {alias.name: alias.asname or alias.name for node in imports for alias in node.names}
        if devices is not None and imports and (file, call) in problem.expressions:
            first, numpy = imports[0].lineno, named.get("numpy", "numpy")
            needed = () if "numpy" in named else (Edit(file, first, 0, first, 0, "import numpy\n"),)
            for shape in shapes:
                edits = (*needed, *instead((file, devices), f"{numpy}.array({ast.unparse(devices)}).reshape({shape})"))
                candidates.append(Candidate(f"reshape the devices to ({shape}), a dimension for each name", edits))
    title = f"the mesh has {count} axis names, but its array of devices has {said['has']} dimension"
    step = StoryStep("each name is that of one dimension of the array of devices", problem.place)
    return Reason(title + "s" * (said["has"] != "1"), "", (step,), candidates=tuple(candidates))


def _shapes(shape: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Shapes of so many devices, those first that keep most sizes, and the last ones: model axes are the inner ones."""

    def order(sizes: tuple[int, ...]) -> tuple[object, ...]:
        lost = sum(one > 1 and other == 1 for one, other in zip(shape, sizes, strict=True))
        changed = [one != other for one, other in zip(shape, sizes, strict=True)]
        return lost, sum(changed), changed[::-1]

    return sorted(_factored(len(shape), count), key=order)[:MAX_SHAPES]


def _factored(dimensions: int, count: int) -> Iterator[tuple[int, ...]]:
    if dimensions == 1:
        yield (count,)
        return
    for first in range(1, count + 1):
        if count % first == 0:
            yield from ((first, *rest) for rest in _factored(dimensions - 1, count // first))
