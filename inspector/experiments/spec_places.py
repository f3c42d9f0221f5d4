"""The places in the user's files that make specs: where one is written, and tables of rules that choose one."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile, zip_longest

from ...parsers.python import expression_in
from ..findings.fixes.calls import around, name_of, nodes_of, tree_of, user_files
from ..findings.fixes.edits import Edits, extent, instead, together
from ..findings.fixes.specs import CONSTRAINTS, SPECS, targets_of, value_behind
from ..ir.derived import derived
from ..ir.program import Program, SourceFile
from ..report import Edit
from .pricing import PricedChange

NAME = re.compile(r"[A-Za-z_]\w*")
_SUFFIX = re.compile(r"_(p?specs?|shardings?)$")

Rule = tuple[ast.expr, str, ast.expr]
"""A rule of a table: where it begins, its pattern or name, and what it chooses."""

Names = tuple[str | None, ...]
"""Logical names of dimensions."""


def _in_tables(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """The specs of arguments by tables of rules.

    In a table of patterns of paths, a rule of its own before the one that a path has now, or that one behind others. In
    a table of logical names of dimensions, the axes that a dimension is to have for a name that has those of today, or
    a name for a dimension that has none.
    """
    changes = [each for each in changes if each.kind == "argument"]
    keys, files = set(NAME.findall(changes[0].name)[-1:]), user_files(program)
    own = (listed_in(each) for other in files for each, key in keyed(program, other) if key in keys)
    every = (each for other in files for each in _names_in(program, other))
    listed = list(dict.fromkeys(itertools.chain(filter(None, own), every)))
    for file, rules in sorted(tables(program), key=lambda table: not any(map(_is_of_batches, table[1]))):
        helpers = spec_helpers(program, file)
        yield together(*dict.fromkeys(_own_rule(file, rules, each, helpers) for each in changes))
        yield _behind_others(file, rules, changes, helpers)
        by_names = list(dict.fromkeys(by_rules(program, file, rules, changes[0], listed)))
        yield from by_names[:1]
        yield from _by_more_names(program, axes_of_names(program, file, rules), changes[0])
        yield from by_names[1:] or _other_axes(program, file, rules, changes[0])


@derived
def tables(program: Program) -> list[tuple[str, list[Rule]]]:
    """The tables of rules in the user's files, each with its file."""
    found = ((file, list(rules_in(node))) for file in user_files(program) for node in nodes_of(program, file))
    return [(file, rules) for file, rules in found if len(rules) > 1]


def _is_of_batches(rule: Rule) -> bool:
    return "batch" in rule[1].lower()


def rules_in(node: ast.AST) -> Iterator[Rule]:
    """The rules that a list or a dict is of, or the fields of a class or a call of one; none of another expression."""
    match node:
        case ast.ClassDef(body=statements):
            for field in statements:
                match field:
                    case ast.AnnAssign(target=ast.Name(id=name) as target, value=ast.expr() as value):
                        yield target, name, value
        case ast.Call(args=[], keywords=keywords):
            yield from ((each.value, each.arg, each.value) for each in keywords if each.arg is not None)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for each in elements:
                match each:
                    case ast.Tuple(elts=[ast.Constant(value=str(name)), value]):
                        yield each, name, value
                    case ast.List(elts=[ast.Constant(value=str(name)), value]):
                        yield each, name, value
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key, key.value, value


def _own_rule(file: str, rules: Sequence[Rule], change: PricedChange, helpers: Collection[str]) -> Edits:
    words = NAME.findall(change.name)
    with suppress(re.error):
        now = next((each for each in rules if re.search(each[1], "/".join(words))), None)
        match now:
            case ast.Tuple() as pair, _, ast.Call() as value if name_of(value.func) in helpers and is_constant(value):
                if without_nones([ast.literal_eval(each) for each in value.args]) == entries_in(change.now or "P()"):
                    start, wanted = extent(pair)[:2], _respelled(value, entries_in(change.spec or "P()"))
                    pattern = "/".join(words[-2 if len(words) > 3 else -1 :])
                    if pattern == now[1]:
                        return instead((file, value), wanted)
                    return (Edit(file, *start, *start, f"({pattern!r}, {wanted}), "),)
    return ()


def _behind_others(
    file: str, rules: Sequence[Rule], changes: Iterable[PricedChange], helpers: Collection[str]
) -> Edits:
    """The rule that these arguments have now, behind those that would choose what they are to have."""
    behind: dict[int, int] = {}
    for change in changes:
        path, wanted = "/".join(NAME.findall(change.name)), entries_in(change.spec or "P()")
        own = [number for number, rule in enumerate(rules) if _matches(rule[1], path)]
        if len(own) > 1 and spec_entries(rules[own[1]][2], helpers) == wanted:
            behind[own[0]] = max(own[1], behind.get(own[0], 0))
    if len(behind) != 1:
        return ()
    ((first, last),) = behind.items()
    rule, following = rules[first][0], rules[first + 1][0]
    if not isinstance(rule, ast.Tuple) or last + 1 == len(rules) or following.lineno == rule.lineno:
        return ()
    start = extent(rules[last + 1][0])[:2]
    left_out = Edit(file, *extent(rule)[:2], *extent(following)[:2], "")
    return left_out, Edit(file, *start, *start, f"{ast.unparse(rule)},\n{' ' * start[1]}")


def by_rules(
    program: Program, file: str, rules: Sequence[Rule], change: PricedChange, listed: Iterable[Names]
) -> Iterator[Edits]:
    """The rules of the dimensions that change, by names of dimensions for which they choose the axes of today."""
    now, wanted = (entries_in(each or "P()") for each in (change.now, change.spec))
    known = _chosen(program, file, rules)[::-1]
    chosen, axes = {name: value for name, value, _ in known}, {name: axes for name, _, axes in known}
    every = [
        names
        for other in user_files(program)
        for names in _names_in(program, other)
        if not axes.keys().isdisjoint(names)
    ]
    for names in listed:
        if len(names) < len(wanted) or without_nones([axes.get(name or "") for name in names]) != now:
            continue
        changed = dict.fromkeys(
            (name or "", after)
            for name, before, after in zip_longest(names, now, wanted)
            if without_nones([before]) != without_nones([after])
        )
        is_known = len(dict(changed)) == len(changed) and all(name in chosen for name, _ in changed)
        if is_known and not any(_repeats([(axes | dict(changed)).get(name or "") for name in each]) for each in every):
            spelled = {repr(axes[name]): ast.unparse(value) for name, value in chosen.items()}
            texts = ((chosen[name], spelled.get(repr(after), repr(after))) for name, after in changed)
            yield together(*(instead((file, value), text) for value, text in texts))


def _by_more_names(program: Program, axes: Mapping[str, object], change: PricedChange) -> Iterator[Edits]:
    """Names for dimensions that have none where names are listed, with rules for what these dimensions are to have."""
    now, wanted = (entries_in(each or "P()") for each in (change.now, change.spec))
    named = {repr(value): name for name, value in axes.items() if value is not None}
    for file in user_files(program):
        for node in nodes_of(program, file):
            names = listed_in(node)
            entries = [axes.get(name or "") for name in names]
            if not isinstance(node, ast.expr) or axes.keys().isdisjoint(names) or without_nones(entries) != now:
                continue
            pairs = list(zip_longest(names, wanted))
            more = [named.get(repr(after)) if name is None else name for name, after in pairs]
            is_right = [axes.get(name or "") for name in more] == [after for _, after in pairs]
            if is_right and more != list(names):
                text = ", ".join(map(repr, more))
                made = f"{ast.unparse(node.func)}({text})" if isinstance(node, ast.Call) else f"({text})"
                yield instead((file, node), made)


def axes_of_names(program: Program, file: str, rules: Iterable[Rule]) -> dict[str, object]:
    """The axes that rules choose, by the names that they are for."""
    return {name: value for name, _, value in _chosen(program, file, rules)[::-1]}


def _repeats(entries: Sequence[object]) -> bool:
    """Return whether an axis is in two entries of a spec."""
    axes = [axis for each in entries for axis in _axes_in(each)]
    return len(set(axes)) < len(axes)


def _chosen(program: Program, file: str, rules: Iterable[Rule]) -> list[tuple[str, ast.expr, object]]:
    """The rules that choose axes, or names of these, with what they choose: a list of one axis is that one."""
    known = [(name, value, value_behind(program, file, value)) for _, name, value in rules]
    found = [
        (name, value, _axes_in(ast.literal_eval(node))) for name, value, node in known if node and _is_literal(node)
    ]
    return [
        (name, value, axes if len(axes) > 1 else next(iter(axes), None))
        for name, value, axes in found
        if all(isinstance(axis, str) for axis in axes)
    ]


def _axes_in(entry: object) -> tuple[object, ...]:
    return () if entry is None else tuple(entry) if isinstance(entry, tuple | list) else (entry,)


def _names_in(program: Program, file: str) -> list[Names]:
    """The names, one for each dimension, that tuples, lists and calls in a file list."""
    source = program.file(file)
    return [] if source is None else _listed_names(source)


@derived
def _listed_names(source: SourceFile) -> list[Names]:
    found = (listed_in(node) for node in ast.walk(tree_of(source)))
    return list(dict.fromkeys(filter(None, found)))


def listed_in(node: ast.AST) -> Names:
    """The names that a tuple, a list or a call is of; empty where it is of anything else."""
    elements = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
    names = [each.value for each in elements if isinstance(each, ast.Constant)]
    is_listed = 0 < len(names) == len(elements) and all(each is None or isinstance(each, str) for each in names)
    return tuple(each if isinstance(each, str) else None for each in names) if is_listed else ()


def _other_axes(program: Program, file: str, rules: Sequence[Rule], change: PricedChange) -> Iterator[Edits]:
    """First the dimensions that lose an axis: it goes to the first name of a dimension that has a rule for it.

    The names of batches come first: data are what is moved to other axes most often.
    """
    pairs = zip_longest(*(entries_in(each or "P()") for each in (change.now, change.spec)))
    for now, wanted in sorted(pairs, key=lambda pair: pair[1] is not None):
        ordered = sorted(rules, key=lambda rule: not _is_of_batches(rule)) if now != wanted else ()
        for _, value, axes in _chosen(program, file, ordered):
            if without_nones([axes]) == without_nones([now]):
                yield instead((file, value), repr(wanted))


def at_specs(program: Program, changes: Iterable[PricedChange]) -> Iterator[Edits]:
    """The places in the user's files that make the spec of an argument, with the other one.

    First those under a key, or a name, of the argument's path; then rules of tables. Else those that are spelled alike
    together, as one array's spec is written where it is made and where it is taken, without those that constrain other
    values, and first as the argument's is spelled; then all, then each by itself. Last those whose entries have names,
    and those under the keys, or by the rules, of other arguments.
    """
    names, spec, now = asked(changes)
    wanted = entries_in(spec)
    alike: dict[tuple[bool, str, str], list[Edits]] = {}
    named: list[Edits] = []
    late: list[Edits] = []
    patterns = {value: pattern for _, rules in tables(program) for _, pattern, value in rules}
    paths = ["/".join(NAME.findall(each.name)) for each in changes if each.kind == "argument"]
    others = {NAME.findall(each.path)[-1] for each in program.capture.arguments if NAME.search(each.path)} - names
    changed, exact = {each.name for each in changes}, set[str]()
    written = {each.spec for each in program.capture.arguments if each.path in changed}
    for file in user_files(program):
        helpers = spec_helpers(program, file)
        keys = {
            spec: {name, _SUFFIX.sub("", name), *uses.get(name, ())}
            for uses in (_uses(program, file),)
            for spec, name in keyed(program, file)
        }
        for node in nodes_of(program, file):
            if not isinstance(node, ast.Call) or name_of(node.func) not in helpers or not is_constant(node):
                continue
            if _of_another(program, (file, node), names):
                continue
            if without_nones([ast.literal_eval(each) for each in node.args]) == now:
                edits = instead((file, node), _respelled(node, wanted))
                own = keys.get(node, set())
                is_of_others = names.isdisjoint(own) and not others.isdisjoint(own)
                if is_of_others or (node in patterns and not any(_matches(patterns[node], path) for path in paths)):
                    late.append(edits)
                    continue
                key = _is_constraint(program, (file, node)), file, ast.unparse(node)
                exact |= {key[2]} if f"P({', '.join(map(ast.unparse, node.args))})" in written else set()
                alike.setdefault(key, []).append(edits)
                named += [edits] * (not names.isdisjoint(own))
    if named:
        yield together(*named)
        yield from named
    yield from _in_tables(program, changes)
    ordered = sorted(alike.items(), key=lambda each: (each[0][0], each[0][2] not in exact, -len(each[1])))
    places = [found for _, found in ordered]
    as_written = [edits for key, found in ordered if key[2] in exact and not key[0] for edits in found]
    if as_written and len(places) > 1:
        yield together(*as_written)
    for (constrains, file, spelling), found in ordered:
        if len(found) > 1 or (not constrains and (True, file, spelling) in alike):
            yield together(*found)
    if len(places) > 1:
        yield together(*(edits for each in places for edits in each))
    yield from (edits for each in places for edits in each)
    yield from _at_names(program, now, wanted)
    yield from late


def _matches(pattern: str, path: str) -> bool:
    try:
        return re.search(pattern, path) is not None
    except re.error:
        return False


def _respelled(call: ast.Call, wanted: Sequence[object]) -> str:
    """A spec with other entries, and as many as are written: tables are searched by how many there are."""
    filled = [*wanted, *[None] * (len(call.args) - len(wanted))]
    return f"{ast.unparse(call.func)}({', '.join(map(repr, filled))})"


def _is_constraint(program: Program, placed: tuple[str, ast.expr]) -> bool:
    """Return whether a spec is an argument of a constraint."""
    outer = takewhile(lambda each: not isinstance(each, ast.stmt), around(program, placed))
    return any(isinstance(each, ast.Call) and name_of(each.func) in CONSTRAINTS for each in outer)


def asked(changes: Iterable[PricedChange]) -> tuple[set[str], str, list[object]]:
    """The names in the paths of arguments, the spec that the first is to have, and the entries that it has now."""
    arguments = [each for each in changes if each.kind == "argument"]
    names = {name for each in arguments for name in NAME.findall(each.name)}
    return names, arguments[0].spec or "P()", entries_in(arguments[0].now or "P()")


def _of_another(program: Program, placed: tuple[str, ast.expr], names: set[str]) -> bool:
    """Return whether a spec is what an array is placed with that has the name of another argument than these."""
    call = next((each for each in around(program, placed) if isinstance(each, ast.Call) and len(each.args) > 1), None)
    if call is None or name_of(call.func) != "device_put" or not isinstance(call.args[0], ast.Name):
        return False
    others = {NAME.findall(each.path)[0] for each in program.capture.arguments if NAME.search(each.path)}
    return call.args[0].id in others - names


def _at_names(program: Program, now: list[object], wanted: list[object]) -> Iterator[Edits]:
    """Specs whose entries are settings, as `P(config.batch_axes)`: the constants of these, else the specs."""
    calls: list[Edits] = []
    for file in user_files(program):
        helpers = spec_helpers(program, file)
        for node in nodes_of(program, file):
            if isinstance(node, ast.Call) and name_of(node.func) in helpers and not is_constant(node):
                places = [_set_to(program, file, *each) for each in zip_longest(node.args, now) if each[0] is not None]
                if node.keywords or len(places) < len(now) or None in places:
                    continue
                yield _reset([each for each in places if each is not None], now, wanted)
                calls.append(instead((file, node), _respelled(node, wanted)))
    yield from dict.fromkeys(calls)


def _reset(places: list[tuple[str, ast.expr]], now: list[object], wanted: list[object]) -> Edits:
    """Settings with other values; nothing where a dimension has none."""
    if len(places) < len(wanted):
        return ()
    edits: list[Edits] = []
    for place, before, after in zip_longest(places, now, wanted):
        if without_nones([before]) != without_nones([after]):
            value = (after,) if isinstance(place[1], ast.Tuple) and isinstance(after, str) else after
            edits.append(instead(place, repr(value)))
    return together(*edits)


def _set_to(program: Program, file: str, entry: ast.expr, now: object) -> tuple[str, ast.expr] | None:
    """The constant of this value that an entry of a spec is, or that a name of it is set to, with its file.

    An axis may be given by its number as well, as in `mesh.axis_names[0]`.
    """
    if _is_numbered(program, entry, now):
        return file, entry
    name = entry.attr if isinstance(entry, ast.Attribute) else entry.id if isinstance(entry, ast.Name) else None
    sources = ((each, program.file(each)) for each in user_files(program) if name is not None)
    known = [(each, value) for each, source in sources if source for value in _settings(source).get(str(name), ())]
    own = [(file, entry)] if name is None and _is_literal(entry) else []
    return next(
        (each for each in (*own, *known) if without_nones([ast.literal_eval(each[1])]) == without_nones([now])), None
    )


def _is_numbered(program: Program, entry: ast.expr, axis: object) -> bool:
    subject = program.capture.subject
    match entry:
        case ast.Subscript(value=ast.Attribute(attr="axis_names"), slice=ast.Constant(value=int(number))):
            names = [[each.name for each in mesh.axes] for mesh in (() if subject is None else subject.meshes)]
            return any(axis in each[number : number + 1] for each in names)
    return False


@derived
def _settings(source: SourceFile) -> dict[str, list[ast.expr]]:
    """The constants in a file that are assigned to a name or an attribute, or given as a keyword, by that name."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree_of(source)):
        match node:
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.Assign(targets=[target], value=value):
                name = getattr(target, "id", None) or getattr(target, "attr", None)
            case ast.keyword(arg=name, value=value):
                pass
            case _:
                continue
        if name is not None and _is_literal(value):
            found.setdefault(name, []).append(value)
    return found


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def keyed(program: Program, file: str) -> Iterator[tuple[ast.expr, str]]:
    """The values in a file that have a key, a keyword or a name, also those inside of a call, with that."""
    for node in nodes_of(program, file):
        pairs: list[tuple[object, ast.expr]] = []
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = [(k.value, v) for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant)]
            case ast.Call(keywords=keywords):
                pairs = [(each.arg, each.value) for each in keywords]
            case ast.Assign(value=value) if any(targets_of(node)):
                pairs = [(next(targets_of(node)).id, value)]
        for key, value in pairs:
            inner = value.args if isinstance(value, ast.Call) else []
            yield from ((each, key) for each in (value, *inner) if isinstance(key, str))


def _uses(program: Program, file: str) -> dict[str, set[str]]:
    """For each name in a file, those that are assigned what is made with it: `x` and `y` of `x, y = put(a, batch)`."""
    found: dict[str, set[str]] = {}
    for node in nodes_of(program, file):
        if isinstance(node, ast.Assign):
            made = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
            for each in ast.walk(node.value):
                if isinstance(each, ast.Name):
                    found.setdefault(each.id, set()).update(made)
    return found


def spec_helpers(program: Program, file: str) -> frozenset[str]:
    """The functions whose arguments are the entries of a spec: PartitionSpec, by all of its names, and helpers."""
    source = program.file(file)
    return frozenset() if source is None else frozenset(_spec_helpers(source))


@derived
def _spec_helpers(source: SourceFile) -> list[str]:
    return list(_found_helpers(list(ast.walk(tree_of(source)))))


def _found_helpers(nodes: Sequence[ast.AST]) -> Iterator[str]:
    names = {
        each.asname for node in nodes if isinstance(node, ast.ImportFrom) for each in node.names if each.name in SPECS
    }
    specs = {*SPECS, *filter(None, names)}
    yield from specs
    for node in nodes:
        named = (
            (node.name, node)
            if isinstance(node, ast.FunctionDef)
            else (next(targets_of(node)).id, node.value)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and any(targets_of(node))
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


def is_constant(call: ast.Call) -> bool:
    """Return whether all entries of a spec are written out."""
    return not call.keywords and all(map(_is_literal, call.args))


def spec_entries(node: ast.AST | None, helpers: Collection[str] = SPECS) -> list[object] | None:
    """The entries of a spec that is written out, by these functions; None of anything else."""
    if isinstance(node, ast.Call) and name_of(node.func) in helpers and is_constant(node):
        return without_nones([ast.literal_eval(each) for each in node.args])
    return None


def entries_in(spec: str) -> list[object]:
    """The entries of a spec, without `None` at its end."""
    found = expression_in(spec)
    return without_nones([ast.literal_eval(each) for each in found.args]) if isinstance(found, ast.Call) else []


def rank_of(spec: str) -> int:
    """The number of dimensions that a spec has entries for, also where these are left open."""
    found = expression_in(spec)
    return len(found.args) if isinstance(found, ast.Call) else 0


def shortened(spec: str | None) -> str:
    """A spec without `None` at its end, and with single axes by their names alone; `P()` of none."""
    return f"P({', '.join(map(repr, entries_in(spec or 'P()')))})"


def without_nones(entries: list[object]) -> list[object]:
    """The same entries, without `None` at their end; single axes by their names alone."""
    found = [each[0] if isinstance(each, tuple) and len(each) == 1 else each for each in entries]
    while found and found[-1] is None:
        found.pop()
    return found
