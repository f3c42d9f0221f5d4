"""Collectives, casts and products that their operands do not fit: over axes that they lack, have, or leave open."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Collection, Iterator, Sequence

from ..catalog.spellings import FUNCTIONS, functions_of
from ..findings.fixes.calls import function_around, holds, name_of, nodes_of
from ..findings.fixes.edits import axes_text, instead, together, wrapped
from ..report import Explanation, Fix, StoryStep
from .carries import axes_in
from .failed import Failed, prefix_of
from .operands import Spec, failing, text_of
from .operands import axes_text as spec_axes_text
from .problem import argument_of

REDUCTIONS = functions_of("all-reduce", "reduce-scatter", "all-gather")
COLLECTIVES = (*FUNCTIONS, "axis_size")
MIXED = re.compile(r"(\w+) can only accept axis_name which .*?Got input type: (\S+), axes: \(([^)]*)\)", re.DOTALL)
CAST = re.compile(r"Unsupported pcast from=(\w+), to='(\w+)'")
UNBOUND = re.compile(r"unbound axis name: (\w+)|\A\Z")
"""JAX may fail there without a word."""
AMBIGUOUS = re.compile(r"ambiguous how the output should be sharded.*?lhs_contracting_spec=(\(.*?\)) and", re.DOTALL)


def explain_mixed(failed: Failed, said: re.Match[str]) -> Explanation:
    """The axes that the operand has, and those that never entered."""
    named = tuple(axis.strip(" '\"") for axis in said[3].split(",") if axis.strip())
    has = axes_in(said[2])
    entered, missing = (tuple(a for a in named if (a in has) is inside) for inside in (True, False))
    step = StoryStep(f"its operand is {said[2]}: {', '.join(missing)} never entered it", failed.place)
    return Explanation(
        f"{said[1]} over {', '.join(named)} of a value that varies over {', '.join(entered) or 'none of them'} only",
        (step,),
        tuple(_fixes(failed, entered, missing)),
    )


def explain_cast(failed: Failed, said: re.Match[str]) -> Explanation:
    """A cast of what is so already."""
    step = StoryStep(f"the value is {said[1]} already", failed.place)
    fixes = tuple(
        Fix("remove the cast", instead((file, call), ast.unparse(call.args[0])))
        for file, call in failed.calls(("pcast", "pvary"))
        if call.args
    )
    return Explanation(f"pcast from {said[1]} to {said[2]} changes nothing, and is not allowed", (step,), fixes)


def explain_unbound(failed: Failed, said: re.Match[str]) -> Explanation | None:
    """An axis that no mesh has."""
    names = failed.axes
    written = _unknown_axis(failed, names)
    wanted = said[1] or (None if written is None else str(written[1].value))
    if wanted is None:
        return None
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.5)
    words = f"the meshes have {', '.join(names)}" if names else "no mesh is known here"
    title = f"did you mean {near[0]!r}?" if near else "name one of these, or call it inside a shard_map over a mesh"
    edits = instead(written, repr(near[0])) if near and written is not None and written[1].value == wanted else ()
    step = StoryStep(words, failed.place)
    return Explanation(f"{wanted} is not an axis of the mesh here", (step,), (Fix(title, edits),))


def _unknown_axis(failed: Failed, names: Collection[str]) -> tuple[str, ast.Constant] | None:
    for file, call in failed.calls(COLLECTIVES, innermost=True):
        for node in ast.walk(call):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in names:
                return file, node
    return None


def _fixes(failed: Failed, entered: tuple[str, ...], missing: tuple[str, ...]) -> Iterator[Fix]:
    for file, call in failed.calls(REDUCTIONS):
        axis = argument_of(call, 1, "axis_name")
        if axis is not None and entered:
            yield Fix(f"reduce over {', '.join(entered)} only", instead((file, axis), axes_text(entered)))
        if call.args:
            edits = wrapped((file, call.args[0]), f"{prefix_of(call)}pcast(", f", {missing!r}, to='varying')")
            yield Fix(f"count the value once for each device along {', '.join(missing)}, if that is intended", edits)


def explain_explicit(failed: Failed, said: re.Match[str]) -> Explanation:
    """A product of explicit types of which the sharding of the result is not said."""
    over = spec_axes_text(said[1])
    step = StoryStep(f"both operands are sharded over {over} in the contracting dimension", failed.place)
    title = "the sharding of the product is ambiguous: each device may get the full sum, or its own block"
    return Explanation(title, (step,), tuple(with_out_sharding(failed)))


def with_out_sharding(failed: Failed) -> Iterator[Fix]:
    """The product that failed with the sharding of its result, as its operands have it, and the full sum otherwise."""
    for file, call in failed.calls(PRODUCTS):
        operands = [each for each in call.args if not isinstance(each, ast.Constant)]
        for spec in _result_specs(failed, call, operands):
            for sharding in _over_meshes(spec, operands):
                yield Fix(_WORDS.format(spec), instead((file, call), _product(call, sharding)))
        for sharding in _over_meshes("P()", operands):
            every = together(
                *(instead((file, each), _product(each, sharding)) for each in _products_beside(failed, file, call))
            )
            yield Fix("request the full sums of all products here, with out_sharding", every)
        yield Fix(_WORDS.format("P()"))
        return
    for file, node in failing(failed):
        match node:
            case ast.BinOp(left, ast.MatMult(), right):
                both = f"{ast.unparse(left)}, {ast.unparse(right)}"
                for spec in _result_specs(failed, node, (left, right)):
                    for sharding in _over_meshes(spec, (left, right)):
                        product = f"jax.numpy.matmul({both}, out_sharding={sharding})"
                        yield Fix(_WORDS.format(spec), instead((file, node), product))
    yield Fix(_WORDS.format("P()"))


PRODUCTS = ("dot", "vdot", "matmul", "einsum", "dot_general", "tensordot")
_WORDS = "request the full sums, sharded as {}, with out_sharding"


def _products_beside(failed: Failed, file: str, call: ast.Call) -> list[ast.Call]:
    around = function_around(failed.program, file, call.lineno)
    calls = [node for node in nodes_of(failed.program, file) if isinstance(node, ast.Call)]
    here = [each for each in calls if name_of(each.func) in PRODUCTS and around is not None and holds(around[1], each)]
    return [
        each
        for each in here
        if not any(other is not each and other in ast.walk(each) for other in here)
        if not any(keyword.arg == "out_sharding" for keyword in each.keywords)
    ]


def _product(call: ast.Call, sharding: str) -> str:
    """A product with the sharding of its result, which `vdot` does not take."""
    if name_of(call.func) == "vdot" and len(call.args) == 2:
        one, other = map(ast.unparse, call.args)
        return f"jax.numpy.dot(jax.numpy.conj({one}), {other}, out_sharding={sharding})"
    return f"{ast.unparse(call)[:-1]}, out_sharding={sharding})"


def _result_specs(failed: Failed, node: ast.expr, operands: Sequence[ast.expr]) -> Iterator[str]:
    """Specs of a product: the operands' other dimensions as they are, else the first over one axis, else nothing."""
    known = [failed.specs.get(ast.unparse(each)) for each in operands]
    specs: list[Spec] = []
    text = node.args[0].value if isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant) else None
    if isinstance(text, str) and "->" in text and len(known) == text.partition("->")[0].count(",") + 1:
        letters: dict[str, tuple[str, ...]] = {}
        inputs, result = text.replace(" ", "").split("->")
        for names, spec in zip(inputs.split(","), known, strict=True):
            for name, axes in zip(names, spec or (), strict=False):
                letters[name] = letters.get(name) or axes
        specs.append(tuple(letters.get(name, ()) for name in result))
    elif len(known) == 2 and known[0]:
        other = known[1] or ()
        specs.append((*known[0][:-1], *(other[-1:] if len(other) > 1 else ())))
    contracted = set(re.findall(r"'(\w+)'", failed.said))
    every = dict.fromkeys(axis for spec in failed.specs.values() for dim in spec for axis in dim)
    specs += [((axis,),) for axis in every if axis not in contracted]
    yield from dict.fromkeys(map(text_of, (*map(_each_axis_once, specs), ())))


def _each_axis_once(spec: Spec) -> Spec:
    used: set[str] = set()
    kept = []
    for dim in spec:
        kept.append(tuple(axis for axis in dim if axis not in used))
        used |= set(dim)
    return tuple(kept)


def _over_meshes(spec: str, operands: Sequence[ast.expr]) -> Iterator[str]:
    yield f"jax.{spec}"
    for operand in operands:
        if isinstance(operand, ast.Name):
            yield f"jax.NamedSharding(jax.typeof({operand.id}).sharding.mesh, jax.{spec})"
            return
