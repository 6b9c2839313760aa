"""What bars and the picture of the loss function show, as plain numbers; drawing is done elsewhere."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.report.panels import Panel
from epsilometer.report.wording import bound_against, figure, figure_up, parameter, percent, plain
from epsilometer.result import AuditResult, Verdict, Witness

# A marker further right than this multiple of the longest bar would make the bars too small to see.
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


def claim_scale(result: AuditResult) -> dict[str, Any]:
    """The scale of the claim's own parameter, for templates.

    Returns:
        `bound`: the mark where the certified bar ends; `claim`: that of what is claimed, None for a
        measurement; `detectable`: from where on this run would have refuted, None if unknown;
        `end`: the value at the right end of the scale; `description`: the same in words, for
        readers who cannot see it.
    """
    claim = result.claim
    bound = result.lower_bound
    shows_claim = result.verdict is not None
    detectable = result.detectable if result.verdict is Verdict.NOT_REFUTED else None
    if detectable is not None and math.isinf(detectable):
        detectable = None
    end = nice_end(max(bound, claim.value if shows_claim else 0.0, detectable or 0.0) * 1.04)
    certified = f"certified: {claim.symbol} ≥ {bound_against(bound, claim.value)}"
    claimed = f"claimed: {claim.symbol} ≤ {figure(claim.value)}"
    mark = Mark(claim.value / end, claimed) if shows_claim else None
    seen = (
        Mark(detectable / end, f"refuted with 90% power from {figure_up(detectable)}")
        if detectable
        else None
    )
    told = f"{certified}, {claimed}." if shows_claim else f"{certified}."
    text = f"A scale of {parameter(claim)} from 0 to {figure(end)}. {told}"
    marks = {"bound": Mark(bound / end, certified), "claim": mark, "detectable": seen}
    return {**marks, "end": figure(end), "description": text}


def share_bars(witness: Witness, result: AuditResult) -> dict[str, Any]:
    """The shares of the event on both sides, for templates.

    Returns:
        `bars`: for left and right their `side`, the observed `share`, and what is `certified` by
        the counts alone: at least (likelier side) or at most (the other); `allowed`: the most that
        the claim allows on the likelier side, if the other is at its upper bound; `likelier`: 0 or
        1, the side on which `allowed` belongs; `end`: the value at the right end of the scale;
        `description`: the same in words.
    """
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
        {
            "side": side,
            "share": Mark(share / end, percent(share)),
            "certified": Mark(limit / end, percent(limit)),
        }
        for side, share, limit in zip(("left", "right"), shares, certified, strict=True)
    ]
    text = f"The event happened in {percent(shares[0])} of the left draws and {percent(shares[1])} of the right draws."
    mark = None if allowed is None else Mark(allowed / end, f"the claim allows {percent(allowed)}")
    return {
        "bars": bars,
        "allowed": mark,
        "likelier": likelier,
        "end": percent(end),
        "description": text,
    }


def nice_end(value: float) -> float:
    """The smallest number of the form 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that is at least the value."""
    if not value > 0.0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    # A little slack, so that 0.3 (which is 2.9999999999999996 tenths) ends at 0.3.
    return next(step * power for step in steps if step * power >= value * (1.0 - 1e-12))


# With fewer draws than this on both sides (in the kernel's window, or of an outcome), the loss is
# all noise.
_FEWEST = 60.0


@dataclass(frozen=True, slots=True)
class LossPanel(Panel):
    """Two distributions and the loss between them.

    Attributes:
        points: shape (m,), outputs where densities were estimated; empty if discrete.
        left: shape (m,), density under the left input.
        right: shape (m,), under the right.
        loss: shape (m,), nan where both are too small to say.
        atoms: names of the outcomes that repeat.
        atom_places: shape (k,), where they stand: their value, or their number for names.
        left_atoms: shape (k,), their probabilities under the left input.
        right_atoms: shape (k,).
        atom_loss: shape (k,), nan where both are too small to say.
        location: where the loss is marked: a place on the axis of the points or atoms.
        estimate: the loss there.
        spread: shape (m,), two standard errors of the loss.
        claimed: the loss that is allowed, drawn instead of the mark where the claim was not
            refuted: the greatest of many noisy estimates lies above the truth.
    """

    points: Floats
    left: Floats
    right: Floats
    loss: Floats
    atoms: tuple[str, ...]
    atom_places: Floats
    left_atoms: Floats
    right_atoms: Floats
    atom_loss: Floats
    location: float | None
    estimate: float
    spread: Floats
    claimed: float | None


def loss_panel(result: AuditResult) -> LossPanel | None:
    """The loss function of a result with one-dimensional outputs; None where the result does not hold it."""
    found = [
        each
        for finding in result.findings
        if isinstance(each := finding.details.get("densities"), Mapping)
    ]
    try:
        return _panel(found[0], result) if found else None
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError):
        # a stored file may hold anything
        return None


def _panel(data: Mapping[str, Any], result: AuditResult) -> LossPanel:
    n = [float(size) for size in data["n"]]
    names, places = _places(data["atoms"])
    atoms = [np.array(data[key], dtype=np.float64) for key in ("left_atoms", "right_atoms")]
    atom_shares = [counts / size for counts, size in zip(atoms, n, strict=True)]
    atom_loss = _loss(atom_shares, [_FEWEST / size for size in n])
    points, densities, loss, spread = _curves(data, n)
    location, estimate = _mark(result, points, loss, places, atom_loss)
    is_kept = result.verdict is Verdict.NOT_REFUTED and result.claim.notion == "pure"
    where = (
        "" if location is None else f" near the output {figure(location)}" if len(points) else ""
    )
    words = (
        "Loss function",
        "Above, how likely each output is under the left and the right input; below, the privacy loss |ln f − ln f'| "
        "of each output. Estimates from training draws: they show where it leaks, the certified bound says how much.",
        f"Nothing proves a loss above the claimed {figure(result.claim.value)}; the band shows how far chance reaches."
        if is_kept
        else f"The greatest estimated loss is {figure(estimate)}{where}.",
    )
    curves = points, densities[0], densities[1], loss
    outcomes = places, atom_shares[0], atom_shares[1], atom_loss
    claimed = result.claim.value if is_kept else None
    return LossPanel(*words, *curves, names, *outcomes, location, estimate, spread, claimed)


def _places(atoms: Sequence[Any]) -> tuple[tuple[str, ...], Floats]:
    """Names of the outcomes and where they stand on the axis."""
    is_number = [isinstance(atom, int | float) and not isinstance(atom, bool) for atom in atoms]
    places = (
        [float(atom) for atom in atoms]
        if all(is_number)
        else [float(place) for place in range(len(atoms))]
    )
    return tuple(plain(atom, 24) for atom in atoms), np.array(places, dtype=np.float64)


def _curves(data: Mapping[str, Any], n: list[float]) -> tuple[Floats, list[Floats], Floats, Floats]:
    if "low" not in data:
        nothing = np.empty(0)
        return nothing, [nothing, nothing], nothing, nothing
    low = float(data["low"])
    high = float(data["high"])
    counts = [np.array(data[key], dtype=np.float64) for key in ("left", "right")]
    step = (high - low) / len(counts[0])
    points = np.asarray(low + step * (np.arange(len(counts[0])) + 0.5), dtype=np.float64)
    width = max(float(data["bandwidth"]) / step, 0.3)
    # Smoothed by a Gaussian of that many bins; the ends lose no mass.
    reach = math.ceil(4.0 * width)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    most, *masses = (
        np.convolve(each, weights)[reach : reach + len(each)]
        for each in (np.ones(len(points)), *counts)
    )
    # A kernel of bandwidth h sees about 2·√π·h of the axis.
    window = max(2.0 * math.sqrt(math.pi) * width, 1.0)
    densities = [mass / most / (size * step) for mass, size in zip(masses, n, strict=True)]
    floors = [_FEWEST / (window * size * step) for size in n]
    near = [
        np.maximum(side, floor) / floor * _FEWEST
        for side, floor in zip(densities, floors, strict=True)
    ]
    return points, densities, _loss(densities, floors), 2.0 * np.sqrt(1.0 / near[0] + 1.0 / near[1])


def _loss(sides: Sequence[Floats], floors: Sequence[float]) -> Floats:
    """|ln f − ln f'| with both floored; nan where neither side is above its floor."""
    floored = [np.maximum(side, floor) for side, floor in zip(sides, floors, strict=True)]
    seen = (sides[0] > floors[0]) | (sides[1] > floors[1])
    return np.asarray(
        np.where(seen, np.abs(np.log(floored[0] / floored[1])), np.nan), dtype=np.float64
    )


def _mark(
    result: AuditResult, points: Floats, loss: Floats, places: Floats, atom_loss: Floats
) -> tuple[float | None, float]:
    """Where the loss is greatest: as the local approach found it, or by the picture's own curves."""
    details = result.findings[0].details
    location = details.get("location")
    estimate = details.get("estimate")
    if (
        result.findings[0].method == "local"
        and isinstance(location, int | float)
        and isinstance(estimate, int | float)
    ):
        return float(location), float(estimate)
    xs = np.concatenate([points, places])
    ys = np.concatenate([loss, atom_loss])
    if not np.isfinite(ys).any():
        return None, 0.0
    best = int(np.nanargmax(ys))
    return float(xs[best]), float(ys[best])
