"""The methods of the papers, one room each, as published; the default method is not among them."""

from typing import TypeVar

from epsilometer.errors import InputError

Chosen = TypeVar("Chosen")


def own_options(name: str, room: str, kind: type[Chosen], given: Chosen | None) -> Chosen:
    """The options given to a method, or its defaults; those of another method are refused."""
    if given is not None and not isinstance(given, kind):
        raise InputError(
            f"options={given!r:.100}: the method {name} takes epsilometer.{room}.Options"
        )
    return kind() if given is None else given
