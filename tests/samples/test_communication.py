"""The collectives that each sample tells of are those of the compiled text.

Only what the sample itself writes, or what its story promises, is counted: where the partitioner or the compiler is
free, and differs between versions, the test says how far.
"""

import re

import pytest

from tests.conftest import KEPT_FUNCTIONS
from tests.sweeps import sampled

pytestmark = pytest.mark.once

EXACT = {
    "psum:psum": {"all-reduce": 1},
    "psum_2d:over_both": {"all-reduce": 1},
    "psum_2d:over_rows": {"all-reduce": 1},
    "psum_2d:over_columns": {"all-reduce": 1},
    "all_gather:tiled": {"all-gather": 1},
    "all_gather:stacked": {"all-gather": 1},
    "psum_scatter:psum_scatter": {"reduce-scatter": 1},
    "psum_scatter:by_hand": {"collective-permute": 3},
    "ppermute:shift": {"collective-permute": 1},
    "ppermute:shift_open": {"collective-permute": 1},
    "all_to_all:all_to_all": {"all-to-all": 1},
    "matmul_psum:matmul": {"all-reduce": 1},
    "matmul_psum:automatic": {"all-reduce": 1},
    "matmul_reduce_scatter:matmul": {"reduce-scatter": 1},
    "matmul_reduce_scatter:overlapped": {"collective-permute": 3},
    "matmul_all_gather:gathered": {"all-gather": 1},
    "matmul_all_gather:overlapped": {"collective-permute": 3},
    "matmul_all_gather:both_ways": {"collective-permute": 6},
    "data_parallel:loss": {"all-reduce": 1},
    "fsdp:loss": {"all-gather": 6, "all-reduce": 1},
    "tensor_parallel:loss": {"reduce-scatter": 3, "all-reduce": 1},
    "tensor_parallel:grad": {"reduce-scatter": 3, "all-gather": 3},
    "fsdp_tp:loss": {"all-gather": 6, "reduce-scatter": 3, "all-reduce": 2},
    "pipeline:loss": {"collective-permute": 1, "all-reduce": 1},
    "pipeline:grad": {"collective-permute": 2},
    "megatron_mlp:loss": {"all-reduce": 3},
    "moe:loss": {"all-to-all": 2, "all-reduce": 1},
    "moe:grad": {"all-to-all": 4, "all-reduce": 1},
    "ring_attention:attend": {"collective-permute": 2},
    "ring_attention:grad": {"collective-permute": 4},
    "predict:predict": {"all-reduce": 1},
    "constraint:open_columns": {},
    "constraint:closed_columns": {"all-gather": 1},
    "auto_axis:loss": {"all-reduce": 2},
    "custom_partitioning:product": {"all-reduce": 1},
    "block_matrices:all_gather": {"all-gather": 1},
    "block_matrices:all_to_all": {"all-to-all": 1},
    "block_matrices:all_reduce": {"all-reduce": 1},
    "block_matrices:reduce_scatter": {"all-reduce": 1},  # on CPU, which forms no reduce-scatter
    "transposes:psum_to_invariant": {},
    "transposes:psum_to_invariant_unchecked": {"all-reduce": 1},
    "transposes:psum_to_varying": {"all-reduce": 1},
    "transposes:psum_to_varying_unchecked": {"all-reduce": 1},
    "transposes:identity": {},
    "transposes:identity_unchecked": {"all-reduce": 1},
    "transposes:gather_to_invariant": {},
    "transposes:gather_to_invariant_unchecked": {"reduce-scatter": 1},
    "transposes:gather_to_varying": {"reduce-scatter": 1},
    "transposes:gather_to_varying_unchecked": {"reduce-scatter": 1},
}


@pytest.mark.parametrize("key", sampled(EXACT, KEPT_FUNCTIONS & {*EXACT}))
def test_collectives_are_those_of_the_story(result, key):
    assert result(key).collectives == EXACT[key]


@pytest.mark.parametrize(("key", "scattered_products"), [("fsdp:grad", 0), ("fsdp_tp:grad", 3)])
def test_sharded_parameters_are_gathered_again_and_their_gradients_scattered(result, key, scattered_products):
    parameters = 6
    again = 2  # the weights of all layers but the first, whose input needs no gradient; no gradient needs a bias
    grad = result(key)
    # A gather's transpose is a scatter, and the other way round.
    assert grad.stablehlo.count("stablehlo.all_gather") == parameters + again + scattered_products
    assert grad.collectives["reduce-scatter"] == parameters + scattered_products
    assert grad.collectives["all-reduce"] == 0


def test_data_parallel_gradients_are_all_reduced(result):
    operands = re.findall(r"\ball-reduce(?:-start)?\(([^)]*)\)", result("data_parallel:grad").hlo)
    assert sum(operand.count("%") for operand in operands) == 6  # one by one, or combined


@pytest.mark.parametrize(("key", "in_loop"), [("once", False), ("each_time", True), ("automatic", True)])
def test_gradients_are_reduced_where_the_story_says(result, key, in_loop):
    found = result(f"grad_accumulation:{key}")
    assert set(found.collectives) == {"all-reduce"}
    assert found.collectives_of_entry == ({} if in_loop else found.collectives)


@pytest.mark.parametrize("key", ["pipeline:loss", "pipeline:grad", "ring_attention:attend", "ring_attention:grad"])
def test_blocks_travel_in_a_loop(result, key):
    assert result(key).collectives_of_entry["collective-permute"] == 0


def test_transformer_communicates_by_itself_and_keeps_its_state_in_place(result):
    step = result("transformer:train_step")
    assert "all_gather" not in step.stablehlo
    assert "all_reduce" not in step.stablehlo
    assert step.collectives["all-gather"] == 9  # four matrices a layer, and the embedding
    assert set(step.collectives) == {"all-gather", "all-reduce"}
    donated = len(step.pairs) - 1  # all but the loss
    assert len(re.findall(r"(?:may|must)-alias", step.hlo.partition("\n")[0])) == donated


def test_propagation_shards_what_nothing_was_said_of(result):
    assert "data" in result("predict:predict").facts["specs"][0]
    assert result("custom_partitioning:product").facts["shard_shapes"] == [[2, 4, 12]]
