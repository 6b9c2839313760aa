"""Ids of canaries from any library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest

from epsilometer.errors import InputError
from epsilometer.models.ids import check_ids, named_ids, read_ids


@pytest.mark.parametrize(
    "ids",
    [
        ["é", "b", "c"],
        ("é", "b", "c"),
        (name for name in "ébc"),
        np.array(["é", "b", "c"]),
        np.array(["é", "b", "c"], dtype=object),
        list(np.array(["é", "b", "c"])),
        pd.Series(["é", "b", "c"], index=[7, 8, 9]),
        pd.Index(["é", "b", "c"]),
        pl.Series(["é", "b", "c"]),
        pyarrow.array(["é", "b", "c"]),
    ],
)
def test_ids_are_python_objects(ids):
    read = read_ids("ids", ids)
    assert read == ["é", "b", "c"]
    assert {type(name) for name in read} == {str}


def test_pairs_stay_pairs():
    assert read_ids("ids", [(1, 2), (3, 4)]) == [(1, 2), (3, 4)]


def test_ids_that_python_takes_for_equal_are_repeated():
    with pytest.raises(InputError, match="id True repeated"):
        check_ids("ids", [1, True])


def test_the_first_three_are_named():
    assert named_ids(["a", "b", "a"]) == "id 'a', 'b'"
    assert named_ids(list(range(5))) == "id 0, 1, 2 and 2 more"
