"""What the pictures of a report show, as plain numbers.

There are the outputs, the trade-off curve, the privacy profile, the search and the evidence. Each
exists only if the result holds its data. Drawing is in `figures`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds.bands import hull
from epsilometer.claims import Claim
from epsilometer.outputs.number_words import number_text
from epsilometer.report.formatting import figure, figure_down, figure_up, percent, plain
from epsilometer.report.wording import SIDES, parameter
from epsilometer.result import AuditResult, Finding, Witness

# Points of a curve: enough that it looks smooth at the size of a report.
_N_POINTS = 161
# Below this probability of the deciding event, a linear scale hides everything.
_RARE_PROBABILITY = 0.03
# A logarithmic axis begins at the rarest corner divided by this, but not below the next number.
_ROOM_BELOW_CORNER = 20.0
_MIN_PROBABILITY = 1e-12
# The smallest δ that is drawn when the claim has none.
_MIN_DELTA = 1e-4
# The ε axis ends this much beyond the largest ε.
_ROOM_BEYOND_EPSILON = 1.15


class EventPoint(NamedTuple):
    """The probabilities of an event: q under the input where it is rarer, p under the other."""

    q: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One picture.

    Attributes:
        title: what it is.
        caption: how to read it.
        description: what it shows, for readers who cannot see it.
    """

    title: str
    caption: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffPanel(Panel):
    """How often an event may happen under one input (power), given how often under the other.

    Attributes:
        q: shape (points,), the grid.
        claimed: shape (points,), the most power that the claim allows; None for a measurement.
        certified: shape (points,), the power that is certified.
        corners: what is certified of the counted events.
        observed: the deciding event as it was counted.
        is_log: whether both axes are logarithmic.
    """

    q: Floats
    claimed: Floats | None
    certified: Floats
    corners: tuple[EventPoint, ...]
    observed: EventPoint
    is_log: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilePanel(Panel):
    """The δ that belongs to every ε.

    Attributes:
        epsilon: shape (points,).
        claimed: shape (points,), the δ that the claim allows; None for a measurement.
        certified: shape (points,), the δ that is certified; 0 where nothing is.
        min_delta: the lower end of the logarithmic δ axis.
    """

    epsilon: Floats
    claimed: Floats | None
    certified: Floats
    min_delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPanel(Panel):
    """What the search expected of each pair of inputs.

    Attributes:
        scores: per trial the bound to expect; None where a trial failed.
        certified: per trial the bound that was certified; None for most.
        best: per trial the best so far.
        claimed: the claim, None for a measurement.
        label: the name of the vertical axis.
    """

    scores: tuple[float | None, ...]
    certified: tuple[float | None, ...]
    best: tuple[float, ...]
    claimed: float | None
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WealthPanel(Panel):
    """Evidence against the claim while draws came in.

    Attributes:
        draws: the draws per side so far, at each look.
        wealth: the evidence at each look; the claim is refuted when it reaches `needed`.
        needed: one over the failure probability.
    """

    draws: tuple[float, ...]
    wealth: tuple[float, ...]
    needed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsPanel(Panel):
    """Both distributions of one part of the outputs, in bins or values.

    Attributes:
        name: of the part, in the words of the output.
        bins: what each bin or value is called.
        left: shape (bins,), fractions of the left draws.
        right: shape (bins,), fractions of the right draws.
        inside: shape (bins,), which fraction of the draws in each bin is in the event.
        edges: shape (bins + 1,); empty for values.
    """

    name: str
    bins: tuple[str, ...]
    left: Floats
    right: Floats
    inside: Floats
    edges: Floats

    @property
    def is_histogram(self) -> bool:
        """Whether outputs are numbers in bins instead of single values."""
        return len(self.edges) > 0


def outputs_panels(result: AuditResult) -> list[OutputsPanel]:
    """Returns the two distributions of outputs, one panel per part of the output.

    Empty where an old result, or a method without events, does not hold them.
    """
    try:
        return [_outputs_panel(data) for data in result.findings[0].details.get("outputs", ())]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return []  # a stored file may hold anything


def _outputs_panel(data: Mapping[str, Any]) -> OutputsPanel:
    name = plain(data["name"])
    fractions = []
    for side, n_draws in zip(SIDES, data["n"], strict=True):
        fractions.append(np.array(data[side], dtype=np.float64) / max(int(n_draws), 1))
    left, right = fractions
    edges = np.array(data.get("edges", ()), dtype=np.float64)
    if len(edges):
        ends = [plain(number_text(edge, str(data["kind"]))) for edge in edges.tolist()]
        bins = tuple(f"{low} to {high}" for low, high in pairwise(ends))
    else:
        bins = tuple(plain(value) for value in data["values"])
    inside = np.array(data["inside"], dtype=np.float64)
    if not len(bins) == len(left) == len(right) == len(inside) > 0:
        raise ValueError("bins and counts do not fit together")
    if not np.isfinite([*left, *right, *inside]).all():
        raise ValueError("counts are not finite")
    most_different = int(np.argmax(np.abs(left - right)))
    return OutputsPanel(
        title="Outputs" if name == "output" else f"Outputs: {name}",
        caption=(
            "How often each output came, for both inputs; the event is shaded. "
            "From the draws that chose the event: the certificate counts fresh ones."
        ),
        description=(
            f"The shares differ most at {bins[most_different]}: "
            f"left {percent(left[most_different])}, right {percent(right[most_different])}."
        ),
        name=name,
        bins=bins,
        left=left,
        right=right,
        inside=inside,
        edges=edges,
    )


def panels(result: AuditResult) -> list[Panel]:
    """Returns every picture but the outputs for which there is data, in the report's order."""
    makers: tuple[Callable[[AuditResult], Panel | None], ...] = (
        trade_off,
        profile,
        search_history,
        wealth,
    )
    candidates = [make(result) for make in makers]
    return [panel for panel in candidates if panel is not None]


def trade_off(result: AuditResult) -> TradeOffPanel | None:
    """Returns the claimed curve, the certified one, and the deciding event."""
    corners = certified_corners(result.findings[0])
    witness = result.witness
    if not corners or not isinstance(witness, Witness):
        return None
    is_log = witness.q_upper < _RARE_PROBABILITY
    if is_log:
        rarest = min(corner.q for corner in corners)
        grid = np.geomspace(max(rarest / _ROOM_BELOW_CORNER, _MIN_PROBABILITY), 1.0, _N_POINTS)
    else:
        grid = np.linspace(0.0, 1.0, _N_POINTS)
    # With the corners, or they would be cut off.
    grid = np.union1d(grid, [corner.q for corner in corners])
    claimed = None
    description = (
        f"The event has a probability of at least {figure_down(witness.p_lower)} under one input "
        f"and at most {figure_up(witness.q_upper)} under the other."
    )
    if result.verdict is not None:
        claimed = np.asarray(result.claim.max_power(grid), dtype=np.float64)
        allowed = result.claim.max_power(witness.q_upper)
        description += f" The claim allows {percent(allowed)}."
    hull_q, hull_p = hull(np.array(corners))
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    return TradeOffPanel(
        title="Trade-off curve",
        caption=(
            "How often an event happens under one input, against how often under the other. "
            "The claim forbids everything above its line; the corner is what the counts prove."
        ),
        description=description,
        q=grid,
        claimed=claimed,
        certified=np.interp(grid, hull_q, hull_p),
        corners=corners,
        observed=EventPoint(q=below.share, p=above.share),
        is_log=is_log,
    )


def profile(result: AuditResult) -> ProfilePanel | None:
    """Returns the δ that is certified at every ε, against the claim's."""
    corners = certified_corners(result.findings[0])
    if not corners:
        return None
    certified_epsilon = _largest_epsilon(corners)
    largest = max(certified_epsilon, _claimed_epsilon(result))
    end = _ROOM_BEYOND_EPSILON * largest if largest > 0.0 else 1.0
    grid = np.linspace(0.0, end, _N_POINTS)
    certified = certified_delta(grid, corners)
    delta_at_zero = figure_down(float(certified[0]))
    min_delta = min(_MIN_DELTA, result.claim.fixed().get("delta", 1.0) / 10.0)
    return ProfilePanel(
        title="Privacy profile",
        caption=(
            "The δ that goes with every ε. Where the certified line is above the claimed one, "
            "the claim cannot hold."
        ),
        description=(
            f"At ε = 0, δ is at least {delta_at_zero}; "
            f"ε at δ = 0 is at least {figure_down(certified_epsilon)}."
        ),
        epsilon=grid,
        claimed=None if result.verdict is None else claimed_delta(result.claim, grid),
        certified=certified,
        min_delta=min_delta or _MIN_DELTA,
    )


def search_history(result: AuditResult) -> SearchPanel | None:
    """Returns the best so far against trials.

    From `details["search"]`, a list of trials with their predicted bound.
    """
    trials = _first_detail(result, "search")
    if not isinstance(trials, Sequence) or len(trials) < 2:
        return None
    if not all(isinstance(trial, Mapping) for trial in trials):
        return None
    scores = tuple(_finite_number(trial.get("predicted")) for trial in trials)
    certified = tuple(_finite_number(trial.get("certified")) for trial in trials)
    scores_or_nan = [math.nan if score is None else score for score in scores]
    best = tuple(np.fmax.accumulate(scores_or_nan).tolist())
    return SearchPanel(
        title="Search for inputs",
        caption=(
            "What each trial with a pair of inputs promised, on draws that only choose and prove "
            "nothing. Promising pairs were certified on fresh draws."
        ),
        description=f"{_count_trials(scores, certified)}; the best promised {figure(best[-1])}.",
        scores=scores,
        certified=certified,
        best=best,
        claimed=None if result.verdict is None else result.claim.value,
        label=f"expected bound on {parameter(result.claim)}",
    )


def _count_trials(scores: Sequence[float | None], certified: Sequence[float | None]) -> str:
    n_failed = scores.count(None)
    n_certified = len(certified) - certified.count(None)
    parts = [f"{len(scores)} trials"]
    if n_failed:
        parts.append(f"{n_failed} without a score")
    if n_certified:
        parts.append(f"{n_certified} certified")
    return ", ".join(parts)


def wealth(result: AuditResult) -> WealthPanel | None:
    """Returns the evidence against draws, from `details["wealth"]`: a list of [draws, wealth]."""
    looks = _first_detail(result, "wealth")
    if not isinstance(looks, Sequence):
        return None
    draws: list[float] = []
    values: list[float] = []
    for look in looks:
        if not isinstance(look, Sequence) or len(look) != 2:
            continue
        n_draws = _finite_number(look[0])
        value = _finite_number(look[1])
        if n_draws is not None and value is not None:
            draws.append(n_draws)
            values.append(value)
    if len(draws) < 2:
        return None
    needed = 1.0 / (1.0 - result.confidence)
    return WealthPanel(
        title="Evidence over time",
        caption=(
            "Bets against the claim, which a true claim can only lose. "
            "At the dashed line the claim is refuted."
        ),
        description=f"The evidence ends at {figure(values[-1])}; {figure(needed)} refutes.",
        draws=tuple(draws),
        wealth=tuple(values),
        needed=needed,
    )


def certified_corners(finding: Finding) -> tuple[EventPoint, ...]:
    """Returns certified (q_upper, p_lower) that hold together.

    They are those of a band, else that of the witness, and only those with p > q: the others prove
    nothing, and few draws often prove nothing by counts alone.
    """
    p_lower: Any = finding.details.get("p_lower")
    q_upper: Any = finding.details.get("q_upper")
    corners: list[EventPoint] = []
    are_lists = isinstance(p_lower, Sequence) and isinstance(q_upper, Sequence)
    if are_lists and len(p_lower) == len(q_upper):
        corners = [
            EventPoint(q=float(q), p=float(p)) for p, q in zip(p_lower, q_upper, strict=True)
        ]
    if not corners and isinstance(finding.witness, Witness):
        corners = [EventPoint(q=finding.witness.q_upper, p=finding.witness.p_lower)]
    return tuple(corner for corner in corners if corner.p > corner.q)


def certified_delta(epsilon: Floats, corners: Sequence[tuple[float, float]]) -> Floats:
    """Returns the largest p − e^ε q over the corners and their complements, at least 0.

    Args:
        epsilon: any shape (n,); the result has the same.
        corners: certified (q, p).
    """
    q, p = np.array(corners, dtype=np.float64).T[:, :, None]
    growth = np.exp(epsilon)
    by_events = (p - growth * q).max(axis=0)
    by_complements = ((1.0 - q) - growth * (1.0 - p)).max(axis=0)
    largest = np.maximum(by_events, by_complements)
    return np.asarray(np.maximum(largest, 0.0), dtype=np.float64)


def claimed_delta(claim: Claim, epsilon: Floats) -> Floats:
    """Returns the δ that a claim allows at each ε: the greatest max_power(q) − e^ε q.

    Args:
        claim: any notion.
        epsilon: shape (n,); the result has the same.
    """
    rare = np.geomspace(1e-14, 0.01, 200)
    q = np.concatenate([[0.0], rare, np.linspace(0.01, 0.99, 800), 1.0 - rare[::-1], [1.0]])
    power = np.asarray(claim.max_power(q), dtype=np.float64)
    # Rows are values of ε, columns values of q.
    excess = power[None, :] - np.exp(epsilon)[:, None] * q[None, :]
    return np.asarray(np.maximum(excess.max(axis=1), 0.0), dtype=np.float64)


def _largest_epsilon(corners: Sequence[EventPoint]) -> float:
    """The ε that the corners and their complements prove at δ = 0."""
    ratios = [1.0]
    ratios += [corner.p / corner.q for corner in corners if corner.q > 0.0]
    ratios += [(1.0 - corner.q) / (1.0 - corner.p) for corner in corners if corner.p < 1.0]
    return math.log(max(ratios))


def _claimed_epsilon(result: AuditResult) -> float:
    """The ε of a claim that has one, so that the picture reaches it; else 0."""
    claim = result.claim
    if result.verdict is None or claim.notion == "renyi":
        return 0.0
    if claim.parameter == "epsilon":
        return claim.value
    return claim.fixed().get("epsilon", 0.0)


def _first_detail(result: AuditResult, key: str) -> Any:
    """The value of the first finding whose details have that key; None if none has."""
    for finding in result.findings:
        if key in finding.details:
            return finding.details[key]
    return None


def _finite_number(value: Any) -> float | None:
    """A finite number, or None: details may come from a stored file."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
