"""Arrays of any library as one vector, without importing the library."""

import numpy as np
import pytest

from epsilometer.errors import InputError
from epsilometer.stability.vectors import as_vector


class Tensor:
    """What a tensor of PyTorch looks like from outside: bfloat16, with a gradient, on a device."""

    dtype = "torch.bfloat16"

    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Can't call numpy() on a tensor that requires grad")

    def detach(self):
        return self

    def cpu(self):
        return self

    def double(self):
        return self

    def numpy(self):
        return np.array(self.numbers, dtype=float)


def test_parts_are_joined_in_their_order():
    value = {"weight": np.arange(4).reshape(2, 2), "bias": [0.5, (7, True)], "scale": np.float32(2)}
    assert as_vector("value", value).numbers.tolist() == [0, 1, 2, 3, 0.5, 7, 1, 2]
    assert as_vector("value", (part for part in [1.0, 2.0])).numbers.tolist() == [1.0, 2.0]
    assert as_vector("value", []).numbers.shape == (0,)


def test_tensors_come_without_gradient_device_and_coarse_type():
    vector = as_vector("value", [Tensor([1.0, 2.0]), np.ones(1, np.float32)])
    assert vector.numbers.tolist() == [1.0, 2.0, 1.0]
    assert vector.spacing == 2.0**-7


@pytest.mark.parametrize(
    ("dtype", "spacing"), [(np.float64, 2.0**-52), (np.float32, 2.0**-23), (np.int64, 2.0**-52)]
)
def test_the_spacing_is_that_of_the_coarsest_type(dtype, spacing):
    assert as_vector("value", [np.ones(2, dtype), 0.1]).spacing == spacing


def test_doubles_that_lose_nothing_in_single_precision_may_be_converted():
    assert as_vector("value", [0.5, np.float64(np.float32(0.1))]).spacing == 2.0**-23
    assert as_vector("value", [1, True, np.arange(3)]).spacing == 2.0**-52
    assert as_vector("value", [1e300, 0.5]).spacing == 2.0**-52


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    vector = as_vector("value", jax.numpy.ones(2, dtype="bfloat16"))
    assert vector.numbers.tolist() == [1.0, 1.0]
    assert vector.spacing == 2.0**-7


@pytest.mark.parametrize("value", [None, "text", object(), [1.0, None], np.array(["a"])])
def test_what_is_no_number_is_refused_by_name(value):
    with pytest.raises(InputError, match=r"gradient holds .*no number"):
        as_vector("gradient", value)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
def test_complex_numbers_are_refused_instead_of_losing_a_part(kind):
    with pytest.raises(InputError, match="complex numbers: give their real and imaginary parts"):
        as_vector("step", [1.0, np.ones(3, dtype=kind)])
    with pytest.raises(InputError, match="complex numbers"):
        as_vector("step", kind(1j))
