"""Mechanisms that are Python functions."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epsilometer.claims import Claim
from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.inputs import Inputs, Pair
from epsilometer.inputs.copying import copier, snapshot
from epsilometer.mechanisms.base import Mechanism, failure_text, nothing_returned
from epsilometer.mechanisms.libraries import adapt
from epsilometer.outputs import Outputs, read_outputs

# Outputs per call of a batch function: 2^16 doubles are 512 kB, which stays in the cache between drawing and counting.
_BATCH_CHUNK = 1 << 16
# Outputs per chunk of a one-at-a-time function: small enough to show progress and to spread over workers.
_SINGLE_CHUNK = 256

OnError = Literal["raise", "outcome"]


class SingleMechanism(Mechanism):
    """f(dataset) or f(dataset, rng) returns one output."""

    def __init__(self, function: Callable[..., Any], on_error: OnError = "raise", name: str | None = None) -> None:
        self.function, self.name, self.is_seeded = _described(function, name)
        self.chunk_size = _SINGLE_CHUNK
        if on_error not in ("raise", "outcome"):
            raise InputError(f"on_error={on_error!r} must be 'raise' or 'outcome'")
        self.on_error = on_error

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function n times, each time with a copy of the dataset."""
        keywords = {"rng": rng} if self.is_seeded else {}
        fresh = copier(dataset)
        values = [snapshot(self._run(fresh(), keywords)) for _ in range(n)]
        if self.on_error == "raise" and not any(value is not None for value in values) and _never_returns(self):
            raise MechanismError(nothing_returned(self.name))
        return read_outputs(values, expected=n)

    def _run(self, dataset: Any, keywords: dict[str, Any]) -> Any:
        try:
            return self.function(dataset, **keywords)
        except Exception as error:
            if self.on_error == "outcome":
                # A failed run is a separate outcome: dropping it would hide what failures reveal.
                return failed_run(type(error).__name__)
            raise MechanismError(failure_text(self.name, dataset, error)) from error


class BatchMechanism(Mechanism):
    """f(dataset, n, rng) returns n outputs."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function, self.name, _ = _described(function, name)
        self.is_seeded = True
        self.chunk_size = _BATCH_CHUNK

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function once, with a copy of the dataset."""
        try:
            values = self.function(copier(dataset)(), n, rng)
        except Exception as error:
            raise MechanismError(failure_text(self.name, dataset, error)) from error
        if values is None:
            raise MechanismError(f"{self.name} returned None instead of {n} outputs: is a `return` missing?")
        if isinstance(values, Iterator):  # it may yield the same buffer again and again
            values = map(snapshot, values)
        return read_outputs(values, expected=n)


def from_callable(
    function: Callable[..., Any], *, on_error: OnError = "raise", name: str | None = None
) -> SingleMechanism:
    """A mechanism from a function that returns one output.

    Args:
        function: f(dataset), or f(dataset, rng) with a parameter of exactly that name, which gets a numpy Generator.
            A function without it draws its own randomness, and its audits cannot be repeated exactly.
        on_error: "raise" stops the audit when a run fails; "outcome" counts a failed run as a separate output.
        name: its name in reports.
    """
    return SingleMechanism(function, on_error, name)


def from_batch(function: Callable[..., Any], *, name: str | None = None) -> BatchMechanism:
    """A mechanism from a function f(dataset, n, rng) that returns n independent outputs.

    The outputs may be a numpy array (axis 0 counts outputs), a sequence, or a dict of columns of length n.
    """
    return BatchMechanism(function, name)


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
    def makes_a_promise(self) -> bool:
        """Whether it claims anything."""
        return self.claim is not None or type(self.mechanism).promise is not Mechanism.promise


def as_subject(candidate: object) -> Subject:
    """Anything that `audit` accepts as a mechanism: see `as_mechanism`; or an entry of the zoo and similar objects.

    This is the one place that looks into foreign objects.
    """
    if isinstance(candidate, Subject):
        return candidate
    source = candidate if isinstance(candidate, Mechanism) else getattr(candidate, "mechanism", None)
    if not isinstance(source, Mechanism) and not inspect.isfunction(candidate):
        source = adapt(candidate)
    if not isinstance(source, Mechanism):
        if not callable(candidate):
            raise InputError(
                f"mechanism={shown(candidate)} is neither a mechanism nor a function nor an object with a method "
                "randomise"
            )
        source = SingleMechanism(candidate)
    return Subject(source, getattr(candidate, "claim", None), getattr(candidate, "worst_pair", None))


def as_mechanism(mechanism: object) -> Mechanism:
    """A mechanism as it is, an object of OpenDP or diffprivlib, or one with a method `randomise`.

    A bare callable is treated as by `from_callable`.
    """
    return mechanism if isinstance(mechanism, Mechanism) else as_subject(mechanism).mechanism


def identity_of(mechanism: Mechanism) -> dict[str, Any]:
    """How a function can be had again elsewhere: where to import it from, and what was made of it; else empty."""
    function = getattr(mechanism, "function", None)
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    if module == "__main__":  # a script, which others import by the name of its file
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "").stem
    if not module or not inspect.isroutine(function) or "<" in name:
        return {}
    made = {"batch": isinstance(mechanism, BatchMechanism), "on_error": getattr(mechanism, "on_error", "raise")}
    return {"function": f"{module}:{name}", **made}


def _described(function: Callable[..., Any], name: str | None) -> tuple[Callable[..., Any], str, bool]:
    """The function, its name, and whether it takes a generator."""
    if not callable(function):
        raise InputError(f"function={shown(function)} must be callable")
    try:
        takes_rng = "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        takes_rng = False
    return function, name or str(getattr(function, "__qualname__", None) or type(function).__name__), takes_rng


def _never_returns(mechanism: SingleMechanism) -> bool:
    """Whether the code of a function says that it returns None, whatever happens."""
    code = getattr(getattr(mechanism.function, "__func__", mechanism.function), "__code__", None)
    if code is None or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    steps = list(dis.get_instructions(code))
    returned = [step.argval for step in steps if step.opname == "RETURN_CONST"]
    for before, step in pairwise(steps):
        if step.opname == "RETURN_VALUE":
            returned.append(before.argval if before.opname == "LOAD_CONST" else ...)
    return all(value is None for value in returned)


def failed_run(kind: str) -> Enum:
    """The outcome that stands for a failed run."""
    members = {kind: 1}
    outcomes: type[Enum] = Enum("FailedRun", members)  # type: ignore[misc]  # made at run time, one member
    return outcomes(1)
