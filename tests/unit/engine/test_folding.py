"""What chunks add up to, next to the slow way that keeps them all."""

import numpy as np
import pytest

from epsilometer.bounds import Counts
from epsilometer.engine import Fingerprints, Folded, Phase, Sampler, folding
from epsilometer.engine.folding import TwoTallies
from epsilometer.engine.health import check_drift
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch

PAIR = Pair(0.0, 1.0)


def chunk_counts(n, seed):
    rng = np.random.default_rng(seed)
    return [Counts(int(rng.binomial(100, 0.3)), 100) for _ in range(n)]


def folded(counts):
    result = Folded()
    for number, each in enumerate(counts):
        result.add(each, each.trials, number.to_bytes(16))
    return result


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 64, 1000])
def test_groups_are_sums_of_neighbouring_chunks(n, monkeypatch):
    monkeypatch.setattr(folding, "MOST_GROUPS", 8)
    counts = chunk_counts(n, n)
    groups = folded(counts).groups
    assert len(groups.counts) <= 8
    starts = range(0, n, groups.width)
    assert groups.counts == [sum(counts[at : at + groups.width], Counts(0, 0)) for at in starts]
    assert groups.filled == n % groups.width


def test_few_chunks_stay_apart():
    counts = chunk_counts(folding.MOST_GROUPS - 1, 0)
    assert folded(counts).groups.counts == counts


def test_the_total_and_the_sizes():
    counts = chunk_counts(50, 1)
    result = folded(counts)
    assert (result.chunks, result.size, result.total) == (50, 5000, sum(counts, Counts(0, 0)))


def test_counts_of_two_events_keep_both_in_the_total_and_the_first_in_the_groups():
    result = Folded()
    for _ in range(3):
        result.add(TwoTallies(Counts(2, 5), Counts(1, 5)), 5, b"")
    assert result.total == TwoTallies(Counts(6, 15), Counts(3, 15))
    assert result.groups.counts == [Counts(2, 5)] * 3


def test_other_tallies_have_no_groups():
    result = Folded()
    for number in range(4):
        result.add(np.array([number, 1]), 2, bytes(16))
    assert result.total.tolist() == [6, 4]
    assert result.groups.counts == []


class Unaddable:
    def __add__(self, other):
        raise KeyboardInterrupt


def test_what_was_added_by_half_says_so():
    result = Folded()
    result.add(Unaddable(), 2, bytes(16))
    assert result.is_whole
    with pytest.raises(KeyboardInterrupt):
        result.add(Unaddable(), 2, bytes(16))
    assert not result.is_whole


def uniform(dataset, n, rng):
    return dataset + rng.random(n)


def count_low(outputs):
    return Counts(int(np.count_nonzero(outputs.blocks[0].columns[0].values < 0.5)), len(outputs))


def test_folding_is_adding_up_the_chunks():
    n = 20_000
    sampler = Sampler(from_batch(uniform), 5)
    drawn = list(
        sampler.draw(
            Phase.CERTIFY,
            0,
            PAIR,
            n,
            requests=sampler.requests(Phase.CERTIFY, 0, n),
            reductions=(count_low, count_low),
        )
    )
    earlier = [Fingerprints(), Fingerprints()]
    sampler = Sampler(from_batch(uniform), 5)
    for side, result in enumerate(
        sampler.fold(Phase.CERTIFY, 0, PAIR, n, (count_low, count_low), earlier=earlier)
    ):
        own = [chunk for request, chunk in drawn if request.side == side]
        assert result.total == sum((chunk.value for chunk in own), Counts(0, 0))
        assert result.groups.counts == [chunk.value for chunk in own]
        assert (result.chunks, result.size, sampler.drawn) == (len(own), n, [n, n])
        assert result.fingerprints is earlier[side]
        assert result.fingerprints.chunks == len(own)


class TestDriftOfManyChunks:
    """The check of the order of draws sees groups of neighbouring chunks when there are many."""

    def groups_of(self, shares, rng):
        result = Folded()
        for number, hits in enumerate(rng.binomial(100, shares)):
            result.add(Counts(int(hits), 100), 100, number.to_bytes(16))
        assert result.groups.width > 1
        return result.groups.counts

    @pytest.mark.parametrize("shape", ["slow", "wave"])
    def test_trips(self, rng, shape):
        time = np.linspace(0.0, 1.0, 20_000)
        drift = 0.02 * time if shape == "slow" else 0.05 * np.sin(40.0 * time)
        reports = check_drift(
            [self.groups_of(0.3 + drift, rng), self.groups_of(np.full(20_000, 0.3), rng)]
        )
        assert [report.name for report in reports] == ["drift"]
        assert "left" in reports[0].message

    def test_silent(self, rng):
        assert (
            check_drift([self.groups_of(np.full(20_000, share), rng) for share in (0.3, 0.01)])
            == []
        )
