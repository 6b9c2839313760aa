"""All methods by name. A method's code is loaded when it is asked for: most audits need one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

from epsilometer.claims import PureDP
from epsilometer.errors import InputError
from epsilometer.methods.base import Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs.events import LogRatio
from epsilometer.result import Witness

# Where each is at home. The class makes its method from an options object of its own, or from None for its defaults.
_METHODS: dict[str, tuple[str, str]] = {
    "auto": ("epsilometer.methods.auto", "AutoMethod"),
    "events": ("epsilometer.methods.events", "EventsMethod"),
    "hockey-stick": ("epsilometer.methods.published.auditorium.hockey_stick", "HockeyStickMethod"),
    "ldp-histogram": ("epsilometer.methods.published.ldp.method", "HistogramMethod"),
    "profile": ("epsilometer.methods.profile", "ProfileMethod"),
    "sequential": ("epsilometer.methods.sequential", "SequentialMethod"),
    "bits": ("epsilometer.methods.bits", "BitsMethod"),
    "local": ("epsilometer.methods.published.local.method", "LocalMethod"),
    "mmd": ("epsilometer.methods.published.auditorium.mmd", "MmdMethod"),
    "poisson-histogram": ("epsilometer.methods.published.auditorium.poisson_histogram", "PoissonHistogramMethod"),
    "renyi-bet": ("epsilometer.methods.renyi_bet", "RenyiBetMethod"),
    "renyi-variational": ("epsilometer.methods.published.auditorium.renyi_variational", "RenyiVariationalMethod"),
    "renyi-floored": ("epsilometer.methods.published.renyi.method", "RenyiFlooredMethod"),
}


def names() -> list[str]:
    """Every name that `method=` takes."""
    return list(_METHODS)


def find_method(name: str, options: object = None) -> Method:
    """The method of that name; `auto` is the best one for the claim.

    Args:
        options: an options object of that method's own, the same as a mapping, or None for the defaults.
    """
    kind = getattr(_home(name), _METHODS[name][1])
    method: Method = kind(as_options(name, options))
    return method


def as_method(method: object, options: object = None) -> Method:
    """A method by its name, or an object of the caller's own that does what `Method` says; it brings its options."""
    if isinstance(method, str):
        return find_method(method, options)
    wrong = [name for name in ("name", "summary", "guarantee") if not _is_text(getattr(method, name, None))]
    wrong += [] if callable(getattr(method, "propose", None)) else ["propose(left, right, task)"]
    if wrong or isinstance(method, type):
        hint = "make an object of it" if isinstance(method, type) else f"it lacks {', '.join(wrong)}"
        raise InputError(f"method={method!r:.100} is neither a name of `epsilometer methods` nor a method: {hint}")
    if options is not None:
        raise InputError(f"options={options!r:.100}: a method that is given as an object brings its options with it")
    return cast(Method, method)


def as_options(name: object, options: object) -> object:
    """Options that came as a mapping (from a command line, a file) as an object of the method's own; others as is."""
    if not isinstance(name, str) or not isinstance(options, Mapping):
        return options
    known = option_names(name)
    if not known:
        raise InputError(f"the method {name} has no options, but {', '.join(map(str, options))} was given")
    for key in options:
        if key not in known:
            close = get_close_matches(str(key), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise InputError(f"the method {name} has no option {key!r}; {hint}")
    try:
        return _home(name).Options(**{key: _as_tuples(value) for key, value in options.items()})
    except TypeError as error:  # one that is needed is missing, or a text stands where a number belongs
        raise InputError(f"these are no options of the method {name}: {error}") from error


def option_names(name: str) -> list[str]:
    """The names of a method's options."""
    kind = getattr(_home(name), "Options", None)
    return [] if kind is None else [field.name for field in fields(kind)]


def _home(name: str) -> Any:
    if name not in _METHODS:
        close = get_close_matches(str(name), names(), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method={name!r} is unknown; known are {', '.join(names())}{hint}")
    return import_module(_METHODS[name][0])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _as_tuples(value: Any) -> Any:
    """Files know lists only."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def restore_proposal(witness: Witness, task: Task, predicted: float) -> Proposal:
    """The proposal that a witness came from, ready for fresh draws.

    Args:
        witness: a set of outputs or a score of them.
        task: what is to be proved this time.
        predicted: the bound that was found before.
    """
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    if isinstance(witness.event, LogRatio):
        # Only a replay of a score needs these methods, and every audit loads this file.
        from epsilometer.methods.published.auditorium.renyi_variational import restored_function
        from epsilometer.methods.renyi_bet import restored_bet

        n_known = min(above.trials, below.trials)
        if isinstance(task.claim, PureDP):
            return restored_function(witness.event, witness.flipped, task, n_known)
        return restored_bet(witness.event, witness.flipped, task, predicted, n_known)
    return EventProposal(witness.event, witness.flipped, task, predicted, 0.5, above.share, below.share)
