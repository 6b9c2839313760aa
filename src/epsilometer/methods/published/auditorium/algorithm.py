"""Algorithm 1 of DP-Auditorium as it is printed: trials, an estimator, a threshold.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", Algorithm 1.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from epsilometer.claims.base import check_number, check_whole
from epsilometer.engine import check_seed
from epsilometer.errors import InputError
from epsilometer.inputs import Pair, as_pairs, finders
from epsilometer.inputs.pairs import proposed_pair
from epsilometer.mechanisms import Mechanism, as_mechanism
from epsilometer.methods.published.adapters import takes_arguments
from epsilometer.methods.published.auditorium.estimators import Draw, Estimator
from epsilometer.one_line import fields_on_one_line
from epsilometer.outputs import Outputs
from epsilometer.outputs.columns import concatenate

# An estimator gets its draws at once; more than this fill the memory.
_MOST_DRAWS = 10**8
# Directions of an estimate in the seeds of its draws.
_FORWARD = 0
_BACKWARD = 1
# What a seed is for: choosing a pair, or one estimate.
_GENERATE = 0
_ESTIMATE = 1


@dataclass(frozen=True, slots=True)
class AlgorithmTrial:
    """One pair and its two estimates.

    Attributes:
        pair: D_0 and D_1.
        forward: D̂(M(D_0) ‖ M(D_1)).
        backward: D̂(M(D_1) ‖ M(D_0)).
    """

    pair: Pair
    forward: float
    backward: float

    __repr__ = fields_on_one_line

    @property
    def estimate(self) -> float:
        """The larger of both directions."""
        return max(self.forward, self.backward)


@dataclass(frozen=True, slots=True)
class TrialsResult:
    """What Algorithm 1 returns, with everything that it looked at.

    Attributes:
        is_refuted: whether an estimate exceeded the threshold; it is the last one.
        trials: the trials that were made, in order.
        allowed: T, the most trials.
        threshold: τ.
        failure: β.
        estimator_guarantee: what a single estimate promises.
        seed: repeats it.
    """

    is_refuted: bool
    trials: tuple[AlgorithmTrial, ...]
    allowed: int
    threshold: float
    failure: float
    estimator_guarantee: str
    seed: int

    __repr__ = fields_on_one_line

    @property
    def pair(self) -> Pair | None:
        """The pair on which the claim was refuted; None if it was not."""
        return self.trials[-1].pair if self.is_refuted else None

    @property
    def failure_of_run(self) -> float:
        """What the run as a whole may fail with: 2Tβ, at most 1, by the union bound.

        The paper reports β, which holds for one estimate.
        """
        return min(1.0, 2.0 * self.allowed * self.failure)

    @property
    def guarantee(self) -> str:
        """The paper's statement, and what holds of the whole run."""
        if self.estimator_guarantee.startswith("none"):
            return self.estimator_guarantee
        return (
            f"as published: each estimate fails with probability at most {self.failure:.3g} "
            f"({self.estimator_guarantee}); of up to {2 * self.allowed} estimates one may fail "
            f"with probability up to {self.failure_of_run:.3g}, by the union bound"
        )

    def __str__(self) -> str:
        if self.is_refuted:
            last = self.trials[-1]
            return (
                f"refuted in trial {len(self.trials)} of {self.allowed}: the estimate "
                f"{last.estimate:.4g} is above the threshold {self.threshold:.4g}"
            )
        best = max(trial.estimate for trial in self.trials)
        return (
            f"not refuted in {len(self.trials)} trials: the largest estimate {best:.4g} is not "
            f"above the threshold {self.threshold:.4g}"
        )


def audit(
    mechanism: object,
    generator: object,
    estimator: Estimator,
    *,
    trials: int,
    samples: int,
    threshold: float,
    failure: float = 1.0 / 3.0,
    seed: int | None = None,
) -> TrialsResult:
    """Runs Algorithm 1 as it is printed: each pair in turn, until an estimate exceeds τ.

    For a verdict take `epsilometer.audit`, which spends its failure probability once for all pairs
    and both directions, and hands over a witness. This is for reproducing, and for estimators of
    your own.

    Args:
        mechanism: a function of the dataset, anything made by `from_batch`, …, or an entry of the
            zoo.
        generator: a finder; a domain, which is searched uniformly at random; a function from a
            numpy Generator to a pair; a pair or a list of pairs, again from its beginning after its
            end; or any other iterable of pairs, until its end. A finder is told the larger estimate
            of each pair.
        estimator: D̂: one of `epsilometer.auditorium.estimators`, or any function `(p, q, n,
            failure, rng)` that returns an estimate of D(P ‖ Q) as a number. p(n) and q(n) draw n
            fresh outputs; `p(n).numbers()` is an array, if they are single numbers.
        trials: T, the most pairs to try.
        samples: n, the sample size that estimators are given, at most 10⁸; each direction has draws
            of its own.
        threshold: τ: δ for the approximate testers, ε or min(ε, 2αε²) for the Rényi tester.
        failure: β of each estimate.
        seed: makes it repeatable.

    Guarantee: the paper's own: if M keeps its promise, one estimate exceeds τ with probability at
        most β, provided that the estimator is a lower bound at that level. Up to 2T estimates are
        compared with τ, so that over a whole run the failure probability is at most 2Tβ by the
        union bound, not β; `failure_of_run` is that number.

    Reference: Kong et al. (2023), Algorithm 1.

    Example:
        >>> tester = em.auditorium.estimators.HockeyStick(epsilon=0.5)
        >>> noisy = em.zoo.laplace(epsilon=2.0)
        >>> found = em.auditorium.audit(
        ...     noisy, em.Pair(0, 1), tester, trials=1, samples=2000, threshold=0.0, seed=0
        ... )
        >>> found.is_refuted
        True
    """
    allowed = check_whole("trials", trials, 1)
    n = _check_draws("samples", samples, 2)
    tau = check_number("threshold", threshold)
    _check_failure(failure)
    _check_estimator(estimator)
    source = as_mechanism(mechanism)
    run_seed = check_seed(seed)
    finished: list[AlgorithmTrial] = []
    pairs = _Generator.of(generator, allowed, run_seed)
    for number, pair in enumerate(pairs):
        forward, backward = (
            _estimate(
                source,
                pair if direction == _FORWARD else Pair(pair.right, pair.left, equal=True),
                estimator,
                n=n,
                failure=failure,
                sequence=np.random.SeedSequence(run_seed, spawn_key=(_ESTIMATE, number, direction)),
            )
            for direction in (_FORWARD, _BACKWARD)
        )
        trial = AlgorithmTrial(pair, forward, backward)
        finished.append(trial)
        if trial.estimate > tau:
            break
        pairs.tell(trial.estimate)
    if not finished:
        raise InputError(f"generator={generator!r:.100} proposed no pair")
    return TrialsResult(
        is_refuted=finished[-1].estimate > tau,
        trials=tuple(finished),
        allowed=allowed,
        threshold=tau,
        failure=failure,
        estimator_guarantee=_guarantee_of(estimator),
        seed=run_seed,
    )


def _estimate(
    source: Mechanism,
    pair: Pair,
    estimator: Estimator,
    *,
    n: int,
    failure: float,
    sequence: np.random.SeedSequence,
) -> float:
    """Returns the estimate of D(left ‖ right), on draws of its own."""
    of_p, of_q, of_estimator = sequence.spawn(3)
    try:
        estimate = estimator(
            _draw(source, pair.left, of_p),
            _draw(source, pair.right, of_q),
            n,
            failure,
            np.random.default_rng(of_estimator),
        )
    except (TypeError, AttributeError) as error:
        error.add_note(
            "p(n) and q(n) return epsilometer.Outputs: p(n).numbers() is an array of them, if they "
            "are single numbers"
        )
        raise
    return _number(estimate, estimator)


def _number(estimate: object, estimator: Estimator) -> float:
    """Returns what an estimator returned as a float; an array of one number is one, too."""
    single: object = estimate
    if isinstance(estimate, np.ndarray) and estimate.size == 1:
        single = estimate.item()
    if isinstance(single, bool) or not isinstance(single, int | float | np.integer | np.floating):
        raise InputError(
            f"estimator={estimator!r:.100} returned {estimate!r:.60}: it must return one number"
        )
    value = float(single)
    if math.isnan(value):
        raise InputError(f"estimator={estimator!r:.100} returned {estimate!r}, which is no number")
    return value


def _as_whole(samples: object) -> object:
    """1e5 is a whole number, too, as in an audit."""
    return int(samples) if isinstance(samples, float) and samples.is_integer() else samples


def _check_draws(name: str, value: object, fewest: int, hint: str = "") -> int:
    """Returns a number of draws that fit into memory together, or raises an InputError."""
    n = check_whole(name, _as_whole(value), fewest, hint=hint)
    if n > _MOST_DRAWS:
        raise InputError(
            f"{name}={n} is above {_MOST_DRAWS:,}: an estimator keeps all of them in memory; take "
            "fewer, or epsilometer.audit, which counts them in chunks"
        )
    return n


def _guarantee_of(estimator: Estimator) -> str:
    """Returns what an estimator says that its estimate promises, if it says so in words."""
    guarantee = getattr(estimator, "guarantee", None)
    return guarantee if isinstance(guarantee, str) else "that of the given estimator"


def _check_failure(failure: object) -> None:
    number = check_number("failure", failure)
    if not 0.0 < number < 1.0:
        raise InputError(f"failure={failure!r} must lie strictly between 0 and 1")


def _check_estimator(estimator: object) -> None:
    """Raises an InputError for what cannot be called as an estimator is."""
    _refuse_class("estimator", estimator)
    if not callable(estimator) or not takes_arguments(estimator, 5):
        raise InputError(
            f"estimator={estimator!r:.100} must be one of epsilometer.auditorium.estimators, or a "
            "function (p, q, n, failure, rng)"
        )


def _refuse_class(name: str, given: object) -> None:
    if isinstance(given, type):
        raise InputError(
            f"{name}={given!r:.100} is a class: make an object of it, as in {given.__name__}(…)"
        )


def _draw(source: Mechanism, dataset: Any, sequence: np.random.SeedSequence) -> Draw:
    """Returns a function that draws fresh outputs: no two calls share a stream."""

    def draw(n: int) -> Outputs:
        chunks: list[Outputs] = []
        left_to_draw = _check_draws("n", n, 1, hint="; that many outputs an estimator asked for")
        while left_to_draw > 0:
            size = min(left_to_draw, source.chunk_size)
            (child,) = sequence.spawn(1)
            chunks.append(source.sample(dataset, size, np.random.default_rng(child)))
            left_to_draw -= size
        return concatenate(chunks)

    return draw


class _Generator:
    """A generator of whatever kind, as pairs and a way to tell how each did."""

    def __init__(self, pairs: Iterator[Pair], tell: Callable[[float | None], None]) -> None:
        self._pairs = pairs
        self._tell = tell

    def __iter__(self) -> Iterator[Pair]:
        return self._pairs

    def tell(self, estimate: float) -> None:
        """Hands the estimate of the last pair to a finder; None where it is infinite."""
        self._tell(estimate if math.isfinite(estimate) else None)

    @classmethod
    def of(cls, generator: Any, trials: int, seed: int) -> "_Generator":
        """Reads what the caller gave."""
        _refuse_class("generator", generator)
        if hasattr(generator, "ask") and hasattr(generator, "tell"):
            return cls(_asked(generator, trials), generator.tell)
        if hasattr(generator, "neighbours") and hasattr(generator, "relations"):
            # The paper's randomized search.
            return cls.of(
                finders.Random(generator, uniform=True, trials=trials, seed=seed), trials, seed
            )
        if isinstance(generator, Pair | list | tuple):
            return cls(islice(cycle(as_pairs(generator, "generator")), trials), _ignore)
        if callable(generator):
            return cls(_generated(generator, trials, seed), _ignore)
        if isinstance(generator, Iterable) and not isinstance(generator, str | bytes | Mapping):
            return cls(map(proposed_pair, islice(generator, trials)), _ignore)
        raise InputError(
            f"generator={generator!r:.100} must be a finder, a domain, a pair, a list of pairs or "
            "another iterable of them, or a function from a random generator to a pair"
        )


def _ignore(_: float | None) -> None:
    """What is not a finder is told nothing."""


def _asked(finder: Any, trials: int) -> Iterator[Pair]:
    for _ in range(trials):
        pair = finder.ask()
        if pair is None:
            return
        yield proposed_pair(pair)


def _generated(
    generator: Callable[[np.random.Generator], Any], trials: int, seed: int
) -> Iterator[Pair]:
    if not takes_arguments(generator, 1):
        raise InputError(
            f"generator={generator!r:.100} must be a function of one argument, a random generator "
            "(numpy.random.Generator), that returns a pair"
        )
    for number in range(trials):
        key = (_GENERATE, number)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
        yield proposed_pair(generator(rng))
