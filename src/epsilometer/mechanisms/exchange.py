"""Datasets and outputs as text: what goes to a program or a service, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from epsilometer.errors import InputError, MechanismError
from epsilometer.mechanisms.base import shown

# Whole numbers up to here are floats without loss.
_EXACT = 1 << 53


def to_json(dataset: Any) -> str:
    """A dataset as one line of strict JSON; arrays become lists.

    Raises:
        InputError: it holds something that JSON has no word for.
    """
    try:
        return json.dumps(_plain(dataset), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"the input {shown(dataset)} cannot be written as JSON ({error}); programs and services take "
            "numbers, texts, lists, dicts and arrays"
        ) from error


def to_argument(dataset: Any) -> str:
    """A dataset as an argument of a program: a number or a text as it is, anything else as JSON."""
    plain = _plain(dataset)
    text = plain if isinstance(plain, str) else repr(plain) if isinstance(plain, float) else to_json(plain)
    if "\0" in text:
        raise InputError(f"the input {shown(dataset)} has a zero byte, which no argument of a program can hold")
    return text


def read_value(text: str) -> Any:
    """What a program printed: JSON, else a number, else the text itself."""
    try:
        return settle(json.loads(text))
    except (ValueError, RecursionError):
        pass
    try:
        return float(text)
    except ValueError:
        return text


def read_json(text: str, source: str) -> Any:
    """JSON, or a MechanismError that quotes what came instead.

    Args:
        source: where the text is from, for the message.
    """
    try:
        return settle(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise MechanismError(f"{source} is not JSON: {shown(text)}") from error


def settle(value: Any) -> Any:
    """The same value with every whole number that a float holds exactly as a float.

    Whether a number was printed as 1 or as 1.0 is the printer's habit and not an output of its own.
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _EXACT:
        return float(value)
    if isinstance(value, list):
        return [settle(each) for each in value]
    if isinstance(value, dict):
        return {key: settle(each) for key, each in value.items()}
    return value


def decode(data: bytes, source: str) -> str:
    """UTF-8, or a MechanismError that quotes what came instead."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MechanismError(f"{source} is not text in UTF-8: {shown(data)}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
