"""The random numbers of methods: from the audit's seed, and from nowhere else."""

from itertools import product

import numpy as np
import pytest

import epsilometer as em
from epsilometer.engine import Phase
from epsilometer.engine.seeds import chunk_rng
from epsilometer.engine.streams import Purpose, Stream
from epsilometer.methods import Task

COIN = em.from_batch(lambda side, n, rng: rng.random(n) < (0.2, 0.3)[side], name="coin")


def first(rng):
    return int(rng.integers(2**63))


def test_every_stream_is_another_one_and_none_is_that_of_a_chunk():
    phases, numbers = list(Phase), range(3)
    own = [
        Stream(7, phase, pair).rng(purpose)
        for phase, pair, purpose in product(phases, numbers, Purpose)
    ]
    chunks = [
        chunk_rng(7, *key) for key in product(phases, numbers, range(3), (0, 1, 1 << 32, 3 << 32))
    ]
    seen = [first(rng) for rng in (*own, *chunks)]
    assert len(set(seen)) == len(seen)
    assert first(Stream(8).rng(Purpose.PROVE)) != first(Stream(7).rng(Purpose.PROVE))


def test_a_task_draws_the_same_numbers_whenever_it_is_asked():
    task = Task(em.PureDP(1.0), (100, 100), 0.05, Stream(3))
    assert first(task.proving_rng()) == first(task.proving_rng())
    assert first(task.proving_rng()) != first(task.learning_rng())


def test_a_task_without_a_stream_has_fresh_entropy():
    one, two = (Task(em.PureDP(1.0), (100, 100), 0.05) for _ in range(2))
    assert one.stream != two.stream


def published(**settings):
    options = em.auditorium.hockey_stick.Options(certificate="published")
    return em.audit(
        COIN,
        em.Pair(0, 1),
        em.PureDP(0.1),
        samples=4000,
        method="hockey-stick",
        options=options,
        **settings,
    )


def test_a_randomised_certificate_is_repeatable_on_any_number_of_workers():
    bounds = {published(seed=5, jobs=jobs).lower_bound for jobs in (1, 2)}
    assert len(bounds) == 1


def test_a_randomised_certificate_survives_an_interruption(tmp_path):
    path = tmp_path / "audit.checkpoint"
    whole = published(seed=5)

    class Interrupting:
        def __init__(self):
            self.left = 6000

        def advance(self, n):
            self.left -= n
            if self.left < 0:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        published(seed=5, checkpoint=path, progress=Interrupting())
    resumed = published(seed=5, checkpoint=path)
    assert resumed.findings[0].to_dict() == whole.findings[0].to_dict()


def test_another_seed_makes_another_mixture():
    """On the same draws: the recorded sides are the same, and so are their tallies up to the shuffle."""
    sides = [np.repeat([True, False], [n, 5000 - n]) for n in (1500, 1000)]
    options = em.auditorium.hockey_stick.Options(certificate="published")
    bounds = {
        em.compare(*sides, em.PureDP, method="hockey-stick", options=options, seed=seed).lower_bound
        for seed in range(6)
    }
    assert len(bounds) > 1
