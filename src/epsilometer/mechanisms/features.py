"""Features: further columns that a user's function computes from one output, for the event to look at.

An event of an output and of a function of it is an event of the output. So features may cost power,
never truth.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.inputs.copying import snapshot
from epsilometer.mechanisms.base import Mechanism, never_returns, place_of
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.outputs.columns import FEATURED, record_text
from epsilometer.outputs.reading import materialise
from epsilometer.outputs.reading_pieces import Place, product
from epsilometer.storage import Undigestible, code_digest
from epsilometer.storage.digests import content_digest

# Outputs of each chunk whose features are computed twice: enough to notice chance or a counter, and
# free.
_TRIED_TWICE = 3


@dataclass(frozen=True)
class Features:
    """Reads outputs as pairs of an output and its features.

    Attributes:
        name: of the function; results know the features by it.
        digest: of the function's code and of what that uses; empty if it cannot be recognised
            again.
        place: where to import it from, "module:function"; empty if nobody could.
        function: of one output; None for outputs that were kept together with their features.
    """

    name: str
    digest: str
    place: str
    function: Callable[[Any], Any] | None

    @classmethod
    def of(cls, function: Callable[[Any], Any], place: str | None = None) -> "Features":
        """Those of a user's function."""
        if not callable(function):
            raise InputError(f"features={shown(function)} must be a function of one output")
        code: Any = function
        while hasattr(code, "func"):  # a partial function
            code = code.func
        name = str(getattr(code, "__name__", type(code).__name__))
        digest = ""
        if never_returns(code):
            raise InputError(
                f"features={name} returns None whatever the output: is a `return` missing?"
            )
        with suppress(Undigestible):
            digest = code_digest(function)
        return cls(name, digest, place_of(function) if place is None else place, function)

    def note(self) -> dict[str, str]:
        """What a result keeps of them; the first three arguments of the constructor."""
        return {"name": self.name, "digest": self.digest, "place": self.place}

    def __call__(self, values: Any, expected: int | None = None) -> Outputs:
        """Turns a batch of outputs into columns, like `read_outputs`, and adds those of their features."""
        if isinstance(values, Outputs) and self.function is None:  # kept with these features
            return values
        if self.function is None:
            raise InputError(
                f"features={self.name} were kept beside other outputs; give the function to compute them"
            )
        if isinstance(values, Outputs):
            raise InputError(
                f"features={self.name} need the outputs themselves; these were kept as columns"
            )
        batch = materialise(values, expected)
        plain = read_outputs(batch, expected)
        if not len(plain):
            return plain
        if isinstance(batch, dict):  # columns, or a data frame
            batch = [
                dict(zip(batch, row, strict=True)) for row in zip(*batch.values(), strict=True)
            ]
        try:
            added = read_outputs(self._values(batch))
        except MechanismError as error:
            raise MechanismError(
                f"features={self.name}, of {len(batch)} outputs: {error}"
            ) from error
        text = partial(record_text, FEATURED, ["features", "output"])
        return Outputs(
            tuple(product([[*added], [*plain]], text, Place(np.arange(len(plain))))), len(plain)
        )

    def _values(self, outputs: Array | Sequence[Any]) -> list[Any]:
        values = [self._value(output) for output in outputs]
        for output, value in zip(outputs[:_TRIED_TWICE], values, strict=False):
            again = self._value(output)
            with suppress(Undigestible):
                if content_digest(again) != content_digest(value):
                    both = f"for the output {shown(output)} it returned {shown(value)} and then {shown(again)}"
                    raise InputError(
                        f"features={self.name} must depend on the output alone: {both}"
                    )
        return values

    def _value(self, output: Any) -> Any:
        """The features of one output, which is copied: whoever changes it changes nothing."""
        if isinstance(output, Enum) and type(output).__name__ == "FailedRun":  # there is no output
            return None
        assert self.function is not None
        try:
            value = snapshot(self.function(snapshot(output)))
        except Exception as error:
            what = f"{type(error).__name__} on the output {shown(output)}: {shown(str(error))}"
            raise InputError(f"features={self.name} raised {what}") from error
        return (
            value if isinstance(value, dict) or not self.name.isidentifier() else {self.name: value}
        )


def as_features(given: object) -> Features | None:
    """What a caller gave as `features=`."""
    return given if given is None or isinstance(given, Features) else Features.of(given)  # type: ignore[arg-type]


def same_features(mechanism: Mechanism, given: Features | None, stored: Any) -> Mechanism:
    """The mechanism to replay an event with: with the features that it was found with, or without any.

    Args:
        mechanism: may bring them.
        given: what the caller gave again.
        stored: what the result keeps of them, as a `note`; None if there were none.
    """
    if stored is None or given is not None:
        mechanism = mechanism.with_features(given)
    there = mechanism.features
    known = stored if isinstance(stored, dict) else {}
    if stored is None and there is not None:
        raise InputError(
            f"features={there.name}: the event of this result was found without features; leave them out"
        )
    if stored is not None and there is None:
        what = f"{known.get('name')!s:.80} ({known.get('place') or 'a function that cannot be imported'!s:.80})"
        raise InputError(
            f"the event looks at features, which the mechanism lacks; give them again: features={what}"
        )
    if there is not None and there.digest != known.get("digest"):
        what = f"digest {there.digest}, there {known.get('digest')!s:.40}"
        raise InputError(
            f"features={there.name} is not the function that the event was found with ({what})"
        )
    return mechanism
