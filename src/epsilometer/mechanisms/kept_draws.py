"""Draws of an audit kept in a file, exactly: each input's outputs in the order in which they were drawn.

A .jsonl file has a line about the audit and then a line per chunk, with the outputs as columns; it
can hold any kind of output. An .npz file has an array per input (`left` and `right` for one pair);
it can hold numbers and arrays of them.
"""

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from epsilometer.errors import InputError, shown
from epsilometer.inputs import Pair
from epsilometer.inputs.pairs import digest_of, pair_from_dict, pair_to_dict
from epsilometer.mechanisms.base import Keeper, Mechanism
from epsilometer.mechanisms.features import Features
from epsilometer.mechanisms.used_draws import UsedDraws
from epsilometer.outputs import Block, Labels, Numbers, Outputs, read_outputs
from epsilometer.outputs.columns import whole_number
from epsilometer.outputs.reading_numbers import label_from_data, label_to_data
from epsilometer.storage import Undigestible
from epsilometer.storage.exchange import reading
from epsilometer.storage.recorded_texts import json_values, text_lines
from epsilometer.storage.writing import writing

_VERSION = 1
_USUAL_NAN = struct.pack(">d", math.nan).hex()
_MARK = "epsilometer_recording"
ABOUT = "about"
# How lines about inputs begin: those of other inputs are skipped without being parsed.
_OTHERS = ('{"dataset": ', '{"input": ')
_FLOATS: dict[int, type] = {
    2: np.float16,
    4: np.float32,
    np.dtype(np.longdouble).itemsize: np.longdouble,
}
_KINDS: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}


@dataclass(frozen=True, slots=True)
class About:
    """What a file of kept draws says about itself.

    Attributes:
        name: of the mechanism.
        chunk_size: of the mechanism, which the health checks need.
        pairs: the audited pairs that were known before the first draw.
        further: the keys of inputs that a search came across.
        features: those that were kept beside the outputs.
        seeds: of the audits that drew them: the same seed gives the same draws again. None for a
            mechanism that cannot be seeded.
        facts: what weakens a reading of the draws, see `Mechanism.weakening_facts`.
    """

    name: str
    chunk_size: int
    pairs: tuple[Pair, ...]
    further: tuple[str, ...] = ()
    features: Features | None = None
    seeds: tuple[int, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def inputs(self) -> list[str]:
        """A text per input, in the order in which the file numbers them."""
        known = (digest_of(pair.side(side)) for pair in self.pairs for side in (0, 1))
        return list(dict.fromkeys([*known, *self.further]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        pairs = [pair_to_dict(pair) for pair in self.pairs]
        further = list(self.further)
        about = {"mechanism": self.name, "chunk_size": self.chunk_size}
        noted: dict[str, Any] = {"features": self.features.note()} if self.features else {}
        if self.seeds:
            noted["seeds"] = list(self.seeds)
        if self.facts:
            noted["facts"] = dict(self.facts)
        return {_MARK: _VERSION, **about, "pairs": pairs, "further": further, **noted}

    @classmethod
    def from_dict(cls, data: Any, path: Path) -> "About":
        """The inverse of `to_dict`."""
        if not isinstance(data, dict) or data.get(_MARK) != _VERSION:
            raise InputError(f"{path} was kept in a format that this version does not read")
        try:
            pairs = tuple(pair_from_dict(pair) for pair in data["pairs"])
            name = str(data["mechanism"])
            chunk_size = int(data["chunk_size"])
            further = map(str, data["further"])
            features = Features(**data["features"], function=None) if "features" in data else None
            seeds = tuple(map(int, data.get("seeds", ())))
            return cls(
                name,
                chunk_size,
                pairs,
                tuple(further),
                features,
                seeds,
                dict(data.get("facts", {})),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} does not describe its draws: {error!r}") from error


class Keys:
    """The keys of datasets that are asked for chunk after chunk: a large one is read only once."""

    def __init__(self) -> None:
        self._last: list[tuple[Any, str]] = []

    def __call__(self, dataset: Any) -> str:
        """The key of a dataset."""
        known = next((key for each, key in self._last if each is dataset), None)
        if known is None:
            known = digest_of(dataset)
            self._last = [(dataset, known), *self._last[:3]]  # a pair, and the one before it
        return known


class KeptMechanism(Mechanism):
    """Another mechanism, whose draws the sampler passes to `keeper`, in order, wherever they were drawn."""

    def __init__(self, mechanism: Mechanism, keeper: Keeper, used: UsedDraws) -> None:
        self.mechanism = mechanism
        self.keeper = keeper
        self.used = used
        self.name = mechanism.name
        self.is_seeded = mechanism.is_seeded
        self.chunk_size = mechanism.chunk_size
        self.features = mechanism.features

    def digest(self) -> str:
        """Of the other mechanism."""
        return self.mechanism.digest()

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Draws from the other mechanism."""
        return self.mechanism.sample(dataset, n, rng)

    def __getstate__(self) -> dict[str, Any]:
        # An open file cannot be pickled, and what is used is noted here, not by workers.
        return {**vars(self), "keeper": None, "used": None}


@dataclass(slots=True)
class _NotingKeeper:
    """Keeps draws, and notes which of them choose and which prove."""

    keeper: Keeper
    used: UsedDraws
    key_of: Keys

    def keep(self, dataset: Any, outputs: Outputs) -> None:
        """Some outputs of one input, in the order in which they were drawn."""
        self.used.add(self.key_of(dataset), outputs)
        self.keeper.keep(dataset, outputs)


def input_names(pairs: Sequence[Pair]) -> dict[str, str]:
    """What the inputs of a single pair are called in a result, by their keys; of several, the keys must do."""
    if len(pairs) != 1:
        return {}
    return {digest_of(pairs[0].side(side)): name for side, name in enumerate(("left", "right"))}


@contextmanager
def keeping(
    mechanism: Mechanism, pairs: Sequence[Pair], path: str | Path | None, seed: int | None = None
) -> Iterator[Mechanism]:
    """The mechanism to draw from so that its draws are kept in a file; None keeps nothing.

    The file is there when the context ends. If it ends with an error, whatever was there before
    stays.

    Args:
        mechanism: what draws.
        pairs: those that are known before the first draw.
        path: the file.
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
        writer = (_LinesKeeper if target.suffix.lower() == ".jsonl" else _ArraysKeeper)(file, about)
        if mechanism.used is not None:  # a recording notes what is read from it
            yield KeptMechanism(mechanism, writer, mechanism.used)
        else:
            used = UsedDraws(input_names(pairs), seeds)
            yield KeptMechanism(mechanism, _NotingKeeper(writer, used, Keys()), used)
        writer.finish()


class _LinesKeeper:
    def __init__(self, file: IO[bytes], about: About) -> None:
        self._numbers = {key: number for number, key in enumerate(about.inputs())}
        self._key_of = Keys()
        self._file = file
        self._write(about.to_dict())

    def keep(self, dataset: Any, outputs: Outputs) -> None:
        """Writes a line."""
        key = self._key_of(dataset)
        if key not in self._numbers:
            self._write({"input": key})
        number = self._numbers.setdefault(key, len(self._numbers))
        self._write(
            {
                "dataset": number,
                "size": len(outputs),
                "blocks": [_block_to_dict(block) for block in outputs],
            }
        )

    def finish(self) -> None:
        """Every line is written already."""

    def _write(self, data: dict[str, Any]) -> None:
        self._file.write((json.dumps(data, allow_nan=False) + "\n").encode())


class _ArraysKeeper:
    def __init__(self, file: IO[bytes], about: About) -> None:
        self._file = file
        self._about = about
        self._key_of = Keys()
        self._kept: dict[str, list[np.ndarray[Any, Any]]] = {key: [] for key in about.inputs()}

    def keep(self, dataset: Any, outputs: Outputs) -> None:
        """Remembers an array."""
        array = _as_array(outputs)
        kept = self._kept.setdefault(self._key_of(dataset), [])
        if kept and (kept[0].dtype != array.dtype or kept[0].shape[1:] != array.shape[1:]):
            raise _no_array(outputs)
        kept.append(array)

    def finish(self) -> None:
        """Writes the file."""
        about = replace(self._about, further=tuple(self._kept))
        names = array_names(about)
        arrays = {
            name: np.concatenate(kept)
            for name, kept in zip(names, self._kept.values(), strict=True)
            if kept
        }
        np.savez(self._file, **{ABOUT: np.array(json.dumps(about.to_dict()))}, **arrays)  # type: ignore[arg-type]


def array_names(about: About) -> list[str]:
    """The names of a file's arrays, one per input."""
    n = len(about.inputs())
    return (
        ["left", "right"]
        if n == 2 and len(about.pairs) == 1
        else [f"input_{number}" for number in range(n)]
    )


@dataclass(frozen=True, slots=True)
class KeptLines:
    """The draws of one input in a .jsonl file that `record=` wrote."""

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path} (input {self.number})"

    def count(self) -> int | None:
        """Unknown before the file is read."""
        return None

    def pieces(self) -> Iterator[Outputs]:
        """The chunks, as they were drawn."""
        mine = f'{{"dataset": {self.number}, '
        for number, line in text_lines(self.path):
            if number == 1 or (line.startswith(_OTHERS) and not line.startswith(mine)):
                continue
            try:
                data = json.loads(line)
                if data["dataset"] == self.number:
                    yield Outputs(tuple(map(_block_from_dict, data["blocks"])), int(data["size"]))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{self.path}, line {number}: not a chunk of draws: {shown(line)}"
                ) from error


def about_lines(path: Path) -> About | None:
    """What a .jsonl file says about itself, if `record=` wrote it."""
    first = next(json_values(path), (0, None))[1]
    if not isinstance(first, dict) or _MARK not in first:
        return None
    met = [
        json.loads(line)["input"] for _, line in text_lines(path) if line.startswith('{"input": ')
    ]
    return replace(About.from_dict(first, path), further=tuple(met))


def about_arrays(path: Path) -> About:
    """What an .npz file says about itself."""
    unclear = reading(
        f"{path} does not describe its draws in plain text, and nothing is unpickled", (ValueError,)
    )
    with unclear, np.load(path, allow_pickle=False) as arrays:
        return About.from_dict(json.loads(str(arrays[ABOUT])), path)


def _as_array(outputs: Outputs) -> np.ndarray[Any, Any]:
    if len(outputs.blocks) != 1 or not all(
        isinstance(column, Numbers) for column in outputs.blocks[0].columns
    ):
        raise _no_array(outputs)
    block = outputs.blocks[0]
    numbers = [column for column in block.columns if isinstance(column, Numbers)]
    columns = []
    # in their original width, if all values have the same one; else as they are
    for column in numbers:
        kinds = (
            set()
            if column.widths is None
            else {_FLOATS.get(int(width)) for width in np.unique(column.widths)}
        )
        columns.append(column.values.astype(kinds.pop()) if len(kinds) == 1 else column.values)
    if block.shape == "bigint":
        columns = [_whole_numbers(*numbers)]
    single = block.shape in _KINDS or block.shape == "bigint"
    array = (
        columns[0] if single else np.column_stack(columns) if columns else np.empty((block.size, 0))
    )
    # Only outputs that can be read back identically are kept.
    if [each.shape for each in read_outputs(array)] != [block.shape] or len(
        {column.dtype for column in columns}
    ) > 1:
        raise _no_array(outputs)
    return np.array(array)


def _whole_numbers(rounded: Numbers, digit: Numbers) -> np.ndarray[Any, Any]:
    """Whole numbers beyond 2^53 from their two columns, as int64 or uint64."""
    values = np.array(
        list(map(whole_number, rounded.values.tolist(), digit.values.tolist())), dtype=object
    )
    if values.min() < np.iinfo(np.int64).min or values.max() > np.iinfo(np.uint64).max:
        return rounded.values  # does not read back identically, so it is refused
    return values.astype(np.int64 if values.max() <= np.iinfo(np.int64).max else np.uint64)


def _no_array(outputs: Outputs) -> InputError:
    shapes = ", ".join(block.shape for block in outputs.blocks[:3])
    return InputError(
        f"record=…npz holds numbers and arrays of one shape, not {shown(shapes)}; use record=….jsonl"
    )


def _block_to_dict(block: Block) -> dict[str, Any]:
    rows = None if block.rows is None else block.rows.tolist()
    return {
        "shape": block.shape,
        "rows": rows,
        "size": block.size,
        "columns": [*map(_column_to_dict, block.columns)],
    }


def _block_from_dict(data: dict[str, Any]) -> Block:
    rows = None if data["rows"] is None else np.array(data["rows"], dtype=np.int64)
    return Block(
        str(data["shape"]), rows, tuple(map(_column_from_dict, data["columns"])), int(data["size"])
    )


def _column_to_dict(column: Numbers | Labels) -> dict[str, Any]:
    if isinstance(column, Labels):
        return {"labels": list(map(label_to_data, column.labels)), "codes": column.codes.tolist()}
    kind = {"f": "float", "i": "int", "b": "bool"}[column.values.dtype.kind]
    values = column.values.tolist()
    if kind == "float":
        values = [each if math.isfinite(each) else _float_text(each) for each in values]
    return (
        {kind: values}
        if column.widths is None
        else {kind: values, "widths": column.widths.tolist()}
    )


def _float_text(value: float) -> str:
    """Infinity, or NaN with its bits if they are unusual."""
    raw = struct.pack(">d", value).hex()
    return repr(value) if math.isinf(value) or raw == _USUAL_NAN else f"nan {raw}"


def _float_value(value: float | str) -> float:
    """A float as `_column_to_dict` wrote it."""
    is_odd = isinstance(value, str) and value.startswith("nan ")
    return float(struct.unpack(">d", bytes.fromhex(str(value)[4:]))[0]) if is_odd else float(value)


def _column_from_dict(data: dict[str, Any]) -> Numbers | Labels:
    if "labels" in data:
        return Labels(
            np.array(data["codes"], dtype=np.int32), tuple(map(label_from_data, data["labels"]))
        )
    widths = np.array(data["widths"], dtype=np.uint8) if "widths" in data else None
    ((kind, values),) = ((name, each) for name, each in data.items() if name != "widths")
    if kind == "float":
        values = [_float_value(each) for each in values]
    return Numbers(np.array(values, dtype=_KINDS[kind]), widths)
