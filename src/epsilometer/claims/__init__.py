"""What a mechanism promises.

There is one file per notion of privacy, each of which is a curve `max_power(q)`. This file makes
claims from text and from stored data.
"""

from collections.abc import Mapping
from typing import Any

from epsilometer.claims.base import NOTIONS, Claim, Real, as_number, check_at_least, check_whole
from epsilometer.claims.gaussian import GaussianDP
from epsilometer.claims.pure import ApproxDeltaDP, ApproxDP, PureDP
from epsilometer.claims.renyi import ZCDP, RenyiDP, bernoulli_divergence, check_order
from epsilometer.claims.tradeoff import TradeOffDP
from epsilometer.errors import InputError, meant_number

__all__ = [
    "NOTIONS",
    "ZCDP",
    "ApproxDP",
    "ApproxDeltaDP",
    "Claim",
    "GaussianDP",
    "PureDP",
    "Real",
    "RenyiDP",
    "TradeOffDP",
    "as_claim",
    "as_number",
    "bernoulli_divergence",
    "check_at_least",
    "check_order",
    "check_whole",
    "from_dict",
    "from_parameters",
    "open_claim",
    "parse_claim",
]

# Other spellings of parameters in text.
_SYNONYMS = {
    "eps": "epsilon",
    "ε": "epsilon",
    "δ": "delta",
    "alpha": "order",
    "α": "order",
    "μ": "mu",
    "ρ": "rho",
}


def from_dict(data: Mapping[str, Any]) -> Claim:
    """The inverse of `Claim.to_dict`."""
    parameters = dict(data)
    notion = parameters.pop("notion", None)
    claim_type = NOTIONS.get(str(notion))
    if claim_type is None:
        raise InputError(
            f"notion={notion!r} is unknown; known are {', '.join(NOTIONS)}. "
            "Your own notion is known when the module that defines it is imported"
        )
    try:
        return claim_type.restored(parameters)
    except TypeError as error:
        raise InputError(
            f"the claim {dict(data)!r} does not fit the notion {claim_type.notion}: {error}"
        ) from error


# The parameters, sorted by name, that make a claim together.
_CLAIM_TYPES: dict[tuple[str, ...], type[Claim]] = {
    ("epsilon",): PureDP,
    ("mu",): GaussianDP,
    ("rho",): ZCDP,
    ("delta", "epsilon"): ApproxDP,
    ("epsilon", "order"): RenyiDP,
}


def from_parameters(**parameters: float | None) -> Claim:
    """Returns the claim that a set of parameters makes; None stands for a missing one.

    For example, epsilon and delta together make a claim of approximate privacy.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    claim_type = _CLAIM_TYPES.get(tuple(sorted(given)))
    if claim_type is None:
        reason = "there is no claim"
        if given:
            reason = f"a claim cannot be made of {', '.join(sorted(given))}"
        raise InputError(
            f"{reason}: give epsilon (alone, with delta, or with order), mu, or rho; "
            "measure needs no claim"
        )
    return claim_type(**given)


def parse_claim(text: str) -> Claim:
    """Reads "eps=1,delta=1e-6" and the like."""
    given: dict[str, float] = {}
    for part in text.split(","):
        spelling, equals, number = [token.strip() for token in part.partition("=")]
        name = _SYNONYMS.get(spelling.lower(), spelling.lower())
        is_known = name in ("epsilon", "delta", "order", "mu", "rho")
        if not equals or not is_known or name in given:
            raise InputError(
                f"claim {text!r} cannot be read at {part!r}: write it like eps=1,delta=1e-6"
            )
        try:
            given[name] = float(number)
        except ValueError:
            remedy = meant_number(number) or ": write it like eps=1,delta=1e-6"
            raise InputError(f"claim {text!r}: {name}={number!r} is not a number{remedy}") from None
    return from_parameters(**given)


def open_claim(notion: type[Claim], fixed: Mapping[str, float]) -> Claim:
    """The strictest claim of a notion, as the start of a measurement without a claim.

    ApproxDP is measured in ε when `fixed` has delta, and in δ when it has epsilon.
    """
    if notion is ApproxDP:
        if set(fixed) == {"epsilon"}:
            return ApproxDeltaDP(epsilon=fixed["epsilon"], delta=0.0)
        if set(fixed) != {"delta"}:
            raise InputError(
                "measuring ApproxDP needs either delta= (bounds ε) or epsilon= (bounds δ)"
            )
    try:
        _check_fixed(notion, fixed)
        return notion(**{notion.parameter: 0.0, **fixed})
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"cannot measure {notion.__name__} with {dict(fixed)!r}: {error}"
        ) from None


def _check_fixed(notion: type[Claim], fixed: Mapping[str, float]) -> None:
    """Raises unless the fixed parameters of a measurement are those that our notion needs."""
    parameters = {claim_type: names for names, claim_type in _CLAIM_TYPES.items()}.get(notion)
    if parameters is None:  # a notion of the user's own
        return
    needed = [name for name in parameters if name != notion.parameter]
    for name, value in fixed.items():
        if name == notion.parameter:
            raise InputError(
                f"measuring {notion.__name__} bounds {name} itself: leave {name}={value!r} out, or "
                "audit it as a claim"
            )
        if name not in needed:
            others = [
                claim_type.__name__ for names, claim_type in _CLAIM_TYPES.items() if name in names
            ]
            hint = f"; it belongs to {' and '.join(others)}" if others else ""
            raise InputError(f"measuring {notion.__name__} takes no {name!r}{hint}")
    for name in needed:
        if name not in fixed:
            raise InputError(f"measuring {notion.__name__} needs {name} as well")


def as_claim(claim: object) -> Claim:
    """Returns a claim as it is, or reads it from text."""
    if isinstance(claim, Claim):
        return claim
    if isinstance(claim, str):
        return parse_claim(claim)
    raise InputError(
        f"claim={claim!r:.200} must be a claim such as PureDP(1.0), or text like 'eps=1,delta=1e-6'"
    )
