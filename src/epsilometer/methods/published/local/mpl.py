"""Algorithms 3 and 4: DPL on one pair, MPL on many, and the data-centric level of one dataset.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach".
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims import PureDP
from epsilometer.claims.base import check_confidence, check_whole
from epsilometer.engine import Phase, Sampler, check_seed, open_helpful_runner
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError
from epsilometer.inputs import Pair, Pairs, as_pair, as_pairs
from epsilometer.inputs.pairs import check_datasets
from epsilometer.mechanisms import as_mechanism
from epsilometer.methods.base import Task
from epsilometer.methods.published.local.loss import LossFunction, estimate_loss, with_chosen
from epsilometer.methods.published.local.method import LocalMethod, OutcomeProposal, PlaceProposal
from epsilometer.methods.published.local.options import FEWEST_DRAWS, Options
from epsilometer.methods.published.local.pointwise import proof_bandwidth
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Outputs
from epsilometer.result import Finding


@dataclass(frozen=True, slots=True)
class DataSpecificLoss:
    """What DPL returns.

    Attributes:
        estimate: ε̂, the greatest estimated loss.
        location: t̂, where it is.
        pair: the two inputs.
        loss: the empirical loss function.
        seed: repeats it.
    """

    estimate: float
    location: Any
    pair: Pair
    loss: LossFunction
    seed: int

    __repr__ = fields_on_one_line


@dataclass(frozen=True, slots=True)
class MaximumLoss:
    """What MPL returns.

    Attributes:
        lower_bound: LB, at least 0.
        unclipped: LB as the formula gives it; below 0 it says nothing.
        estimate: the loss at `location`, estimated on the fresh draws: free of the bias of having
            chosen it.
        location: t̂.
        pair: the pair with the greatest ε̂.
        number: which of the given pairs that is.
        explored: ε̂ of that pair, on the draws that chose it; too large on average.
        confidence: of the bound.
        n: draws per side and pair in step 1.
        N: fresh draws per side in step 2.
        seed: repeats it.
        finding: the same with every setting that was chosen, in `finding.details`.
    """

    lower_bound: float
    unclipped: float
    estimate: float
    location: Any
    pair: Pair
    number: int
    explored: float
    confidence: float
    n: int
    N: int
    seed: int
    finding: Finding

    __repr__ = fields_on_one_line


def dpl(  # noqa: PLR0917  # researchers call it as the paper writes it
    mechanism: object,
    pair: Pair | tuple[Any, Any],
    n: int = 20_000,
    region: Any = None,
    floor: float | None = None,
    seed: int | None = None,
    jobs: int = 1,
    **chosen: Any,
) -> DataSpecificLoss:
    """Estimates the privacy loss on one pair and where it is greatest.

    Args:
        mechanism: a function of the dataset, anything made by `from_batch`, …, or an entry of the
            zoo.
        pair: two neighbouring inputs.
        n: draws per side.
        region: the box C = (low, high) in which to look; None chooses it from the draws.
        floor: τ; None chooses it from the draws.
        seed: makes it repeatable.
        jobs: worker processes.
        **chosen: `bandwidth`, `search_undersmoothing`, `kernel`, `kernel_shape`, `support`, `kind`;
            see `Options`.

    Guarantee: none: an estimate, too large on average where many places are about equally bad.

    Reference: Askin, Kutta, Dette (2022), Algorithm 3.
    """
    check_whole("n", n, FEWEST_DRAWS)
    options = with_chosen(Options(n=n, region=region, floor=floor), chosen)
    inputs = as_pair(pair)
    source = as_mechanism(mechanism)
    sampler = Sampler(source, check_seed(seed), open_helpful_runner(jobs, waits=source.waits))
    left, right = sampler.both(Phase.TRAIN, 0, inputs, n)
    loss = estimate_loss(left, right, options)
    return DataSpecificLoss(
        estimate=loss.estimate,
        location=loss.location,
        pair=inputs,
        loss=loss,
        seed=sampler.seed,
    )


def mpl(  # noqa: PLR0917  # researchers call it as the paper writes it
    mechanism: object,
    pairs: Pairs,
    n: int = 20_000,
    N: int = 50_000,
    region: Any = None,
    floor: float | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
    jobs: int = 1,
    select: str = "loss",
    **chosen: Any,
) -> MaximumLoss:
    """Returns a lower bound on the greatest privacy loss over some pairs.

    Step 1 estimates the loss on every pair with n draws per side and keeps the pair and the place
    t̂ with the greatest one; step 2 bounds the loss there with N fresh draws per side: LB =
    loss(t̂) − z·σ̂/c_N.

    Args:
        mechanism: a function of the dataset, anything made by `from_batch`, …, or an entry of the
            zoo.
        pairs: pairs of neighbouring inputs.
        n: draws per side and pair in step 1.
        N: fresh draws per side in step 2; at least n.
        region: the box C = (low, high) in which to look; None chooses it from the draws.
        floor: τ; None chooses it from the draws of step 1.
        confidence: 1 − α.
        seed: makes it repeatable.
        jobs: worker processes; they do not change the result.
        select: "loss" is the paper's; "bound" prefers places that promise a larger bound.
        **chosen: `proof_floor`, `bandwidth`, `proof_bandwidth`, `undersmoothing`,
            `search_undersmoothing`, `kernel`, `kernel_shape`, `support`, `kind`; see `Options`.

    Guarantee: asymptotic: as n and N grow, LB exceeds the greatest loss with probability tending to
        at most 1 − confidence. The side with the larger density is fixed in step 1, so this holds
        for a loss of 0, too.

    Reference: Askin, Kutta, Dette (2022), Algorithm 4 (with the second density that of the same
        pair's other input).
    """
    # An audit divides its draws where these are None; here nothing says how many there are.
    check_whole("n", n, FEWEST_DRAWS)
    check_whole("N", N, FEWEST_DRAWS)
    options = with_chosen(Options(n=n, N=N, region=region, floor=floor, select=select), chosen)
    check_confidence(confidence)
    candidates = as_pairs(pairs, "pairs")
    source = as_mechanism(mechanism)
    sampler = Sampler(source, check_seed(seed), open_helpful_runner(jobs, waits=source.waits))
    method = LocalMethod(options)
    proposals: list[OutcomeProposal | PlaceProposal] = []
    for number, pair in enumerate(candidates):
        task = Task(
            claim=PureDP(0.0),
            n_fresh=(N, N),
            failure_probability=1.0 - confidence,
            stream=Stream(sampler.seed, Phase.CERTIFY, number),
        )
        left, right = sampler.both(Phase.TRAIN, number, pair, n)
        proposals.append(method.propose(left, right, task))

    best_number = max(range(len(proposals)), key=lambda number: proposals[number].predicted)
    best_pair = candidates[best_number]
    fresh_left, fresh_right = sampler.both(Phase.CERTIFY, best_number, best_pair, N)
    proposal = _with_fresh_bandwidth(proposals[best_number], fresh_left, fresh_right, options)
    finding = proposal.certify(
        proposal.tally(fresh_left, 0),  # type: ignore[arg-type]
        proposal.tally(fresh_right, 1),  # type: ignore[arg-type]
        best_pair,
        1.0 - confidence,
    )
    return MaximumLoss(
        lower_bound=finding.lower_bound,
        unclipped=finding.details["unclipped"],
        estimate=finding.details["estimate"],
        location=proposal.location,
        pair=best_pair,
        number=best_number,
        explored=finding.details["explored"],
        confidence=finding.confidence,
        n=n,
        N=N,
        seed=sampler.seed,
        finding=finding,
    )


def data_centric(
    mechanism: object, dataset: Any, neighbours: Iterable[Any], **settings: Any
) -> MaximumLoss:
    """Returns a lower bound on the privacy loss of one dataset against all its neighbours.

    Args:
        mechanism: as for `mpl`.
        dataset: the dataset x that is fixed.
        neighbours: all its neighbours x', or those to look at.
        **settings: those of `mpl`.

    Returns:
        As `mpl`: `.lower_bound` and `.estimate` of ε_x, and `.pair` with the worst neighbour on its
        right.

    Guarantee: as for `mpl`, about the given neighbours.

    Reference: Askin, Kutta, Dette (2022), (5).
    """
    if "pairs" in settings:
        raise InputError("pairs= is no setting here: they are the dataset with each neighbour")
    others = check_datasets(dataset, neighbours)
    # The dataset itself may be among its neighbours, but not alone.
    pairs = [Pair(dataset, neighbour, equal=len(others) > 1) for neighbour in others]
    if not pairs:
        raise InputError(
            "neighbours is empty: give the datasets that differ from this one in one record"
        )
    return mpl(mechanism, pairs, **settings)


def _with_fresh_bandwidth(
    proposal: OutcomeProposal | PlaceProposal,
    fresh_left: Outputs,
    fresh_right: Outputs,
    options: Options,
) -> OutcomeProposal | PlaceProposal:
    """Returns the proposal with the rule of thumb of step 2's own draws, as in the paper.

    It stays as it is where the fresh draws have no bandwidth.
    """
    if not isinstance(proposal, PlaceProposal):
        return proposal
    left = _finite_rows(proposal, fresh_left)
    right = _finite_rows(proposal, fresh_right)
    n = (len(left), len(right))
    if max(n) < 2:
        return proposal
    kernel = options.space_kernel(len(proposal.place))
    bandwidth = proof_bandwidth(left, right, n, options, kernel)
    return replace(proposal, bandwidth=bandwidth)


def _finite_rows(proposal: PlaceProposal, outputs: Outputs) -> Floats:
    """Returns the outputs that have a density at the place, without infinities, shape (n, d)."""
    rows = proposal.rows(outputs)
    return rows[np.isfinite(rows).all(axis=1)]
