"""Two-sided estimates of local privacy, for one pair of inputs or for an interval of them.

`estimate` is Algorithm 1 or, with `interval="exact"`, an interval of our own that holds for every
number of draws; `overall` is Algorithm 2; `lipschitz_hint` helps to judge the assumption that all
of them rest on.

Reference: Gorla, Jalouzot, Granese, Palamidessi, Piantanida (2023), "On the (im)possibility of
    estimating various notions of differential privacy".
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_choice, check_confidence, check_whole
from epsilometer.claims.renyi import check_order
from epsilometer.engine import NoProgress, Phase, Progress, Sampler, check_seed, open_helpful_runner
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import as_pair
from epsilometer.mechanisms import as_audit_target, as_mechanism
from epsilometer.methods.published.ldp import formulas, intervals
from epsilometer.methods.published.ldp.formulas import CellCounts, LipschitzDensities, Smoothness
from epsilometer.methods.published.ldp.midpoints import (
    count_midpoints,
    count_pairs,
    middle_points,
)
from epsilometer.methods.published.ldp.plans import (
    MOST_DRAWS,
    HistogramPlan,
    plan_overall,
    plan_pair,
)
from epsilometer.one_line import fields_on_one_line

# How the ends of an interval are found: by a plan made beforehand, or from the counts.
INTERVALS = ("planned", "exact")
# From which draws the pairs of mid-points are estimated, and what an empty cell does.
SHARINGS = ("midpoints", "pairs")
EMPTY_CELLS = ("refuse", "skip")
# Fewer cells than this show no slope at all.
_FEWEST_CELLS = 4


@dataclass(frozen=True, slots=True)
class LocalEstimate:
    """A two-sided estimate of ε (or of a Rényi divergence).

    Attributes:
        estimate: the value; biased upwards when cells hold few samples: it is a maximum of noisy
            ratios.
        interval: estimate ± precision, clipped at 0; the exact one is not centred.
        precision: half of its length; inf where the exact interval has no upper end.
        confidence: with which the interval holds the truth, if the guarantee is not "none".
        guarantee: "conditional: …", or "none: practical n".
        assumption: what the guarantee rests on, in words.
        order: of the Rényi divergence; None for pure ε.
        pair: the inputs with the largest estimate, left‖right.
        cells: cells per input; with one, an exact interval is what the assumption alone allows.
        samples: draws per input.
        midpoints: inputs that were drawn from; None for one pair.
        planned_samples: the samples per input that the guarantee needs.
        seed: of all draws.
        failed_pairs: pairs of mid-points left out because a cell was empty.
    """

    estimate: float
    interval: tuple[float, float]
    precision: float
    confidence: float
    guarantee: str
    assumption: str = field(repr=False)  # it ends the guarantee, too
    order: float | None
    pair: Pair
    cells: int
    samples: int
    midpoints: int | None
    planned_samples: int
    seed: int
    failed_pairs: int = 0

    __repr__ = fields_on_one_line

    @property
    def lower(self) -> float:
        """The lower end of the interval."""
        return self.interval[0]

    @property
    def upper(self) -> float:
        """The upper end of the interval."""
        return self.interval[1]


def estimate(
    mechanism: object,
    pair: Pair | tuple[Any, Any] | None = None,
    *,
    precision: float | None = None,
    confidence: float = 0.95,
    domain: tuple[float, float] | None = None,
    lipschitz: float | None = None,
    n: int | None = None,
    order: float | None = None,
    interval: str = "planned",
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
        precision: γ, the half length of the planned interval; the exact one has the length that its
            draws give.
        confidence: the probability with which the interval holds the truth.
        domain: (a, b); None for that of a zoo entry. Outputs outside it are an error, which counts
            them.
        lipschitz: C, a Lipschitz constant of both output densities, below 2/(b − a)² for a planned
            interval; None for a zoo entry's own.
        n: samples per input; None for the planned number. Fewer than planned give an estimate
            without guarantee. An exact interval takes any n, and needs it.
        order: estimates the Rényi divergence of this order instead of ε.
        interval: "planned" is the paper's, estimate ± precision; "exact" takes exact binomial
            limits of every cell, widened by what C allows within it. The cells are fixed by n, C
            and the confidence before anything is drawn.
        as_published: plans with the paper's inequality (5) as it is printed, without the union
            bound over cells.
        most_draws: a plan with more draws is refused, with the figure.
        seed: makes the estimate repeatable; None takes fresh entropy and records it.
        jobs: worker processes.
        engine: where they run.
        progress: notified of every drawn chunk.

    Guarantee: conditional on the Lipschitz assumption: the truth is in the interval with
        probability at least `confidence`: the exact one for every n, the planned one if n is None
        or at least the planned number. None for a smaller n.

    Reference: Gorla et al. (2023), Algorithm 1, Theorem 2, and their Rényi versions.
    """
    inputs = as_pair(as_audit_target(mechanism).worst_pair if pair is None else pair)
    if check_choice("interval", interval, INTERVALS) == "exact":
        _check_no_plan(precision, as_published)
        sampler = _open_sampler(mechanism, seed, jobs, engine, progress)
        return _exact_estimate(
            sampler,
            inputs,
            assumption=LipschitzDensities(
                domain=_given_or_own("domain", mechanism, domain),
                lipschitz=_given_or_own("lipschitz", mechanism, lipschitz),
            ),
            samples=_check_exact_n(n, most_draws),
            confidence=check_confidence(confidence),
            order=None if order is None else check_order(order),
        )
    if precision is None:
        raise InputError(
            "precision= is needed: the planned interval is estimate ± precision; or take "
            "interval='exact' with n="
        )
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


def _exact_estimate(
    sampler: Sampler,
    inputs: Pair,
    *,
    assumption: LipschitzDensities,
    samples: int,
    confidence: float,
    order: float | None,
) -> LocalEstimate:
    """Returns the largest log-ratio of cells (or its Rényi mean) with an exact interval."""
    cells = formulas.Cells(assumption.domain, intervals.cells_for(assumption, samples, confidence))
    with closing(sampler.runner):
        left, right = sampler.fold(Phase.CERTIFY, 0, inputs, samples, (cells.count, cells.count))
    formulas.check_inside(cells, left.total, right.total)
    ends = intervals.exact_interval(left.total, right.total, assumption, confidence, order)
    plug_in = formulas.divergence_where_counted(left.total, right.total, order)
    return LocalEstimate(
        estimate=min(max(plug_in, ends.low), ends.high),
        interval=(ends.low, ends.high),
        precision=(ends.high - ends.low) / 2.0,
        confidence=confidence,
        guarantee=intervals.CONTRADICTED if ends.is_contradicted else intervals.GUARANTEE,
        assumption=assumption.describe(),
        order=order,
        pair=inputs,
        cells=cells.number,
        samples=samples,
        midpoints=None,
        planned_samples=samples,
        seed=sampler.seed,
    )


def _check_no_plan(precision: float | None, as_published: bool) -> None:
    """Refuses settings of a plan where an exact interval is wanted."""
    if precision is not None or as_published:
        raise InputError(
            f"precision={precision!r}, as_published={as_published!r}: interval='exact' has no "
            "plan, its length is what the draws give; leave them out and choose n="
        )


def _check_exact_n(n: int | None, most_draws: float) -> int:
    """Returns the samples per input of an exact interval."""
    if n is None:
        raise InputError("n= is needed with interval='exact', which holds for every n, e.g. 1000")
    samples = check_whole("n", n, 1)
    if 2 * samples > most_draws:
        raise InputError(f"n={n} takes {2 * samples:,} draws, above most_draws={most_draws:,.0f}")
    return samples


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
    samples_of: str = "midpoints",
    empty_cells: str = "refuse",
    most_draws: float = MOST_DRAWS,
    seed: int | None = None,
    jobs: int = 1,
    engine: object = "local",
    progress: Progress | None = None,
) -> LocalEstimate:
    """Estimates the level over all pairs of inputs in an interval (Algorithm 2).

    By default every mid-point is drawn from once, and all ordered pairs of them are compared on the
    same counts; Algorithm 2 as printed invokes Algorithm 1 for each ordered pair, which draws
    2k(k − 1) samples instead of k, and succeeds if at least one invocation does:
    `samples_of="pairs", empty_cells="skip"`.

    Args:
        input_domain: (c, d), where inputs (numbers) lie; None for that of a zoo entry.
        input_lipschitz: D, a Lipschitz constant of the density at every output as a function of the
            input.
        midpoints: k; None for the planned number. Fewer than planned give an estimate without
            guarantee.
        samples_of: "midpoints" draws n samples of each mid-point; "pairs" draws n fresh samples of
            both inputs for each of the k(k − 1) ordered pairs, and plans for so many counts.
        empty_cells: "refuse" gives up on an empty cell of any input; "skip" leaves out the pairs
            that have one (`failed_pairs`), and gives up if there is no other.

    The other arguments are those of `estimate`.

    Guarantee: conditional on both Lipschitz assumptions; none for an n or a number of mid-points
        below the plan.

    Reference: Gorla et al. (2023), Algorithm 2, Theorem 3, and their Rényi versions.
    """
    check_choice("samples_of", samples_of, SHARINGS)
    check_choice("empty_cells", empty_cells, EMPTY_CELLS)
    fresh_pairs = samples_of == "pairs"
    smoothness = find_smoothness(mechanism, domain, lipschitz)
    interval = _given_or_own("input_domain", mechanism, input_domain)
    slope = _given_or_own("input_lipschitz", mechanism, input_lipschitz)
    plan = plan_overall(
        smoothness,
        input_domain=interval,
        input_lipschitz=slope,
        precision=precision,
        confidence=confidence,
        order=order,
        as_published=as_published,
        fresh_pairs=fresh_pairs,
    )
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
    count = count_pairs if fresh_pairs else count_midpoints
    with closing(sampler.runner):
        counted = count(sampler, cells, inputs, samples)
    formulas.check_inside(cells, *counted.sides)
    if empty_cells == "refuse":
        formulas.check_filled(cells, *counted.sides)
    greatest = counted.greatest(plan.order)
    if greatest is None:
        raise InputError(
            f"each of the {counted.n_failed:,} pairs of mid-points has an empty cell "
            f"({cells.number:,} cells, {samples:,} samples per input): no ratio can be estimated; "
            "take more samples (n=), or wider cells by a larger precision="
        )
    return _local_estimate(
        plan,
        value=greatest.value,
        pair=Pair(inputs[greatest.left], inputs[greatest.right]),
        samples=samples,
        midpoints=n_midpoints,
        seed=sampler.seed,
        failed_pairs=counted.n_failed,
    )


def _local_estimate(
    plan: HistogramPlan,
    *,
    value: float,
    pair: Pair,
    samples: int,
    midpoints: int | None,
    seed: int,
    failed_pairs: int = 0,
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
        failed_pairs=failed_pairs,
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
        guarantee += "; n as published, which allows for the deviation of four counts only"
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
    elif plan.draws_for(midpoints) > most_draws:
        raise InputError(
            f"{plan.draws_for(midpoints):,} draws are planned, above most_draws={most_draws:,.0f}"
        )
    return plan.samples


def _open_sampler(
    mechanism: object, seed: int | None, jobs: int, engine: object, progress: Progress | None
) -> Sampler:
    source = as_mechanism(mechanism)
    return Sampler(
        source,
        check_seed(seed),
        open_helpful_runner(jobs, engine, waits=source.waits),
        progress or NoProgress(),
    )


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
    check_whole("n", n, _FEWEST_CELLS)
    if not isinstance(inputs, Sequence | np.ndarray) or isinstance(inputs, str):
        raise InputError(f"inputs={inputs!r:.100} must be a list of inputs, e.g. [0.0, 0.5, 1.0]")
    if len(inputs) < 1:
        raise InputError("inputs is empty: at least one input is needed")
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
