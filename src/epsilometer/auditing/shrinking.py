"""Shrinking: the simplest pair of inputs that still looks like a leak.

Shrinking only screens, so it certifies nothing. The pair that it returns is explored and certified
on fresh draws like any other.
"""

import math
from dataclasses import replace
from itertools import islice

from epsilometer.auditing.screening import (
    PLAIN_DRAWS,
    PROMISING_SCORE,
    SECOND_SCREENING_FACTOR,
    ScreenedPair,
    Screening,
)
from epsilometer.inputs.finders.rounds import PairCandidate, RoundFinder

# Steps of shrinking; in each the pair is replaced by a simpler one.
_MOST_STEPS = 16
# Simpler pairs that are screened in one step, the simplest first.
_MOST_CANDIDATES = 48
# Simpler pairs that get a second screening in one step.
_MOST_SECOND_SCREENINGS = 4
# A simpler pair keeps at least this fraction of the score,
_KEPT_FRACTION = 0.7
# but no more is asked for than this many standard errors, which a certificate surely confirms.
_ENOUGH_SCORE = 6.0
# Standard errors from which on a leak is so clear that few draws show it,
_CLEAR_SCORE = 12.0
# and how many draws per side these are.
_CLEAR_DRAWS = 100
# The fraction of the expected score that a second screening must reach.
_CONFIRMED_FRACTION = 0.75


def shrink_pair(screened: ScreenedPair, finder: RoundFinder, screening: Screening) -> ScreenedPair:
    """Returns the simplest pair that still looks like a leak, described in the finder's words.

    Args:
        screened: the pair that looks like a leak.
        finder: says which pairs are simpler.
        screening: draws from them.
    """
    draws = _CLEAR_DRAWS if screened.score >= _CLEAR_SCORE else PLAIN_DRAWS
    score_of_plain_draws = min(_KEPT_FRACTION * screened.score, _ENOUGH_SCORE)
    # Scores grow with the square root of the draws.
    required_score = score_of_plain_draws * math.sqrt(draws / PLAIN_DRAWS)
    candidate = screened.candidate
    for _ in range(_MOST_STEPS):
        simpler = _first_leaking(
            [*islice(finder.simpler(candidate), _MOST_CANDIDATES)],
            candidate,
            finder,
            screening,
            draws=draws,
            required_score=required_score,
        )
        if simpler is None:
            simpler = _first_leaking(
                [*islice(finder.simpler_fallback(candidate), _MOST_CANDIDATES)],
                candidate,
                finder,
                screening,
                draws=draws,
                required_score=required_score,
            )
        if simpler is None:
            break
        candidate = simpler
    if candidate is not screened.candidate:
        screened = ScreenedPair(candidate=candidate, pair=candidate.pair, score=screened.score)
    return describe_pair(screened, finder)


def describe_pair(screened: ScreenedPair, finder: RoundFinder) -> ScreenedPair:
    """Returns the pair with a note that says what is special about it."""
    note = finder.describe_candidate(screened.candidate)
    return replace(screened, pair=replace(screened.pair, note=note))


def _first_leaking(
    simpler: list[PairCandidate],
    candidate: PairCandidate,
    finder: RoundFinder,
    screening: Screening,
    *,
    draws: int,
    required_score: float,
) -> PairCandidate | None:
    """Returns the simplest of some candidates that still looks like a leak, twice."""
    # A pair that counts must not become one that is only remarked on.
    if finder.counts(candidate):
        simpler = [variant for variant in simpler if finder.counts(variant)]
    results = screening.plain([variant.pair for variant in simpler], draws)
    leaking = [
        variant
        for variant, result in zip(simpler, results, strict=True)
        if result.score >= required_score
    ]
    for variant in leaking[:_MOST_SECOND_SCREENINGS]:
        (second,) = screening.plain([variant.pair], SECOND_SCREENING_FACTOR * draws)
        expected_score = math.sqrt(SECOND_SCREENING_FACTOR) * required_score
        if second.score >= max(_CONFIRMED_FRACTION * expected_score, PROMISING_SCORE):
            return variant
    return None
