"""What the picture of the loss function shows, as plain numbers; drawing is in `figures`.

The privacy loss of an output is |ln f − ln f'|, where f and f' are its densities (or
probabilities) under the left and the right input. All figures are estimates from the training
draws: they show where a mechanism leaks, and the certified bound says how much.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.report.formatting import figure, plain
from epsilometer.report.panels import Panel
from epsilometer.result import AuditResult, Verdict

# With fewer draws than this on both sides (in the kernel's window, or of an outcome), the estimated
# loss is all noise.
_MIN_DRAWS = 60.0
# Kernel of the density estimate: at least this many bins wide, or bins would show.
_MIN_BANDWIDTH_BINS = 0.3
# Standard deviations of a Gaussian kernel beyond which its weights are negligible.
_KERNEL_REACH = 4.0
# Standard errors that the band around the loss shows to each side.
_BAND_STANDARD_ERRORS = 2.0
# Characters of the name of an outcome on the axis.
_MAX_OUTCOME_CHARACTERS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Both densities and the loss where outputs are continuous; m is 0 where they are not.

    Attributes:
        points: shape (m,), outputs where densities were estimated.
        left: shape (m,), density under the left input.
        right: shape (m,), density under the right input.
        loss: shape (m,), nan where both densities are too small to say.
        band: shape (m,), two standard errors of the loss.
    """

    points: Floats
    left: Floats
    right: Floats
    loss: Floats
    band: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeLosses:
    """Probabilities and losses of the outcomes that repeat.

    Attributes:
        names: of the k outcomes.
        positions: shape (k,), where they stand on the axis: their value, or their number if they
            are names.
        left: shape (k,), their probabilities under the left input.
        right: shape (k,), their probabilities under the right input.
        loss: shape (k,), nan where both probabilities are too small to say.
    """

    names: tuple[str, ...]
    positions: Floats
    left: Floats
    right: Floats
    loss: Floats


@dataclass(frozen=True, slots=True)
class LossMark:
    """Where the greatest loss is marked.

    Attributes:
        location: a position on the axis; None if no loss could be estimated.
        estimate: the loss there.
    """

    location: float | None
    estimate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LossPanel(Panel):
    """Two distributions and the loss between them.

    Attributes:
        curve: of the continuous outputs.
        outcomes: the outputs that repeat.
        mark: the greatest estimated loss.
        claimed: the loss that is allowed, drawn instead of the mark where the claim was not
            refuted: the greatest of many noisy estimates lies above the truth.
    """

    curve: LossCurve
    outcomes: OutcomeLosses
    mark: LossMark
    claimed: float | None


def loss_panel(result: AuditResult) -> LossPanel | None:
    """Returns the loss function of a result with one-dimensional outputs.

    Returns None where the result does not hold it.
    """
    for finding in result.findings:
        data = finding.details.get("densities")
        if isinstance(data, Mapping):
            try:
                return _panel(data, result)
            except (KeyError, TypeError, ValueError, IndexError, ArithmeticError):
                return None  # a stored file may hold anything
    return None


def _panel(data: Mapping[str, Any], result: AuditResult) -> LossPanel:
    n_left, n_right = data["n"]
    draws = (float(n_left), float(n_right))
    outcomes = _outcomes(data, draws)
    curve = _curve(data, draws)
    mark = _mark(result, curve, outcomes)
    # Of a claim that was not refuted, the greatest estimate would look like a violation.
    shows_claim = result.verdict is Verdict.NOT_REFUTED and result.claim.notion == "pure"
    if shows_claim:
        description = (
            f"Nothing proves a loss above the claimed {figure(result.claim.value)}; "
            "the band shows how far chance reaches."
        )
    else:
        where = ""
        if mark.location is not None and len(curve.points) > 0:
            where = f" near the output {figure(mark.location)}"
        description = f"The greatest estimated loss is {figure(mark.estimate)}{where}."
    return LossPanel(
        title="Loss function",
        caption=(
            "Above, how likely each output is under the left and the right input; below, the "
            "privacy loss |ln f − ln f'| of each output. Estimates from training draws: they show "
            "where it leaks, the certified bound says how much."
        ),
        description=description,
        curve=curve,
        outcomes=outcomes,
        mark=mark,
        claimed=result.claim.value if shows_claim else None,
    )


def _outcomes(data: Mapping[str, Any], draws: tuple[float, float]) -> OutcomeLosses:
    outcomes: Sequence[Any] = data["atoms"]
    n_left, n_right = draws
    left = np.array(data["left_atoms"], dtype=np.float64) / n_left
    right = np.array(data["right_atoms"], dtype=np.float64) / n_right
    are_numbers = all(
        isinstance(outcome, int | float) and not isinstance(outcome, bool) for outcome in outcomes
    )
    positions = outcomes if are_numbers else range(len(outcomes))
    return OutcomeLosses(
        names=tuple(plain(outcome, _MAX_OUTCOME_CHARACTERS) for outcome in outcomes),
        positions=np.array([float(position) for position in positions], dtype=np.float64),
        left=left,
        right=right,
        loss=_loss(left, right, floors=(_MIN_DRAWS / n_left, _MIN_DRAWS / n_right)),
    )


def _curve(data: Mapping[str, Any], draws: tuple[float, float]) -> LossCurve:
    """Densities by a Gaussian kernel over the stored bins."""
    if "low" not in data:
        nothing = np.empty(0)
        return LossCurve(points=nothing, left=nothing, right=nothing, loss=nothing, band=nothing)
    low = float(data["low"])
    high = float(data["high"])
    left_counts = np.array(data["left"], dtype=np.float64)
    right_counts = np.array(data["right"], dtype=np.float64)
    n_bins = len(left_counts)
    step = (high - low) / n_bins
    points = np.asarray(low + step * (np.arange(n_bins) + 0.5), dtype=np.float64)
    bandwidth = max(float(data["bandwidth"]) / step, _MIN_BANDWIDTH_BINS)
    # The weights that fall on the axis: near an end some of the kernel lies outside, and dividing
    # by them keeps the mass.
    inside = _smoothed(np.ones(n_bins), bandwidth)
    n_left, n_right = draws
    left = _smoothed(left_counts, bandwidth) / inside / (n_left * step)
    right = _smoothed(right_counts, bandwidth) / inside / (n_right * step)
    # A kernel of bandwidth h sees about 2·√π·h of the axis.
    window = max(2.0 * math.sqrt(math.pi) * bandwidth, 1.0)
    left_floor = _MIN_DRAWS / (window * n_left * step)
    right_floor = _MIN_DRAWS / (window * n_right * step)
    left_draws = np.maximum(left, left_floor) / left_floor * _MIN_DRAWS
    right_draws = np.maximum(right, right_floor) / right_floor * _MIN_DRAWS
    return LossCurve(
        points=points,
        left=left,
        right=right,
        loss=_loss(left, right, floors=(left_floor, right_floor)),
        band=_BAND_STANDARD_ERRORS * np.sqrt(1.0 / left_draws + 1.0 / right_draws),
    )


def _smoothed(counts: Floats, bandwidth: float) -> Floats:
    """Counts of bins convolved with a Gaussian; the bandwidth is in bins. Shape of `counts`."""
    reach = math.ceil(_KERNEL_REACH * bandwidth)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / bandwidth) ** 2)
    return np.convolve(counts, weights)[reach : reach + len(counts)]


def _loss(left: Floats, right: Floats, floors: tuple[float, float]) -> Floats:
    """|ln f − ln f'| with both floored; nan where neither side is above its floor."""
    left_floor, right_floor = floors
    ratio = np.maximum(left, left_floor) / np.maximum(right, right_floor)
    is_seen = (left > left_floor) | (right > right_floor)
    return np.asarray(np.where(is_seen, np.abs(np.log(ratio)), np.nan), dtype=np.float64)


def _mark(result: AuditResult, curve: LossCurve, outcomes: OutcomeLosses) -> LossMark:
    """Where the loss is greatest: as the local approach found it, else by the picture's curves."""
    finding = result.findings[0]
    location: Any = finding.details.get("location")
    estimate: Any = finding.details.get("estimate")
    is_known = isinstance(location, int | float) and isinstance(estimate, int | float)
    if finding.method == "local" and is_known:
        return LossMark(float(location), float(estimate))
    positions = np.concatenate([curve.points, outcomes.positions])
    losses = np.concatenate([curve.loss, outcomes.loss])
    if not np.isfinite(losses).any():
        return LossMark(None, 0.0)
    greatest = int(np.nanargmax(losses))
    return LossMark(float(positions[greatest]), float(losses[greatest]))
