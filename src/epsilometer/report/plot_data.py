"""What the bars of a report show, as plain numbers; drawing is up to the templates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epsilometer.report.showing import bound_against, figure, figure_up, percent
from epsilometer.report.wording import parameter
from epsilometer.result import AuditResult, Verdict, Witness

# A marker further right than this multiple of the longest bar would leave nothing of the bars to be seen.
_MOST_STRETCH = 4.0
# A label this close to an end of the scale is set towards the middle.
_NEAR_END = 0.2


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on a scale.

    Attributes:
        at: between 0 (left end) and 1 (right end).
        label: what is there.
    """

    at: float
    label: str

    @property
    def anchor(self) -> str:
        """How a label must be aligned to stay inside: "start", "middle" or "end"."""
        return "start" if self.at < _NEAR_END else "end" if self.at > 1.0 - _NEAR_END else "middle"

    @property
    def x(self) -> str:
        """The place as a width in percent."""
        return f"{100.0 * self.at:.2f}%"


@dataclass(frozen=True, slots=True)
class ClaimScale:
    """The certified bound against the claim.

    Attributes:
        bound: where the certified bar ends.
        claim: what is claimed; None for a measurement.
        detectable: from where on this run would have refuted; None if that is not told.
        end: the value at the right end of the scale.
        description: the same in words, for those who cannot see it.
    """

    bound: Mark
    claim: Mark | None
    detectable: Mark | None
    end: str
    description: str


@dataclass(frozen=True, slots=True)
class ShareBar:
    """How often the event happened on one side.

    Attributes:
        side: "left" or "right".
        share: the observed share.
        certified: what the counts prove by themselves: at least (likelier side) or at most (the other).
    """

    side: str
    share: Mark
    certified: Mark


@dataclass(frozen=True, slots=True)
class ShareBars:
    """The two shares of an event on one scale.

    Attributes:
        bars: left and right.
        allowed: the most that the claim allows on the likelier side, if the other is at its upper bound.
        likelier: 0 or 1, the side on which `allowed` belongs.
        end: the value at the right end of the scale.
        description: the same in words.
    """

    bars: tuple[ShareBar, ShareBar]
    allowed: Mark | None
    likelier: int
    end: str
    description: str


def claim_scale(result: AuditResult) -> ClaimScale:
    """The scale of the claim's own parameter with the bound, the claim, and what would have been seen."""
    claim, bound = result.claim, result.lower_bound
    shows_claim = result.verdict is not None
    detectable = result.detectable if result.verdict is Verdict.NOT_REFUTED else None
    if detectable is not None and math.isinf(detectable):
        detectable = None
    end = nice_end(max(bound, claim.value if shows_claim else 0.0, detectable or 0.0) * 1.04)
    name = parameter(claim)
    certified = f"certified: {claim.symbol} ≥ {bound_against(bound, claim.value)}"
    claimed = f"claimed: {claim.symbol} ≤ {figure(claim.value)}"
    return ClaimScale(
        Mark(bound / end, certified),
        Mark(claim.value / end, claimed) if shows_claim else None,
        Mark(detectable / end, f"refuted with 90% power from {figure_up(detectable)}") if detectable else None,
        figure(end),
        f"A scale of {name} from 0 to {figure(end)}. {certified}" + (f", {claimed}." if shows_claim else "."),
    )


def share_bars(witness: Witness, result: AuditResult) -> ShareBars:
    """The shares of the event on both sides, and what the claim allows."""
    likelier = int(witness.flipped)
    shares = [counts.share for counts in witness.counts]
    certified = [witness.q_upper, witness.q_upper]
    certified[likelier] = witness.p_lower
    longest = max(*shares, *certified)
    allowed = result.claim.max_power(witness.q_upper) if result.verdict is not None else None
    if allowed is not None and allowed > _MOST_STRETCH * longest:
        allowed = None
    end = min(1.0, nice_end(max(longest, allowed or 0.0)))
    bars = [
        ShareBar(side, Mark(share / end, percent(share)), Mark(limit / end, percent(limit)))
        for side, share, limit in zip(("left", "right"), shares, certified, strict=True)
    ]
    text = f"The event happened in {percent(shares[0])} of the left draws and {percent(shares[1])} of the right draws."
    mark = None if allowed is None else Mark(allowed / end, f"the claim allows {percent(allowed)}")
    return ShareBars((bars[0], bars[1]), mark, likelier, percent(end), text)


def nice_end(value: float) -> float:
    """The smallest number of the form 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that is at least the value."""
    if not value > 0.0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    # A hair of slack, so that 0.3 (which is 2.9999999999999996 tenths) ends at 0.3.
    return next(step * power for step in steps if step * power >= value * (1.0 - 1e-12))
