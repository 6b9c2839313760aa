"""From flags and files to the arguments of `epsilometer.audit`."""

import importlib
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from epsilometer.cli.files import read_dataset, read_options, read_value, writable
from epsilometer.cli.options import count, files_of
from epsilometer.cli.settings_file import CLAIM_KEYS, INPUT_KEYS, RUN_KEYS, SEARCH_KEYS, read_settings
from epsilometer.errors import InputError, did_you_mean, public, public_address, public_arguments

if TYPE_CHECKING:
    from epsilometer.claims import Claim
    from epsilometer.mechanisms.features import Features


def open_target(target: str, batch: bool = False, folders: tuple[Path, ...] = (), features: str | None = None) -> Any:
    """The mechanism, function or zoo entry that a target names.

    Args:
        target: "zoo:NAME", "zoo:NAME?key=value&…", "package.module:function", "command:PROGRAM ARGUMENTS" with
            {dataset} among them, an http(s) address, "recording:FILE" or "recording:LEFT,RIGHT", or "plugin:NAME" for
            what an installed package brings.
        batch: whether the function, program or service draws many outputs per call.
        folders: searched for modules after the current folder.
        features: "package.module:function" of a function of one output, or None.
    """
    found = _open(target, batch, folders)
    if features is None:
        return found
    from epsilometer.mechanisms import as_subject

    subject = as_subject(found)
    return replace(subject, mechanism=subject.mechanism.with_features(open_features(features, folders)))


def open_features(place: str, folders: tuple[Path, ...] = ()) -> "Features":
    """The features that "package.module:function" or "file.py:function" names."""
    from epsilometer.mechanisms.features import Features

    module, _, name = place.partition(":")
    if not (module and name):
        raise InputError(f"--features {place!r} must be package.module:function or file.py:function")
    return Features.of(_import(module, name, folders), place)


def _open(target: str, batch: bool, folders: tuple[Path, ...]) -> Any:
    kind, colon, rest = target.partition(":")
    if not colon and target.endswith(".py"):  # a script: the one function that it defines
        colon, rest = ":", ""
    elif not colon or not kind or not rest:
        what = f"target {public_target(target)!r} is neither package.module:function nor file.py:function"
        others = "zoo:NAME, command:PROGRAM, an http(s) address, recording:FILE, plugin:NAME or a .toml file"
        raise InputError(f"{what}, {others}")
    if kind == "zoo":
        if batch:
            raise InputError("--batch is for functions; a zoo mechanism does not need it")
        return _open_zoo(rest)
    from epsilometer.mechanisms import from_batch, from_command
    from epsilometer.mechanisms.recordings import from_recording

    if kind == "command":
        return from_command(split_command(rest), batch=batch)
    if kind in ("http", "https"):
        from epsilometer.mechanisms.http import from_http

        return from_http(target, batch=batch)
    if kind == "recording":
        if batch:
            raise InputError("--batch is for functions, programs and services; a recording is only read")
        left, comma, right = rest.partition(",")
        return from_recording(left, right) if comma and not Path(rest).exists() else from_recording(rest)
    if kind == "plugin":
        from epsilometer.mechanisms.libraries import find_brought

        found = find_brought(rest)
    else:
        found = _import(kind, rest, folders)
    return from_batch(found) if batch else found


def public_target(target: object) -> str:
    """A target as it may be written and printed: without the secrets of an address or of a program's arguments."""
    kind, _, rest = str(target).partition(":")
    if kind.lower() in ("http", "https"):
        return public_address(str(target))
    if kind != "command":
        return public(str(target))
    try:
        words = shlex.split(rest)
    except ValueError:
        return public(str(target))
    hidden = public_arguments(words)
    return str(target) if hidden == words else f"command:{shlex.join(hidden)}"


def split_command(text: str) -> list[str]:
    """The words of a command: quoted as in a shell, but without a shell or its substitutions."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(f"{public('command:' + text)} cannot be read: {error}") from None


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
    searched = (Path.cwd(), *folders)
    if module_name.endswith(".py"):
        file = next((each / module_name for each in searched if (each / module_name).is_file()), None)
        if file is None:
            raise InputError(f"there is no file {module_name!r}")
        module_name, searched = file.stem, (file.parent.resolve(), *searched)
    elif "/" in module_name:
        raise InputError(f"{module_name!r} is neither a module nor a Python file: write it with its ending .py")
    else:
        file = None
    for folder in reversed(searched):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module_name) if file is None else _module_of(file)
    except (Exception, SystemExit) as error:
        raise InputError(f"cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    path = path or _only_function(found)
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            names = [each for each in dir(found) if not each.startswith("_")]
            raise InputError(f"module {module_name!r} has no {path!r}{did_you_mean(name, names)}") from None
    return found


def _module_of(file: Path) -> Any:
    """The module of a file, by its own name if that means this file: then workers import it, too."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    if file.stem.isidentifier():
        known = find_spec(file.stem)
        if known is not None and known.origin is not None and Path(known.origin).resolve() == file.resolve():
            return importlib.import_module(file.stem)
    name = f"_epsilometer_target_{''.join(each if each.isalnum() else '_' for each in file.stem)}"
    spec = spec_from_file_location(name, file)
    assert spec is not None  # every .py file has one, and a loader
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # workers could not import it
    return module


def _only_function(module: Any) -> str:
    named: dict[str, Any] = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    home = module.__name__
    own = [name for name, each in named.items() if callable(each) and getattr(each, "__module__", None) == home]
    if len(own) == 1:
        return own[0]
    file = Path(module.__file__).name
    if not own:
        raise InputError(f"{file} defines no function; to run it as a program: 'command:python {file} {{dataset}}'")
    raise InputError(f"{file} defines {', '.join(own)}; say which: {file}:{own[0]}")


NAMES = ("pure", "approx", "renyi", "zcdp", "gaussian")


def parameters_of(flags: Mapping[str, Any]) -> dict[str, float]:
    """The parameters of a claim that were given."""
    return {name: flags[name] for name in CLAIM_KEYS if flags.get(name) is not None}


def find_notion(name: str) -> "type[Claim]":
    """The notion of that name."""
    from epsilometer.claims import NOTIONS

    if name not in NAMES:
        raise InputError(f"--notion {name!r} is unknown; known are {', '.join(NAMES)}{did_you_mean(name, NAMES)}")
    return NOTIONS[name]


# The settings of a search, and what a finder calls them.
_SEARCH_NAMES = {**{key: key for key in SEARCH_KEYS}, "trial_samples": "samples"}


def searched(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with those of a search moved into the table of its finder; what stands outside of it wins."""
    wishes = {_SEARCH_NAMES[key]: given[key] for key in SEARCH_KEYS if key in given}
    if not wishes and "finder" not in given:
        return dict(given)
    if "search_on" in wishes:
        wishes["stop_at_refutation"] = not wishes.pop("search_on")
    table = {**given.get("finder", {}), **wishes}
    if "name" not in table:
        if "domain" not in table and "around" not in table:
            flag = next((key for key in SEARCH_KEYS if key in given), "finder").replace("_", "-")
            raise InputError(f"--{flag} is for a search; say what to search with --domain or --around")
        table["name"] = "search"
    return {**{key: value for key, value in given.items() if key not in SEARCH_KEYS}, "finder": table}


def open_finder(table: Mapping[str, Any], seed: int | None) -> Any:
    """The finder that a table describes; its seed is that of the audit unless it has its own."""
    from epsilometer.inputs.finders.plain import FINDERS, read_finder

    is_seeded = seed is not None and table.get("name") in FINDERS and table.get("name") != "patterns"
    table = {"seed": seed, **table} if is_seeded else dict(table)
    if "around" not in table:
        return read_finder(table)
    if "domain" in table or table.pop("name") != "search":
        raise InputError("--around searches the neighbours of its data, so it goes with neither --domain nor --finder")
    from epsilometer import around

    try:
        return around(table.pop("around"), **table)
    except TypeError as error:  # a setting that it does not know
        raise InputError(f"finder: {str(error).partition('() ')[2] or error}") from error


# No size of an array may reach this.
_TOO_MANY = 1 << 53


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run and where to put the answer.

    Attributes:
        mechanism: what the target names.
        inputs: pairs of inputs, or a finder; None for the worst pair of a zoo entry.
        parameters: the flags of a claim that were given.
        keywords: settings of the run that were given.
        record: what is added to the settings of the result.
        files: for the result, by option: json, html, junit, markdown.
    """

    mechanism: Any
    inputs: Any
    parameters: dict[str, float]
    keywords: dict[str, Any]
    record: dict[str, Any]
    files: dict[str, str | None]

    def claim(self) -> "Claim | None":
        """What is claimed; None leaves it to a mechanism that brings its own claim."""
        from epsilometer.claims import from_parameters
        from epsilometer.mechanisms import as_subject

        brings_claim = not self.parameters and as_subject(self.mechanism).makes_a_promise
        return None if brings_claim else from_parameters(**self.parameters)


def make_plan(target: str, flags: Mapping[str, Any]) -> Plan:
    """Puts flags together with the TOML file that `target` may be; flags win.

    Args:
        target: a mechanism, or a file that ends in .toml.
        flags: the options by their long names; None is "not given".
    """
    given = {name: value for name, value in flags.items() if value is not None}
    for side in ("left", "right"):
        if side in given:
            given[side] = read_value(given[side], f"--{side}")
    if "option" in given:
        given["options"] = read_options(given.pop("option"))
    if "around" in given:
        given["around"] = read_dataset(Path(given["around"].removeprefix("@")), "--around")
    name = given.pop("finder", None)
    folders: tuple[Path, ...] = ()
    if target.endswith(".toml"):
        path = Path(target)
        given = _merge(read_settings(path), given)
        target, folders = given["mechanism"], (path.parent.resolve(),)
    if name is not None:
        given["finder"] = {**given.get("finder", {}), "name": name}
    return plan_from(target, given, folders)


def plan_from(target: str, given: Mapping[str, Any], folders: tuple[Path, ...] = ()) -> Plan:
    """The plan from settings that were already read.

    Args:
        target: a mechanism.
        given: settings by their long names; inputs are values, not text.
        folders: searched for modules after the current folder.
    """
    given = searched(given)
    files = files_of(given)
    if isinstance(given.get("samples"), str):  # of a file
        given = {**given, "samples": count(given["samples"])}
    keywords = {name: given[name] for name in RUN_KEYS if name in given}
    if "checkpoint" in keywords:
        keywords["checkpoint"] = writable(keywords["checkpoint"], "--checkpoint")
    for option in ("samples", "jobs", "distance"):
        if isinstance(value := given.get(option), int) and abs(value) >= _TOO_MANY:
            raise InputError(f"{option} = {value} is more than anybody can wait for")
    batch = bool(given.get("batch"))
    mechanism = open_target(target, batch, folders, given.get("features"))
    return Plan(mechanism, _inputs(given, mechanism), parameters_of(given), keywords, record_of(target, batch), files)


def record_of(target: str, batch: bool) -> dict[str, Any]:
    """What the settings of a result say about its target."""
    return {"target": public_target(target), **({"batch": True} if batch else {})}


def _merge(settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A claim, inputs or a method on the command line replace those of the file; options and finders are changed."""
    inputs = INPUT_KEYS if "left" in given or "right" in given else [key for key in INPUT_KEYS if key != "finder"]
    for names in (CLAIM_KEYS, inputs, ("method", "options") if "method" in given else ()):
        if any(name in given for name in names):
            settings = {name: value for name, value in settings.items() if name not in names}
    if "options" in given:
        given = {**given, "options": {**settings.get("options", {}), **given["options"]}}
    return {**settings, **given}


def _inputs(given: Mapping[str, Any], mechanism: Any) -> Any:
    sides = [side for side in ("left", "right") if side in given]
    if "finder" in given:
        if sides or "pairs" in given:
            raise InputError("give either a finder or the inputs themselves, not both")
        return open_finder(given["finder"], given.get("seed"))
    if "pairs" in given:
        if sides:
            raise InputError("give either left and right or pairs, not both")
        return given["pairs"]
    if len(sides) == 2:
        from epsilometer.inputs import Pair

        return Pair(given["left"], given["right"])
    if sides:
        raise InputError(f"--{sides[0]} needs {'--right' if sides == ['left'] else '--left'} as well")
    from epsilometer.mechanisms import as_subject

    if as_subject(mechanism).worst_pair is None:
        needed = "the two neighbouring inputs, as JSON or @file; or --domain, or --around"
        raise InputError(f"--left and --right are needed: {needed}")
    return None
