"""Audits described in a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epsilometer.cli.files import read_dataset, read_parsed
from epsilometer.cli.output import FILE_KEYS
from epsilometer.cli.targets import check_http_table
from epsilometer.errors import InputError, meant_or_known, short_repr

CLAIM_KEYS = (
    "epsilon",
    "delta",
    "order",
    "mu",
    "rho",
    "accountant",
)
# How the target is called, where that can be chosen.
CALL_KEYS = (
    "params",
    "dataset_format",
    "http",
)
INPUT_KEYS = (
    "left",
    "right",
    "pairs",
    "finder",
    "domain",
    "around",
)
# How a search is done, besides what it searches.
_SEARCH_OPTION_KEYS = (
    "relation",
    "user",
    "beyond",
    "trials",
    "trial_samples",
    "search_on",
)
SEARCH_KEYS = (
    "domain",
    "around",
    *_SEARCH_OPTION_KEYS,
)
RUN_KEYS = (
    "samples",
    "confidence",
    "seed",
    "method",
    "options",
    "jobs",
    "engine",
    "suppress",
    "constant",
    "stop_early",
    "max_seconds",
    "checkpoint",
    "representation",
    "distance",
)
KEYS = (
    "mechanism",
    "batch",
    "features",
    *CALL_KEYS,
    *INPUT_KEYS,
    *_SEARCH_OPTION_KEYS,
    *CLAIM_KEYS,
    *RUN_KEYS,
    *FILE_KEYS,
    "fail_blind",
)
# The types of values that are checked here; others are checked where they are used.
_TYPES: dict[str, type | tuple[type, ...]] = {
    "mechanism": str,
    "batch": bool,
    "features": str,
    "accountant": str,
    "params": dict,
    "dataset_format": str,
    "http": dict,
    "domain": (str, dict),
    "around": str,
    "relation": str,
    "user": str,
    "beyond": bool,
    "search_on": bool,
    "pairs": list,
    "finder": dict,
    "method": str,
    "options": dict,
    "engine": str,
    "suppress": list,
    "constant": str,
    "stop_early": bool,
    "max_seconds": (int, float),
    "checkpoint": str,
    "representation": str,
    "fail_blind": bool,
    **dict.fromkeys(FILE_KEYS, str),
}

# These types in the words of a TOML file.
_TYPE_WORDS: dict[type | tuple[type, ...], str] = {
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    (int, float): "a number",
    (str, dict): "a text or a table",
}


def read_settings(path: Path) -> dict[str, Any]:
    """Returns the settings of one audit.

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
            kind = _TYPE_WORDS[_TYPES[key]]
            raise InputError(f"{where}: {key} = {short_repr(value)} must be {kind}")
        if key == "suppress" and not all(isinstance(name, str) for name in value):
            raise InputError(f"{where}: suppress = {short_repr(value)} must be a list of texts")
    check_http_table(settings.get("http", {}), f"{where}: [http]")
    if "mechanism" not in settings:
        raise InputError(f'{where} names no mechanism: write mechanism = "package.module:function"')


def resolve_inputs(settings: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Returns the same settings with inputs read from the files that they name."""
    resolved = dict(settings)
    if "finder" in resolved:
        resolved["finder"] = dict(resolved["finder"])
    for key in ("left", "right"):
        if key in resolved:
            resolved[key] = _resolve(resolved[key], path)
    for table in (resolved, resolved.get("finder", {})):
        if isinstance(table.get("around"), str):
            data_file = path.parent / table["around"].removeprefix("@")
            user = resolved.get("user", table.get("user"))
            table["around"] = read_dataset(data_file, "around", user)
    if "pairs" in resolved:
        resolved["pairs"] = [_resolve_pair(pair, path) for pair in resolved["pairs"]]
    return resolved


def _resolve_pair(pair: Any, path: Path) -> tuple[Any, Any]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(
            f"{path}: every entry of pairs must be [left, right], not {short_repr(pair)}; one pair "
            "is pairs = [[left, right]], or left = … and right = …"
        )
    left, right = pair
    return _resolve(left, path), _resolve(right, path)


def _resolve(value: Any, path: Path) -> Any:
    """The input itself, or the content of the file that @FILE names; @@ stands for a single @."""
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    name = value[1:]
    return name if name.startswith("@") else read_dataset(path.parent / name, str(path))
