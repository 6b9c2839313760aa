"""Mechanisms that are Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import numpy as np

from epsilometer.errors import InputError, MechanismError
from epsilometer.mechanisms.adapters import adapt
from epsilometer.mechanisms.base import Mechanism, failure_text, shown
from epsilometer.outputs import Outputs, read_outputs

# Outputs per call of a batch function: 2^16 doubles are 512 kB, which stays in the cache between drawing and counting.
_BATCH_CHUNK = 1 << 16
# Outputs per chunk of a one-at-a-time function: small enough to show progress and to spread over workers.
_SINGLE_CHUNK = 256

OnError = Literal["raise", "outcome"]


class SingleMechanism(Mechanism):
    """f(dataset) or f(dataset, rng) returns one output."""

    def __init__(self, function: Callable[..., Any], on_error: OnError = "raise", name: str | None = None) -> None:
        self.function = _check_function(function)
        self.name = name or _function_name(function)
        self.is_seeded = _takes_rng(function)
        self.chunk_size = _SINGLE_CHUNK
        if on_error not in ("raise", "outcome"):
            raise InputError(f"on_error={on_error!r} must be 'raise' or 'outcome'")
        self.on_error = on_error

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function n times."""
        keywords = {"rng": rng} if self.is_seeded else {}
        return read_outputs([self._run(dataset, keywords) for _ in range(n)], expected=n)

    def _run(self, dataset: Any, keywords: dict[str, Any]) -> Any:
        try:
            return self.function(dataset, **keywords)
        except Exception as error:
            if self.on_error == "outcome":
                # A failed run is an outcome of its own: dropping it would hide what failures reveal.
                return failed_run(type(error).__name__)
            raise MechanismError(failure_text(self.name, dataset, error)) from error


class BatchMechanism(Mechanism):
    """f(dataset, n, rng) returns n outputs."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        self.function = _check_function(function)
        self.name = name or _function_name(function)
        self.is_seeded = True
        self.chunk_size = _BATCH_CHUNK

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function once."""
        try:
            values = self.function(dataset, n, rng)
        except Exception as error:
            raise MechanismError(failure_text(self.name, dataset, error)) from error
        return read_outputs(values, expected=n)


def from_callable(
    function: Callable[..., Any], *, on_error: OnError = "raise", name: str | None = None
) -> SingleMechanism:
    """A mechanism from a function that returns one output.

    Args:
        function: f(dataset), or f(dataset, rng) with a parameter of exactly that name, which gets a numpy Generator.
            A function without it draws its own randomness, and its audits cannot be repeated exactly.
        on_error: "raise" stops the audit when a run fails; "outcome" counts a failed run as an output of its own.
        name: how to call it in reports.
    """
    return SingleMechanism(function, on_error, name)


def from_batch(function: Callable[..., Any], *, name: str | None = None) -> BatchMechanism:
    """A mechanism from a function f(dataset, n, rng) that returns n independent outputs.

    The outputs may be a numpy array (axis 0 counts outputs), a sequence, or a dict of columns of length n.
    """
    return BatchMechanism(function, name)


def as_mechanism(mechanism: object) -> Mechanism:
    """A mechanism as it is, an object of OpenDP or diffprivlib, or one with a method `randomise`.

    A bare callable is taken as `from_callable` takes it.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    inner = getattr(mechanism, "mechanism", None)  # an entry of the zoo
    if isinstance(inner, Mechanism):
        return inner
    adapted = adapt(mechanism)
    if adapted is not None:
        return adapted
    if callable(mechanism):
        return from_callable(mechanism)
    raise InputError(
        f"mechanism={shown(mechanism)} is neither a mechanism nor a function nor an object with a method randomise"
    )


def _check_function(function: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(function):
        raise InputError(f"function={shown(function)} must be callable")
    return function


def _function_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def _takes_rng(function: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have no signature
        return False


def failed_run(kind: str) -> Enum:
    """The outcome that stands for a failed run."""
    members = {kind: 1}
    outcomes: type[Enum] = Enum("FailedRun", members)  # type: ignore[misc]  # made at run time, one member
    return outcomes(1)
