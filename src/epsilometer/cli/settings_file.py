"""Audits described in a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epsilometer.cli.files import read_dataset, read_parsed
from epsilometer.cli.output import FILE_KEYS
from epsilometer.errors import InputError, meant_or_known, shown

CLAIM_KEYS = ("epsilon", "delta", "order", "mu", "rho")
INPUT_KEYS = ("left", "right", "pairs", "finder", "domain", "around")
SEARCH_KEYS = (
    "domain",
    "around",
    "relation",
    "user",
    "beyond",
    "trials",
    "trial_samples",
    "search_on",
)
RUN_KEYS = (
    *("samples", "confidence", "seed", "method", "options", "jobs", "engine", "suppress"),
    *("stop_early", "max_seconds", "checkpoint", "representation", "distance"),
)
_TEXTS = (
    "mechanism",
    "features",
    "around",
    "method",
    "engine",
    *FILE_KEYS,
    "checkpoint",
    "representation",
)
_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(("batch", "beyond", "stop_early"), bool),
    **dict.fromkeys(("pairs", "suppress"), list),
    **dict.fromkeys(("finder", "options"), dict),
    "max_seconds": (int, float),
}
KEYS = (
    "mechanism",
    "batch",
    "features",
    *INPUT_KEYS,
    *SEARCH_KEYS[2:],
    *CLAIM_KEYS,
    *RUN_KEYS,
    *FILE_KEYS,
)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of one audit.

    The keys are the long names of the options, `mechanism`, `pairs` for several pairs, and a table
    `finder` for the settings of a search. A text input that begins with @ names a file beside the
    TOML file; @@ stands for a single @.
    """
    settings = read_parsed(path, tomllib.loads, "TOML")
    if "audit" in settings:
        raise InputError(f"{path} holds several audits; run them with: epsilometer run {path}")
    check_settings_table(settings, str(path))
    return resolve_inputs(settings, path)


def check_settings_table(settings: Mapping[str, Any], where: str, more: Sequence[str] = ()) -> None:
    """Raises for unknown keys, wrong types and a missing mechanism.

    Args:
        settings: the table.
        where: file and audit, for messages.
        more: further keys that are allowed.
    """
    known = (*KEYS, *more)
    for key, value in settings.items():
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}{meant_or_known(key, known)}")
        if key in _TYPES and not isinstance(value, _TYPES[key]):
            raise InputError(
                f"{where}: {key} = {shown(value)} must be a {getattr(_TYPES[key], '__name__', 'number')}"
            )
        if key == "suppress" and not all(isinstance(each, str) for each in value):
            raise InputError(f"{where}: suppress = {shown(value)} must be a list of texts")
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
            table["around"] = read_dataset(
                path.parent / table["around"].removeprefix("@"), "around"
            )
    for value in resolved.get("pairs", ()):
        if not isinstance(value, list) or len(value) != 2:
            raise InputError(f"{path}: every entry of pairs must be [left, right], not {value!r}")
    if "pairs" in resolved:
        resolved["pairs"] = [
            (_resolve(left, path), _resolve(right, path)) for left, right in resolved["pairs"]
        ]
    return resolved


def _resolve(value: Any, path: Path) -> Any:
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    return value[1:] if value.startswith("@@") else read_dataset(path.parent / value[1:], str(path))
