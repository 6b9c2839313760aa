"""Objects of other libraries as mechanisms, taken as they are: OpenDP, diffprivlib, anything with `randomise`.

None of those packages is imported here: whoever has such an object has imported its package, and its type says which.
"""

from __future__ import annotations

import inspect
import pickle
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epsilometer.claims import ApproxDP, Claim, PureDP
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs import Pair
from epsilometer.inputs.copying import copier, snapshot
from epsilometer.mechanisms.base import Mechanism, failure_text, shown
from epsilometer.mechanisms.opendp import OpenDPMechanism, is_measurement
from epsilometer.outputs import Outputs, read_outputs

# Outputs per chunk: such objects draw one at a time, in ten to a hundred microseconds.
_CHUNK = 256


class ObjectMechanism(Mechanism):
    """An object whose method `randomise` (or `randomize`) turns a dataset into one output."""

    def __init__(self, owner: Any, method: str) -> None:
        self.owner, self.method = owner, method
        self.name = type(owner).__name__
        self.is_seeded = "rng" in _parameters(getattr(owner, method))
        self.chunk_size = _CHUNK

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the method n times, each time with a copy of the dataset."""
        draw, fresh = getattr(self.owner, self.method), copier(dataset)
        keywords = {"rng": rng} if self.is_seeded else {}
        try:
            values = [snapshot(draw(fresh(), **keywords)) for _ in range(n)]
        except Exception as error:
            raise MechanismError(failure_text(self.name, dataset, error)) from error
        return read_outputs(values, expected=n)


class DiffprivlibMechanism(ObjectMechanism):
    """A mechanism of diffprivlib, with the claim that its epsilon and delta make."""

    def __init__(self, owner: Any) -> None:
        super().__init__(owner, "randomise")
        self.name = f"diffprivlib {type(owner).__name__}"
        value = _parameters(owner.randomise).get("value")
        if value is not None and value.default is not inspect.Parameter.empty:
            # Exponential and PermuteAndFlip ignore the value: an audit would compare equal things.
            raise InputError(
                f"{self.name} has its dataset inside, as `utility`; give a function of it instead: "
                f"lambda utility: {type(owner).__name__}(…, utility=utility).randomise()"
            )

    def promise(self, pairs: Sequence[Pair]) -> Claim:
        """(ε, δ) of the object, which it promises for numbers no farther apart than its sensitivity."""
        reach = getattr(self.owner, "sensitivity", None)
        for pair in pairs:
            apart = _distance(pair)
            # A little more than the sensitivity is rounding: 0.3 - 0.2 is above 0.1.
            if isinstance(reach, int | float) and apart is not None and apart > reach * (1 + 1e-9):
                raise InputError(
                    f"the inputs {shown(pair.left)} and {shown(pair.right)} are {apart:g} apart, but {self.name} "
                    f"promises something only up to sensitivity={reach:g}; give closer inputs, or a claim of your own"
                )
        epsilon, delta = float(self.owner.epsilon), float(self.owner.delta)
        return ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)

    def __reduce__(self) -> tuple[Callable[..., DiffprivlibMechanism], tuple[type, dict[str, Any]]]:
        state = dict(vars(self.owner))
        generator = state.pop("_rng", None)
        if generator is not None and not isinstance(generator, secrets.SystemRandom):
            raise pickle.PicklingError(
                f"cannot pickle {self.name}: its random_state would be copied and every worker would draw the same"
            )
        return _restore_diffprivlib, (type(self.owner), state)


def adapt(candidate: object) -> Mechanism | None:
    """The mechanism that an object of another library is, or None if it is nothing that we recognise."""
    if is_measurement(candidate):
        return OpenDPMechanism(candidate)
    if isinstance(candidate, type):
        return None
    if _is_diffprivlib(candidate):
        return DiffprivlibMechanism(candidate)
    for method in ("randomise", "randomize"):
        if callable(getattr(candidate, method, None)):
            return ObjectMechanism(candidate, method)
    return None


def _is_diffprivlib(candidate: object) -> bool:
    return any(
        kind.__name__ == "DPMechanism" and kind.__module__.partition(".")[0] == "diffprivlib"
        for kind in type(candidate).__mro__
    )


def _restore_diffprivlib(kind: type, state: dict[str, Any]) -> DiffprivlibMechanism:
    owner: Any = object.__new__(kind)
    vars(owner).update(state)
    vars(owner)["_rng"] = secrets.SystemRandom()
    return DiffprivlibMechanism(owner)


def _distance(pair: Pair) -> float | None:
    sides = pair.left, pair.right
    if all(isinstance(side, int | float | np.number) for side in sides):
        return abs(float(pair.left) - float(pair.right))
    return None


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some builtins have no signature
        return {}
