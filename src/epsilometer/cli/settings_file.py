"""Audits described in a TOML file."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from epsilometer.cli.files import read_dataset, read_text
from epsilometer.errors import InputError

CLAIM_KEYS = ("epsilon", "delta", "order", "mu", "rho")
FILE_KEYS = ("json", "html", "junit", "markdown")
RUN_KEYS = ("samples", "confidence", "seed", "method", "jobs", "suppress")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "mechanism": str,
    "batch": bool,
    "pairs": list,
    "method": str,
    "json": str,
    "html": str,
    "junit": str,
    "markdown": str,
    "suppress": list,
}
KEYS = ("mechanism", "batch", "left", "right", "pairs", *CLAIM_KEYS, *RUN_KEYS, *FILE_KEYS)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of one audit: the long names of the options as keys, `mechanism`, and `pairs` for several pairs.

    A text input that begins with @ names a file beside the TOML file; @@ stands for a single @.
    """
    try:
        settings = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    for key, value in settings.items():
        _check_entry(path, key, value)
    if "mechanism" not in settings:
        raise InputError(f'{path} names no mechanism: write mechanism = "package.module:function"')
    for key in ("left", "right"):
        if key in settings:
            settings[key] = _resolve(settings[key], path)
    if "pairs" in settings:
        settings["pairs"] = [_as_pair(each, path) for each in settings["pairs"]]
    return settings


def _check_entry(path: Path, key: str, value: Any) -> None:
    if key not in KEYS:
        close = get_close_matches(key, KEYS, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(KEYS)}"
        raise InputError(f"{path}: unknown key {key!r}; {hint}")
    if key in _TYPES and not isinstance(value, _TYPES[key]):
        raise InputError(f"{path}: {key} = {value!r} must be a {getattr(_TYPES[key], '__name__', 'value')}")


def _as_pair(value: Any, path: Path) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{path}: every entry of pairs must be [left, right], not {value!r}")
    return _resolve(value[0], path), _resolve(value[1], path)


def _resolve(value: Any, path: Path) -> Any:
    if not isinstance(value, str) or not value.startswith("@"):
        return value
    return value[1:] if value.startswith("@@") else read_dataset(path.parent / value[1:], str(path))
