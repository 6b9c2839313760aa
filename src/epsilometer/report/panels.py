"""What the pictures of a report show, as plain numbers: the trade-off curve, the privacy profile, search and evidence.

Each exists only if the result holds its data. Drawing is in `figures`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.bounds.bands import hull
from epsilometer.claims import Claim
from epsilometer.outputs.lines import number_text
from epsilometer.report.wording import figure, figure_down, figure_up, parameter, percent, plain
from epsilometer.result import AuditResult, Finding, Witness

# Enough that a curve looks smooth at the size of a report.
_POINTS = 161
# Below this probability of the deciding event, a linear scale hides everything.
_RARE = 0.03
# The smallest δ that is drawn when the claim has none.
_LEAST_DELTA = 1e-4


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class TradeOffPanel(Panel):
    """How often an event may happen under one input (power), given how often it happens under the other.

    Attributes:
        q: shape (points,), the grid.
        claimed: shape (points,), the most power that the claim allows; None for a measurement.
        certified: shape (points,), the power that is certified.
        corners: certified (q, p) of the counted events.
        seen: observed (q, p) of the deciding event.
        is_log: whether both axes are logarithmic.
    """

    q: Floats
    claimed: Floats | None
    certified: Floats
    corners: tuple[tuple[float, float], ...]
    seen: tuple[float, float]
    is_log: bool


@dataclass(frozen=True, slots=True)
class ProfilePanel(Panel):
    """The δ that belongs to every ε.

    Attributes:
        epsilon: shape (points,).
        claimed: shape (points,), the δ that the claim allows; None for a measurement.
        certified: shape (points,), the δ that is certified; 0 where nothing is.
        least: the lower end of the logarithmic δ axis.
    """

    epsilon: Floats
    claimed: Floats | None
    certified: Floats
    least: float


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class OutputsPanel(Panel):
    """Both distributions of one part of the outputs, in bins or values.

    Attributes:
        name: of the part, in the words of the output.
        bins: what each bin or value is called.
        left: shape (bins,), shares of the left draws.
        right: shape (bins,), of the right draws.
        inside: shape (bins,), which share of the draws in each bin is in the event.
        edges: shape (bins + 1,); empty for values.
    """

    name: str
    bins: tuple[str, ...]
    left: Floats
    right: Floats
    inside: Floats
    edges: Floats


def outputs_panels(result: AuditResult) -> list[OutputsPanel]:
    """The two distributions of outputs; none where an old result, or a method without events, does not hold them."""
    try:
        return [_outputs_panel(data) for data in result.findings[0].details.get("outputs", ())]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        # a stored file may hold anything
        return []


def _outputs_panel(data: Mapping[str, Any]) -> OutputsPanel:
    name = plain(data["name"])
    counts = [np.array(data[side], dtype=np.float64) for side in ("left", "right")]
    left, right = (side / max(int(n), 1) for side, n in zip(counts, data["n"], strict=True))
    edges = np.array(data.get("edges", ()), dtype=np.float64)
    if len(edges):
        texts = [plain(number_text(edge, str(data["kind"]))) for edge in edges.tolist()]
        bins = tuple(f"{low} to {high}" for low, high in pairwise(texts))
    else:
        bins = tuple(plain(value) for value in data["values"])
    inside = np.array(data["inside"], dtype=np.float64)
    if (
        not len(bins) == len(left) == len(right) == len(inside) > 0
        or not np.isfinite([*left, *right, *inside]).all()
    ):
        raise ValueError("bins and counts do not fit together")
    most = int(np.argmax(np.abs(left - right)))
    words = (
        "Outputs" if name == "output" else f"Outputs: {name}",
        "How often each output came, for both inputs; the event is shaded. From the draws that chose the event: the "
        "certificate counts fresh ones.",
        f"The shares differ most at {bins[most]}: left {percent(left[most])}, right {percent(right[most])}.",
    )
    return OutputsPanel(*words, name, bins, left, right, inside, edges)


def panels(result: AuditResult) -> list[Panel]:
    """Every picture but the outputs for which the result has the data, in the order of the report."""
    makers: tuple[Callable[[AuditResult], Panel | None], ...] = (
        trade_off,
        profile,
        search_history,
        wealth,
    )
    return [panel for panel in (make(result) for make in makers) if panel is not None]


def trade_off(result: AuditResult) -> TradeOffPanel | None:
    """The claimed curve, the certified one, and the deciding event."""
    corners = certified_corners(result.findings[0])
    witness = result.witness
    if not corners or not isinstance(witness, Witness):
        return None
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    rarest = min(q for q, _ in corners)
    is_log = witness.q_upper < _RARE
    grid = (
        np.geomspace(max(rarest / 20.0, 1e-12), 1.0, _POINTS)
        if is_log
        else np.linspace(0.0, 1.0, _POINTS)
    )
    grid = np.union1d(grid, [q for q, _ in corners])  # so that corners are not cut off
    claimed = (
        None
        if result.verdict is None
        else np.asarray(result.claim.max_power(grid), dtype=np.float64)
    )
    p = figure_down(witness.p_lower)
    q = figure_up(witness.q_upper)
    allowed = (
        ""
        if claimed is None
        else f" The claim allows {percent(result.claim.max_power(witness.q_upper))}."
    )
    words = (
        "Trade-off curve",
        "How often an event happens under one input, against how often under the other. "
        "The claim forbids everything above its line; the corner is what the counts prove.",
        f"The event has a probability of at least {p} under one input and at most {q} under the other."
        + allowed,
    )
    certified = np.interp(grid, *hull(np.array(corners)))
    return TradeOffPanel(
        *words, grid, claimed, certified, corners, (below.share, above.share), is_log
    )


def profile(result: AuditResult) -> ProfilePanel | None:
    """The δ that is certified at every ε, against the claim's."""
    corners = certified_corners(result.findings[0])
    if not corners:
        return None
    reach = max(_largest_epsilon(corners), *_claimed_epsilons(result))
    grid = np.linspace(0.0, 1.15 * reach if reach > 0.0 else 1.0, _POINTS)
    least = min(_LEAST_DELTA, result.claim.fixed().get("delta", 1.0) / 10.0) or _LEAST_DELTA
    certified = certified_delta(grid, corners)
    at_zero = figure_down(float(certified[0]))
    claimed = None if result.verdict is None else claimed_delta(result.claim, grid)
    caption = "The δ that goes with every ε. Where the certified line is above the claimed one, the claim cannot hold."
    told = f"At ε = 0, δ is at least {at_zero}; ε at δ = 0 is at least {figure_down(_largest_epsilon(corners))}."
    return ProfilePanel("Privacy profile", caption, told, grid, claimed, certified, least)


def search_history(result: AuditResult) -> SearchPanel | None:
    """Best so far against trial, from `details["search"]`: a list of trials with their predicted bound."""
    trials = _first_detail(result, "search")
    if (
        not isinstance(trials, Sequence)
        or len(trials) < 2
        or not all(isinstance(each, Mapping) for each in trials)
    ):
        return None
    scores = tuple(_number(each.get("predicted")) for each in trials)
    certified = tuple(_number(each.get("certified")) for each in trials)
    best = tuple(
        np.fmax.accumulate([math.nan if score is None else score for score in scores]).tolist()
    )
    words = (
        "Search for inputs",
        "What each trial with a pair of inputs promised, on draws that only choose and prove nothing. "
        "Promising pairs were certified on fresh draws.",
        f"{_counted(scores, certified)}; the best promised {figure(best[-1])}.",
    )
    claimed = None if result.verdict is None else result.claim.value
    return SearchPanel(
        *words, scores, certified, best, claimed, f"expected bound on {parameter(result.claim)}"
    )


def _counted(scores: Sequence[float | None], certified: Sequence[float | None]) -> str:
    failed = scores.count(None)
    proved = len(certified) - certified.count(None)
    parts = [f"{len(scores)} trials"]
    parts += [f"{failed} without a score"] if failed else []
    return ", ".join([*parts, f"{proved} certified"] if proved else parts)


def wealth(result: AuditResult) -> WealthPanel | None:
    """Evidence against draws, from `details["wealth"]`: a list of [draws, wealth]."""
    looks = _first_detail(result, "wealth")
    if not isinstance(looks, Sequence) or len(looks) < 2:
        return None
    pairs = [
        (_number(each[0]), _number(each[1]))
        for each in looks
        if isinstance(each, Sequence) and len(each) == 2
    ]
    kept = [(draws, value) for draws, value in pairs if draws is not None and value is not None]
    if len(kept) < 2:
        return None
    needed = 1.0 / (1.0 - result.confidence)
    caption = "Bets against the claim, which a true claim can only lose. At the dashed line the claim is refuted."
    told = f"The evidence ends at {figure(kept[-1][1])}; {figure(needed)} refutes."
    draws, values = zip(*kept, strict=True)
    return WealthPanel("Evidence over time", caption, told, draws, values, needed)


def certified_corners(finding: Finding) -> tuple[tuple[float, float], ...]:
    """Certified (q_upper, p_lower) that hold together: those of a band, else that of the witness.

    Only those with p > q: the others prove nothing, and few draws often prove nothing by counts
    alone.
    """
    p = finding.details.get("p_lower")
    q = finding.details.get("q_upper")
    found: list[tuple[float, float]] = []
    if isinstance(p, Sequence) and isinstance(q, Sequence) and len(p) == len(q) > 0:
        found = [(float(b), float(a)) for a, b in zip(p, q, strict=True)]
    elif isinstance(finding.witness, Witness):
        found = [(finding.witness.q_upper, finding.witness.p_lower)]
    return tuple(corner for corner in found if corner[1] > corner[0])


def certified_delta(epsilon: Floats, corners: Sequence[tuple[float, float]]) -> Floats:
    """The largest p − e^ε q over the corners and their complements, at least 0; shape of `epsilon`."""
    q, p = np.array(corners, dtype=np.float64).T[:, :, None]
    growth = np.exp(epsilon)
    there = (p - growth * q).max(axis=0)
    back = ((1.0 - q) - growth * (1.0 - p)).max(axis=0)
    return np.asarray(np.maximum(np.maximum(there, back), 0.0), dtype=np.float64)


def claimed_delta(claim: Claim, epsilon: Floats) -> Floats:
    """The δ that a claim allows at each ε: the greatest max_power(q) − e^ε q; shape of `epsilon`."""
    rare = np.geomspace(1e-14, 0.01, 200)
    q = np.concatenate([[0.0], rare, np.linspace(0.01, 0.99, 800), 1.0 - rare[::-1], [1.0]])
    power = np.asarray(claim.max_power(q), dtype=np.float64)
    delta = (power[None, :] - np.exp(epsilon)[:, None] * q[None, :]).max(axis=1)
    return np.asarray(np.maximum(delta, 0.0), dtype=np.float64)


def _largest_epsilon(corners: Sequence[tuple[float, float]]) -> float:
    """The ε that the corners prove at δ = 0."""
    ratios = [p / q for q, p in corners if q > 0.0] + [
        (1.0 - q) / (1.0 - p) for q, p in corners if p < 1.0
    ]
    return math.log(max([1.0, *ratios]))


def _claimed_epsilons(result: AuditResult) -> list[float]:
    """The ε of a claim that has one, so that the picture reaches it."""
    claim = result.claim
    named = claim.value if claim.parameter == "epsilon" else claim.fixed().get("epsilon", 0.0)
    return [0.0 if result.verdict is None or claim.notion == "renyi" else named]


def _first_detail(result: AuditResult, key: str) -> Any:
    return next(
        (finding.details[key] for finding in result.findings if key in finding.details), None
    )


def _number(value: Any) -> float | None:
    """A finite number, or None: details may come from a stored file."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
