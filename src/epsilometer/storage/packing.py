"""Draws and tallies as plain arrays and JSON, for the files of interrupted audits. Nothing is pickled.

A file holds values, never the names of types: what a tally is made of is known from another tally of the same proposal.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.errors import InputError
from epsilometer.outputs import Block, Labels, Numbers, Outputs
from epsilometer.outputs.columns import Column
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data

_TABLE = "table"
_PLAIN_KINDS = "biuf"


def pack_outputs(name: str, outputs: Outputs, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Puts draws into the arrays, under names that begin with `name`, and returns what JSON must hold."""
    blocks = []
    for number, block in enumerate(outputs.blocks):
        place = f"{name}.{number}"
        if block.rows is not None:
            arrays[f"{place}.rows"] = block.rows
        labels = []
        for column, values in enumerate(block.columns):
            arrays[f"{place}.{column}"] = values.codes if isinstance(values, Labels) else values.values
            if isinstance(values, Numbers) and values.widths is not None:
                arrays[f"{place}.{column}.widths"] = values.widths
            labels.append(list(map(label_to_data, values.labels)) if isinstance(values, Labels) else None)
        blocks.append({"shape": block.shape, "size": block.size, "labels": labels})
    return {"size": outputs.size, "blocks": blocks}


def unpack_outputs(name: str, table: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Outputs:
    """The inverse of `pack_outputs`."""
    blocks = []
    for number, stored in enumerate(table["blocks"]):
        place = f"{name}.{number}"
        columns: list[Column] = []
        for column, labels in enumerate(stored["labels"]):
            values = arrays[f"{place}.{column}"]
            widths = arrays.get(f"{place}.{column}.widths")
            columns.append(
                Numbers(values, widths) if labels is None else Labels(values, tuple(map(label_from_data, labels)))
            )
        rows = arrays.get(f"{place}.rows")
        blocks.append(Block(str(stored["shape"]), rows, tuple(columns), int(stored["size"])))
    return Outputs(tuple(blocks), int(table["size"]))


def outputs_to_bytes(outputs: Outputs) -> bytes:
    """Draws as the bytes of an .npz file."""
    arrays: dict[str, NDArray[Any]] = {}
    table = pack_outputs("", outputs, arrays)
    arrays[_TABLE] = np.frombuffer(json.dumps(table).encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mixes up its keywords
    return file.getvalue()


def outputs_from_bytes(stored: bytes) -> Outputs:
    """The inverse of `outputs_to_bytes`."""
    with np.load(io.BytesIO(stored), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return unpack_outputs("", json.loads(arrays.pop(_TABLE).tobytes()), arrays)


def tally_to_data(tally: Any) -> Any:
    """A tally as JSON can hold it: numbers, arrays of numbers, draws, and dataclasses and containers of these."""
    if isinstance(tally, np.generic):
        tally = tally.item()
    if tally is None or isinstance(tally, bool | int | float | str):
        return tally
    if isinstance(tally, Outputs):
        return base64.b64encode(outputs_to_bytes(tally)).decode()
    if isinstance(tally, np.ndarray) and tally.dtype.kind in _PLAIN_KINDS:
        return {
            "dtype": tally.dtype.str,
            "shape": list(tally.shape),
            "values": base64.b64encode(tally.tobytes()).decode(),
        }
    if isinstance(tally, list | tuple):
        return [tally_to_data(each) for each in tally]
    if isinstance(tally, dict) and all(isinstance(name, str) for name in tally):
        return {name: tally_to_data(each) for name, each in tally.items()}
    if is_dataclass(tally) and not isinstance(tally, type):
        return {each.name: tally_to_data(getattr(tally, each.name)) for each in fields(tally)}
    raise InputError(
        f"a tally of type {type(tally).__name__} cannot be kept in a checkpoint: "
        "make it of numbers, arrays and dataclasses of these"
    )


def tally_from_data(data: Any, example: Any) -> Any:
    """The inverse of `tally_to_data`.

    Args:
        data: what `tally_to_data` returned.
        example: another tally of the same proposal and side, with the types that belong here.

    Raises:
        InputError: if the data is not of that kind.
    """
    try:
        return _rebuild(data, example)
    except (KeyError, TypeError, ValueError, AttributeError, EOFError) as error:
        raise InputError(f"a stored tally cannot be read as {type(example).__name__}: {error!r}") from error


def _rebuild(data: Any, example: Any) -> Any:
    if example is None or isinstance(example, bool | int | float | str | np.generic):
        return _rebuild_plain(data, example)
    if isinstance(example, Outputs):
        return outputs_from_bytes(base64.b64decode(data))
    if isinstance(example, np.ndarray):
        return _rebuild_array(data)
    if isinstance(example, list | tuple):
        return _rebuild_sequence(data, example)
    if isinstance(example, dict):
        return {name: _rebuild(data[name], each) for name, each in example.items()}
    values = {each.name: _rebuild(data[each.name], getattr(example, each.name)) for each in fields(example)}
    return type(example)(**values)


def _rebuild_plain(data: Any, example: Any) -> Any:
    # A whole number may stand where the example has a fraction, and vice versa.
    if data is not None and not isinstance(data, bool | int | float | str):
        raise ValueError(f"{data!r:.60} is not a plain value")
    return type(example)(data) if isinstance(example, np.generic) else data


def _rebuild_array(data: Any) -> NDArray[Any]:
    kind = np.dtype(data["dtype"])
    if kind.kind not in _PLAIN_KINDS:
        raise ValueError(f"an array of {kind}")
    return np.frombuffer(base64.b64decode(data["values"]), dtype=kind).reshape(data["shape"]).copy()


def _rebuild_sequence(data: Any, example: list[Any] | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """A list may have grown since; its new entries are like the example's last one."""
    if len(data) and not example:
        raise ValueError("entries of a list that was empty in the example")
    likes = [example[min(number, len(example) - 1)] for number in range(len(data))]
    rebuilt = [_rebuild(each, like) for each, like in zip(data, likes, strict=True)]
    if hasattr(example, "_fields"):  # a named tuple
        return type(example)(*rebuilt)
    return type(example)(rebuilt)
