"""Scores as callers have them."""

from fractions import Fraction

import numpy as np
import pytest

import epsilometer as em
from epsilometer.auditing.score_values import read_scores

NUMBERS = [0.5, -1.0, 2.25, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, float("inf")]


class Tensor:
    """What torch's tensors do, for machines without torch: gradients, devices, bfloat16.

    Args:
        values: what it holds.
        has_bfloat16: whether NumPy refuses its type.
        place: "gradient", "device" or "memory": where `numpy` is allowed only in the last one.
    """

    def __init__(self, values, *, has_bfloat16=False, place="gradient"):
        self.values, self.has_bfloat16, self.place = np.asarray(values), has_bfloat16, place

    def detach(self):
        return Tensor(self.values, has_bfloat16=self.has_bfloat16, place="device")

    def cpu(self):
        place = "memory" if self.place == "device" else self.place
        return Tensor(self.values, has_bfloat16=self.has_bfloat16, place=place)

    def float(self):
        return Tensor(self.values.astype(np.float32), place=self.place)

    def numpy(self):
        if self.place == "gradient":
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.has_bfloat16 or self.place != "memory":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


def of_pandas(values):
    return pytest.importorskip("pandas").Series(values, index=range(7, 7 + len(values)))


def of_pandas_nullable(values):
    return pytest.importorskip("pandas").Series(values, dtype="Float64")


def of_polars(values):
    return pytest.importorskip("polars").Series(values)


def of_jax(values):
    return pytest.importorskip("jax").numpy.asarray(values)


def of_jax_in_bfloat16(values):
    jax = pytest.importorskip("jax")
    return jax.numpy.asarray(values, dtype=jax.numpy.bfloat16)


def of_torch(values):
    torch = pytest.importorskip("torch")
    return torch.tensor(values, dtype=torch.bfloat16, requires_grad=True)


@pytest.mark.parametrize(
    "of",
    [
        list,
        tuple,
        np.array,
        lambda values: np.array(values, dtype=object),
        lambda values: [np.float32(value) for value in values],
        lambda values: [Fraction(value) if np.isfinite(value) else value for value in values],
        of_pandas,
        of_pandas_nullable,
        of_polars,
        of_jax,
        of_jax_in_bfloat16,
        of_torch,
        Tensor,
        lambda values: Tensor(values, has_bfloat16=True),
        lambda values: [Tensor(value, has_bfloat16=True) for value in values],
    ],
)
def test_accepted(of):
    read = read_scores("in_scores", of(NUMBERS))
    assert read.dtype == np.float64
    assert read.tolist() == NUMBERS


def test_large_whole_numbers_that_floats_hold_are_scores():
    for values in (np.full(10, 2**60), [3 * 2**60] * 10, np.full(10, 2**63, dtype=np.uint64)):
        assert read_scores("in_scores", values).tolist() == [float(value) for value in values]


def test_an_empty_batch_is_one_where_it_is_allowed():
    assert read_scores("in_scores", [], fewest=0).shape == (0,)
    assert read_scores("in_scores", np.empty(0, dtype=object), fewest=0).shape == (0,)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([float("nan")] * 3 + [1.0] * 9, "3 NaN"),
        ([None] * 2 + [1.0] * 9, "2 NaN"),
        (np.ma.masked_equal(np.arange(12), 3), "1 NaN"),
        ([1.0] * 9, "9 scores: at least 10"),
        ([[1.0] * 10], "one-dimensional"),
        (np.ones((10, 1)), "one-dimensional"),
        (3.0, "one-dimensional"),
        ([True] * 10, "booleans"),
        (np.array([True, 1.0] * 5, dtype=object), "booleans"),
        (["1.5"] * 10, "strings"),
        (np.array(["1.5", 1.0] * 5, dtype=object), "strings"),
        ("0123456789", "str"),
        ({1: 2.0}, "dict"),
        ([1j] * 10, "complex"),
        (np.zeros(10, dtype="M8[s]"), "datetime"),
        ([[1.0], [1.0, 2.0]] * 5, "in_scores"),
        (Tensor(np.ones(10) > 0), "booleans"),
        (None, "NoneType"),
        ((1.0 for _ in range(10)), "generator"),
        # Two whole numbers that differ, and of which floats make one.
        (np.full(10, 2**53 + 1), "9007199254740993"),
        (np.full(10, 2**64 - 1, dtype=np.uint64), "18446744073709551615"),
        ([-(2**53) - 1] * 10, "-9007199254740993"),
        ([10**400] * 10, "no float holds exactly"),
    ],
)
def test_refused_in_one_line(values, why):
    with pytest.raises(em.InputError, match=why) as refused:
        read_scores("in_scores", values)
    assert "\n" not in str(refused.value)
    assert "in_scores" in str(refused.value)


def test_missing_values_are_counted():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for values in (
        pandas.Series([1.0, None] * 6, dtype="Float64"),
        polars.Series([1, None] * 6),
        polars.Series([1.0, None] * 6),
        pyarrow.array([1.0, None] * 6),
        pyarrow.chunked_array([[1.0, None] * 6]),
    ):
        with pytest.raises(em.InputError, match="6 NaN"):
            read_scores("out_scores", values)
