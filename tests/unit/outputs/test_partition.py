"""Which group an output belongs to: by the table of combinations and by hashes, which must agree."""

import numpy as np
import pytest

from epsilometer.methods.scores.cells import learn_groups
from epsilometer.outputs import partition as module
from epsilometer.outputs import read_outputs
from epsilometer.outputs.partition import (
    BlockPartition,
    Partition,
    partition_from_dict,
    partition_to_dict,
)


def block(values):
    (found,) = read_outputs(values)
    return found


BATCHES = {
    "texts": ["a", "b", "b", "c"] * 20 + ["once"],
    "numbers that repeat and others": [(1.0, 2.5), (1.0, 3.5), (0.0, 3.5), (0.25, 0.125)] * 10
    + [(1.0, 9.75)],
    "yes and no": [(True, False, True), (False, False, True), (True, True, True)] * 10,
    "names and numbers": [("a", 1), ("b", 1), ("a", 2)] * 10 + [("c", 7)],
    "nothing at all": [None] * 12,
    "not a number": [(float("nan"), "x"), (0.0, "x")] * 10,
}


@pytest.mark.parametrize("values", BATCHES.values(), ids=BATCHES.keys())
def test_the_table_and_the_hashes_agree(values, monkeypatch):
    rows = block(values)
    partition, _ = learn_groups(rows, rows)
    assert len(partition.groups) >= 1
    by_table = partition.index(rows)
    monkeypatch.setattr(module, "_MAX_COMBINATIONS", 0)
    assert np.array_equal(by_table, partition.index(rows))
    assert (
        by_table[0] < partition.n_cells - 1
    )  # the first output of each batch repeats, so it has a group


def test_values_never_learned_belong_to_no_group():
    partition, _ = learn_groups(block(["a", "b"] * 10), block(["b"] * 10))
    assert partition.index(block(["b", "new", "a"])).tolist() == [0, 2, 1]


def test_a_shape_without_values_has_one_signature_only():
    stored = partition_to_dict(Partition((BlockPartition("None", (), (module.Group((0,)),)),)))
    assert partition_from_dict(stored).index(read_outputs([None, None])).tolist() == [0, 0]
    stored[0]["groups"][0]["signature"] = [5]
    with pytest.raises(ValueError, match="without values"):
        partition_from_dict(stored)
