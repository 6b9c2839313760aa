"""The ways in which an audit can be asked to run, turned into a method and its options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from epsilometer.auditing.settings import Settings
from epsilometer.errors import InputError
from epsilometer.methods import Method
from epsilometer.methods.bits import EventsWithBits
from epsilometer.methods.registry import as_options
from epsilometer.result import AuditResult, Finding, changed

_REPRESENTATIONS = ("value", "bits", "all")


def choose_mode(
    method: str | Method,
    options: object,
    *,
    stop_early: bool | None,
    max_seconds: float | None,
    checkpoint: str | Path | None,
    representation: str,
    searches: bool = False,
) -> tuple[str | Method, object]:
    """The method and its options; an InputError where the wishes do not go together.

    A checkpoint means stopping early, unless the caller says otherwise, names a method, asks for another view, or
    searches for pairs.
    """
    if representation not in _REPRESENTATIONS:
        raise InputError(f"representation={representation!r} must be one of {', '.join(map(repr, _REPRESENTATIONS))}")
    if stop_early is False and max_seconds is not None:
        raise InputError(f"max_seconds={max_seconds!r} is for audits that stop early; leave stop_early=False out")
    if getattr(method, "stops_early", False) and options is None:
        method, options = "sequential", getattr(method, "options", None)
    is_ordinary = method == "auto" and representation == "value" and not searches
    implied = checkpoint is not None and stop_early is None and is_ordinary
    if stop_early or implied or max_seconds is not None or method == "sequential":
        if representation != "value":
            raise InputError(f"representation={representation!r} cannot be combined with stopping early")
        return "sequential", _sequential_options(method, options, max_seconds, checkpoint)
    if representation != "value" and method != "profile":
        if method not in ("auto", "events", "bits"):
            raise InputError(f"representation={representation!r} goes with the method events, not with {method!r}")
        return ("bits" if representation == "bits" else "events"), options
    return method, options


def seen_as(settings: Settings, representation: str) -> Settings:
    """The settings with a method that looks at outputs in this way; the result will say which."""
    if representation == "value":
        return settings
    settings.record["representation"] = representation
    if settings.method.name == "profile":
        from epsilometer.methods.bits_profile import BitsProfileMethod, ProfileWithBits  # few ask for it

        return replace(settings, method=BitsProfileMethod() if representation == "bits" else ProfileWithBits())
    return replace(settings, method=EventsWithBits()) if representation == "all" else settings


def _sequential_options(
    method: str | Method, options: object, max_seconds: float | None, checkpoint: str | Path | None
) -> object:
    from epsilometer.methods.sequential import Options  # few audits stop early

    if method not in ("auto", "sequential"):
        raise InputError(f"method={method!r} cannot stop early; leave it out, or say method='sequential'")
    options = as_options("sequential", options)
    if options is not None and not isinstance(options, Options):
        raise InputError(f"options={options!r:.100} must be epsilometer.sequential.Options when stopping early")
    chosen = options or Options()
    if max_seconds is not None:
        chosen = replace(chosen, max_seconds=max_seconds)
    return chosen if checkpoint is None else replace(chosen, checkpoint=checkpoint)


def spread_findings(result: AuditResult) -> AuditResult:
    """A finding that was carried in the details of the deciding one becomes one of its own, behind it."""
    first = result.findings[0]
    if "beside" not in first.details:
        return result
    details = {name: value for name, value in first.details.items() if name != "beside"}
    beside = Finding.from_dict(first.details["beside"])
    return changed(result, findings=(replace(first, details=details), beside, *result.findings[1:]))
