"""Reference mechanisms, private and broken, each with its claim, its worst pair and its exact truth.

>>> from epsilometer import zoo
>>> entry = zoo.find("svt4", epsilon=0.7)
>>> entry.keeps_claim, round(entry.truth(), 3)
(False, 1.217)
"""

from epsilometer.zoo.additive import clamped_laplace, gaussian, geometric, laplace, laplace_vector
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.histograms import noisy_histogram
from epsilometer.zoo.local_response import randomized_response
from epsilometer.zoo.means import dp_mean
from epsilometer.zoo.registry import find, names
from epsilometer.zoo.selection import exponential, noisy_max_value, report_noisy_max
from epsilometer.zoo.stability import propose_test_release
from epsilometer.zoo.svt import numerical_svt, svt1, svt2, svt3, svt4, svt5, svt6

__all__ = [
    "ZooEntry",
    "clamped_laplace",
    "dp_mean",
    "exponential",
    "find",
    "gaussian",
    "geometric",
    "laplace",
    "laplace_vector",
    "names",
    "noisy_histogram",
    "noisy_max_value",
    "numerical_svt",
    "propose_test_release",
    "randomized_response",
    "report_noisy_max",
    "svt1",
    "svt2",
    "svt3",
    "svt4",
    "svt5",
    "svt6",
]
