"""Audits described in a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from epsilometer.cli.files import read_dataset, read_text
from epsilometer.errors import InputError, shown

CLAIM_KEYS = ("epsilon", "delta", "order", "mu", "rho")
INPUT_KEYS = ("left", "right", "pairs", "finder", "domain", "around")
SEARCH_KEYS = ("domain", "around", "relation", "user", "beyond", "trials", "trial_samples", "search_on")
FILE_KEYS = ("json", "html", "junit", "markdown", "write_test")
RUN_KEYS = (
    *("samples", "confidence", "seed", "method", "options", "jobs", "engine", "suppress"),
    *("stop_early", "max_seconds", "checkpoint", "representation", "distance"),
)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "mechanism": str,
    "batch": bool,
    "pairs": list,
    "finder": dict,
    "around": str,
    "beyond": bool,
    "method": str,
    "options": dict,
    "engine": str,
    "json": str,
    "html": str,
    "junit": str,
    "markdown": str,
    "write_test": str,
    "suppress": list,
    "stop_early": bool,
    "max_seconds": (int, float),
    "checkpoint": str,
    "representation": str,
}
KEYS = ("mechanism", "batch", *INPUT_KEYS, *SEARCH_KEYS[2:], *CLAIM_KEYS, *RUN_KEYS, *FILE_KEYS)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of one audit.

    The keys are the long names of the options, `mechanism`, `pairs` for several pairs, and a table `finder` for the
    settings of a search. A text input that begins with @ names a file beside the TOML file; @@ stands for a single @.
    """
    settings = read_toml(path)
    if "audit" in settings:
        raise InputError(f"{path} holds several audits; run them with: epsilometer run {path}")
    check_settings_table(settings, str(path))
    return resolve_inputs(settings, path)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(read_text(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:  # also too many brackets, or digits
        raise InputError(f"{path} is not TOML: {error}") from error


def check_settings_table(settings: Mapping[str, Any], where: str, more: Sequence[str] = ()) -> None:
    """Raises for unknown keys, wrong types and a missing mechanism.

    Args:
        settings: the table.
        where: file and audit, for messages.
        more: further keys that are allowed.
    """
    for key, value in settings.items():
        _check_entry(where, key, value, (*KEYS, *more))
    if "mechanism" not in settings:
        raise InputError(f'{where} names no mechanism: write mechanism = "package.module:function"')


def resolve_inputs(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The same settings with inputs read from the files that they name."""
    resolved = dict(settings)
    if "finder" in resolved:
        resolved["finder"] = dict(resolved["finder"])
    for key in ("left", "right"):
        if key in resolved:
            resolved[key] = _resolve(resolved[key], path)
    for table in (resolved, resolved.get("finder", {})):
        if isinstance(table.get("around"), str):
            table["around"] = read_dataset(path.parent / table["around"].removeprefix("@"), "around")
    if "pairs" in resolved:
        resolved["pairs"] = [_as_pair(each, path) for each in resolved["pairs"]]
    return resolved


def _check_entry(where: str, key: str, value: Any, known: Sequence[str]) -> None:
    if key not in known:
        close = get_close_matches(key, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
        raise InputError(f"{where}: unknown key {key!r}; {hint}")
    if key in _TYPES and not isinstance(value, _TYPES[key]):
        raise InputError(f"{where}: {key} = {shown(value)} must be a {getattr(_TYPES[key], '__name__', 'number')}")
    if key == "suppress" and not all(isinstance(each, str) for each in value):
        raise InputError(f"{where}: suppress = {shown(value)} must be a list of texts")


def _as_pair(value: Any, path: Path) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{path}: every entry of pairs must be [left, right], not {value!r}")
    return _resolve(value[0], path), _resolve(value[1], path)


def _resolve(value: Any, path: Path) -> Any:
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    return value[1:] if value.startswith("@@") else read_dataset(path.parent / value[1:], str(path))
