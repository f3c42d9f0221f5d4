"""Arguments on other devices, or in another order of them, and buffers that were donated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import instead, wrapped
from ..report import Edit, StoryStep
from .operands import spec_of, text_of
from .problem import Argument, Candidate, Problem, Reason, trimmed, without_keyword

DEVICES = re.compile(
    r"Received incompatible devices for jitted computation\. Got argument (?P<one>\S+) of (?P<function>\S+) with shape"
    r" \w+\[(?P<shape>[\d,]*)\] and (?:with )?device ids \[(?P<ids>[\d, ]*)\].*? and (?:argument (?P<other>\S+) of \S+"
    r" with shape \w+\[(?P<shape2>[\d,]*)\] and )?(?P<rest>.*?)(?:with )?device ids \[(?P<ids2>[\d, ]*)\]",
    re.DOTALL,
)
_PARTS = r"spec=P(?:artitionSpec)?\((?P<{}>(?:[^()]|\([^()]*\))*)\)"
REQUIRED = re.compile(
    r"Sharding passed to p?jit does not match the sharding on the respective arg\. Got p?jit sharding: .*?"
    rf"{_PARTS.format('wanted')}.*?arg sharding: .*?{_PARTS.format('spec')}.*? for arg type: \w+\[(?P<shape>[\d,]*)\]"
    r"|Argument (?P<path>\S+) with shape \w+\[(?P<shape2>[\d,]*)\]:\s*Passed sharding: "
    rf"(?:NamedSharding\(mesh=[^\n]*?{_PARTS.format('spec2')})?[^\n]*"
    rf"\s*Required sharding: [^\n]*?{_PARTS.format('wanted2')}",
    re.DOTALL,
)
DELETED = re.compile(r"(?:Array|Buffer) has been deleted(?: or donated)?(?: with shape=\w+\[(?P<shape>[\d,]*)\])?")
TWICE = re.compile(r"Attempt to donate the same buffer twice|donate a buffer that is also used", re.DOTALL)


def _ids(text: str | None) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", text or ""))


def explain_devices(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain two arguments that are on different devices, or in a different order of them."""
    one, other = (said["one"], _ids(said["ids"])), (said["other"] or "", _ids(said["ids2"]))
    is_order = sorted(one[1]) == sorted(other[1])
    is_other = len(other[1]) < len(one[1]) or _alone(problem, other, one)
    odd, kept = (other, one) if is_order or is_other else (one, other)
    if is_order:
        title = f"{one[0]} and {other[0]} are on the same devices in different orders: {list(one[1])}, {list(other[1])}"
    else:
        where = f"device {odd[1][0]}" if len(odd[1]) == 1 else f"devices {list(odd[1])}"
        there = f"{len(kept[1])} devices" if {*odd[1]} < {*kept[1]} else f"devices {list(kept[1])}"
        title = f"{odd[0] or 'the context'} is on {where}, but {kept[0] or 'the context'} on {there}"
    steps = tuple(
        StoryStep(f"{name or 'the mesh in the context'} is on devices {list(ids)}", problem.place)
        for name, ids in (one, other)
    )
    candidates = (*_in_context(problem, one, other), *_moved(problem, odd, kept), *_moved(problem, kept, odd))
    return Reason(title, odd[0], steps, candidates=candidates)


def _alone(problem: Problem, *sides: tuple[str, tuple[int, ...]]) -> bool:
    """Return whether fewer arguments of the call are on the devices of the first side than on as many of the other."""
    calls = [call for _, call in problem.expressions[:1] if isinstance(call, ast.Call)]
    names = {ast.unparse(each) for call in calls for each in call.args}
    given = [each.devices for each in problem.arguments if each.root in names and each.kind == "array"]
    one, other = (given.count(ids) for _, ids in sides)
    return len(sides[0][1]) == len(sides[1][1]) and 0 < one < other


def _in_context(problem: Problem, *sides: tuple[str, tuple[int, ...]]) -> Iterator[Candidate]:
    """The statement under the mesh of an argument, where another one is in the context."""
    held = next((ids for name, ids in sides if name), ()) if any(not name for name, _ in sides) else ()
    mesh = next((each.name for each in problem.meshes() if each.devices == held != ()), None)
    for placed in problem.expressions:
        statement = problem.statement(placed)
        if mesh is not None and isinstance(statement, ast.Assign | ast.Expr | ast.Return):
            at = (statement.lineno, statement.col_offset)
            title = f"set the mesh of the arguments for the call: jax.set_mesh({mesh})"
            yield Candidate(title, (Edit(placed[0], *at, *at, f"with jax.set_mesh({mesh}): "),))


def explain_required(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain an argument that is not sharded as in_shardings, or a compiled function, require."""
    wanted, given = (spec_of(said[name] or said[f"{name}2"] or "") for name in ("wanted", "spec"))
    shape = tuple(int(each) for each in re.findall(r"\d+", said["shape"] or said["shape2"] or ""))
    alike = [each for each in problem.arguments if each.kind == "array" and each.shape == shape]
    near = [each for each in alike if each.spec is not None and trimmed(each.spec) == trimmed(given)]
    argument = said["path"] or next((each.name for each in (*near, *alike)), "")
    what = argument or f"an argument of shape {shape}"
    is_single = bool(said["path"]) and said["spec2"] is None
    now = "on one device" if is_single else f"sharded as {text_of(given)}"
    title = f"{what} is {now}, but the call requires {text_of(wanted)}"
    step = StoryStep(f"{what} has shape {shape}, and is {now}", problem.place)
    candidates, text = [], problem.spec_text(wanted)
    for placed in () if is_single else problem.specs(given):
        words = f"place {what} as the call requires it: {text}"
        candidates.append(Candidate(words, instead(placed, problem.spec_like(placed[1], wanted))))
    mesh = problem.mesh_of(axis for entry in wanted for axis in entry)
    sharding = f"{problem.named('NamedSharding')}({mesh}, {text})"
    if mesh is not None:
        candidates += _at_call(
            problem, argument, sharding, f"place {what} as the call requires it: {text}", others=True
        )
    for placed in problem.specs(wanted):
        words = f"require {text_of(given)}, as {what} is sharded"
        candidates += [] if is_single else [Candidate(words, instead(placed, problem.spec_like(placed[1], given)))]
    return Reason(title, argument, (step,), candidates=tuple(candidates))


def _moved(
    problem: Problem, odd: tuple[str, tuple[int, ...]], kept: tuple[str, tuple[int, ...]]
) -> Iterator[Candidate]:
    """The one argument put on the mesh of the other: where it was placed, else at the call."""
    meshes = {each.name: each for each in problem.meshes()}
    target = next((name for name, each in meshes.items() if each.devices == kept[1]), None)
    if target is None:
        return
    sharding = problem.named("NamedSharding")
    source = [name for name, each in meshes.items() if each.devices == odd[1] and name != target]
    title = f"put {odd[0]} on the devices of {target}"
    axes = {name for name, _ in meshes[target].mesh}
    for file, call in problem.calls("NamedSharding", sharding):
        if call.args and isinstance(call.args[0], ast.Name) and call.args[0].id in source:
            used = {each.value for node in call.args[1:] for each in ast.walk(node) if isinstance(each, ast.Constant)}
            if {each for each in used if isinstance(each, str)} <= axes:
                yield Candidate(title, instead((file, call.args[0]), target))
    value = next((each for each in problem.arguments if each.name == odd[0]), None)
    for file, call in problem.calls(*{name_of(call.func) for _, call in problem.nodes if isinstance(call, ast.Call)}):
        given = [each for each in call.args if isinstance(each, ast.Name) and each.id in source]
        if given and name_of(call.func) not in ("NamedSharding", sharding):
            words = f"use {target}, on which {kept[0]} is, in the place of {given[0].id}"
            yield Candidate(words, instead((file, given[0]), target))
    wanted = _spec_for(problem, value, kept[0], meshes[target])
    sharding_text = f"{sharding}({target}, {wanted})"
    if len(odd[1]) == 1:
        yield from _on_one(problem, sharding_text, f"{title}: {wanted}")
    yield from _at_call(problem, odd[0], sharding_text, f"{title} before the call: {wanted}")


def _on_one(problem: Problem, sharding: str, title: str) -> Iterator[Candidate]:
    for file, call in problem.calls("device_put"):
        match call.args:
            case [_, ast.Subscript() | ast.Call(func=ast.Attribute(attr="devices")) as device]:
                yield Candidate(title, instead((file, device), sharding))
            case [_, ast.Name() as device] if not isinstance(problem.followed(file, device), ast.Call):
                yield Candidate(title, instead((file, device), sharding))


def _at_call(
    problem: Problem, argument: str, sharding: str, title: str, *, others: bool = False
) -> Iterator[Candidate]:
    """The argument placed at the call that failed; `others` too, where the parameter is not known by its name."""
    root = re.split(r"[\[.]", argument, maxsplit=1)[0]
    for file, node in problem.expressions[:2]:
        if isinstance(node, ast.Call):
            names = [each for each in node.args if isinstance(each, ast.Name)]
            match = [each for each in names if each.id == root] or _by_position(problem, node, root)
            for each in match[:1] or (node.args if others else ()):
                put = isinstance(each, ast.Call) and name_of(each.func) == "device_put" and len(each.args) == 2
                edits = wrapped((file, each), "jax.device_put(", f", {sharding})")
                if put and isinstance(each, ast.Call):
                    edits = instead((file, each.args[1]), sharding)
                yield Candidate(title, edits)


def _by_position(problem: Problem, call: ast.Call, parameter: str) -> list[ast.expr]:
    for _, node in problem.nodes:
        if isinstance(node, ast.FunctionDef) and node.name == name_of(call.func):
            names = [each.arg for each in node.args.args]
            if parameter in names and names.index(parameter) < len(call.args):
                return [call.args[names.index(parameter)]]
    return []


def _spec_for(problem: Problem, value: Argument | None, other: str, mesh: Argument) -> str:
    """A spec for an array on a mesh: its own, else whole beside sharded data, sharded as data beside weights."""
    own = value.spec if value is not None and value.spec else ()
    if any(own) and {axis for entry in own for axis in entry} <= {name for name, _ in mesh.mesh}:
        return problem.spec_text(own)
    beside = next((each for each in problem.arguments if each.name == other), None)
    used = {axis for entry in (beside.spec if beside and beside.spec else ()) for axis in entry}
    first, size = mesh.mesh[0]
    is_data = value is not None and bool(value.shape) and first not in used and value.shape[0] % size == 0
    looks_like_weight = bool(re.search(r"\[|param|state|weight|^w\d*$|^b\d*$", value.name if value else ""))
    return problem.spec_text([(first,)]) if is_data and not looks_like_weight else problem.spec_text([])


def explain_deleted(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain an array that is used after it was donated."""
    gone = [each for each in problem.arguments if each.kind == "deleted"]
    used = {node.id for _, top in problem.expressions for node in ast.walk(top) if isinstance(node, ast.Name)}
    near = [each for each in gone if each.root in used]
    if problem.place.frame is not None and problem.place.frame.function.endswith("<lambda>"):  # of a tree's leaves
        near.sort(key=lambda each: each.name == each.root)
    named = next((each.name for each in (*near, *gone)), "")
    title = f"{named or 'an array'} was donated to an earlier call, which has reused its buffer"
    candidates = [*_without_donation(problem, named)]
    step = StoryStep(f"{named or 'it'} is read here after that call", problem.place)
    return Reason(title, named, (step,), candidates=tuple(candidates))


def _without_donation(problem: Problem, named: str) -> Iterator[Candidate]:
    for keyword in ("donate_argnums", "donate_argnames"):
        for file, call in problem.calls("jit", "pjit", "partial", "filter_jit"):
            edits = without_keyword(file, call, keyword)
            if not edits:
                continue
            bare = len(call.args) + len(call.keywords) == 1
            if bare:
                edits = ()
            name = named or "the argument"
            yield Candidate(f"donate nothing: {name} is still needed after the call (its memory is not reused)", edits)


def explain_donated_twice(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a buffer that two donated arguments share."""
    candidates = []
    for file, node in problem.nodes:
        values: list[ast.expr] = []
        match node:
            case ast.Dict(values=items) | ast.Tuple(elts=items) | ast.List(elts=items):
                values = list(items)
            case ast.Call(args=args, keywords=keywords):
                values = [*args, *(each.value for each in keywords)]
            case ast.Assign(targets=[ast.Name()], value=ast.Name() as second):  # a second name for one value
                values = [second, second]
        seen: set[str] = set()
        for value in values:
            text = ast.unparse(value)
            if isinstance(value, ast.Name | ast.Attribute) and text in seen:
                edits = wrapped((file, value), "jax.tree.map(jnp.copy, ", ")")
                candidates.append(Candidate(f"copy {text}, so that its arrays are donated once", edits))
            seen.add(text)
    step = StoryStep("the same array occurs twice among the donated arguments", problem.place)
    return Reason("two donated arguments share one buffer", "", (step,), (*candidates, *_without_donation(problem, "")))
