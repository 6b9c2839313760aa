"""What the published methods share: checks of what users give, and directions of divergences."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from epsilometer.errors import InputError

OptionsType = TypeVar("OptionsType")
Side = TypeVar("Side")


def options_or_default(
    method: str, namespace: str, options_type: type[OptionsType], options: OptionsType | None
) -> OptionsType:
    """Returns the options given to a method, or the defaults if there are none.

    Args:
        method: the name of the method, for the error text.
        namespace: the module of `epsilometer` in which users find its options.
        options_type: the class of its options.
        options: what the user gave.

    Raises:
        InputError: the options belong to another method.
    """
    if options is None:
        return options_type()
    if not isinstance(options, options_type):
        raise InputError(
            f"options={options!r:.100}: the method {method} takes epsilometer.{namespace}.Options"
        )
    return options


def takes_arguments(function: Callable[..., Any], number: int) -> bool:
    """Whether a function can be called with this many positional arguments.

    True where nobody can tell: some builtins have no signature.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(number))
    except TypeError:
        return False
    return True


def oriented(left: Side, right: Side, flipped: bool) -> tuple[Side, Side]:
    """Returns what belongs to P and what belongs to Q of a divergence D(P ‖ Q).

    Args:
        left: anything about the left distribution.
        right: the same about the right distribution.
        flipped: False for D(left ‖ right), True for D(right ‖ left).
    """
    if flipped:
        return right, left
    return left, right


def direction_label(flipped: bool) -> str:
    """Returns the direction of a divergence as the details of a finding state it."""
    return "right ‖ left" if flipped else "left ‖ right"
