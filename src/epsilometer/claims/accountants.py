"""Claims from privacy accountants: whatever (ε, δ) they report, as one trade-off curve.

Every pair (ε, δ) that holds for both directions says P(E) ≤ e^ε·Q(E) + δ, and of the complement
P(E) ≤ 1 − e^−ε·(1 − δ − Q(E)): two lines above the curve. The least of any number of such lines is
implied by the accountant, whatever grid of ε was asked for, and therefore never tighter than the
accountant. (Points of the accountant's own curve, joined by straight lines, would be.) That least
is a concave curve of straight pieces, and is stored by its corners.

Accountants are recognised by their methods, so that none of their libraries is imported.
"""

import math
import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from epsilometer.arrays import Floats
from epsilometer.errors import InputError, short_repr

# A δ that is computed in floats may lie outside [0, 1], and grow with ε, by this much.
_ROUNDING = 1e-9
# Accountants that round up may exceed 1 by this much, where hardly anything is private.
_ROUNDED_UP = 1e-6
# e^700 is near the largest float. Pairs with a larger ε are left out, which loosens the claim.
_MAX_EPSILON = 700.0
# The bulk of a curve ends where δ falls below the first of these, and what a sample could show
# where it falls below the second.
_BULK_DELTA = 1e-5
_NEGLIGIBLE_DELTA = 1e-15
# The search for the ε with such a δ begins here and doubles.
_FIRST_EPSILON = 0.5
# Steps of the bisection between the last two values; it need not be precise.
_HALVINGS = 5
# Values of ε: even steps in the bulk and beyond it, and geometric ones from 1e-3 on for accountants
# of little privacy loss. A function may take milliseconds for each.
_BULK_STEPS = 200
_TAIL_STEPS = 50
_GEOMETRIC_STEPS = 40
_LEAST_EPSILON = 1e-3
# So many times as many if they come from the masses of a privacy-loss distribution, at once.
_FINER = 10
# Lines are left out as long as that adds no more power than this, and no larger share of it.
_THINNING = 5e-7
_RELATIVE_THINNING = 3e-3
# The ε at which the masses of a privacy-loss distribution must agree with its own method, and how
# closely, as a share of δ.
_PROBES = (0.0, 0.3, 1.0, 3.0, 10.0)
_AGREEMENT = 1e-6
# The δ at which an accountant that maps δ to ε is asked. Some take a second for each, so most are
# in the bulk, where draws refute: even in log-odds, which adds no more than .007 of power anywhere
# (8 in the bulk added up to .14). Below 1e-12 the accountants of Opacus fail.
_DELTAS: Floats = np.concatenate(
    [
        np.geomspace(1e-12, 1e-2, 15, endpoint=False),
        expit(np.linspace(logit(1e-2), logit(0.995), 45)),
    ]
)
# What the corners are rounded by, and more: power that is added at each of them.
_CORNER_ROUNDING = 2e-15


_ACCEPTED = (
    "a privacy-loss distribution or PLDAccountant of dp-accounting, a PRVAccountant or "
    "RDPAccountant of Opacus, a function from ε to δ, or pairs [(ε, δ), …]"
)


class DeltaCurve(NamedTuple):
    """A function from values of ε to δ.

    Attributes:
        at: maps values of ε, increasing, to δ.
        finer: how many times as many values it may be asked for as one that is slow.
    """

    at: Callable[[Floats], list[float]]
    finer: int


class ReportedPair(NamedTuple):
    """An (ε, δ) that an accountant reports for both directions."""

    epsilon: float
    delta: float


class CurvePoints(NamedTuple):
    """The corners of a trade-off curve: type-I errors, increasing, and least type-II errors."""

    type_one: list[float]
    type_two: list[float]


def accountant_curve(accountant: Any) -> CurvePoints:
    """Returns the trade-off curve that an accountant implies.

    Args:
        accountant: see `TradeOffDP.from_accountant`.

    Guarantee: nowhere above the trade-off function of a mechanism for which the accountant's
        figures hold: a claim that is made of it is never tighter than the accountant.
    """
    reported = _reported_pairs(accountant)
    if not reported:
        raise InputError("the accountant reports no finite pair (ε, δ)")
    pairs = [pair for pair in reported if pair.epsilon <= _MAX_EPSILON]
    if not pairs:
        raise InputError(
            f"every ε that the accountant reports is above {_MAX_EPSILON:g}: that promises nothing"
        )
    if min(pair.delta for pair in pairs) >= 1.0:
        raise InputError("the accountant reports δ = 1 for every ε: that promises nothing")
    return _corners(pairs)


def _reported_pairs(accountant: Any) -> list[ReportedPair]:
    """The pairs that an accountant reports, whatever kind it is of."""
    if isinstance(accountant, str | bytes):
        raise InputError(f"accountant={short_repr(accountant)} must be {_ACCEPTED}")
    # A privacy-loss distribution of dp-accounting.
    if hasattr(accountant, "get_delta_for_epsilon"):
        _check_rounded_up(accountant)
        return _pairs_over_epsilons(_deltas_of_losses(accountant, accountant.get_delta_for_epsilon))
    # An accountant of Opacus.
    if hasattr(accountant, "get_epsilon") and hasattr(accountant, "history"):
        _check_opacus(accountant)
        return _pairs_over_deltas(accountant.get_epsilon)
    # An accountant of dp-accounting.
    if hasattr(accountant, "get_delta") and hasattr(accountant, "get_epsilon"):
        _check_has_events(accountant)
        distribution = getattr(accountant, "_pld", None)
        _check_rounded_up(distribution)
        return _pairs_over_epsilons(_deltas_of_losses(distribution, accountant.get_delta))
    if callable(accountant):
        return _pairs_over_epsilons(_one_by_one(accountant))
    return _given_pairs(accountant)


def _check_opacus(accountant: Any) -> None:
    """Raises for an accountant of Opacus that has seen no step, or that only approximates."""
    mechanism = accountant.mechanism() if hasattr(accountant, "mechanism") else ""
    name = type(accountant).__name__
    if mechanism == "gdp" or name == "GaussianAccountant":
        raise InputError(
            f"{name} approximates by a central limit theorem, and its figures may be too small: "
            "take a PRVAccountant or an RDPAccountant"
        )
    if not accountant.history:
        raise InputError(f"{name} has no steps: its history is empty")


def _check_rounded_up(distribution: Any) -> None:
    """Raises for a privacy-loss distribution of dp-accounting that rounds losses down.

    How it rounds is no public part of it; where it is not known, nothing is said.
    """
    for name in ("_pmf_remove", "_pmf_add"):
        side = getattr(distribution, name, None)
        if getattr(side, "_pessimistic_estimate", True) is False:
            raise InputError(
                "the privacy-loss distribution rounds losses down, so that its δ may be too small: "
                "make it with pessimistic_estimate=True"
            )


def _check_has_events(accountant: Any) -> None:
    """Raises for an accountant of dp-accounting to which nothing was composed."""
    ledger = getattr(accountant, "ledger", None)
    if type(ledger).__name__ == "NoOpDpEvent":
        raise InputError(f"{type(accountant).__name__} has no steps: compose its events first")


def _pairs_over_epsilons(curve: DeltaCurve) -> list[ReportedPair]:
    """The pairs of a function from ε to δ, at values of ε that show its whole curve."""
    bulk = _epsilon_below(curve, _BULK_DELTA)
    top = max(_epsilon_below(curve, _NEGLIGIBLE_DELTA), bulk)
    epsilons = np.unique(
        np.concatenate(
            [
                np.linspace(0.0, bulk, curve.finer * _BULK_STEPS),
                np.linspace(bulk, top, curve.finer * _TAIL_STEPS),
                np.geomspace(min(_LEAST_EPSILON, top), top, curve.finer * _GEOMETRIC_STEPS),
            ]
        )
    )
    deltas = curve.at(epsilons)
    pairs = [
        ReportedPair(epsilon, _checked_delta(delta, epsilon))
        for epsilon, delta in zip(epsilons.tolist(), deltas, strict=True)
    ]
    _check_falling(pairs)
    return pairs


def _epsilon_below(curve: DeltaCurve, target: float) -> float:
    """An ε beyond which δ is below the target, or falls no more."""

    def delta_at(epsilon: float) -> float:
        return curve.at(np.array([epsilon]))[0]

    epsilon = _FIRST_EPSILON
    delta = delta_at(epsilon)
    while delta > target and 2.0 * epsilon <= _MAX_EPSILON:
        delta_beyond = delta_at(2.0 * epsilon)
        # A part of δ that no ε removes: an infinite loss, or what the accountant rounds up. Next to
        # 1 a curve is flat as well that falls at larger ε.
        is_flat = delta_beyond >= delta * (1.0 - _ROUNDING)
        if epsilon >= 1.0 and is_flat and delta < 1.0 - _ROUNDED_UP:
            break
        epsilon = 2.0 * epsilon
        delta = delta_beyond
    enough = max(delta * (1.0 + _ROUNDING), target)
    too_small = 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (too_small + epsilon)
        if delta_at(middle) <= enough:
            epsilon = middle
        else:
            too_small = middle
    return epsilon


def _one_by_one(delta_of: Callable[[float], Any]) -> DeltaCurve:
    """A function of one ε as one of several."""

    def deltas_at(epsilons: Floats) -> list[float]:
        return [_delta_at(delta_of, epsilon) for epsilon in epsilons.tolist()]

    return DeltaCurve(at=deltas_at, finer=1)


def _deltas_of_losses(distribution: Any, delta_of: Callable[[float], Any]) -> DeltaCurve:
    """δ of a privacy-loss distribution at many ε, from the masses of its losses.

    Its own method takes some ten milliseconds for each ε. The masses are no public part of it, so
    they are used only if they agree with the method at a few ε, and else the method is.

    Args:
        distribution: of dp-accounting, or anything else.
        delta_of: its public method, which maps ε to δ.
    """
    one_by_one = _one_by_one(delta_of)
    try:
        sides = {id(side): side for side in (distribution._pmf_remove, distribution._pmf_add)}
        losses = [_LossMasses.read(side) for side in sides.values()]
        probes = np.array(_PROBES)
        at_probes = np.max([side.deltas(probes) for side in losses], axis=0)
    except (AttributeError, TypeError, ValueError):
        return one_by_one
    if not np.allclose(at_probes, one_by_one.at(probes), rtol=_AGREEMENT, atol=_NEGLIGIBLE_DELTA):
        return one_by_one

    def deltas_at(epsilons: Floats) -> list[float]:
        greatest = np.max([side.deltas(epsilons) for side in losses], axis=0)
        return [float(delta) for delta in greatest]

    return DeltaCurve(at=deltas_at, finer=_FINER)


class _LossMasses(NamedTuple):
    """One direction of a privacy-loss distribution.

    Attributes:
        losses: increasing.
        upper: the probability of a loss of at least each of them, and 0.
        lower: the same under the other input.
        infinite: the probability of an infinite loss.
    """

    losses: Floats
    upper: Floats
    lower: Floats
    infinite: float

    @classmethod
    def read(cls, masses: Any) -> "_LossMasses":
        """Reads the dense or the sparse form of dp-accounting."""
        dense = masses.to_dense_pmf()
        probabilities = np.asarray(dense._probs, dtype=np.float64)
        losses = (np.arange(len(probabilities)) + dense._lower_loss) * dense._discretization
        # Losses below 0 are of no use, and e to the power of them overflows.
        is_used = losses >= 0.0
        losses = losses[is_used]
        upper = np.append(probabilities[is_used], 0.0)
        lower = upper * np.append(np.exp(-losses), 0.0)
        # Added up from the right: the smallest come first.
        return cls(
            losses=losses,
            upper=np.cumsum(upper[::-1])[::-1],
            lower=np.cumsum(lower[::-1])[::-1],
            infinite=float(dense._infinity_mass),
        )

    def deltas(self, epsilons: Floats) -> Floats:
        """δ at each ε, shape (k,): of all losses above ε, P − e^ε·Q."""
        first = np.searchsorted(self.losses, epsilons, side="right")
        finite = self.upper[first] - np.exp(epsilons) * self.lower[first]
        return self.infinite + np.maximum(finite, 0.0)


def _delta_at(delta_of: Callable[[float], Any], epsilon: float) -> float:
    """δ at one ε."""
    try:
        value = delta_of(epsilon)
    except Exception as error:
        raise InputError(
            f"the accountant gives no δ at ε={epsilon:g}: {type(error).__name__}: {error}"
        ) from error
    try:
        return _checked_delta(float(value), epsilon)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the accountant gives δ={short_repr(value)} at ε={epsilon:g}, which is not a number"
        ) from None


def _checked_delta(delta: float, epsilon: float) -> float:
    """Returns a δ within [0, 1], or raises if it lies outside by more than rounding."""
    if not -_ROUNDING <= delta <= 1.0 + _ROUNDED_UP:
        raise InputError(
            f"the accountant gives δ={delta:.8g} at ε={epsilon:g}: δ must lie between 0 and 1"
        )
    return min(max(delta, 0.0), 1.0)


def _check_falling(pairs: Iterable[ReportedPair]) -> None:
    """Raises if δ grows with ε by more than rounding; the pairs are sorted by ε, then by δ."""
    least = ReportedPair(0.0, 1.0)
    for pair in pairs:
        if pair.delta > least.delta + _ROUNDING and pair.epsilon > least.epsilon:
            raise InputError(
                f"δ grows with ε: δ={least.delta:g} at ε={least.epsilon:g}, but δ={pair.delta:g} "
                f"at ε={pair.epsilon:g}; a function must map ε to δ, and pairs be (ε, δ)"
            )
        if pair.delta < least.delta:
            least = pair


def _pairs_over_deltas(epsilon_of: Callable[[float], Any]) -> list[ReportedPair]:
    """The pairs of a function from δ to ε; a δ at which it fails is left out."""
    pairs = []
    with warnings.catch_warnings():
        # They are about the δ that we chose, at which nobody trains.
        warnings.simplefilter("ignore")
        for delta in _DELTAS.tolist():
            try:
                epsilon = float(epsilon_of(delta))
            except Exception:  # accountants fail at some δ, e.g. where their grid ends
                continue
            if math.isfinite(epsilon):
                pairs.append(ReportedPair(epsilon, delta))
    for before, pair in pairwise(pairs):
        if pair.epsilon > before.epsilon + _ROUNDING:
            raise InputError(
                f"ε grows with δ: ε={before.epsilon:g} at δ={before.delta:g}, but "
                f"ε={pair.epsilon:g} at δ={pair.delta:g}; get_epsilon must map δ to ε"
            )
    # Where δ is large, accountants may give an ε below 0, which promises what ε = 0 does, and more.
    return [pair._replace(epsilon=max(pair.epsilon, 0.0)) for pair in pairs]


def _given_pairs(given: Any) -> list[ReportedPair]:
    """The pairs that the user wrote down; an infinite ε is left out."""
    try:
        table = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InputError(f"accountant={short_repr(given)} must be {_ACCEPTED}")
    pairs = []
    for epsilon, delta in sorted(map(tuple, table.tolist())):
        if not epsilon >= 0.0:
            raise InputError(f"ε={epsilon:g} of a pair must be at least 0")
        pairs.append(ReportedPair(epsilon, _checked_delta(delta, epsilon)))
    _check_falling(pairs)
    return [pair for pair in pairs if math.isfinite(pair.epsilon)]


def _corners(pairs: Iterable[ReportedPair]) -> CurvePoints:
    """The corners of the least of all lines that the pairs imply, on [0, 1]."""
    lines = _thinned(np.array(_least_lines(pairs)))
    slopes = lines[:, 0]
    shifts = lines[:, 1]
    meetings = (shifts[1:] - shifts[:-1]) / (slopes[:-1] - slopes[1:])
    inside = meetings[(meetings > 0.0) & (meetings < 1.0)]
    type_one = np.unique(np.concatenate([[0.0], inside, [1.0]]))
    power = np.min(slopes * type_one[:, None] + shifts, axis=1)
    type_two = np.clip(1.0 - power - _CORNER_ROUNDING, 0.0, 1.0)
    type_two[-1] = 0.0
    return CurvePoints(type_one.tolist(), np.minimum.accumulate(type_two).tolist())


def _least_lines(pairs: Iterable[ReportedPair]) -> list[tuple[float, float]]:
    """The lines (slope, shift) that the least of all touches, from the steepest to the flat one.

    A line that rounding leaves out loosens the claim.
    """
    lines = [(0.0, 1.0)]
    for epsilon, delta in pairs:
        ratio = math.exp(epsilon)
        lines.append((ratio, delta))
        lines.append((1.0 / ratio, 1.0 - (1.0 - delta) / ratio))
    least: list[tuple[float, float]] = []
    # By falling slope; of equal slopes the lowest line comes first.
    for line in sorted(lines, key=lambda line: (-line[0], line[1])):
        if least and least[-1][0] == line[0]:
            continue
        while len(least) >= 2 and _is_above(least[-2], least[-1], line):
            least.pop()
        least.append(line)
    return least


def _thinned(lines: Floats) -> Floats:
    """Fewer lines whose least is hardly larger: never below it, since lines are only left out.

    Args:
        lines: shape (n, 2), slope and shift, by falling slope, each of which the least touches.
    """
    remaining = [0]
    for position in range(2, len(lines)):
        last = remaining[-1]
        slope, shift = lines[last]
        next_slope, next_shift = lines[position]
        meeting = (next_shift - shift) / (slope - next_slope)
        power = slope * meeting + shift
        between = lines[last + 1 : position]
        added = power - np.min(between[:, 0] * meeting + between[:, 1])
        if added > min(_THINNING, _RELATIVE_THINNING * min(power, 1.0 - meeting)):
            remaining.append(position - 1)
    remaining.append(len(lines) - 1)
    return lines[remaining]


def _is_above(
    steeper: tuple[float, float], middle: tuple[float, float], flatter: tuple[float, float]
) -> bool:
    """Whether the middle one of three lines lies nowhere below the other two."""
    # Where the outer two meet, compared by multiplying out.
    left = (flatter[1] - steeper[1]) * (steeper[0] - middle[0])
    right = (middle[1] - steeper[1]) * (steeper[0] - flatter[0])
    return left <= right
