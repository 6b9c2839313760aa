"""What is remembered of chunks."""

import zlib

import numpy as np

from epsilometer.engine import Fingerprints, fingerprints
from epsilometer.engine.fingerprints import HEAD, LONG_HEADS, SHORT_HEAD, fingerprint, row_hashes
from epsilometer.outputs import read_outputs


def heads(prints):
    return [head.tolist() for head in prints.heads]


def filled(n, size=HEAD):
    prints = Fingerprints()
    for number in range(n):
        prints.add(np.arange(number, number + size, dtype=np.uint64).tobytes())
    return prints


def test_the_head_of_a_chunk_is_what_counts():
    draws = np.arange(1000.0)
    assert fingerprint(read_outputs(draws)) == fingerprint(read_outputs(draws[:HEAD]))
    assert len(fingerprint(read_outputs(draws[:5]))) == 8 * 5


def test_they_come_back_from_bytes():
    for prints in (Fingerprints(), filled(1, 0), filled(3, 1), filled(LONG_HEADS + 20)):
        again = Fingerprints.from_bytes(prints.to_bytes())
        assert heads(again) == heads(prints)
        again.add(bytes(80))
        copied = prints.copy()
        copied.add(bytes(80))
        assert heads(again) == heads(copied)
        assert again.chunks == copied.chunks == prints.chunks + 1


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(fingerprints, "MOST_ROWS", HEAD * LONG_HEADS + 3 * SHORT_HEAD + 1)
    kept = [len(head) for head in heads(filled(LONG_HEADS + 20))]
    assert kept == [HEAD] * LONG_HEADS + [SHORT_HEAD] * 3 + [1]


def slow_row_hashes(outputs):
    """Literally: every column, with its place and the shape, mixed by the finaliser of splitmix64; then their sum."""
    found = [0] * outputs.size
    for block in outputs.blocks:
        shape = zlib.crc32(block.shape.encode())
        columns = [column.values.view(np.uint64).tolist() for column in block.columns] or [
            [0] * block.size
        ]
        for row_in_block, row in enumerate(block.places().tolist()):
            for place, column in enumerate(columns, start=1):
                total = (column[row_in_block] + place * 0x9E3779B97F4A7C15 + shape) % 2**64
                total = (total ^ (total >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
                total = (total ^ (total >> 27)) * 0x94D049BB133111EB % 2**64
                found[row] = (found[row] + (total ^ (total >> 31))) % 2**64
    return found


def test_hashes_of_rows_are_those_of_a_slow_twin():
    outputs = read_outputs([1.5, (2.5, -0.0), 3, None, (1.0, 7.0), float("inf"), 1.5])
    assert row_hashes(outputs).tolist() == slow_row_hashes(outputs)


def test_hashes_of_wide_rows_tell_them_apart():
    """Every value counts, and its place; a bit of the hash is a coin, although the values have few bits."""
    rows = np.random.default_rng(0).integers(0, 2, (2000, 128)).astype(bool)
    rows[1] = rows[0]
    rows[2] = np.roll(rows[0], 1)
    rows[3], rows[3, 77] = rows[0], not rows[0, 77]
    hashes = row_hashes(read_outputs(rows))
    assert hashes[0] == hashes[1]
    assert len(set(hashes.tolist())) == len(rows) - 1
    shares = [float((hashes >> np.uint64(bit) & np.uint64(1)).mean()) for bit in range(64)]
    assert max(abs(share - 0.5) for share in shares) < 0.08  # 7 standard deviations
