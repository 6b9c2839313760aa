"""A file from which an interrupted sequential audit goes on.

It is replaced as a whole after every batch, before the batch's result is shown: a batch is either counted in the file,
or it never happened. No evidence is spent twice, and nobody can look at a batch and take it back. Plain arrays and
JSON, nothing pickled.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.auditing.journals import identity_key, is_journal, journal_seed
from epsilometer.auditing.loops import AuditRun
from epsilometer.auditing.packing import pack_outputs, unpack_outputs
from epsilometer.auditing.sequential_state import State
from epsilometer.errors import InputError
from epsilometer.methods.sequential import SequentialMethod

_VERSION = 1
_SIDES = ("left", "right")


def key_of(run: AuditRun) -> dict[str, Any]:
    """What must be the same for an audit to go on: everything but the budget of samples and time."""
    method = run.settings.method
    assert isinstance(method, SequentialMethod)
    return {
        # The options hold the budget of time and the name of the file, so that they count one by one.
        **identity_key(run.sampler.mechanism, run.pairs, method.name),
        "claim": json.dumps(run.question.claim.to_dict(), sort_keys=True),
        "judged": run.question.judged,
        "confidence": run.settings.confidence,
        "seed": run.settings.seed,
        "pilot": method.options.pilot,
        "growth": method.options.growth,
    }


class Checkpoint:
    """The file of one audit."""

    def __init__(self, path: str | Path, key: dict[str, Any]) -> None:
        self.path = Path(path)
        self.key = key
        if not self.path.parent.is_dir():
            raise InputError(f"checkpoint={str(path)!r}: there is no folder {self.path.parent}")

    def write(self, state: State) -> None:
        """Replaces the file in one step, safely on the disk when this returns."""
        arrays: dict[str, NDArray[Any]] = {"log_wealth": state.log_wealth, "best": state.best}
        tables = [
            pack_outputs(side, outputs, arrays) for side, outputs in zip(_SIDES, (state.left, state.right), strict=True)
        ]
        meta = {"version": _VERSION, "key": self.key, "state": state.to_dict(), "tables": tables}
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
        beside = self.path.with_name(self.path.name + ".new")
        with beside.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mixes up its keywords
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)

    def read(self) -> State | None:
        """The state to go on from; None if there is no file yet."""
        if not self.path.exists():
            return None
        arrays, meta = _load(self.path)
        different = [name for name, value in self.key.items() if meta["key"].get(name) != value]
        if different:
            raise InputError(
                f"checkpoint={str(self.path)!r} belongs to another audit (its {', '.join(different)} differ); "
                "give another file, or the same mechanism, inputs and settings"
            )
        try:
            draws = [unpack_outputs(side, table, arrays) for side, table in zip(_SIDES, meta["tables"], strict=True)]
            return State.from_dict(meta["state"], arrays["log_wealth"], arrays["best"], draws)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"checkpoint={str(self.path)!r} cannot be read: {error!r}") from error


def stored_seed(path: str | Path) -> int | None:
    """The seed of the audit that a file belongs to, whether it stops early or not; None if there is no file yet."""
    if not Path(path).is_file() or not Path(path).stat().st_size:
        return None
    return journal_seed(path) if is_journal(path) else int(_load(Path(path))[1]["key"]["seed"])


def _load(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        meta = json.loads(arrays["meta"].tobytes())
        if meta["version"] != _VERSION or not isinstance(meta["key"], dict):
            raise ValueError(f"version {meta['version']!r}, this program reads {_VERSION}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"checkpoint={str(path)!r} is no checkpoint of a sequential audit: {error}") from error
    return arrays, meta
