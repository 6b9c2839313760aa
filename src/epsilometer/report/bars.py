"""What the two bar charts of a report show, as plain numbers; templates draw them."""

import math
from dataclasses import dataclass

from epsilometer.report.formatting import bound_against, figure, figure_up, percent
from epsilometer.report.wording import SIDES, parameter
from epsilometer.result import AuditResult, Verdict, Witness

# A marker further right than this multiple of the longest bar would make the bars too small to see.
_MAX_STRETCH = 4.0
# A label this close to an end of the scale, as a fraction of its length, is set towards the middle.
_NEAR_END = 0.2
# The scale is this much longer than its longest bar.
_HEADROOM = 1.04
# First digits of the value at the right end of a scale.
_NICE_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# A little slack, so that 0.3 (which is 2.9999999999999996 tenths) ends at 0.3.
_ROUNDING = 1e-12


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
        if self.at < _NEAR_END:
            return "start"
        if self.at > 1.0 - _NEAR_END:
            return "end"
        return "middle"

    @property
    def x(self) -> str:
        """The place as a width in percent."""
        return f"{100.0 * self.at:.2f}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimScale:
    """The scale of the claim's own parameter.

    Attributes:
        bound: where the certified bar ends.
        claim: what is claimed; None for a measurement.
        detectable: from where on this run would have refuted; None if unknown.
        end: the value at the right end of the scale.
        description: the same in words, for readers who cannot see it.
    """

    bound: Mark
    claim: Mark | None
    detectable: Mark | None
    end: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBar:
    """How often the event happened on one side.

    Attributes:
        side: "left" or "right".
        share: the observed share of the draws.
        certified: what the counts alone prove: at least this on the likelier side, at most this on
            the other.
    """

    side: str
    share: Mark
    certified: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareBars:
    """The shares of the event on both sides.

    Attributes:
        bars: left and right.
        allowed: the most that the claim allows on the likelier side, if the other is at its upper
            bound; None for a measurement, and where it would make the bars too small.
        likelier: 0 or 1, the side on which `allowed` belongs.
        end: the value at the right end of the scale.
        description: the same in words.
    """

    bars: list[SideBar]
    allowed: Mark | None
    likelier: int
    end: str
    description: str


def claim_scale(result: AuditResult) -> ClaimScale:
    """Returns the scale of a result, from 0 to a little beyond what it shows."""
    claim = result.claim
    bound = result.lower_bound
    certified_text = f"certified: {claim.symbol} ≥ {bound_against(bound, claim.value)}"
    claimed_text = f"claimed: {claim.symbol} ≤ {figure(claim.value)}"
    detectable = _finite_detectable(result)
    is_measurement = result.verdict is None
    longest = max(bound, 0.0 if is_measurement else claim.value, detectable or 0.0)
    end = nice_end(longest * _HEADROOM)
    claim_mark = None if is_measurement else Mark(claim.value / end, claimed_text)
    detectable_mark = None
    if detectable:
        text = f"refuted with 90% power from {figure_up(detectable)}"
        detectable_mark = Mark(detectable / end, text)
    marks_text = certified_text if is_measurement else f"{certified_text}, {claimed_text}"
    return ClaimScale(
        bound=Mark(bound / end, certified_text),
        claim=claim_mark,
        detectable=detectable_mark,
        end=figure(end),
        description=f"A scale of {parameter(claim)} from 0 to {figure(end)}. {marks_text}.",
    )


def _finite_detectable(result: AuditResult) -> float | None:
    if result.verdict is not Verdict.NOT_REFUTED or result.detectable is None:
        return None
    return None if math.isinf(result.detectable) else result.detectable


def share_bars(witness: Witness, result: AuditResult) -> ShareBars:
    """Returns the bars of a witness."""
    likelier = int(witness.flipped)
    shares = [counts.share for counts in witness.counts]
    certified = [witness.q_upper, witness.q_upper]
    certified[likelier] = witness.p_lower
    longest = max(*shares, *certified)
    allowed = None if result.verdict is None else result.claim.max_power(witness.q_upper)
    if allowed is not None and allowed > _MAX_STRETCH * longest:
        allowed = None
    end = min(1.0, nice_end(max(longest, allowed or 0.0)))
    bars = [
        SideBar(
            side=name,
            share=Mark(shares[side] / end, percent(shares[side])),
            certified=Mark(certified[side] / end, percent(certified[side])),
        )
        for side, name in enumerate(SIDES)
    ]
    allowed_mark = None
    if allowed is not None:
        allowed_mark = Mark(allowed / end, f"the claim allows {percent(allowed)}")
    return ShareBars(
        bars=bars,
        allowed=allowed_mark,
        likelier=likelier,
        end=percent(end),
        description=(
            f"The event happened in {percent(shares[0])} of the left draws "
            f"and {percent(shares[1])} of the right draws."
        ),
    )


def nice_end(value: float) -> float:
    """Returns the smallest round number that is at least the value.

    Round are 1, 1.5, 2, 3, 4, 5, 6 and 8 times a power of ten.
    """
    if not value > 0.0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    least = value * (1.0 - _ROUNDING)
    return next(step * power for step in _NICE_STEPS if step * power >= least)
