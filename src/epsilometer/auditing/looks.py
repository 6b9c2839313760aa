"""Looks at pairs of inputs: a few draws that choose, and prove nothing.

A coupled look runs both inputs with the same random numbers, so that a handful of draws shows how
far outputs move against the spread of the noise, whether their shape changes, and whether noise is
missing. A plain look compares some hundred independent draws with the claim.
"""

import math
import random
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats, Integers
from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.engine import Phase
from epsilometer.engine.chunks import chunk_rng, row_hashes
from epsilometer.engine.sampler import contained, own_tools
from epsilometer.errors import MechanismError, shown
from epsilometer.inputs import Pair
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms import Mechanism
from epsilometer.methods.events.cells import blocks_of_both
from epsilometer.outputs import Labels, Outputs, concatenate

# Draws per side of a coupled look: the median of so few movements is exact where noise is added,
# and the spread of the noise is known to a third.
COUPLED = 8
# Draws per side of a plain look.
PLAIN = 300
# The score of what no noise hides.
CERTAIN = 100.0
# Claims whose curves take most of a second are rounded up to powers of this, of which a search
# meets a few dozen.
_COARSE_STEP = 1.15
# A pair about which the mechanism claims nothing, so that nobody looked at it.
UNCLAIMED = "unclaimed"


@dataclass(frozen=True, slots=True)
class Look:
    """What a look saw.

    Attributes:
        score: for a plain look, how many standard deviations an event lies beyond the claim; for a
            coupled one, the movement as a share of what the claim allows.
        draws: per side.
        coupled: whether the two inputs could be run with the same random numbers.
        failed: the sides on which the mechanism raised: "", "left", "right" or "both"; UNCLAIMED if
            it was not run.
        said: what it raised, or why nothing is claimed.
    """

    score: float
    draws: int
    coupled: bool = False
    failed: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """What a claim allows, tabulated: the largest P(E) for Q(E) = q, and its slope."""

    q: Floats
    power: Floats
    slope: Floats
    most: float

    @classmethod
    def of(cls, claim: Claim) -> "Curve":
        """The curve of a claim; finer near 0 and 1, where it bends."""
        tail = np.geomspace(1e-6, 0.01, 60)
        q = np.unique(
            np.concatenate([[0.0], tail, np.linspace(0.01, 0.99, 200), 1.0 - tail, [1.0]])
        )
        power = np.clip(np.asarray(claim.max_power(q), dtype=np.float64), q, 1.0)
        return cls(q, power, np.gradient(power, q), max(float(np.max(power - q)), 0.02))

    def excess(self, left: Integers, right: Integers, n: int) -> float:
        """How far the most suspicious of some events lies beyond the claim, in standard deviations.

        Args:
            left: hits of each event among n draws of the left input, shape (k,).
            right: likewise.
        """
        best = 0.0
        for above, below in ((left, right), (right, left)):
            p = above / n
            q = (below + 1.0) / (n + 2.0)
            slope = np.interp(q, self.q, self.slope)
            spread = np.sqrt((p * (1.0 - p) + slope**2 * q * (1.0 - q)) / n + 1.0 / n**2)
            best = max(
                best, float(np.max((p - np.interp(q, self.q, self.power)) / spread, initial=0.0))
            )
        return best


@lru_cache(maxsize=256)
def _kept_curve(claim: Claim) -> Curve:
    return Curve.of(claim)


def _curve_of(claim: Claim) -> Curve:
    """The curve of a claim, computed once: most pairs of a search have the same one."""
    return _kept_curve(claim) if isinstance(claim, Hashable) else Curve.of(claim)


def coarse_claim(claim: Claim) -> Claim:
    """A claim for looks at many pairs that each have their own: of a notion whose curves are slow, rounded up.

    Looks choose and prove nothing, so that a slightly weaker claim costs no soundness, and curves
    can be kept.
    """
    if not isinstance(claim, RenyiDP | ZCDP) or not 0.0 < claim.value < math.inf:
        return claim
    return claim.with_value(_COARSE_STEP ** math.ceil(math.log(claim.value, _COARSE_STEP)))


class LookRequest(NamedTuple):
    """A pair to look at.

    Attributes:
        number: of a plain look, part of its seed.
        pair: the inputs.
        draws: per side of a plain look; 0 for a coupled one.
        claim: what is claimed about this pair.
    """

    number: int
    pair: Pair
    draws: int
    claim: Claim


@dataclass(frozen=True, slots=True)
class Looking:
    """The work of looks, for any worker: a pure function of the pairs and their numbers."""

    mechanism: Mechanism
    seed: int

    def __call__(self, task: Sequence[LookRequest]) -> list[Look]:
        """Looks at some pairs."""
        return [
            self._plain(request) if request.draws else self._coupled(request) for request in task
        ]

    def describe(self, task: Sequence[LookRequest]) -> str:
        """A task in words, for messages."""
        inputs = " or ".join(
            shown(side) for each in task for side in (each.pair.left, each.pair.right)
        )
        return f"{self.mechanism.name} on the input {inputs}"

    def _coupled(self, request: LookRequest) -> Look:
        """The first draw of the left input is made twice: if it differs, nothing is coupled."""
        pair = request.pair
        with _own_states(self.mechanism):
            left, said = self._tried(pair.left, [0, *range(COUPLED)])
            right, said_too = self._tried(pair.right, list(range(COUPLED)))
        if left is None or right is None:
            failed = "both" if left is right else "left" if left is None else "right"
            return Look(0.0, 1, failed=failed, said=said or said_too)
        hashes = row_hashes(left)
        same = bool(hashes[0] == hashes[1])
        moved = _movement(left.take(slice(1, None)), right, same, _curve_of(request.claim))
        return Look(moved, COUPLED, coupled=same)

    def _tried(self, dataset: Any, places: list[int]) -> tuple[Outputs | None, str]:
        drawn = []
        try:
            with own_tools(self.mechanism.name, [dataset]), contained(self.mechanism.name, dataset):
                for place in places:
                    if not self.mechanism.is_seeded:
                        random.seed(place + self.seed)
                        np.random.seed((place + self.seed) % 2**32)  # noqa: NPY002  # the mechanism may draw from it
                    drawn.append(
                        self.mechanism.sample(
                            dataset, 1, chunk_rng(self.seed, Phase.LOOK, place, 2, 0)
                        )
                    )
        except MechanismError as error:
            pass_on(error)
            return None, str(error)
        return concatenate(drawn), ""

    def _plain(self, request: LookRequest) -> Look:
        number = request.number
        pair = request.pair
        draws = request.draws
        sides: list[Outputs] = []
        for side in (0, 1):
            try:
                rng = chunk_rng(self.seed, Phase.LOOK, number, side, 1)
                name = self.mechanism.name
                dataset = pair.side(side)
                with own_tools(name, [dataset]), contained(name, dataset):
                    sides.append(self.mechanism.sample(dataset, draws, rng))
            except MechanismError as error:
                pass_on(error)
                return Look(0.0, draws, failed="right" if side else "left", said=str(error))
        curve = _curve_of(request.claim)
        score = curve.excess(*_event_counts(*sides), draws)
        joint = _joint_counts(*sides)
        return Look(
            score if joint is None else max(score, curve.excess(*joint, draws - draws // 2)), draws
        )


@contextmanager
def _own_states(mechanism: Mechanism) -> Iterator[None]:
    """Puts the global generators back, which a look seeds for mechanisms that draw from them."""
    if mechanism.is_seeded:
        yield
        return
    kept = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002


def _movement(left: Outputs, right: Outputs, coupled: bool, curve: Curve) -> float:
    """How much more than the claim allows the outputs seem to move: 1 is as much as it allows."""
    if {block.shape for block in left} != {block.shape for block in right}:
        sizes = [{block.shape: block.size / len(left) for block in side} for side in (left, right)]
        alike = sum(min(share, sizes[1].get(shape, 0.0)) for shape, share in sizes[0].items())
        return CERTAIN if alike == 0.0 else (1.0 - alike) / curve.most
    most = 0.0
    for one in left:
        two = next(block for block in right if block.shape == one.shape)
        if one.size == two.size:
            columns = list(zip(one.columns, two.columns, strict=True))[:_MOST_COLUMNS]
            # Losses of independent noises add up.
            moves = sum(_moved(*_as_numbers(*each), coupled) for each in columns)
            most = max(most, (1.0 - math.exp(-moves / 2.0)) / curve.most)
            if moves >= CERTAIN:
                return CERTAIN
    return most


def _as_numbers(one: Any, two: Any) -> tuple[Floats, Floats]:
    """Two columns as numbers; names are numbered."""
    if not isinstance(one, Labels):
        return one.values.astype(np.float64), two.values.astype(np.float64)
    codes = {
        label: float(code) for code, label in enumerate(dict.fromkeys((*one.labels, *two.labels)))
    }
    left, right = (
        np.array([codes[side.labels[code]] for code in side.codes.tolist()]) for side in (one, two)
    )
    return left, right


def _moved(one: Floats, two: Floats, coupled: bool) -> float:
    """How far a column moves, in mean deviations of its noise: the loss if the noise is Laplacian."""
    odd = ~np.isfinite(one), ~np.isfinite(two)
    if odd[0].any() or odd[1].any():  # NaN and infinities have no distance: they are there, or not
        share = abs(float(odd[0].mean()) - float(odd[1].mean()))
        alike = np.array_equal(one[odd[0]], two[odd[1]], equal_nan=True)
        return (
            CERTAIN
            if share == 1.0 or (odd[0].all() and odd[1].all() and not alike)
            else 4.0 * share
        )
    with np.errstate(all="ignore"):  # of huge numbers
        spreads = [float(np.mean(np.abs(side - np.median(side)))) for side in (one, two)]
        if spreads[0] == 0.0 or spreads[1] == 0.0:  # one of them without noise
            if spreads[0] == spreads[1] and one[0] == two[0]:
                return 0.0
            return CERTAIN if len(np.intersect1d(one, two)) == 0 else 4.0
        move = (
            float(np.median(np.abs(one - two)))
            if coupled
            else abs(float(np.median(one) - np.median(two)))
        )
        scaled = abs(float(np.log(spreads[0]) - np.log(spreads[1]))) if coupled else 0.0
        return min(max(move / (spreads[0] / 2.0 + spreads[1] / 2.0), scaled), CERTAIN - 1.0)


def _event_counts(left: Outputs, right: Outputs) -> tuple[Integers, Integers]:
    """Hits of simple events: a shape, a number at most or above some value, a value that repeats, a name.

    Returns:
        Two arrays of shape (k,).
    """
    n = len(left)
    counts = [(np.array([n]), np.array([n]))]  # whatever happens
    blocks = blocks_of_both(left, right)
    for one, two in blocks:
        if len(blocks) > 1:
            counts.append((np.array([one.size, n - one.size]), np.array([two.size, n - two.size])))
        if one.size and two.size:
            for column, other in list(zip(one.columns, two.columns, strict=True))[:_MOST_COLUMNS]:
                counts.append(_thresholds(*_as_numbers(column, other)))
    return np.concatenate([pair[0] for pair in counts]), np.concatenate(
        [pair[1] for pair in counts]
    )


# A plain look at wide outputs sees their first columns only.
_MOST_COLUMNS = 64


def _thresholds(one: Floats, two: Floats) -> tuple[Integers, Integers]:
    values, place = np.unique(np.concatenate([one, two]), return_inverse=True, equal_nan=True)
    counts = [
        np.bincount(some, minlength=len(values)) for some in (place[: len(one)], place[len(one) :])
    ]
    events = [
        (np.cumsum(each), each.sum() - np.cumsum(each), each[counts[0] + counts[1] >= 3])
        for each in counts
    ]
    return np.concatenate(events[0]), np.concatenate(events[1])


def _joint_counts(left: Outputs, right: Outputs) -> tuple[Integers, Integers] | None:
    """Hits of events of all columns together: half of the draws say how each of them moves, the rest are counted.

    Each column counts by how far it is on the way from one median to the other, in mean deviations
    of its noise, which is the log-ratio of Laplacian noise. None unless all outputs are alike and
    have several columns.
    """
    if (
        len(left.blocks) != 1
        or len(right.blocks) != 1
        or left.blocks[0].shape != right.blocks[0].shape
    ):
        return None
    columns = list(zip(left.blocks[0].columns, right.blocks[0].columns, strict=True))[
        :_MOST_COLUMNS
    ]
    if len(columns) < 2:
        return None
    half = len(left) // 2
    totals = np.zeros(len(left) - half), np.zeros(len(right) - half)
    for one, two in (_as_numbers(*each) for each in columns):
        if not (np.isfinite(one).all() and np.isfinite(two).all()):
            continue
        medians = float(np.median(one[:half])), float(np.median(two[:half]))
        with np.errstate(all="ignore"):
            spread = (
                float(
                    np.mean(np.abs(one[:half] - medians[0]))
                    + np.mean(np.abs(two[:half] - medians[1]))
                )
                / 2.0
            )
        if spread > 0.0 and math.isfinite(spread) and medians[0] != medians[1]:
            for total, side in zip(totals, (one, two), strict=True):
                with np.errstate(all="ignore"):  # outputs may be as large as floats are
                    step = (
                        np.abs(side[half:] - medians[1]) - np.abs(side[half:] - medians[0])
                    ) / spread
                total += np.nan_to_num(step)
    return _thresholds(*totals)
