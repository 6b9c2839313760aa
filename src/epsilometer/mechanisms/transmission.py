"""Refuses inputs that differ in Python, but not in what a program or a service is sent."""

from collections.abc import Callable, Sequence
from typing import Any

from epsilometer.errors import InputError, short_repr
from epsilometer.inputs import Pair


def check_transmitted(
    pairs: Sequence[Pair], transmitted: Callable[[Any], object], name: str
) -> None:
    """Raises if the two inputs of a pair reach a mechanism as the same bytes.

    Nothing could then be refuted: 1 and "1" are the same argument, a list and a tuple the same
    JSON.

    Args:
        pairs: to be audited.
        transmitted: what the mechanism is sent for a dataset.
        name: of the mechanism.
    """
    for pair in pairs:
        if not pair.equal and transmitted(pair.left) == transmitted(pair.right):
            raise InputError(
                f"the inputs {short_repr(pair.left)} and {short_repr(pair.right)} are the same to "
                f"{name}: written out, they do not differ; give inputs that do, or another format"
            )
