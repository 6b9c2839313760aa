"""What a number of steps of the subsampled Gaussian mechanism promises together: DP-SGD's curve.

The privacy loss of one step is rounded up to a grid and convolved with itself, so that the result
is an upper bound: a claim made of it is never tighter than the truth.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, GaussianDP, TradeOffDP

# Distance of the grid points that losses are rounded up to, at least: ten steps move by .0005 in
# all, which moves power by less than 1e-4.
_LEAST_INTERVAL = 1e-4
# Grid points of the loss of all steps together, at most: the transform of so many takes a second.
_MOST_POINTS = 1 << 21
# Standard deviations of the noise beyond which a loss counts as infinite, with probability 1e-19.
_REACH = 9.0
# What rounding in the Fourier transform may add up to.
_ROUNDING = 1e-12
# Where the claim is evaluated: every (ε, δ) is implied, however coarse this is.
_EPSILONS = np.unique(
    np.concatenate([[0.0], np.geomspace(1e-3, 40.0, 200), np.linspace(0.0, 12.0, 200)])
)


@lru_cache(maxsize=64)
def composed_claim(rate: float, noise_multiplier: float, steps: int) -> Claim:
    """The trade-off curve of `steps` steps, for adding and for removing one record.

    Args:
        rate: the probability with which each record is in a batch, independently.
        noise_multiplier: the standard deviation of the noise, in clip norms.
        steps: how many steps.

    Guarantee: never tighter than the exact curve.

    Reference: Koskela, Jälkö, Honkela, "Computing tight differential privacy guarantees using FFT".
    """
    if rate == 1.0:
        return GaussianDP(math.sqrt(steps) / noise_multiplier)
    deltas = np.maximum(
        _deltas_of_removing(rate, noise_multiplier, steps),
        _deltas_of_adding(rate, noise_multiplier, steps),
    )
    pairs = zip(_EPSILONS.tolist(), np.minimum(deltas, 1.0).tolist(), strict=True)
    return TradeOffDP.from_accountant(list(pairs))


def _deltas_of_removing(rate: float, sigma: float, steps: int) -> Floats:
    """δ at each ε if the record is in the left dataset, shape (epsilons,)."""
    log_absent = math.log1p(-rate)

    def is_below(losses: Floats) -> Floats:
        """The probability that one step's loss is at most this."""
        x = _place_of_loss(losses, rate, sigma)
        below = (1.0 - rate) * ndtr(x / sigma) + rate * ndtr((x - 1.0) / sigma)
        return np.where(losses <= log_absent, 0.0, below)

    bottom = _loss_at(-_REACH * sigma, rate, sigma)
    top = _loss_at(1.0 + _REACH * sigma, rate, sigma)
    return _composed_deltas(is_below, bottom, top, steps)


def _deltas_of_adding(rate: float, sigma: float, steps: int) -> Floats:
    """δ at each ε if the record is in the right dataset, shape (epsilons,)."""
    greatest = -math.log1p(-rate)

    def is_below(losses: Floats) -> Floats:
        """The probability that one step's loss is at most this."""
        x = _place_of_loss(-losses, rate, sigma)
        return np.where(losses >= greatest, 1.0, ndtr(-x / sigma))

    bottom = -_loss_at(_REACH * sigma, rate, sigma)
    top = -_loss_at(-_REACH * sigma, rate, sigma)
    return _composed_deltas(is_below, bottom, top, steps)


def _loss_at(x: float, rate: float, sigma: float) -> float:
    """ln of the density with the record over that without it, at x."""
    return float(np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / sigma**2))


def _place_of_loss(losses: Floats, rate: float, sigma: float) -> Floats:
    """Where the loss has a value: the inverse of `_loss_at`; −∞ where it is larger everywhere."""
    with np.errstate(invalid="ignore", divide="ignore"):
        # e^loss − (1 − rate), without cancellation.
        excess = np.maximum(np.expm1(losses) + rate, 0.0)
        return np.asarray(0.5 + sigma**2 * (np.log(excess) - math.log(rate)))


def _composed_deltas(
    is_below: Callable[[Floats], Floats], bottom: float, top: float, steps: int
) -> Floats:
    """δ at each ε after some steps, shape (epsilons,).

    Args:
        is_below: the distribution function of one step's loss.
        bottom: losses below this are rounded up to it.
        top: losses above this count as infinite.
        steps: how many steps.
    """
    interval = max(_LEAST_INTERVAL, steps * (top - bottom) / _MOST_POINTS)
    first = math.floor(bottom / interval)
    last = math.ceil(top / interval)
    grid = np.arange(first, last + 1, dtype=np.float64) * interval
    below = is_below(grid)
    # Each loss is rounded up to the next point of the grid.
    masses = _sum_of_steps(np.diff(below, prepend=0.0), steps)
    losses = (first * steps + np.arange(len(masses))) * interval
    # δ(ε) is the sum of mass·(1 − e^(ε − loss)) over the losses above ε.
    chances = _tail_sums(masses)
    weighted = _tail_sums(masses * np.exp(-np.maximum(losses, 0.0)))
    above = np.searchsorted(losses, _EPSILONS, side="right")
    deltas = np.maximum(chances[above] - np.exp(_EPSILONS) * weighted[above], 0.0)
    finite_in_one_step = float(below[-1])
    infinite = 0.0
    if finite_in_one_step < 1.0:
        infinite = -math.expm1(steps * math.log(finite_in_one_step))
    return np.asarray(deltas + infinite + _ROUNDING)


def _sum_of_steps(masses: Floats, steps: int) -> Floats:
    """The distribution of a sum of independent losses, by the fast Fourier transform.

    Args:
        masses: the probabilities of one loss on the grid, shape (points,).
        steps: how many losses are added.

    Returns:
        Probabilities on the same grid, from `steps` times its beginning on.
    """
    n = steps * (len(masses) - 1) + 1
    size = _good_size(n)
    spectrum = np.fft.rfft(masses, size)
    summed = np.fft.irfft(spectrum**steps, size)[:n]
    return np.maximum(summed, 0.0)


def _tail_sums(values: Floats) -> Floats:
    """The sum of the values from each place on, and 0 behind the last one."""
    # From the end, so that small values are added first.
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def _good_size(n: int) -> int:
    """A power of two that is at least n."""
    return 1 << (n - 1).bit_length()
