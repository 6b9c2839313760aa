"""Parts of numbers: their values for known days and numbers, their names, and plain data."""

import datetime
import json

import numpy as np
import pytest

from epsilometer.outputs import BlockPartition, Event, Group, Line, Partition, read_outputs
from epsilometer.outputs.number_parts import (
    NumberPart,
    PartKind,
    ShapeParts,
    may_have_parts,
    shape_parts_from_dict,
)
from epsilometer.outputs.shapes import leaves_of
from epsilometer.outputs.text_reading import TextReading, reading_from_dict

WEEKDAY = NumberPart(0, PartKind.WEEKDAY, 7)
HOUR = NumberPart(0, PartKind.HOUR, 24)
LAST_DIGIT = NumberPart(0, PartKind.LAST_DIGIT, 10)
PARITY = NumberPart(0, PartKind.REMAINDER, 2)
# A Thursday, a Saturday and a Sunday, the last one before 1970.
MOMENTS = [
    datetime.datetime(1970, 1, 1, 0, 0),
    datetime.datetime(2024, 6, 1, 23, 59, 59, 999_999),
    datetime.datetime(1969, 12, 28, 5, 30),
]


def part_of(values, part):
    """The part of each of some outputs, as the reading of their shape finds it."""
    (block,) = read_outputs(values).blocks
    return ShapeParts(block.shape, (part,)).read(block).columns[-1].values.tolist()


def as_numpy(unit):
    return np.array([np.datetime64(moment, unit) for moment in MOMENTS])


class TestValues:
    def test_weekdays(self):
        assert part_of([moment.date() for moment in MOMENTS], WEEKDAY) == [3, 5, 6]
        assert part_of(MOMENTS, WEEKDAY) == [3, 5, 6]
        zone = datetime.timezone(datetime.timedelta(hours=-5))
        assert part_of([moment.replace(tzinfo=zone) for moment in MOMENTS], WEEKDAY) == [3, 5, 6]

    @pytest.mark.parametrize("unit", ["D", "h", "m", "s", "ms", "us"])
    def test_weekdays_of_numpy(self, unit):
        assert part_of(as_numpy(unit), WEEKDAY) == [3, 5, 6]

    def test_weekdays_of_long_numbers(self):
        times = np.array(["2024-06-01T23:59:59", "2024-06-02T00:00:00"], "datetime64[ns]")
        assert part_of(times, WEEKDAY) == [5, 6]
        assert part_of(times, HOUR) == [23, 0]

    def test_hours(self):
        assert part_of(MOMENTS, HOUR) == [0, 23, 5]
        assert part_of(as_numpy("s"), HOUR) == [0, 23, 5]

    def test_last_digits_and_remainders(self):
        assert part_of([0, 7, 123, 90], LAST_DIGIT) == [0, 7, 3, 0]
        assert part_of([-123], LAST_DIGIT) == [3]
        assert part_of([-3, -2, 4, 5], PARITY) == [1, 0, 0, 1]
        assert part_of([-1, 8], NumberPart(0, PartKind.REMAINDER, 7)) == [6, 1]

    def test_what_is_no_integer_has_no_part(self):
        values = part_of([3.0, 2.5, np.nan, np.inf, -np.inf, 1e300], LAST_DIGIT)
        assert values[0] == 3
        assert np.isnan(values[1:]).all()


class TestShapes:
    def test_parts_are_the_last_columns(self):
        rows = [(moment.date(), "A", 17) for moment in MOMENTS]
        (block,) = read_outputs(rows).blocks
        last_digit = NumberPart(2, PartKind.LAST_DIGIT, 10)
        read = ShapeParts(block.shape, (WEEKDAY, last_digit)).read(block)
        assert read.columns[:3] == block.columns
        assert [leaf.path for leaf in leaves_of(read.shape)] == [
            "output[0]",
            "output[1]",
            "output[2]",
            "the weekday of output[0]",
            "the last digit of output[2]",
        ]

    def test_shapes_whose_columns_are_unknown(self):
        assert may_have_parts("{a: int, b: bigint}", 3)
        assert not may_have_parts("{a: int, b: bigint}", 2)
        assert not may_have_parts("featured{features: int, output: int}", 2)

    def test_other_shapes_and_read_outputs_stay_as_they_are(self):
        reading = TextReading((), parts=(ShapeParts("int", (PARITY,)),))
        outputs = read_outputs([1, 2.5, 4])
        read = reading.read(outputs)
        assert [len(block.columns) for block in read] == [2, 1]
        assert reading.read(read) is read
        assert reading.leave_out(outputs) is outputs


def told(part, shape, chosen):
    """An event of a part, in words; `chosen` are its values."""
    parts = ShapeParts(shape, (part,))
    line = Line(np.arange(-0.5, part.modulus))
    group = Group((-1, -1), line, column=1)
    block = BlockPartition(parts.shape_with_parts, (None, None), (group,))
    mask = np.zeros(line.n_cells + 2, dtype=np.bool_)
    mask[np.array(chosen) + 1] = True
    return Event(Partition((block,), TextReading((), parts=(parts,))), mask).describe()


class TestWords:
    @pytest.mark.parametrize(
        ("part", "shape", "chosen", "words"),
        [
            (WEEKDAY, "date", [1], "the weekday of output is Tuesday"),
            (WEEKDAY, "date", [5, 6], "the weekday of output is one of Saturday, Sunday"),
            (WEEKDAY, "date", [0, 1, 2], "the weekday of output between Monday and Wednesday"),
            (WEEKDAY, "date", [0, 1, 2, 3, 4, 5], "the weekday of output is not Sunday"),
            (HOUR, "datetime", [0], "the hour of output is 0"),
            (LAST_DIGIT, "int", [7], "the last digit of output is 7"),
            (PARITY, "int", [1], "the parity of output is odd"),
            (
                NumberPart(0, PartKind.REMAINDER, 4),
                "int",
                [3],
                "the remainder of output modulo 4 is 3",
            ),
        ],
    )
    def test_told(self, part, shape, chosen, words):
        assert told(part, shape, chosen) == words


class TestData:
    def test_stored_and_restored(self):
        reading = TextReading((), parts=(ShapeParts("{a: date, b: int}", (WEEKDAY,)),))
        assert reading_from_dict(json.loads(json.dumps(reading.to_dict()))) == reading

    @pytest.mark.parametrize(
        "changes",
        [
            {"column": 2},
            {"column": -1},
            {"column": True},
            {"column": 1},
            {"kind": "hour"},
            {"kind": "month"},
            {"modulus": 8},
            {"modulus": "7"},
        ],
    )
    def test_forged_parts_are_refused(self, changes):
        data = ShapeParts("{a: date, b: str}", (WEEKDAY,)).to_dict()
        data["parts"][0] |= changes
        with pytest.raises((ValueError, TypeError)):
            shape_parts_from_dict(data)

    def test_parts_of_texts_that_were_not_read_are_refused(self):
        read = ShapeParts("int", (PARITY,)).shape_with_parts
        with pytest.raises(ValueError, match="does not know"):
            reading_from_dict([ShapeParts(read, (PARITY,)).to_dict()])
