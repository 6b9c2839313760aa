"""Reference mechanisms, private and broken, each with its claim, its worst pair and its exact truth.

>>> from epsilometer import zoo
>>> entry = zoo.find("svt4", epsilon=0.7)
>>> entry.keeps_claim, round(entry.truth(), 3)
(False, 1.217)
"""

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from epsilometer.errors import InputError
from epsilometer.zoo.additive import clamped_laplace, gaussian, geometric, laplace, laplace_vector, noisy_histogram
from epsilometer.zoo.counted_means import (
    dp_laplace,
    dp_laplace_released,
    nondp_gaussian1,
    nondp_gaussian2,
    nondp_laplace1,
    nondp_laplace2,
)
from epsilometer.zoo.entry import ZooEntry
from epsilometer.zoo.local import (
    hadamard_response,
    oue,
    randomized_response,
    subset_selection,
    sue,
    truncated_gaussian,
    truncated_laplace,
)
from epsilometer.zoo.responses import blh, olh, randomized_responses, rappor, rappor_longitudinal, shuffled_responses
from epsilometer.zoo.selection import exponential, joint_median, noisy_max, noisy_max_value, report_noisy_max
from epsilometer.zoo.sniper import SNIPER_NAMES, sniper
from epsilometer.zoo.sparse_vector import numerical_svt, propose_test_release, svt1, svt2, svt3, svt4, svt5, svt6
from epsilometer.zoo.sums import (
    dp_mean,
    gaussian_sum,
    laplace_sum,
    noisy_gradient_descent,
    scaled_gd,
    subsampled_gaussian,
    subsampled_laplace,
)

__all__ = ["ZooEntry", "blh", "clamped_laplace", "dp_laplace", "dp_laplace_released", "dp_mean", "exponential", "find"]
__all__ += ["gaussian", "gaussian_sum", "geometric", "hadamard_response", "joint_median", "laplace", "laplace_sum"]
__all__ += ["laplace_vector", "names", "noisy_gradient_descent", "noisy_histogram", "noisy_max", "noisy_max_value"]
__all__ += ["nondp_gaussian1", "nondp_gaussian2", "nondp_laplace1", "nondp_laplace2", "numerical_svt", "olh", "oue"]
__all__ += ["propose_test_release", "randomized_response", "randomized_responses", "rappor", "rappor_longitudinal"]
__all__ += ["report_noisy_max", "scaled_gd", "shuffled_responses", "sniper", "subsampled_gaussian"]
__all__ += ["subsampled_laplace", "subset_selection", "sue", "svt1", "svt2", "svt3", "svt4", "svt5", "svt6"]
__all__ += ["truncated_gaussian", "truncated_laplace"]

# By name, for the command line and for tests over all of it.
_OTHERS = ("ZooEntry", "find", "names")
_MAKERS: dict[str, Callable[..., ZooEntry]] = {name: globals()[name] for name in __all__ if name not in _OTHERS}


def names() -> list[str]:
    """All names that `find` knows."""
    return list(_MAKERS)


def find(name: str, **parameters: Any) -> ZooEntry:
    """The mechanism of that name, made with the given parameters; numbers may be given as text.

    DP-Sniper's mechanisms are known by their published names too: "PrefixSum" is "sniper" with that `mechanism`.

    Raises:
        InputError: the name or a parameter is unknown, or a value makes no sense.
    """
    if name in SNIPER_NAMES:
        name, parameters = "sniper", {"mechanism": name, **parameters}
    if (maker := _MAKERS.get(name)) is None:
        close = difflib.get_close_matches(str(name), [*_MAKERS, *SNIPER_NAMES], n=3)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise InputError(f"zoo mechanism {name!r} is unknown; {hint}the zoo has: {', '.join(_MAKERS)}")
    defaults = {key: parameter.default for key, parameter in inspect.signature(maker).parameters.items()}
    for key in parameters:
        if key not in defaults:
            raise InputError(f"{name} has no parameter {key!r}; it has {', '.join(defaults)}")
    return maker(**{key: _read(key, value, defaults[key]) for key, value in parameters.items()})


def _read(key: str, value: Any, default: Any) -> Any:
    """Text as a number where the parameter is one; everything else as it is, for the maker to check."""
    if isinstance(default, str) and not isinstance(value, str):
        raise InputError(f"{key}={value!r} must be a word, not {type(value).__name__}")
    if isinstance(default, str) or not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{key}={value!r} is not a number") from None
