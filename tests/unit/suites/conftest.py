"""Outcomes made by hand."""

import pytest

from epsilometer.bounds import Counts
from epsilometer.claims import PureDP
from epsilometer.inputs import Pair
from epsilometer.outputs import Event, Partition
from epsilometer.result import AuditResult, Finding, Verdict, Witness
from epsilometer.suites import Outcome


@pytest.fixture
def make_result():
    """Makes a result with a claim, a bound and a witness that can be stored."""
    import numpy as np

    event = Event(Partition(()), np.array([True]))

    def make(verdict=Verdict.NOT_REFUTED, bound=0.9, claimed=1.0):
        claim = PureDP(claimed)
        witness = Witness(Pair(0, 1), event, False, Counts(10, 20), Counts(5, 20), 0.3, 0.4)
        finding = Finding("events", bound, "exact", 0.95, witness, claim)
        return AuditResult(
            verdict=verdict,
            claim=claim,
            confidence=0.95,
            findings=(finding,),
            samples_used=(50, 50),
            health=(),
            settings={"mechanism": "m", "seed": 1},
            environment={},
            seconds=0.5,
        )

    return make


@pytest.fixture
def make_outcome(make_result):
    """Makes an outcome; an error if a text is given for it."""

    def make(name="a", verdict=Verdict.NOT_REFUTED, bound=0.9, digest="d", error=None, claimed=1.0):
        result = None if error else make_result(verdict, bound, claimed)
        return Outcome(name, digest, result, error, "2026-01-01 00:00:00")

    return make
