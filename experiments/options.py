"""Options of an experiment, given as text on a command line or as values in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.errors import InputError


def whole(value: Any) -> int:
    """A whole number of at least 1; "1e5" is one."""
    number = float(value)
    if isinstance(value, bool) or number < 1 or not number.is_integer():
        raise ValueError("must be a whole number of at least 1")
    return int(number)


def words(value: Any) -> tuple[str, ...]:
    """Words separated by commas."""
    parts = value.split(",") if isinstance(value, str) else [str(part) for part in value]
    return tuple(part.strip() for part in parts if part.strip())


def wholes(value: Any) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    return tuple(
        whole(part) for part in (words(value) if isinstance(value, str | list | tuple) else [value])
    )


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: its key.
        help: one line.
        default: its value when it is not given.
        read: makes a value of what was given, or raises ValueError; for example `whole`, `float`, `words`.
    """

    name: str
    help: str
    default: Any
    read: Callable[[Any], Any] = str


def read_options(
    experiment: str, known: Sequence[Option], given: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The value of every known option.

    Raises:
        InputError: an unknown option, or a value that cannot be read.
    """
    by_name = {option.name: option for option in known}
    values = {option.name: option.default for option in known}
    for name, value in (given or {}).items():
        if name not in by_name:
            allowed = ", ".join(by_name) or "none"
            raise InputError(f"{experiment} has no option {name!r}; its options are: {allowed}")
        try:
            values[name] = by_name[name].read(value)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{name}={value!r} cannot be read ({error}): {by_name[name].help}"
            ) from error
    return values
