"""Changes of requests as edits of the lines that make them; those that no edit can express are ideas."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...parsers.source import Frame
from ..dataflow.jaxpr import flow_of
from ..findings.fixes.calls import Body, around, imports, name_of, nodes_of, returned_by, user_files
from ..findings.fixes.edits import Edits, Placed, extent, instead, overlap, together, wrapped
from ..findings.fixes.jits import jit_of
from ..findings.fixes.specs import (
    CONSTRAINTS,
    assigned_names,
    follow,
    out_shardings_of,
    sharding_text,
    targets_of,
    value_behind,
    value_of,
    with_out_specs,
)
from ..ir.derived import derived
from ..ir.jaxpr_text import JaxprText
from ..ir.name_scopes import steps_of
from ..ir.program import Program
from ..report import Fix, Report
from ..report.position import is_installed
from .logical_names import by_other_names
from .pricing import PricedCandidate, PricedChange
from .spec_places import (
    NAME,
    asked,
    at_specs,
    by_rules,
    entries_in,
    keyed,
    listed_in,
    rank_of,
    shortened,
    spec_entries,
    spec_helpers,
    tables,
    without_nones,
)
from .uses import constraint_in, tree_of, where_used

Places = tuple[tuple[str, int, int], ...]

PLACES = (*CONSTRAINTS, "device_put")
MAX_PLACES = 5
"""Ways to write one change that are tried."""


def fixes_of(report: Report, candidate: PricedCandidate) -> list[Fix]:
    """Return the ways to write a change; an idea, with the reason, where there is none."""
    title = titled(candidate)
    if not all(each.spelled for each in candidate.changes):
        return [Fix(title, why="a PartitionSpec cannot name a part of an axis")]
    written = [edits for edits in dict.fromkeys(_edits(report, candidate)) if edits]
    if written:
        wanted = tuple((each.name, each.spec) for each in candidate.changes if each.kind == "argument" and each.spec)
        return [Fix(_with_line(title, edits), edits, requests=wanted) for edits in written[:MAX_PLACES]]
    return [Fix(title, why="no line of yours makes this request by itself")]


def titled(candidate: PricedCandidate) -> str:
    """`request P('x') for params['w'] instead of P()`."""
    first = next((each for each in candidate.changes if each.kind == "argument"), candidate.changes[0])
    alike = (each for each in candidate.changes if each.kind == first.kind)
    names = {_starred(each.name): each.spec == first.spec for each in (first, *alike)}
    match first:
        case PricedChange(kind="new"):
            return f"constrain this to {first.spec}"
        case PricedChange(kind="use"):
            return f"gather {tree_of([each.name for each in candidate.changes])} once, before it is used"
        case PricedChange(kind="constraint", spec=None):
            return f"leave out the constraint {first.now}"
        case PricedChange(kind="constraint"):
            return f"constrain this to {first.spec} instead of {first.now}"
        case PricedChange(kind="result", now=None):
            return f"request {first.spec} for {_named(names)} in out_shardings{_also(names)}"
    return f"request {first.spec} for {_named(names)} instead of {first.now}{_also(names)}"


def with_true_title(fix: Fix, before: Mapping[str, str | None], after: Mapping[str, str | None]) -> Fix:
    """A fix whose edits request something else than they were to, called after what they do request."""
    changed = [(name, spec, after[name]) for name, spec in before.items() if not _is_as(after.get(name), spec)]
    is_met = all(_is_as(after.get(name), spec) for name, spec in fix.requests)
    if not fix.requests or not changed or (is_met and {each[0] for each in changed} <= dict(fix.requests).keys()):
        return fix
    _, now, spec = next((each for each in changed if each[0] in dict(fix.requests)), changed[0])
    names = {_starred(name): _is_as(before, now) and _is_as(after, spec) for name, before, after in changed}
    title = f"request {shortened(spec)} for {_named(names)} instead of {shortened(now)}{_also(names)}"
    return replace(fix, title=_with_line(title, fix.edits))


def _named(names: Mapping[str, bool]) -> str:
    """The first of some names, and how many more get the same spec, of which that is true."""
    alike = [name for name, is_alike in names.items() if is_alike]
    return f"{alike[0]} and {len(alike) - 1} more" if len(alike) > 1 else alike[0]


def _also(names: Mapping[str, bool]) -> str:
    others = len(names) - sum(names.values())
    return f", and other specs for {others} more" if others else ""


def _is_as(one: str | None, other: str | None) -> bool:
    return one == other or entries_in(one or "P()") == entries_in(other or "P()")


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
    elif kinds == {"use"}:
        yield from where_used(report, [each.name for each in changes], changes[0].spec or "P()")
    elif kinds == {"constraint"}:
        yield from _by_names(program, changes[0])
        apart, at_once = list(_apart(report, changes)), _constraint(report, changes)
        yield from apart
        if not apart or not _unpacks(program, at_once):
            yield at_once
    elif candidate.kind == "c":
        yield from _unplaced(program, changes)
        yield from _in_trees(program, changes)
        yield from _as_twin(report, changes)
        yield from _as_other_name(program, changes)
        yield from _as_sibling(program, changes)
        yield from _where_placed(program, changes)
        yield from _by_rank(program, changes)
        yield from at_specs(program, changes)
    elif kinds == {"result"}:
        yield from _as_twin(report, changes)
        yield with_out_specs(report, {each.name: each.spec for each in changes if each.spec is not None})
        yield _wrapped(program, changes)
    else:
        yield _with_constraints(report, changes)
        yield from _in_trees(program, changes)
        yield from _under_keys(program, changes)
        yield from _as_sibling(program, changes)
        yield from _where_placed(program, changes)
        yield from at_specs(program, changes)
        yield from _by_rank(program, changes)


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
    most = {} if program.jaxpr is None else _ranks(program.jaxpr)
    if node is None or rank_of(spec) > most.get(_places((frame,)), rank_of(spec)):
        return ()
    file = frame.file
    sharding, constrain = sharding_text(program, (file, node), spec), constraint_in(program, file)
    if not sharding or not constrain:
        return ()
    return wrapped((file, node), f"{constrain}(", f", {sharding})")


@derived
def _ranks(text: JaxprText) -> dict[Places, int]:
    """The most dimensions that a value has where it is computed, by place: without those that a vmap adds."""
    found: dict[Places, int] = {}
    flow = flow_of(text)
    for place in text.equations:
        own = next((frame for frame in text.stack(place.equation) if not is_installed(frame.file)), None)
        if own is not None:
            mapped = max(each.equation.name_stack.count("vmap(") for each in flow.around(place))
            ranks = [len(each.type.array.shape or ()) - mapped for each in place.equation.outputs]
            found[_places((own,))] = max([*ranks, found.get(_places((own,)), 0)])
    return found


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


# Another spec of a constraint


def _by_names(program: Program, change: PricedChange) -> Iterator[Edits]:
    """Rules of the logical names of dimensions that a call lists, as `constrain(x, ("batch", "embed"))` does."""
    for frame in change.stack if change.spec is not None else ():
        call = expression_at(program, frame)
        given = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
        listed = list(filter(None, (listed_in(each) for argument in given for each in ast.walk(argument))))
        for file, rules in tables(program) if listed else ():
            yield from by_rules(program, file, rules, change, listed)
        if isinstance(call, ast.Call) and not is_installed(frame.file):
            yield from by_other_names(program, frame.file, call, change)


def _apart(report: Report, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """The constraints that are written in several places, each in its own: as they are, or as a helper's calls."""
    for frames in (1, 2):
        sites: dict[tuple[Frame, ...], list[PricedChange]] = {}
        for each in changes:
            sites.setdefault(each.stack[:frames], []).append(each)
        edits = [_constraint(report, each) for each in sites.values()]
        if len(edits) > 1 and all(edits):
            yield together(*edits)


def _constraint(report: Report, changes: Sequence[PricedChange]) -> Edits:
    """The call that makes these constraints and no other one, with another spec, or left out."""
    program, change = report.program, changes[0]
    mine = {_places(each.stack) for each in changes}
    ways: Counter[tuple[str, int, int]] = Counter()
    stacks = {_places(each.source.stack) for each in report.shardings if each.role == "constraint"}
    for stack in stacks:
        if all(any(one != other for one, other in zip(stack, own, strict=False)) for own in mine):
            ways.update(set(stack))
    for frame in change.stack:
        if is_installed(frame.file) or any(ways[place] for place in _places((frame,))):
            continue
        node = expression_at(program, frame)
        if not isinstance(node, ast.Call) or not node.args or not _only_constrains(program, frame.file, node):
            return ()
        operand = ast.unparse(node.args[0])
        if change.spec is None:
            return instead((frame.file, node), operand)
        if _is_written_out(node.args[1:], change.now) and not node.keywords:
            entries = ", ".join(map(repr, entries_in(change.spec)))
            return instead((frame.file, node), f"{ast.unparse(node.func)}({operand}, {entries})")
        sharding, constrain = (
            sharding_text(program, (frame.file, node), change.spec),
            constraint_in(program, frame.file),
        )
        if name_of(node.func) in CONSTRAINTS:
            constrain = ast.unparse(node.func)  # of Explicit axes reshard, where the other one only asserts
        return instead((frame.file, node), f"{constrain}({operand}, {sharding})") if sharding and constrain else ()
    return ()


def _unpacks(program: Program, edits: Edits) -> bool:
    """Return whether edits replace what takes its entries from its caller, which would then say nothing."""
    frames = (
        Frame(each.file, "", each.line, column=each.column, end_line=each.end_line, end_column=each.end_column)
        for each in edits
    )
    replaced = (expression_at(program, frame) for frame in frames)
    return any(isinstance(node, ast.Starred) for each in replaced if each is not None for node in ast.walk(each))


def _is_written_out(entries: Sequence[ast.expr], spec: str | None) -> bool:
    """Return whether these are the entries of a spec, as a helper takes them behind the value."""
    try:
        return bool(entries) and without_nones([ast.literal_eval(each) for each in entries]) == entries_in(spec or "")
    except ValueError:
        return False


def _places(stack: Iterable[Frame]) -> Places:
    """The positions of the user's frames in a call stack."""
    return tuple((os.path.normpath(f.file), f.line, f.column) for f in stack if not is_installed(f.file))


def _only_constrains(program: Program, file: str, call: ast.Call) -> bool:
    """Return whether a call constrains its first argument: a function that does all else it does to find the spec."""
    if isinstance(call.args[0], ast.Starred):
        return False
    if name_of(call.func) in CONSTRAINTS:
        return True
    names: set[str] = set()
    returned: list[ast.expr] = []
    for each in (node for file in {file, *user_files(program)} for node in nodes_of(program, file)):
        match each:
            case ast.FunctionDef(name=name, args=taken) if name == name_of(call.func):
                returned += returned_by(each)
                names |= {one.arg for one in taken.args}
            case ast.Assign(value=ast.Lambda(args=taken, body=body)) if name_of(call.func) in assigned_names(each):
                returned.append(body)
                names |= {one.arg for one in taken.args}
    given = (
        each.args[0] if isinstance(each, ast.Call) and name_of(each.func) in CONSTRAINTS and each.args else each
        for each in returned
    )
    return bool(returned) and all(isinstance(each, ast.Name) and each.id in names for each in given)


# Results and arguments


def _with_constraints(report: Report, changes: Sequence[PricedChange]) -> Edits:
    """Another spec of arguments, together with that of constraints on what is computed of them."""
    program, held = report.program, [each for each in changes if each.kind == "constraint"]
    if not held:
        return ()
    own = next(filter(None, at_specs(program, changes)), ())
    other = next(filter(None, (*_by_names(program, held[0]), _constraint(report, held))), ())
    return () if overlap(own, other) else together(own, other)


def _as_twin(report: Report, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """The expression that `out_shardings` has for parameters, in the place of that for others with the same keys."""
    jit = jit_of(report)
    given = None if jit is None else out_shardings_of(jit)
    if jit is None or given is None:
        return
    file, program = jit[0], report.program
    parts: dict[ast.expr, str] = {}
    homes: dict[ast.expr, str] = {}
    for each in changes:
        if each.kind != "result" or not each.parameter:
            continue
        (node, rest), (twin, left) = (
            follow(program, file, given, steps_of(path)) for path in (each.name, each.parameter)
        )
        if rest and node is not twin:
            parts[node] = _named_in(twin, left)
            homes[node] = ast.unparse(follow(program, file, given, steps_of(each.parameter), 0)[0])
    for node, name in homes.items():
        if (value := value_of(program, file, ast.unparse(node))) is not None:
            yield from (_by_path(program, (file, value), home) for home in dict.fromkeys((parts[node], name)))
    for node, name in parts.items():
        value, other = (value_of(program, file, each) for each in (ast.unparse(node), name))
        if value is not None and other is not None and value.lineno > other.lineno:
            yield instead((file, value), name)
    yield together(*(instead((file, node), text) for node, text in parts.items()))


def _by_path(program: Program, placed: Placed, name: str) -> Edits:
    """A tree that has one sharding everywhere: those of another tree, made before, where a path ends as one of that."""
    source = program.file(placed[0])
    other = value_of(program, placed[0], name)
    if other is None or other.lineno > placed[1].lineno:
        return ()
    match placed[1]:
        case ast.Call(args=[ast.Lambda(args=taken, body=whole), tree]) if source is not None and imports(source, "jax"):
            used = {node.id for node in ast.walk(whole) if isinstance(node, ast.Name)}
            if used.isdisjoint(each.arg for each in taken.args):
                leaves = f"jax.tree_util.tree_leaves_with_path({name})"
                found = f"next((own for end, own in {leaves} if path[-len(end):] == end), {ast.unparse(whole)})"
                text = f"jax.tree_util.tree_map_with_path(lambda path, _: {found}, {ast.unparse(tree)})"
                return instead(placed, text)
    return ()


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
        value = value_of(program, frame.file, call.args[1].id)
        names = [given.id for _, _, given in _placements(program, frame.file) if isinstance(given, ast.Name)]
        others = [(name, value_of(program, frame.file, name)) for name in dict.fromkeys(names)]
        earlier = [(name, made) for name, made in others if made and value and made.lineno < value.lineno]
        for name, _ in sorted(earlier, key=lambda pair: not _are_made_alike(pair[1], value)):
            yield instead((frame.file, value), name) if value is not None else ()


def _placements(program: Program, file: str) -> Iterator[tuple[ast.Call, ast.expr, ast.expr]]:
    """The calls in a file that constrain or place something, with this and the sharding."""
    for node in nodes_of(program, file):
        if isinstance(node, ast.Call) and name_of(node.func) in PLACES and len(node.args) > 1:
            yield node, node.args[0], node.args[1]


def _are_made_alike(one: ast.expr, other: ast.expr | None) -> bool:
    return len({name_of(each.func) if isinstance(each, ast.Call) else "" for each in (one, other)}) == 1


def _where_placed(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """Another sharding where arrays are placed with one that has a name, which others are placed with as well.

    Those that are written alike together; first those whose name is in an argument's path. None of those whose sharding
    a jit takes as well: it would refuse others.
    """
    names, wanted, now = asked(changes)
    for file in user_files(program):
        calls: dict[str, dict[str, list[ast.expr]]] = {}
        for _, operand, given in _placements(program, file):
            if isinstance(given, ast.Name) and _entries_of(program, file, given) == now:
                calls.setdefault(given.id, {}).setdefault(ast.unparse(operand), []).append(given)
        taken = {
            inner.id
            for node in (nodes_of(program, file) if calls else ())
            if isinstance(node, ast.keyword) and node.arg == "in_shardings"
            for inner in ast.walk(node.value)
            if isinstance(inner, ast.Name)
        }
        for name, groups in calls.items():
            if name in taken:
                continue
            named = [operand for operand in groups if names & set(NAME.findall(operand))]
            if len(groups) < 2 or len(named) == len(groups):
                continue  # the spec itself may as well be another one
            rest = ([operand] for operand in groups if operand not in named)
            for operands in (*filter(None, (named,)), *rest):
                names_given = [given for operand in operands for given in groups[operand]]
                texts = [_sharding_named(program, (file, node), wanted, other_than=name) for node in names_given]
                edits = [instead((file, node), text) for node, text in zip(names_given, texts, strict=True)]
                yield together(*edits) if all(texts) else ()


def _in_trees(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """Another sharding for the part of a tree of shardings that is given where arrays are placed or constrained.

    All such trees together, which one array may go through, then each by itself.
    """
    _, wanted, now = asked(changes)
    steps = steps_of(next(each.name for each in changes if each.kind == "argument"))
    found: dict[ast.expr, Edits] = {}
    for file in user_files(program):
        for _, _, given in _placements(program, file):
            paths = (steps[dropped:] for dropped in range(len(steps)))
            parts = ((*follow(program, file, given, path), path) for path in paths)
            node = next((node for node, left, path in parts if len(left) < len(path)), None)
            if node is not None and _entries_of(program, file, node) == now:
                text = _sharding_named(program, (file, node), wanted, other_than=name_of(node))
                found[node] = instead((file, node), text) if text else ()
    written = list(filter(None, found.values()))
    yield from dict.fromkeys((together(*written), *written))


def _under_keys(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """Another sharding where one that has a name is given under the last key of an argument's path, as in `queue=rows`.

    All of them together, then each by itself.
    """
    _, wanted, now = asked(changes)
    ends = {words[-1] for each in changes if each.kind == "argument" and (words := NAME.findall(each.name))}
    found: list[Edits] = []
    for file in user_files(program):
        for value, key in keyed(program, file):
            if key in ends and isinstance(value, ast.Name | ast.Attribute) and _entries_of(program, file, value) == now:
                text = _sharding_named(program, (file, value), wanted, other_than=name_of(value))
                found += [instead((file, value), text)] * bool(text)
    yield from dict.fromkeys((together(*found), *found))


def _unplaced(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """A tree as it was made, where it is placed and assigned to a name in an argument's path: made of parameters, its
    leaves are sharded as they are."""
    names, _, now = asked(changes)
    for file in user_files(program):
        for node in nodes_of(program, file):
            match node:
                case ast.Assign(value=ast.Call(func=function, args=[operand, given]) as placed) if (
                    name_of(function) == "device_put"
                    and not names.isdisjoint(assigned_names(node))
                    and _entries_of(program, file, given) == now
                ):
                    yield instead((file, placed), ast.unparse(operand))


def _as_sibling(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """Another function in the place of one that gives all leaves this spec, where its caller gets both."""
    _, _, now = asked(changes)
    for file in user_files(program):
        calls = [node for node in nodes_of(program, file) if isinstance(node, ast.Call)]
        for call in calls:
            for place, given in enumerate(call.args):
                if isinstance(given, ast.Lambda) and spec_entries(given.body) == now:
                    alike = (each for each in calls if each is not call and name_of(each.func) == name_of(call.func))
                    yield from (
                        instead((file, given), ast.unparse(each.args[place]))
                        for each in alike
                        if len(each.args) > place
                    )


def _by_rank(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """A tree that is placed with one sharding: the leaves that have the dimensions for another one with that.

    First those that are assigned to a name in an argument's path.
    """
    names, wanted, now = asked(changes)
    if len({each.spec for each in changes if each.kind == "argument"}) != 1:
        return
    for file in user_files(program):
        source = program.file(file)
        found: list[tuple[bool, Edits]] = []
        for node, operand, given in _placements(program, file) if source is not None and imports(source, "jax") else ():
            if _entries_of(program, file, given) == now:
                statement = next(around(program, (file, node)), None)
                is_named = statement is not None and not names.isdisjoint(assigned_names(statement))
                place, sharding = ast.unparse(node.func), _sharding_named(program, (file, node), wanted, other_than="")
                is_deep = f"jax.numpy.ndim(leaf) >= {len(entries_in(wanted))}"
                leaf = f"{place}(leaf, {sharding} if {is_deep} else {ast.unparse(given)})"
                text = f"jax.tree.map(lambda leaf: {leaf}, {ast.unparse(operand)})"
                found.append((not is_named, instead((file, node), text)))
        yield from (edits for _, edits in sorted(found, key=lambda each: each[0]))


def _sharding_named(program: Program, placed: tuple[str, ast.expr], spec: str, *, other_than: str) -> str:
    """A sharding by a name that a module or the function around an expression has for it, else written out."""
    file, node = placed
    if isinstance(node, ast.Attribute):
        places = (target for each in nodes_of(program, file) for target in getattr(each, "targets", ()))
        for target in places:
            is_beside = isinstance(target, ast.Attribute) and ast.unparse(target.value) == ast.unparse(node.value)
            if is_beside and target.attr != node.attr and _entries_of(program, file, target) == entries_in(spec):
                return ast.unparse(target)
    bodies = [each for each in around(program, placed) if isinstance(each, Body)]
    tree = nodes_of(program, file)
    for statement in (*getattr(next(tree, None), "body", ()), *(inner for each in bodies for inner in ast.walk(each))):
        for target in targets_of(statement):
            is_before = getattr(statement, "lineno", 0) < node.lineno and target.id != other_than
            if is_before and _entries_of(program, file, target) == entries_in(spec):
                return target.id
    return sharding_text(program, placed, spec)


def _entries_of(program: Program, file: str, node: ast.expr) -> list[object] | None:
    """The entries of a spec, alone or in a sharding, or behind a name; None of another value."""
    value = value_behind(program, file, node)
    if isinstance(value, ast.Call) and name_of(value.func) == "NamedSharding" and len(value.args) == 2:
        value = value.args[1]
    return spec_entries(value, spec_helpers(program, file))


def _starred(path: str) -> str:
    return re.sub(r"\[\d+\](?=.)", "[*]", path)
