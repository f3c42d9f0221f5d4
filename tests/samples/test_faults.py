"""Each faulty sample does what it warns of, and its repaired twin does not."""

import re

import numpy as np


def twins(result, name):
    return result(f"{name}:faulty"), result(f"{name}:repaired")


def test_missing_reduce_scatter(result):
    faulty, repaired = twins(result, "missing_reduce_scatter")
    assert faulty.collectives == {"all-reduce": 1}
    assert repaired.collectives == {"reduce-scatter": 1}


def test_gather_then_slice(result):
    faulty, repaired = twins(result, "gather_then_slice")
    assert faulty.collectives == {"all-gather": 1}
    assert repaired.collectives == {}


def test_extra_backward_psum(result):
    faulty, repaired = twins(result, "extra_backward_psum")
    assert faulty.collectives["all-reduce"] > repaired.collectives["all-reduce"] > 0


def test_psum_of_invariant(result):
    faulty, repaired = twins(result, "psum_of_invariant")
    ((wrong, _),), ((right, _),) = faulty.pairs, repaired.pairs
    assert wrong - right == 7 * (1 + 4 + 9)


def test_unsound_invariance(result):
    faulty, repaired = twins(result, "unsound_invariance")
    assert faulty.facts["specs"] == repaired.facts["specs"] == ["()"]
    assert faulty.facts["copies_agree"] == [False]
    assert repaired.facts["copies_agree"] == [True]


def test_full_rematerialization(result):
    gathered = [
        re.findall(r"= f32\[([\d,]+)\]\S* all-gather", twin.hlo) for twin in twins(result, "full_rematerialization")
    ]
    assert gathered == [["32,64"], ["8,64"]]


def test_indivisible_constraint(result):
    faulty, repaired = twins(result, "indivisible_constraint")
    assert faulty.facts["shard_shapes"] == [[17, 4]]
    assert repaired.facts["shard_shapes"] == [[3, 4]]
    ((whole, _),), ((padded, _),) = faulty.pairs, repaired.pairs
    np.testing.assert_array_equal(padded[:17], whole)
