"""DP-SGD and its bugs: what is released, what each bug does, and that the right one is right."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.claims import GaussianDP
from epsilometer.errors import InputError
from epsilometer.zoo import training

NAMES = [
    "actual_batch_size",
    "private_size",
    "private_size_floored",
    "per_layer_clipping",
    "clip_after_average",
    "no_clipping",
    "replace_one",
    "nan",
    "empty_batch",
    "noise_reused",
    "micro_batches",
    "noise_not_scaled",
    "parameter_without_noise",
    "seed_reused",
    "shuffled",
    "label_sampling",
    "loss_released",
    "batch_statistics",
]


def movement_of(entry, pair):
    """How far the step moves, with the same random numbers on both sides."""
    sides = [entry.step(side, np.random.default_rng(5)) for side in (pair.left, pair.right)]
    return float(np.linalg.norm(sides[0] - sides[1]))


def runs(entry, side, n, rng):
    return entry.mechanism.function(getattr(entry.worst_pair, side), n, rng)


def test_all_bugs_are_there_with_a_line_about_each():
    assert list(training.BUGS) == NAMES
    assert all(summary and "\n" not in summary for summary in training.BUGS.values())


@pytest.mark.parametrize("bug", [None, *NAMES])
def test_an_entry_is_complete(bug, rng):
    entry = training.dp_sgd(bug)
    assert entry.keeps_claim == (bug is None)
    assert entry.parameters.get("bug") == bug
    assert entry.truth(em.PureDP) is None
    steps, d = entry.parameters["steps"], entry.parameters["d"]
    left = runs(entry, "left", 3, rng)
    n_numbers = {"micro_batches": 2 * steps * d, "loss_released": steps * d + steps}
    assert left.shape == (3, n_numbers.get(bug, steps * d))
    right = runs(entry, "right", 3, rng)
    assert right.shape == left.shape
    assert all(np.isfinite(entry.score(output)) for output in (*left, *right))
    # Neighbours: one record more, or one replaced.
    sizes = [len(entry.worst_pair.left), len(entry.worst_pair.right)]
    assert sizes[0] - sizes[1] == (0 if bug == "replace_one" else 1)
    assert f"dp_sgd({'' if bug is None else f'bug={bug!r}'}" in repr(entry)


@pytest.mark.parametrize(
    ("bug", "movement"),
    [
        ("per_layer_clipping", 2**0.5),
        ("batch_statistics", 3.17),
        ("clip_after_average", 19.9),
        ("no_clipping", 300.0),
        ("actual_batch_size", 20.0),
        ("private_size_floored", 20.0),
        ("private_size", 20.0),
    ],
)
def test_without_noise_a_step_moves_further_than_the_clip_norm(bug, movement):
    entry = training.dp_sgd(bug)
    assert movement_of(entry, entry.movement_pair) == pytest.approx(movement, rel=2e-3)
    right = training.dp_sgd(d=entry.parameters["d"])
    assert movement_of(right, entry.movement_pair) == pytest.approx(1.0, abs=1e-12)


def test_the_lot_is_what_sums_are_divided_by(rng):
    ten = training.dp_sgd(steps=1, noise_multiplier=0.05, lot=10.0)
    five = training.dp_sgd(steps=1, noise_multiplier=0.05, lot=5.0)
    assert (ten.parameters["lot"], training.dp_sgd().parameters["lot"]) == (10.0, 4.0)
    data = ten.worst_pair.left
    released = [
        entry.mechanism.function(data, 1, np.random.default_rng(3)) for entry in (ten, five)
    ]
    assert np.allclose(2.0 * released[0], released[1])
    with pytest.raises(InputError, match="lot=0"):
        training.dp_sgd(lot=0)


def test_a_missing_value_survives_only_where_that_is_the_bug(rng):
    entry = training.dp_sgd("nan", steps=1, rate=1.0)
    right = training.dp_sgd(None, steps=1, rate=1.0)
    data = entry.worst_pair.left
    assert np.isnan(entry.mechanism.function(data, 1, rng)).any()
    assert np.isfinite(right.mechanism.function(data, 1, rng)).all()


def test_an_empty_batch_releases_noise_in_the_right_one_only(rng):
    entry = training.dp_sgd("empty_batch")
    right = training.dp_sgd()
    nothing = entry.worst_pair.right
    assert len(nothing) == 0
    assert not entry.mechanism.function(nothing, 2, rng).any()
    assert right.mechanism.function(nothing, 2, rng).all()


def test_noise_that_is_reused_cancels_between_steps(rng):
    data = np.zeros((0, 9))
    same = training.dp_sgd("noise_reused").mechanism.function(data, 1, rng).reshape(10, 8)
    assert np.ptp(same, axis=0).max() == 0.0
    halves = training.dp_sgd("micro_batches").mechanism.function(data, 1, rng).reshape(10, 2, 8)
    assert np.array_equal(halves[:, 0], halves[:, 1])
    assert len(np.unique(halves[:, 0])) == 80
    seeded = training.dp_sgd("seed_reused").mechanism.function(data, 2, rng)
    assert np.array_equal(seeded[0], seeded[1])
    forgotten = training.dp_sgd("parameter_without_noise").mechanism.function(data, 1, rng)
    assert not forgotten.reshape(10, 8)[:, -1].any()
    assert forgotten.reshape(10, 8)[:, :-1].all()


def test_the_size_of_the_noise(rng):
    # 64 000 numbers: the standard deviation is known to .3 %, and 5 % is 17 standard errors.
    data = np.zeros((0, 65))
    right = training.dp_sgd(d=64, noise_multiplier=2.0).mechanism.function(data, 100, rng)
    assert right.std() == pytest.approx(2.0 / 4.0, rel=0.05)
    small = training.dp_sgd("noise_not_scaled", d=64, noise_multiplier=2.0)
    assert small.mechanism.function(data, 100, rng).std() == pytest.approx(2.0 / 16.0, rel=0.05)


def test_every_record_is_in_one_batch_of_a_shuffled_epoch(rng):
    code = training._BUGS["shuffled"].training(steps=10, rate=0.2, noise_multiplier=1.0, lot=4.0)
    rows = np.arange(40.0).reshape(20, 2)
    batches = list(code.batches(rows, rng))
    for epoch in (batches[:5], batches[5:]):
        assert sorted(np.concatenate(epoch)[:, 0]) == rows[:, 0].tolist()


def test_rare_labels_are_taken_more_often(rng):
    make = training._BUGS["label_sampling"].training
    code = make(steps=2000, rate=0.2, noise_multiplier=1.0, lot=4.0)
    rows = np.array([[0.0, 0.0, 0.1], [1.0, 0.0, 30.0]])
    taken = np.concatenate(list(code.batches(rows, rng)))[:, 0]
    # 2000 coins of .6: 1200 ± 22, and of .2: 400 ± 18; both allow for seven standard deviations.
    assert 1046 < np.count_nonzero(taken == 1.0) < 1354
    assert 274 < np.count_nonzero(taken == 0.0) < 526


def test_the_claim_is_the_accountants():
    assert training.dp_sgd(None, steps=4, rate=1.0, noise_multiplier=0.5).claim == GaussianDP(4.0)
    assert isinstance(training.dp_sgd().claim, em.TradeOffDP)
    # The claim belongs to the parameters and not to the bug.
    assert training.dp_sgd("nan").claim == training.dp_sgd().claim


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bug": "no_cliping"}, "bug='no_cliping' is unknown; did you mean 'no_clipping'"),
        ({"steps": 0}, "steps=0 must be a whole number from 1 to 1000"),
        ({"rate": 0.0}, "rate=0.0 must be above 0 and at most 1"),
        ({"rate": 1.5}, "rate=1.5 must be above 0 and at most 1"),
        ({"noise_multiplier": 0.0}, "noise_multiplier=0.0 must be"),
        ({"noise_multiplier": 0.01}, "`step` of the entry is without noise"),
        ({"d": 1}, "d=1 must be a whole number from 2"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        training.dp_sgd(**arguments)


def test_a_dataset_of_another_form_is_refused(rng):
    with pytest.raises(InputError, match="one row per record"):
        training.dp_sgd().mechanism.function([1.0, 2.0], 1, rng)
