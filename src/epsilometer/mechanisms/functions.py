"""Mechanisms that are Python functions; and the outputs of k runs of any mechanism as one output."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Literal

import numpy as np

from epsilometer.claims import Claim
from epsilometer.claims.base import check_whole
from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.inputs import Inputs, Pair
from epsilometer.inputs.copying import copier, snapshot
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import (
    Mechanism,
    failure_text,
    never_returns,
    nothing_returned,
    parameters_of,
)
from epsilometer.mechanisms.drawing_log import current_log
from epsilometer.mechanisms.features import Features, as_features
from epsilometer.mechanisms.libraries import adapt
from epsilometer.mechanisms.used_draws import EarlierDraws
from epsilometer.outputs import Block, Outputs, read_outputs
from epsilometer.outputs.columns import sequence_text
from epsilometer.storage import code_digest

# Outputs per call of a batch function: 2^16 doubles are 512 kB, which stays in the cache between
# drawing and counting.
_BATCH_CHUNK = 1 << 16
# Outputs per chunk of a one-at-a-time function: small enough to show progress and to spread over
# workers.
_SINGLE_CHUNK = 256

OnError = Literal["raise", "outcome"]


class SingleMechanism(Mechanism):
    """f(dataset) or f(dataset, rng) returns one output."""

    def __init__(
        self, function: Callable[..., Any], on_error: OnError = "raise", name: str | None = None
    ) -> None:
        self.function, self.name, self.is_seeded = _described(function, name)
        self.chunk_size = _SINGLE_CHUNK
        if on_error not in ("raise", "outcome"):
            raise InputError(f"on_error={on_error!r} must be 'raise' or 'outcome'")
        self.on_error = on_error

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function n times, each time with a copy of the dataset."""
        keywords = {"rng": rng} if self.is_seeded else {}
        fresh = copier(dataset)
        read = self.features or read_outputs
        values: list[Any] = []
        current_log().finished = lambda: read(values, len(values))  # they outlive an interruption
        for _ in range(n):
            given = fresh()
            try:
                value = self.function(given, **keywords)
            except Exception as error:
                value = self._failed(given, error)
            values.append(snapshot(value))
        if (
            self.on_error == "raise"
            and not any(value is not None for value in values)
            and never_returns(self.function)
        ):
            raise MechanismError(nothing_returned(self.name))
        return read(values, n)

    def _failed(self, dataset: Any, error: Exception) -> Enum:
        pass_on(error)
        if self.on_error == "outcome":
            # A failed run is a separate outcome: dropping it would hide what failures reveal.
            current_log().add(failed=1)
            return failed_run(type(error).__name__)
        hint = ""
        if isinstance(error, TypeError) and "n" in (_places(self.function) or ())[1:2]:
            hint = "; a function of (dataset, n, rng) that draws many outputs at once is audited as from_batch(f)"
        raise MechanismError(failure_text(self.name, dataset, error) + hint) from error


class BatchMechanism(Mechanism):
    """f(dataset, n, rng) or f(dataset, n) returns n outputs."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function, self.name, takes_rng = _described(function, name)
        places = _places(function)
        if places is not None and (len(places) < 2 or places[1] == "rng"):
            hint = "audit it as it is, without from_batch (and without --batch)"
            batch = "a batch function is f(dataset, n, rng) or f(dataset, n)"
            raise InputError(
                f"{self.name}({', '.join(places)}) returns one output per call: {hint}; {batch}"
            )
        self.is_seeded = takes_rng or places is None or len(places) > 2
        self._rng_by_name = places is not None and len(places) < 3
        self.chunk_size = _BATCH_CHUNK

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function once, with a copy of the dataset."""
        given = (rng,) if self.is_seeded and not self._rng_by_name else ()
        named = {"rng": rng} if self.is_seeded and self._rng_by_name else {}
        try:
            values = self.function(copier(dataset)(), n, *given, **named)
        except Exception as error:
            raise MechanismError(failure_text(self.name, dataset, error)) from error
        self._check(values, n)
        if isinstance(values, Iterator):  # it may yield the same buffer again and again
            values = map(snapshot, values)
        return (self.features or read_outputs)(values, n)

    def _check(self, values: Any, n: int) -> None:
        """The usual mistakes, in words."""
        if values is None:
            raise MechanismError(
                f"{self.name} returned None instead of {n} outputs: is a `return` missing?"
            )
        if (
            isinstance(values, int | float | complex | np.generic)
            or getattr(values, "shape", None) == ()
        ):
            hint = f"draw all of them at once, as in rng.laplace(size={n}), or audit it without from_batch"
            single = f"{self.name} returned the single value {shown(values)}"
            raise MechanismError(f"{single} instead of {n} outputs; {hint}")
        shape = getattr(values, "shape", None)
        if isinstance(shape, tuple) and shape[0] != n and n in shape[1:]:
            hint = (
                f"the first axis counts outputs, so return np.moveaxis(array, {shape.index(n)}, 0)"
            )
            raise MechanismError(
                f"{self.name} returned an array of shape {shape} instead of {n} outputs: {hint}"
            )


def _places(function: Callable[..., Any]) -> list[str] | None:
    """The names of the positional parameters, up to the third if that may be a generator.

    None if any number is taken, or nobody can tell.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None
    found = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    may_be_generator = [
        each.name == "rng" or each.default is each.empty or each.default is None
        for each in found[2:3]
    ]
    return [each.name for each in found[: 3 if all(may_be_generator) else 2]]


def from_callable(
    function: Callable[..., Any],
    *,
    on_error: OnError = "raise",
    name: str | None = None,
    features: Callable[[Any], Any] | None = None,
) -> SingleMechanism:
    """A mechanism from a function that returns one output.

    Args:
        function: f(dataset), or f(dataset, rng) with a parameter of exactly that name, which gets a
            numpy Generator. A function without it draws its own randomness, and its audits cannot
            be repeated exactly.
        on_error: "raise" stops the audit when a run fails; "outcome" counts a failed run as a
            separate output.
        name: its name in reports.
        features: see `from_batch`.

    Example:
        >>> mechanism = em.from_callable(lambda x, rng: x + rng.laplace(), name="laplace")
        >>> mechanism.name, mechanism.is_seeded
        ('laplace', True)
    """
    return SingleMechanism(function, on_error, name).with_features(as_features(features))


def from_batch(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    features: Callable[[Any], Any] | None = None,
) -> BatchMechanism:
    """A mechanism from a function f(dataset, n, rng) or f(dataset, n) that returns n independent outputs.

    The outputs may be a numpy array (axis 0 counts outputs), a sequence, or a dict of columns of
    length n.

    Args:
        function: draws the outputs.
        name: its name in reports.
        features: a function of one output that returns a number, a text, a truth value, None, or a
            tuple or dict of these: further columns for the event, like "the report is the hash of
            this answer", which nobody could learn. An event of an output and its features is an
            event of the output: they may cost power, never truth.

    Example:
        >>> mechanism = em.from_batch(lambda x, n, rng: x + rng.laplace(size=n))
        >>> em.audit(mechanism, em.Pair(0, 1), em.PureDP(0.5), samples=1000, seed=0).verdict
        <Verdict.REFUTED: 'refuted'>
    """
    return BatchMechanism(function, name).with_features(as_features(features))


@dataclass(frozen=True, slots=True)
class Subject:
    """What is audited: a mechanism, with the claim and the inputs that it brings along, if any."""

    mechanism: Mechanism
    claim: Claim | None = None
    worst_pair: Inputs | None = None

    def promise(self, pairs: Sequence[Pair]) -> Claim | None:
        """Its own claim for these pairs."""
        return self.mechanism.promise(pairs) if self.claim is None else self.claim

    @property
    def promises_by_pair(self) -> bool:
        """Whether its claim depends on the pair of inputs."""
        return self.claim is None and type(self.mechanism).promise is not Mechanism.promise

    @property
    def makes_a_promise(self) -> bool:
        """Whether it claims anything."""
        return self.claim is not None or type(self.mechanism).promise is not Mechanism.promise


def as_subject(candidate: object) -> Subject:
    """Anything that `audit` accepts as a mechanism: see `as_mechanism`; or an entry of the zoo and similar objects.

    This is the one place that looks into foreign objects.
    """
    if isinstance(candidate, Subject):
        return candidate
    source = (
        candidate if isinstance(candidate, Mechanism) else getattr(candidate, "mechanism", None)
    )
    if not isinstance(source, Mechanism) and not inspect.isfunction(candidate):
        source = adapt(candidate)
    if not isinstance(source, Mechanism):
        if not callable(candidate):
            known = "neither a mechanism nor a function nor an object with a method randomise"
            raise InputError(f"mechanism={shown(candidate)} is {known}")
        source = SingleMechanism(candidate)
    return Subject(
        source, getattr(candidate, "claim", None), getattr(candidate, "worst_pair", None)
    )


def as_mechanism(mechanism: object) -> Mechanism:
    """A mechanism as it is, an object of OpenDP or diffprivlib, or one with a method `randomise`.

    A bare callable is treated as by `from_callable`.
    """
    return mechanism if isinstance(mechanism, Mechanism) else as_subject(mechanism).mechanism


def _described(
    function: Callable[..., Any], name: str | None
) -> tuple[Callable[..., Any], str, bool]:
    """The function, its name, and whether it takes a generator."""
    if not callable(function):
        raise InputError(f"function={shown(function)} must be callable")
    name = name or str(getattr(function, "__qualname__", None) or type(function).__name__)
    return function, name, "rng" in parameters_of(function)


def failed_run(kind: str) -> Enum:
    """The outcome that stands for a failed run."""
    outcomes: type[Enum] = Enum("FailedRun", {kind: 1})  # type: ignore[misc]  # made at run time, one member
    return outcomes(1)


_MOST_TIMES = 10_000


class RepeatedMechanism(Mechanism):
    """Runs another mechanism several times; one output is the list of its outputs."""

    def __init__(self, mechanism: Mechanism, times: int) -> None:
        self.mechanism = mechanism
        self.times = check_whole("times", times)
        if self.times > _MOST_TIMES:
            raise InputError(f"times={times!r} must be at most {_MOST_TIMES}")
        self.name = f"{self.times} runs of {mechanism.name}"
        self.is_seeded = mechanism.is_seeded
        self.chunk_size = max(mechanism.chunk_size // self.times, 1)
        self.features = mechanism.features
        self.used = mechanism.used

    def prepared(self, pairs: Sequence[Pair], samples: int) -> "RepeatedMechanism":
        """Runs the other mechanism as that prepares itself: a recording has to hold `times` as many outputs."""
        return RepeatedMechanism(self.mechanism.prepared(pairs, self.times * samples), self.times)

    def unused(self, earlier: EarlierDraws, pair: Pair, samples: int) -> "RepeatedMechanism":
        """Runs the other mechanism on draws that were not used."""
        return RepeatedMechanism(
            self.mechanism.unused(earlier, pair, self.times * samples), self.times
        )

    def with_features(self, features: Features | None) -> "RepeatedMechanism":
        """Those of each run."""
        return RepeatedMechanism(self.mechanism.with_features(features), self.times)

    def digest(self) -> str:
        """Of the other mechanism, and how often it is run."""
        return code_digest((self.times, self.mechanism.digest()))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws `times` as many outputs and groups neighbouring ones."""
        try:
            return gather(self.mechanism.sample(dataset, n * self.times, rng), self.times)
        except BaseException:
            log = current_log()
            if log.finished is not None:
                log.finished = partial(_whole_groups, log.finished, self.times)
            raise


def _whole_groups(finished: Callable[[], Outputs], times: int) -> Outputs:
    """The finished groups of a repeated mechanism, from the finished draws of the one inside."""
    outputs = finished()
    n_groups = len(outputs) // times
    return gather(outputs.take(slice(0, n_groups * times)), times)


def repeated(mechanism: object, times: int) -> RepeatedMechanism | Subject:
    """A mechanism that is run several times on the same input: audit its use, not one run of it.

    Args:
        mechanism: anything that `audit` takes. An entry of the zoo keeps its pair, and its claim is
            composed.
        times: runs per output. The claim about them is `claim.composed(times)`.

    Example:
        >>> three_runs = em.repeated(em.zoo.laplace(), 3)
        >>> em.audit(three_runs, em.Pair(0.0, 1.0), em.PureDP(3.5), samples=500, seed=0).verdict
        <Verdict.NOT_REFUTED: 'not refuted'>
    """
    subject = as_subject(mechanism)
    inner = RepeatedMechanism(subject.mechanism, times)
    return (
        inner
        if subject.claim is None
        else Subject(inner, subject.claim.composed(inner.times), subject.worst_pair)
    )


def gather(outputs: Outputs, times: int) -> Outputs:
    """Every `times` neighbouring outputs as one."""
    n = len(outputs) // times
    kind, place = np.empty((2, len(outputs)), dtype=np.int64)
    for number, block in enumerate(outputs.blocks):
        kind[block.places()] = number
        place[block.places()] = np.arange(block.size)
    kinds = kind.reshape(n, times)
    places = place.reshape(n, times)
    combinations, which = np.unique(kinds, axis=0, return_inverse=True)
    which = which.ravel()
    blocks = []
    for number, combination in enumerate(combinations):
        rows = np.flatnonzero(which == number)
        parts = [outputs.blocks[int(each)] for each in combination]
        columns = (
            each.take(places[rows, run]) for run, part in enumerate(parts) for each in part.columns
        )
        shape = sequence_text("list", [part.shape for part in parts])
        blocks.append(Block(shape, None if len(rows) == n else rows, tuple(columns), len(rows)))
    return Outputs(tuple(blocks), n)
