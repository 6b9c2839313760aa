"""Method `profile`: nested events that are counted together; one band answers every claim."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from epsilometer.arrays import Floats, Integers
from epsilometer.bounds import nested_p_value
from epsilometer.bounds.bands import Band, band_from_counts
from epsilometer.bounds.binomial import Counts
from epsilometer.claims import TradeOffDP
from epsilometer.inputs import Pair
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.forecast import selection_penalty
from epsilometer.methods.nested import NestedEvents, nested_events
from epsilometer.methods.scores import learn_scores
from epsilometer.outputs import Event, Outputs, Partition
from epsilometer.outputs.preparing import prepare
from epsilometer.result import Finding, Witness

# --- The proposal ---

# Events from the strong end of the order (Gaussian μ = 1, 1e6 draws: ε(1e-5) is 3.19 with 32 events
# from the strong end and none from the weak one, 3.16 with 16 and 16; 26 and 6 keep most of both).
_N_STRONG_EVENTS = 26
# Events from the weak end, which is the strong one of the other direction.
_N_WEAK_EVENTS = 6
# The fraction of an event's error share that bounds its rarer side, which limits the sharpness.
_RARE_SIDE_FRACTION = 0.75


@dataclass(frozen=True, slots=True)
class ProfileProposal(Proposal):
    """Nested events to be counted on fresh draws.

    Attributes:
        partition: the cells.
        level: shape (cells,), the number of the first event that contains the cell; event k
            consists of all cells of level ≤ k.
        n_events: how many events there are.
        flipped: False when the left distribution should be the larger one on the first events.
        task: what is to be certified.
        predicted: the bound to expect.
    """

    partition: Partition
    level: Integers
    n_events: int
    flipped: bool
    task: Task
    predicted: float

    def tally(self, outputs: Outputs, side: int) -> Integers:
        """Counts how many outputs have each level, shape (n_events + 1,)."""
        counts = self.partition.count(outputs)
        return np.bincount(self.level, counts, minlength=self.n_events + 1).astype(np.int64)

    def band(self, left: Integers, right: Integers, failure_probability: float) -> Band:
        """The band below the trade-off curve; P is the right distribution if flipped.

        Args:
            left: shape (n_events + 1,), left draws by level.
            right: shape (n_events + 1,), right draws by level.
            failure_probability: of the whole band.
        """
        above, below = (right, left) if self.flipped else (left, right)
        return band_from_counts(
            np.cumsum(above)[:-1].tolist(),
            int(above.sum()),
            np.cumsum(below)[:-1].tolist(),
            int(below.sum()),
            failure_probability,
            left_shares=self.left_shares,
        )

    @property
    def left_shares(self) -> list[float]:
        """The fraction of each event's error share that bounds P; most bounds the rarer side."""
        return [
            _RARE_SIDE_FRACTION if number >= _N_STRONG_EVENTS else 1.0 - _RARE_SIDE_FRACTION
            for number in range(self.n_events)
        ]

    def certify(
        self, left: Integers, right: Integers, pair: Pair, failure_probability: float
    ) -> Finding:
        """Certifies the bound for the claim, with the whole band in the details."""
        band = self.band(left, right, failure_probability)
        claim = self.task.claim
        values = [
            claim.least_value(p, q) if p > q else 0.0
            for p, q in zip(band.p_lower, band.q_upper, strict=True)
        ]
        best = int(np.argmax(values))
        left_hits = np.cumsum(left)
        right_hits = np.cumsum(right)
        witness = Witness(
            pair=pair,
            event=self.event_at(best),
            flipped=self.flipped,
            left_counts=Counts(int(left_hits[best]), int(left.sum())),
            right_counts=Counts(int(right_hits[best]), int(right.sum())),
            p_lower=band.p_lower[best],
            q_upper=band.q_upper[best],
        )
        details: dict[str, Any] = {
            "p_lower": list(band.p_lower),
            "q_upper": list(band.q_upper),
            "left_shares": self.left_shares,
            "flipped": self.flipped,
            "left_hits": left_hits[:-1].tolist(),
            "right_hits": right_hits[:-1].tolist(),
        }
        if isinstance(claim, TradeOffDP):
            # A file holds the curve only at some points, so the one used here is stored as well.
            details["curve_at"] = claim.point_at(band.q_upper[best])
        return Finding(
            method="profile",
            lower_bound=float(values[best]),
            guarantee="exact",
            confidence=1.0 - failure_probability,
            witness=witness,
            claim=claim,
            details=details,
        )

    def p_value(self, left: Integers, right: Integers, failure_probability: float) -> float | None:
        """Searches for the p-value: with fixed shares the band rises with failure_probability."""
        claim = self.task.claim

        def bound_at(failure: float) -> float:
            return self.band(left, right, failure).value(claim)

        return nested_p_value(bound_at, claim.value, failure_probability)

    def event_at(self, number: int) -> Event:
        """The event of that number."""
        return Event(self.partition, self.level <= number).simplified()


# --- The method ---

# Training draws per side, whatever the number of samples: few draws order the outputs well enough,
# and the far tails need the others (ε(1e-5): 3.20 at 12 % training, 3.22 here).
_TRAIN_FIXED = 20_000
# Further training draws, as a fraction of the samples.
_TRAIN_FRACTION = 0.02
# Most training draws per side: they are kept in memory, and more find nothing better (1e9 draws:
# ε(1e-5) is 4.27 here, 4.21 with ten times as many).
_MOST_TRAINING = 2_000_000
# With this fraction of the samples or more for training, the split is left to the audit.
_MOST_TRAINING_FRACTION = 0.3
# Fresh draws of both sides that the outermost event should contain.
_LEAST_FRESH_HITS = 12.0
# Training draws of both sides that it contains at least.
_LEAST_TRAINING_HITS = 5.0
# Orders are compared by the ε that they promise at these δ, and by μ.
_DELTAS = (1e-5, 1e-3, 1e-2, 1e-1)


class ProfileMethod(Method):
    """Learns an order of all outputs and counts many nested events on fresh draws."""

    name = "profile"
    summary = (
        "many nested events in one simultaneous band: ε at every δ, μ and the trade-off curve at "
        "once"
    )
    guarantee = "exact"

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Draws per side for training and for the certificate.

        Returns:
            None for several pairs or few draws, which leaves the split to the audit.
        """
        n_train = min(int(_TRAIN_FIXED + _TRAIN_FRACTION * samples), _MOST_TRAINING)
        if n_pairs != 1 or n_train >= _MOST_TRAINING_FRACTION * samples:
            return None
        return n_train, samples - n_train

    def propose(self, left: Outputs, right: Outputs, task: Task) -> ProfileProposal:
        """Proposes the nested events of the order that promises most."""
        n_train = len(left) + len(right)
        masses = _event_masses(n_train, n_train / max(sum(task.n_fresh), 1))
        prepared = prepare(left, right, task.growing)
        scores = learn_scores(prepared.left, prepared.right)
        candidates = nested_events(scores, masses)
        if not candidates:
            return _nothing(task)
        n_candidates = sum(score.n_tails * score.n_rivals for score in scores)
        penalty = selection_penalty(n_candidates)
        promises = [sum(_promised_values(nested, task, penalty)) for nested in candidates]
        best = candidates[int(np.argmax(promises))]
        partition, level = best.levels()
        p_lower, q_upper = _expected_band(best, task, penalty)
        band = Band(tuple(p_lower.tolist()), tuple(q_upper.tolist()))
        return ProfileProposal(
            partition=prepared.partition_of_raw_outputs(partition),
            level=level,
            n_events=len(masses),
            flipped=best.flipped,
            task=task,
            predicted=band.value(task.claim),
        )


def _nothing(task: Task) -> ProfileProposal:
    """One event that never happens: the outputs do not vary, or there are too few of them."""
    partition = Partition(())
    level = np.ones(partition.n_cells, dtype=np.int64)
    return ProfileProposal(
        partition=partition, level=level, n_events=1, flipped=False, task=task, predicted=0.0
    )


def _event_masses(n_train: int, train_per_fresh: float) -> Floats:
    """Fractions of all draws in the nested events, ascending; dense at both ends.

    Args:
        n_train: training draws of both sides.
        train_per_fresh: training draws for each fresh draw.
    """
    least_hits = max(_LEAST_TRAINING_HITS, _LEAST_FRESH_HITS * train_per_fresh)
    least = least_hits / max(n_train, 1)
    strong = np.geomspace(min(least, 0.2), 0.5, _N_STRONG_EVENTS)
    weak = 1.0 - np.geomspace(min(4.0 * least, 0.2), 0.4, _N_WEAK_EVENTS)
    return np.sort(np.concatenate([strong, weak]))


def _expected_band(nested: NestedEvents, task: Task, penalty: float) -> tuple[Floats, Floats]:
    """Forecasts the band from training draws that did not fit the score.

    Args:
        nested: the events.
        task: what is to be certified.
        penalty: for selection, in standard errors of the training draws.

    Returns:
        Lower limits of P and upper limits of Q for each event, shape (events,) each.
    """
    p = nested.p
    q = nested.q
    n_train, m_train = nested.sizes
    # Rare events look best by chance, and nothing is impossible.
    p = p - penalty * np.sqrt(p * (1.0 - p) / max(n_train, 1))
    q = (q * m_train + penalty * np.sqrt(q * m_train) + 1.0) / (m_train + 1.0)
    p = np.clip(p, 0.0, 1.0)
    q = np.clip(q, 0.0, 1.0)
    n, m = task.n_fresh[::-1] if nested.flipped else task.n_fresh
    z = float(-ndtri(task.failure_probability / (2 * len(nested.masses))))
    low = p - z * np.sqrt(p * (1.0 - p) / n)
    high = q + z * np.sqrt(np.maximum(q * (1.0 - q), 0.0) / m) + 0.5 * z * z / m
    return np.clip(low, 0.0, 1.0 - 1e-9), np.clip(high, 1e-12, 1.0)


def _promised_values(nested: NestedEvents, task: Task, penalty: float) -> list[float]:
    """The ε at each of `_DELTAS`, and the μ, that nested events are expected to certify."""
    p, q = _expected_band(nested, task, penalty)
    promised = []
    for delta in _DELTAS:
        with np.errstate(divide="ignore", invalid="ignore"):
            by_event = np.log(np.maximum(p - delta, 0.0) / q)
            by_complement = np.log(np.maximum(1.0 - q - delta, 0.0) / (1.0 - p))
        promised.append(max(float(by_event.max()), float(by_complement.max()), 0.0))
    mus = ndtri(np.maximum(p, 1e-12)) - ndtri(np.minimum(q, 1.0 - 1e-12))
    promised.append(max(float(np.max(mus)), 0.0))
    return promised
