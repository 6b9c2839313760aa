"""Targets: texts that name a function, a program, a service, a recording or a zoo entry."""

import importlib
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from epsilometer.errors import InputError, did_you_mean, meant_or_known, short_repr
from epsilometer.redaction import public, public_address, public_arguments

if TYPE_CHECKING:
    from epsilometer.claims import Claim
    from epsilometer.mechanisms.features import Features
    from epsilometer.mechanisms.functions import AuditTarget


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a target is called, where it can be called in several ways; None leaves it open.

    Attributes:
        params: further parameters of a function, by name.
        dataset_format: how a program gets its dataset: json, jsonl, csv, npy or parquet.
        http: headers, method, timeout, body and answer of a service, as `from_http` takes them.
    """

    params: Mapping[str, Any] | None = None
    dataset_format: str | None = None
    http: Mapping[str, Any] | None = None

    def check(self, kind: str, *allowed: str) -> None:
        """Raises if an option is given that this kind of target does not have.

        Args:
            kind: in words.
            allowed: the options that it has.
        """
        for option in fields(self):
            if getattr(self, option.name) and option.name not in allowed:
                flag, meaning = _OPTION_MEANINGS[option.name]
                raise InputError(f"{flag} is for {meaning}, and the target is {kind}")


_NO_OPTIONS = CallOptions()
# How each option is given on the command line, and what it is for.
_OPTION_MEANINGS = {
    "params": ("--param", "functions (a zoo mechanism takes zoo:NAME?epsilon=.7)"),
    "dataset_format": ("--dataset-format", "programs (command:PROGRAM with {file} or {stdin})"),
    "http": ("--http-…", "services (an http or https address)"),
}
# What the table [http] of a TOML file may hold, with its types.
HTTP_KEYS: dict[str, type | tuple[type, ...]] = {
    "headers": dict,
    "method": str,
    "timeout": (int, float),
    "body": str,
    "answer": str,
}


def open_target(
    target: str,
    batch: bool = False,
    folders: tuple[Path, ...] = (),
    *,
    features: str | None = None,
    params: Mapping[str, Any] | None = None,
    dataset_format: str | None = None,
    http: Mapping[str, Any] | None = None,
) -> "AuditTarget":
    """The mechanism that a target names, with the claim and the inputs that it brings.

    Args:
        target: "zoo:NAME", "zoo:NAME?key=value&…", "package.module:function",
            "command:PROGRAM ARGUMENTS" with {dataset}, {file} or {stdin} among them, an http(s)
            address,
            "recording:FILE" or "recording:LEFT,RIGHT", or "plugin:NAME" for what an installed
            package brings.
        batch: whether the function, program or service draws many outputs per call.
        folders: searched for modules after the current folder.
        features: "package.module:function" of a function of one output, or None.
        params: further parameters of a function, by name.
        dataset_format: how a program gets its dataset.
        http: headers, method, timeout, body and answer of a service.
    """
    from epsilometer.mechanisms import as_audit_target

    options = CallOptions(params=params, dataset_format=dataset_format, http=http)
    audit_target = as_audit_target(find_target(target, batch, folders, options))
    if features is None:
        return audit_target
    mechanism = audit_target.mechanism.with_features(open_features(features, folders))
    return replace(audit_target, mechanism=mechanism)


def open_features(place: str, folders: tuple[Path, ...] = ()) -> "Features":
    """The features that "package.module:function" or "file.py:function" names."""
    from epsilometer.mechanisms.features import Features

    return Features.of(_import_place(place, "--features", folders), place)


def open_accountant(place: str, folders: tuple[Path, ...] = ()) -> "Claim":
    """The claim of the accountant that the function "package.module:function" returns."""
    from epsilometer.claims import TradeOffDP

    make = _import_place(place, "--accountant", folders)
    expected = "it must be a function without arguments that returns an accountant"
    if not callable(make):
        raise InputError(f"--accountant {place!r} is {short_repr(make)}: {expected}")
    try:
        accountant = make()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"--accountant {place!r} raised {type(error).__name__}: {error}; {expected}"
        ) from error
    try:
        return TradeOffDP.from_accountant(accountant)
    except InputError as error:
        raise InputError(f"--accountant {place!r}: {error}") from error


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


# A host with a port, to which the kind of address is missing.
_ADDRESS = re.compile(r"[\w.-]+:\d+(/.*)?")
# Ends of the names of files that hold recorded outputs, or inputs.
_DATA_FILES = (".csv", ".json", ".jsonl", ".npy", ".npz", ".parquet")
# What a program is written with.
_PLACES = ("{dataset}", "{file}", "{stdin}")


def _meant_target(target: str, *, is_address: bool) -> str:
    """Returns the end of a message about a target of no kind: what may have been meant."""
    if is_address:
        return f"; did you mean 'http://{public_target(target)}'?"
    if ":" not in target and any(place in target for place in _PLACES):
        return f"; did you mean '{public_target(f'command:{target}')}'?"
    if target.rstrip(":") == "command":
        return "; the program is missing: 'command:./program {dataset}'"
    if ":" not in target and Path(target).suffix in _DATA_FILES:
        shown = public_target(target)
        return (
            f"; recorded outputs are 'recording:{shown}', and two files of them are for "
            "epsilometer compare; inputs are --left @FILE and --right @FILE, or --around FILE"
        )
    module, dot, function = target.rpartition(".")
    if dot and all(name.isidentifier() for name in target.split(".")):
        return f"; did you mean '{module}:{function}'?"
    return ""


def find_target(  # noqa: C901  # one kind of target after the other
    target: str,
    batch: bool = False,
    folders: tuple[Path, ...] = (),
    options: CallOptions = _NO_OPTIONS,
) -> Any:
    """The object itself that a target names: a function, a mechanism, an entry of the zoo."""
    kind, colon, rest = target.partition(":")
    is_script = not colon and target.endswith(".py")
    is_address = _ADDRESS.fullmatch(target) is not None
    if target.endswith(".toml"):
        raise InputError(
            f"{target} holds settings, which epsilometer audit, measure, profile and run take; "
            "name the mechanism itself"
        )
    if is_address or (not is_script and not (kind and rest)):
        raise InputError(
            f"target {public_target(target)!r} is neither package.module:function nor "
            "file.py:function, zoo:NAME, command:PROGRAM, an http(s) address, recording:FILE, "
            f"plugin:NAME or a .toml file{_meant_target(target, is_address=is_address)}"
        )
    if kind == "zoo":
        if batch:
            raise InputError("--batch is for functions; a zoo mechanism does not need it")
        options.check("a zoo mechanism")
        return _open_zoo(rest)
    if kind == "command":
        from epsilometer.mechanisms import from_command

        options.check("a program", "dataset_format")
        argv = split_command(rest)
        return from_command(argv, batch=batch, dataset_format=options.dataset_format)
    if kind in ("http", "https"):
        from epsilometer.mechanisms.http import from_http

        options.check("a service", "http")
        return from_http(target, batch=batch, **check_http_table(options.http or {}))
    if kind == "recording":
        if batch:
            raise InputError(
                "--batch is for functions, programs and services; a recording is only read"
            )
        options.check("a recording")
        return _open_recording(rest)
    if kind == "plugin":
        from epsilometer.mechanisms.libraries import find_installed_mechanism

        function = find_installed_mechanism(rest)
    else:
        # A script without a name after it stands for the one function that it defines.
        function = _import(kind, rest, folders)
    options.check("a function", "params")
    if options.params:
        return _with_params(function, options.params, batch=batch)
    if not batch:
        return function
    from epsilometer.mechanisms import from_batch

    return from_batch(function)


def _with_params(function: Any, params: Mapping[str, Any], *, batch: bool) -> Any:
    """A mechanism of a function with some of its parameters fixed."""
    from epsilometer.mechanisms.callables import BatchMechanism, SingleMechanism

    if not callable(function) or hasattr(function, "sample") or hasattr(function, "mechanism"):
        raise InputError(
            "--param is for functions, and the target is an object that brings its own parameters"
        )
    if batch:
        return BatchMechanism(function, params=params)
    return SingleMechanism(function, params=params)


def check_http_table(table: Mapping[str, Any], where: str = "http") -> dict[str, Any]:
    """The keywords of `from_http` that a table gives; raises for unknown keys and wrong types.

    Args:
        table: of a TOML file, or of the options that begin with --http-.
        where: it stands, for messages.
    """
    for key, value in table.items():
        if key not in HTTP_KEYS:
            raise InputError(f"{where}: unknown key {key!r}{meant_or_known(key, HTTP_KEYS)}")
        is_right = isinstance(value, HTTP_KEYS[key]) and not isinstance(value, bool)
        if not is_right:
            word = {"headers": "table of texts", "timeout": "number of seconds"}.get(key, "text")
            shown = "…" if key == "headers" else short_repr(value)
            raise InputError(f"{where}: {key} = {shown} must be a {word}")
    return dict(table)


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


def _import_place(place: str, option: str, folders: tuple[Path, ...]) -> Any:
    """What "package.module:function" or "file.py:function" names; the option is for messages."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise InputError(f"{option} {place!r} must be package.module:function or file.py:function")
    return _import(module, name, folders)


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
        remedy = ""
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if file is None and module_name.partition(".")[0] == missing:
            remedy = "; the current folder is searched, or name the file: path/to/file.py:function"
        raise InputError(
            f"cannot import {module_name!r}: {type(error).__name__}: {error}{remedy}"
        ) from error
    path = path or _only_function(module)
    target: Any = module
    for name in path.split("."):
        try:
            target = getattr(target, name)
        except AttributeError:
            known = [public_name for public_name in dir(target) if not public_name.startswith("_")]
            hint = did_you_mean(name, known)
            raise InputError(f"module {module_name!r} has no {path!r}{hint}") from None
    return target


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
