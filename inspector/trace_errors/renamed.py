"""Names that JAX no longer has: scripts for older versions of it, rewritten for this one.

All that a file has of such names is rewritten at once: each of them would be the next error.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources

from ..findings.fixes.calls import name_of
from ..findings.fixes.edits import Edits, extent, instead, together, with_keyword
from ..report import Edit, StoryStep
from ..units import with_more
from .problem import Candidate, Problem, Reason

MISSING = re.compile(
    r"cannot import name '(?P<name>\w+)' from '(?P<module>jax[\w.]*)'|No module named '(?P<gone>jax\.[\w.]+)'"
    r"|module '(?P<owner>jax[\w.]*)' has no attribute '(?P<attribute>\w+)'"
    r"|^(?P<path>jax(?:\.\w+)+) (?:was|is) deprecated"
    r"|(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<keyword>\w+)'"
    r"|(?P<mapped>shard_map)\(\) takes .* positional arguments? but"
    r"|arr\.(?P<buffers>device_buffers?) has been deprecated|'\w*(?P<device>Device)' object is not callable"
)

_TABLES = tomllib.loads(resources.files(__package__).joinpath("renamed.toml").read_text("utf-8"))
RENAMED: Mapping[str, str] = _TABLES["renamed"]
ADVICE: Mapping[str, str] = _TABLES["advice"]
MODULES: Sequence[str] = _TABLES["modules"]["gone"]
KEYWORDS: Mapping[str, Mapping[str, str]] = _TABLES["keywords"]

_PLACED = "jax.device_put({}, jax.sharding.NamedSharding(jax.sharding.Mesh({}, 'd'), jax.sharding.PartitionSpec('d')))"
_STACKED: Mapping[str, str] = {
    "jax.device_put_replicated": "jax.tree.map(lambda leaf: jax.numpy.stack([leaf] * len({1})), {0})",
    "jax.device_put_sharded": "jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *{0})",
}
"""The stacked copies, and the stacked shards, that these functions put on devices, one each."""


def explain_missing(problem: Problem, said: re.Match[str]) -> Reason | None:
    """Explain a name, a keyword or an attribute that JAX had once."""
    found = {key: value for key, value in said.groupdict().items() if value}
    files = [_Names(problem, file) for file in problem.files]
    changes = [change for file in files for change in file.changes() if change[2]]
    edits = together(*(edits for _, _, edits in changes))
    name = found.get("path") or ".".join(filter(None, (found.get("module"), found.get("name"))))
    name = name or ".".join(filter(None, (found.get("owner"), found.get("attribute")))) or found.get("gone", "")
    if name:
        is_known = any(f"{known}.".startswith(f"{name}.") for known in (*RENAMED, *ADVICE, *_STACKED))
    else:
        is_known = bool(edits) and (
            "keyword" not in found or any(found["keyword"] in each for each in KEYWORDS.values())
        )
    if not is_known:
        return None
    pairs = sorted(((old, new) for old, new, _ in changes if old), key=lambda pair: not name or name not in pair[0])
    names = list(dict.fromkeys(f"{old} by {new}" for old, new in pairs))
    title = f"replace {with_more(names[0], len(names))}" if names else ""
    advice = [Candidate(text) for known, text in ADVICE.items() if any(known in file.used for file in files)]
    edit = [Candidate(title, edits, is_spelling=True)] if names else []
    candidates = (*advice, *edit) if name in ADVICE else (*edit, *advice)
    if "keyword" in found:
        title = f"{found['function']} of this JAX has no argument {found['keyword']}"
    elif "mapped" in found:
        title = "jax.shard_map takes the mesh and the specs by keyword only"
    else:
        title = f"this JAX has no {name or ('device_buffers' if 'buffers' in found else 'device()')}"
        title += " any more" if name else " of arrays any more"
    step = StoryStep("the script was written for an older JAX", problem.place)
    return Reason(title, found.get("keyword", name), (step,), candidates=candidates)


class _Names:
    """The names of JAX that a file uses."""

    def __init__(self, problem: Problem, file: str) -> None:
        self._file = file
        self._tree = problem.tree(file)
        self._known: dict[str, str] = {}
        """The full names of what is imported, by its names here."""
        for node in ast.walk(self._tree):
            match node:
                case ast.Import():
                    for alias in node.names:
                        if alias.asname:
                            self._known[alias.asname] = alias.name
                        else:
                            self._known[alias.name.partition(".")[0]] = alias.name.partition(".")[0]
                case ast.ImportFrom(module=str(module), level=0):
                    self._known |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}

    @cached_property
    def used(self) -> frozenset[str]:
        """The full names of all that is used of JAX."""
        nodes = (node for node in ast.walk(self._tree) if isinstance(node, ast.Attribute))
        return frozenset((*self._known.values(), *map(self._qualified, nodes)))

    def changes(self) -> Iterator[tuple[str, str, Edits]]:
        """Yield an old name, what takes its place, and the edits for that."""
        waiting: list[ast.AST] = [self._tree]
        needs_jax = False
        while waiting:
            node = waiting.pop()
            change = self._change(node)
            if change is not None:
                yield change
                needs_jax |= not isinstance(node, ast.ImportFrom | ast.Import) and "jax." in change[1]
                is_whole = isinstance(node, ast.expr) and any(_covers(edit, node) for edit in change[2])
                waiting += [] if is_whole else ast.iter_child_nodes(node)
            else:
                waiting += ast.iter_child_nodes(node)
        first = next((node for node in self._tree.body if isinstance(node, ast.Import | ast.ImportFrom)), None)
        if needs_jax and self._known.get("jax") != "jax" and first is not None:
            yield "", "", (Edit(self._file, first.lineno, 0, end_line=first.lineno, end_column=0, text="import jax\n"),)

    def _change(self, node: ast.AST) -> tuple[str, str, Edits] | None:
        match node:
            case ast.ImportFrom(module=str(module), level=0) if module.startswith("jax"):
                return self._imported(node, module)
            case ast.Import():
                old = [alias.name for alias in node.names if alias.name in (*MODULES, *RENAMED)]
                kept = [ast.unparse(ast.Import([alias])) for alias in node.names if alias.name not in old]
                others = [ast.alias(RENAMED[each.name], each.asname) for each in node.names if each.name in RENAMED]
                kept += [ast.unparse(ast.Import([alias])) for alias in others]
                text = "; ".join(kept) or "import jax"  # the name that `import jax.experimental.maps` is known by
                return (old[0], text, self._instead(node, text)) if old else None
            case ast.Attribute(value=value, attr=attr):
                name = self._qualified(node)
                new = RENAMED.get(name)
                if new is not None:
                    is_near = new.rpartition(".")[0] == name.rpartition(".")[0]
                    text = f"{ast.unparse(value)}.{new.rpartition('.')[2]}" if is_near else new
                    return name, new, instead((self._file, node), text)
                if attr == "device_buffer":
                    return attr, "addressable_data(0)", self._behind(value, node, ".addressable_data(0)")
                if attr == "device_buffers":
                    before = Edit(self._file, *extent(node)[:2], *extent(node)[:2], "[shard.data for shard in ")
                    return attr, "addressable_shards", (before, *self._behind(value, node, ".addressable_shards]"))
            case ast.Call():
                return self._called(node)
        return None

    def _imported(self, node: ast.ImportFrom, module: str) -> tuple[str, str, Edits] | None:
        renamed = [alias for alias in node.names if f"{module}.{alias.name}" in RENAMED]
        gone = [alias for alias in node.names if f"{module}.{alias.name}" in MODULES and alias not in renamed]
        gone = [alias for alias in gone if self._all_renamed(alias.asname or alias.name)]
        if not renamed and not gone:
            return None
        kept = [alias for alias in node.names if alias not in (*renamed, *gone)]
        statements = [ast.unparse(ast.ImportFrom(module, kept, 0))] if kept else []
        for alias in renamed:
            place, _, name = RENAMED[f"{module}.{alias.name}"].rpartition(".")
            own = alias.asname or alias.name
            statements.append(f"from {place} import {name}{'' if own == name else f' as {own}'}")
        old = [f"{module}.{alias.name}" for alias in (*renamed, *gone)]
        new = [RENAMED[each] for each in old if each in RENAMED]
        return ", ".join(old), ", ".join(new) or "its names", self._instead(node, "; ".join(statements or ["pass"]))

    def _all_renamed(self, module: str) -> bool:
        used = [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module
        ]
        return bool(used) and all(self._qualified(node) in RENAMED for node in used)

    def _called(self, node: ast.Call) -> tuple[str, str, Edits] | None:
        placed = (self._file, node)
        is_partial = name_of(node.func) == "partial" and bool(node.args)
        name = self._qualified(node.args[0] if is_partial else node.func)
        if name == "jax.lax.pvary":
            return name, "jax.lax.pcast", with_keyword(placed, "to", '"varying"')
        if name in _STACKED and len(node.args) == 2:
            value, devices = map(ast.unparse, node.args)
            text = _PLACED.format(_STACKED[name].format(value, devices), devices)
            return name, "jax.device_put of stacked arrays", instead(placed, text)
        if not name and isinstance(node.func, ast.Attribute) and node.func.attr == "device" and not node.args:
            return "device()", "device", self._behind(node.func, node, "")
        old = [keyword for keyword in node.keywords if keyword.arg in KEYWORDS.get(name, {})]
        edits = [self._keyword(keyword, KEYWORDS[name][str(keyword.arg)]) for keyword in old]
        specs = node.args[1:] if name == "jax.shard_map" and not is_partial else []
        words = zip(("mesh", "in_specs", "out_specs"), specs, strict=False)
        edits += [Edit(self._file, *extent(each)[:2], *extent(each)[:2], f"{word}=") for word, each in words]
        if old:
            return str(old[0].arg), KEYWORDS[name][str(old[0].arg)], tuple(edits)
        return ("positional arguments of jax.shard_map", "keywords", tuple(edits)) if edits else None

    def _keyword(self, keyword: ast.keyword, new: str) -> Edit:
        end = keyword.col_offset + len(keyword.arg or "")
        return Edit(self._file, keyword.lineno, keyword.col_offset, end_line=keyword.lineno, end_column=end, text=new)

    def _behind(self, part: ast.expr, node: ast.expr, text: str) -> Edits:
        """Another text in the place of what an expression has behind a part of it."""
        return (Edit(self._file, *extent(part)[2:], *extent(node)[2:], text),)

    def _qualified(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                found = self._known.get(name, "")
                return found if found.partition(".")[0] == "jax" else ""
            case ast.Attribute(value=value, attr=attr):
                owner = self._qualified(value)
                return f"{owner}.{attr}" if owner else ""
        return ""

    def _instead(self, node: ast.stmt, text: str) -> Edits:
        end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
        return (Edit(self._file, node.lineno, node.col_offset, *end, text),)


def _covers(edit: Edit, node: ast.expr) -> bool:
    return (edit.line, edit.column, edit.end_line, edit.end_column) == extent(node)
