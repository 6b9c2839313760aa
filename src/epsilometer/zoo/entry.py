"""A reference mechanism together with everything that is known about it, and the checks of its parameters."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, Claim, GaussianDP, PureDP, RenyiDP, TradeOffDP
from epsilometer.claims.base import as_number, check_positive
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import Mechanism, from_batch
from epsilometer.zoo.laws.exact import PairLaw

Parameter = float | int | str

# e^(-50) per query times the ten queries of a sparse vector is still a float; no sample could show more than that.
GREATEST_EPSILON = 50.0


def check_epsilon(value: float) -> float:
    """An epsilon that a mechanism can be calibrated to."""
    return check_positive("epsilon", value, GREATEST_EPSILON)


def check_delta(value: float) -> float:
    """A delta above 0 and below 1/2."""
    number = as_number("delta", value)
    if not 0.0 < number < 0.5:
        raise InputError(f"delta={value!r} makes no sense: it must be above 0 and below 0.5")
    return number


def check_count(name: str, value: float, least: int, most: int) -> int:
    """A whole number from `least` to `most`; a float may hold it, as those of the command line do."""
    number = as_number(name, value)
    if not least <= number <= most or not number.is_integer():
        raise InputError(f"{name}={value!r} makes no sense: it must be a whole number from {least} to {most}")
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
        law: makes the exact output distributions on `worst_pair`; called at most once, when a truth is asked for.
    """

    name: str
    summary: str
    mechanism: Mechanism
    claim: Claim
    worst_pair: Pair
    keeps_claim: bool
    parameters: dict[str, Parameter]
    law: Callable[[], PairLaw] = field(repr=False, compare=False)

    @cached_property
    def pair_law(self) -> PairLaw:
        """The exact output distributions on `worst_pair`."""
        return self.law()

    def truth(self, notion: type[Claim] | None = None, **fixed: float) -> float | None:
        """The exact value of a notion's parameter on `worst_pair`, the larger of both directions.

        Args:
            notion: a class of claims; None for the claim's own notion with its own fixed parameters.
            **fixed: the notion's other parameters: `order` for RenyiDP, `delta` (gives epsilon) or `epsilon` (gives
                delta) for ApproxDP. Left out, they are those of the claim if it is of the same notion.

        Returns:
            The value, which may be inf, or None where it is not known.
        """
        kind = type(self.claim) if notion is None else notion
        if not fixed and type(self.claim) is kind:
            fixed = self.claim.fixed()
        if kind is TradeOffDP:
            return None
        if (kind, *sorted(fixed)) in _TRUTHS:
            value: float | None = getattr(self.pair_law, _TRUTHS[kind, *sorted(fixed)])(*fixed.values())
            return value
        known: list[type[Claim]] = [*dict.fromkeys(key[0] for key in _TRUTHS), TradeOffDP]
        if kind not in known:
            raise InputError(f"notion={kind!r} is unknown; known are {', '.join(each.__name__ for each in known)}")
        needs = " or ".join(f"{name}=" for each, *names in _TRUTHS if each is kind for name in names) or "no parameter"
        given = ", ".join(sorted(fixed)) or "nothing"
        raise InputError(f"the truth of {kind.__name__} needs {needs}, not {given}")


def entry(
    name: str,
    summary: str,
    draw: Callable[..., Any],
    claim: Claim,
    worst_pair: Pair,
    law: Callable[[], PairLaw],
    *,
    keeps_claim: bool = True,
    features: Any = None,
    **parameters: Any,
) -> ZooEntry:
    """An entry whose mechanism is a batch function `draw(dataset, n, rng)`, with features if it needs them."""
    mechanism = from_batch(draw, name=name, features=features)
    return ZooEntry(name, summary, mechanism, claim, worst_pair, keeps_claim, parameters, law)


# Which of the law's methods answers for a notion, given which of its parameters.
_TRUTHS: dict[tuple[type[Claim], *tuple[str, ...]], str] = {
    (PureDP,): "pure_epsilon",
    (ApproxDP, "delta"): "epsilon",
    (ApproxDP, "epsilon"): "delta",
    (ApproxDeltaDP, "epsilon"): "delta",
    (RenyiDP, "order"): "renyi",
    (ZCDP,): "rho",
    (GaussianDP,): "mu",
}
