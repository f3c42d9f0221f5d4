"""The collectives in any stage of a program, with the source positions that compilers lose.

JAX 0.7 writes a file and a line into an HLO instruction's metadata, and no positions inside shard_map bodies:
functions, columns and callers are in its StableHLO, and the lines in its jaxpr.

Where a collective has its module by scopes, and another by the path of a parameter, both get one tree of modules. Linen
calls the outermost module by its class, in whose scope all others are, and its parameters are
`state.params['params']['norm']['scale']`: `("params", "params", "norm")` is `("Model", "norm")`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...parsers.record import Record
from ..correspondence.collectives import equations_alike
from ..correspondence.numbers import spans_of_tags, tags_in
from ..correspondence.parts import Part, Twins, parts_of, twins_in
from ..correspondence.positions import frames_at
from ..ir.derived import derived
from ..ir.jaxpr_text import JaxprText
from ..ir.name_scopes import keys_of_name
from ..ir.program import Program
from ..ir.stage import ParsedStage
from ..report import WRITTEN, Collective, SourcePosition
from .authors import module_of, with_authors
from .context import AnalysisContext, context_of
from .hlo import hlo_collectives
from .stablehlo import stablehlo_collectives
from .users import passes_served, requests_served


def collectives_of(program: Program, stage: ParsedStage) -> tuple[Collective, ...]:
    """The collectives of a stage, in text order."""
    return collectives_in_context(stage, context_of(program))


@derived
def collectives_in_context(stage: ParsedStage, context: AnalysisContext) -> tuple[Collective, ...]:
    """The same by what the rest of the program says: while a capture grows, that changes seldom."""
    text = None if context.lowered.jaxpr is None else context.lowered.jaxpr.jaxpr
    found = tuple(_with_equation_source(each, text) for each in spelled_collectives(stage, context))
    if stage.hlo is None or not stage.stage.tags or context.lowered.stablehlo is None:
        found = tuple(replace(each, module=each.module or module_of(each)) for each in found)
    else:
        found = with_authors(stage, found, parts_in(stage, context), context)
    return in_one_tree(found, context.lowered.arguments)


@derived
def parts_in(stage: ParsedStage, context: AnalysisContext) -> tuple[Part, ...]:
    """The parts of a stage's collectives, with their twins out of the partitioner."""
    twins = {} if context.partitioned is None else _twins_in(context.partitioned, context)
    return tuple(parts_of(stage, spelled_collectives(stage, context), twins))


@derived
def spelled_collectives(stage: ParsedStage, context: AnalysisContext) -> tuple[Collective, ...]:
    """The collectives of a stage, by what its text and the names in it say."""
    if stage.mlir is not None:
        return stablehlo_collectives(stage, stage.mlir, context)
    if stage.hlo is None:
        return ()
    found = hlo_collectives(stage.name, stage.hlo, context)
    stablehlo = context.lowered.stablehlo
    return found if stablehlo is None else tuple(_with_stack(each, stage, stablehlo) for each in found)


@derived
def _twins_in(partitioned: ParsedStage, context: AnalysisContext) -> Twins:
    found = spelled_collectives(partitioned, context)
    before, stablehlo = context.unpartitioned, context.lowered.stablehlo
    used_in = passes_served(partitioned, found, differentiated=context.differentiated)
    if before is None or stablehlo is None:
        return twins_in(partitioned, found, {}, used_in)
    return twins_in(partitioned, found, requests_served(partitioned, before, stablehlo, found), used_in)


def _with_stack(collective: Collective, stage: ParsedStage, stablehlo: ParsedStage) -> Collective:
    """A collective of HLO, a mere line replaced by the stack of its StableHLO operation where the two agree."""
    source = collective.source
    line = source.stack[0] if source.confidence == "exact" and len(source.stack) == 1 else None
    if line is not None and not line.function:
        for span in spans_of_tags(stablehlo, tags_in(stage, collective.span)):
            stack = frames_at(stablehlo, span.end - 1)
            if stack and (stack[0].file, stack[0].line) == (line.file, line.line):
                return replace(collective, source=SourcePosition(stack, "exact"))
    return collective


def _with_equation_source(collective: Collective, text: JaxprText | None) -> Collective:
    """A collective; one from user code without a position has the line on which all equations like it are."""
    if text is None or collective.source.stack or collective.origin not in WRITTEN:
        return collective
    stacks = {text.stack(place.equation) for place in equations_alike(text, collective)}
    if len({(stack[0].file, stack[0].line) for stack in stacks if stack}) != 1:
        return collective
    return replace(collective, source=SourcePosition(max(stacks, key=len), "shape"))


Path = tuple[str, ...]


def in_one_tree(found: Sequence[Collective], arguments: Iterable[str]) -> tuple[Collective, ...]:
    """The collectives with the outermost scope in the place of what holds the parameters of the modules in it."""
    modules = [module for each in found for module in (each.module, *(part.module for part in each.parts))]
    tree = _tree(modules, [keys_of_name(name)[1:] for name in arguments])
    return tuple(_renamed(each, tree) for each in found) if tree.holders else tuple(found)


class _Tree(Record, frozen=True):
    """The keys that paths of arguments begin with, in front of names of modules, with the scope that has these.

    `inside` are these names, each with its scope: weights and what optimizers keep of them may have only the keys from
    there on in common.
    """

    holders: Mapping[Path, str]
    inside: Mapping[str, str]

    def path(self, module: Path) -> Path:
        """The path of a module from its scope on; the same one where that is not known."""
        if module and (scope := self.inside.get(module[0])) is not None:
            return (scope, *module)
        depth = next((depth for depth in range(1, len(module) + 1) if module[:depth] in self.holders), None)
        return module if depth is None else (self.holders[module[:depth]], *module[depth:])


def _tree(modules: Iterable[Path], arguments: Sequence[Path]) -> _Tree:
    keys = {key for path in arguments for key in path}
    scopes: dict[str, set[str]] = {}
    for module in modules:
        if len(module) > 1 and module[0] not in keys and not module[1].isdecimal():
            scopes.setdefault(module[1], set()).add(module[0])
    holders: dict[Path, set[str]] = {}
    inside: dict[str, str] = {}
    for path in arguments:
        depth, around = next(((depth, scopes[key]) for depth, key in enumerate(path) if key in scopes), (0, set()))
        if depth:
            holders.setdefault(path[:depth], set()).update(around)
            inside |= dict.fromkeys(path[depth : depth + 1], *around) if len(around) == 1 else {}
    return _Tree({prefix: one for prefix, (one, *others) in holders.items() if not others}, inside)


def _renamed(collective: Collective, tree: _Tree) -> Collective:
    module = tree.path(collective.module)
    parts = tuple(
        part if (path := tree.path(part.module)) is part.module else replace(part, module=path)
        for part in collective.parts
    )
    if module is collective.module and all(new is old for new, old in zip(parts, collective.parts, strict=True)):
        return collective
    return replace(collective, module=module, parts=parts)
