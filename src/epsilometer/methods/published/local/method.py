"""The method `local`: finds the place of the greatest loss on training draws, and bounds the loss there on fresh ones.

Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local
approach", Algorithms 3 and 4. Decision record 0024 says where ours differs from the paper, and why.
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
from epsilometer.methods.published.local.densities import Limits, kernel_values
from epsilometer.methods.published.local.kernels import KernelChoice, find_kernel
from epsilometer.methods.published.local.loss import LossFunction, estimate_loss
from epsilometer.methods.published.local.options import Options
from epsilometer.methods.published.local.pointwise import (
    PointwiseLoss,
    discrete_error,
    kernel_error,
    proof_bandwidth,
)
from epsilometer.methods.published.local.samples import Outcomes, outcome_event, window_event
from epsilometer.outputs import Event, Numbers, Outputs
from epsilometer.result import Finding, Witness

NAME = "local"
GUARANTEE = "asymptotic"
# Standard errors of the training draws that are subtracted against the winner's curse; measured
# where it is used.
_CURSE = 2.0
# Kernel values are summed as whole multiples of the peak times 2^-32: then chunks of any size add
# up to the same sum.
_UNIT = 2.0**-32


@dataclass(frozen=True, slots=True)
class LocalProposal(Proposal):
    """What step 1 found and step 2 needs; the two kinds of distributions count it differently.

    Attributes:
        task: what is to be proved.
        predicted: what chooses among pairs: ε̂, or the bound to expect.
        location: t̂ as plain data.
        explored: ε̂ of the training draws at t̂.
        direction: 1 where the left density is the larger, −1 otherwise.
        floor: τ.
        details: everything else that was chosen, plain data.
    """

    task: Task
    predicted: float
    location: Any
    explored: float
    direction: int
    floor: float
    details: dict[str, Any]

    def finding(self, proof: PointwiseLoss, left: Counts, right: Counts, pair: Pair) -> Finding:
        """The bound at t̂ as a finding; negative bounds say nothing and become 0.

        The witness is the event around t̂ with its counts and their own exact bounds.
        """
        failure = proof.failure_probability
        witness = None
        if (event := self.event) is not None:
            witness = Witness.of(pair, event, self.direction < 0, left, right, failure)
        details = {**self.details, "location": self.location, "explored": self.explored}
        details |= {"estimate": max(proof.estimate, 0.0), "unclipped": proof.lower}
        details |= {"standard_error": proof.standard_error, "left_density": proof.left_density}
        details |= {
            "right_density": proof.right_density,
            "floor": self.floor,
            "n_fresh": [left.trials, right.trials],
        }
        return Finding(
            NAME, max(proof.lower, 0.0), GUARANTEE, 1.0 - failure, witness, self.task.claim, details
        )


# The fields of a `LocalProposal`, in order.
FoundFields = tuple[Task, float, Any, float, int, float, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OutcomeProposal(LocalProposal):
    """One outcome of a discrete distribution."""

    event: Event = field()  # not the default of Proposal

    def tally(self, outputs: Outputs, side: int) -> Counts:
        """How often the outcome happened."""
        return Counts(int(np.count_nonzero(self.event.contains(outputs))), len(outputs))

    def certify(
        self, left: Counts, right: Counts, pair: Pair, failure_probability: float
    ) -> Finding:
        """The bound from relative frequencies of the fresh draws."""
        p = max(left.share, self.floor)
        q = max(right.share, self.floor)
        error = discrete_error(p, q, (left.trials, right.trials))
        proof = PointwiseLoss(p, q, error, failure_probability, self.direction)
        return self.finding(proof, left, right, pair)


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
            self.draws + other.draws, self.weight + other.weight, self.hits + other.hits
        )


@dataclass(frozen=True, slots=True)
class PlaceProposal(LocalProposal):
    """One place of a continuous distribution.

    Attributes:
        shape: the shape of the outputs.
        place: t̂, shape (d,).
        bandwidth: of step 2, shape (d,).
        kernel: its name or function.
        limits: the support's ends, if it has any.
    """

    shape: str
    place: Floats
    bandwidth: Floats
    kernel: KernelChoice
    limits: Limits | None

    @property
    def event(self) -> Event | None:
        """The window of one bandwidth around t̂; None in several dimensions."""
        low = self.place - self.bandwidth
        high = self.place + self.bandwidth
        return None if len(low) > 1 else window_event(self.shape, float(low[0]), float(high[0]))

    def tally(self, outputs: Outputs, side: int) -> KernelTally:
        """Kernel values around t̂; outputs of another shape are far away."""
        weight = 0
        hits = 0
        kernel = find_kernel(self.kernel)
        for block in outputs:
            columns = [column.values for column in block.columns if isinstance(column, Numbers)]
            if block.shape == self.shape and len(columns) == len(self.place):
                rows = np.stack(
                    [np.asarray(values, dtype=np.float64) for values in columns], axis=1
                )
                values = kernel_values(rows, self.place, self.bandwidth, kernel, self.limits)
                unit = kernel.peak ** len(columns) * _UNIT
                weight += int(np.rint(values / unit).astype(np.int64).sum())
                low = self.place - self.bandwidth
                high = self.place + self.bandwidth
                hits += int(np.count_nonzero(np.all((rows >= low) & (rows < high), axis=1)))
        return KernelTally(len(outputs), weight, hits)

    def certify(
        self, left: KernelTally, right: KernelTally, pair: Pair, failure_probability: float
    ) -> Finding:
        """The bound from kernel densities of the fresh draws."""
        kernel = find_kernel(self.kernel)
        unit = kernel.peak ** len(self.place) * _UNIT / float(np.prod(self.bandwidth))
        p, q = (
            max(tally.weight * unit / max(tally.draws, 1), self.floor) for tally in (left, right)
        )
        error = kernel_error(p, q, (left.draws, right.draws), self.bandwidth, kernel)
        proof = PointwiseLoss(p, q, error, failure_probability, self.direction)
        finding = self.finding(
            proof, Counts(left.hits, left.draws), Counts(right.hits, right.draws), pair
        )
        return replace(
            finding, details={**finding.details, "proof_bandwidth": _plain(self.bandwidth)}
        )


class LocalMethod(Method):
    """Finds where two densities differ most, and bounds the loss there."""

    name = NAME
    summary = "the loss at one output, by densities (TKDE, TDDE, MPL); discrete or continuous distributions, pure ε"
    guarantee = GUARANTEE

    def __init__(self, options: Options | None = None) -> None:
        self.options = options_or_default(NAME, "local", Options, options)

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Refuses what cannot work, before anything is drawn."""
        check_claim(claim)
        self.fixed_sizes(n_pairs, samples)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """(n, N) if the options give one of them: n draws for each pair, N to prove; None lets the audit divide."""
        n = self.options.n
        fresh = self.options.N
        if n is None:
            if fresh is None:
                return None
            n = (samples - fresh) // n_pairs
        fresh = samples - n_pairs * n if fresh is None else fresh
        if n < 1 or fresh < n or n_pairs * n + fresh > samples:
            raise InputError(
                f"samples={samples} is too few for n={self.options.n}, N={self.options.N} and {n_pairs} pairs: step 1 "
                f"takes n for each pair, step 2 takes N ≥ n more"
            )
        return n, fresh

    def propose(self, left: Outputs, right: Outputs, task: Task) -> OutcomeProposal | PlaceProposal:
        """The place where the training draws show the greatest loss (or promise the greatest bound)."""
        check_claim(task.claim)
        loss = estimate_loss(left, right, self.options)
        penalty = self._penalty(loss, task)
        number = loss.best(penalty)
        found = self._found(loss, number, penalty, task)
        if isinstance(loss.draws, Outcomes):
            return OutcomeProposal(*found, outcome_event(loss.draws, number))
        kernel = self.options.kernel
        bandwidth = proof_bandwidth(loss.draws, task.n_fresh, self.options, find_kernel(kernel))
        place = np.atleast_1d(np.asarray(loss.points[number], dtype=np.float64))
        return PlaceProposal(*found, left.blocks[0].shape, place, bandwidth, kernel, loss.limits)

    def _penalty(self, loss: LossFunction, task: Task) -> float:
        if self.options.select == "loss":
            return 0.0
        # The proof's quantile, and two standard errors of the training draws against the winner's
        # curse (measured at 1e5: Laplace 1 has .956 with two, .921 with one; a vector of three 1.30
        # with two, 1.20 with one).
        quantile = -float(ndtri(task.failure_probability))
        return quantile / math.sqrt(max(min(task.n_fresh), 1)) + _CURSE / math.sqrt(min(loss.n))

    def _found(self, loss: LossFunction, number: int, penalty: float, task: Task) -> FoundFields:
        """The fields of a `LocalProposal`."""
        explored = float(loss.loss[number])
        predicted = explored - penalty * float(loss.deviations[number])
        details: dict[str, Any] = {
            "kind": loss.kind,
            "select": self.options.select,
            "n_training": list(loss.n),
        }
        names = (
            ["floor"]
            if loss.kind == "discrete"
            else ["floor", "region", "bandwidth", "proof_bandwidth"]
        )
        chosen = [name for name in names if getattr(self.options, name) is None]
        details["chosen_from_draws"] = [*chosen, "kind"] if self.options.kind == "auto" else chosen
        if loss.region is not None:
            details["region"] = [_plain(loss.region[0]), _plain(loss.region[1])]
        if loss.bandwidths is not None:
            details["kernel"] = find_kernel(self.options.kernel).name
            details["bandwidth"] = [_plain(side) for side in loss.bandwidths]
        if loss.limits is not None:
            details["support"] = [_plain(loss.limits[0]), _plain(loss.limits[1])]
        direction = 1 if loss.left_density[number] >= loss.right_density[number] else -1
        return task, predicted, loss.point(number), explored, direction, loss.floor, details


def check_claim(claim: Claim) -> None:
    """The local approach is about pure ε."""
    if not isinstance(claim, PureDP):
        text = f"claim={claim.describe()}: the local approach bounds pure ε only (PureDP); use method='events'"
        raise InputError(text)


def _plain(values: Floats) -> Any:
    """A number for one coordinate, a list for several; infinities as text, because JSON has none."""
    plain = [value if math.isfinite(value) else repr(value) for value in values.tolist()]
    return plain[0] if len(plain) == 1 else plain
