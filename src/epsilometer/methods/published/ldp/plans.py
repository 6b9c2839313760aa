"""What a histogram estimate costs, before anything is drawn.

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy", Algorithms 1 and 2, equations (4) to (7).
"""

import math
from dataclasses import dataclass
from typing import Any

from epsilometer.bisection import rejected_end
from epsilometer.claims.base import check_at_least, check_confidence, check_positive
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.published.ldp import formulas
from epsilometer.methods.published.ldp.formulas import Smoothness
from epsilometer.one_line import fields_on_one_line

# More draws than this are refused unless the user raises the limit: a quarter of an hour with the
# fastest mechanisms.
MOST_DRAWS = 1_000_000_000
# The finest precision that is considered.
_FINEST = 1e-6
# The coarsest precision that is considered.
_COARSEST = 100.0
# Halvings of the search between them; 2^-60 of its range is below the spacing of floats.
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class HistogramPlan:
    """What an estimate within ± `precision` takes.

    Attributes:
        precision: γ.
        confidence: the probability with which the estimate is within γ.
        order: of the Rényi divergence; None for pure ε.
        smoothness: the assumption on the outputs.
        cells: m, sub-intervals of the domain.
        samples: n, draws per input.
        midpoints: k inputs in the middle of k sub-intervals of the input domain; None for one pair
            of inputs.
        draws: all draws together: n times the number of inputs, or 2n for each ordered pair.
        as_published: whether n is the paper's own; otherwise it includes a union bound over every
            count that may deviate.
        assumption: all assumptions in words.
        seconds: how long drawing will take; None if no mechanism was timed.
        fresh_pairs: whether each ordered pair of mid-points has samples of its own.
    """

    precision: float
    confidence: float
    order: float | None
    smoothness: Smoothness
    cells: int
    samples: int
    midpoints: int | None
    draws: int
    as_published: bool
    assumption: str
    seconds: float | None = None
    fresh_pairs: bool = False

    __repr__ = fields_on_one_line

    @property
    def width(self) -> float:
        """w, the length of a cell."""
        return self.smoothness.length / self.cells

    @property
    def floor(self) -> float:
        """τ, the least value that a density can have."""
        return self.smoothness.least_density

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as plain data."""
        return {
            "notion": "pure" if self.order is None else "renyi",
            "order": self.order,
            "precision": self.precision,
            "confidence": self.confidence,
            "domain": list(self.smoothness.domain),
            "lipschitz": self.smoothness.lipschitz,
            "floor": self.floor,
            "cells": self.cells,
            "width": self.width,
            "midpoints": self.midpoints,
            "samples": self.samples,
            "draws": self.draws,
            "as_published": self.as_published,
            "assumption": self.assumption,
            "seconds": self.seconds,
        }

    def draws_for(self, midpoints: int) -> int:
        """Returns all draws together for another number of mid-points than planned."""
        if self.fresh_pairs:
            return 2 * midpoints * (midpoints - 1) * self.samples
        return midpoints * self.samples

    def check_affordable(self, most_draws: float = MOST_DRAWS) -> "HistogramPlan":
        """Returns self; raises an InputError with the figure if it takes too many draws."""
        if self.draws > most_draws:
            raise InputError(
                f"precision={self.precision:g} at confidence={self.confidence:g} takes "
                f"{self.draws:,} draws ({self.samples:,} per input, {self.cells:,} cells), above "
                f"most_draws={most_draws:,.0f}; take a larger precision, raise most_draws, or "
                "choose a practical n= without guarantee"
            )
        return self


def plan_pair(
    smoothness: Smoothness,
    precision: float,
    confidence: float,
    order: float | None = None,
    as_published: bool = False,
) -> HistogramPlan:
    """Plans Algorithm 1, for one pair of inputs.

    As published, equation (5) has 4f without a factor m, although the cell with the largest ratio
    depends on the draws. The default is a union bound over all m cells (4mf); the Rényi inequality
    already has that factor.

    Args:
        smoothness: the assumption on the outputs.
        precision: γ.
        confidence: the probability with which the estimate is within γ.
        order: of the Rényi divergence; None for pure ε.
        as_published: whether to plan with the inequality as it is printed.
    """
    return plan_overall(
        smoothness,
        input_domain=None,
        input_lipschitz=None,
        precision=precision,
        confidence=confidence,
        order=order,
        as_published=as_published,
    )


def plan_overall(  # noqa: PLR0917  # researchers call it as the paper writes it
    smoothness: Smoothness,
    input_domain: tuple[float, float] | None,
    input_lipschitz: float | None,
    precision: float,
    confidence: float,
    order: float | None = None,
    as_published: bool = False,
    fresh_pairs: bool = False,
) -> HistogramPlan:
    """Plans Algorithm 2, for all pairs of k mid-points of an interval of inputs.

    Each pair is estimated within γ/3. As published, each of the k(k − 1) pairs has confidence √δ,
    whether two of them or all of them must be right. The default is a union bound over each cell of
    each sample: all pairs are right if no count deviates.

    Args:
        smoothness: the assumption on the outputs.
        input_domain: (c, d), the interval of inputs; None plans Algorithm 1 instead.
        input_lipschitz: D, the Lipschitz constant in the input.
        precision: γ.
        confidence: the probability with which the estimate is within γ.
        order: of the Rényi divergence; None for pure ε.
        as_published: whether to plan with the inequalities as they are printed.
        fresh_pairs: whether each ordered pair has two samples of its own, as Algorithm 2 invokes
            Algorithm 1; otherwise there is one sample per mid-point, for all pairs.
    """
    precision = check_positive("precision", precision)
    confidence = check_confidence(confidence)
    if order is not None:
        order = check_order(order)
    midpoints = None
    n_samples = 2
    pair_precision = precision
    pair_confidence = confidence
    assumption = smoothness.describe()
    if input_domain is not None:
        low, high = formulas.check_interval("input_domain", input_domain)
        slope = check_at_least("input_lipschitz", input_lipschitz, 0.0)
        midpoints = formulas.midpoints_for(smoothness, precision, order, slope, high - low)
        n_samples = 2 * midpoints * (midpoints - 1) if fresh_pairs else midpoints
        pair_precision = precision / 3.0
        if as_published:
            pair_confidence = math.sqrt(confidence)
        assumption += f", and {slope:.6g}-Lipschitz in the input on [{low:g}, {high:g}]"

    cells, deviation = formulas.resolution(smoothness, pair_precision, order)
    n_counts = cells * (2 if as_published else n_samples)
    if order is not None:
        n_deviations = n_counts
    elif as_published:
        n_deviations = 4
    else:
        n_deviations = 2 * n_counts
    samples = formulas.least_samples(
        deviation=deviation,
        # y = wτ, the least probability of a cell.
        cell_probability=smoothness.length / cells * smoothness.least_density,
        confidence=pair_confidence,
        n_empty=n_counts,
        n_deviations=n_deviations,
    )
    return HistogramPlan(
        precision=precision,
        confidence=confidence,
        order=order,
        smoothness=smoothness,
        cells=cells,
        samples=samples,
        midpoints=midpoints,
        draws=n_samples * samples,
        as_published=as_published,
        assumption=assumption,
        fresh_pairs=fresh_pairs,
    )


def affordable_precision(
    smoothness: Smoothness, samples: int, confidence: float, order: float | None
) -> float | None:
    """Returns the finest precision for one pair that takes at most `samples` draws per input.

    It is None if there is none.
    """

    def is_affordable(precision: float) -> bool:
        return plan_pair(smoothness, precision, confidence, order).samples <= samples

    if not is_affordable(_COARSEST):
        return None
    log_precision = rejected_end(
        lambda logarithm: is_affordable(math.exp(logarithm)),
        math.log(_COARSEST),
        math.log(_FINEST),
        _HALVINGS,
    )
    return math.exp(log_precision)
