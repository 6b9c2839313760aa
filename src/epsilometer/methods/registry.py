"""All methods by name. A method's code is loaded when it is asked for: most audits need one of them."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from epsilometer.errors import InputError
from epsilometer.methods.base import Method

# Where each is at home. The class makes its method from an options object of its own, or from None for its defaults.
_METHODS: dict[str, tuple[str, str]] = {
    "auto": ("epsilometer.methods.auto", "AutoMethod"),
    "events": ("epsilometer.methods.events", "EventsMethod"),
    "hockey-stick": ("epsilometer.methods.hockey_stick", "HockeyStickMethod"),
    "ldp-histogram": ("epsilometer.methods.ldp.method", "HistogramMethod"),
    "profile": ("epsilometer.methods.profile", "ProfileMethod"),
    "sequential": ("epsilometer.methods.sequential", "SequentialMethod"),
    "bits": ("epsilometer.methods.bits", "BitsMethod"),
    "local": ("epsilometer.methods.local.method", "LocalMethod"),
    "mmd": ("epsilometer.methods.mmd", "MmdMethod"),
    "poisson-histogram": ("epsilometer.methods.poisson_histogram", "PoissonHistogramMethod"),
    "renyi-bet": ("epsilometer.methods.renyi_bet", "RenyiBetMethod"),
    "renyi-variational": ("epsilometer.methods.renyi_variational", "RenyiVariationalMethod"),
    "renyi-floored": ("epsilometer.methods.renyi.method", "RenyiFlooredMethod"),
}


def names() -> list[str]:
    """Every name that `method=` takes."""
    return list(_METHODS)


def find_method(name: str, options: object = None) -> Method:
    """The method of that name; `auto` is the best one for the claim."""
    if name not in _METHODS:
        close = get_close_matches(str(name), names(), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method={name!r} is unknown; known are {', '.join(names())}{hint}")
    module, kind = _METHODS[name]
    method: Method = getattr(import_module(module), kind)(options)
    return method
