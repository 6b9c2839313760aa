"""Finding a mechanism by name, and what happens if that makes no sense."""

import math
import subprocess
import sys

import pytest

from epsilometer import zoo
from epsilometer.errors import InputError

EXPECTED = {
    "laplace gaussian geometric clamped_laplace laplace_vector randomized_response exponential report_noisy_max",
    "noisy_max_value noisy_histogram svt1 svt2 svt3 svt4 svt5 svt6 numerical_svt propose_test_release dp_mean",
    "truncated_laplace truncated_gaussian sue oue rappor rappor_longitudinal hadamard_response subset_selection",
    "laplace_sum gaussian_sum subsampled_laplace subsampled_gaussian randomized_responses shuffled_responses",
    "noisy_gradient_descent scaled_gd",
    "dp_laplace dp_laplace_released nondp_laplace1 nondp_laplace2 nondp_gaussian1 nondp_gaussian2",
    "joint_median noisy_max sniper blh olh shared_noise",
}
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


def test_names_are_the_public_functions():
    assert set(zoo.names()) == set(" ".join(EXPECTED).split())
    assert set(zoo.names()) == set(zoo.__all__) - {"ZooEntry", "find", "names", "training"}


@pytest.mark.parametrize("name", zoo.names())
def test_find_gives_what_the_function_gives(name):
    entry = zoo.find(name)
    assert entry.name == entry.mechanism.name
    assert entry.name == name or name == "sniper"
    assert zoo.find(entry.name).parameters == entry.parameters
    assert entry.parameters == getattr(zoo, name)().parameters
    assert "\n" not in entry.summary


def test_numbers_may_be_text():
    assert (
        zoo.find("svt4", epsilon=".7", cutoff="2").parameters
        == zoo.svt4(epsilon=0.7, cutoff=2).parameters
    )
    assert zoo.find("report_noisy_max", output="value").parameters["output"] == "value"
    assert (
        zoo.find("gaussian", epsilon="1", delta="1e-5").claim
        == zoo.gaussian(epsilon=1.0, delta=1e-5).claim
    )


def test_a_training_is_found_by_name_with_words_and_numbers_as_text():
    entry = zoo.find("training.dp_sgd", bug="nan", steps="3")
    assert entry.parameters["bug"] == "nan"
    assert entry.parameters["steps"] == 3
    assert "training.dp_sgd" not in zoo.names()


def test_an_unknown_name_tells_close_matches_and_where_all_names_are():
    with pytest.raises(InputError, match="did you mean laplace") as caught:
        zoo.find("laplac")
    assert str(caught.value).endswith("All of them: epsilometer zoo")


def test_an_unknown_name_without_close_matches_is_told_too():
    with pytest.raises(InputError, match="unknown; the zoo has: blh, "):
        zoo.find("zzzzzz")


def test_an_unknown_parameter_tells_the_known_ones():
    with pytest.raises(
        InputError, match="svt5 has no parameter 'sigma'; it has epsilon, cutoff, threshold"
    ):
        zoo.find("svt5", sigma=1)


@pytest.mark.parametrize("name", [name for name in zoo.names() if name not in BY_NOISE])
@pytest.mark.parametrize(
    "epsilon", [0, -1.0, math.nan, math.inf, 1e9, "nan", "much", True, None, [1.0]]
)
def test_a_senseless_epsilon_is_an_input_error(name, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        zoo.find(name, epsilon=epsilon)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gaussian", {"epsilon": -1.0}),
        ("gaussian", {"delta": 0.0}),
        ("gaussian", {"delta": 0.7}),
        ("gaussian", {"sigma": 0}),
        ("gaussian", {"sigma": 1.0, "epsilon": 1.0}),
        ("laplace", {"sensitivity": -1}),
        ("geometric", {"sensitivity": 1.5}),
        ("laplace_vector", {"dimension": 0}),
        ("randomized_response", {"categories": 1}),
        ("report_noisy_max", {"output": "both"}),
        ("report_noisy_max", {"output": 3}),
        ("report_noisy_max", {"noise": "gaussian"}),
        ("report_noisy_max", {"queries": 1}),
        ("noisy_histogram", {"scale": "none"}),
        ("svt1", {"cutoff": 0}),
        ("svt1", {"cutoff": 11}),
        ("svt1", {"threshold": "inf"}),
        ("propose_test_release", {"delta": 1.0}),
        ("propose_test_release", {"distance": 0}),
        ("dp_mean", {"scale_error": 0.0}),
        ("dp_mean", {"size": "ten"}),
        ("svt3", {"cutoff": 11}),
        ("svt5", {"cutoff": 0}),
        ("nondp_laplace1", {"size": 0}),
        ("nondp_laplace2", {"size": 1.5}),
        ("nondp_gaussian2", {"delta": 0}),
        ("joint_median", {"width": 1.0}),
        ("noisy_max", {"votes": 0}),
        ("noisy_max", {"elements": 1}),
    ],
)
def test_a_senseless_parameter_is_an_input_error_that_names_it(name, parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        zoo.find(name, **parameters)


def test_looking_into_the_zoo_is_cheap():
    heavy = ["scipy.stats", "scipy.integrate", "scipy.optimize", "sklearn", "matplotlib"]
    code = f"import sys, epsilometer.zoo as z; z.svt3(); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
