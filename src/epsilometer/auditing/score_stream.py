"""Scores that arrive in batches: bets against a claim that may stop at any time.

Each batch is bet on by tails of the scores: {score ≥ c} or {score < c}, with thresholds and guesses
from earlier batches only. How good a threshold is shows only after some batches, so the wealth is
split over many: each has the share that its guess would have earned on the earlier batches.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Booleans, Floats
from epsilometer.auditing.score_values import read_scores
from epsilometer.bounds import Counts
from epsilometer.bounds.bet_rounds import BetOutcome, Guess, place_round
from epsilometer.bounds.betting import growth_rate
from epsilometer.bounds.supporting_lines import Lines, lines_of
from epsilometer.claims import Claim, as_claim
from epsilometer.claims.base import check_confidence
from epsilometer.errors import InputError
from epsilometer.storage.writing import write_atomically

try:
    import fcntl
except ImportError:  # systems without locks of files
    fcntl = None  # type: ignore[assignment]

SCHEMA_VERSION = 1
_KIND = "score stream"
# Thresholds that are considered in each batch: more of them come closer to the best one, and each
# takes its time.
_MOST_THRESHOLDS = 24
# Tails that are bet on at the most, the best ones. Neighbouring thresholds say nearly the same, so
# that more of them take their time and hardly change how many pairs are needed.
_MOST_TAILS = 10
# The least share of a tail, relative to the largest one: what is smaller never matters.
_LEAST_WEIGHT = 1e-6
# Scores per side from which thresholds are chosen. More would choose no better ones, but would have
# to be kept in the file.
_MOST_LEARNED = 20_000
# The largest log-wealth whose exponential still fits a float.
_MOST_LOG = 700.0


@dataclass(frozen=True, slots=True)
class StreamState:
    """What the batches so far show.

    Attributes:
        claim: what is bet against.
        confidence: with which the claim is refuted.
        samples: scores so far, held in and held out.
        batches: how many batches were added.
        log_wealth: the logarithm of the wealth.
        greatest_log_wealth: the largest value that it had so far.
    """

    claim: Claim
    confidence: float
    samples: tuple[int, int] = (0, 0)
    batches: int = 0
    log_wealth: float = 0.0
    greatest_log_wealth: float = 0.0

    @property
    def wealth(self) -> float:
        """What bets that began with 1 have become.

        If the claim holds, it ever reaches 1/t with probability at most t.
        """
        return math.exp(min(self.log_wealth, _MOST_LOG))

    @property
    def p_value(self) -> float:
        """The inverse of the greatest wealth so far: a p-value that is valid at any time."""
        return math.exp(-min(self.greatest_log_wealth, _MOST_LOG))

    @property
    def is_refuted(self) -> bool:
        """Whether the wealth has ever reached 1/(1 − confidence)."""
        return self.greatest_log_wealth >= -math.log(1.0 - self.confidence)

    @property
    def blind(self) -> str | None:
        """None; or one sentence, if no bets on so few scores could have refuted the claim yet.

        It says so where the claim allows perfectly separated scores with a probability above
        1 − confidence. Bets need some more than that: those of the first batch choose thresholds.
        """
        # Only needed by those who ask.
        from epsilometer.auditing.blindness import claimed_value, likeliest_allowed

        n_in, n_out = self.samples
        likeliest = likeliest_allowed(self.claim, n_in, n_out)
        if self.is_refuted or likeliest.log_likelihood <= math.log(1.0 - self.confidence):
            return None
        return (
            f"{n_in:,} held-in and {n_out:,} held-out scores could not have refuted "
            f"{claimed_value(self.claim)} yet, even if they were perfectly separated."
        )

    def __repr__(self) -> str:
        verdict = "refuted" if self.is_refuted else "not refuted"
        if self.blind is not None:
            verdict = "not refuted, and could not have been"
        n_in, n_out = self.samples
        return (
            f"<StreamState: {self.claim.describe()} {verdict}, wealth {self.wealth:.4g}, "
            f"{n_in} held-in and {n_out} held-out scores>"
        )


class _Sides(NamedTuple):
    """Scores of both sides, in the order of their arrival."""

    held_in: Floats
    held_out: Floats

    def and_then(self, later: "_Sides", most: int | None = None) -> "_Sides":
        """These and the later ones; no more than `most` per side."""
        held_in = np.concatenate([self.held_in, later.held_in])[:most]
        held_out = np.concatenate([self.held_out, later.held_out])[:most]
        return _Sides(held_in, held_out)

    @property
    def is_of_both(self) -> bool:
        return len(self.held_in) > 0 and len(self.held_out) > 0


_NONE = _Sides(np.empty(0), np.empty(0))


@dataclass(frozen=True, slots=True)
class _Progress:
    """Everything that is kept from batch to batch.

    Attributes:
        state: what is shown.
        learned: scores from which thresholds are chosen.
        waiting: scores that are not yet bet on, because those of the other side are missing.
    """

    state: StreamState
    learned: _Sides = field(default=_NONE)
    waiting: _Sides = field(default=_NONE)


class ScoreStream:
    """Audits canary scores batch by batch, and may stop at any time.

    Larger scores should mean "was in the training set"; smaller ones are seen as well.

    Args:
        claim: of any notion.
        confidence: with which the claim is refuted.
        path: a file that is replaced after every batch. If it is there, the stream goes on where it
            stopped. One stream at a time may add to it.

    Guarantee: exact at any stopping time. If the claim holds, it is ever refuted with probability
        at most 1 − confidence, however long the stream is and whenever one stops. The scores of
        each side must be independent and identically distributed (one canary per run), and how many
        of them a batch has must not depend on their values.

    Note: the first batch only chooses thresholds, so give scores in the batches in which they come,
        not all at once. A batch with scores of one side only waits for the other side.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> audit = em.ScoreStream("mu=1")
        >>> while not audit.state.is_refuted:
        ...     state = audit.add(rng.normal(3.0, 1.0, 4), rng.normal(0.0, 1.0, 4))
        >>> state.samples[0] < 100
        True
    """

    def __init__(
        self, claim: Claim | str, confidence: float = 0.95, path: str | Path | None = None
    ) -> None:
        promised = as_claim(claim)
        state = StreamState(claim=promised, confidence=check_confidence(confidence))
        self._lines = lines_of((promised,))
        self._adding = Lock()
        self._progress = _Progress(state)
        self._file = None if path is None else _StreamFile(Path(path))
        if self._file is None:
            return
        if self._file.path.exists():
            self._progress = self._file.read(state)
        else:
            # A path that cannot be written is reported before the first training.
            self._file.write(self._progress)

    @property
    def claim(self) -> Claim:
        """What is bet against."""
        return self.state.claim

    @property
    def state(self) -> StreamState:
        """What the batches so far show."""
        return self._progress.state

    def add(self, in_scores: object, out_scores: object) -> StreamState:
        """Adds a batch and returns what all batches show; either side may be empty.

        The file, if there is one, holds the batch before this returns.

        Args:
            in_scores: shape (n,), as for `from_scores`.
            out_scores: shape (m,), likewise.

        Raises:
            InputError: the scores cannot be read, or another stream wrote to the file. Nothing is
                added then.
        """
        batch = _Sides(
            read_scores("in_scores", in_scores, fewest=0),
            read_scores("out_scores", out_scores, fewest=0),
        )
        with self._adding:
            progress = _advance(self._progress, batch, self._lines)
            if self._file is not None:
                self._file.write(progress)
            self._progress = progress
        return progress.state

    def __repr__(self) -> str:
        return repr(self.state).replace("StreamState", type(self).__name__)


def _advance(progress: _Progress, batch: _Sides, lines: Lines) -> _Progress:
    """What is kept after a further batch."""
    n_in, n_out = progress.state.samples
    state = replace(
        progress.state,
        samples=(n_in + len(batch.held_in), n_out + len(batch.held_out)),
        batches=progress.state.batches + 1,
    )
    fresh = progress.waiting.and_then(batch)
    if not fresh.is_of_both:
        return replace(progress, state=state, waiting=fresh)
    log_wealth = state.log_wealth + _won(progress.learned, fresh, lines)
    greatest = max(state.greatest_log_wealth, log_wealth)
    return _Progress(
        state=replace(state, log_wealth=log_wealth, greatest_log_wealth=greatest),
        learned=progress.learned.and_then(fresh, _MOST_LEARNED),
    )


def _won(learned: _Sides, fresh: _Sides, lines: Lines) -> float:
    """What bets on fresh scores add to the log-wealth.

    Args:
        learned: earlier scores, on which everything about the bets depends.
        fresh: scores of both sides that decide nothing about the bets but their number.
        lines: what the claim allows.
    """
    if not learned.is_of_both:
        return 0.0
    tails = _TailBets.chosen(learned, lines)
    if not len(tails.weights):
        return 0.0
    n_in = len(fresh.held_in)
    n_out = len(fresh.held_out)
    bets = place_round(
        lines,
        [Guess(p, q) for p, q in zip(tails.p.tolist(), tails.q.tolist(), strict=True)],
        sizes=[(n_in, n_out) if is_of_in else (n_out, n_in) for is_of_in in tails.is_of_in],
        weights=tails.weights.tolist(),
    )
    return float(bets.log_wealth(tails.outcomes(fresh))[0])


@dataclass(frozen=True, slots=True)
class _TailBets:
    """Tails of the scores that are bet on; all arrays have shape (k,).

    Attributes:
        thresholds: c.
        is_upper: whether the tail is {score ≥ c}; else it is {score < c}.
        is_of_in: whether the tail should be likelier for the held-in scores.
        p: its probability on the side where it should be likelier, by the earlier scores.
        q: its probability on the other side.
        weights: to which the shares of the wealth are proportional.
    """

    thresholds: Floats
    is_upper: Booleans
    is_of_in: Booleans
    p: Floats
    q: Floats
    weights: Floats

    @classmethod
    def chosen(cls, learned: _Sides, lines: Lines) -> "_TailBets":
        """The tails to bet on, by earlier scores of both sides; none if no bet would grow."""
        thresholds = np.unique(np.concatenate(learned))
        if len(thresholds) > _MOST_THRESHOLDS:
            places = np.linspace(0, len(thresholds) - 1, _MOST_THRESHOLDS)
            thresholds = thresholds[np.round(places).astype(np.int64)]
        upper_in = _upper_tail(learned.held_in, thresholds)
        upper_out = _upper_tail(learned.held_out, thresholds)
        # Upper and lower tails, each of which may be likelier on either side.
        p = np.concatenate([upper_in, 1.0 - upper_out, upper_out, 1.0 - upper_in])
        q = np.concatenate([upper_out, 1.0 - upper_in, upper_in, 1.0 - upper_out])
        is_upper = np.repeat([True, False, True, False], len(thresholds))
        is_of_in = np.repeat([True, False, False, True], len(thresholds))
        growth = np.where(p > q, growth_rate(lines, p, q), 0.0)
        # What each guess would have earned on so many pairs, in units of the best one. That is how
        # a Bayesian weighs hypotheses whose likelihoods are these.
        n_pairs = min(len(learned.held_in), len(learned.held_out))
        weights = np.exp(n_pairs * (growth - growth.max()))
        best = np.argsort(-weights, kind="stable")[:_MOST_TAILS]
        best = best[(growth[best] > 0.0) & (weights[best] >= _LEAST_WEIGHT)]
        return cls(
            thresholds=np.tile(thresholds, 4)[best],
            is_upper=is_upper[best],
            is_of_in=is_of_in[best],
            p=p[best],
            q=q[best],
            weights=weights[best],
        )

    def outcomes(self, fresh: _Sides) -> list[BetOutcome]:
        """How often each tail occurred in fresh scores."""
        in_hits = self._hits(fresh.held_in)
        out_hits = self._hits(fresh.held_out)
        outcomes = []
        for is_of_in, hits_in, hits_out in zip(self.is_of_in, in_hits, out_hits, strict=True):
            counts_in = Counts(hits_in, len(fresh.held_in))
            counts_out = Counts(hits_out, len(fresh.held_out))
            outcomes.append(
                BetOutcome(counts_in, counts_out) if is_of_in else BetOutcome(counts_out, counts_in)
            )
        return outcomes

    def _hits(self, scores: Floats) -> list[int]:
        """How many scores are in each tail."""
        n_below = np.searchsorted(np.sort(scores), self.thresholds, side="left")
        hits = np.where(self.is_upper, len(scores) - n_below, n_below)
        return [int(count) for count in hits]


def _upper_tail(scores: Floats, thresholds: Floats) -> Floats:
    """Guesses of P(score ≥ threshold)."""
    n_below = np.searchsorted(np.sort(scores), thresholds, side="left")
    # Half a hit and half a miss more: what never occurred is rare, not impossible.
    return np.asarray((len(scores) - n_below + 0.5) / (len(scores) + 1.0), dtype=np.float64)


# --- The file ---


class _StreamFile:
    """The file of one stream, which replaces it after every batch.

    Two streams that share a file would each write the batches of the other away. So the file is
    replaced only if it holds what this stream read or wrote last.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = b""

    def read(self, asked: StreamState) -> _Progress:
        """Reads what an earlier stream left; refuses one of another claim or confidence."""
        progress, self._content = _read(self.path, asked)
        return progress

    def write(self, progress: _Progress) -> None:
        """Replaces the file, whole or not at all."""
        content = (json.dumps(_to_data(progress), allow_nan=False) + "\n").encode()
        with _only_one_in(self.path.parent):
            if self.path.exists() and self.path.read_bytes() != self._content:
                raise InputError(
                    f"path={str(self.path)!r}: another stream has written to this file; open it "
                    "anew and add this batch to what it holds, or give each stream a file of its "
                    "own"
                )
            write_atomically(self.path, content)
        self._content = content


@contextmanager
def _only_one_in(folder: Path) -> Iterator[None]:
    """Waits until no other stream writes in this folder, where the system has such locks."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _to_data(progress: _Progress) -> dict[str, Any]:
    state = progress.state
    return {
        "kind": _KIND,
        "schema_version": SCHEMA_VERSION,
        "claim": state.claim.to_dict(),
        "confidence": state.confidence,
        "samples": list(state.samples),
        "batches": state.batches,
        "log_wealth": state.log_wealth,
        "greatest_log_wealth": state.greatest_log_wealth,
        "learned": _sides_to_data(progress.learned),
        "waiting": _sides_to_data(progress.waiting),
    }


def _sides_to_data(sides: _Sides) -> dict[str, list[float | str]]:
    """Scores as JSON, which has no infinite numbers: these are written as texts."""
    return {
        name: [score if math.isfinite(score) else str(score) for score in scores.tolist()]
        for name, scores in sides._asdict().items()
    }


def _read(path: Path, asked: StreamState) -> tuple[_Progress, bytes]:
    """What an earlier stream left, and the content of its file."""
    try:
        content = path.read_bytes()
        data = json.loads(content.decode("utf-8"))
        if data["kind"] != _KIND or data["schema_version"] != SCHEMA_VERSION:
            raise InputError(f"kind={data['kind']!r} with version {data['schema_version']!r}")
        stored_claim = data["claim"]
        n_in, n_out = data["samples"]
        state = replace(
            asked,
            confidence=float(data["confidence"]),
            samples=(int(n_in), int(n_out)),
            batches=int(data["batches"]),
            log_wealth=float(data["log_wealth"]),
            greatest_log_wealth=float(data["greatest_log_wealth"]),
        )
        learned = _sides_from_data(data["learned"])
        waiting = _sides_from_data(data["waiting"])
        progress = _Progress(state=state, learned=learned, waiting=waiting)
        _check_possible(progress)
    except (
        *(OSError, ValueError, LookupError, TypeError),
        *(OverflowError, RecursionError),  # numbers beyond all floats, lists in lists in lists
    ) as error:
        raise InputError(
            f"path={str(path)!r} holds no score stream that can be resumed ({error}); "
            "give another file"
        ) from error
    # Through JSON, as the stored one went: a tuple becomes a list.
    asked_claim = json.loads(json.dumps(asked.claim.to_dict()))
    if stored_claim != asked_claim:
        raise InputError(
            f"path={str(path)!r} was begun with another claim than {asked.claim.describe()}; "
            "give another file"
        )
    if state.confidence != asked.confidence:
        raise InputError(
            f"confidence={asked.confidence!r}: path={str(path)!r} was begun with "
            f"{state.confidence!r}, which is part of the promise; give another file"
        )
    return progress, content


def _check_possible(progress: _Progress) -> None:
    """Raises a ValueError if no batches lead here: somebody else changed the file."""
    state = progress.state
    if not math.isfinite(state.log_wealth) or not math.isfinite(state.greatest_log_wealth):
        raise ValueError("the stored wealth is not finite")
    if state.greatest_log_wealth < max(state.log_wealth, 0.0):
        raise ValueError("the stored wealth is above its greatest value")
    if min(*state.samples, state.batches) < 0:
        raise ValueError("a stored number of scores or batches is negative")
    if progress.waiting.is_of_both:
        raise ValueError("scores of both sides wait for the other side")
    for number, learned, waiting in zip(
        state.samples, progress.learned, progress.waiting, strict=True
    ):
        if min(number, _MOST_LEARNED) != min(len(learned) + len(waiting), _MOST_LEARNED):
            raise ValueError("the stored scores are not as many as there were")


def _sides_from_data(data: Mapping[str, list[float | str]]) -> _Sides:
    """The inverse of `_sides_to_data`."""
    held_in = np.array([float(score) for score in data["held_in"]], dtype=np.float64)
    held_out = np.array([float(score) for score in data["held_out"]], dtype=np.float64)
    if np.isnan(held_in).any() or np.isnan(held_out).any():
        raise ValueError("a stored score is NaN")
    return _Sides(held_in, held_out)
