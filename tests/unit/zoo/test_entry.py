"""What every entry of the zoo promises, over many parameters."""

import math
import pickle

import numpy as np
import pytest

from epsilometer import zoo
from epsilometer.claims import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOffDP
from epsilometer.errors import InputError
from epsilometer.zoo.sniper import SNIPER_NAMES

CASES = [(name, {}) for name in zoo.names()]
# Calibrated by the size of their noise, or as published.
BY_NOISE = {
    "gaussian",
    "gaussian_sum",
    "subsampled_gaussian",
    "noisy_gradient_descent",
    "scaled_gd",
    "shared_noise",
    "sniper",
}
CASES += [
    (name, {"epsilon": epsilon})
    for name in zoo.names()
    for epsilon in (0.1, 0.7, 3.0)
    if name not in BY_NOISE
]
COUNTED_MEANS = (
    "dp_laplace",
    "dp_laplace_released",
    "nondp_laplace1",
    "nondp_laplace2",
    "nondp_gaussian1",
    "nondp_gaussian2",
)
CASES += [
    ("report_noisy_max", {"output": "value"}),
    ("report_noisy_max", {"output": "value", "queries": 2}),
    ("report_noisy_max", {"output": "value", "noise": "exponential"}),
    ("report_noisy_max", {"noise": "exponential", "epsilon": 1.5}),
    ("noisy_histogram", {"scale": "wrong", "epsilon": 0.1}),
    ("noisy_histogram", {"scale": "wrong", "epsilon": 2.0}),
    ("gaussian", {"epsilon": 1.0, "delta": 1e-5}),
    ("gaussian", {"epsilon": 0.3, "delta": 1e-3, "sensitivity": 4.0}),
    ("gaussian", {"sigma": 1.0, "epsilon": 1.0, "delta": 1e-5}),
    ("gaussian", {"sigma": 9.0, "epsilon": 1.0, "delta": 1e-5}),
    ("gaussian", {"sigma": 0.5}),
    ("laplace", {"sensitivity": 3.0}),
    ("geometric", {"sensitivity": 3}),
    ("randomized_response", {"categories": 7}),
    ("svt1", {"cutoff": 2}),
    ("svt2", {"cutoff": 3}),
    ("svt4", {"cutoff": 3}),
    ("svt3", {"cutoff": 2}),
    ("svt3", {"cutoff": 3, "epsilon": 0.7}),
    ("svt5", {"cutoff": 1}),
    ("svt5", {"cutoff": 3, "epsilon": 0.1}),
    ("svt6", {"cutoff": 1}),
    ("svt6", {"cutoff": 1, "epsilon": 3.0}),
    ("svt6", {"cutoff": 2, "threshold": -2.5}),
    ("svt6", {"cutoff": 9}),
    ("nondp_laplace1", {"size": 7}),
    ("nondp_laplace2", {"size": 3}),
    ("nondp_gaussian1", {"size": 4, "delta": 1e-3}),
    ("nondp_gaussian2", {"size": 3, "delta": 1e-3}),
    *[(name, {"epsilon": 0.01}) for name in COUNTED_MEANS],
    ("joint_median", {"width": 0.3}),
    ("noisy_max", {"elements": 2, "votes": 1}),
    ("svt1", {"threshold": -2.5}),
    ("svt3", {"threshold": 7.0}),
    ("propose_test_release", {"distance": 7}),
    ("propose_test_release", {"delta": 0.3}),
    ("dp_mean", {"scale_error": 1.0}),
    ("dp_mean", {"scale_error": 0.9}),
]
CASES += [("sniper", {"mechanism": name}) for name in SNIPER_NAMES]
SHAPES = {
    "blh": ((2,), np.int64),
    "olh": ((2,), np.int64),
    "laplace": ((), np.float64),
    "gaussian": ((), np.float64),
    "geometric": ((), np.int64),
    "clamped_laplace": ((), np.float64),
    "laplace_vector": ((5,), np.float64),
    "exponential": ((), np.float64),
    "report_noisy_max": ((), np.int64),
    "noisy_max_value": ((), np.float64),
    "noisy_histogram": ((5,), np.float64),
    "svt1": ((), np.int64),
    "svt2": ((), np.int64),
    "svt4": ((), np.int64),
    "svt5": ((10,), np.bool_),
    "svt6": ((10,), np.bool_),
    "dp_mean": ((), np.float64),
    "truncated_laplace": ((), np.float64),
    "truncated_gaussian": ((), np.float64),
    "sue": ((4,), np.bool_),
    "oue": ((4,), np.bool_),
    "rappor": ((16,), np.bool_),
    "rappor_longitudinal": ((16,), np.int64),
    "hadamard_response": ((), np.int64),
    "subset_selection": ((6,), np.bool_),
    "laplace_sum": ((), np.float64),
    "gaussian_sum": ((), np.float64),
    "subsampled_laplace": ((), np.float64),
    "subsampled_gaussian": ((), np.float64),
    "randomized_responses": ((10,), np.bool_),
    "shuffled_responses": ((10,), np.bool_),
    "noisy_gradient_descent": ((), np.float64),
    "scaled_gd": ((), np.float64),
    "shared_noise": ((10,), np.float64),
    "joint_median": ((), np.float64),
    "noisy_max": ((), np.int64),
    "sniper": ((10,), np.float64),
    **dict.fromkeys(COUNTED_MEANS, ((), np.float64)),
}
COLUMNS = {
    "svt3": {"position": np.int64, "value": np.float64},
    "numerical_svt": {"position": np.int64, "value": np.float64},
    "propose_test_release": {"released": np.bool_, "value": np.float64},
}

every_case = pytest.mark.parametrize(("name", "parameters"), CASES)
every_name = pytest.mark.parametrize("name", zoo.names())


def draw(entry, side=0, n=500, seed=1):
    outputs = entry.mechanism.function(entry.worst_pair.side(side), n, np.random.default_rng(seed))
    return outputs if isinstance(outputs, dict) else {"": outputs}


def assert_same(first, second):
    assert first.keys() == second.keys()
    for key, column in first.items():
        np.testing.assert_array_equal(column, second[key])


@every_case
def test_the_claim_is_kept_exactly_if_the_truth_allows_it(name, parameters):
    """For the broken entries the worst pair shows it; the private ones cannot exceed their claim anywhere."""
    entry = zoo.find(name, **parameters)
    truth = entry.truth()
    assert truth is not None
    assert (truth <= entry.claim.value + 1e-9) == entry.keeps_claim


@every_case
def test_the_notions_are_consistent(name, parameters):
    entry = zoo.find(name, **parameters)
    pure, renyi = entry.truth(PureDP), entry.truth(RenyiDP, order=2.0)
    assert 0 < renyi <= pure
    assert renyi <= entry.truth(RenyiDP, order=20.0) <= max(pure, entry.truth(RenyiDP, order=20.0))
    epsilon = entry.truth(ApproxDP, delta=1e-3)
    if epsilon is not None:
        assert 0 <= epsilon <= pure
        assert math.isinf(epsilon) or entry.truth(ApproxDP, epsilon=epsilon) <= 1e-3 * (1 + 1e-6)
    rho = entry.truth(ZCDP)
    assert rho is None or rho >= renyi / 2 - 1e-12
    assert entry.truth(TradeOffDP) is None


@every_case
def test_draws_are_reproducible_and_survive_pickling(name, parameters):
    entry = zoo.find(name, **parameters)
    mechanism = pickle.loads(pickle.dumps(entry.mechanism.function))
    again = mechanism(entry.worst_pair.left, 500, np.random.default_rng(1))
    assert_same(draw(entry), again if isinstance(again, dict) else {"": again})
    assert pickle.loads(pickle.dumps(entry)).truth() == entry.truth()


@every_case
def test_outputs_can_be_read(name, parameters):
    entry = zoo.find(name, **parameters)
    for side in (0, 1):
        assert (
            len(entry.mechanism.sample(entry.worst_pair.side(side), 50, np.random.default_rng(2)))
            == 50
        )


@pytest.mark.parametrize("name", list(SHAPES))
def test_outputs_have_the_promised_shape_and_type(name):
    (outputs,) = draw(zoo.find(name)).values()
    shape, dtype = SHAPES[name]
    assert outputs.shape == (500, *shape)
    assert outputs.dtype == dtype


@pytest.mark.parametrize("name", list(COLUMNS))
def test_records_have_the_promised_columns(name):
    columns = draw(zoo.find(name))
    assert {key: column.dtype for key, column in columns.items()} == COLUMNS[name]
    assert all(column.shape == (500,) for column in columns.values())


def test_every_name_has_its_shape_checked():
    assert {*SHAPES, *COLUMNS, "randomized_response"} == set(zoo.names())


def test_randomized_response_answers_with_labels():
    assert set(draw(zoo.randomized_response())[""]) == {"yes", "no"}
    assert set(draw(zoo.randomized_response(categories=4))[""]) == {"c0", "c1", "c2", "c3"}
    with pytest.raises(InputError, match="maybe"):
        zoo.randomized_response().mechanism.function("maybe", 3, np.random.default_rng(0))


def test_noisy_max_value_is_a_number():
    assert draw(zoo.report_noisy_max(output="value"))[""].dtype == np.float64
    assert draw(zoo.report_noisy_max(output="value", noise="exponential"))[""].min() >= 0


@pytest.mark.parametrize("name", ["svt1", "svt2", "svt4", "svt5", "svt6"])
def test_with_a_larger_cutoff_the_answers_end_after_it(name):
    answers = draw(zoo.find(name, cutoff=3))[""]
    assert answers.shape == (500, 10)
    above = (answers == 1).cumsum(axis=1)
    stopped = np.concatenate([np.zeros((500, 1), dtype=bool), above[:, :-1] >= 3], axis=1)
    np.testing.assert_array_equal(answers == -1, stopped)


def test_released_values_end_after_the_cutoff_too():
    answers = draw(zoo.svt3(cutoff=3))[""]
    assert answers.shape == (500, 10)
    above = np.isfinite(answers).cumsum(axis=1)
    stopped = np.concatenate([np.zeros((500, 1), dtype=bool), above[:, :-1] >= 3], axis=1)
    np.testing.assert_array_equal(np.isnan(answers), stopped)


def test_a_value_is_missing_exactly_where_there_is_no_answer():
    for name in ("svt3", "numerical_svt"):
        columns = draw(zoo.find(name), n=5000)
        np.testing.assert_array_equal(np.isnan(columns["value"]), columns["position"] == 10)
    columns = draw(zoo.propose_test_release(), n=5000)
    np.testing.assert_array_equal(np.isnan(columns["value"]), ~columns["released"])


def test_the_mean_clips_its_values():
    noisy_mean = zoo.dp_mean(epsilon=50.0, size=3).mechanism.function
    first, second = (
        noisy_mean(values, 9, np.random.default_rng(3)) for values in ([0, 1, 1], [-9.0, 1.0, 44.0])
    )
    np.testing.assert_array_equal(first, second)


def test_what_truth_needs_is_told():
    entry = zoo.laplace()
    with pytest.raises(InputError, match="RenyiDP needs order="):
        entry.truth(RenyiDP)
    with pytest.raises(InputError, match="ApproxDP needs delta= or epsilon="):
        entry.truth(ApproxDP)
    with pytest.raises(InputError, match="needs no parameter, not order"):
        entry.truth(PureDP, order=2.0)
    with pytest.raises(InputError, match="unknown"):
        entry.truth(float)


def test_truth_takes_the_claims_own_parameters():
    entry = zoo.gaussian(epsilon=1.0, delta=1e-5)
    assert (
        entry.truth()
        == entry.truth(ApproxDP)
        == entry.truth(ApproxDP, delta=1e-5)
        == pytest.approx(1.0, abs=1e-9)
    )
    assert zoo.gaussian(sigma=2.0).truth(GaussianDP) == 0.5
