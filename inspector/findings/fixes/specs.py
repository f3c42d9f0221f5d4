"""Shardings in the user's source, written anew: as a file can name them, and those of the results of a jit."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from ...ir.array_sharding import ArraySharding
from ...ir.derived import derived
from ...ir.name_scopes import steps_of
from ...ir.program import Program, SourceFile
from ...report import Report
from .calls import Body, around, captured_name, imports, name_of, nodes_of, own_files, returned_by, tree_of
from .edits import Edits, Placed, instead, together
from .jits import jit_of, with_jit_keyword

SPECS = ("P", "PartitionSpec")
MESHES = ("Mesh", "make_mesh", "AbstractMesh")
MAX_WRITTEN = 24
"""Results below one sharding for which that is written out."""

CONSTRAINTS = ("with_sharding_constraint", "reshard")


def with_out_specs(report: Report, specs: Mapping[str, object]) -> Edits:
    """Return the jit with these specs of results, by their names, as `result['w']`; nothing where that is not written.

    Where it has one sharding for several results, or none, a tree of them is written out.
    """
    jit = jit_of(report)
    if jit is None or not specs:
        return ()
    file, program, given = jit[0], report.program, out_shardings_of(jit)
    texts = {name: sharding_text(program, jit, str(spec)) for name, spec in specs.items()}
    names = [value.name for value in report.shardings if value.role == "output"]
    if not all(texts.values()) or not set(texts) <= set(names):
        return ()
    if given is None:
        tree = tree_text({name.removeprefix("result"): texts.get(name, "None") for name in names})
        return () if tree is None else with_jit_keyword(jit, "out_shardings", tree)
    found = {name: follow(program, file, given, steps_of(name)) for name in names}
    changed = {found[name][0] for name in texts}
    if any(isinstance(node, ast.Tuple | ast.List | ast.Dict) for node in changed):
        return ()
    parts = {
        node: {"".join(left): texts.get(name, ast.unparse(node)) for name, (at, left) in found.items() if at is node}
        for node in changed
    }
    written = {node: _one(each.values()) or tree_text(each) for node, each in parts.items() if len(each) <= MAX_WRITTEN}
    if len(written) < len(parts) or not all(written.values()):
        return ()
    return together(*(instead((file, node), text) for node, text in written.items() if text))


def _one(texts: Iterable[str]) -> str:
    """The text that all are; empty where they differ."""
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def with_result_specs(report: Report, specs: Mapping[str, object]) -> Edits:
    """Return the function with these specs of results, by their names, as `result['w']` or `result.layer.kernel`."""
    return with_out_specs(report, specs) or _constrained_results(report, specs)


def _constrained_results(report: Report, specs: Mapping[str, object]) -> Edits:
    """Return the constraint of what a function returns, by paths: its tree may be of any classes.

    Nothing where the function has several returns, or its file has no name for what the constraint takes.
    """
    returned = list(_results_of(report))
    if len(returned) != 1 or not specs:
        return ()
    placed, program = returned[0], report.program
    source = program.file(placed[0])
    shardings = {name.removeprefix("result"): sharding_text(program, placed, str(spec)) for name, spec in specs.items()}
    if source is None or not imports(source, "jax") or not all(shardings.values()):
        return ()
    if list(shardings) == [""]:
        return instead(placed, f"jax.lax.with_sharding_constraint({ast.unparse(placed[1])}, {shardings['']})")
    table = ", ".join(f"{path!r}: {sharding}" for path, sharding in shardings.items())
    leaf = (
        f"jax.lax.with_sharding_constraint(leaf, {{{table}}}[jax.tree_util.keystr(path)])"
        f" if jax.tree_util.keystr(path) in {tuple(shardings)!r} else leaf"
    )
    return instead(placed, f"jax.tree_util.tree_map_with_path(lambda path, leaf: {leaf}, {ast.unparse(placed[1])})")


def _results_of(report: Report) -> Iterator[Placed]:
    name = captured_name(report.program)
    if not name or report.script is None:
        return
    for file in dict.fromkeys((report.script, *own_files(report.program))):
        for node in nodes_of(report.program, file):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield from ((file, each) for each in returned_by(node))


def out_shardings_of(jit: Placed) -> ast.expr | None:
    """The expression that a jit is given as `out_shardings`."""
    keywords = jit[1].keywords if isinstance(jit[1], ast.Call) else []
    return next((each.value for each in keywords if each.arg == "out_shardings"), None)


def tree_text(leaves: Mapping[str, str]) -> str | None:
    """Tuples and dictionaries with a text at each path; None where paths have other steps."""
    if list(leaves) == [""]:
        return leaves[""]
    groups: dict[str, dict[str, str]] = {}
    for path, text in leaves.items():
        step = next(iter(steps_of(path)), "")
        if not step.startswith("[") or not path.startswith(step):
            return None
        groups.setdefault(step[1:-1], {})[path[len(step) :]] = text
    parts = {key: tree_text(group) for key, group in groups.items()}
    if None in parts.values():
        return None
    if list(parts) == [str(number) for number in range(len(parts))]:
        return f"({', '.join(map(str, parts.values()))}{',' if len(parts) == 1 else ''})"
    return f"{{{', '.join(f'{key}: {part}' for key, part in parts.items())}}}"


def spelled(program: Program, file: str, text: str) -> str:
    """Return a spec, or a class, as the file can name it; empty where it has imported nothing for that."""
    source = program.file(file)
    name = text.partition("(")[0]
    names = SPECS if name == "P" else (name,)
    found = next((each for each in names if source is not None and imports(source, each)), None)
    if found is None and source is not None and imports(source, "jax"):
        found = f"jax.sharding.{names[-1]}"
    return "" if found is None else found + text[len(name) :]


def sharding_text(program: Program, placed: Placed, spec: str) -> str:
    """A sharding as the file can name it where an expression stands; the spec alone where that is how it writes them.

    Where no mesh has a name, it is that of a value which the expression takes. Empty where nothing can be named.
    """
    file = placed[0]
    text = spelled(program, file, spec.replace("P.UNCONSTRAINED", "None"))
    if not text:
        return ""
    name = text[: text.index("(")]
    text = name + spec[1:].replace("P.UNCONSTRAINED", f"{name}.UNCONSTRAINED")
    mesh, named = mesh_text(program, placed), spelled(program, file, "NamedSharding")
    if mesh and named:
        return f"{named}({mesh}, {text})"
    if _has_bare_specs(program, file):
        return text
    value = _operand_text(program, placed)
    return f"{named}(jax.typeof({value}).sharding.mesh, {text})" if named and value else ""


def _operand_text(program: Program, placed: Placed) -> str:
    """Return an array that an expression takes: a name that its functions assign, or an item of one."""
    source = program.file(placed[0])
    if source is None or not imports(source, "jax"):
        return ""
    scopes = [node for node in around(program, placed) if isinstance(node, Body)]
    own = {each.arg for body in scopes for each in ast.walk(body.args) if isinstance(each, ast.arg)} - {"self"}
    own |= {name for body in scopes for node in ast.walk(body) for name in assigned_names(node)}
    nodes = list(ast.walk(placed[1]))
    inner = {node.func for node in nodes if isinstance(node, ast.Call)}
    inner |= {node.value for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=name) as tree, slice=ast.Constant(value=str())) if name in own:
                if node not in inner:
                    return ast.unparse(node)
                inner.add(tree)
            case ast.Name(id=name) if name in own and node not in inner:
                return name
    return ""


def mesh_text(program: Program, placed: tuple[str, ast.AST]) -> str:
    """Return how the mesh is named where an expression stands; empty where no name of one is in scope."""
    file = placed[0]
    source = program.file(file)
    if source is None:
        return ""
    scopes = [node for node in around(program, placed) if isinstance(node, Body)]
    given = {each.arg for body in scopes for each in ast.walk(body.args) if isinstance(each, ast.arg)}
    local = [name for body in scopes for name in _assigned_names(program, file, ast.walk(body), MESHES)]
    module = tree_of(source).body
    outer = list(_assigned_names(program, file, module, MESHES))
    if "mesh" in given:
        return "mesh"
    if local or outer:
        return (local or outer)[0]
    if any("mesh" in assigned_names(node) for node in module) or imports(source, "mesh"):
        return "mesh"
    for node in nodes_of(program, file):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr="mesh") if owner in given:
                return f"{owner}.mesh"
    return next((f"{name}.mesh" for name in _assigned_names(program, file, module, ("NamedSharding",))), "")


def sharding_words(report: Report, spec: str) -> str:
    """A sharding by the name that the script has for its mesh; the spec alone where there is none."""
    source = None if report.script is None else report.program.file(report.script)
    mesh = "" if source is None else mesh_text(report.program, (source.name, tree_of(source)))
    return f"NamedSharding({mesh}, {spec})" if mesh else spec


def _assigned_names(program: Program, file: str, nodes: Iterable[ast.AST], functions: tuple[str, ...]) -> Iterator[str]:
    """The names to which statements assign what these functions return, also by way of one that the file defines."""
    for node in (each for each in nodes if isinstance(each, ast.Assign)):
        for target in node.targets:
            parts = enumerate(target.elts) if isinstance(target, ast.Tuple) else [(None, target)]
            for number, part in parts:
                steps = [] if number is None else [f"[{number}]"]
                if isinstance(part, ast.Name) and _is_made_by(program, file, node.value, steps, functions):
                    yield part.id


def _is_made_by(
    program: Program, file: str, node: ast.expr, steps: list[str], functions: tuple[str, ...], left: int = 5
) -> bool:
    """Return whether a value, or a part of it, comes from such a call, through so many names and functions at most."""
    node, steps = follow(program, file, node, steps)
    value: ast.expr | None = None
    if isinstance(node, ast.Name):
        value = value_of(program, file, node.id)
    elif isinstance(node, ast.Call) and not steps:
        if name_of(node.func) in functions:
            return True
        value = _returned(program, file, name_of(node.func))
    if value is None or not left or steps:
        return False
    return _is_made_by(program, file, value, [], functions, left - 1)


def targets_of(node: ast.AST) -> Iterator[ast.Name]:
    """The names that a statement assigns."""
    if isinstance(node, ast.Assign):
        yield from (target for target in node.targets if isinstance(target, ast.Name))


def parts_of_targets(node: ast.AST) -> list[ast.expr]:
    """The targets of an assignment, also those in a tuple."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [part for target in targets for part in (target, *getattr(target, "elts", ()))]


def assigned_names(node: ast.AST) -> set[str]:
    """The names and attributes that a statement assigns, also those in a tuple."""
    return {name_of(part) for part in parts_of_targets(node)} - {""}


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


def _named(node: ast.expr, steps: list[str]) -> tuple[ast.expr, list[str]]:
    """The part of a written-out tree at a path, and the steps that are left."""
    while steps and (part := _parts(node).get(steps[0])) is not None:
        node, steps = part, steps[1:]
    return node, steps


def _parts(node: ast.expr) -> dict[str, ast.expr]:
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return {f"[{number}]": each for number, each in enumerate(elements)}
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {f"[{key.value!r}]": value for key, value in pairs if isinstance(key, ast.Constant)}
        case ast.Call(keywords=keywords):
            return {f".{each.arg}": each.value for each in keywords}
    return {}


def follow(program: Program, file: str, node: ast.expr, steps: list[str], left: int = 10) -> tuple[ast.expr, list[str]]:
    """The same, through names that the file assigns once, and functions of one return, if they lead further along it.

    At most so many are `left` to follow.
    """
    node, steps = _named(node, steps)
    value: ast.expr | None = None
    if steps and left and isinstance(node, ast.Name):
        value = value_of(program, file, node.id)
    elif steps and left and isinstance(node, ast.Call):
        value = _returned(program, file, name_of(node.func))
    if value is None:
        return node, steps
    further = follow(program, file, value, steps, left - 1)
    return further if len(further[1]) < len(steps) else (node, steps)


def _returned(program: Program, file: str, function: str | None) -> ast.expr | None:
    source = program.file(file)
    found = () if source is None else _returns(source).get(function or "", ())
    return found[0] if len(found) == 1 else None


@derived
def _returns(source: SourceFile) -> dict[str, list[ast.expr]]:
    """The values that functions return, by their names."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).extend(returned_by(node))
    return found


def value_of(program: Program, file: str, name: str) -> ast.expr | None:
    """The value of a name that a file assigns once, or changes."""
    source = program.file(file)
    found = [] if source is None else _values(source).get(name, [])
    is_changed = any(isinstance(each, ast.Name) and each.id == name for last in found[-1:] for each in ast.walk(last))
    return found[-1] if len(found) == 1 or is_changed else None


@derived
def _values(source: SourceFile) -> dict[str, list[ast.expr]]:
    """The values that are assigned, by the name."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Assign):
            for name in dict.fromkeys(target.id for target in targets_of(node)):
                found.setdefault(name, []).append(node.value)
    return found


def value_behind(program: Program, file: str, node: ast.expr) -> ast.expr | None:
    """The value of a name or an attribute that a file assigns once; another expression itself."""
    match node:
        case ast.Name(id=name):
            return value_of(program, file, name)
        case ast.Attribute(attr=name):
            found = [
                each.value
                for each in nodes_of(program, file)
                if isinstance(each, ast.Assign)
                and any(isinstance(target, ast.Attribute) and target.attr == name for target in each.targets)
            ]
            return found[0] if len(found) == 1 else None
    return node


def has_whole_axes(shardings: Iterable[ArraySharding]) -> bool:
    """Return whether code can name all of the axes: no parts of them, and nothing that is left to propagation."""
    return all(
        not dim.is_open and all(axis.sub is None for axis in dim.axes) for each in shardings for dim in each.dims
    )
