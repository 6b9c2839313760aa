"""Recorded outputs instead of a mechanism that can be run."""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import epsilometer.mechanisms.kept_draws as kept_draws
from epsilometer.errors import InputError, MechanismError, short_repr
from epsilometer.inputs import Pair, as_pair
from epsilometer.inputs.pairs import RECORDED, digest_of
from epsilometer.mechanisms.base import Mechanism
from epsilometer.mechanisms.drawing_log import NO_INCIDENTS, Incidents, current_log
from epsilometer.mechanisms.features import Features, as_features
from epsilometer.mechanisms.used_draws import EarlierDraws, UsedDraws
from epsilometer.outputs import Numbers, Outputs, concatenate, read_outputs
from epsilometer.outputs.shapes import EXACT
from epsilometer.storage import files_digest
from epsilometer.storage.csv_parsing import header_of
from epsilometer.storage.formats import UNSOUND, reading, regular_file, settle, settled
from epsilometer.storage.recorded_arrays import (
    ArrayFile,
    ParquetColumns,
    RecordedSide,
    Source,
    members,
    parquet_names,
)
from epsilometer.storage.recorded_texts import (
    CsvRows,
    JsonLines,
    JsonList,
    has_side,
    json_values,
    must_have,
)
from epsilometer.storage.row_marks import Range, recognise
from epsilometer.storage.row_samples import holds_again

# What can be done when a recording has no draws left for a replay.
_FRESH_DRAWS = (
    "replay on the mechanism itself, or on a recording of fresh draws (record= with another seed)"
)
_SEED_USED = "with which the audit has used the same draws"
# The fewest samples that a replay takes.
FEWEST_LEFT = 20
# Outputs per chunk: as in a batch of a Python function, so that the check for drift is the same.
_CHUNK = 1 << 16
_Place = str | os.PathLike[str]


class _Reader:
    """Yields the outputs of one side, each once, and none of those that were used earlier.

    Args:
        side: where they are.
        skipped: the ranges of rows that are left out.
    """

    def __init__(self, side: RecordedSide, skipped: Sequence[Range] = ()) -> None:
        self._side = side
        self._stretches = _stretches(side, skipped)
        # The stretch that is being read: its next row, and the outputs from there on.
        self._row = 0
        self._rest = Outputs((), 0)
        self._n_taken = 0

    def take_noting(self, n: int, note: Callable[[Outputs, int], None]) -> Outputs:
        """Returns the next n outputs.

        Args:
            n: how many.
            note: called with each stretch of neighbouring outputs, and its first row.
        """
        parts: list[Outputs] = []
        missing = n
        while missing > 0:
            if not len(self._rest):
                stretch = next(self._stretches, None)
                if stretch is None:
                    raise MechanismError(_used_up(self._side, self._n_taken + n - missing))
                self._row, self._rest = stretch
                continue
            part = self._rest.take(slice(0, min(missing, len(self._rest))))
            note(part, self._row)
            parts.append(part)
            missing -= len(part)
            self._row += len(part)
            self._rest = self._rest.take(slice(len(part), len(self._rest)))
        self._n_taken += n
        return concatenate(parts) if parts else Outputs((), 0)


def _stretches(side: RecordedSide, skipped: Sequence[Range]) -> Iterator[tuple[int, Outputs]]:
    """Yields stretches of neighbouring outputs of a side, each with its first row.

    The ranges of rows that are skipped are left out.
    """
    row = 0
    for piece in side.pieces():
        start = row
        stop = row + len(piece)
        for skip_start, skip_stop in skipped:
            stretch_stop = min(skip_start, stop)
            if stretch_stop > start:
                yield start, piece.take(slice(start - row, stretch_stop - row))
            start = max(start, min(skip_stop, stop))
        if start < stop:
            yield start, piece.take(slice(start - row, stop - row))
        row = stop


class Recording(Mechanism):
    """Recorded outputs that are drawn in the order of the file, each once.

    Attributes:
        sides: per input, what was recorded.
        worst_pair: the inputs, for an audit that names none; None if only one side was recorded.
        skipped: per input, the ranges of rows that are left out.
    """

    is_seeded = False
    why_not_afresh = "recorded outputs cannot be drawn again"

    def __init__(
        self,
        sides: Sequence[RecordedSide],
        about: kept_draws.About,
        skipped: Mapping[str, Sequence[Range]] | None = None,
    ) -> None:
        self.sides = tuple(
            replace(
                side,
                seeds=about.seeds,
                facts=about.facts,
                incidents=_total(one for one in about.happened if one.number == number),
            )
            for number, side in enumerate(sides)
        )
        self.pairs = about.pairs
        self.about = about
        self.chunk_size = about.chunk_size
        self.name = about.name
        self.skipped = dict(skipped or {})
        self.used = UsedDraws(kept_draws.input_names(about.pairs), about.seeds)
        self._keys = about.inputs()
        self._readers: dict[str, _Reader] = {}
        # What happened while the outputs were recorded, and has not been reported.
        self._happened = list(about.happened)
        self._key_of = kept_draws.Keys()
        self.features = self.sides[0].features if self.sides else None
        if len(self.sides) > 1 or self.pairs:
            self.worst_pair = self.pairs[0] if len(self.pairs) == 1 else list(self.pairs)

    @property
    def left(self) -> RecordedSide:
        """The outputs of the left input of the first pair, for `compare`."""
        return self._side_of(0)

    @property
    def right(self) -> RecordedSide:
        """The outputs of the right input of the first pair, for `compare`."""
        return self._side_of(1)

    def with_features(self, features: Features | None) -> "Recording":
        """Returns the same recording with features, which are computed while the file is read.

        What was recorded with features keeps them.
        """
        features = features or self.about.features
        sides = [replace(side, features=features) for side in self.sides]
        return Recording(sides, self.about)

    def digest(self) -> str:
        """Returns a digest of the content of the files."""
        return files_digest(side.source.path for side in self.sides)

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Returns the next n recorded outputs of the dataset."""
        key = self._key_of(dataset)
        if key not in self._readers:
            if key not in self._keys:
                raise InputError(
                    f"{self.name} has no outputs of the input {short_repr(dataset)}; "
                    "leave the inputs out"
                )
            side = self.sides[self._keys.index(key)]
            self._readers[key] = _Reader(side, self.skipped.get(key, ()))
        return self._readers[key].take_noting(n, partial(self._note, key))

    def _note(self, key: str, outputs: Outputs, start: int) -> None:
        assert self.used is not None
        self.used.add(key, outputs, start)
        number = self._keys.index(key)
        for one in tuple(self._happened):
            if one.number == number and one.start < start + len(outputs) and start < one.stop:
                current_log().repeat(one.incidents)
                # Lost draws count whenever one of those that may replace them is read.
                if not one.incidents.redrawn:
                    self._happened.remove(one)

    def prepared(self, pairs: Sequence[Pair], samples: int) -> "Recording":
        """Returns the same recording from its beginning, with the inputs of the audit."""
        if len(self.sides) < 2 and not self.pairs:
            raise InputError(
                f"{self.name} holds one side only; give the files of both: "
                "from_recording(left, right), or recording:LEFT,RIGHT on the command line"
            )
        for side in self.sides:
            n_outputs = side.source.count()
            if n_outputs is not None and n_outputs < samples and not side.exact:
                raise InputError(f"{_used_up(side, n_outputs)} (samples={samples} were asked for)")
        known = all(
            digest_of(pair.left) in self._keys and digest_of(pair.right) in self._keys
            for pair in pairs
        )
        if not known and (self.pairs != (RECORDED,) or len(pairs) != 1):
            raise InputError(
                f"{self.name} has no outputs of the inputs that were given; leave the inputs out"
            )
        about = self.about if known else replace(self.about, pairs=tuple(pairs))
        if len(about.inputs()) != len(self.sides):
            raise InputError(
                "the two inputs of a recording must differ, or their outputs cannot be "
                "distinguished"
            )
        return Recording(self.sides, about)

    def unused(self, earlier: EarlierDraws, pair: Pair, samples: int) -> "Recording":
        """Returns the same recording without the rows that were used earlier."""
        numbers = earlier.matching(self.about.seeds)
        marks = [earlier.marks[number] for number in numbers]
        skipped = {}
        for index, name in enumerate(("left", "right")):
            key = digest_of(pair.side(index))
            side = self.sides[self._keys.index(key)]
            recognised = recognise(replace(side, features=None).pieces(), marks)
            # The same seed gives the same draws, but other sizes of chunks put them at other
            # places.
            shared = sorted(earlier.seeds.intersection(self.about.seeds))
            if shared and not any(recognised.are_whole):
                raise InputError(
                    f"{self.name} was drawn with seed={shared[0]}, {_SEED_USED}; {_FRESH_DRAWS}"
                )
            if recognised.n_left < samples:
                n_used = recognised.n_rows - recognised.n_left
                advice = _FRESH_DRAWS
                if recognised.n_left >= FEWEST_LEFT:
                    advice = f"give samples={recognised.n_left} or fewer, or {_FRESH_DRAWS}"
                raise InputError(
                    f"the recording {side} has {recognised.n_rows} outputs of the {name} input, "
                    f"{n_used} of which the audit has used, so that {recognised.n_left} are left; "
                    f"samples={samples} were asked for, "
                    f"and what chose an event must not prove it: {advice}"
                )
            if holds_again(replace(side, features=None).pieces(), recognised.used, earlier.samples):
                raise InputError(
                    f"the recording {side} holds outputs of the {name} input that the audit has "
                    "used, in another order or rounded, so that they cannot be left out; what "
                    f"chose an event must not prove it: {_FRESH_DRAWS}"
                )
            skipped[key] = recognised.used
        return Recording(self.sides, self.about, skipped)

    def weakening_facts(self) -> dict[str, Any]:
        """Returns the facts of what was recorded, and which columns are used if not all are."""
        facts = dict(self.about.facts)
        if self.sides and self.sides[0].columns:
            facts["columns"] = list(self.sides[0].columns)
        return facts

    def __getstate__(self) -> dict[str, Any]:
        raise pickle.PicklingError("cannot pickle a recording, which is read in order; use jobs=1")

    def _side_of(self, index: int) -> RecordedSide:
        if not self.pairs:
            raise InputError(f"{self.name} holds one side only")
        return self.sides[self._keys.index(digest_of(self.pairs[0].side(index)))]


def from_recording(
    path: str | os.PathLike[str],
    right: str | os.PathLike[str] | None = None,
    *,
    pair: Pair | tuple[Any, Any] | None = None,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    max_output_bytes: float | None = None,
    features: Callable[[Any], Any] | None = None,
) -> Recording:
    """Recorded outputs, from two files or from one that holds both sides.

    Files are read in pieces, so they may be larger than memory. `audit` draws the outputs in order,
    each once, and raises when there are not enough; `compare(recording.left, recording.right,
    claim)` shuffles them.

    Args:
        path: the left outputs (or both sides): .npy, .npz (`file.npz:name` for one of several
            arrays), .csv, .jsonl (a JSON value per line), .json (a list) or .parquet. One file
            holds both sides as the arrays `left` and `right` of an .npz file, as columns `left` and
            `right`, with a column `side` beside the outputs, as lines {"side": "left", "output":
            …}, or as `audit(…, record=…)` wrote it.
        right: the file of the right outputs.
        pair: the two inputs, for the report.
        header: whether a csv file has one; None finds out.
        columns: the columns of a csv or parquet file, or the keys of JSON objects, that are the
            output; None takes all.
        max_output_bytes: how much memory the outputs of a side may take where all of them are
            needed at once, as in `compare`; `audit` reads in pieces. None is an eighth of the
            memory of this process, at most 8 GB. What needs more is refused before it is read, so
            that a small file that unpacks to a huge one does no harm.
        features: a function of one output, see `from_batch`.

    Every row is an output, or an error that names it. An empty cell of a csv file and a null are
    the missing value, a quoted "" is text. Numbers are compared by value, since files differ in how
    they store them: 1 is 1.0, and whole numbers of any length are exact. Nothing is ever unpickled.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> np.savez("draws.npz", left=rng.laplace(size=2000), right=1.0 + rng.laplace(size=2000))
        >>> recording = em.from_recording("draws.npz")
        >>> em.audit(recording, claim=em.PureDP(0.5), samples=2000, seed=0).verdict
        <Verdict.REFUTED: 'refuted'>
    """
    max_bytes = None
    if max_output_bytes is not None:
        max_bytes = _check_max_bytes(max_output_bytes)
    if columns and header is None:
        header = True
    inputs = RECORDED if pair is None else as_pair(pair)
    recording = _from_files(path, right, inputs, header)
    sides = list(recording.sides)
    if columns is not None:
        sides = [_with_columns(side, columns) for side in sides]
    sides = [replace(side, max_bytes=max_bytes).checked() for side in sides]
    return Recording(sides, recording.about).with_features(as_features(features))


def _check_max_bytes(value: float) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 <= value < 1 << 62:
        raise InputError(f"max_output_bytes={value!r} must be a number of bytes, e.g. 4e9")
    return int(value)


def _with_columns(side: RecordedSide, columns: Sequence[str]) -> RecordedSide:
    """Returns the same outputs, but only these columns of them."""
    chosen = tuple(columns)
    source = side.source
    if isinstance(columns, str) or not chosen or len(set(chosen)) < len(chosen):
        raise InputError(f"columns={columns!r} must name columns, each once: ['count', 'city']")
    if isinstance(source, ParquetColumns) and source.beside is None:
        must_have(source.path, chosen, source.names)
        return replace(side, source=replace(source, names=chosen), columns=chosen)
    if not isinstance(source, CsvRows | JsonLines | JsonList):
        raise InputError(
            f"columns={list(chosen)} needs names of columns, which {source} does not have"
        )
    return replace(side, source=replace(source, columns=chosen), columns=chosen)


def _from_files(path: _Place, right: _Place | None, pair: Pair, header: bool | None) -> Recording:
    """Opens two files of one side each, or one file of one or both sides."""
    if right is not None:
        name = f"{os.fspath(path)} and {os.fspath(right)}"
        about = kept_draws.About(name=name, chunk_size=_CHUNK, pairs=(pair,))
        return Recording([_one_side(path, header), _one_side(right, header)], about)
    name = os.fspath(path)
    _, array_name = _split_place(path)
    if array_name is None:
        recording = _open_kept(_check_file(path))
        if recording is not None:
            return recording
        both = _both_sides(_check_file(path), header)
        if both is not None:
            return Recording(both, kept_draws.About(name=name, chunk_size=_CHUNK, pairs=(pair,)))
    about = kept_draws.About(name=name, chunk_size=_CHUNK, pairs=())
    return Recording([_one_side(path, header)], about)


def recorded_pair(
    left: object, right: object, features: Features | None = None
) -> tuple[Outputs, Outputs, dict[str, Any]]:
    """Returns two samples of recorded outputs as columns, and a note for the result.

    The note says which features and columns are used, and which types of numbers differ.

    How a number is stored is not what a mechanism leaks: where arrays of different kinds meet, or
    outputs of a file, numbers are compared by value, 1 is 1.0 (and True, in an array), and every
    float beyond 2^53 is a whole number.
    """
    left = _opened(left)
    right = _opened(right)
    for side in (left, right):
        if isinstance(side, RecordedSide):
            features = features or side.features
    note: dict[str, Any] = {}
    left_type = _stored_as(left)
    right_type = _stored_as(right)
    if left_type and right_type and {left_type.kind, right_type.kind} in _MIXED_KINDS:
        note["note"] = f"left holds {left_type}, right {right_type}; both are compared as float64"
        left = _as_numbers(left)
        right = _as_numbers(right)
    for side in (left, right):
        if isinstance(side, RecordedSide) and side.columns:
            note["columns"] = list(side.columns)
    left_outputs = recorded_outputs(left, right, features)
    right_outputs = recorded_outputs(right, left, features)
    if note or isinstance(left, _FROM_FILES) or isinstance(right, _FROM_FILES):
        blocks = [*left_outputs, *right_outputs]
        if any(block.shape == "bigint" for block in blocks):
            left_outputs = _with_long_wholes(left_outputs)
            right_outputs = _with_long_wholes(right_outputs)
    if features is not None:
        note["features"] = features.note()
    return left_outputs, right_outputs, {**_kept_facts(left, right), **note}


def _kept_facts(*sides: object) -> dict[str, Any]:
    """Returns what weakens a reading of the draws of these sides, where `record=` wrote it."""
    facts: dict[str, Any] = {}
    for side in sides:
        if isinstance(side, RecordedSide):
            facts |= side.facts
    return facts


def recorded_incidents(values: object) -> Incidents:
    """Returns what happened while these outputs were drawn, as far as `record=` wrote it."""
    side = _opened(values)
    incidents = side.incidents if isinstance(side, RecordedSide) else None
    return NO_INCIDENTS if incidents is None else incidents


def _total(happened: Iterable[kept_draws.Happened]) -> Incidents:
    """Returns the counts of all together, lost draws each once."""
    total = NO_INCIDENTS
    redrawn = 0
    for one in happened:
        total += one.incidents
        redrawn += one.incidents.redrawn
    return replace(total, redrawn=redrawn)


def recorded_seeds(values: object) -> tuple[int, ...]:
    """Returns the seeds of the audits that drew these outputs, if `record=` wrote them."""
    if isinstance(values, str | os.PathLike):
        values = from_recording(values)
    if isinstance(values, Recording):
        return values.about.seeds
    return values.seeds if isinstance(values, RecordedSide) else ()


# Pairs of different kinds of NumPy numbers, which are compared by value.
_MIXED_KINDS = [set(kinds) for kinds in combinations("biuf", 2)]


def _opened(values: object) -> object:
    """Returns the outputs of a file, ready to be read; others as they are."""
    if isinstance(values, str | os.PathLike):
        values = from_recording(values)
    if not isinstance(values, Recording):
        return values
    if len(values.sides) != 1:
        raise InputError(
            f"{values.name} holds several sides; give recording.left and recording.right"
        )
    return values.sides[0]


def _as_numbers(values: object) -> object:
    """Returns an array, or one in a file, whose truth values are 0 and 1."""
    if isinstance(values, RecordedSide) and _stored_as(values) == np.bool_:
        values = np.concatenate(list(values.source.pieces()))
    if not isinstance(values, np.ndarray):
        return values
    return values.astype(np.float64) if values.dtype == np.bool_ else settled(values)


def _stored_as(values: object) -> np.dtype[Any] | None:
    """Returns the dtype of an array, or of one in a file; None for other outputs."""
    if isinstance(values, RecordedSide) and isinstance(values.source, ArrayFile):
        return values.source.dtype()
    return values.dtype if isinstance(values, np.ndarray) else None


def recorded_outputs(
    values: object, other: object = None, features: Features | None = None
) -> Outputs:
    """Returns outputs as columns: given as they are, as a recording, or as a file.

    Args:
        values: the outputs.
        other: those of the other side; if they come from a file, where whole numbers are floats,
            these are floats too.
        features: added to them; None adds those that a recording brings.
    """
    if isinstance(other, _FROM_FILES) and not isinstance(values, _FROM_FILES):
        values = settled(values) if isinstance(values, np.ndarray) else settle(values)
    values = _opened(values)
    if isinstance(values, RecordedSide):
        return replace(values, features=features or values.features).outputs()
    return (features or read_outputs)(values)


def _with_long_wholes(outputs: Outputs) -> Outputs:
    """Returns the same outputs with floats beyond 2^53 as whole numbers."""
    floats = next((block for block in outputs if block.shape == "float"), None)
    column = None if floats is None else floats.columns[0]
    if floats is None or not isinstance(column, Numbers):
        return outputs
    large = np.flatnonzero((np.abs(column.values) > EXACT) & np.isfinite(column.values))
    if not len(large):
        return outputs
    rows = large if floats.rows is None else floats.rows[large]
    rest = np.setdiff1d(np.arange(len(outputs)), rows)
    integers = read_outputs([int(value) for value in column.values[large].tolist()])
    original_order = np.argsort(np.concatenate([rest, rows]))
    return concatenate([outputs.take(rest), integers]).take(original_order)


# Types of outputs that come from files.
_FROM_FILES = (str, os.PathLike, Recording, RecordedSide)


def _open_kept(path: Path) -> Recording | None:
    """Opens a file that `record=` wrote; None if it is another one."""
    kind = path.suffix.lower()
    with reading(f"{path} does not describe its draws", (ValueError, *UNSOUND)):
        about = kept_draws.about_lines(path) if kind == ".jsonl" else None
    if kind == ".npz" and kept_draws.ABOUT in members(path):
        ArrayFile(path, kept_draws.ABOUT).read()  # refuses what is too large, or not plain
        about = kept_draws.about_arrays(path)
    if about is None:
        return None
    sources: list[Source] = [ArrayFile(path, name) for name in kept_draws.array_names(about)]
    if kind == ".jsonl":
        sources = [kept_draws.KeptLines(path, number) for number in range(len(about.inputs()))]
    sides = [RecordedSide(source, exact=True, features=about.features) for source in sources]
    return Recording(sides, replace(about, name=f"draws of {about.name} kept in {path}"))


def _used_up(side: RecordedSide, n_outputs: int) -> str:
    """Returns the message that a side has too few outputs."""
    advice = f"samples={n_outputs} or fewer"
    if side.exact:
        advice = "the settings of the audit that kept them"
    return f"the recording {side} has only {n_outputs} outputs; audit it with {advice}"


def _both_sides(path: Path, header: bool | None) -> list[RecordedSide] | None:
    """Returns the two sides of one file; None if it holds only one."""
    sources: list[Source] | None = None
    if path.suffix.lower() == ".npz" and {"left", "right"} <= set(members(path)):
        sources = [ArrayFile(path, side) for side in ("left", "right")]
    elif path.suffix.lower() == ".jsonl" and has_side(next(json_values(path), (0, None))[1]):
        sources = [JsonLines(path, side) for side in ("left", "right")]
    elif path.suffix.lower() == ".csv" and _has_sides(header_of(path, header) or []):
        sources = [CsvRows(path, header, side) for side in ("left", "right")]
    elif path.suffix.lower() == ".parquet" and _has_sides(names := parquet_names(path)):
        if "side" in names:
            rest = tuple(name for name in names if name != "side")
            sources = [ParquetColumns(path, rest, side) for side in ("left", "right")]
        else:
            sources = [
                ParquetColumns(path, ("left",), beside="right"),
                ParquetColumns(path, ("right",), beside="left"),
            ]
    return None if sources is None else [RecordedSide(source) for source in sources]


def _has_sides(names: Sequence[str]) -> bool:
    return ("side" in names and len(names) > 1) or sorted(names) == ["left", "right"]


def _one_side(place: str | os.PathLike[str], header: bool | None) -> RecordedSide:
    """Returns the outputs of a file that holds one side.

    Args:
        place: the file; `file.npz:name` for one of several arrays.
        header: whether a csv file has one; None finds out.
    """
    path, name = _split_place(place)
    kind = _check_file(path).suffix.lower()
    sources: dict[str, Callable[[], Source]] = {
        ".npy": lambda: ArrayFile(path),
        ".npz": lambda: ArrayFile(path, _member(path, name)),
        ".csv": lambda: CsvRows(path, header),
        ".jsonl": lambda: JsonLines(path),
        ".json": lambda: JsonList(path),
        ".parquet": lambda: ParquetColumns(path, tuple(parquet_names(path))),
    }
    if kind not in sources:
        others = ", ".join(list(sources)[:-1])
        raise InputError(f"{path}: recorded outputs are read from {others} and .parquet files")
    return RecordedSide(sources[kind]())


def _member(path: Path, name: str | None) -> str:
    """Returns the name of the array to read; None means the only one."""
    names = members(path)
    if name is None and len(names) != 1:
        raise InputError(
            f"{path} holds {len(names)} arrays ({', '.join(names)}); say which: {path}:NAME"
        )
    if name is not None and name not in names:
        raise InputError(f"{path} has no array {name!r}; it has {', '.join(names)}")
    return names[0] if name is None else name


def _split_place(place: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Splits `file.npz:name` into the file and the name of the array; None if there is no name."""
    file, colon, name = os.fspath(place).rpartition(":")
    if colon and file.lower().endswith(".npz"):
        return Path(file), name
    return Path(place), None


def _check_file(place: str | os.PathLike[str]) -> Path:
    """Returns the file, or raises an InputError if there is none."""
    file, _ = _split_place(place)
    return regular_file(file)
