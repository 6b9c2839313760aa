"""What a user may choose about the method `renyi-variational`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epsilometer.bounds.pure_by_renyi import THRESHOLDS
from epsilometer.claims.base import as_number, check_whole
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.hockey_stick.method import CERTIFICATES, check_choice

FAMILIES = ("auto", "bins", "chebyshev", "network")
# Beyond this a polynomial only follows chance.
_MOST_DEGREE = 64


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the method `renyi-variational`.

    Attributes:
        family: where h comes from: "bins" (free values on cells), "chebyshev" (polynomials of each column), "network"
            (a small neural network; needs the extra `neural`), or "auto": bins or polynomials, by training draws.
        degree: of the polynomials; None tries a few.
        bound: C, so that |h| ≤ C; None chooses it on training draws.
        order: for PureDP, the order of the divergence; None chooses it on training draws. RenyiDP brings its own.
        threshold: for PureDP, "tight" or "published" (min(ε, 2αε²): valid, but looser).
        certificate: "exact" is the bet of `epsilometer.bounds.joint_bet`; "published" is the paper's Chernoff bound,
            for reproduction: its proof has gaps, so it refutes nothing.
        units: of the hidden layers of the network.
        steps: of the network's training.
    """

    family: str = "auto"
    degree: int | None = None
    bound: float | None = None
    order: float | None = None
    threshold: str = "tight"
    certificate: str = "exact"
    units: tuple[int, ...] = (32, 32)
    steps: int = 400

    def __post_init__(self) -> None:
        check_choice("family", self.family, FAMILIES)
        check_choice("threshold", self.threshold, THRESHOLDS)
        check_choice("certificate", self.certificate, CERTIFICATES)
        if self.degree is not None and check_whole("degree", self.degree) > _MOST_DEGREE:
            raise InputError(f"degree={self.degree!r} must be at most {_MOST_DEGREE}")
        if self.bound is not None and not 0.0 < as_number("bound", self.bound) < math.inf:
            raise InputError(f"bound={self.bound!r} makes no sense: |h| must be allowed to be above 0 and stay finite")
        if self.order is not None:
            check_order(self.order)
        if not isinstance(self.units, tuple) or not self.units:
            raise InputError(f"units={self.units!r} must be a tuple of whole numbers, one per hidden layer")
        for each in (*self.units, self.steps):
            check_whole("units and steps", each)
