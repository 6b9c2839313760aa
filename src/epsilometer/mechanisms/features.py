"""Features: further columns that a user's function computes from one output.

The event may look at them, too. An event of an output and of a function of it is an event of the
output, so features can weaken an audit, but cannot make its answer wrong.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError, MechanismError, short_repr
from epsilometer.inputs.copying import snapshot
from epsilometer.mechanisms.base import Mechanism, import_path
from epsilometer.mechanisms.return_values import never_returns
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.outputs.reading import materialise
from epsilometer.outputs.reading_pieces import Place, product
from epsilometer.outputs.shapes import FEATURED, record_text
from epsilometer.storage import Undigestible, code_digest
from epsilometer.storage.digests import content_digest

# Outputs of each chunk whose features are computed twice: enough to notice randomness or a counter,
# and it costs nothing.
_COMPUTED_TWICE = 3


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
        """Returns the features that a user's function computes.

        Args:
            function: of one output.
            place: where to import it from; None finds out.
        """
        if not callable(function):
            raise InputError(f"features={short_repr(function)} must be a function of one output")
        unwrapped: Any = function
        while hasattr(unwrapped, "func"):  # a partial function
            unwrapped = unwrapped.func
        name = str(getattr(unwrapped, "__name__", type(unwrapped).__name__))
        if never_returns(unwrapped):
            raise InputError(
                f"features={name} returns None whatever the output: is a `return` missing?"
            )
        digest = ""
        with suppress(Undigestible):
            digest = code_digest(function)
        if place is None:
            place = import_path(function)
        return cls(name=name, digest=digest, place=place, function=function)

    def note(self) -> dict[str, str]:
        """Returns what a result keeps of them: all but the function itself."""
        return {"name": self.name, "digest": self.digest, "place": self.place}

    def __call__(self, values: Any, expected: int | None = None) -> Outputs:
        """Turns a batch of outputs into columns, like `read_outputs`, and adds their features."""
        if isinstance(values, Outputs) and self.function is None:  # kept with these features
            return values
        if self.function is None:
            raise InputError(
                f"features={self.name} were kept beside other outputs; "
                "give the function to compute them"
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
            names = list(batch)
            rows = zip(*batch.values(), strict=True)
            batch = [dict(zip(names, row, strict=True)) for row in rows]
        try:
            added = read_outputs(self._values(batch))
        except MechanismError as error:
            raise MechanismError(
                f"features={self.name}, of {len(batch)} outputs: {error}"
            ) from error
        shape_text = partial(record_text, FEATURED, ["features", "output"])
        positions = Place(np.arange(len(plain)))
        blocks = product([list(added), list(plain)], shape_text, positions)
        return Outputs(tuple(blocks), len(plain))

    def _values(self, outputs: Array | Sequence[Any]) -> list[Any]:
        """Returns the features of all outputs, and checks that they depend on nothing else."""
        values = [self._value(output) for output in outputs]
        for output, value in zip(outputs[:_COMPUTED_TWICE], values, strict=False):
            second_value = self._value(output)
            with suppress(Undigestible):
                if content_digest(second_value) != content_digest(value):
                    raise InputError(
                        f"features={self.name} must depend on the output alone: "
                        f"for the output {short_repr(output)} it returned {short_repr(value)} "
                        f"and then {short_repr(second_value)}"
                    )
        return values

    def _value(self, output: Any) -> Any:
        """Returns the features of one output.

        The function gets a copy, so it cannot change the output.
        """
        if isinstance(output, Enum) and type(output).__name__ == "FailedRun":  # there is no output
            return None
        assert self.function is not None
        try:
            value = snapshot(self.function(snapshot(output)))
        except Exception as error:
            raise InputError(
                f"features={self.name} raised {type(error).__name__} on the output "
                f"{short_repr(output)}: {short_repr(str(error))}"
            ) from error
        if isinstance(value, dict) or not self.name.isidentifier():
            return value
        return {self.name: value}


def as_features(given: object) -> Features | None:
    """Returns what a caller gave as `features=`: a function, features, or None."""
    if given is None or isinstance(given, Features):
        return given
    return Features.of(given)  # type: ignore[arg-type]  # which refuses what is no function


def same_features(mechanism: Mechanism, given: Features | None, stored: Any) -> Mechanism:
    """Returns the mechanism to replay an event with.

    It has the features that the event was found with, or none.

    Args:
        mechanism: may bring the features.
        given: what the caller gave again.
        stored: what the result keeps of them, as a `note`; None if there were none.
    """
    if stored is None or given is not None:
        mechanism = mechanism.with_features(given)
    features = mechanism.features
    stored_note = stored if isinstance(stored, dict) else {}
    if stored is None and features is not None:
        raise InputError(
            f"features={features.name}: the event of this result was found without features; "
            "leave them out"
        )
    if stored is not None and features is None:
        place = stored_note.get("place") or "a function that cannot be imported"
        raise InputError(
            "the event looks at features, which the mechanism lacks; give them again: "
            f"features={stored_note.get('name')!s:.80} ({place!s:.80})"
        )
    if features is not None and features.digest != stored_note.get("digest"):
        raise InputError(
            f"features={features.name} is not the function that the event was found with "
            f"(digest {features.digest}, there {stored_note.get('digest')!s:.40})"
        )
    return mechanism
