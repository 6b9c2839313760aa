"""What a mechanism promises. One file per notion, each a curve `max_power(q)`; here, claims from text and data."""

from collections.abc import Mapping
from typing import Any

from epsilometer.claims.base import NOTIONS, Claim, as_number, check_whole
from epsilometer.claims.gaussian import GaussianDP
from epsilometer.claims.pure import ApproxDeltaDP, ApproxDP, PureDP
from epsilometer.claims.renyi import ZCDP, RenyiDP, bernoulli_divergence, check_order
from epsilometer.claims.tradeoff import TradeOffDP
from epsilometer.errors import InputError

__all__ = [
    "NOTIONS",
    "ZCDP",
    "ApproxDP",
    "ApproxDeltaDP",
    "Claim",
    "GaussianDP",
    "PureDP",
    "RenyiDP",
    "TradeOffDP",
]
__all__ += [
    "as_claim",
    "as_number",
    "bernoulli_divergence",
    "check_order",
    "check_whole",
    "from_dict",
]
__all__ += ["from_parameters", "open_claim", "parse_claim"]

_SHORT = {
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
    rest = dict(data)
    kind = NOTIONS.get(str(rest.pop("notion", None)))
    if kind is None:
        own = "Your own notion is known when the module that defines it is imported"
        raise InputError(
            f"notion={data.get('notion')!r} is unknown; known are {', '.join(NOTIONS)}. {own}"
        )
    try:
        return kind.restored(rest)
    except TypeError as error:
        raise InputError(
            f"the claim {dict(data)!r} does not fit the notion {kind.notion}: {error}"
        ) from error


# The parameters that make a claim together.
_KINDS: dict[tuple[str, ...], type[Claim]] = {
    ("epsilon",): PureDP,
    ("mu",): GaussianDP,
    ("rho",): ZCDP,
}
_KINDS |= {("delta", "epsilon"): ApproxDP, ("epsilon", "order"): RenyiDP}


def from_parameters(**parameters: float | None) -> Claim:
    """The claim that a set of parameters makes: epsilon and delta together, for example, are approximate privacy."""
    given = {name: value for name, value in parameters.items() if value is not None}
    kind = _KINDS.get(tuple(sorted(given)))
    if kind is None:
        possible = "give epsilon; epsilon and delta; epsilon and order; mu; or rho"
        raise InputError(
            f"a claim cannot be made of {', '.join(sorted(given)) or 'nothing'}: {possible}"
        )
    return kind(**given)


def parse_claim(text: str) -> Claim:
    """Reads "eps=1,delta=1e-6" and the like."""
    given: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        name = _SHORT.get(name.lower(), name.lower())
        if not equals or name not in ("epsilon", "delta", "order", "mu", "rho") or name in given:
            raise InputError(
                f"claim {text!r} cannot be read at {part!r}: write it like eps=1,delta=1e-6"
            )
        try:
            given[name] = float(number)
        except ValueError:
            raise InputError(f"claim {text!r}: {name}={number!r} is not a number") from None
    return from_parameters(**given)


def open_claim(notion: type[Claim], fixed: Mapping[str, float]) -> Claim:
    """The strictest claim of a notion, as the start of a measurement without a claim.

    ApproxDP is measured in ε when `fixed` has delta, and in δ when it has epsilon.
    """
    if notion is ApproxDP:
        if set(fixed) == {"epsilon"}:
            return ApproxDeltaDP(fixed["epsilon"], 0.0)
        if set(fixed) != {"delta"}:
            raise InputError(
                "measuring ApproxDP needs either delta= (bounds ε) or epsilon= (bounds δ)"
            )
    try:
        return notion(**{notion.parameter: 0.0, **fixed})
    except (TypeError, AttributeError) as error:
        raise InputError(
            f"cannot measure {notion.__name__} with {dict(fixed)!r}: {error}"
        ) from None


def as_claim(claim: object) -> Claim:
    """A claim as it is, or read from text."""
    if isinstance(claim, Claim):
        return claim
    if isinstance(claim, str):
        return parse_claim(claim)
    raise InputError(
        f"claim={claim!r:.200} must be a claim such as PureDP(1.0), or text like 'eps=1,delta=1e-6'"
    )
