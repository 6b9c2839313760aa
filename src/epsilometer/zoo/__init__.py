"""Reference mechanisms, private and broken, each with its claim, its worst pair and its exact truth.

>>> from epsilometer import zoo
>>> entry = zoo.find("svt4", epsilon=0.7)
>>> entry.keeps_claim, round(entry.truth(), 3)
(False, 1.217)
"""

from epsilometer.zoo.additive import clamped_laplace, gaussian, geometric, laplace, laplace_vector
from epsilometer.zoo.choosing_one import joint_median, noisy_max
from epsilometer.zoo.counted_means import (
    dp_laplace,
    dp_laplace_released,
    nondp_gaussian1,
    nondp_gaussian2,
    nondp_laplace1,
    nondp_laplace2,
)
from epsilometer.zoo.descent import noisy_gradient_descent, scaled_gd
from epsilometer.zoo.encodings import hadamard_response, oue, subset_selection, sue
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.histograms import noisy_histogram
from epsilometer.zoo.local_response import randomized_response
from epsilometer.zoo.means import dp_mean
from epsilometer.zoo.rappor_reports import rappor, rappor_longitudinal
from epsilometer.zoo.registry import find, names
from epsilometer.zoo.responses import randomized_responses, shuffled_responses
from epsilometer.zoo.selection import exponential, noisy_max_value, report_noisy_max
from epsilometer.zoo.stability import propose_test_release
from epsilometer.zoo.sums import gaussian_sum, laplace_sum, subsampled_gaussian, subsampled_laplace
from epsilometer.zoo.svt import numerical_svt, svt1, svt2, svt3, svt4, svt5, svt6
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
