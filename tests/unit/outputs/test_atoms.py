import numpy as np
import pytest

from epsilometer.outputs import Labels, Numbers
from epsilometer.outputs.atoms import LabelAtoms, NumberAtoms


def test_numbers_by_value():
    atoms = NumberAtoms(np.array([-np.inf, 0.0, 2.5, np.inf, np.nan]))
    column = Numbers(np.array([2.5, -0.0, np.nan, 7.0, np.inf, -np.inf]))
    assert atoms.codes(column).tolist() == [2, 1, 4, -1, 3, 0]


def test_no_atoms():
    assert NumberAtoms(np.empty(0)).codes(Numbers(np.array([1.0, np.nan]))).tolist() == [-1, -1]


@pytest.mark.parametrize("dtype", [bool, np.int64, float])
def test_yes_and_no(dtype):
    atoms = NumberAtoms(np.array([0.0, 1.0]))
    assert atoms.codes(Numbers(np.array([1, 0, 1], dtype=dtype))).tolist() == [1, 0, 1]


def test_a_column_of_the_other_kind_has_no_atoms():
    labels = Labels(np.array([0, 0], dtype=np.int32), ("1",))
    assert NumberAtoms(np.array([1.0])).codes(labels).tolist() == [-1, -1]
    assert LabelAtoms(("1",)).codes(Numbers(np.array([1.0]))).tolist() == [-1]


def test_names():
    atoms = NumberAtoms(np.array([-np.inf, 1 / 3, 12345678.0]))
    assert [atoms.name(code) for code in range(3)] == ["-inf", "0.333333", "12345678"]
    assert LabelAtoms(("it's",)).name(0) == '"it\'s"'
