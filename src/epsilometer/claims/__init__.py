"""What a mechanism promises. One file per notion, each a curve `max_power(q)`."""

from epsilometer.claims.base import NOTIONS, Claim
from epsilometer.claims.gaussian import GaussianDP
from epsilometer.claims.parsing import as_claim, from_dict, from_parameters, open_claim, parse_claim
from epsilometer.claims.pure import ApproxDeltaDP, ApproxDP, PureDP
from epsilometer.claims.renyi import ZCDP, RenyiDP
from epsilometer.claims.tradeoff import TradeOffDP

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
    "as_claim",
    "from_dict",
    "from_parameters",
    "open_claim",
    "parse_claim",
]
