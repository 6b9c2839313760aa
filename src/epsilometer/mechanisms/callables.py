"""Mechanisms that are Python functions: of one output per call, or of many."""

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Literal

import numpy as np

from epsilometer.errors import InputError, MechanismError, shown
from epsilometer.inputs.copying import copier, snapshot
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import Mechanism, failure_text, parameters_of
from epsilometer.mechanisms.drawing_log import current_log
from epsilometer.mechanisms.return_values import never_returns, nothing_returned
from epsilometer.outputs import Outputs, read_outputs

# Outputs per call of a batch function: 2^16 doubles are 512 kB, which stays in the cache between
# drawing and counting.
_BATCH_CHUNK = 1 << 16
# Outputs per chunk of a one-at-a-time function: small enough to show progress and to spread over
# workers.
_SINGLE_CHUNK = 256

OnError = Literal["raise", "outcome"]


class SingleMechanism(Mechanism):
    """A function f(dataset) or f(dataset, rng) that returns one output."""

    def __init__(
        self, function: Callable[..., Any], on_error: OnError = "raise", name: str | None = None
    ) -> None:
        _check_callable(function)
        self.function = function
        self.name = name or _name_of(function)
        self.is_seeded = "rng" in parameters_of(function)
        self.chunk_size = _SINGLE_CHUNK
        if on_error not in ("raise", "outcome"):
            raise InputError(f"on_error={on_error!r} must be 'raise' or 'outcome'")
        self.on_error = on_error

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function n times, each time with a copy of the dataset."""
        keywords = {"rng": rng} if self.is_seeded else {}
        fresh_copy = copier(dataset)
        read = self.features or read_outputs
        values: list[Any] = []
        # What is finished survives an interruption.
        current_log().finished = lambda: read(values, len(values))
        for _ in range(n):
            copied = fresh_copy()
            try:
                value = self.function(copied, **keywords)
            except Exception as error:
                value = self._failed(copied, error)
            values.append(snapshot(value))
        if self.on_error == "raise":
            are_all_none = not any(value is not None for value in values)
            if are_all_none and never_returns(self.function):
                raise MechanismError(nothing_returned(self.name))
        return read(values, n)

    def _failed(self, dataset: Any, error: Exception) -> Enum:
        """Returns the outcome of a failed run, or raises."""
        pass_on(error)
        if self.on_error == "outcome":
            # A failed run is a separate outcome: dropping it would hide what failures reveal.
            current_log().add(failed=1)
            return failed_run(type(error).__name__)
        message = failure_text(self.name, dataset, error)
        positional = _positional_names(self.function) or []
        if isinstance(error, TypeError) and positional[1:2] == ["n"]:
            message += (
                "; a function of (dataset, n, rng) that draws many outputs at once is audited as "
                "from_batch(f)"
            )
        raise MechanismError(message) from error


class BatchMechanism(Mechanism):
    """A function f(dataset, n, rng) or f(dataset, n) that returns n outputs."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        _check_callable(function)
        self.function = function
        self.name = name or _name_of(function)
        positional = _positional_names(function)
        if positional is not None and (len(positional) < 2 or positional[1] == "rng"):
            raise InputError(
                f"{self.name}({', '.join(positional)}) returns one output per call: "
                "audit it as it is, without from_batch (and without --batch); "
                "a batch function is f(dataset, n, rng) or f(dataset, n)"
            )
        takes_rng_by_name = "rng" in parameters_of(function)
        may_take_third = positional is None or len(positional) > 2
        self.is_seeded = takes_rng_by_name or may_take_third
        self._rng_by_name = not may_take_third
        self.chunk_size = _BATCH_CHUNK

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function once, with a copy of the dataset."""
        try:
            copied = copier(dataset)()
            if not self.is_seeded:
                values = self.function(copied, n)
            elif self._rng_by_name:
                values = self.function(copied, n, rng=rng)
            else:
                values = self.function(copied, n, rng)
        except Exception as error:
            raise MechanismError(failure_text(self.name, dataset, error)) from error
        self._check(values, n)
        if isinstance(values, Iterator):  # it may yield the same buffer again and again
            values = map(snapshot, values)
        return (self.features or read_outputs)(values, n)

    def _check(self, values: Any, n: int) -> None:
        """Reports the usual mistakes."""
        if values is None:
            raise MechanismError(
                f"{self.name} returned None instead of {n} outputs: is a `return` missing?"
            )
        shape = getattr(values, "shape", None)
        if isinstance(values, int | float | complex | np.generic) or shape == ():
            raise MechanismError(
                f"{self.name} returned the single value {shown(values)} instead of {n} outputs; "
                f"draw all of them at once, as in rng.laplace(size={n}), or audit it without "
                "from_batch"
            )
        if isinstance(shape, tuple) and shape[0] != n and n in shape[1:]:
            raise MechanismError(
                f"{self.name} returned an array of shape {shape} instead of {n} outputs: "
                f"the first axis counts outputs, so return np.moveaxis(array, {shape.index(n)}, 0)"
            )


def failed_run(kind: str) -> Enum:
    """Returns the outcome that stands for a failed run of some kind."""
    outcomes: type[Enum] = Enum("FailedRun", {kind: 1})  # type: ignore[misc]  # made at run time, one member
    return outcomes(1)


def _check_callable(function: object) -> None:
    if not callable(function):
        raise InputError(f"function={shown(function)} must be callable")


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def _positional_names(function: Callable[..., Any]) -> list[str] | None:
    """Returns the names of the positional parameters, at most three.

    The third one is included only if it may be a generator. None if any number is taken, or nobody
    can tell.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    n_taken = 3
    if len(positional) > 2:
        third = positional[2]
        has_other_default = third.default is not third.empty and third.default is not None
        if third.name != "rng" and has_other_default:
            n_taken = 2
    return [parameter.name for parameter in positional[:n_taken]]
