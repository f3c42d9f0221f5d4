"""Shardings of results in the user's source: `out_shardings`, or a constraint where the function returns them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from ...report import Report
from .calls import imports, nodes_of, own_files, returned_by
from .edits import Edits, Placed, instead
from .specs import sharding_text, with_out_specs


def with_result_specs(report: Report, specs: Mapping[str, object]) -> Edits:
    """Return the function with these specs of results, by their names, as `result['w']` or `result.layer.kernel`."""
    return with_out_specs(report, specs) or _constrained(report, specs)


def _constrained(report: Report, specs: Mapping[str, object]) -> Edits:
    """Return the constraint of what a function returns, by paths: its tree may be of any classes.

    Nothing where the function has several returns, or its file has no name for what the constraint takes.
    """
    returned = list(_returned(report))
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


def _returned(report: Report) -> Iterator[Placed]:
    subject = report.capture.subject
    if subject is None or report.script is None:
        return
    name = subject.function.rpartition(".")[2].rpartition(":")[2]
    for file in dict.fromkeys((report.script, *own_files(report.program))):
        for node in nodes_of(report.program, file):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield from ((file, each) for each in returned_by(node))
