"""Reference mechanisms, private and broken, each with its claim, its worst pair and its exact truth.

>>> from epsilometer import zoo
>>> entry = zoo.find("svt4", epsilon=0.7)
>>> entry.keeps_claim, round(entry.truth(), 3)
(False, 1.217)
"""

from epsilometer.zoo.additive import (
    clamped_laplace,
    gaussian,
    geometric,
    laplace,
    laplace_vector,
    noisy_histogram,
    propose_test_release,
)
from epsilometer.zoo.counted_means import (
    dp_laplace,
    dp_laplace_released,
    nondp_gaussian1,
    nondp_gaussian2,
    nondp_laplace1,
    nondp_laplace2,
)
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.local import hadamard_response, oue, randomized_response, subset_selection, sue
from epsilometer.zoo.registry import find, names
from epsilometer.zoo.responses import randomized_responses, rappor, rappor_longitudinal, shuffled_responses
from epsilometer.zoo.selection import exponential, joint_median, noisy_max, noisy_max_value, report_noisy_max
from epsilometer.zoo.sniper import sniper
from epsilometer.zoo.sparse_vector import numerical_svt, svt1, svt2, svt3, svt4, svt5, svt6
from epsilometer.zoo.sums import (
    dp_mean,
    gaussian_sum,
    laplace_sum,
    noisy_gradient_descent,
    scaled_gd,
    subsampled_gaussian,
    subsampled_laplace,
)
from epsilometer.zoo.truncated import truncated_gaussian, truncated_laplace

__all__ = [
    "ZooEntry",
    "clamped_laplace",
    "dp_laplace",
    "dp_laplace_released",
    "dp_mean",
    "exponential",
    "find",
    "gaussian",
    "gaussian_sum",
    "geometric",
    "hadamard_response",
    "joint_median",
    "laplace",
    "laplace_sum",
    "laplace_vector",
    "names",
    "noisy_gradient_descent",
    "noisy_histogram",
    "noisy_max",
    "noisy_max_value",
    "nondp_gaussian1",
    "nondp_gaussian2",
    "nondp_laplace1",
    "nondp_laplace2",
    "numerical_svt",
    "oue",
    "propose_test_release",
    "randomized_response",
    "randomized_responses",
    "rappor",
    "rappor_longitudinal",
    "report_noisy_max",
    "scaled_gd",
    "shuffled_responses",
    "sniper",
    "subsampled_gaussian",
    "subsampled_laplace",
    "subset_selection",
    "sue",
    "svt1",
    "svt2",
    "svt3",
    "svt4",
    "svt5",
    "svt6",
    "truncated_gaussian",
    "truncated_laplace",
]
