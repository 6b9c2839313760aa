"""A suite: many audits in one TOML file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from epsilometer.cli.settings_file import FILE_KEYS, check_settings_table, read_toml
from epsilometer.environment import package_version
from epsilometer.errors import InputError
from epsilometer.result import Verdict
from epsilometer.suites.outcomes import Entry

# Of one audit, beside the keys of a single audit's file.
_SUITE_KEYS = ("name", "expect", "time_limit", "notion")


def read_suite(path: Path) -> tuple[str, list[Entry]]:
    """The title of a suite and its audits; a file with a single audit is a suite of one.

    What stands above the first `[[audit]]` is the default of all of them.
    """
    tables = read_toml(path)
    audits = tables.pop("audit", None)
    title = tables.pop("title", path.stem)
    if not isinstance(title, str):
        raise InputError(f"{path}: title = {title!r} must be a text")
    if audits is None:
        audits, tables = [tables], {}
    if not isinstance(audits, list) or not audits or not all(isinstance(each, dict) for each in audits):
        raise InputError(f"{path}: write every audit under a line [[audit]]")
    entries = [_entry(path, {**_defaults(tables, audit), **audit}) for audit in audits]
    names = [entry.name for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: two audits are called {twice!r}; give each a name of its own")
    return title, entries


def _defaults(tables: Mapping[str, Any], audit: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of the suite; an audit with a claim or inputs of its own replaces them as a whole."""
    from epsilometer.cli.settings_file import CLAIM_KEYS, INPUT_KEYS

    replaced: set[str] = set()
    for names in (CLAIM_KEYS, INPUT_KEYS):
        if any(name in audit for name in names):
            replaced.update(names)
    return {name: value for name, value in tables.items() if name not in replaced}


def _entry(path: Path, table: dict[str, Any]) -> Entry:
    name = str(table.get("name", table.get("mechanism", "?")))
    where = f"{path}, audit {name!r}"
    check_settings_table(table, where, _SUITE_KEYS)
    given = [key for key in FILE_KEYS if key in table]
    if given:
        raise InputError(f"{where}: {given[0]} is for single audits; a suite writes its files into --out")
    settings = {key: value for key, value in table.items() if key not in ("name", "expect", "time_limit")}
    return Entry(name, settings, _digest(path, settings), _expected(where, table), _time_limit(where, table))


def _expected(where: str, table: Mapping[str, Any]) -> Verdict | None:
    if "expect" not in table:
        return None
    try:
        return Verdict(table["expect"])
    except ValueError:
        allowed = ", ".join(repr(str(verdict)) for verdict in Verdict)
        raise InputError(f"{where}: expect = {table['expect']!r} must be one of {allowed}") from None


def _time_limit(where: str, table: Mapping[str, Any]) -> float | None:
    limit = table.get("time_limit")
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise InputError(f"{where}: time_limit = {limit!r} must be a number of seconds above 0")
    return float(limit)


def _digest(path: Path, settings: Mapping[str, Any]) -> str:
    """Changes when the settings do, or a file of inputs, or the module's own source, or this program."""
    text = json.dumps(settings, sort_keys=True, default=str)
    digest = hashlib.sha256(f"{package_version()}\n{text}\n".encode())
    for file in sorted({*_input_files(path, settings), *_source_files(path, settings)}):
        digest.update(file.read_bytes() if file.is_file() else b"missing")
    return digest.hexdigest()


def _input_files(path: Path, value: Any) -> Iterator[Path]:
    if isinstance(value, str) and value.startswith("@") and not value.startswith("@@"):
        yield path.parent / value[1:]
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _input_files(path, each)


def _source_files(path: Path, settings: Mapping[str, Any]) -> Iterator[Path]:
    """The file of a module in the current folder or beside the suite; nothing is imported for that."""
    module = str(settings.get("mechanism", "")).partition(":")[0].replace(".", "/")
    for folder in (Path.cwd(), path.parent):
        for file in (folder / f"{module}.py", folder / module / "__init__.py"):
            if module and file.is_file():
                yield file
