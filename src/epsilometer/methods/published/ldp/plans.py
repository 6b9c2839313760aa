"""What a histogram estimate will cost, before anything is drawn."""

import math
from dataclasses import dataclass
from typing import Any

from epsilometer.bisection import rejected_end
from epsilometer.claims.base import check_at_least, check_confidence, check_positive
from epsilometer.claims.renyi import check_order
from epsilometer.errors import InputError
from epsilometer.methods.published.ldp import formulas
from epsilometer.methods.published.ldp.formulas import Smoothness

# More draws than this are refused unless the user raises the limit: a quarter of an hour with the
# fastest mechanisms.
MOST_DRAWS = 1_000_000_000
# The range in which the finest affordable precision is looked for.
_FINEST = 1e-6
_COARSEST = 100.0
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
        draws: all draws together, n times the number of inputs.
        as_published: whether n is the paper's own; otherwise it pays for every count that may
            deviate.
        assumption: all assumptions in words.
        seconds: how long drawing will take; None if no mechanism was timed.
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

    @property
    def width(self) -> float:
        """w, the length of a cell."""
        return self.smoothness.length / self.cells

    @property
    def floor(self) -> float:
        """τ, the least value that a density can have."""
        return self.smoothness.least_density

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        known: dict[str, Any] = {
            "notion": "pure" if self.order is None else "renyi",
            "order": self.order,
        }
        known |= {
            "precision": self.precision,
            "confidence": self.confidence,
            "domain": list(self.smoothness.domain),
        }
        known["lipschitz"] = self.smoothness.lipschitz
        others = (
            "floor",
            "cells",
            "width",
            "midpoints",
            "samples",
            "draws",
            "as_published",
            "assumption",
            "seconds",
        )
        return known | {name: getattr(self, name) for name in others}

    def check_affordable(self, most_draws: float = MOST_DRAWS) -> "HistogramPlan":
        """Itself, or an InputError with the figure if it takes too many draws."""
        if self.draws > most_draws:
            raise InputError(
                f"precision={self.precision:g} at confidence={self.confidence:g} takes {self.draws:,} draws "
                f"({self.samples:,} per input, {self.cells:,} cells), above most_draws={most_draws:,.0f}; take a "
                "larger precision, raise most_draws, or choose a practical n= without guarantee"
            )
        return self


def plan_pair(
    smoothness: Smoothness,
    precision: float,
    confidence: float,
    order: float | None = None,
    as_published: bool = False,
) -> HistogramPlan:
    """The plan of Algorithm 1: one pair of inputs.

    As published, equation (5) has 4f without a factor m, although the cell with the largest ratio
    depends on the draws. The default pays for all m cells (4mf); the Rényi inequality already has
    that factor.
    """
    return plan_overall(smoothness, None, None, precision, confidence, order, as_published)


def plan_overall(
    smoothness: Smoothness,
    input_domain: tuple[float, float] | None,
    input_lipschitz: float | None,
    precision: float,
    confidence: float,
    order: float | None = None,
    as_published: bool = False,
) -> HistogramPlan:
    """The plan of Algorithm 2: all pairs of k mid-points of the input interval, each estimated within γ/3.

    Without an input interval it is that of Algorithm 1.

    As published, each of the k(k − 1) pairs has confidence √δ, although they share samples. The
    default pays for each cell of each mid-point once: all pairs are right if no count deviates.
    """
    precision = check_positive("precision", precision)
    confidence = check_confidence(confidence)
    order = None if order is None else check_order(order)
    midpoints = None
    n_inputs = 2
    assumption = smoothness.describe()
    each = precision
    pair_confidence = confidence
    if input_domain is not None:
        low, high = formulas.check_interval("input_domain", input_domain)
        slope = check_at_least("input_lipschitz", input_lipschitz, 0.0)
        midpoints = n_inputs = formulas.midpoints_for(
            smoothness, precision, order, slope, high - low
        )
        assumption += f", and {slope:.6g}-Lipschitz in the input on [{low:g}, {high:g}]"
        each = precision / 3.0
        pair_confidence = math.sqrt(confidence) if as_published else confidence
    cells, deviation = formulas.resolution(smoothness, each, order)
    # y = wτ, the least probability of a cell
    share = smoothness.length / cells * smoothness.least_density
    counts = cells * (2 if as_published else n_inputs)
    n_deviations = counts if order is not None else 4 if as_published else 2 * counts
    samples = formulas.least_samples(deviation, share, pair_confidence, counts, n_deviations)
    sizes = cells, samples, midpoints, n_inputs * samples
    return HistogramPlan(precision, confidence, order, smoothness, *sizes, as_published, assumption)


def affordable_precision(
    smoothness: Smoothness, samples: int, confidence: float, order: float | None
) -> float | None:
    """The finest precision whose plan for one pair takes at most `samples` per input; None if there is none."""

    def is_affordable(precision: float) -> bool:
        return plan_pair(smoothness, precision, confidence, order).samples <= samples

    if not is_affordable(_COARSEST):
        return None
    ends = math.log(_COARSEST), math.log(_FINEST)
    return math.exp(
        rejected_end(lambda logarithm: is_affordable(math.exp(logarithm)), *ends, _HALVINGS)
    )
