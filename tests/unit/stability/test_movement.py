"""Movement between two inputs: exact, two runs, and no false alarm by rounding or loose chance."""

import json

import numpy as np
import pytest

from epsilometer.errors import InputError, MechanismError
from epsilometer.stability import movement
from epsilometer.zoo import training


def test_a_sum_moves_by_the_record():
    moved = movement(np.sum, np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), bound=2.5)
    assert moved.largest == 3.0
    assert moved.allowed == 2.5
    assert moved.is_refuted
    assert moved.pair.right.tolist() == [1.0, 2.0, 3.0]
    assert str(moved) == "movement 3, allowed 2.5: refuted"
    assert not movement(np.sum, [1.0], [1.0, 3.0], bound=3.0).is_refuted


@pytest.mark.parametrize("bug", [None, *training.BUGS])
def test_the_bugs_of_a_step_are_found_in_two_runs(bug):
    entry = training.dp_sgd(bug)
    calls = []

    def step(dataset, rng):
        calls.append(len(dataset))
        return entry.step(dataset, rng)

    pair = entry.movement_pair
    moved = movement(step, pair.left, pair.right, entry.clip_norm)
    in_step = {
        *("actual_batch_size", "private_size", "private_size_floored", "per_layer_clipping"),
        *("clip_after_average", "no_clipping", "replace_one", "nan", "loss_released"),
        "batch_statistics",
    }
    assert moved.is_refuted == (bug in in_step)
    # Two runs decide; only a refutation is repeated.
    assert len(calls) == (4 if moved.is_refuted else 2)


@pytest.mark.parametrize("bug", [name for name in training.BUGS if name != "replace_one"])
def test_the_right_one_never_moves_further_than_the_clip_norm(bug):
    entry = training.dp_sgd(bug)
    right = training.dp_sgd(d=entry.parameters["d"])
    for pair in (entry.movement_pair, entry.worst_pair):
        moved = movement(right.step, pair.left, pair.right, right.clip_norm)
        assert moved.largest <= 1.0 + 1e-12
        assert not moved.is_refuted


def test_both_sides_have_the_same_random_numbers():
    def noisy(dataset, rng):
        return sum(dataset) + 100.0 * rng.normal(size=50)

    moved = movement(noisy, [1.0], [1.0, 1.0], bound=10.0)
    assert moved.largest == pytest.approx(50**0.5)
    again = movement(noisy, [1.0], [1.0, 1.0], bound=10.0, seed=moved.seed)
    assert np.array_equal(again.values[0], moved.values[0])


def test_a_step_with_chance_of_its_own_is_refused_and_not_refuted(rng):
    with pytest.raises(InputError, match="something else when it is called again"):
        movement(lambda dataset: 100.0 * rng.normal(size=3), [1.0], [2.0], bound=1.0)


def test_rounding_is_no_movement():
    def mean_of_float32(dataset):
        clipped = np.full((len(dataset), 10), 10**-0.5, dtype=np.float32)
        return clipped.sum(axis=0, dtype=np.float32)

    for n in (1, 100, 10_000):
        moved = movement(mean_of_float32, range(n), range(n + 1), bound=1.0)
        assert not moved.is_refuted
        assert moved.rounding < 0.3
    # Of what is counted in doubles, hardly more than what is never a counterexample.
    assert movement(lambda n: [0.1, n / 3.0], 0, 2, bound=1.0).rounding < 1.01e-6


def clipped_in_single_precision(dataset):
    gradients = np.asarray(dataset, dtype=np.float32)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(norms, np.float32(1.0))


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.ndarray.tolist,
        lambda total: total.astype(float),
        lambda total: {"weights": [float(value) for value in total]},
        lambda total: total.astype(float) / 7.0 * 7.0,
    ],
    ids=["float32", "list", "doubles", "dict of floats", "computed with"],
)
def test_single_precision_is_no_movement_however_it_is_returned(convert, rng):
    for _ in range(20):
        gradients = 3.0 * rng.normal(size=(50, 100))
        moved = movement(
            lambda dataset: convert(clipped_in_single_precision(dataset).sum(axis=0)),
            gradients,
            gradients[:-1],
            bound=1.0,
        )
        assert not moved.is_refuted
        assert moved.rounding < 0.01


def test_sums_that_cancel_have_lost_digits_before(rng):
    def one_by_one(dataset):
        total = np.zeros(4, np.float32)
        for row in clipped_in_single_precision(dataset):
            total += row
        return total

    gradients = 10.0 * rng.normal(size=(20_000, 4))
    dataset = np.concatenate([[[10.0, 0.0, 0.0, 0.0]], gradients, -gradients])
    assert not movement(one_by_one, dataset, dataset[1:], bound=1.0).is_refuted


def test_dicts_are_compared_key_by_key():
    """They may be filled in the order in which their keys were met."""

    def sum_per_label(dataset):
        sums = {}
        for label, value in dataset:
            sums[label] = sums.get(label, 0.0) + min(value, 1.0)
        return sums

    dataset = [("b", 0.5), ("a", 3.0), ("a", 2.0), ("b", 0.1)]
    moved = movement(sum_per_label, dataset, dataset[1:], bound=1.0)
    assert moved.largest == pytest.approx(0.5)
    assert not moved.is_refuted
    # A key that only one input has is an answer about it.
    assert movement(sum_per_label, dataset, [*dataset, ("c", 0.0)], bound=1.0).largest == np.inf
    assert movement(sum_per_label, dataset[:1], dataset[1:2], bound=10.0).largest == np.inf


@pytest.mark.parametrize(
    ("left", "right", "largest"),
    [
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([1.0, np.inf], [4.0, np.inf], 3.0),
        ([1.0, 1.0], [1.0, np.nan], np.inf),
        ([1.0, -np.inf], [1.0, np.inf], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
    ],
)
def test_what_is_not_finite_moves_only_where_it_differs(left, right, largest):
    moved = movement(lambda dataset: dataset, left, right, bound=5.0)
    assert moved.largest == largest
    assert moved.is_refuted == (largest == np.inf)


@pytest.mark.parametrize("size", [1e200, 1e300, 1.7e308])
def test_movements_of_any_size_are_refuted(size):
    moved = movement(lambda sign: [sign * size, 0.0], 1.0, -1.0, bound=1.0)
    assert moved.is_refuted
    assert moved.largest == 2.0 * size
    assert moved.rounding < 1e-9 * size


def test_the_inputs_are_not_changed():
    def step(dataset):
        dataset.append(9.0)
        return sum(dataset)

    left = [1.0]
    assert movement(step, left, [1.0, 5.0], bound=5.0).largest == 5.0
    assert left == [1.0]


def test_plain_data():
    moved = movement(np.sum, [1.0], [1.0, 5.0], bound=1.0, seed=3)
    data = json.loads(json.dumps(moved.to_dict()))
    assert data["largest"] == 5.0
    assert data["is_refuted"] is True
    assert data["seed"] == 3


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="bound=0"):
        movement(np.sum, [1.0], [2.0], bound=0)
    with pytest.raises(InputError, match="must be a function"):
        movement(3, [1.0], [2.0], bound=1)
    with pytest.raises(InputError, match="returned no numbers"):
        movement(lambda dataset: [], [1.0], [2.0], bound=1)
    with pytest.raises(MechanismError, match="step raised ZeroDivisionError"):
        movement(lambda dataset: 1 / 0, [1.0], [2.0], bound=1)
