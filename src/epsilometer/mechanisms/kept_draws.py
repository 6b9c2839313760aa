"""Draws of an audit recorded in a file, exactly.

Each input's outputs are in the order in which they were drawn. A .jsonl file has a line about the
audit and then a line per chunk, with the outputs as columns; it can hold any kind of output. An
.npz file has an array per input (`left` and `right` for one pair); it can hold numbers and arrays
of them.
"""

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from epsilometer.errors import InputError, short_repr
from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import digest_of, pair_from_dict, pair_to_dict
from epsilometer.mechanisms.base import Keeper, Mechanism
from epsilometer.mechanisms.drawing_log import NO_INCIDENTS, Incidents
from epsilometer.mechanisms.features import Features
from epsilometer.mechanisms.used_draws import UsedDraws
from epsilometer.outputs import Block, Labels, Numbers, Outputs, read_outputs
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data
from epsilometer.outputs.shapes import whole_number
from epsilometer.storage import Undigestible
from epsilometer.storage.formats import reading
from epsilometer.storage.recorded_texts import json_values
from epsilometer.storage.text_lines import text_lines
from epsilometer.storage.writing import writing

# The key by which a file of ours is recognised; its value is the version of the format.
_FORMAT_KEY = "epsilometer_recording"
_FORMAT_VERSION = 1
# The name of the array in an .npz file that describes the others.
ABOUT = "about"
# The key of what happened while the draws were recorded, in its line or in the description.
_HAPPENED_KEY = "happened"
# How lines about inputs begin: those of other inputs are skipped without being parsed.
_LINE_STARTS = ('{"dataset": ', '{"input": ', '{"happened": ')
# The bits of the usual NaN, in hexadecimal digits.
_USUAL_NAN = struct.pack(">d", math.nan).hex()
# Floating-point types by their width in bytes, except for float64.
_FLOATS: dict[int, type] = {
    2: np.float16,
    4: np.float32,
    np.dtype(np.longdouble).itemsize: np.longdouble,
}
# Types of numbers by their names in a file.
_NUMBER_TYPES: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened while some outputs of one input were drawn.

    Attributes:
        number: of the input.
        start: the first of these outputs.
        stop: the one behind the last.
        incidents: the counts.
    """

    number: int
    start: int
    stop: int
    incidents: Incidents

    def to_list(self) -> list[int]:
        """Returns plain data; `happened_from` is the inverse."""
        return [self.number, self.start, self.stop, *astuple(self.incidents)]


def happened_from(data: Any) -> tuple[Happened, ...]:
    """Restores what `Happened.to_list` returned.

    Raises:
        TypeError, ValueError: the data make no sense.
    """
    happened = []
    for number, start, stop, *counts in data:
        if min(number, start, stop, *counts) < 0:
            raise ValueError("a count below 0")
        requests, retried, failed, redrawn = map(int, counts)
        incidents = Incidents(requests, retried, failed, redrawn)
        happened.append(Happened(int(number), int(start), int(stop), incidents))
    return tuple(happened)


@dataclass(slots=True)
class _Chronicle:
    """What happened while outputs were recorded, of all inputs.

    Attributes:
        n_outputs: by the number of the input.
        happened: of which outputs.
    """

    n_outputs: dict[int, int] = field(default_factory=dict)
    happened: list[Happened] = field(default_factory=list)

    def add(self, number: int, n: int, incidents: Incidents) -> None:
        """Adds n outputs of an input."""
        start = self.n_outputs.get(number, 0)
        self.n_outputs[number] = start + n
        counts = replace(incidents, redrawn=0)
        lost = Incidents(redrawn=incidents.redrawn)
        for one in (counts, lost):
            if one:
                self.happened.append(Happened(number, start, start + n, one))

    def lose(self, number: int, n: int) -> None:
        """Notes that n draws of an input were lost: any output so far may replace one of them."""
        if n:
            lost = Incidents(redrawn=n)
            self.happened.append(Happened(number, 0, self.n_outputs.get(number, 0), lost))


@dataclass(frozen=True, slots=True)
class About:
    """What a file of recorded draws says about itself.

    Attributes:
        name: of the mechanism.
        chunk_size: of the mechanism, which the health checks need.
        pairs: the audited pairs that were known before the first draw.
        further: the keys of inputs that a search came across.
        features: those that were kept beside the outputs.
        seeds: of the audits that drew them: the same seed gives the same draws again. None for a
            mechanism that cannot be seeded.
        facts: what weakens a reading of the draws, see `Mechanism.weakening_facts`.
        happened: what happened while they were drawn.
    """

    name: str
    chunk_size: int
    pairs: tuple[Pair, ...]
    further: tuple[str, ...] = ()
    features: Features | None = None
    seeds: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    happened: tuple["Happened", ...] = ()

    def inputs(self) -> list[str]:
        """Returns the key of each input, in the order in which the file numbers them."""
        keys: dict[str, None] = {}  # each once, in order
        for pair in self.pairs:
            for side in (0, 1):
                keys[digest_of(pair.side(side))] = None
        for key in self.further:
            keys[key] = None
        return list(keys)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        data: dict[str, Any] = {
            _FORMAT_KEY: _FORMAT_VERSION,
            "mechanism": self.name,
            "chunk_size": self.chunk_size,
            "pairs": [pair_to_dict(pair) for pair in self.pairs],
            "further": list(self.further),
        }
        if self.features:
            data["features"] = self.features.note()
        if self.seeds:
            data["seeds"] = list(self.seeds)
        if self.facts:
            data["facts"] = dict(self.facts)
        if self.happened:
            data[_HAPPENED_KEY] = [one.to_list() for one in self.happened]
        return data

    @classmethod
    def from_dict(cls, data: Any, path: Path) -> "About":
        """Restores what `to_dict` returned.

        Raises:
            InputError: if the data are of another version, or make no sense.
        """
        if not isinstance(data, dict) or data.get(_FORMAT_KEY) != _FORMAT_VERSION:
            raise InputError(f"{path} was kept in a format that this version does not read")
        try:
            features = None
            if "features" in data:
                features = Features(**data["features"], function=None)
            return cls(
                name=str(data["mechanism"]),
                chunk_size=int(data["chunk_size"]),
                pairs=tuple(pair_from_dict(pair) for pair in data["pairs"]),
                further=tuple(str(key) for key in data["further"]),
                features=features,
                seeds=tuple(int(seed) for seed in data.get("seeds", ())),
                facts=dict(data.get("facts", {})),
                happened=happened_from(data.get(_HAPPENED_KEY, ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not describe its draws: {error!r}") from error


class Keys:
    """Computes the keys of datasets that are asked for chunk after chunk.

    The last ones are remembered, so a large dataset is read only once.
    """

    def __init__(self) -> None:
        self._last: list[tuple[Any, str]] = []

    def __call__(self, dataset: Any) -> str:
        """Returns the key of a dataset."""
        for known_dataset, known_key in self._last:
            if known_dataset is dataset:
                return known_key
        key = digest_of(dataset)
        self._last = [(dataset, key), *self._last[:3]]  # a pair, and the one before it
        return key


class KeptMechanism(Mechanism):
    """Another mechanism, whose draws are recorded.

    The sampler passes them to `keeper`, in order, wherever they were drawn.
    """

    def __init__(self, mechanism: Mechanism, keeper: Keeper, used: UsedDraws) -> None:
        self.mechanism = mechanism
        self.keeper = keeper
        self.used = used
        self.name = mechanism.name
        self.is_seeded = mechanism.is_seeded
        self.waits = mechanism.waits
        self.chunk_size = mechanism.chunk_size
        self.features = mechanism.features

    def digest(self) -> str:
        """Returns the digest of the other mechanism."""
        return self.mechanism.digest()

    def identity_digest(self) -> str:
        """Returns the digest of the other mechanism's code."""
        return self.mechanism.identity_digest()

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws from the other mechanism."""
        return self.mechanism.sample(dataset, n, rng)

    def __getstate__(self) -> dict[str, Any]:
        # An open file cannot be pickled, and what is used is noted here, not by workers.
        return {**vars(self), "keeper": None, "used": None}


@dataclass(slots=True)
class _NotingKeeper:
    """Records draws, and notes which of them choose and which certify."""

    keeper: Keeper
    used: UsedDraws
    key_of: Keys

    def keep(self, dataset: Any, outputs: Outputs, incidents: Incidents = NO_INCIDENTS) -> None:
        """Receives some outputs of one input, in the order in which they were drawn."""
        self.used.add(self.key_of(dataset), outputs)
        self.keeper.keep(dataset, outputs, incidents)

    def lose(self, dataset: Any, n: int) -> None:
        """Passes on how many draws of an input were lost."""
        self.keeper.lose(dataset, n)


def input_names(pairs: Sequence[Pair]) -> dict[str, str]:
    """Returns what the inputs of a single pair are called in a result, by their keys.

    Inputs of several pairs have no names; they are called by their keys.
    """
    if len(pairs) != 1:
        return {}
    pair = pairs[0]
    return {digest_of(pair.left): "left", digest_of(pair.right): "right"}


@contextmanager
def record_draws(
    mechanism: Mechanism, pairs: Sequence[Pair], path: str | Path | None, seed: int | None = None
) -> Iterator[Mechanism]:
    """Yields the mechanism to draw from so that its draws are recorded in a file.

    The file is there when the context ends. If it ends with an error, whatever was there before
    stays.

    Args:
        mechanism: what draws.
        pairs: those that are known before the first draw.
        path: the file; None records nothing.
        seed: of the audit.
    """
    if path is None:
        yield mechanism
        return
    seeds: tuple[int, ...] = ()
    if mechanism.used is not None:  # what is read from a recording was drawn with the seeds of that
        seeds = mechanism.used.seeds
    elif mechanism.is_seeded and seed is not None:
        seeds = (seed,)
    about = About(
        name=mechanism.name,
        chunk_size=mechanism.chunk_size,
        pairs=tuple(pairs),
        features=mechanism.features,
        seeds=seeds,
        facts=mechanism.weakening_facts(),
    )
    target = Path(path)
    try:
        about.inputs()
    except Undigestible as error:
        raise InputError(
            f"record={str(path)!r}: whose draws are whose could not be known: {error}"
        ) from error
    if not target.parent.is_dir() or target.is_dir():
        raise InputError(f"record={str(path)!r} is not a file in an existing folder")
    if target.suffix.lower() not in (".jsonl", ".npz"):
        formats = ".jsonl (outputs of every kind) or .npz (numbers and arrays)"
        raise InputError(f"record={str(path)!r} must end in {formats}")
    with writing(target) as file:
        is_text = target.suffix.lower() == ".jsonl"
        writer = _LinesKeeper(file, about) if is_text else _ArraysKeeper(file, about)
        if mechanism.used is not None:  # a recording notes what is read from it
            yield KeptMechanism(mechanism, writer, mechanism.used)
        else:
            used = UsedDraws(input_names(pairs), seeds)
            yield KeptMechanism(mechanism, _NotingKeeper(writer, used, Keys()), used)
        writer.finish()


class _LinesKeeper:
    """Writes draws to a .jsonl file, a line per chunk."""

    def __init__(self, file: IO[bytes], about: About) -> None:
        self._numbers = {key: number for number, key in enumerate(about.inputs())}
        self._key_of = Keys()
        self._file = file
        self._chronicle = _Chronicle()
        self._write(about.to_dict())

    def keep(self, dataset: Any, outputs: Outputs, incidents: Incidents = NO_INCIDENTS) -> None:
        """Writes a line."""
        number = self._number(dataset)
        self._chronicle.add(number, len(outputs), incidents)
        self._write(
            {
                "dataset": number,
                "size": len(outputs),
                "blocks": [_block_to_dict(block) for block in outputs],
            }
        )

    def lose(self, dataset: Any, n: int) -> None:
        """Notes how many draws of an input were lost."""
        if n:
            self._chronicle.lose(self._number(dataset), n)

    def finish(self) -> None:
        """Writes what happened; every other line is written already."""
        if self._chronicle.happened:
            self._write({_HAPPENED_KEY: [one.to_list() for one in self._chronicle.happened]})

    def _number(self, dataset: Any) -> int:
        """The number of an input, which gets a line if it is a new one."""
        key = self._key_of(dataset)
        if key not in self._numbers:
            self._write({"input": key})
        return self._numbers.setdefault(key, len(self._numbers))

    def _write(self, data: dict[str, Any]) -> None:
        self._file.write((json.dumps(data, allow_nan=False) + "\n").encode())


class _ArraysKeeper:
    """Writes draws to an .npz file, an array per input, when all are there."""

    def __init__(self, file: IO[bytes], about: About) -> None:
        self._file = file
        self._about = about
        self._key_of = Keys()
        # By the key of the input: its chunks.
        self._chunks: dict[str, list[np.ndarray[Any, Any]]] = {key: [] for key in about.inputs()}
        self._chronicle = _Chronicle()

    def keep(self, dataset: Any, outputs: Outputs, incidents: Incidents = NO_INCIDENTS) -> None:
        """Remembers an array."""
        array = _as_array(outputs)
        chunks = self._chunks.setdefault(self._key_of(dataset), [])
        self._chronicle.add(self._number(dataset), len(outputs), incidents)
        if chunks:
            first = chunks[0]
            if first.dtype != array.dtype or first.shape[1:] != array.shape[1:]:
                raise _no_array(outputs)
        chunks.append(array)

    def lose(self, dataset: Any, n: int) -> None:
        """Notes how many draws of an input were lost."""
        if n:
            self._chunks.setdefault(self._key_of(dataset), [])
            self._chronicle.lose(self._number(dataset), n)

    def _number(self, dataset: Any) -> int:
        return list(self._chunks).index(self._key_of(dataset))

    def finish(self) -> None:
        """Writes the file."""
        happened = tuple(self._chronicle.happened)
        about = replace(self._about, further=tuple(self._chunks), happened=happened)
        arrays = {ABOUT: np.array(json.dumps(about.to_dict()))}
        for name, chunks in zip(array_names(about), self._chunks.values(), strict=True):
            if chunks:
                arrays[name] = np.concatenate(chunks)
        np.savez(self._file, **arrays)  # type: ignore[arg-type]


def array_names(about: About) -> list[str]:
    """Returns the names of a file's arrays, one per input."""
    n_inputs = len(about.inputs())
    if n_inputs == 2 and len(about.pairs) == 1:
        return ["left", "right"]
    return [f"input_{number}" for number in range(n_inputs)]


@dataclass(frozen=True, slots=True)
class KeptLines:
    """The draws of one input in a .jsonl file that `record=` wrote.

    Attributes:
        path: the file.
        number: of the input.
    """

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path} (input {self.number})"

    def count(self) -> int | None:
        """Returns None: the number is unknown before the file is read."""
        return None

    def pieces(self) -> Iterator[Outputs]:
        """Yields the chunks, as they were drawn."""
        line_start = f'{{"dataset": {self.number}, '
        for number, line in text_lines(self.path):
            is_first = number == 1
            is_of_other = line.startswith(_LINE_STARTS) and not line.startswith(line_start)
            if is_first or is_of_other:
                continue
            try:
                data = json.loads(line)
                if data["dataset"] == self.number:
                    blocks = tuple(_block_from_dict(block) for block in data["blocks"])
                    yield Outputs(blocks, int(data["size"]))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{self.path}, line {number}: not a chunk of draws: {short_repr(line)}"
                ) from error


def about_lines(path: Path) -> About | None:
    """Returns what a .jsonl file says about itself; None if `record=` did not write it."""
    _, first = next(json_values(path), (0, None))
    if not isinstance(first, dict) or _FORMAT_KEY not in first:
        return None
    further = []
    happened: list[Any] = []
    for _, line in text_lines(path):
        if line.startswith('{"input": '):
            further.append(json.loads(line)["input"])
        elif line.startswith('{"happened": '):
            # Recordings may have been put one behind the other.
            happened += json.loads(line)[_HAPPENED_KEY]
    about = About.from_dict({**first, _HAPPENED_KEY: happened}, path)
    return replace(about, further=tuple(further))


def about_arrays(path: Path) -> About:
    """Returns what an .npz file says about itself."""
    unclear = reading(
        f"{path} does not describe its draws in plain text, and nothing is unpickled", (ValueError,)
    )
    with unclear, np.load(path, allow_pickle=False) as arrays:
        return About.from_dict(json.loads(str(arrays[ABOUT])), path)


def _as_array(outputs: Outputs) -> np.ndarray[Any, Any]:
    """Returns outputs as an array that reads back identically.

    Raises:
        InputError: if there is none.
    """
    if len(outputs.blocks) != 1:
        raise _no_array(outputs)
    block = outputs.blocks[0]
    numbers = [column for column in block.columns if isinstance(column, Numbers)]
    if len(numbers) < len(block.columns):
        raise _no_array(outputs)
    if block.shape == "bigint":
        columns = [_big_integers(*numbers)]
    else:
        columns = [_in_original_width(column) for column in numbers]
    is_single_number = block.shape in _NUMBER_TYPES or block.shape == "bigint"
    if is_single_number:
        array = columns[0]
    elif columns:
        array = np.column_stack(columns)
    else:
        array = np.empty((block.size, 0))
    # Only outputs that can be read back identically are recorded.
    shapes_read_back = [read_block.shape for read_block in read_outputs(array)]
    have_one_type = len({column.dtype for column in columns}) <= 1
    if shapes_read_back != [block.shape] or not have_one_type:
        raise _no_array(outputs)
    return np.array(array)


def _in_original_width(column: Numbers) -> np.ndarray[Any, Any]:
    """Returns the values in their original width, if all have the same one; else as they are."""
    if column.widths is None:
        return column.values
    types = {_FLOATS.get(int(width)) for width in np.unique(column.widths)}
    if len(types) != 1:
        return column.values
    return column.values.astype(types.pop())


def _big_integers(rounded: Numbers, digit: Numbers) -> np.ndarray[Any, Any]:
    """Returns whole numbers beyond 2^53 from their two columns, as int64 or uint64."""
    integers = list(map(whole_number, rounded.values.tolist(), digit.values.tolist()))
    values = np.array(integers, dtype=object)
    if values.min() < np.iinfo(np.int64).min or values.max() > np.iinfo(np.uint64).max:
        return rounded.values  # does not read back identically, so it is refused
    is_signed = values.max() <= np.iinfo(np.int64).max
    return values.astype(np.int64 if is_signed else np.uint64)


def _no_array(outputs: Outputs) -> InputError:
    shapes = ", ".join(block.shape for block in outputs.blocks[:3])
    return InputError(
        f"record=…npz holds numbers and arrays of one shape, not {short_repr(shapes)}; "
        "use record=….jsonl"
    )


def _block_to_dict(block: Block) -> dict[str, Any]:
    """Returns a block as plain data; `_block_from_dict` is the inverse."""
    return {
        "shape": block.shape,
        "rows": None if block.rows is None else block.rows.tolist(),
        "size": block.size,
        "columns": [_column_to_dict(column) for column in block.columns],
    }


def _block_from_dict(data: dict[str, Any]) -> Block:
    """Restores what `_block_to_dict` returned."""
    return Block(
        shape=str(data["shape"]),
        rows=None if data["rows"] is None else np.array(data["rows"], dtype=np.int64),
        columns=tuple(_column_from_dict(column) for column in data["columns"]),
        size=int(data["size"]),
    )


def _column_to_dict(column: Numbers | Labels) -> dict[str, Any]:
    """Returns a column as plain data; `_column_from_dict` is the inverse."""
    if isinstance(column, Labels):
        labels = [label_to_data(label) for label in column.labels]
        return {"labels": labels, "codes": column.codes.tolist()}
    number_type = {"f": "float", "i": "int", "b": "bool"}[column.values.dtype.kind]
    values = column.values.tolist()
    if number_type == "float":
        values = [value if math.isfinite(value) else _float_text(value) for value in values]
    data = {number_type: values}
    if column.widths is not None:
        data["widths"] = column.widths.tolist()
    return data


def _float_text(value: float) -> str:
    """Returns a text for infinity, or for NaN with its bits if they are unusual."""
    bits = struct.pack(">d", value).hex()
    if math.isinf(value) or bits == _USUAL_NAN:
        return repr(value)
    return f"nan {bits}"


def _float_value(value: float | str) -> float:
    """Returns a float that `_column_to_dict` wrote."""
    if isinstance(value, str) and value.startswith("nan "):
        bits = bytes.fromhex(value.removeprefix("nan "))
        return float(struct.unpack(">d", bits)[0])
    return float(value)


def _column_from_dict(data: dict[str, Any]) -> Numbers | Labels:
    """Restores what `_column_to_dict` returned."""
    if "labels" in data:
        labels = tuple(label_from_data(label) for label in data["labels"])
        return Labels(np.array(data["codes"], dtype=np.int32), labels)
    widths = np.array(data["widths"], dtype=np.uint8) if "widths" in data else None
    (number_type,) = data.keys() - {"widths"}
    values = data[number_type]
    if number_type == "float":
        values = [_float_value(value) for value in values]
    return Numbers(np.array(values, dtype=_NUMBER_TYPES[number_type]), widths)
