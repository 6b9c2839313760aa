"""What a mechanism is: something that draws outputs for a dataset."""

import atexit
import dis
import inspect
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from epsilometer.claims import Claim
from epsilometer.errors import MechanismError, shown
from epsilometer.inputs import Inputs, Pair
from epsilometer.outputs import Outputs
from epsilometer.storage import code_digest

if TYPE_CHECKING:
    from epsilometer.mechanisms.features import Features
    from epsilometer.mechanisms.used_draws import EarlierDraws, UsedDraws


class Keeper(Protocol):
    """Receives what was drawn."""

    def keep(self, dataset: object, outputs: Outputs) -> None:
        """Some outputs of one input, in the order in which they were drawn."""


class Mechanism(ABC):
    """Draws outputs. Name, seed, size of a chunk and `sample` make a mechanism; the rest has defaults.

    Attributes:
        name: its name in results and reports.
        is_seeded: whether equal generators give equal outputs.
        chunk_size: how many outputs are drawn with one generator. Part of the seed scheme: chunks,
            not workers, own their random streams.
        claim: what it promises for any pair; an audit without a claim takes this one.
        worst_pair: the inputs to audit it on when none are given.
        keeper: receives all draws.
        used: notes which recorded draws are used, and what for; None if draws are neither read nor
            recorded.
        features: reads outputs together with columns that a user's function adds; None reads them
            as they are. A mechanism reads what it draws with `(self.features or
            read_outputs)(values, n)`.
    """

    name: str
    is_seeded: bool
    chunk_size: int
    claim: Claim | None = None
    worst_pair: Inputs | None = None
    keeper: Keeper | None = None
    features: "Features | None" = None
    used: "UsedDraws | None" = None

    @abstractmethod
    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws n independent outputs.

        The dataset belongs to the caller: a mechanism that changes it, or calls code that might,
        copies it (`copier`).

        Raises:
            MechanismError: if the mechanism fails or returns something that cannot be read.
        """

    def prepared(self, pairs: Sequence[Pair], samples: int) -> "Mechanism":
        """The mechanism to draw from in an audit of these pairs, with `samples` draws per side.

        One that cannot supply them raises here, before the first draw; most are ready as they are.
        """
        return self

    def unused(self, earlier: "EarlierDraws", pair: Pair, samples: int) -> "Mechanism":
        """The mechanism to replay an event of this pair with, on draws that did not choose the event.

        A recording leaves out the rows that were used earlier; other mechanisms draw afresh.

        Raises:
            InputError: too few draws are left.
        """
        return self

    def digest(self) -> str:
        """Of what it draws from: its code and what that uses, so that a namesake is not mistaken for it.

        Raises:
            Undigestible: if it holds something without content by which to recognise it.
        """
        return code_digest((type(self), {name: vars(self)[name] for name in sorted(vars(self))}))

    def with_features(self, features: "Features | None") -> Self:
        """The same mechanism with other features, or none."""
        copied = self.__copy__()
        vars(copied).pop("features", None)
        if features is not None:
            copied.features = features
        return copied

    def __copy__(self) -> Self:
        """The same mechanism in this process, even if it cannot be sent to another one."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def weakening_facts(self) -> dict[str, Any]:
        """What weakens a reading of its draws, as plain data for the settings of a result; nothing if all is usual.

        A mechanism around another one, its attribute `mechanism`, has the facts of that one, too.
        """
        inner = getattr(self, "mechanism", None)
        facts = inner.weakening_facts() if isinstance(inner, Mechanism) else {}
        if getattr(self, "on_error", "raise") == "outcome":
            facts["on_error"] = "outcome"
        statuses = sorted(getattr(self, "statuses", (0,)))
        if statuses != [0]:
            facts["statuses"] = statuses
        return facts

    def promise(self, pairs: Sequence[Pair]) -> Claim | None:
        """The mechanism's own claim for these pairs, if it makes one."""
        return self.claim


def failure_text(name: str, dataset: Any, error: BaseException) -> str:
    """That a mechanism raised an error, and on which input."""
    return (
        f"{name} raised {type(error).__name__} on the input {shown(dataset)}: {shown(str(error))}"
    )


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Those of its signature; none if it has no signature."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some builtins have no signature
        return {}


def place_of(function: Any) -> str:
    """Where a function can be imported from, "module:name"; empty if it cannot."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "<")
    if module == "__main__":  # a script, which others import by the name of its file
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "").stem
    return f"{module}:{name}" if module and inspect.isroutine(function) and "<" not in name else ""


def check_returned(name: str, left: Outputs, right: Outputs) -> None:
    """Refuses a mechanism that returned nothing but None, for both inputs: a `return` was forgotten.

    None on one side only, or now and then, is an output like any other.
    """
    if all(
        len(side) and {block.shape for block in side.blocks} == {"None"} for side in (left, right)
    ):
        raise MechanismError(nothing_returned(name))


def nothing_returned(name: str) -> str:
    """Says that a mechanism returns nothing."""
    return f"{name} returned nothing but None, for both inputs: is a `return` missing?"


def never_returns(function: Callable[..., Any]) -> bool:
    """Whether the code of a function says that it returns None, whatever happens."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or code.co_flags & (
        inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    ):
        return False
    steps = list(dis.get_instructions(code))
    returned = [step.argval for step in steps if step.opname == "RETURN_CONST"]
    for before, step in pairwise(steps):
        if step.opname == "RETURN_VALUE":
            # x if … else None jumps here
            is_constant = before.opname == "LOAD_CONST" and not step.is_jump_target
            returned.append(before.argval if is_constant else ...)
    return all(value is None for value in returned)


# Reads which process groups have begun (+) and are over (-). When we are gone, however that
# happened, its input ends, and with it those that are left. A signal handler of ours could not do
# that: SIGKILL has none.
_REAPER = """
trap '' INT HUP TERM
while read -r sign group; do
  rest=
  for each in $left; do [ "$each" = "$group" ] || rest="$rest $each"; done
  left=$rest
  [ "$sign" = + ] && left="$left $group"
done
for each in $left; do kill -9 -"$each"; done
"""
# By process: a fork of ours has programs of its own.
_reapers: dict[int, subprocess.Popen[bytes]] = {}


def tell_reaper(sign: str, group: int) -> None:
    """Notes that a process group of ours has begun ("+") or is over ("-"): none outlives us."""
    here = os.getpid()
    with suppress(OSError):  # without a shell, programs end by themselves
        if here not in _reapers:
            null = subprocess.DEVNULL
            _reapers[here] = subprocess.Popen(
                ["/bin/sh", "-c", _REAPER],
                stdin=subprocess.PIPE,
                stdout=null,
                stderr=null,
                start_new_session=True,
            )
        stream = _reapers[here].stdin
        assert stream is not None
        stream.write(f"{sign} {group}\n".encode())
        stream.flush()


@atexit.register
def _dismiss_reaper() -> None:
    reaper = _reapers.pop(os.getpid(), None)
    if reaper is not None:
        with suppress(OSError):
            reaper.communicate()
