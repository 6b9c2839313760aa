"""Outputs and tallies as data that a checkpoint can hold: plain bytes and JSON, nothing pickled.

The data are values, never the names of types: the types of a tally's parts are taken from another
tally of the same proposal.
"""

import base64
import io
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from epsilometer.arrays import Array
from epsilometer.errors import InputError
from epsilometer.outputs import Block, Labels, Numbers, Outputs
from epsilometer.outputs.columns import Column
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data

# The name, in an .npz file of outputs, of the JSON text that describes the other arrays.
_TABLE = "table"
# Kinds of NumPy arrays that are stored: truth values, whole numbers and floats.
_PLAIN_KINDS = "biuf"


def outputs_to_bytes(outputs: Outputs) -> bytes:
    """Returns outputs as the bytes of an .npz file: arrays, and a table that describes them."""
    arrays: dict[str, Array] = {}
    blocks = []
    for number, block in enumerate(outputs.blocks):
        if block.rows is not None:
            arrays[f"{number}.rows"] = block.rows
        labels: list[list[Any] | None] = []
        for place, column in enumerate(block.columns):
            if isinstance(column, Labels):
                arrays[f"{number}.{place}"] = column.codes
                labels.append([label_to_data(label) for label in column.labels])
            else:
                arrays[f"{number}.{place}"] = column.values
                if column.widths is not None:
                    arrays[f"{number}.{place}.widths"] = column.widths
                labels.append(None)
        blocks.append({"shape": block.shape, "size": block.size, "labels": labels})
    table = json.dumps({"size": outputs.size, "blocks": blocks})
    arrays[_TABLE] = np.frombuffer(table.encode(), dtype=np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub mixes up its keywords
    return file.getvalue()


def outputs_from_bytes(stored: bytes) -> Outputs:
    """The inverse of `outputs_to_bytes`."""
    with np.load(io.BytesIO(stored), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    table = json.loads(arrays.pop(_TABLE).tobytes())
    blocks = []
    for number, block in enumerate(table["blocks"]):
        columns: list[Column] = []
        for place, labels in enumerate(block["labels"]):
            values = arrays[f"{number}.{place}"]
            if labels is None:
                widths = arrays.get(f"{number}.{place}.widths")
                columns.append(Numbers(values, widths))
            else:
                columns.append(Labels(values, tuple(label_from_data(label) for label in labels)))
        blocks.append(
            Block(
                shape=str(block["shape"]),
                rows=arrays.get(f"{number}.rows"),
                columns=tuple(columns),
                size=int(block["size"]),
            )
        )
    return Outputs(tuple(blocks), int(table["size"]))


def tally_to_data(tally: Any) -> Any:
    """Returns a tally as data that JSON can hold; `tally_from_data` is the inverse.

    A tally may consist of plain values, arrays of numbers, outputs, and lists, dictionaries and
    dataclasses of these.

    Raises:
        InputError: the tally has a part of another type.
    """
    if isinstance(tally, np.generic):
        tally = tally.item()
    if tally is None or isinstance(tally, bool | int | float | str):
        return tally
    if isinstance(tally, Outputs):
        return base64.b64encode(outputs_to_bytes(tally)).decode()
    if isinstance(tally, np.ndarray) and tally.dtype.kind in _PLAIN_KINDS:
        values = base64.b64encode(tally.tobytes()).decode()
        return {"dtype": tally.dtype.str, "shape": list(tally.shape), "values": values}
    if isinstance(tally, list | tuple):
        return [tally_to_data(entry) for entry in tally]
    if isinstance(tally, dict) and all(isinstance(name, str) for name in tally):
        return {name: tally_to_data(entry) for name, entry in tally.items()}
    if is_dataclass(tally) and not isinstance(tally, type):
        return {
            attribute.name: tally_to_data(getattr(tally, attribute.name))
            for attribute in fields(tally)
        }
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
        raise InputError(
            f"a stored tally cannot be read as {type(example).__name__}: {error!r}"
        ) from error


def _rebuild(data: Any, example: Any) -> Any:
    """Returns the data as an object of the example's type; errors are those of plain Python."""
    if example is None or isinstance(example, bool | int | float | str | np.generic):
        # A whole number may stand where the example has a fraction, and vice versa.
        if data is not None and not isinstance(data, bool | int | float | str):
            raise ValueError(f"{data!r:.60} is not a plain value")
        return type(example)(data) if isinstance(example, np.generic) else data
    if isinstance(example, Outputs):
        return outputs_from_bytes(base64.b64decode(data))
    if isinstance(example, np.ndarray):
        kind = np.dtype(data["dtype"])
        if kind.kind not in _PLAIN_KINDS:
            raise ValueError(f"an array of {kind}")
        read_only = np.frombuffer(base64.b64decode(data["values"]), dtype=kind)
        return read_only.reshape(data["shape"]).copy()
    if isinstance(example, list | tuple):
        if len(data) and not example:
            raise ValueError("entries of a list that was empty in the example")
        # A list may have grown since; its new entries are like the example's last one.
        last = len(example) - 1
        rebuilt = [_rebuild(entry, example[min(number, last)]) for number, entry in enumerate(data)]
        is_named_tuple = hasattr(example, "_fields")
        return type(example)(*rebuilt) if is_named_tuple else type(example)(rebuilt)
    if isinstance(example, dict):
        return {name: _rebuild(data[name], entry) for name, entry in example.items()}
    attributes = {
        attribute.name: _rebuild(data[attribute.name], getattr(example, attribute.name))
        for attribute in fields(example)
    }
    return type(example)(**attributes)
