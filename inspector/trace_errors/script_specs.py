"""Specs that do not fit: too long, an axis twice, an unknown axis, none in context, or trees of another shape."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Edits, Placed, extent, instead, together, wrapped
from ..findings.fixes.specs import SPECS
from ..report import Edit, StoryStep
from ..units import plural
from .modes import automatic
from .operands import spec_of, text_of
from .problem import ARRAYS, Candidate, Problem, Reason, entries_of, without_keyword
from .sizes import placed_by_leaf, placements

RANK = re.compile(
    r"spec=P(?:artitionSpec)?\((?P<spec>(?:[^()]|\([^()]*\))*)\)[^:]*? is only valid for values of rank at least"
    r" (?P<least>\d+), but was applied to a value of rank (?P<rank>\d+)"
)
TOO_LONG = re.compile(
    r"Length of sharding\.spec \((?P<least>\d+)\) must be equal to aval's ndim \((?P<rank>\d+)\)\."
    r" Got sharding\.spec P\((?P<spec>(?:[^()]|\([^()]*\))*)\)"
)
TWICE = re.compile(
    r"map every mesh axis to at most one positional dimension, but P(?:artitionSpec)?\((?P<spec>.*?)\) has duplicate"
    r" entries for `(?P<axis>\w+)`"
)
UNKNOWN = re.compile(
    r"Resource axis: (?P<axis>\w+) of P(?:artitionSpec)?\((?P<spec>.*?)\) is not found in mesh: \((?P<axes>[^)]*)\)"
)
NOT_MANUAL = re.compile(
    r"must refer to an axis marked as manual \(frozenset\(\{(?P<axes>[^}]*)\}\)\), but:\s*(?P<spec>\S+) refers to"
    r" '(?P<axis>\w+)'"
)
NO_MESH = re.compile(
    r"An auto mesh context or metadata is required"
    r"|requires a non-empty mesh in context|under a mesh context|context mesh.{0,40}empty|mesh in context"
    r"|Please (?:provide|set) a mesh|is not found in mesh: \(\)"
)
TREE = re.compile(
    r"(?P<what>in_shardings|out_shardings|in_specs|out_specs)[^.]*?must be a tree prefix.*?wrong length: got a tuple or"
    r" list of length (?P<has>\d+) for an args tuple of length (?P<wants>\d+)",
    re.DOTALL,
)
TREE_LENGTH = re.compile(
    r"prefix pytree (?P<what>.*?) has a subtree of type\s*(?:<class ')?(?:tuple|list)\S* of length (?P<has>\d+), but"
    r" the full pytree has a subtree of the same type but of length (?P<wants>\d+)",
    re.DOTALL,
)
TREE_KEYS = re.compile(
    r"prefix pytree (?P<what>.*?) has a subtree of type.*?with (?P<has>\d+) child keys\s*(?P<keys>.*?)\n.*?"
    r"symmetric difference on key sets is\s*(?P<missing>.*)",
    re.DOTALL,
)

TREE_KIND = re.compile(
    r"prefix pytree (?:pjit )?(?P<what>\S.*?) has a subtree of type\s*<class '(?:\S+\.)?(?P<has>\w+)'>\s*but at the"
    r" same key path the full pytree has a subtree of different type\s*<class '(?:\S+\.)?(?P<wants>\w+)'>"
)

NONE = re.compile(r"One of (?P<what>\w+) arguments got sharding None which is not allowed")

ROLES = (
    ("data", "dp", "batch", "fsdp", "replica", "ddp", "d", "x"),
    ("model", "tp", "tensor", "mp", "mdl", "heads", "mlp", "vocab", "embed", "expert", "ep", "t", "m", "y"),
    ("seq", "sp", "sequence", "context", "cp"),
)
"""Names of mesh axes that mean the same."""

KEYWORDS = ("in_shardings", "out_shardings", "in_specs", "out_specs")


def explain_rank(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a spec with more entries than the value has dimensions."""
    spec, rank = list(spec_of(said["spec"])), int(said["rank"])
    argument = next((each.name for each in _used(problem) if len(each.shape) == rank and each.kind in ARRAYS), "")
    what = argument or "the value"
    spare = [dim for dim, entry in enumerate(spec) if not entry][rank - len(spec) :]
    fitting = [entry for dim, entry in enumerate(spec) if dim not in spare] if rank else []
    short = problem.spec_text(fitting[:rank])
    least = f"the spec {text_of(tuple(spec))} at least {said['least']}"
    step = StoryStep(f"{what} has {plural(rank, 'dimension')}, {least}", problem.place)
    candidates: list[Candidate] = []
    title = f"use {short} for {what}: one entry for each dimension"
    for placed in placements(problem):
        candidates += _ranked(problem, *placed)
    candidates += list(_at_helper(problem, len(spec), title))
    near = [*problem.specs(spec)]
    candidates += [each for file, call in near for each in _by_leaf(problem, file, call, int(said["least"]))]
    candidates += [Candidate(title, instead(placed, short)) for placed in near]
    return Reason(
        f"{text_of(tuple(spec))} has more entries than {what} has dimensions ({rank})",
        argument,
        (step,),
        tuple(candidates),
    )


def _by_leaf(problem: Problem, file: str, spec: ast.Call, least: int) -> Iterator[Candidate]:
    """A spec in a function of one leaf, for the leaves that have the dimensions."""
    for at, node in problem.nodes:
        is_around = at == file and isinstance(node, ast.Lambda) and any(each is spec for each in ast.walk(node.body))
        if is_around and isinstance(node, ast.Lambda) and len(node.args.args) == 1:
            text = f"({ast.unparse(spec)} if {node.args.args[0].arg}.ndim >= {least} else {problem.spec_name}())"
            yield Candidate("shard the leaves that have the dimensions, and no other", instead((file, spec), text))


def _ranked(problem: Problem, file: str, call: ast.Call, sharding: ast.expr, value: ast.expr) -> Iterator[Candidate]:
    title = "give each leaf as many entries of the spec as it has dimensions"
    subject, text = ast.unparse(value), ast.unparse(sharding)
    if name_of(call.func) == "with_sharding_constraint":
        written = problem.followed(file, sharding)
        if isinstance(written, ast.Call) and name_of(written.func) in (*SPECS, problem.spec_name):
            cut = f"{problem.spec_name}(*tuple({text})[: {subject}.ndim])"
            yield Candidate(title, instead((file, sharding), cut))
        return
    mesh, spec = f"{text}.mesh", f"{text}.spec"
    if isinstance(sharding, ast.Call):
        if name_of(sharding.func) != "NamedSharding" or len(sharding.args) < 2:
            return
        mesh, spec = (ast.unparse(each) for each in sharding.args[:2])
        if isinstance(written := sharding.args[1], ast.Call) and entries_of(written) is not None:
            spec = "".join(("(", *(f"{ast.unparse(each)}, " for each in written.args))).rstrip() + ")"
    entries = spec if spec.startswith("(") else f"tuple({spec})"
    cut = f"{problem.named('NamedSharding')}({mesh}, {problem.spec_name}(*{entries}[: {{}}.ndim]))"
    if any(each.name == subject for each in problem.arguments):
        yield Candidate(title, instead((file, sharding), cut.format(subject)))
    else:
        yield Candidate(title, placed_by_leaf(file, call, value, sharding, cut.format("leaf")))


def _at_helper(problem: Problem, length: int, title: str) -> Iterator[Candidate]:
    """A call of a helper that makes the spec of its arguments, without the last of them."""
    for file, call in problem.expressions[1:3]:
        if isinstance(call, ast.Call):
            names = [each for each in call.args if isinstance(each, ast.Constant)]
            if len(names) == length and len(call.args) > len(names):
                before, last = call.args[-2], call.args[-1]
                yield Candidate(title, (Edit(file, *extent(before)[2:], *extent(last)[2:], ""),))


def _used(problem: Problem) -> list:  # type: ignore[type-arg]
    tops = [{node.id for node in ast.walk(top) if isinstance(node, ast.Name)} for _, top in problem.expressions[:2]]
    return [each for names in tops for each in problem.arguments if each.root in names]


def explain_none(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a leaf without a sharding, and give it that of a value that each device has whole."""
    candidates = []
    for file, call in problem.calls(said["what"]):
        tree = None if len(call.args) < 2 else problem.followed(file, call.args[1])
        within = () if tree is None else tuple(ast.walk(tree))
        shardings = [problem.followed(file, each) for each in within if isinstance(each, ast.Name | ast.Call)]
        meshes = [
            ast.unparse(each.args[0])
            for each in shardings
            if isinstance(each, ast.Call) and name_of(each.func) == "NamedSharding" and each.args
        ]
        whole = f"{problem.spec_name}()"
        text = f"{problem.named('NamedSharding')}({meshes[0]}, {whole})" if meshes else whole
        entries = [entry for each in within if isinstance(each, ast.Call) for entry in each.args]
        nones = [each for each in within if isinstance(each, ast.Constant) and each.value is None]
        leaves = [(file, each) for each in nones if each not in entries]
        if tree is not None and leaves and leaves[0][1] is not tree:
            edits = together(*(instead(each, text) for each in leaves))
            candidates.append(Candidate(f"replicate what has no sharding: {text}", edits))
    step = StoryStep(f"each leaf of {said['what']} needs a sharding: None is none", problem.place)
    return Reason(f"a leaf has None as its sharding in {said['what']}", "", (step,), candidates=tuple(candidates))


def explain_twice(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain an axis that shards two dimensions of a value."""
    spec, axis = list(spec_of(said["spec"])), said["axis"]
    dims = [dim for dim, entry in enumerate(spec) if axis in entry]
    title = f"{axis!r} occurs twice in {text_of(tuple(spec))}: one mesh axis can shard one dimension"
    candidates = []
    for left_out in reversed(dims) if len(dims) > 1 else dims:
        kept = [
            tuple(each for each in entry if each != axis) if dim == left_out else entry
            for dim, entry in enumerate(spec)
        ]
        if len(dims) == 1:  # twice in one entry
            kept = [tuple(dict.fromkeys(entry)) for entry in spec]
        words = (
            f"keep {axis!r} for dimension {next((d for d in dims if d != left_out), left_out)}, and not for {left_out}"
        )
        candidates += [
            Candidate(words, instead(placed, problem.spec_like(placed[1], kept))) for placed in problem.specs(spec)
        ]
        candidates += [Candidate(words, instead(each, "None")) for each in _logical(problem, spec, left_out)]
    step = StoryStep(f"dimensions {' and '.join(map(str, dims))} are both to be sharded over {axis!r}", problem.place)
    return Reason(title, "", (step,), candidates=tuple(candidates))


def _logical(problem: Problem, spec: Sequence[Sequence[str]], dim: int) -> Iterator[Placed]:
    """The name of a dimension where the names of all are written out, and its axis in the table of rules.

    The table is first where several places have these names.
    """
    rules: dict[object, Placed] = {}
    for file, node in problem.nodes:
        for name, value in _pairs(node):
            rules.setdefault(name, (file, value))
    axes = {name: tuple(_texts(value)) for name, (_, value) in rules.items()}
    found: list[Placed] = []
    for file, node in problem.nodes:
        written = getattr(node, "args" if isinstance(node, ast.Call) else "elts", ())
        names = [each for each in written if isinstance(each, ast.Constant)]
        if len(names) == len(spec) and [axes.get(each.value, tuple(_texts(each))) for each in names] == list(spec):
            found.append((file, names[dim]))
    table = [rules[name] for name in dict.fromkeys(_constant(node) for _, node in found) if name in rules]
    yield from (*table, *found) if len(found) > 1 else (*found, *table)


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = list(zip(keys, values, strict=True))
        case ast.Tuple(elts=[ast.Tuple(), *_] as elements) | ast.List(elts=[ast.Tuple(), *_] as elements):
            pairs = [
                (each.elts[0], each.elts[1]) for each in elements if isinstance(each, ast.Tuple) and len(each.elts) == 2
            ]
        case _:
            return
    yield from (
        (key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and isinstance(key.value, str)
    )


def _texts(node: ast.expr) -> Iterator[str]:
    return (each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def explain_unknown(problem: Problem, said: re.Match[str]) -> Reason | None:
    """Explain an axis that the mesh does not have."""
    axis, axes = said["axis"], tuple(re.findall(r"'(\w+)'", said["axes"]))
    if not axes:
        return _explain_library(problem, axis) or explain_no_mesh(problem, said)
    if "manual" in said[0] and problem.mesh_of([axis]) is not None:
        return _explain_automatic(problem, said, axis, axes)
    taken = {each for entry in spec_of(said["spec"]) for each in entry}
    ordered = sorted((each for each in axes if each not in taken), key=lambda each: -alike(axis, each))
    candidates = []
    constants = [
        (file, node)
        for file, node in problem.nodes
        if isinstance(node, ast.Constant) and node.value == axis and not _is_key(problem, node)
    ]
    at = {(file, id(node)) for file, call in problem.specs(spec_of(said["spec"])) for node in ast.walk(call)}
    here = [placed for placed in constants if (placed[0], id(placed[1])) in at]
    for name in ordered:
        for places in (here, constants):
            if places:
                edits = together(*(instead(each, repr(name)) for each in places))
                candidates.append(Candidate(f"use {name!r}, which the mesh has", edits))
    if here:
        edits = together(*(instead(each, "None") for each in here))
        candidates.append(Candidate(f"leave that dimension unsharded: no axis {axis!r}", edits))
    step = StoryStep(f"the mesh has the axes {', '.join(map(repr, axes))}", problem.place)
    where = said["spec"] if "specs" in said["spec"] else text_of(spec_of(said["spec"]))
    title = f"{axis!r}, in {where}, is not an axis of the mesh"
    return Reason(title, "", (step,), candidates=tuple(candidates))


def _explain_library(problem: Problem, axis: str) -> Reason | None:
    """Explain a function of JAX's that names an axis of a batch, where it has lost the mesh."""
    placed = next(iter(problem.expressions), None)
    candidates = tuple(automatic(problem)) if problem.mesh_of([axis]) is not None else ()
    if placed is None or not candidates or re.search(r"\bP\(|Spec\(|Sharding\(", ast.unparse(placed[1])):
        return None
    step = StoryStep(f"a batch is sharded over {axis!r}, and the operations inside have no rule for it", problem.place)
    return Reason(f"{ast.unparse(placed[1])} does not support explicit axes here", "", (step,), candidates=candidates)


def _explain_automatic(problem: Problem, said: re.Match[str], axis: str, axes: Sequence[str]) -> Reason:
    candidates = []
    for file, call in problem.calls("shard_map", "smap", "partial"):
        given = next((each.value for each in call.keywords if each.arg == "axis_names"), None)
        specs = [each.value for each in call.keywords if each.arg in ("in_specs", "out_specs")]
        if given is not None:
            words = f"map over {axis!r} as well: it is not in axis_names"
            text = f"{{{', '.join(map(repr, sorted({*axes, axis})))}}}"
            candidates.append(Candidate(words, instead((file, given), text)))
            named = [each for top in specs for each in ast.walk(top)]
            places = [(file, each) for each in named if isinstance(each, ast.Constant) and each.value == axis]
            words = f"leave {axis!r} out of the specs: it is automatic in this shard_map"
            candidates.append(Candidate(words, together(*(instead(each, "None") for each in places))))
    step = StoryStep(f"this shard_map maps over {', '.join(map(repr, axes))} only", problem.place)
    title = f"{said['spec']} names {axis!r}, over which this shard_map does not map"
    return Reason(title, axis, (step,), candidates=tuple(candidates))


def _is_key(problem: Problem, node: ast.AST) -> bool:
    """Return whether a text is a subscript, as in `batch["data"]`, or a key of a dict."""
    keys = (
        other.keys if isinstance(other, ast.Dict) else [getattr(other, "slice", None)] for _, other in problem.nodes
    )
    return any(node in each for each in keys)


def alike(one: str, other: str) -> float:
    """Return how likely two names of axes mean the same."""
    role = any(one.lower() in names and other.lower() in names for names in ROLES)
    return 2.0 * role + difflib.SequenceMatcher(None, one, other).ratio()


def explain_no_mesh(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a spec alone, where no mesh is in the context."""
    candidates = []
    sharding = problem.named("NamedSharding")
    calls = list(problem.calls("with_sharding_constraint", "device_put", "jit", "pjit", "reshard"))
    for file, call in calls:
        written = [
            (file, node)
            for top in (*call.args[1:], *(k.value for k in call.keywords))
            for node in ast.walk(problem.followed(file, top))
            if isinstance(node, ast.Call) and name_of(node.func) in (*SPECS, problem.spec_name)
        ]
        axes = {axis for _, node in written for entry in entries_of(node) or () for axis in entry}
        mesh = problem.mesh_of(axes)
        if written and mesh is not None:
            edits = together(*(wrapped(each, f"{sharding}({mesh}, ", ")") for each in written))
            title = f"give the mesh with the spec: NamedSharding({mesh}, …)"
            candidates.append(Candidate(title, edits))
    for mesh_fact in problem.meshes():
        for file, node in problem.nodes:
            match node:
                case ast.Assign(targets=[target]) if (name := ast.unparse(target)) == mesh_fact.name:
                    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
                    text = f"\n{' ' * node.col_offset}jax.set_mesh({name})"
                    candidates.append(Candidate(f"set the mesh: jax.set_mesh({name})", (Edit(file, *end, *end, text),)))
    step = StoryStep("a PartitionSpec names axes, and no mesh is set here that has them", problem.place)
    return Reason("a PartitionSpec is used without a mesh", "", (step,), candidates=tuple(candidates))


def explain_length(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a tuple of shardings with too few or too many entries."""
    has, wants = int(said["has"]), int(said["wants"])
    what = next((name for name in KEYWORDS if name in said["what"] or name in said[0]), None)
    if what is None:
        return _explain_list(problem, said["what"].strip(), has, wants)
    candidates, path = [], _path(problem, what)
    for file, call, given in _given(problem, what):
        at = list(_along(problem, file, given, path))
        inside = at[-1] if len(at) == len(path) + 1 else given
        tuples = [each for each in ast.walk(inside) if isinstance(each, ast.Tuple | ast.List) and len(each.elts) == has]
        for each in tuples[:1]:
            filler = "None" if "shardings" in what else f"{problem.spec_name}()"
            edits = _of_length(file, each, wants, filler)
            if has < wants:
                means = "leaves a sharding to JAX" if filler == "None" else "is whole on every device"
                candidates.append(Candidate(f"add {wants - has} to {what}: {filler} {means}", edits))
            elif wants:
                candidates.append(Candidate(f"leave out the last {has - wants} of {what}", edits))
        candidates += _left_to_jax(file, call, given, what, path)
    count = "arguments" if "in_" in what else "results"
    title = f"{what} has {has} entries for {wants} {count}"
    return Reason(title, what, (StoryStep(f"the function has {wants} {count}", problem.place),), tuple(candidates))


def explain_kind(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a tree of shardings of another kind than the value: a dict for a dataclass."""
    what, path = said["what"], _path(problem, said["what"])
    candidates = [
        candidate
        for file, call, given in _given(problem, what)
        for candidate in _left_to_jax(file, call, given, what, path)
    ]
    name = what + "".join(f"[{number}]" for number in path)
    step = StoryStep(f"{said['wants']} needs a {said['wants']} of shardings, one sharding, or None", problem.place)
    return Reason(f"{name} is a {said['has']}, but the value is a {said['wants']}", name, (step,), tuple(candidates))


def _path(problem: Problem, what: str) -> list[int]:
    found = re.search(rf"{re.escape(what)}((?:\[\d+\])+)", problem.said)
    return [int(each) for each in re.findall(r"\d+", found[1])] if found else []


def _given(problem: Problem, what: str) -> Iterator[tuple[str, ast.Call, ast.expr]]:
    for file, call in problem.calls("jit", "pjit", "partial", "shard_map"):
        for each in call.keywords:
            if each.arg == what:
                yield file, call, problem.followed(file, each.value)


def _left_to_jax(file: str, call: ast.Call, given: ast.expr, what: str, path: Sequence[int]) -> Iterator[Candidate]:
    if path and isinstance(given, ast.Tuple | ast.List) and path[0] < len(given.elts):
        title = f"leave {what}[{path[0]}] to JAX: None, as its tree is another one"
        yield Candidate(title, instead((file, given.elts[path[0]]), "None"))
    yield Candidate(f"leave out {what}", without_keyword(file, call, what))


def _of_length(file: str, written: ast.Tuple | ast.List, wants: int, filler: str) -> Edits:
    """A tuple or list with another number of elements, at least one: the first of them, or more with a filler."""
    has = len(written.elts)
    last = extent(written.elts[-1])[2:] if has else (written.lineno, written.col_offset + 1)
    if has < wants:
        return (Edit(file, *last, *last, f", {filler}" * (wants - has)),)
    kept = extent(written.elts[wants - 1])[2:]
    return (Edit(file, *kept, *last, "," if wants == 1 else ""),)


def _explain_list(problem: Problem, what: str, has: int, wants: int) -> Reason:
    path = re.search(rf"at key path\s+{re.escape(what)}(\S*)", problem.said)
    keys = re.findall(r"\['([^']*)'\]|\.(\w+)", path[1]) if path else []
    named = next((one or other for one, other in reversed(keys)), "")
    candidates = []
    for file, node in problem.nodes:
        pairs = zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
        for key, value in pairs:
            is_it = isinstance(key, ast.Constant) and key.value == named and isinstance(value, ast.List | ast.Tuple)
            if not is_it or not isinstance(value, ast.List | ast.Tuple) or not len(value.elts) == has > 0:
                continue
            source = problem.source(file)
            written = ast.get_source_segment("" if source is None else source.text(), value.elts[-1])
            title = f"leave out the shardings of the last {has - wants} of {named!r}, which the value does not have"
            if has < wants:
                title = f"give the other {wants - has} of {named!r} the shardings of the last"
            if wants:
                edits = _of_length(file, value, wants, written or ast.unparse(value.elts[-1]))
                candidates.append(Candidate(title, edits))
    place = f" at {path[1]}" if path and path[1] else ""
    title = f"the tree of shardings has {plural(has, 'entry')}{place}, where the value has {wants}"
    return Reason(title, named, (StoryStep(f"the value has {wants}{place}", problem.place),), tuple(candidates))


def _along(problem: Problem, file: str, node: ast.expr, path: Sequence[int]) -> Iterator[ast.expr]:
    """The tuples along a path of indices, each as it is written or assigned."""
    yield node
    for number in path:
        if not isinstance(node, ast.Tuple | ast.List) or number >= len(node.elts):
            return
        node = problem.followed(file, node.elts[number])
        yield node


def explain_keys(problem: Problem, said: re.Match[str]) -> Reason:
    """Explain a dict of shardings that lacks keys, or has others."""
    missing = re.findall(r"[^\s',]+", said["missing"].splitlines()[0] if said["missing"] else "")
    has = int(said["has"])
    dicts = [(file, node) for file, node in problem.nodes if isinstance(node, ast.Dict) and len(node.keys) == has]
    candidates = []
    for file, node in dicts:
        keys = [each.value for each in node.keys if isinstance(each, ast.Constant)]
        values = [each for each in node.values if isinstance(each, ast.Call) and name_of(each.func) == "NamedSharding"]
        specs = [each for each in node.values if isinstance(each, ast.Call) and name_of(each.func) in SPECS]
        lacking = [key for key in missing if key not in keys]
        more = [key for key in missing if key in keys]
        if more and not lacking:
            title = f"leave out the shardings of {', '.join(map(repr, more))}, which the value does not have"
            candidates.append(Candidate(title, tuple(_without_keys(file, node, more))))
        end = extent(node.values[-1])[2:] if node.values else (node.lineno, node.col_offset + 1)
        mesh = ast.unparse(values[0].args[0]) if values and values[0].args else problem.mesh_of(())
        sharding = f"{problem.named('NamedSharding')}({mesh}, {problem.spec_name}())"
        if specs:
            sharding = f"{problem.spec_name}()"
        if lacking and not more:
            edits: Edits = (Edit(file, *end, *end, "".join(f", {key!r}: {sharding}" for key in lacking)),)
            title = f"add {', '.join(map(repr, lacking))} to the shardings"
            candidates.append(Candidate(title, edits))
    title = f"the shardings lack {', '.join(map(repr, missing))}" if missing else "the shardings have another tree"
    step = StoryStep("a tree of shardings has a leaf, or one sharding, for each leaf of the value", problem.place)
    return Reason(title, missing[0] if missing else "", (step,), candidates=tuple(candidates))


def _without_keys(file: str, node: ast.Dict, keys: Sequence[object]) -> Iterator[Edit]:
    for number, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if key is not None and _constant(key) in keys:
            start, end = extent(key)[:2], extent(value)[2:]
            following = node.keys[number + 1] if number + 1 < len(node.keys) else None
            if number:
                start = extent(node.values[number - 1])[2:]
            elif following is not None:
                end = extent(following)[:2]
            yield Edit(file, *start, *end, "")
