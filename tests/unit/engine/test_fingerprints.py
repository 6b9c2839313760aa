"""What is remembered of chunks."""

import numpy as np

from epsilometer.engine import Fingerprints
from epsilometer.engine import chunks as fingerprints
from epsilometer.engine.chunks import HEAD, LONG_HEADS, SHORT_HEAD, fingerprint
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
