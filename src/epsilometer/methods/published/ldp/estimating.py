"""Two-sided estimates of local privacy, for one pair of inputs or for an interval of them.

`estimate` is Algorithm 1, `overall` is Algorithm 2; `lipschitz_hint` helps to judge the assumption
that both rest on.

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy".
"""

import operator
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_whole
from epsilometer.engine import NoProgress, Phase, Progress, Sampler, check_seed, open_runner
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import as_pair
from epsilometer.mechanisms import as_mechanism, as_subject
from epsilometer.methods.published.ldp import formulas
from epsilometer.methods.published.ldp.formulas import CellCounts, Smoothness
from epsilometer.methods.published.ldp.plans import (
    MOST_DRAWS,
    HistogramPlan,
    plan_overall,
    plan_pair,
)

# Fewer cells than this show no slope at all.
_FEWEST_CELLS = 4


@dataclass(frozen=True, slots=True)
class LocalEstimate:
    """A two-sided estimate of ε (or of a Rényi divergence).

    Attributes:
        estimate: the value; biased upwards when cells hold few samples: it is a maximum of noisy
            ratios.
        interval: estimate ± precision, clipped at 0.
        precision: half of its length.
        confidence: with which the interval holds the truth, if the guarantee is not "none".
        guarantee: "conditional: …", or "none: practical n".
        assumption: what the guarantee rests on, in words.
        order: of the Rényi divergence; None for pure ε.
        pair: the inputs with the largest estimate, left‖right.
        cells: cells per input.
        samples: draws per input.
        midpoints: inputs that were drawn from; None for one pair.
        planned_samples: the samples per input that the guarantee needs.
        seed: of all draws.
    """

    estimate: float
    interval: tuple[float, float]
    precision: float
    confidence: float
    guarantee: str
    assumption: str
    order: float | None
    pair: Pair
    cells: int
    samples: int
    midpoints: int | None
    planned_samples: int
    seed: int


def estimate(
    mechanism: object,
    pair: Pair | tuple[Any, Any] | None = None,
    *,
    precision: float,
    confidence: float = 0.95,
    domain: tuple[float, float] | None = None,
    lipschitz: float | None = None,
    n: int | None = None,
    order: float | None = None,
    as_published: bool = False,
    most_draws: float = MOST_DRAWS,
    seed: int | None = None,
    jobs: int = 1,
    engine: object = "local",
    progress: Progress | None = None,
) -> LocalEstimate:
    """Estimates ε* = sup ln(p/q), or the Rényi divergence, of left from right (Algorithm 1).

    Args:
        mechanism: as `epsilometer.audit` takes it; its outputs are numbers of the domain.
        pair: the two inputs; None for the worst pair of a zoo entry. Swap them for the other
            direction.
        precision: γ, the half length of the interval.
        confidence: the probability with which the interval holds the truth.
        domain: (a, b); None for that of a zoo entry. Outputs outside it are an error, which counts
            them.
        lipschitz: C, a Lipschitz constant of both output densities, below 2/(b − a)²; None for a
            zoo entry's own.
        n: samples per input; None for the planned number. Fewer than planned give an estimate
            without guarantee.
        order: estimates the Rényi divergence of this order instead of ε.
        as_published: plans with the paper's inequality (5) as it is printed, without the union
            bound over cells.
        most_draws: a plan with more draws is refused, with the figure.
        seed: makes the estimate repeatable; None takes fresh entropy and records it.
        jobs: worker processes.
        engine: where they run.
        progress: notified of every drawn chunk.

    Guarantee: conditional on the Lipschitz assumption: the truth is in the interval with
        probability at least `confidence`, if n is None or at least the planned number. None for a
        smaller n.

    Reference: Gorla et al. (2023), Algorithm 1, Theorem 2, and their Rényi versions.
    """
    inputs = as_pair(as_subject(mechanism).worst_pair if pair is None else pair)
    smoothness = find_smoothness(mechanism, domain, lipschitz)
    plan = plan_pair(smoothness, precision, confidence, order, as_published)
    samples = check_n(n, plan, most_draws)
    sampler = _open_sampler(mechanism, seed, jobs, engine, progress)
    cells = formulas.Cells(smoothness.domain, plan.cells)
    with closing(sampler.runner):
        left, right = sampler.fold(Phase.CERTIFY, 0, inputs, samples, (cells.count, cells.count))
    formulas.check_inside(cells, left.total, right.total)
    formulas.check_filled(cells, left.total, right.total)
    return _local_estimate(
        plan,
        value=formulas.divergence(left.total, right.total, plan.order),
        pair=inputs,
        samples=samples,
        midpoints=None,
        seed=sampler.seed,
    )


def overall(
    mechanism: object,
    *,
    precision: float,
    confidence: float = 0.95,
    domain: tuple[float, float] | None = None,
    lipschitz: float | None = None,
    input_domain: tuple[float, float] | None = None,
    input_lipschitz: float | None = None,
    n: int | None = None,
    midpoints: int | None = None,
    order: float | None = None,
    as_published: bool = False,
    most_draws: float = MOST_DRAWS,
    seed: int | None = None,
    jobs: int = 1,
    engine: object = "local",
    progress: Progress | None = None,
) -> LocalEstimate:
    """Estimates the level over all pairs of inputs in an interval (Algorithm 2).

    Every mid-point is drawn from once, and all ordered pairs of them are compared on the same
    counts.

    Args:
        input_domain: (c, d), where inputs (numbers) lie; None for that of a zoo entry.
        input_lipschitz: D, a Lipschitz constant of the density at every output as a function of the
            input.
        midpoints: k; None for the planned number. Fewer than planned give an estimate without
            guarantee.

    The other arguments are those of `estimate`.

    Guarantee: conditional on both Lipschitz assumptions; none for an n or a number of mid-points
        below the plan.

    Reference: Gorla et al. (2023), Algorithm 2, Theorem 3, and their Rényi versions.
    """
    smoothness = find_smoothness(mechanism, domain, lipschitz)
    interval = _given_or_own("input_domain", mechanism, input_domain)
    slope = _given_or_own("input_lipschitz", mechanism, input_lipschitz)
    plan = plan_overall(smoothness, interval, slope, precision, confidence, order, as_published)
    n_midpoints = check_whole(
        "midpoints",
        plan.midpoints if midpoints is None else midpoints,
        2,
        ", or None for the planned ones",
    )
    samples = check_n(n, plan, most_draws, n_midpoints)
    sampler = _open_sampler(mechanism, seed, jobs, engine, progress)
    cells = formulas.Cells(smoothness.domain, plan.cells)
    inputs = middle_points(interval, n_midpoints)
    counts: list[CellCounts] = []
    with closing(sampler.runner):
        for number, x in enumerate(inputs):
            chunks = sampler.chunks(Phase.CERTIFY, number, Pair(x, x), 0, samples, cells.count)
            counts.append(reduce(operator.add, (chunk.value for chunk in chunks)))
    formulas.check_inside(cells, *counts)
    formulas.check_filled(cells, *counts)
    greatest = greatest_divergence(counts, plan.order)
    return _local_estimate(
        plan,
        value=greatest.value,
        pair=Pair(inputs[greatest.left], inputs[greatest.right]),
        samples=samples,
        midpoints=n_midpoints,
        seed=sampler.seed,
    )


def _local_estimate(
    plan: HistogramPlan,
    *,
    value: float,
    pair: Pair,
    samples: int,
    midpoints: int | None,
    seed: int,
) -> LocalEstimate:
    """Returns an estimate with its interval and guarantee."""
    return LocalEstimate(
        estimate=value,
        interval=(max(0.0, value - plan.precision), value + plan.precision),
        precision=plan.precision,
        confidence=plan.confidence,
        guarantee=guarantee_of(plan, samples, midpoints),
        assumption=plan.assumption,
        order=plan.order,
        pair=pair,
        cells=plan.cells,
        samples=samples,
        midpoints=midpoints,
        planned_samples=plan.samples,
        seed=seed,
    )


def guarantee_of(plan: HistogramPlan, samples: int, midpoints: int | None = None) -> str:
    """Returns the guarantee of an estimate with these samples (and mid-points)."""
    below_plan: list[str] = []
    if samples < plan.samples:
        below_plan.append("n")
    if midpoints is not None and plan.midpoints is not None and midpoints < plan.midpoints:
        below_plan.append("k")
    if below_plan:
        return f"none: practical {' and '.join(below_plan)}"
    guarantee = f"conditional: {plan.assumption}"
    if plan.as_published:
        guarantee += "; n as published, whose proof leaves out a union bound"
    return guarantee


# --- inputs and settings ----------------------------------------------------------------------


def find_smoothness(
    mechanism: object, domain: tuple[float, float] | None, lipschitz: float | None
) -> Smoothness:
    """Returns the assumption as given, or as a zoo entry brings it."""
    return Smoothness(
        domain=_given_or_own("domain", mechanism, domain),
        lipschitz=_given_or_own("lipschitz", mechanism, lipschitz),
    )


def _given_or_own(name: str, mechanism: object, value: Any) -> Any:
    """Returns a given value, or the attribute of this name that a zoo entry has."""
    if value is None:
        value = getattr(mechanism, name, None)
    if value is None:
        raise InputError(
            f"{name}= is needed: it is part of the assumption that an estimate with an interval "
            "rests on"
        )
    return value


def check_n(
    n: int | None, plan: HistogramPlan, most_draws: float, midpoints: int | None = None
) -> int:
    """Returns the samples per input: as given, or as planned if that is affordable."""
    if n is not None:
        return check_whole("n", n, 1, f", or None for the planned {plan.samples:,}")
    if midpoints is None or midpoints == plan.midpoints:
        plan.check_affordable(most_draws)
    elif plan.samples * midpoints > most_draws:
        raise InputError(
            f"{plan.samples * midpoints:,} draws are planned, above most_draws={most_draws:,.0f}"
        )
    return plan.samples


def _open_sampler(
    mechanism: object, seed: int | None, jobs: int, engine: object, progress: Progress | None
) -> Sampler:
    return Sampler(
        as_mechanism(mechanism),
        check_seed(seed),
        open_runner(jobs, engine),
        progress or NoProgress(),
    )


def middle_points(interval: tuple[float, float], k: int) -> list[float]:
    """Returns the mid-points of k equal parts of an interval."""
    low, high = interval
    return [low + (number + 0.5) * (high - low) / k for number in range(k)]


# --- all pairs of inputs ----------------------------------------------------------------------


class GreatestDivergence(NamedTuple):
    """The largest estimate over all ordered pairs of inputs.

    Attributes:
        value: the estimate.
        left: the number of the left input.
        right: the number of the right input.
    """

    value: float
    left: int
    right: int


def greatest_divergence(counts: Sequence[CellCounts], order: float | None) -> GreatestDivergence:
    """Finds the largest estimate over all ordered pairs of inputs.

    Args:
        counts: of each input, k of them.
        order: of the Rényi divergence; None for pure ε.
    """
    log_frequencies = np.log([side.counts / side.total for side in counts])
    if order is None:
        # The largest difference of two rows in one column: the extremes of that column.
        ranges = log_frequencies.max(axis=0) - log_frequencies.min(axis=0)
        cell = int(np.argmax(ranges))
        return GreatestDivergence(
            value=float(ranges[cell]),
            left=int(np.argmax(log_frequencies[:, cell])),
            right=int(np.argmin(log_frequencies[:, cell])),
        )
    best = GreatestDivergence(value=-np.inf, left=0, right=0)
    for left, row in enumerate(log_frequencies):
        # The divergence from every input at once, shape (k,).
        log_terms = order * row + (1.0 - order) * log_frequencies
        values = np.logaddexp.reduce(log_terms, axis=1) / (order - 1.0)
        values[left] = -np.inf
        right = int(np.argmax(values))
        # Ties go to the later pair, as tuples are ordered.
        best = max(best, GreatestDivergence(float(values[right]), left, right))
    return best


# --- how steep the densities are --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LipschitzHint:
    """How steep the densities seem.

    Attributes:
        lipschitz: the largest slope between neighbouring cells of one input: C seems to be at least
            about this.
        noise: the standard deviation that chance alone gives such a slope.
        input_lipschitz: the largest slope between neighbouring inputs; None if they are not
            numbers.
        note: says that this is a hint.
    """

    lipschitz: float
    noise: float
    input_lipschitz: float | None
    note: str = (
        "a hint from pilot draws, not a bound: a density may be steeper between the cells, or on "
        "inputs that were not drawn"
    )


def lipschitz_hint(
    mechanism: object,
    inputs: Sequence[Any],
    *,
    domain: tuple[float, float],
    n: int = 100_000,
    seed: int | None = None,
) -> LipschitzHint:
    """Looks at the slopes of coarse histograms.

    Args:
        mechanism: as `epsilometer.audit` takes it.
        inputs: what to run it on; if they are numbers, slopes between them are estimated, too.
        domain: (a, b), where all outputs lie.
        n: pilot draws per input.
        seed: of the draws.

    Guarantee: none. Do not treat a constant that was estimated from draws as known.
    """
    if len(inputs) < 1 or n < _FEWEST_CELLS:
        raise InputError(
            f"inputs={inputs!r:.100}, n={n!r}: at least one input and {_FEWEST_CELLS} draws are "
            "needed"
        )
    low, high = formulas.check_interval("domain", domain)
    # The fifth root keeps the noise of a slope, about √(m³/n), falling as n grows.
    cells = formulas.Cells((low, high), max(_FEWEST_CELLS, round(n**0.2)))
    sampler = Sampler(as_mechanism(mechanism), check_seed(seed))
    counts: list[CellCounts] = []
    for number, x in enumerate(inputs):
        counts.append(cells.count(sampler.outputs(Phase.TRAIN, number, Pair(x, x), 0, n)))
    formulas.check_inside(cells, *counts)
    width = (high - low) / cells.number
    densities = np.array([side.counts / n / width for side in counts])
    slopes = np.abs(np.diff(densities, axis=1)) / width
    noise = float(np.sqrt(2.0 * densities.max() / (n * width))) / width
    return LipschitzHint(
        lipschitz=float(slopes.max()),
        noise=noise,
        input_lipschitz=_input_slope(densities, inputs),
    )


def _input_slope(densities: Floats, inputs: Sequence[Any]) -> float | None:
    """Returns the largest slope between neighbouring inputs; None if they are not numbers.

    Args:
        densities: shape (inputs, cells).
        inputs: what the mechanism ran on.
    """
    if len(inputs) < 2 or not all(isinstance(x, int | float) for x in inputs):
        return None
    numbers = np.asarray(inputs, dtype=np.float64)
    order = np.argsort(numbers, kind="stable")
    gaps = np.diff(numbers[order])
    rises = np.abs(np.diff(densities[order], axis=0)).max(axis=1)
    is_apart = gaps > 0
    if not is_apart.any():
        return None
    return float((rises[is_apart] / gaps[is_apart]).max())
