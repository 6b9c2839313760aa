"""Screening of pairs of inputs: a few draws that choose what to certify, and certify nothing.

A coupled screening runs both inputs with the same random numbers. A handful of draws then shows how
far outputs move relative to the noise, whether their shape changes, and whether noise is missing. A
plain screening compares some hundred independent draws with the claim.

`PairScreener` is the work itself, which runs on any worker. `Screening` hands it out, and remembers
the results in the journal of the audit. How two samples are scored is in `screening_scores.py`.
"""

import json
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from epsilometer.auditing.audit_run import AuditRun
from epsilometer.auditing.questions import PairwiseQuestion
from epsilometer.auditing.screening_scores import coupled_score, plain_score
from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.engine import Phase
from epsilometer.engine.fingerprints import row_hashes
from epsilometer.engine.isolation import detect_monkeypatching, isolate_process_state
from epsilometer.engine.seeds import chunk_rng
from epsilometer.errors import InputError, MechanismError, short_repr
from epsilometer.inputs import Pair
from epsilometer.inputs.finders.rounds import PairCandidate
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Outputs, concatenate

# Draws per side of a coupled screening: the median of so few movements is exact where noise is
# added, and the scale of the noise is known to a third.
COUPLED_DRAWS = 8
# Draws per side of a plain screening.
PLAIN_DRAWS = 300
# Standard errors beyond the claim from which on a pair is promising: it is explored.
PROMISING_SCORE = 3.5
# A second screening has this many times as many draws: of many pairs, some have high scores by
# chance.
SECOND_SCREENING_FACTOR = 4
# Pairs that a worker screens in one task.
_PAIRS_PER_TASK = 4
# `failed_sides` of a pair about which the mechanism claims nothing, so that it was not run.
UNCLAIMED = "unclaimed"
# Factor between the claims that are screened, for notions whose curves take most of a second: they
# are rounded up to powers of this, of which a search meets a few dozen.
_CLAIM_STEP = 1.15
# The part of the seed that says "both sides", for draws that share their random numbers.
_BOTH_SIDES = 2


@dataclass(frozen=True, slots=True)
class ScreeningRequest:
    """A pair to screen.

    Attributes:
        number: of a plain screening, part of its seed; 0 for a coupled one.
        pair: the inputs.
        draws: per side of a plain screening; 0 for a coupled one.
        claim: what is claimed about this pair.
    """

    number: int
    pair: Pair
    draws: int
    claim: Claim


@dataclass(frozen=True, slots=True)
class ScreeningResult:
    """What a screening found.

    Attributes:
        score: of a plain screening, by how many standard errors an event exceeds the claim; of a
            coupled one, the movement as a fraction of what the claim allows.
        draws: per side.
        is_coupled: whether the two inputs could be run with the same random numbers.
        failed_sides: on which the mechanism raised: "", "left", "right" or "both"; UNCLAIMED if it
            was not run.
        error: what it raised, or why nothing is claimed.
    """

    score: float
    draws: int
    is_coupled: bool = False
    failed_sides: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ScreenedPair:
    """A candidate that had a plain screening.

    Attributes:
        candidate: as the finder proposed it.
        pair: its pair; the note is what the report says about it.
        score: of the plain screening.
    """

    candidate: PairCandidate
    pair: Pair
    score: float


@dataclass(frozen=True, slots=True)
class PairScreener:
    """The work of screening, for any worker: a pure function of the pairs and their numbers.

    Attributes:
        mechanism: what is run.
        seed: of the audit.
    """

    mechanism: Mechanism
    seed: int

    def __call__(self, task: Sequence[ScreeningRequest]) -> list[ScreeningResult]:
        """Screens some pairs."""
        results = []
        for request in task:
            if request.draws:
                results.append(self._screen_plain(request))
            else:
                results.append(self._screen_coupled(request))
        return results

    def describe(self, task: Sequence[ScreeningRequest]) -> str:
        """Returns a task in words, for messages."""
        inputs = []
        for request in task:
            inputs.append(short_repr(request.pair.left))
            inputs.append(short_repr(request.pair.right))
        return f"{self.mechanism.name} on the input {' or '.join(inputs)}"

    def _screen_coupled(self, request: ScreeningRequest) -> ScreeningResult:
        """Runs both inputs with the same random numbers.

        The first draw of the left input is made twice: if it differs, nothing is coupled.
        """
        pair = request.pair
        with _restored_generators(self.mechanism):
            left, left_error = self._draw_one_by_one(pair.left, [0, *range(COUPLED_DRAWS)])
            right, right_error = self._draw_one_by_one(pair.right, list(range(COUPLED_DRAWS)))
        if left is None and right is None:
            return ScreeningResult(score=0.0, draws=1, failed_sides="both", error=left_error)
        if left is None:
            return ScreeningResult(score=0.0, draws=1, failed_sides="left", error=left_error)
        if right is None:
            return ScreeningResult(score=0.0, draws=1, failed_sides="right", error=right_error)
        hashes = row_hashes(left)
        is_coupled = bool(hashes[0] == hashes[1])
        score = coupled_score(left.take(slice(1, None)), right, is_coupled, request.claim)
        return ScreeningResult(score=score, draws=COUPLED_DRAWS, is_coupled=is_coupled)

    def _draw_one_by_one(self, dataset: Any, places: list[int]) -> tuple[Outputs | None, str]:
        """Returns one output for each place, the random numbers of a place being always the same.

        The outputs are None if the mechanism raised; then the text says what.
        """
        drawn = []
        try:
            with (
                detect_monkeypatching(self.mechanism.name, [dataset]),
                isolate_process_state(self.mechanism.name, dataset),
            ):
                for place in places:
                    if not self.mechanism.is_seeded:
                        # The mechanism may draw from the generators of the process.
                        random.seed(place + self.seed)
                        np.random.seed((place + self.seed) % 2**32)  # noqa: NPY002
                    rng = chunk_rng(self.seed, Phase.SCREEN, place, _BOTH_SIDES, 0)
                    drawn.append(self.mechanism.sample(dataset, 1, rng))
        except MechanismError as error:
            pass_on(error)
            return None, str(error)
        return concatenate(drawn), ""

    def _screen_plain(self, request: ScreeningRequest) -> ScreeningResult:
        """Compares independent draws of both inputs with the claim."""
        sides: list[Outputs] = []
        for side, side_name in enumerate(("left", "right")):
            dataset = request.pair.side(side)
            try:
                rng = chunk_rng(self.seed, Phase.SCREEN, request.number, side, 1)
                name = self.mechanism.name
                with detect_monkeypatching(name, [dataset]), isolate_process_state(name, dataset):
                    sides.append(self.mechanism.sample(dataset, request.draws, rng))
            except MechanismError as error:
                pass_on(error)
                return ScreeningResult(
                    score=0.0, draws=request.draws, failed_sides=side_name, error=str(error)
                )
        left, right = sides
        score = plain_score(left, right, request.claim)
        return ScreeningResult(score=score, draws=request.draws)


@contextmanager
def _restored_generators(mechanism: Mechanism) -> Iterator[None]:
    """Restores the generators of the process, which screening seeds for unseeded mechanisms."""
    if mechanism.is_seeded:
        yield
        return
    random_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(random_state)
        np.random.set_state(numpy_state)  # noqa: NPY002


class Screening:
    """The screenings of one audit, in order: each plain one has a number, which seeds it.

    Args:
        run: the audit, whose sampler, claim and journal are used.
    """

    def __init__(self, run: AuditRun) -> None:
        self._run = run
        self._screener = PairScreener(run.sampler.mechanism, run.settings.seed)
        self._plain_screenings = 0
        self._batches = 0

    def coupled(self, pairs: Sequence[Pair]) -> list[ScreeningResult]:
        """Screens pairs with the same random numbers on both sides."""
        return self._screen(pairs, draws=0)

    def plain(self, pairs: Sequence[Pair], draws: int = PLAIN_DRAWS) -> list[ScreeningResult]:
        """Screens pairs with independent draws, so many per side."""
        return self._screen(pairs, draws)

    def _screen(self, pairs: Sequence[Pair], draws: int) -> list[ScreeningResult]:
        """Screens pairs, wherever chunks run; a batch that the journal knows is not repeated."""
        requests: list[ScreeningRequest] = []
        unclaimed: dict[int, ScreeningResult] = {}
        for place, pair in enumerate(pairs):
            try:
                claim = self._run.question.about(pair).claim
            except InputError as error:
                # Inside the domain every pair must be judged; beyond it are values that have no
                # distance, like NaN.
                if pair.within is not False:
                    raise
                unclaimed[place] = ScreeningResult(
                    score=0.0, draws=0, failed_sides=UNCLAIMED, error=str(error)
                )
                continue
            if isinstance(self._run.question, PairwiseQuestion):
                claim = coarse_claim(claim)
            number = self._plain_screenings + place + 1 if draws else 0
            requests.append(ScreeningRequest(number=number, pair=pair, draws=draws, claim=claim))
        if draws:
            self._plain_screenings += len(pairs)
        self._batches += 1

        screened = iter(self._results(requests))
        return [
            unclaimed[place] if place in unclaimed else next(screened)
            for place in range(len(pairs))
        ]

    def _results(self, requests: list[ScreeningRequest]) -> list[ScreeningResult]:
        """Returns the results of the current batch, from the journal or from the workers."""
        sampler = self._run.sampler
        journal = self._run.settings.journal
        name = f"looks {self._batches}"
        stored = journal.read_note(name) if journal.is_kept else None
        if stored is not None:
            results = [ScreeningResult(**fields) for fields in json.loads(stored)]
        else:
            tasks = [
                requests[start : start + _PAIRS_PER_TASK]
                for start in range(0, len(requests), _PAIRS_PER_TASK)
            ]
            results = []
            for task_results in sampler.runner.map(self._screener, tasks):
                results += task_results
            if journal.is_kept:
                journal.write_note(name, json.dumps([asdict(result) for result in results]))
        for result in results:
            sampler.drawn[0] += result.draws
            sampler.drawn[1] += result.draws
            sampler.progress.advance(2 * result.draws)
        return results


def coarse_claim(claim: Claim) -> Claim:
    """Returns a claim for screening many pairs that each have their own.

    Claims of notions whose curves are slow are rounded up, so that curves can be cached. Screening
    certifies nothing, so a slightly weaker claim costs no soundness.
    """
    if not isinstance(claim, RenyiDP | ZCDP) or not 0.0 < claim.value < math.inf:
        return claim
    return claim.with_value(_CLAIM_STEP ** math.ceil(math.log(claim.value, _CLAIM_STEP)))
