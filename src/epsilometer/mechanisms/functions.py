"""Makes mechanisms: from functions, from whatever `audit` accepts, and from repeated runs."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from epsilometer.claims import Claim
from epsilometer.errors import InputError, short_repr
from epsilometer.inputs import Pair, Pairs
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.callables import BatchMechanism, OnError, SingleMechanism
from epsilometer.mechanisms.features import as_features
from epsilometer.mechanisms.libraries import adapt
from epsilometer.mechanisms.repeating import RepeatedMechanism

__all__ = [
    "AuditTarget",
    "as_audit_target",
    "as_mechanism",
    "from_batch",
    "from_callable",
    "repeated",
]


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
    mechanism = SingleMechanism(function, on_error=on_error, name=name)
    return mechanism.with_features(as_features(features))


def from_batch(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    features: Callable[[Any], Any] | None = None,
) -> BatchMechanism:
    """A mechanism from a function f(dataset, n, rng) or f(dataset, n) of n independent outputs.

    The outputs may be a numpy array (axis 0 counts outputs), a sequence, or a dict of columns of
    length n.

    Args:
        function: draws the outputs.
        name: its name in reports.
        features: a function of one output that returns a number, a text, a truth value, None, or a
            tuple or dict of these: further columns for the event, like "the report is the hash of
            this answer", which nobody could learn. An event of an output and its features is an
            event of the output: they can weaken an audit, but cannot make its answer wrong.

    Example:
        >>> mechanism = em.from_batch(lambda x, n, rng: x + rng.laplace(size=n))
        >>> em.audit(mechanism, em.Pair(0, 1), em.PureDP(0.5), samples=1000, seed=0).verdict
        <Verdict.REFUTED: 'refuted'>
    """
    return BatchMechanism(function, name).with_features(as_features(features))


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """What is audited: a mechanism, with the claim and the inputs that it brings along, if any."""

    mechanism: Mechanism
    claim: Claim | None = None
    worst_pair: Pairs | None = None

    def promise(self, pairs: Sequence[Pair]) -> Claim | None:
        """Returns its own claim for these pairs, if it makes one."""
        if self.claim is not None:
            return self.claim
        return self.mechanism.promise(pairs)

    @property
    def claims_by_pair(self) -> bool:
        """Whether its claim depends on the pair of inputs."""
        return self.claim is None and self._mechanism_promises

    @property
    def has_claim(self) -> bool:
        """Whether it claims anything."""
        return self.claim is not None or self._mechanism_promises

    @property
    def _mechanism_promises(self) -> bool:
        return type(self.mechanism).promise is not Mechanism.promise


def as_audit_target(candidate: object) -> AuditTarget:
    """Returns anything that `audit` accepts as a mechanism, with its claim and inputs.

    That is whatever `as_mechanism` takes, or an entry of the zoo and similar objects. This is the
    one place that looks into foreign objects.
    """
    if isinstance(candidate, AuditTarget):
        return candidate
    source: Any = candidate
    if not isinstance(candidate, Mechanism):
        source = getattr(candidate, "mechanism", None)
    if not isinstance(source, Mechanism) and not inspect.isfunction(candidate):
        source = adapt(candidate)
    if not isinstance(source, Mechanism):
        if not callable(candidate):
            raise InputError(
                f"mechanism={short_repr(candidate)} is neither a mechanism nor a function nor "
                f"an object with a method randomise: {_meant_mechanism(candidate)}"
            )
        source = SingleMechanism(candidate)
    return AuditTarget(
        mechanism=source,
        claim=getattr(candidate, "claim", None),
        worst_pair=getattr(candidate, "worst_pair", None),
    )


def _meant_mechanism(candidate: object) -> str:
    """Returns what the caller of this may have meant, as a remedy."""
    if isinstance(candidate, Pair | Claim):
        return "the order is em.audit(mechanism, inputs, claim)"
    if isinstance(candidate, str):
        return "import the function and give it itself; names are for the command line"
    return "give the function itself, f, and not what it returns, f(x)"


def as_mechanism(mechanism: object) -> Mechanism:
    """Returns a mechanism as it is, or makes one.

    An object of OpenDP or diffprivlib, or one with a method `randomise`, is adapted; a bare
    callable is treated as by `from_callable`.
    """
    if isinstance(mechanism, Mechanism):
        return mechanism
    return as_audit_target(mechanism).mechanism


def repeated(mechanism: object, times: int) -> RepeatedMechanism | AuditTarget:
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
    target = as_audit_target(mechanism)
    runs = RepeatedMechanism(target.mechanism, times)
    if target.claim is None:
        return runs
    return AuditTarget(
        mechanism=runs,
        claim=target.claim.composed(runs.times),
        worst_pair=target.worst_pair,
    )
