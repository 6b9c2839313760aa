"""The floating-point view."""

import numpy as np
import pytest

from epsilometer.outputs import BitsEvent, Event, read_outputs
from epsilometer.outputs.bits import as_bits_event, bit_codes, bits_view
from epsilometer.outputs.lines import Line
from epsilometer.outputs.partition import BlockPartition, Group, Partition
from epsilometer.testing import HOSTILE_NUMBERS


def literal_code(value):
    """Sign, exponent and trailing zeros from Python's own hexadecimal text of the float's 64 bits."""
    raw = int(np.float64(value).view(np.uint64))
    sign, exponent, mantissa = raw >> 63, (raw >> 52) & 0x7FF, raw & ((1 << 52) - 1)
    bits = f"{mantissa:052b}"
    if exponent == 0x7FF and mantissa:  # NaN keeps all of its bits, outside the codes of numbers
        return -1 - mantissa if sign else (1 << 20) + mantissa
    zeros = len(bits) - len(bits.rstrip("0")) if mantissa else 52
    return (exponent << 7) | (zeros << 1) | sign


def test_codes_against_a_literal_twin():
    rng = np.random.default_rng(2)
    values = np.concatenate(
        [rng.normal(size=200), rng.normal(size=50).round(2), np.arange(-8.0, 9.0), HOSTILE_NUMBERS]
    )
    assert bit_codes(values).tolist() == [literal_code(value) for value in values]


def test_only_floats_are_seen_differently():
    outputs = read_outputs([(1, 0.5, "a"), (2, 0.75, "b")])
    block = bits_view(outputs).blocks[0]
    assert block.columns[0].values.tolist() == [1, 2]
    assert block.columns[1].values.tolist() == [literal_code(0.5), literal_code(0.75)]
    assert block.columns[2].labels == outputs.blocks[0].columns[2].labels


def an_event(*codes):
    """The event of some codes."""
    edges = np.unique([edge for code in codes for edge in (code, np.nextafter(code, np.inf))])
    line = Line(edges)
    chosen = np.zeros(line.n_cells + 2, dtype=bool)
    chosen[line.index(np.array(codes, dtype=float))] = True
    part = Partition((BlockPartition("float", (None,), (Group((-1,), line),)),))
    return as_bits_event(Event(part, chosen))


def test_event_sees_outputs_through_their_bits():
    event = an_event(literal_code(0.5), literal_code(-0.75))
    values = np.array([0.5, -0.5, 0.75, -0.75, 0.625])
    assert event.contains(values).tolist() == [True, False, False, True, False]
    assert event.contains(read_outputs(values)).sum() == 2
    assert event.simplified().contains(read_outputs(values)).sum() == 2
    many = np.tile(values, 10_000)  # the way by a look-up table
    assert event.contains(read_outputs(many)).sum() == 20_000


def test_event_in_words_and_in_files():
    event = an_event(literal_code(0.5), literal_code(-0.75))
    text = event.describe()
    assert text.startswith("the low-order bits of the output reveal the input")
    assert "2^-1 ≤ |output| < 2^0 and 52 trailing zero bits, positive" in text
    assert "51 trailing zero bits, negative" in text
    again = Event.from_dict(event.to_dict())
    assert isinstance(again, BitsEvent)
    assert again.describe() == text
    values = np.array([0.5, 0.75])
    assert again.contains(values).tolist() == event.contains(values).tolist()


@pytest.mark.parametrize(("value", "words"), [(0.0, "zero or subnormal"), (np.inf, "infinite")])
def test_numbers_without_an_exponent(value, words):
    assert words in an_event(literal_code(value)).describe()


def test_ordinary_events_stay_ordinary():
    event = an_event(4)
    plain = Event(event.partition, event.chosen)
    assert type(Event.from_dict(plain.to_dict())) is Event


def test_the_width_of_a_float_and_the_bits_of_nan_are_seen():
    nans = np.array(
        [0x7FF8000000000000, 0x7FF8000000000001, 0x7FF8000000000003, 0xFFF8000000000000],
        dtype=np.uint64,
    )
    codes = bit_codes(nans.view(np.float64)).tolist()
    for kind in (np.float64, np.float32, np.float16, np.longdouble):
        codes += (
            bits_view(read_outputs(np.array([0.5, 1.5, -0.0], dtype=kind)))
            .blocks[0]
            .columns[0]
            .values.tolist()
        )
    assert len(set(codes)) == len(codes)
    assert len({float(code) for code in codes}) == len(codes)  # cells are cut on a line of doubles


def test_events_of_widths_and_nan_are_counted_alike_on_both_ways_and_have_words():
    values = [np.float32(0.5), 0.5, np.float16(0.5), np.float64("nan"), np.float64("-nan"), 0.75]
    outputs = read_outputs(values)
    codes = bits_view(outputs).blocks[0].columns[0].values.tolist()
    many = read_outputs(values * 10_000)
    for code, words in zip(
        codes, ("in 4 bytes", "trailing", "in 2 bytes", "NaN", "NaN", "trailing"), strict=True
    ):
        event = an_event(code)
        assert event.contains(values).tolist() == [each == code for each in codes]
        assert (event.contains(outputs).sum(), event.contains(many).sum()) == (1, 10_000)
        assert words in event.describe()
