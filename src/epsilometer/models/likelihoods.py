"""The best score of a canary whose gradient is known: the likelihood ratio of what was released."""

import math
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from epsilometer.arrays import Floats
from epsilometer.claims.base import as_number, check_positive
from epsilometer.errors import InputError
from epsilometer.stability.vectors import opened, refuse_complex


@overload
def subsampled_score(
    projections: list[float] | tuple[float, ...], rate: float, noise_multiplier: float
) -> float: ...
@overload
def subsampled_score(
    projections: ArrayLike, rate: float, noise_multiplier: float
) -> float | Floats: ...
def subsampled_score(
    projections: ArrayLike, rate: float, noise_multiplier: float
) -> float | Floats:
    """The log-likelihood ratio of noisy projections with a canary against those without it.

    In every step the canary is in the batch with probability `rate`, and then moves the projection
    by 1. No other score of the projections tells the two apart better.

    Args:
        projections: shape (..., steps), the noisy gradients along the canary's direction, in units
            of the clip norm: multiply those of an average by the expected batch size
            (`Recorder.scores` does).
        rate: the probability with which each record is in a batch.
        noise_multiplier: the standard deviation of the noise, in clip norms.

    Returns:
        The sum over steps of ln(1 − rate + rate·e^((2x − 1)/(2·noise_multiplier²))), one number per
        run: shape (...,), or a float for a single run.

    Example:
        >>> from epsilometer import models
        >>> round(models.subsampled_score([0.0, 1.0], rate=1.0, noise_multiplier=1.0), 3)
        0.0
    """
    sigma = check_positive("noise_multiplier", noise_multiplier)
    probability = as_number("rate", rate)
    if not 0.0 < probability <= 1.0:
        raise InputError(f"rate={rate!r} must be above 0 and at most 1")
    if isinstance(projections, list | tuple):
        projections = [opened(row) for row in projections]
    refuse_complex("projections", str(getattr(projections, "dtype", "")).rpartition(".")[2])
    try:
        along = np.asarray(opened(projections), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"projections must be numbers: {error}") from error
    if along.ndim == 0:
        raise InputError(f"projections={projections!r} must have one number per step")
    if_included = math.log(probability) + (along - 0.5) / sigma**2
    if probability < 1.0:
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            if_included = np.logaddexp(math.log1p(-probability), if_included)
    total = if_included.sum(axis=-1)
    return float(total) if along.ndim == 1 else np.asarray(total)
