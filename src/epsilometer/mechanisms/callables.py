"""Mechanisms that are Python functions: of one output per call, or of many."""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from epsilometer.errors import InputError, MechanismError, meant_or_known, short_repr
from epsilometer.inputs.copying import copier, snapshot
from epsilometer.interruptions import pass_on
from epsilometer.mechanisms.base import Mechanism, failure_text, parameters_of
from epsilometer.mechanisms.drawing_log import current_log
from epsilometer.mechanisms.return_values import never_returns, nothing_returned
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.redaction import HIDDEN, is_secret

# Outputs per call of a batch function: 2^16 doubles are 512 kB, which stays in the cache between
# drawing and counting.
_BATCH_CHUNK = 1 << 16
# Outputs per chunk of a one-at-a-time function: small enough to show progress and to spread over
# workers.
_SINGLE_CHUNK = 256

OnError = Literal["raise", "outcome"]


class FunctionMechanism(Mechanism):
    """What mechanisms that are Python functions have in common.

    Attributes:
        function: the user's function.
        params: its other parameters, by name: what is neither the dataset nor drawn by the audit.
    """

    function: Callable[..., Any]
    # An attribute of the object only if there are some.
    params: Mapping[str, Any] = MappingProxyType({})

    def identity_digest(self) -> str:
        """Returns the digest of the user's function, whatever parameters it is given."""
        if not self.params:
            return self.digest()
        without_params = self.__copy__()
        del without_params.params
        without_params.name = name_of(self.function)
        return without_params.digest()

    def weakening_facts(self) -> dict[str, Any]:
        """Returns those of every mechanism, and the parameters of the function."""
        facts = super().weakening_facts()
        if self.params:
            facts["params"] = public_params(self.params)
        return facts

    def _set_params(self, params: Mapping[str, Any] | None, name: str | None) -> None:
        """Notes parameters of the function, and names the mechanism after both."""
        self.name = name or name_of(self.function)
        if not params:
            return
        self.params = dict(params)
        if name is None:
            values = public_params(params).items()
            listed = ", ".join(f"{key}={short_repr(value)}" for key, value in values)
            self.name = f"{self.name}({listed})"


class SingleMechanism(FunctionMechanism):
    """A function f(dataset) or f(dataset, rng) that returns one output."""

    def __init__(
        self,
        function: Callable[..., Any],
        on_error: OnError = "raise",
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        _check_callable(function)
        self.function = function
        self._set_params(params, name)
        check_parameters(function, self.params, passed=("dataset",))
        self.is_seeded = "rng" in parameters_of(function)
        self.chunk_size = _SINGLE_CHUNK
        if on_error not in ("raise", "outcome"):
            raise InputError(f"on_error={on_error!r} must be 'raise' or 'outcome'")
        self.on_error = on_error

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function n times, each time with a copy of the dataset."""
        keywords = {"rng": rng} if self.is_seeded else {}
        fresh_copy = copier(dataset)
        fresh_params = copier(dict(self.params))
        read = self.features or read_outputs
        values: list[Any] = []
        # What is finished survives an interruption.
        current_log().finished = lambda: read(values, len(values))
        for _ in range(n):
            copied = fresh_copy()
            try:
                value = self.function(copied, **fresh_params(), **keywords)
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
        raise MechanismError(failure_text(self.name, dataset, error)) from error


class BatchMechanism(FunctionMechanism):
    """A function f(dataset, n, rng) or f(dataset, n) that returns n outputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        _check_callable(function)
        self.function = function
        self._set_params(params, name)
        positional = _positional_names(function)
        if positional is not None and (len(positional) < 2 or positional[1] == "rng"):
            raise InputError(
                f"{self.name}({', '.join(positional)}) returns one output per call: "
                "audit it as it is, without from_batch (and without --batch); "
                "a batch function is f(dataset, n, rng) or f(dataset, n)"
            )
        takes_rng_by_name = "rng" in parameters_of(function)
        may_take_third = positional is None or len(positional) > 2
        if positional is not None and len(positional) > 2 and positional[2] != "rng":
            # A third parameter of another name is the generator, unless it can be none.
            may_take_third = not takes_rng_by_name and positional[2] not in self.params
        passed = ("dataset", "n", "rng") if may_take_third else ("dataset", "n")
        check_parameters(function, self.params, passed=passed)
        self.is_seeded = takes_rng_by_name or may_take_third
        self._rng_by_name = not may_take_third
        self.chunk_size = _BATCH_CHUNK

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the function once, with a copy of the dataset."""
        try:
            copied = copier(dataset)()
            params = copier(dict(self.params))()
            if not self.is_seeded:
                values = self.function(copied, n, **params)
            elif self._rng_by_name:
                values = self.function(copied, n, rng=rng, **params)
            else:
                values = self.function(copied, n, rng, **params)
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
                f"{self.name} returned the single value {short_repr(values)} instead of {n} "
                "outputs; "
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
        raise InputError(f"function={short_repr(function)} must be callable")


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name of a function; of a partial one that of the function inside."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def public_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns parameters as they may be stored and shown: plain data, without secrets."""
    shown: dict[str, Any] = {}
    for name, value in params.items():
        try:
            shown[name] = HIDDEN if is_secret(name) else json.loads(json.dumps(value))
        except (TypeError, ValueError):  # a date of a TOML file, say
            shown[name] = str(value)
    return shown


def check_parameters(
    function: Callable[..., Any], params: Mapping[str, Any], passed: Sequence[str]
) -> None:
    """Refuses a function that cannot be called with what it would be given.

    Args:
        function: to be called.
        params: parameters that are given by name.
        passed: what the audit passes by position; `rng` is passed by name as well.

    Raises:
        InputError: if a parameter is missing or unknown, or is one that the audit passes.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have no signature
        return
    parameters = list(signature.parameters.values())
    name = name_of(function)
    takes_any = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if not positional and not takes_any:
        raise InputError(
            f"{name}{signature} takes no dataset: a mechanism is f(dataset) or f(dataset, rng)"
        )
    by_audit = {parameter.name for parameter in positional[: len(passed)]} | {"rng"}
    settable = [
        parameter.name
        for parameter in parameters
        if parameter.name not in by_audit
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    takes_any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for given in params:
        if given in by_audit:
            raise InputError(
                f"the parameter {given!r} of {name} is passed by the audit; leave it out of --param"
            )
        if given not in settable and not takes_any_name:
            hint = meant_or_known(given, settable) if settable else "; it has no other parameters"
            raise InputError(f"{name}{signature} has no parameter {given!r}{hint}")
    missing = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name not in by_audit
        and parameter.name not in params
    ]
    if not missing:
        return
    if len(passed) == 1 and missing[0] == "n" and positional[1:2] == [signature.parameters["n"]]:
        raise InputError(
            f"{name}{signature} needs n as well: a function of (dataset, n, rng) that draws many "
            "outputs at once is audited as from_batch(f), on the command line with --batch"
        )
    values = ", ".join(f"{parameter}=…" for parameter in missing)
    flags = " ".join(f"--param {parameter}=…" for parameter in missing)
    raise InputError(
        f"{name}{signature} needs {' and '.join(missing)} as well as the dataset: audit "
        f"functools.partial({name}, {values}), or say {flags} on the command line; a numpy "
        "Generator is passed as rng only"
    )


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
