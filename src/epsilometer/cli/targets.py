"""From the name of a mechanism to the mechanism."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from epsilometer.errors import InputError


def open_target(target: str, batch: bool = False, folders: tuple[Path, ...] = ()) -> Any:
    """The mechanism, function or zoo entry that a target names.

    Args:
        target: "zoo:NAME", "zoo:NAME?key=value&…", "package.module:function", "command:PROGRAM ARGUMENTS" with
            {dataset} among them, an http(s) address, or "recording:FILE" or "recording:LEFT,RIGHT".
        batch: whether the function, program or service draws many outputs per call.
        folders: searched for modules after the current folder.
    """
    kind, colon, rest = target.partition(":")
    if not colon or not kind or not rest:
        raise InputError(
            f"target {target!r} is neither package.module:function nor zoo:NAME, command:PROGRAM, an http(s) address, "
            "recording:FILE or a .toml file"
        )
    if kind == "zoo":
        if batch:
            raise InputError("--batch is for functions; a zoo mechanism knows how it is run")
        return _open_zoo(rest)
    if kind in ("command", "http", "https", "recording"):
        return _open_foreign(kind, target if kind.startswith("http") else rest, batch)
    found = _import(kind, rest, folders)
    if not batch:
        return found
    from epsilometer.mechanisms import from_batch

    return from_batch(found)


def _open_foreign(kind: str, text: str, batch: bool) -> Any:
    from epsilometer.mechanisms import from_command, from_http, from_recording

    if kind == "command":
        return from_command(split_command(text), batch=batch)
    if kind != "recording":
        return from_http(text, batch=batch)
    if batch:
        raise InputError("--batch is for functions, programs and services; a recording is only read")
    left, comma, right = text.partition(",")
    return from_recording(left, right) if comma and not Path(text).exists() else from_recording(text)


def split_command(text: str) -> list[str]:
    """The words of a command: quotes as in a shell, but no shell and none of its substitutions."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"command:{text} cannot be read: {error}") from None


def _open_zoo(text: str) -> Any:
    from epsilometer import zoo

    name, _, query = text.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise InputError(f"zoo:{text} cannot be read: write parameters like zoo:NAME?epsilon=.7&size=5") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise InputError(f"zoo:{text} gives a parameter twice")
    return zoo.find(name, **parameters)


def _import(module_name: str, path: str, folders: tuple[Path, ...]) -> Any:
    if module_name.endswith(".py") or "/" in module_name:
        hint = Path(module_name).stem
        raise InputError(f"{module_name!r} is a file; write its module instead, like {hint}:{path}, from its folder")
    for folder in reversed((Path.cwd(), *folders)):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise InputError(f"module {module_name!r} has no {path!r}{_suggest(name, found)}") from None
    return found


def _suggest(name: str, owner: object) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [each for each in dir(owner) if not each.startswith("_")], 1)
    return f"; did you mean {close[0]!r}?" if close else ""
