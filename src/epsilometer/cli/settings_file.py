"""Audits described in a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epsilometer.cli.files import read_dataset, read_parsed
from epsilometer.cli.output import FILE_KEYS
from epsilometer.cli.targets import HTTP_KEYS, check_http_table
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
    **dict.fromkeys(("epsilon", "delta", "order", "mu", "rho", "confidence"), (int, float)),
    **dict.fromkeys(("seed", "jobs", "distance", "trials"), int),
    **dict.fromkeys(("samples", "trial_samples"), (int, float, str)),
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
    int: "a whole number",
    (int, float, str): 'a whole number, or a text like "100k"',
    (str, dict): "a text or a table",
}
# What is meant for these may hold a password: messages do not repeat it.
_MAY_BE_SECRET = ("http", "params")
# What a key looks like where its type alone does not say it.
_EXAMPLES = {
    "suppress": 'suppress = ["drift"]',
    "pairs": "pairs = [[left, right]]",
    "finder": 'finder = {name = "random", domain = "number:0:1"}',
    "params": "[params], then NAME = VALUE",
    "http": "[http], then timeout = 5",
    "options": "[options], then NAME = VALUE",
    **{key: f'{key} = "FILE"' for key in (*FILE_KEYS, "checkpoint", "around")},
}
_IN_HTTP = "it is about a service: write {} in the table [http]"
_OF_A_CLAIM = "a claim is epsilon = …, also with delta = … or order = …, or mu = …, or rho = …"
_OF_INPUTS = (
    "inputs are left = … and right = …, or pairs = [[left, right], …], or domain, or around"
)
_OF_A_SUITE = "it is for a suite; run the file with epsilometer run"
# Keys that people try, and where what they mean belongs.
_MEANT_ELSEWHERE = {
    **{key: _IN_HTTP.format(f"{key} = …") for key in HTTP_KEYS if key != "method"},
    **{f"http_{key}": _IN_HTTP.format(f"{key} = …") for key in HTTP_KEYS},
    **dict.fromkeys(("header", "http_header"), _IN_HTTP.format('headers = {NAME = "VALUE"}')),
    **dict.fromkeys(("claim", "claims"), _OF_A_CLAIM),
    **dict.fromkeys(("input", "inputs", "dataset", "datasets"), _OF_INPUTS),
    **dict.fromkeys(("expect", "time_limit", "notion", "name"), _OF_A_SUITE),
    **dict.fromkeys(("family_confidence", "nights", "title"), _OF_A_SUITE),
    "night": "say it on the command line, epsilometer run --night K",
    **dict.fromkeys(
        ("audit", "audits", "test", "tests"), "write every audit under a line [[audit]]"
    ),
    "all": 'write representation = "all"',
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
    check_keys(settings, where, more)
    if "mechanism" not in settings:
        raise InputError(f'{where} names no mechanism: write mechanism = "package.module:function"')


def check_keys(settings: Mapping[str, Any], where: str, more: Sequence[str] = ()) -> None:
    """Raises for unknown keys and wrong types; see `check_settings_table`."""
    known = (*KEYS, *more)
    for key, value in settings.items():
        if key not in known:
            raise InputError(f"{where}: unknown key {key!r}{_meant_key(key, known)}")
        if key in _TYPES:
            _check_type(key, value, where)
    check_http_table(settings.get("http", {}), f"{where}: [http]")


def _meant_key(key: str, known: Sequence[str]) -> str:
    """The end of a message about an unknown key: what was probably meant, or all that are known."""
    spelling = key.lower().replace("-", "_")
    if spelling in _MEANT_ELSEWHERE and spelling not in known:
        return f": {_MEANT_ELSEWHERE[spelling]}"
    return meant_or_known(key, known)


def _check_type(key: str, value: Any, where: str) -> None:
    """Raises if a value has another type than its key, with how to write it."""
    expected = _TYPES[key]
    # True is a whole number to Python, and to nobody else.
    is_right = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
    if is_right and (key != "suppress" or all(isinstance(name, str) for name in value)):
        return
    kind = "a list of texts" if key == "suppress" else _TYPE_WORDS[expected]
    hint = ""
    if key in _EXAMPLES:
        hint = f": {_EXAMPLES[key]}"
    elif expected is str and isinstance(value, int | float):
        hint = ", in quotes"
    elif isinstance(value, str):
        hint = ", without quotes"
    shown = "…" if key in _MAY_BE_SECRET else in_toml(value)
    raise InputError(f"{where}: {key} = {shown} must be {kind}{hint}")


def in_toml(value: Any) -> str:
    """A value of a TOML file as it is written there, cut if it is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return short_repr(value)


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
