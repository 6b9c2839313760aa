"""Results made by hand: no draws, no chance."""

from dataclasses import dataclass

import pytest

from epsilometer.bounds import Counts
from epsilometer.claims import PureDP
from epsilometer.inputs import Pair
from epsilometer.result import AuditResult, Finding, HealthReport, OnRequest, Verdict, Witness


@dataclass(frozen=True)
class NamedEvent:
    """An event of which only the words matter."""

    text: str

    def describe(self):
        return self.text

    def to_dict(self):
        return {"kind": "named", "text": self.text}


PURE = PureDP(1.0)
PAIR = Pair([0, 0], [0, 1])
COUNTS = Counts(4000, 10_000), Counts(500, 10_000)


@pytest.fixture
def make_result():
    """Makes a result; by default the refutation of ε = 1 by 4,000 hits against 500 of 10,000."""

    def make(
        verdict=Verdict.REFUTED,
        claim=PURE,
        bound=1.98765,
        pair=PAIR,
        event="output ≥ 0.5",
        counts=COUNTS,
        flipped=False,
        detectable=None,
        detectable_mass=None,
        p_value=None,
        blind=None,
        health=(),
        settings=None,
        guarantee="exact",
        witness=True,
    ):
        found = (
            Witness(pair, NamedEvent(event), flipped, *counts, p_lower=0.3891, q_upper=0.0551)
            if witness
            else None
        )
        return AuditResult(
            verdict=verdict,
            claim=claim,
            confidence=0.95,
            findings=(Finding("events", bound, guarantee, 0.95, found, claim),),
            samples_used=(14_000, 14_000),
            health=tuple(HealthReport(*each) for each in health),
            settings={"mechanism": "noisy_count", "seed": 7, "pairs": 1}
            if settings is None
            else settings,
            environment={"epsilometer": "0.1.0", "python": "3.11.7"},
            seconds=1.234,
            blind=blind,
            on_request=OnRequest(
                detectable=detectable, detectable_mass=detectable_mass, p_value=p_value
            ),
        )

    return make
