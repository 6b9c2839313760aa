"""Reference mechanisms, private and broken, with their claims, worst pairs and exact truths.

`training` has DP-SGD and its bugs, which have no closed form and are found by their own name.

>>> from epsilometer import zoo
>>> entry = zoo.find("svt4", epsilon=0.7)
>>> entry.keeps_claim, round(entry.truth(), 3)
(False, 1.217)
"""

import difflib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from epsilometer.errors import InputError
from epsilometer.namespaces import namespace
from epsilometer.zoo import training
from epsilometer.zoo.additive import (
    clamped_laplace,
    gaussian,
    geometric,
    laplace,
    laplace_vector,
    noisy_histogram,
)
from epsilometer.zoo.canaries import shared_noise
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
from epsilometer.zoo.responses import (
    blh,
    olh,
    randomized_responses,
    rappor,
    rappor_longitudinal,
    shuffled_responses,
)
from epsilometer.zoo.selection import (
    exponential,
    joint_median,
    noisy_max,
    noisy_max_value,
    report_noisy_max,
)
from epsilometer.zoo.sniper import SNIPER_NAMES, sniper
from epsilometer.zoo.sparse_vector import (
    numerical_svt,
    propose_test_release,
    svt1,
    svt2,
    svt3,
    svt4,
    svt5,
    svt6,
)
from epsilometer.zoo.sums import (
    dp_mean,
    gaussian_sum,
    laplace_sum,
    noisy_gradient_descent,
    scaled_gd,
    subsampled_gaussian,
    subsampled_laplace,
)

__all__ = [
    "ZooEntry",
    "blh",
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
    "olh",
    "oue",
    "propose_test_release",
    "randomized_response",
    "randomized_responses",
    "rappor",
    "rappor_longitudinal",
    "report_noisy_max",
    "scaled_gd",
    "shared_noise",
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
    "training",
    "truncated_gaussian",
    "truncated_laplace",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__)

# Names in `__all__` that are no mechanisms.
_NOT_MECHANISMS = ("ZooEntry", "find", "names", "training")
# The functions that make mechanisms by name, for the command line and for tests of all of them.
_MAKERS: dict[str, Callable[..., ZooEntry]] = {
    name: globals()[name] for name in __all__ if name not in _NOT_MECHANISMS
}
# Found by name like the others, but not among `names()`: one run takes a training.
_TRAININGS: dict[str, Callable[..., ZooEntry]] = {"training.dp_sgd": training.dp_sgd}


def names() -> list[str]:
    """Returns all names that `find` knows."""
    return list(_MAKERS)


def find(name: str, **parameters: Any) -> ZooEntry:
    """Returns the mechanism of that name, made with the given parameters.

    DP-Sniper's mechanisms are known by their published names, too: "PrefixSum" is "sniper" with
    that `mechanism`.

    Args:
        name: one of `names()`, or "training.dp_sgd".
        **parameters: of the mechanism; numbers may be given as text.

    Raises:
        InputError: the name or a parameter is unknown, or a value is not allowed.
    """
    if name in SNIPER_NAMES:
        parameters = {"mechanism": name, **parameters}
        name = "sniper"
    maker = _MAKERS.get(name) or _TRAININGS.get(name)
    if maker is None:
        close = difflib.get_close_matches(str(name), [*_MAKERS, *SNIPER_NAMES], n=3)
        names = f"the zoo has: {', '.join(_MAKERS)}"
        if close:
            names = f"did you mean {' or '.join(close)}? All of them: epsilometer zoo"
        raise InputError(f"zoo mechanism {name!r} is unknown; {names}")
    signature = inspect.signature(maker)
    known = signature.parameters
    arguments = {}
    for key, value in parameters.items():
        if key not in known:
            raise InputError(f"{name} has no parameter {key!r}; it has {', '.join(known)}")
        arguments[key] = _parse(key, value, is_word=_is_word(known[key]))
    return maker(**arguments)


def _is_word(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is a word and not a number."""
    return isinstance(parameter.default, str) or str in get_args(parameter.annotation)


def _parse(key: str, value: Any, *, is_word: bool) -> Any:
    """Returns text as a number where the parameter is one, anything else for the maker to check.

    Args:
        key: the name of the parameter.
        value: as the user gave it.
        is_word: whether the parameter is a word.
    """
    if is_word and not isinstance(value, str):
        raise InputError(f"{key}={value!r} must be a word, not {type(value).__name__}")
    if is_word or not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{key}={value!r} is not a number") from None
