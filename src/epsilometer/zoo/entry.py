"""A reference mechanism with everything that is known about it, and checks of its parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from epsilometer.claims import (
    ZCDP,
    ApproxDeltaDP,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RenyiDP,
    TradeOffDP,
)
from epsilometer.claims.base import as_number, check_positive
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism, from_batch
from epsilometer.zoo.distributions.exact import PairDistributions

Parameter = float | int | str

# e^(-50) per query times the ten queries of a sparse vector is still a float; no sample could show
# more than that.
GREATEST_EPSILON = 50.0
# With a larger delta a mechanism promises next to nothing.
_LARGEST_DELTA = 0.5


def check_epsilon(value: float) -> float:
    """Returns an epsilon that a mechanism can be calibrated to, or raises an InputError."""
    return check_positive("epsilon", value, GREATEST_EPSILON)


def check_delta(value: float) -> float:
    """Returns a delta above 0 and below 1/2, or raises an InputError."""
    number = as_number("delta", value)
    if not 0.0 < number < _LARGEST_DELTA:
        raise InputError(f"delta={value!r} must be above 0 and below 0.5")
    return number


def check_count(name: str, value: float, least: int, most: int) -> int:
    """Returns an integer from `least` to `most`, or raises an InputError.

    A float may hold it, as those of the command line do.
    """
    number = as_number(name, value)
    if not least <= number <= most or not number.is_integer():
        raise InputError(f"{name}={value!r} must be a whole number from {least} to {most}")
    return int(number)


@dataclass(frozen=True)
class ZooEntry:
    """A mechanism, what it claims, and what is true.

    Attributes:
        name: the name under which `epsilometer.zoo.find` knows it.
        summary: one line about it.
        mechanism: draws outputs, vectorised.
        claim: what the mechanism promises.
        worst_pair: the pair of neighbours on which an audit sees most.
        keeps_claim: whether the claim is true, for all pairs of neighbours.
        parameters: what the mechanism was made with, defaults included.
        make_distributions: makes the exact output distributions on `worst_pair`; called at most
            once, when a truth is asked for.
    """

    name: str
    summary: str
    mechanism: Mechanism
    claim: Claim
    worst_pair: Pair
    keeps_claim: bool
    parameters: dict[str, Parameter]
    make_distributions: Callable[[], PairDistributions] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"<{type(self).__name__} {self.name}({parameters}): {self.summary}>"

    @cached_property
    def distributions(self) -> PairDistributions:
        """The exact output distributions on `worst_pair`."""
        return self.make_distributions()

    def truth(self, notion: type[Claim] | None = None, **fixed: float) -> float | None:
        """Returns the exact value of a notion's parameter on `worst_pair`.

        It is the larger one of both directions.

        Args:
            notion: a class of claims; None for the claim's own notion with its own fixed
                parameters.
            **fixed: the notion's other parameters: `order` for RenyiDP, `delta` (gives epsilon) or
                `epsilon` (gives delta) for ApproxDP. Left out, they are those of the claim if it is
                of the same notion.

        Returns:
            The value, which may be inf, or None where it is not known.
        """
        if notion is None:
            notion = type(self.claim)
        if not fixed and type(self.claim) is notion:
            fixed = self.claim.fixed()
        if notion is TradeOffDP:
            return None
        method = _METHOD_OF_NOTION.get((notion, *sorted(fixed)))
        if method is None:
            raise InputError(_unknown_truth(notion, fixed))
        value: float | None = getattr(self.distributions, method)(*fixed.values())
        return value


# Which method of the exact distributions answers for a notion, given which of its parameters.
_METHOD_OF_NOTION: dict[tuple[type[Claim], *tuple[str, ...]], str] = {
    (PureDP,): "pure_epsilon",
    (ApproxDP, "delta"): "epsilon",
    (ApproxDP, "epsilon"): "delta",
    (ApproxDeltaDP, "epsilon"): "delta",
    (RenyiDP, "order"): "renyi",
    (ZCDP,): "rho",
    (GaussianDP,): "mu",
}


def _unknown_truth(notion: type[Claim], fixed: dict[str, float]) -> str:
    """Returns an error message for a notion, or parameters of it, that no method answers for."""
    notions: list[type[Claim]] = list(dict.fromkeys(key[0] for key in _METHOD_OF_NOTION))
    notions.append(TradeOffDP)
    if notion not in notions:
        known = ", ".join(known_notion.__name__ for known_notion in notions)
        return f"notion={notion!r} is unknown; known are {known}"
    parameters: list[str] = []
    for known_notion, *names in _METHOD_OF_NOTION:
        if known_notion is notion:
            parameters += [f"{name}=" for name in names]
    needed = " or ".join(parameters) or "no parameter"
    given = ", ".join(sorted(fixed)) or "nothing"
    return f"the truth of {notion.__name__} needs {needed}, not {given}"


def entry(
    name: str,
    *,
    summary: str,
    draw: Callable[..., Any],
    claim: Claim,
    worst_pair: Pair,
    make_distributions: Callable[[], PairDistributions],
    parameters: dict[str, Any],
    keeps_claim: bool = True,
    features: Any = None,
) -> ZooEntry:
    """Returns an entry whose mechanism is a batch function.

    The other arguments are the attributes of `ZooEntry`.

    Args:
        draw: returns n outputs for a dataset: `draw(dataset, n, rng)`.
        features: of an output, which an event should look at, too; None if it needs none.
    """
    return ZooEntry(
        name=name,
        summary=summary,
        mechanism=from_batch(draw, name=name, features=features),
        claim=claim,
        worst_pair=worst_pair,
        keeps_claim=keeps_claim,
        parameters=parameters,
        make_distributions=make_distributions,
    )
