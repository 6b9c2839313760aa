"""What a mechanism is: something that draws outputs for a dataset."""

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from epsilometer.claims import Claim
from epsilometer.errors import short_repr
from epsilometer.inputs import Pair, Pairs
from epsilometer.mechanisms.drawing_log import NO_INCIDENTS, Incidents
from epsilometer.one_line import one_line
from epsilometer.outputs import Outputs
from epsilometer.storage import code_digest

if TYPE_CHECKING:
    from epsilometer.mechanisms.features import Features
    from epsilometer.mechanisms.used_draws import EarlierDraws, UsedDraws

# `check_returned` is imported from here by other packages.
__all__ = [
    "Keeper",
    "Mechanism",
    "failure_text",
    "import_path",
    "parameters_of",
]


class Keeper(Protocol):
    """Receives what was drawn."""

    def keep(self, dataset: object, outputs: Outputs, incidents: Incidents = NO_INCIDENTS) -> None:
        """Receives some outputs of one input, in the order in which they were drawn.

        Args:
            dataset: the input.
            outputs: drawn on it.
            incidents: what happened meanwhile.
        """

    def lose(self, dataset: object, n: int) -> None:
        """Is told that n draws of one input were lost so far, and drawn again."""


class Mechanism(ABC):
    """Draws outputs.

    A name, whether it can be seeded, the size of a chunk and `sample` make a mechanism; the rest
    has defaults.

    Attributes:
        name: its name in results and reports.
        is_seeded: whether equal generators give equal outputs.
        chunk_size: how many outputs are drawn with one generator. Part of the seed scheme: chunks,
            not workers, own their random streams.
        claim: what it promises for any pair; an audit without a claim takes this one.
        worst_pair: the inputs to audit it on when none are given.
        keeper: receives all draws.
        waits: whether it mostly waits for something else, such as a program or a service. More
            workers than cores then help.
        used: notes which recorded draws are used, and what for; None if draws are neither read nor
            recorded.
        features: reads outputs together with columns that a user's function adds; None reads them
            as they are. A mechanism reads what it draws with `(self.features or
            read_outputs)(values, n)`.
        runs_afresh: whether each call of `sample` starts a program anew, which remembers nothing.
        why_not_afresh: why nobody could start it afresh to see whether an answer stays, as a clause
            for messages.
    """

    name: str
    is_seeded: bool
    chunk_size: int
    claim: Claim | None = None
    worst_pair: Pairs | None = None
    keeper: Keeper | None = None
    features: "Features | None" = None
    used: "UsedDraws | None" = None
    waits: bool = False
    runs_afresh: bool = False
    why_not_afresh: str = (
        "no fresh process could be asked, which takes a function of a module that can be imported"
    )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {one_line(self.name)}>"

    @abstractmethod
    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws n independent outputs.

        The dataset belongs to the caller: a mechanism that changes it, or calls code that might,
        copies it (`copier`).

        Raises:
            MechanismError: if the mechanism fails or returns something that cannot be read.
        """

    def prepared(self, pairs: Sequence[Pair], samples: int) -> "Mechanism":
        """Returns the mechanism to draw from in an audit of these pairs.

        One that cannot supply `samples` draws per side raises here, before the first draw; most are
        ready as they are.
        """
        return self

    def unused(self, earlier: "EarlierDraws", pair: Pair, samples: int) -> "Mechanism":
        """Returns the mechanism to replay an event of this pair with.

        A replay needs draws that did not choose the event. A recording leaves out the rows that
        were used earlier; other mechanisms draw afresh.

        Raises:
            InputError: too few draws are left.
        """
        return self

    def digest(self) -> str:
        """Returns a digest of the mechanism's code and its dependencies.

        Raises:
            Undigestible: if it holds something without content by which to recognise it.
        """
        attributes = {name: vars(self)[name] for name in sorted(vars(self))}
        return code_digest((type(self), attributes))

    def identity_digest(self) -> str:
        """Returns the digest by which results name the code that was audited.

        It is that of the mechanism, but for settings of a call that leave the code as it is.
        """
        return self.digest()

    def with_features(self, features: "Features | None") -> Self:
        """Returns the same mechanism with other features, or none."""
        copied = self.__copy__()
        vars(copied).pop("features", None)
        if features is not None:
            copied.features = features
        return copied

    def __copy__(self) -> Self:
        """Returns the same mechanism in this process, even if it cannot be pickled."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def weakening_facts(self) -> dict[str, Any]:
        """Returns what weakens a reading of its draws, as plain data for the settings of a result.

        It is empty if nothing does. A mechanism around another one, its attribute `mechanism`, has
        the facts of that one, too.
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
        """Returns the mechanism's own claim for these pairs, if it makes one."""
        return self.claim


def failure_text(name: str, dataset: Any, error: BaseException) -> str:
    """Returns the message that a mechanism raised an error, and on which input."""
    reason = f"{type(error).__name__} on the input {short_repr(dataset)}"
    return f"{name} raised {reason}: {short_repr(str(error))}"


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Returns the parameters of a function's signature; none if it has no signature."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some builtins have no signature
        return {}


def import_path(function: Any) -> str:
    """Returns where a function can be imported from, "module:name"; empty if it cannot."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", "<")
    if module == "__main__":  # a script, which others import by the name of its file
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "").stem
    is_importable = module and inspect.isroutine(function) and "<" not in name
    return f"{module}:{name}" if is_importable else ""
