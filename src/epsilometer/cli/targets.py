"""Targets: texts that name a function, a program, a service, a recording or a zoo entry."""

import importlib
import shlex
import sys
from dataclasses import replace
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from epsilometer.errors import (
    InputError,
    did_you_mean,
    public,
    public_address,
    public_arguments,
)

if TYPE_CHECKING:
    from epsilometer.mechanisms.features import Features
    from epsilometer.mechanisms.functions import Subject


def open_target(
    target: str,
    batch: bool = False,
    folders: tuple[Path, ...] = (),
    features: str | None = None,
) -> "Subject":
    """The mechanism that a target names, with the claim and the inputs that it brings.

    Args:
        target: "zoo:NAME", "zoo:NAME?key=value&…", "package.module:function",
            "command:PROGRAM ARGUMENTS" with {dataset} among them, an http(s) address,
            "recording:FILE" or "recording:LEFT,RIGHT", or "plugin:NAME" for what an installed
            package brings.
        batch: whether the function, program or service draws many outputs per call.
        folders: searched for modules after the current folder.
        features: "package.module:function" of a function of one output, or None.
    """
    from epsilometer.mechanisms import as_subject

    subject = as_subject(find_target(target, batch, folders))
    if features is None:
        return subject
    mechanism = subject.mechanism.with_features(open_features(features, folders))
    return replace(subject, mechanism=mechanism)


def open_features(place: str, folders: tuple[Path, ...] = ()) -> "Features":
    """The features that "package.module:function" or "file.py:function" names."""
    from epsilometer.mechanisms.features import Features

    module, _, name = place.partition(":")
    if not module or not name:
        raise InputError(
            f"--features {place!r} must be package.module:function or file.py:function"
        )
    return Features.of(_import(module, name, folders), place)


def public_target(target: object) -> str:
    """A target as it may be stored and printed: without secrets of addresses and arguments."""
    text = str(target)
    kind, _, rest = text.partition(":")
    if kind.lower() in ("http", "https"):
        return public_address(text)
    if kind != "command":
        return public(text)
    try:
        words = shlex.split(rest)
    except ValueError:
        return public(text)
    public_words = public_arguments(words)
    return text if public_words == words else f"command:{shlex.join(public_words)}"


def split_command(text: str) -> list[str]:
    """The words of a command: quoted as in a shell, but without a shell or its substitutions."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{public('command:' + text)} cannot be read: {error}") from None


def find_target(target: str, batch: bool = False, folders: tuple[Path, ...] = ()) -> Any:
    """The object itself that a target names: a function, a mechanism, an entry of the zoo."""
    kind, colon, rest = target.partition(":")
    is_script = not colon and target.endswith(".py")
    if not is_script and not (kind and rest):
        raise InputError(
            f"target {public_target(target)!r} is neither package.module:function nor "
            "file.py:function, zoo:NAME, command:PROGRAM, an http(s) address, recording:FILE, "
            "plugin:NAME or a .toml file"
        )
    if kind == "zoo":
        if batch:
            raise InputError("--batch is for functions; a zoo mechanism does not need it")
        return _open_zoo(rest)
    if kind == "command":
        from epsilometer.mechanisms import from_command

        return from_command(split_command(rest), batch=batch)
    if kind in ("http", "https"):
        from epsilometer.mechanisms.http import from_http

        return from_http(target, batch=batch)
    if kind == "recording":
        if batch:
            raise InputError(
                "--batch is for functions, programs and services; a recording is only read"
            )
        return _open_recording(rest)
    if kind == "plugin":
        from epsilometer.mechanisms.libraries import find_brought

        function = find_brought(rest)
    else:
        # A script without a name after it stands for the one function that it defines.
        function = _import(kind, rest, folders)
    if not batch:
        return function
    from epsilometer.mechanisms import from_batch

    return from_batch(function)


def _open_recording(text: str) -> Any:
    from epsilometer.mechanisms.recordings import from_recording

    left, comma, right = text.partition(",")
    names_two_files = comma and not Path(text).exists()
    return from_recording(left, right) if names_two_files else from_recording(text)


def _open_zoo(text: str) -> Any:
    from epsilometer import zoo

    name, _, query = text.partition("?")
    try:
        given = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise InputError(
            f"zoo:{text} cannot be read: write parameters like zoo:NAME?epsilon=.7&size=5"
        ) from None
    parameters = dict(given)
    if len(parameters) < len(given):
        raise InputError(f"zoo:{text} gives a parameter twice")
    return zoo.find(name, **parameters)


def _import(module_name: str, path: str, folders: tuple[Path, ...]) -> Any:
    """An object of a module, or of a Python file.

    Args:
        module_name: "package.module" or "folder/file.py".
        path: the name of the object, with dots for one inside another; empty for the only function.
        folders: searched after the current folder.
    """
    searched = (Path.cwd(), *folders)
    file: Path | None = None
    if module_name.endswith(".py"):
        candidates = [folder / module_name for folder in searched]
        file = next((candidate for candidate in candidates if candidate.is_file()), None)
        if file is None:
            raise InputError(f"there is no file {module_name!r}")
        module_name = file.stem
        searched = (file.parent.resolve(), *searched)
    elif "/" in module_name:
        raise InputError(
            f"{module_name!r} is neither a module nor a Python file: write it with its ending .py"
        )
    for folder in reversed(searched):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name) if file is None else _module_of(file)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"cannot import {module_name!r}: {type(error).__name__}: {error}"
        ) from error
    path = path or _only_function(module)
    found: Any = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            known = [public_name for public_name in dir(found) if not public_name.startswith("_")]
            hint = did_you_mean(name, known)
            raise InputError(f"module {module_name!r} has no {path!r}{hint}") from None
    return found


def _module_of(file: Path) -> ModuleType:
    """The module of a file, by its own name if that means this file: then workers import it too."""
    if file.stem.isidentifier():
        known = find_spec(file.stem)
        origin = None if known is None else known.origin
        if origin is not None and Path(origin).resolve() == file.resolve():
            return importlib.import_module(file.stem)
    identifier = "".join(letter if letter.isalnum() else "_" for letter in file.stem)
    name = f"_epsilometer_target_{identifier}"
    spec = spec_from_file_location(name, file)
    assert spec is not None  # every .py file has one, and a loader
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    import cloudpickle

    # Workers could not import it.
    cloudpickle.register_pickle_by_value(module)
    return module


def _only_function(module: ModuleType) -> str:
    """The name of the only function or class that a module defines itself."""
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == module.__name__
    ]
    if len(defined) == 1:
        return defined[0]
    file = Path(str(module.__file__)).name
    if not defined:
        raise InputError(
            f"{file} defines no function; to run it as a program: "
            f"'command:python {file} {{dataset}}'"
        )
    raise InputError(f"{file} defines {', '.join(defined)}; say which: {file}:{defined[0]}")
