"""Changes of requests as edits of the lines that make them; those that no edit can express are ideas."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ...parsers.source import Frame
from ..findings.fixes.calls import Body, around, imports, name_of, nodes_of, own_files, tree_of
from ..findings.fixes.edits import Edits, Placed, extent, instead, together, with_keyword
from ..findings.fixes.jits import jit_of
from ..findings.fixes.specs import MESHES, SPECS, spelled
from ..ir.program import Program
from ..report import Edit, Fix, Report, ShardedValue
from ..report.position import is_installed
from .pricing import PricedCandidate, PricedChange

CONSTRAINTS = ("with_sharding_constraint", "reshard")
PLACES = (*CONSTRAINTS, "device_put")
MAX_PLACES = 4
"""Ways to write one change that are tried."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_STEP = re.compile(r"\[[^\]]*\]|\.\w+")


def fixes_of(report: Report, candidate: PricedCandidate) -> list[Fix]:
    """Return the ways to write a change; an idea, with the reason, where there is none."""
    title = titled(candidate)
    if not all(each.spelled for each in candidate.changes):
        return [Fix(title, why="a PartitionSpec cannot name a part of an axis")]
    written = [edits for edits in dict.fromkeys(_edits(report, candidate)) if edits]
    if written:
        return [Fix(_with_line(title, edits), edits) for edits in written[:MAX_PLACES]]
    return [Fix(title, why="no line of yours makes this request by itself")]


def titled(candidate: PricedCandidate) -> str:
    """`request P('x') for params['w'] instead of P()`."""
    first = next((each for each in candidate.changes if each.kind == "argument"), candidate.changes[0])
    names = list(dict.fromkeys(_starred(each.name) for each in candidate.changes if each.kind == first.kind))
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    match first:
        case PricedChange(kind="new"):
            return f"constrain this to {first.spec}"
        case PricedChange(kind="constraint", spec=None):
            return f"leave out the constraint {first.now}"
        case PricedChange(kind="constraint"):
            return f"constrain this to {first.spec} instead of {first.now}"
        case PricedChange(kind="result", now=None):
            return f"request {first.spec} for {names[0]}{more} in out_shardings"
    return f"request {first.spec} for {names[0]}{more} instead of {first.now}"


def place_of(candidate: PricedCandidate) -> tuple[Frame, ...]:
    """The call stack of a change: of its operation, else nothing."""
    return next((each.stack for each in candidate.changes if each.frames), ())


def _with_line(title: str, edits: Edits) -> str:
    lines = sorted({edit.line for edit in edits if not edit.text.startswith("import ")})
    return f"{title} (line {', '.join(map(str, lines[:3]))})"


def _edits(report: Report, candidate: PricedCandidate) -> Iterator[Edits]:
    program, changes = report.program, candidate.changes
    kinds = {each.kind for each in changes}
    if kinds == {"new"}:
        yield _wrapped(program, changes)
    elif kinds == {"constraint"}:
        yield _constraint(report, changes[0])
    elif candidate.kind == "c":
        yield from _as_twin(report, changes)
        yield from _as_other_name(program, changes)
        yield from _at_specs(program, changes)
    elif kinds == {"result"}:
        yield from _as_twin(report, changes)
        yield _in_out_shardings(report, changes)
        yield _wrapped(program, changes)
    else:
        yield from _at_specs(program, changes)


# A constraint around an expression


def _wrapped(program: Program, changes: Iterable[PricedChange]) -> Edits:
    """The expressions that values come from, each in a constraint; nothing where one would get two."""
    specs: dict[Frame, str] = {}
    for each in changes:
        frame = next((frame for frame in each.stack if not is_installed(frame.file)), None)
        if frame is None or each.spec is None or specs.setdefault(frame, each.spec) != each.spec:
            return ()
    return together(*(_constrained(program, frame, spec) for frame, spec in specs.items()))


def _constrained(program: Program, frame: Frame, spec: str) -> Edits:
    node = expression_at(program, frame)
    if node is None:
        return ()
    file = frame.file
    sharding, constrain = sharding_text(program, (file, node), spec), _constrain(program, file)
    if not sharding or not constrain:
        return ()
    start, end = extent(node)[:2], extent(node)[2:]
    return (Edit(file, *start, *start, f"{constrain}("), Edit(file, *end, *end, f", {sharding})"))


def _constrain(program: Program, file: str) -> str:
    source = program.file(file)
    if source is None:
        return ""
    if imports(source, "with_sharding_constraint"):
        return "with_sharding_constraint"
    if imports(source, "jax"):
        return "jax.lax.with_sharding_constraint"
    return "lax.with_sharding_constraint" if imports(source, "lax") else ""


def expression_at(program: Program, frame: Frame) -> ast.expr | None:
    """The expression that a frame is at; None where its extent is not that of one."""
    return next(
        (
            node
            for node in nodes_of(program, frame.file)
            if isinstance(node, ast.expr)
            and extent(node) == (frame.line, frame.column, frame.end_line, frame.end_column)
        ),
        None,
    )


def sharding_text(program: Program, placed: Placed, spec: str) -> str:
    """A sharding as the file can name it where an expression stands; the spec alone where no mesh has a name."""
    file = placed[0]
    text = spelled(program, file, spec.replace("P.UNCONSTRAINED", "None"))
    if not text:
        return ""
    name = text[: text.index("(")]
    text = name + spec[1:].replace("P.UNCONSTRAINED", f"{name}.UNCONSTRAINED")
    mesh, named = mesh_text(program, placed), spelled(program, file, "NamedSharding")
    if mesh and named:
        return f"{named}({mesh}, {text})"
    return text if _has_bare_specs(program, file) else ""


def mesh_text(program: Program, placed: Placed) -> str:
    """Return how the mesh is named where an expression stands; empty where no name of one is in scope."""
    file = placed[0]
    source = program.file(file)
    if source is None:
        return ""
    scopes = [node for node in around(program, placed) if isinstance(node, Body)]
    given = {each.arg for body in scopes for each in ast.walk(body.args) if isinstance(each, ast.arg)}
    local = [name for body in scopes for name in _assigned(ast.walk(body), MESHES)]
    module = tree_of(source).body
    outer = list(_assigned(module, MESHES))
    if "mesh" in given:
        return "mesh"
    if local or outer:
        return (local or outer)[0]
    names = {target.id for node in module for target in _targets(node)}
    if "mesh" in names or imports(source, "mesh"):
        return "mesh"
    if "self" in given and any(
        isinstance(node, ast.Attribute) and node.attr == "mesh" and name_of(node.value) == "self"
        for node in nodes_of(program, file)
    ):
        return "self.mesh"
    return next((f"{name}.mesh" for name in _assigned(module, ("NamedSharding",))), "")


def _assigned(nodes: Iterable[ast.AST], functions: tuple[str, ...]) -> Iterator[str]:
    for node in nodes:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign) and isinstance(value, ast.Call) and name_of(value.func) in functions:
            yield from (target.id for target in _targets(node))


def _targets(node: ast.AST) -> Iterator[ast.Name]:
    if isinstance(node, ast.Assign):
        yield from (target for target in node.targets if isinstance(target, ast.Name))


def _has_bare_specs(program: Program, file: str) -> bool:
    """Return whether a constraint in a file is given a spec without a mesh: one is set."""
    return any(
        isinstance(node, ast.Call)
        and name_of(node.func) in CONSTRAINTS
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Call)
        and name_of(node.args[1].func) in SPECS
        for node in nodes_of(program, file)
    )


# Another spec of a constraint


def _constraint(report: Report, change: PricedChange) -> Edits:
    """The call that makes a constraint and no other one, with another spec, or left out."""
    program = report.program
    mine = tuple((os.path.normpath(frame.file), frame.line) for frame in change.stack)
    ways: Counter[tuple[str, int]] = Counter()
    stacks = {
        tuple((os.path.normpath(f.file), f.line) for f in each.source.stack if not is_installed(f.file))
        for each in _constraints(report)
    }
    for stack in stacks:
        if any(one != other for one, other in zip(stack, mine, strict=False)):
            ways.update(set(stack))
    for frame in change.stack:
        if ways[os.path.normpath(frame.file), frame.line] or is_installed(frame.file):
            continue
        node = expression_at(program, frame)
        if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
            return ()
        operand = ast.unparse(node.args[0])
        if change.spec is None:
            return instead((frame.file, node), operand)
        sharding, constrain = sharding_text(program, (frame.file, node), change.spec), _constrain(program, frame.file)
        return instead((frame.file, node), f"{constrain}({operand}, {sharding})") if sharding and constrain else ()
    return ()


def _constraints(report: Report) -> Iterator[ShardedValue]:
    return (each for each in report.shardings if each.role == "constraint")


# Results and arguments


def _in_out_shardings(report: Report, changes: Iterable[PricedChange]) -> Edits:
    """Another spec of each result where `out_shardings` has it written out, or is nothing yet for a single one."""
    jit = jit_of(report)
    if jit is None:
        return ()
    file, program, changes = jit[0], report.program, list(changes)
    given = _out_shardings(jit)
    if given is None:
        if len(report.capture.outputs) != 1 or len(changes) != 1 or changes[0].spec is None:
            return ()
        text = sharding_text(program, jit, changes[0].spec)
        return with_keyword((file, jit[1]), "out_shardings", text) if text and isinstance(jit[1], ast.Call) else ()
    parts: dict[ast.expr, str] = {}
    of = {
        each.path: follow(program, file, given, _STEP.findall(each.path.removeprefix("result")))[0]
        for each in report.capture.outputs
    }
    for each in changes:
        node = of.get(each.name)
        if node is None or each.spec is None or parts.setdefault(node, each.spec) != each.spec:
            return ()
    changed = {each.name for each in changes}
    if any(node in parts and path not in changed for path, node in of.items()):
        return ()
    return together(
        *(
            instead((file, node), text)
            for node, spec in parts.items()
            if (text := sharding_text(program, (file, node), spec))
        )
    )


def _as_twin(report: Report, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """The expression that `out_shardings` has for parameters, in the place of that for others with the same keys."""
    jit = jit_of(report)
    given = None if jit is None else _out_shardings(jit)
    if jit is None or given is None:
        return
    file, program = jit[0], report.program
    parts: dict[ast.expr, str] = {}
    for each in changes:
        if each.kind != "result" or not each.parameter:
            continue
        (node, rest), (twin, left) = (
            follow(program, file, given, _STEP.findall(path.removeprefix("result")), into_names=False)
            for path in (each.name, each.parameter)
        )
        if rest and node is not twin:
            parts[node] = _named_in(twin, left)
    for node, name in parts.items():
        value = _value(program, file, node.id) if isinstance(node, ast.Name) else None
        if value is not None and value.lineno > _line_of(program, file, name):
            yield instead((file, value), name)
    yield together(*(instead((file, node), text) for node, text in parts.items()))


def _named_in(tree: ast.expr, steps: list[str]) -> str:
    """A part of a tree as text: of one with other parts replaced, as `shardings.params`, that of the tree before."""
    match tree:
        case ast.Call(func=ast.Attribute(value=before, attr="replace" | "_replace")) if steps:
            return ast.unparse(before) + steps[0]
    return ast.unparse(tree)


def _as_other_name(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """Another tree of shardings as the value of the name that constraints are given; one that is made alike first."""
    for frame in dict.fromkeys(each.stack[0] for each in changes if each.kind == "constraint" and each.frames):
        call = expression_at(program, frame)
        if not isinstance(call, ast.Call) or len(call.args) < 2 or not isinstance(call.args[1], ast.Name):
            continue
        value = _value(program, frame.file, call.args[1].id)
        others = {
            node.args[1].id: _value(program, frame.file, node.args[1].id)
            for node in nodes_of(program, frame.file)
            if isinstance(node, ast.Call) and name_of(node.func) in PLACES and len(node.args) > 1
            if isinstance(node.args[1], ast.Name) and node.args[1].id != call.args[1].id
        }
        earlier = [
            (name, v) for name, v in others.items() if v is not None and value is not None and v.lineno < value.lineno
        ]
        for name, _ in sorted(earlier, key=lambda pair: _maker(pair[1]) != _maker(value)):
            if value is not None:
                yield instead((frame.file, value), name)


def _maker(value: ast.expr | None) -> str | None:
    return name_of(value.func) if isinstance(value, ast.Call) else None


def _named(node: ast.expr, steps: list[str]) -> tuple[ast.expr, list[str]]:
    """The part of a written-out tree at a path, and the steps that are left."""
    while steps:
        match node, steps[0]:
            case (ast.Tuple() | ast.List()) as found, step if step[1:-1].isdecimal() and int(step[1:-1]) < len(
                found.elts
            ):
                node = found.elts[int(step[1:-1])]
            case ast.Dict(keys=keys, values=values), step:
                inner = [
                    v
                    for k, v in zip(keys, values, strict=True)
                    if isinstance(k, ast.Constant) and f"[{k.value!r}]" == step
                ]
                if len(inner) != 1:
                    break
                node = inner[0]
            case ast.Call(keywords=keywords), step:
                inner = [each.value for each in keywords if each.arg == step.lstrip(".")]
                if len(inner) != 1:
                    break
                node = inner[0]
            case _:
                break
        steps = steps[1:]
    return node, steps


def follow(
    program: Program, file: str, node: ast.expr, steps: list[str], *, into_names: bool = True, left: int = 10
) -> tuple[ast.expr, list[str]]:
    """The same, through names that the file assigns once, and functions of one return that lead further along the path.

    Without `into_names`, names are followed only where they do, too. At most so many are `left` to follow.
    """
    node, steps = _named(node, steps)
    value: ast.expr | None = None
    if steps and left and isinstance(node, ast.Name):
        value = _value(program, file, node.id)
    elif steps and left and isinstance(node, ast.Call):
        value = _returned(program, file, name_of(node.func))
    if value is None:
        return node, steps
    further = follow(program, file, value, steps, into_names=into_names, left=left - 1)
    is_on = (into_names and isinstance(node, ast.Name)) or len(further[1]) < len(steps)
    return further if is_on else (node, steps)


def _returned(program: Program, file: str, function: str | None) -> ast.expr | None:
    """The expression that a function of a file returns, where it has one return."""
    found = [
        inner.value
        for node in nodes_of(program, file)
        if isinstance(node, ast.FunctionDef) and node.name == function
        for inner in ast.walk(node)
        if isinstance(inner, ast.Return) and inner.value is not None
    ]
    return found[0] if len(found) == 1 else None


def _value(program: Program, file: str, name: str) -> ast.expr | None:
    found = [
        node.value
        for node in nodes_of(program, file)
        if isinstance(node, ast.Assign) and any(target.id == name for target in _targets(node))
    ]
    is_changed = any(isinstance(each, ast.Name) and each.id == name for last in found[-1:] for each in ast.walk(last))
    return found[-1] if len(found) == 1 or is_changed else None


def _line_of(program: Program, file: str, name: str) -> int:
    value = _value(program, file, name)
    return 1 << 30 if value is None else value.lineno


def _out_shardings(jit: Placed) -> ast.expr | None:
    keywords = jit[1].keywords if isinstance(jit[1], ast.Call) else []
    return next((each.value for each in keywords if each.arg == "out_shardings"), None)


def _at_specs(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """The places in the user's files that make the spec of an argument, with the other one.

    First those under a key, or a name, of the argument's path. Else those that are spelled alike together, as one
    array's spec is written where it is made and where it is taken; then all, then each by itself.
    """
    changes = [each for each in changes if each.kind == "argument"]
    first = changes[0]
    names = {name for each in changes for name in _NAME.findall(each.name)}
    wanted, now = _entries(first.spec or "P()"), _entries(first.now or "P()")
    alike: dict[tuple[str, str], list[Edits]] = {}
    named: list[Edits] = []
    for file in dict.fromkeys(filter(None, (_script(program), *own_files(program)))):
        helpers = set(_spec_helpers(program, file))
        keys = dict(_keys(program, file))
        for node in nodes_of(program, file):
            if not isinstance(node, ast.Call) or name_of(node.func) not in helpers or not _is_constant(node):
                continue
            if _without_nones([ast.literal_eval(each) for each in node.args]) == now:
                text = ", ".join(map(repr, wanted)) if wanted else ""
                edits = instead((file, node), f"{ast.unparse(node.func)}({text})")
                alike.setdefault((file, ast.unparse(node)), []).append(edits)
                named += [edits] * (keys.get(node) in names)
    if named:
        yield together(*named)
        yield from named
    places = list(alike.values())
    yield from (together(*each) for each in sorted(places, key=len, reverse=True) if len(each) > 1)
    if len(places) > 1:
        yield together(*(edits for each in places for edits in each))
    yield from (edits for each in places for edits in each)


def _keys(program: Program, file: str) -> Iterator[tuple[ast.expr, str]]:
    """The values in a file that have a key, a keyword or a name, also those inside of a call, with that."""
    for node in nodes_of(program, file):
        pairs: list[tuple[object, ast.expr]] = []
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [(k.value, v) for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant)]
            case ast.Call(keywords=keywords):
                pairs = [(each.arg, each.value) for each in keywords]
            case ast.Assign(value=value) if any(_targets(node)):
                pairs = [(next(_targets(node)).id, value)]
        for key, value in pairs:
            inner = value.args if isinstance(value, ast.Call) else []
            yield from ((each, key) for each in (value, *inner) if isinstance(key, str))


def _script(program: Program) -> str | None:
    subject = program.capture.subject
    return None if subject is None else subject.script


def _spec_helpers(program: Program, file: str) -> Iterator[str]:
    """The functions whose arguments are the entries of a spec: PartitionSpec, by all of its names, and helpers."""
    nodes = list(nodes_of(program, file))
    names = {
        each.asname for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names if each.name in SPECS
    }
    specs = {*SPECS, *filter(None, names)}
    yield from specs
    for node in nodes:
        named = (
            (node.name, node)
            if isinstance(node, ast.FunctionDef)
            else (next(_targets(node)).id, node.value)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and any(_targets(node))
            else None
        )
        if named is not None and named[1].args.vararg is not None:
            starred = {
                name_of(each.func)
                for each in ast.walk(named[1])
                if isinstance(each, ast.Call) and any(isinstance(given, ast.Starred) for given in each.args)
            }
            if starred & specs:
                yield named[0]


def _is_constant(call: ast.Call) -> bool:
    try:
        for each in call.args:
            ast.literal_eval(each)
    except ValueError:
        return False
    return not call.keywords


def _entries(spec: str) -> list[object]:
    found = ast.parse(spec, mode="eval").body
    return _without_nones([ast.literal_eval(each) for each in found.args]) if isinstance(found, ast.Call) else []


def _without_nones(entries: list[object]) -> list[object]:
    found = [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in entries]
    while found and found[-1] is None:
        found.pop()
    return found


def _starred(path: str) -> str:
    return re.sub(r"\[\d+\](?=.)", "[*]", path)
