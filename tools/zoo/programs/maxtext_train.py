"""MaxText: its step, made as its own training loop makes it, with the options of tools/zoo/scripts.toml."""

import os
import tomllib
from pathlib import Path

os.environ["DECOUPLE_GCLOUD"] = "TRUE"

import jax
from checkouts import FOLDER, importable

importable("maxtext/src")
os.chdir(os.path.join(FOLDER, "maxtext"))

from flax import linen, nnx
from maxtext.trainers.pre_train import train
from maxtext.utils import sharding, train_utils

options = tomllib.loads(Path(__file__).parents[1].joinpath("scripts.toml").read_text())["maxtext"]["command"]
config, recorder = train.initialize(["train", *options[2:]])
_, _, shardings, model, mesh, _, _, loader, rampup, evaluation, state = train_utils.setup_train_loop(config, recorder)
if not isinstance(model, linen.Module):
    model, state = nnx.split(state)
of_params, shardings = sharding.maybe_update_params_sharding_with_opt(config, shardings)
train_step, _ = train_utils.jit_train_and_eval_step(
    config, model, mesh, state, shardings, train.train_step, train.eval_step, evaluation, of_params
)
rules = train.nn_partitioning.axis_rules(config.logical_axis_rules)
rules.__enter__()
jax.set_mesh(mesh)
train_step_inputs = (state, loader.load_next_batch(rampup_manager=rampup))
