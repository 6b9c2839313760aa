"""What every claim of privacy can do.

A claim is a curve: `max_power(q)` is the greatest P(E) it allows for an event E with Q(E) = q,
whichever of the two neighbours P is. One sound test then serves every notion. Each claim also has
*its own parameter* (ε, ρ, μ, ...); a larger value is a weaker promise. `least_value(p, q)` is the
smallest value of that parameter whose curve allows P(E) = p when Q(E) = q: what an event with these
probabilities proves about the mechanism.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError

Real = TypeVar("Real", float, Floats)

# Every notion by its name in files.
NOTIONS: dict[str, type["Claim"]] = {}


class Claim(ABC):
    """A promise about all pairs of neighbours, in both directions.

    A class with its own `notion` is registered by that name when it is defined, so that results
    with such claims can be stored and read again.

    Attributes:
        notion: short name of the notion of privacy, used in files and on the command line.
        parameter: the name of the claim's own parameter.
        symbol: how people write that parameter.
    """

    notion: ClassVar[str]
    parameter: ClassVar[str]
    symbol: ClassVar[str]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        notion = vars(cls).get("notion")
        if notion is None:
            return
        known = NOTIONS.get(notion, cls)
        # A reloaded module defines its claims again, and a dataclass with slots is created twice.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InputError(
                f"the notion {notion!r} of {cls.__qualname__} is taken by {known.__qualname__}"
            )
        NOTIONS[notion] = cls

    @property
    def value(self) -> float:
        """The claimed value of the claim's own parameter."""
        return float(getattr(self, self.parameter))

    @abstractmethod
    def max_power(self, q: Real) -> Real:
        """The greatest P(E) that the claim allows when Q(E) = q; non-decreasing in q."""

    @abstractmethod
    def least_value(self, p: float, q: float) -> float:
        """The smallest value of the claim's parameter that allows P(E) = p when Q(E) = q.

        It is infinite when no value allows it.
        """

    def least_values(self, p: Floats, q: Floats) -> Floats:
        """`least_value` of every pair of elements; all arrays have shape (n,)."""
        pairs = zip(p.tolist(), q.tolist(), strict=True)
        return np.array([self.least_value(p_event, q_event) for p_event, q_event in pairs])

    def with_value(self, value: float) -> Self:
        """The same claim with another value of its own parameter."""
        new_parameter = {self.parameter: value}
        if is_dataclass(self):
            return replace(self, **new_parameter)
        return type(self)(**new_parameter, **self.fixed())

    def fixed(self) -> dict[str, float]:
        """The other parameters, which stay as they are (the order of a Rényi claim, δ, ...)."""
        return {}

    def scaled(self, distance: int) -> "Claim":
        """What the claim promises about inputs that are `distance` steps apart (group privacy).

        Each step leads from an input to one of its neighbours.
        """
        if check_whole("distance", distance) == 1:
            return self
        raise InputError(
            f"distance={distance}: no group claim follows from {self.describe()}; state it yourself"
        )

    def composed(self, times: int) -> "Claim":
        """What the claim promises about the joint outputs of `times` independent runs.

        All runs have the same input.
        """
        if check_whole("times", times) == 1:
            return self
        raise InputError(
            f"times={times}: nothing about several runs follows from {self.describe()}; "
            "state it yourself"
        )

    def describe(self) -> str:
        """The claim in one line."""
        parameters = {self.parameter: self.value, **self.fixed()}
        arguments = ", ".join(f"{name}={number:g}" for name, number in parameters.items())
        return f"{type(self).__name__}({arguments})"

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain data; `epsilometer.claims.from_dict` is the inverse."""
        return {"notion": self.notion, self.parameter: self.value, **self.fixed()}

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Self:
        """Creates the claim from the data of `to_dict` without the notion."""
        return cls(**data)


def check_number(name: str, value: object, hint: str = "") -> float:
    """Returns the value as a finite float.

    Raises:
        InputError: if it is not one; the message ends with the hint.
    """
    number = as_number(name, value)
    if math.isinf(number):
        raise InputError(f"{name}={value!r} must be a finite number{hint}")
    return number


def check_at_least(name: str, value: object, least: float) -> float:
    """Returns the value as a finite float of at least `least`, or raises an InputError."""
    number = as_number(name, value)
    if not least <= number < math.inf:
        raise InputError(f"{name}={value!r} must be a finite number of at least {least:g}")
    return number


def check_positive(name: str, value: object, most: float = math.inf, hint: str = "") -> float:
    """Returns the value as a finite float above 0 and at most `most`, or raises an InputError."""
    number = as_number(name, value)
    if not 0.0 < number <= most or math.isinf(number):
        limit = "" if math.isinf(most) else f" and at most {most:g}"
        raise InputError(f"{name}={value!r} must be a finite number above 0{limit}{hint}")
    return number


def check_whole(name: str, value: object, least: int = 1, hint: str = "") -> int:
    """Returns the value as a whole number of at least `least`, or raises an InputError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r} must be a whole number of at least {least}{hint}")
    return int(value)


def check_flag(name: str, value: object) -> bool:
    """Returns the value if it is True or False, or raises an InputError: "no" is no False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r:.60} must be True or False")
    return bool(value)


def check_choice(name: str, value: object, allowed: Collection[str]) -> str:
    """Returns the value if it is one of a few words, or raises an InputError that lists them."""
    if value not in allowed:
        raise InputError(f"{name}={value!r:.60} must be one of {', '.join(map(repr, allowed))}")
    return str(value)


def check_confidence(confidence: float) -> float:
    """Returns a confidence strictly between 0 and 1, or raises an InputError."""
    is_number = isinstance(confidence, int | float | np.number) and not isinstance(confidence, bool)
    if not is_number or not 0.0 < confidence < 1.0:
        raise InputError(f"confidence={confidence!r} must lie strictly between 0 and 1, e.g. 0.95")
    return float(confidence)


def is_missing(value: object) -> bool:
    """Whether it is None, or the missing value of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def float_holds(number: int) -> bool:
    """Whether a float is exactly this whole number, as all are up to 2^53."""
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def as_number(name: str, value: object) -> float:
    """Returns the value as a float, which may be infinite, or raises an InputError."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name}={value!r} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number):
        raise InputError(f"{name}=nan must be a number")
    return number
