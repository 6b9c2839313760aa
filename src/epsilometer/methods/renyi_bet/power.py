"""What a bet could have found: the other half of "not refuted"."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from epsilometer.methods.base import Task
from epsilometer.methods.renyi_bet.choosing import per_order, predict
from epsilometer.outputs.log_ratio import LogRatio

Floats = NDArray[np.float64]

# Normal quantile of the promised power, 90 %.
_POWER = 1.2816
# The law is tilted at most so far along the score.
_MOST_TILT = 16.0
_HALVINGS = 30


def detectable_value(score: LogRatio, flipped: bool, task: Task, n_train: int) -> float | None:
    """The smallest true value that the bet would have refuted with 90 % power.

    The laws considered are the other law tilted along the score: densities proportional to e^(t·h). None when none of
    them would have been refuted.
    """
    n_fresh = task.n_fresh[::-1] if flipped else task.n_fresh
    unit = per_order(task, score.order)

    def is_refuted(tilt: float) -> bool:
        ratio, p = _tilted(score, tilt)
        counts = p * n_train, score.q * n_train
        stake = np.ones(1)
        bound = predict(ratio[None, :], score.order, *counts, n_fresh, task.failure_probability, stake)[0][0]
        return unit * (float(bound) - _POWER * _spread(ratio, p, score, n_fresh)) > task.claim.value

    low, high = 0.0, _MOST_TILT
    if not is_refuted(high):
        high = next((tilt for tilt in (8.0, 4.0, 2.0, 1.0, 0.5) if is_refuted(tilt)), 0.0)
    if high == 0.0:
        return None
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_refuted(middle) else (middle, high)
    return unit * _divergence(score, high)


def _tilted(score: LogRatio, tilt: float) -> tuple[Floats, Floats]:
    """The log-ratio of the tilted law, and the law itself."""
    logs = tilt * score.scores
    top = float(logs.max())
    total = top + math.log(float(score.q @ np.exp(logs - top)) or 1e-300)
    ratio = logs - total
    return ratio, score.q * np.exp(ratio)


def _divergence(score: LogRatio, tilt: float) -> float:
    ratio, p = _tilted(score, tilt)
    powers = (score.order - 1.0) * ratio
    top = float(powers.max())
    return (top + math.log(float(p @ np.exp(powers - top)))) / (score.order - 1.0)


def _spread(ratio: Floats, p: Floats, score: LogRatio, n_fresh: tuple[int, int]) -> float:
    """Standard deviation of the bound."""
    growth = score.order / (score.order - 1.0)
    gain = np.exp((score.order - 1.0) * ratio)
    pay = np.exp(score.order * ratio)
    left = float(p @ gain**2) / max(float(p @ gain) ** 2, 1e-300) - 1.0
    right = float(score.q @ pay**2) / max(float(score.q @ pay) ** 2, 1e-300) - 1.0
    return math.sqrt(max(growth**2 * left / n_fresh[0] + right / n_fresh[1], 0.0))
