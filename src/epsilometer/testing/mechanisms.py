"""What every mechanism must satisfy."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
from cloudpickle import dumps  # as work goes to workers

from epsilometer.engine.fingerprints import fingerprint
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Outputs

_SIZES = (1, 2, 37)


class MechanismConformance:
    """Subclass it, name the subclass `Test…`, and give it the fixtures `mechanism` and `dataset`."""

    def test_it_introduces_itself(self, mechanism: Mechanism) -> None:
        """A name for reports, and the size of its chunks, which is part of the seed scheme."""
        assert isinstance(mechanism.name, str), "mechanism.name is not a string"
        assert mechanism.name, "mechanism.name is empty"
        assert isinstance(mechanism.is_seeded, bool), "mechanism.is_seeded is not a bool"
        assert mechanism.chunk_size >= 1, f"mechanism.chunk_size is {mechanism.chunk_size}"

    def test_as_many_outputs_as_asked_for(self, mechanism: Mechanism, dataset: Any) -> None:
        """Every output sits in exactly one block."""
        for n in _SIZES:
            outputs = _draw(mechanism, dataset, n)
            assert len(outputs) == n, f"asked for {n} outputs, got {len(outputs)}"
            rows = [np.arange(block.size) if block.rows is None else block.rows for block in outputs]
            assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(n)), "the blocks do not cover the outputs"
            for block in outputs:
                assert all(len(column) == block.size for column in block.columns), f"uneven columns in {block.shape}"

    def test_equal_generators_give_equal_outputs(self, mechanism: Mechanism, dataset: Any) -> None:
        """What `is_seeded` promises."""
        if mechanism.is_seeded:
            first, again = (fingerprint(_draw(mechanism, dataset, 37)) for _ in range(2))
            assert first == again, "is_seeded, but two equal generators gave different outputs"

    def test_global_random_state_is_left_alone(self, mechanism: Mechanism, dataset: Any) -> None:
        """A seeded mechanism takes nothing from generators that all code of a process shares."""
        if mechanism.is_seeded:
            before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002 # the shared one is meant
            _draw(mechanism, dataset, 37)
            after = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
            assert before == after, "is_seeded, but it draws from the shared generator of random or numpy.random"

    def test_dataset_is_not_changed(self, mechanism: Mechanism, dataset: Any) -> None:
        """The same object is given to every run."""
        before = dumps(dataset)
        _draw(mechanism, dataset, 37)
        assert dumps(dataset) == before, "a run changed its input"

    def test_it_can_be_sent_to_a_worker(self, mechanism: Mechanism, dataset: Any) -> None:
        """It survives the way to another process and draws there what it draws here."""
        sent = pickle.loads(dumps(mechanism))
        outputs = _draw(sent, dataset, 37)
        assert len(outputs) == 37, "a copy gave another number of outputs"
        if mechanism.is_seeded:
            assert fingerprint(outputs) == fingerprint(_draw(mechanism, dataset, 37)), "a copy gave other outputs"


def _draw(mechanism: Mechanism, dataset: Any, n: int) -> Outputs:
    return mechanism.sample(dataset, n, np.random.default_rng(20_250_101))
