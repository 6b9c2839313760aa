"""Method `local`: finds the place of the greatest loss, and bounds the loss there.

Step 1 estimates the loss function on training draws and chooses a place t̂; step 2 bounds the loss
at t̂ on fresh draws.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach", Algorithms 3 and 4. Decision record 0024 says where ours differs from the paper, and
    why.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats
from epsilometer.bounds import Counts
from epsilometer.claims import Claim, PureDP
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.published.adapters import options_or_default
from epsilometer.methods.published.local.densities import kernel_values
from epsilometer.methods.published.local.events import outcome_event, window_event
from epsilometer.methods.published.local.kernels import (
    KernelChoice,
    SpaceKernel,
    find_kernel,
    find_space_kernel,
)
from epsilometer.methods.published.local.loss import (
    LossFunction,
    LossPart,
    MixedLoss,
    estimate_loss,
)
from epsilometer.methods.published.local.mixtures import Slice
from epsilometer.methods.published.local.options import Box, Options
from epsilometer.methods.published.local.pointwise import (
    PointwiseLoss,
    discrete_error,
    kernel_error,
    proof_bandwidth,
    step_2_floor,
)
from epsilometer.methods.published.local.samples import Outcomes
from epsilometer.outputs import Event, Numbers, Outputs
from epsilometer.result import Finding, Witness

NAME = "local"
GUARANTEE = "asymptotic"

# Standard errors of the training draws that are subtracted against the winner's curse (measured at
# 1e5: Laplace 1 has .956 with two, .921 with one; a vector of three 1.30 with two, 1.20 with one).
_SELECTION_PENALTY = 2.0
# What the parts of a mixed distribution are called in the details of a finding.
_PARTS = {"discrete": "point mass", "continuous": "density"}
# Kernel values are summed as whole multiples of the peak times 2^-32: then chunks of any size add
# up to the same sum.
_WEIGHT_UNIT = 2.0**-32


@dataclass(frozen=True, slots=True)
class LossMaximum:
    """The place that step 1 chose, and what it chose it by.

    Attributes:
        predicted: what chooses among pairs: ε̂, or the bound to expect.
        location: t̂ as plain data.
        explored: ε̂ of the training draws at t̂.
        direction: 1 where the left density is the larger, −1 otherwise.
        floor: τ of step 1.
        proof_floor: τ of step 2; 0 for none.
        details: everything else that was chosen, plain data.
    """

    predicted: float
    location: Any
    explored: float
    direction: int
    floor: float
    proof_floor: float
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LocalProposal(Proposal):
    """A place at which step 2 bounds the loss; discrete and continuous draws count differently.

    Attributes:
        task: what is to be certified.
        maximum: the place.
    """

    task: Task
    maximum: LossMaximum

    @property
    def predicted(self) -> float:
        """The bound to expect, or ε̂."""
        return self.maximum.predicted

    @property
    def location(self) -> Any:
        """The place t̂ as plain data."""
        return self.maximum.location

    def finding(self, loss: PointwiseLoss, left: Counts, right: Counts, pair: Pair) -> Finding:
        """Returns the bound at t̂ as a finding; negative bounds say nothing and become 0.

        The witness is the event around t̂ with its counts and their own exact bounds.

        Args:
            loss: the loss at t̂ on the fresh draws.
            left: counts of the event on the left.
            right: counts of the event on the right.
            pair: the inputs.
        """
        witness = None
        if self.event is not None:
            witness = Witness.of(
                pair=pair,
                event=self.event,
                flipped=self.maximum.direction < 0,
                left=left,
                right=right,
                failure_probability=loss.failure_probability,
            )
        details = {
            **self.maximum.details,
            "location": self.maximum.location,
            "explored": self.maximum.explored,
            "estimate": max(loss.estimate, 0.0),
            "unclipped": loss.lower,
            "standard_error": loss.standard_error,
            "left_density": loss.left_density,
            "right_density": loss.right_density,
            "floor": self.maximum.floor,
            "n_fresh": [left.trials, right.trials],
        }
        return Finding(
            method=NAME,
            lower_bound=max(loss.lower, 0.0),
            guarantee=GUARANTEE,
            confidence=1.0 - loss.failure_probability,
            witness=witness,
            claim=self.task.claim,
            details=details,
        )


@dataclass(frozen=True, slots=True)
class OutcomeProposal(LocalProposal):
    """One outcome of a discrete distribution.

    Attributes:
        event: that this outcome happens.
    """

    event: Event = field()  # not the default of Proposal

    def tally(self, outputs: Outputs, side: int) -> Counts:
        """Counts how often the outcome happened."""
        return Counts(int(np.count_nonzero(self.event.contains(outputs))), len(outputs))

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the bound from relative frequencies of the fresh draws."""
        p = max(left.share, self.maximum.proof_floor)
        q = max(right.share, self.maximum.proof_floor)
        loss = PointwiseLoss(
            left_density=p,
            right_density=q,
            standard_error=discrete_error(p, q, (left.trials, right.trials)),
            failure_probability=failure_probability,
            direction=self.maximum.direction,
        )
        return self.finding(loss, left, right, pair)


@dataclass(frozen=True, slots=True)
class KernelTally:
    """Kernel values of fresh draws around t̂, summed.

    Attributes:
        draws: how many.
        weight: sum of the kernel values in units of 2^-32 of their peak; whole, so that sums do not
            depend on chunks.
        hits: draws in the window around t̂.
    """

    draws: int
    weight: int
    hits: int

    def __add__(self, other: "KernelTally") -> "KernelTally":
        return KernelTally(
            draws=self.draws + other.draws,
            weight=self.weight + other.weight,
            hits=self.hits + other.hits,
        )

    @property
    def counts(self) -> Counts:
        """Counts of the window around t̂."""
        return Counts(self.hits, self.draws)


@dataclass(frozen=True, slots=True)
class PlaceProposal(LocalProposal):
    """One place of a continuous distribution.

    Attributes:
        shape: the shape of the outputs.
        place: t̂, shape (d,).
        bandwidth: of step 2, shape (d,).
        kernel: its name or function.
        limits: the support's ends, if it has any.
        kernel_shape: "product" or "spherical".
        slice: where the place lies, if the distribution is mixed.
    """

    shape: str
    place: Floats
    bandwidth: Floats
    kernel: KernelChoice
    limits: Box | None
    kernel_shape: str = "product"
    slice: Slice | None = None

    @property
    def space_kernel(self) -> SpaceKernel:
        """The kernel in the dimensions of the place."""
        return find_space_kernel(self.kernel, self.kernel_shape, len(self.place))

    @property
    def window(self) -> Box:
        """One bandwidth to each side of t̂."""
        return Box(low=self.place - self.bandwidth, high=self.place + self.bandwidth)

    @property
    def event(self) -> Event | None:
        """That an output lies in the window around t̂; None where outputs have several columns."""
        if len(self.place) > 1 or (self.slice is not None and not self.slice.is_single_number):
            return None
        return window_event(self.shape, float(self.window.low[0]), float(self.window.high[0]))

    def tally(self, outputs: Outputs, side: int) -> KernelTally:
        """Sums kernel values around t̂; outputs of another shape, or point masses, are far away."""
        unit = self.space_kernel.peak * _WEIGHT_UNIT
        rows = self.rows(outputs)
        values = kernel_values(rows, self.place, self.bandwidth, self.space_kernel, self.limits)
        weight = int(np.rint(values / unit).astype(np.int64).sum())
        return KernelTally(draws=len(outputs), weight=weight, hits=self._count_hits(outputs))

    def rows(self, outputs: Outputs) -> Floats:
        """Returns the outputs that have a density at the place, shape (k, d)."""
        if self.slice is not None:
            return self.slice.rows(outputs)
        return self._rows_of_shape(outputs)

    def _rows_of_shape(self, outputs: Outputs) -> Floats:
        """Returns all outputs of the shape, shape (k, d)."""
        rows_of_blocks = [np.empty((0, len(self.place)))]
        for block in outputs:
            columns = [
                np.asarray(column.values, dtype=np.float64)
                for column in block.columns
                if isinstance(column, Numbers)
            ]
            if block.shape == self.shape and len(columns) == len(self.place):
                rows_of_blocks.append(np.stack(columns, axis=1))
        return np.concatenate(rows_of_blocks)

    def _count_hits(self, outputs: Outputs) -> int:
        """Counts the outputs in the window, point masses included: those of the event."""
        low, high = self.window
        rows = self._rows_of_shape(outputs)
        return int(np.count_nonzero(np.all((rows >= low) & (rows < high), axis=1)))

    def certify(
        self, left: KernelTally, right: KernelTally, pair: Pair, failure_probability: float
    ) -> Finding:
        """Returns the bound from kernel densities of the fresh draws."""
        kernel = self.space_kernel
        p = self._density(left)
        q = self._density(right)
        loss = PointwiseLoss(
            left_density=p,
            right_density=q,
            standard_error=kernel_error(p, q, (left.draws, right.draws), self.bandwidth, kernel),
            failure_probability=failure_probability,
            direction=self.maximum.direction,
        )
        finding = self.finding(loss, left.counts, right.counts, pair)
        details = {**finding.details, "proof_bandwidth": _plain(self.bandwidth)}
        return replace(finding, details=details)

    def _density(self, tally: KernelTally) -> float:
        """Returns the floored density at t̂."""
        unit = self.space_kernel.peak * _WEIGHT_UNIT / float(np.prod(self.bandwidth))
        return max(tally.weight * unit / max(tally.draws, 1), self.maximum.proof_floor)


class LocalMethod(Method):
    """Finds where two densities differ most, and bounds the loss there."""

    name = NAME
    summary = (
        "the loss at one output, by densities (TKDE, TDDE, MPL); discrete, continuous or mixed "
        "distributions, pure ε"
    )
    guarantee = GUARANTEE

    def __init__(self, options: Options | None = None) -> None:
        self.options = options_or_default(NAME, "local", Options, options)

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Refuses what cannot work, before anything is drawn."""
        check_claim(claim)
        self.fixed_sizes(n_pairs, samples)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Returns (n, N), draws for each pair and for certifying; None lets the audit divide.

        If the options give only one of them, the other one is what remains.
        """
        n = self.options.n
        n_fresh = self.options.N
        if n is None:
            if n_fresh is None:
                return None
            n = (samples - n_fresh) // n_pairs
        if n_fresh is None:
            n_fresh = samples - n_pairs * n
        if n < 1 or n_fresh < n or n_pairs * n + n_fresh > samples:
            raise InputError(
                f"samples={samples} is too few for n={self.options.n}, N={self.options.N} and "
                f"{n_pairs} pairs: step 1 takes n for each pair, step 2 takes N ≥ n more"
            )
        return n, n_fresh

    def propose(self, left: Outputs, right: Outputs, task: Task) -> OutcomeProposal | PlaceProposal:
        """Returns the place with the greatest loss (or predicted bound) on the training draws."""
        check_claim(task.claim)
        losses = estimate_loss(left, right, self.options)
        number = losses.best(self._penalty(losses, task))
        if isinstance(losses, MixedLoss):
            part, number = losses.locate(number)
        else:
            part = LossPart(slice=None, loss=losses)
        proposal = self._proposal(part, number, task, left)
        if isinstance(losses, MixedLoss):
            maximum = proposal.maximum
            details = maximum.details | {"kind": losses.kind, "part": _PARTS[part.loss.kind]}
            return replace(proposal, maximum=replace(maximum, details=details))
        return proposal

    def _proposal(
        self, part: LossPart, number: int, task: Task, left: Outputs
    ) -> OutcomeProposal | PlaceProposal:
        """Returns a place of a loss function as the one to certify.

        Args:
            part: the loss function, and its slice if the distribution is mixed.
            number: of the place.
            task: what is to be certified.
            left: the training draws of the left.
        """
        loss = part.loss
        maximum = self._maximum(part, number, self._penalty(loss, task))
        if isinstance(loss.draws, Outcomes):
            event = outcome_event(loss.draws, number)
            return OutcomeProposal(task=task, maximum=maximum, event=event)
        assert loss.draws is not None
        left_rows, right_rows = loss.draws
        kernel = self.options.space_kernel(left_rows.shape[1])
        n_left, n_right = task.n_fresh
        left_share, right_share = loss.shares
        n_fresh = (round(n_left * left_share), round(n_right * right_share))
        return PlaceProposal(
            task=task,
            maximum=maximum,
            shape=left.blocks[0].shape if part.slice is None else part.slice.shape,
            place=np.atleast_1d(np.asarray(loss.points[number], dtype=np.float64)),
            bandwidth=proof_bandwidth(left_rows, right_rows, n_fresh, self.options, kernel),
            kernel=self.options.kernel,
            limits=loss.limits,
            kernel_shape=self.options.kernel_shape,
            slice=part.slice,
        )

    def _penalty(self, loss: LossFunction, task: Task) -> float:
        """Returns how many σ̂ a place's loss is reduced by before places are compared.

        The certificate subtracts its quantile; selection bias costs standard errors of the training
        draws.
        """
        if self.options.select == "loss":
            return 0.0
        quantile = -float(ndtri(task.failure_probability))
        certificate = quantile / math.sqrt(max(min(task.n_fresh), 1))
        return certificate + _SELECTION_PENALTY / math.sqrt(min(loss.n))

    def _maximum(self, part: LossPart, number: int, penalty: float) -> LossMaximum:
        """Returns a point of the loss function as the chosen place."""
        loss = part.loss
        explored = float(loss.loss[number])
        left_is_larger = loss.left_density[number] >= loss.right_density[number]
        return LossMaximum(
            predicted=explored - penalty * float(loss.deviations[number]),
            location=part.point(number),
            explored=explored,
            direction=1 if left_is_larger else -1,
            floor=loss.floor,
            proof_floor=step_2_floor(self.options, loss.floor),
            details=self._details(loss),
        )

    def _details(self, loss: LossFunction) -> dict[str, Any]:
        """Returns the settings behind a loss function, and which of them the draws chose."""
        names = ["floor"]
        if loss.kind == "continuous":
            names += ["region", "bandwidth", "proof_bandwidth"]
        chosen_from_draws = [name for name in names if getattr(self.options, name) is None]
        if self.options.kind == "auto":
            chosen_from_draws.append("kind")
        details: dict[str, Any] = {
            "kind": loss.kind,
            "select": self.options.select,
            "n_training": list(loss.n),
            "chosen_from_draws": chosen_from_draws,
        }
        if loss.region is not None:
            details["region"] = [_plain(loss.region.low), _plain(loss.region.high)]
        if loss.bandwidths is not None:
            details["kernel"] = find_kernel(self.options.kernel).name
            details["bandwidth"] = [_plain(side) for side in loss.bandwidths]
            if loss.bandwidths.shape[1] > 1:
                details["kernel_shape"] = self.options.kernel_shape
        if self.options.proof_floor is not None:
            details["proof_floor"] = self.options.proof_floor
        if loss.limits is not None:
            details["support"] = [_plain(loss.limits.low), _plain(loss.limits.high)]
        return details


def check_claim(claim: Claim) -> None:
    """Refuses claims other than pure privacy."""
    if not isinstance(claim, PureDP):
        raise InputError(
            f"claim={claim.describe()}: the local approach bounds pure ε only (PureDP); use "
            "method='events'"
        )


def _plain(values: Floats) -> Any:
    """Returns a number for one coordinate, a list for several; infinities as text, for JSON."""
    plain = [value if math.isfinite(value) else repr(value) for value in values.tolist()]
    return plain[0] if len(plain) == 1 else plain
