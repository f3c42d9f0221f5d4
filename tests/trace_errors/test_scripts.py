"""Errors of scripts: the line, the argument, and a first remedy with which plain JAX runs a copy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from shardscope.inspector.ir.program import SourceFile
from shardscope.inspector.report.edits import applied
from shardscope.inspector.trace_errors.remedies import explained_run
from shardscope.inspector.trace_errors.trying import Command, differing

from tests.sweeps import sampled, xla_flags

pytestmark = pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="what is explained are messages of JAX 0.10")

ERRORS = Path(__file__).parents[2] / "tools" / "threads" / "errors"

SCRIPTS = {
    "last_batch": ("batch[0]", "yield jax.device_put(", "P('data')|data_sharding if"),
    "constraint_too_long": ("x", '"data", None)', '"data")'),
    "two_devices": ("params['b']", "print(forward", "NamedSharding(mesh, P())"),
    "psum_in_jit": ("dp", "pmean(grads", "grads = grads"),
    "explicit_matmul": ("", "return h @ w2", "jax.P('dp', None)"),
}
"""A program, the argument, words of the line that failed or is edited, and words of the edit."""


@pytest.mark.parametrize("name", sampled(SCRIPTS, ("psum_in_jit", "explicit_matmul"), ("psum_in_jit",)))
def test_the_first_remedy_runs_under_plain_jax(name: str, tmp_path: Path) -> None:
    argument, line, words = SCRIPTS[name]
    script = ERRORS / f"{name}.py"
    found = explained_run(Command(str(script), devices=8))
    assert found is not None
    assert found.argument == argument
    assert found.where.line is not None
    assert line in script.read_text().splitlines()[found.where.line - 1]
    fix = found.fixes[0]
    assert fix.helps
    text = applied(SourceFile(str(script), script.read_bytes()), list(fix.edits))
    assert text is not None
    assert any(each in text.decode() for each in words.split("|"))
    copy = tmp_path / script.name
    copy.write_bytes(text)
    flags = xla_flags(8)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    for path, status in ((script, 1), (copy, 0)):
        ended = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, check=False)
        assert ended.returncode == status, ended.stderr.decode()[-2000:]


PROGRAMS = {
    "loader_of_trainer": ("batch", "jax.tree.map(lambda leaf: jax.device_put(leaf, self.batch_sharding if"),
    "lstm_carry": ("lax.scan(", "pcast(jnp.zeros(xs.shape[1:]), ('data',), to='varying'), jax.lax.pcast("),
    "rules_table": ("NamedSharding(MESH", '"wi": ("embed", None)'),
    "constraint_in_step": ("x = jax.lax.with", "x = jax.sharding.reshard(x,"),
    "required_weight": ("self.apply(self.weight", "self.sharding(None, 'mdl'))\n"),
    "evaluation_mesh": ("return [metrics(", "with jax.set_mesh(eval_mesh): return [metrics("),
    "optimizer_tree": ("jstep(params", "in_shardings=(param_sharding, None, named"),
    "pipeline_stages": ("lax.switch(", "pcast(jnp.ones(x.shape, x.dtype), ('stage', 'data'), to='varying')"),
    "larger_mesh": ("make_mesh", "jax.make_mesh((2, 4), "),
    "sharded_leaves": ("out_shardings=shardings", "(P('fsdp') if leaf.ndim > 0 and leaf.shape[0] % 8 == 0 else P())"),
    "explicit_products": ("jnp.vdot(r, r)", "(2 * jax.numpy.dot(jax.numpy.conj(r), r, out_sharding=jax.P()) + 1)"),
    "library_in_vmap": ("jnp.searchsorted(own, row)", "jax.sharding.auto_axes(lambda "),
    "stencil_of_rolls": ("return lax.concatenate(", "optimization_barrier([lax.pad(u, 0.0, [(by - n, 0, 0)]), lax"),
    "metrics_of_shards": ("print(make_eval(net)", """"acc": jax.lax.pmean(acc, 'batch')}"""),
    "flat_devices": ("Mesh(jax.devices()", "mesh = Mesh(numpy.array(jax.devices()).reshape(-1, 2), "),
    "shardings_of_layers": (
        "jax.device_put(init(",
        '"head": [{"w": P(None, "data"), "b": P()}, {"w": P(None, "data"), "b": P()}]',
    ),
    "backward_of_head": ("step(jnp.ones", "return jax.lax.psum(dx, 'vocab'), lax.psum("),
    "axis_of_members": ("jax.vmap(predict", "spmd_axis_name='member'"),
    "rules_of_calls": ("NamedSharding(mesh", '("head_dim", None))'),
    "state_of_dict": ("step(state", "in_shardings=(None, rows), out_shardings=(None, None)"),
    "accumulated_gradients": ("lax.scan(", "reshard(zeros, {"),
    "buffer_of_rows": (".set(rows)", "jax.P(None, None)), out_sharding=jax.typeof(buffer).sharding)"),
    "local_ranks": ("from_process_local", "P(*tuple(by_tokens.spec)[: leaf.ndim])), leaf)"),
    "actor_and_learner": ("update(params", "jax.device_put(actions, NamedSharding(learners, P('batch')))"),
    "ring_of_blocks": ("lax.fori_loop(", "lax.pcast(total, ('dp', 'sp'), to='varying'), x)"),
    "prompt_of_one": ("forward", "in_shardings=get_sharding(None, 'dp'), out_shardings=get_sharding(None, 'dp')"),
    "uneven_rows": ("lax.psum_scatter(", "return row_parallel(jax.nn.gelu(x @ w1), w2)[:12]"),
    "lookup_under_auto": (".get(out_sharding", "with_sharding_constraint(table.at[ids].get(), NamedSharding(mesh, P("),
}
"""A program, words of the line, and of the edit: attributes, several carries, tables of rules, helpers."""


@pytest.mark.parametrize("name", sampled(PROGRAMS, ("lstm_carry",)))
def test_edits_in_the_users_own_forms(name: str) -> None:
    line, words = PROGRAMS[name]
    script = Path(__file__).parent / "programs" / f"{name}.py"
    found = explained_run(Command(str(script), devices=8))
    assert found is not None
    assert found.where.line is not None
    assert line in script.read_text().splitlines()[found.where.line - 1]
    assert found.fixes[0].helps
    text = applied(SourceFile(str(script), script.read_bytes()), list(found.fixes[0].edits))
    assert text is not None
    assert words in text.decode()
    inserted = [
        (edit.line, edit.column)
        for edit in found.fixes[0].edits
        if (edit.line, edit.column) == (edit.end_line, edit.end_column)
    ]
    assert len(inserted) == len({*inserted})  # in whatever order an editor applies them


@pytest.mark.once
def test_values_that_differ() -> None:
    """Rounding does not count, the shape of what is printed does, that of a variable does not."""
    one = {"print#0 argument 0": [[2], "float32", [[1, 0], [1, 0], [1, 0]]], "f#0 x": [[2], "float32", [[1, 0]] * 3]}
    near = json.loads(json.dumps(one).replace("[[1, 0]", "[[1.00001, 0]"))
    far = json.loads(json.dumps(one).replace("[[1, 0]", "[[1.1, 0]"))
    other_shape = json.loads(json.dumps(one).replace("[2]", "[3]"))
    assert differing(one, near) == ([], 2)
    assert differing(one, far) == (list(one), 2)
    assert differing(one, other_shape) == (["print#0 argument 0"], 1)
