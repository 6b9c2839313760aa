"""What the picture of a loss function shows, as plain numbers; `loss_plot` draws it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.report.panels import Panel
from epsilometer.report.showing import figure, plain
from epsilometer.result import AuditResult

Floats = NDArray[np.float64]
# Fewer draws than this (in the window of the kernel, or of an outcome) on both sides: the loss there is all noise.
_FEWEST = 60.0


@dataclass(frozen=True, slots=True)
class LossPanel(Panel):
    """Two laws and the loss between them.

    Attributes:
        points: shape (m,), outputs where densities were estimated; empty for a discrete law.
        left: shape (m,), density under the left input.
        right: shape (m,), under the right.
        loss: shape (m,), nan where both are too small to tell.
        atoms: names of the outcomes that repeat.
        atom_places: shape (k,), where they stand: their value, or their number for names.
        left_atoms: shape (k,), their probabilities under the left input.
        right_atoms: shape (k,).
        atom_loss: shape (k,), nan where both are too small to tell.
        location: where the loss is marked: a place on the axis of the points or atoms.
        estimate: the loss there.
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


def loss_panel(result: AuditResult) -> LossPanel | None:
    """The loss function of a result with one-dimensional outputs; None where the result does not hold it."""
    data = next(
        (f.details["densities"] for f in result.findings if isinstance(f.details.get("densities"), Mapping)), None
    )
    if data is None:
        return None
    try:
        return _panel(data, result)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError):  # a stored file may hold anything
        return None


def _panel(data: Mapping[str, Any], result: AuditResult) -> LossPanel:
    n = [float(size) for size in data["n"]]
    names, places = _places(data["atoms"])
    atoms = [np.array(data[key], dtype=np.float64) for key in ("left_atoms", "right_atoms")]
    atom_shares = [counts / size for counts, size in zip(atoms, n, strict=True)]
    atom_loss = _loss(atom_shares, [_FEWEST / size for size in n])
    points, densities, loss = _curves(data, n)
    location, estimate = _mark(result, points, loss, places, atom_loss)
    where = "" if location is None else f" near the output {figure(location)}" if len(points) else ""
    return LossPanel(
        "Loss function",
        "Above, how likely each output is under the left and the right input; below, the privacy loss |ln f − ln f'| "
        "of each output. Estimates from training draws: they show where it leaks, the certified bound says how much.",
        f"The greatest estimated loss is {figure(estimate)}{where}.",
        points,
        densities[0],
        densities[1],
        loss,
        names,
        places,
        atom_shares[0],
        atom_shares[1],
        atom_loss,
        location,
        estimate,
    )


def _places(atoms: Sequence[Any]) -> tuple[tuple[str, ...], Floats]:
    """Names of the outcomes and where they stand on the axis."""
    is_number = [isinstance(atom, int | float) and not isinstance(atom, bool) for atom in atoms]
    places = [float(atom) for atom in atoms] if all(is_number) else [float(place) for place in range(len(atoms))]
    return tuple(plain(atom, 24) for atom in atoms), np.array(places, dtype=np.float64)


def _curves(data: Mapping[str, Any], n: list[float]) -> tuple[Floats, list[Floats], Floats]:
    if "low" not in data:
        nothing = np.empty(0)
        return nothing, [nothing, nothing], nothing
    low, high = float(data["low"]), float(data["high"])
    counts = [np.array(data[key], dtype=np.float64) for key in ("left", "right")]
    step = (high - low) / len(counts[0])
    points = np.asarray(low + step * (np.arange(len(counts[0])) + 0.5), dtype=np.float64)
    width = max(float(data["bandwidth"]) / step, 0.3)
    smooth = [_smoothed(side, width) for side in counts]
    # A kernel of bandwidth h sees about 2·√π·h of the axis.
    window = max(2.0 * math.sqrt(math.pi) * width, 1.0)
    densities = [side / (size * step) for side, size in zip(smooth, n, strict=True)]
    return points, densities, _loss(densities, [_FEWEST / (window * size * step) for size in n])


def _smoothed(counts: Floats, width: float) -> Floats:
    """Counts smoothed by a Gaussian of that many bins; the ends lose no mass."""
    reach = math.ceil(4.0 * width)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    inside = slice(reach, reach + len(counts))
    mass, most = (np.convolve(each, weights)[inside] for each in (counts, np.ones(len(counts))))
    return np.asarray(mass / most, dtype=np.float64)


def _loss(sides: Sequence[Floats], floors: Sequence[float]) -> Floats:
    """|ln f − ln f'| with both floored; nan where neither side is above its floor."""
    floored = [np.maximum(side, floor) for side, floor in zip(sides, floors, strict=True)]
    seen = (sides[0] > floors[0]) | (sides[1] > floors[1])
    return np.asarray(np.where(seen, np.abs(np.log(floored[0] / floored[1])), np.nan), dtype=np.float64)


def _mark(
    result: AuditResult, points: Floats, loss: Floats, places: Floats, atom_loss: Floats
) -> tuple[float | None, float]:
    """Where the loss is greatest: as the local approach found it, or by the picture's own curves."""
    details = result.findings[0].details
    location, estimate = details.get("location"), details.get("estimate")
    if result.findings[0].method == "local" and isinstance(location, int | float) and isinstance(estimate, int | float):
        return float(location), float(estimate)
    xs, ys = np.concatenate([points, places]), np.concatenate([loss, atom_loss])
    if not np.isfinite(ys).any():
        return None, 0.0
    best = int(np.nanargmax(ys))
    return float(xs[best]), float(ys[best])
