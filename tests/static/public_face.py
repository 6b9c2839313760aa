"""What a type checker must say about the public names. It is checked and never run.

`assert_type` fails if a type is another one. A line that must be a mistake has a comment that
expects the mistake: mypy complains of a comment that nothing needs.
"""

from typing import Any, assert_type

import numpy as np

import epsilometer as em
from epsilometer.auditing.planning import AuditPlan
from epsilometer.inputs import Inputs
from epsilometer.methods.published.ldp import HistogramPlan


def noisy_count(rows: list[int], rng: np.random.Generator) -> float:
    """A mechanism."""
    return sum(rows) + rng.laplace()


pair = em.Pair([1, 0], [1, 1])
claim = em.PureDP(1.0)

# An audit has a verdict, a measurement has none, and what is read from a file may have one.
result = em.audit(noisy_count, pair, claim)
assert_type(result.verdict, em.Verdict)
assert_type(em.measure(noisy_count, pair, em.PureDP).verdict, None)
assert_type(em.AuditResult.from_json("{}").verdict, em.Verdict | None)
assert_type(em.compare([0.0], [1.0], "eps=1").verdict, em.Verdict)
assert_type(em.compare([0.0], [1.0], em.RenyiDP, order=2.0).verdict, None)
em.compare([0.0], [1.0], em.PureDP(1.0), constant="leak")
assert_type(em.replay(result, noisy_count).verdict, em.Verdict)
assert_type(result.raise_if_refuted().verdict, em.Verdict)
result.verdict.nam  # type: ignore[attr-defined]


def lower_bound(any_result: em.AuditResult) -> float:
    """A function of any result, judged or not."""
    return any_result.lower_bound


lower_bound(result)
lower_bound(em.measure(noisy_count, pair))

# The witness can be used without a check.
assert_type(result.witness.pair.left, Any)
print(result.witness.event.describe())
result.witness.evnt  # type: ignore[union-attr]

# All that the verbs take as inputs.
domain = em.domains.Records(em.domains.Number(0, 1), size=(1, 12))
inputs: list[Inputs] = [
    pair,
    (0, 1),
    [pair, (0, 1)],
    domain,
    em.domains.Number(0, 1),
    em.domains.Integer(0, 9),
    em.domains.Boolean(),
    em.domains.Category(["a", "b"]),
    em.domains.Vector(3),
    em.domains.Queries(3),
    em.domains.Table({"age": em.domains.Integer(0, 99)}),
    em.finders.Random(domain),
    em.finders.Grid(domain),
    em.finders.Bayesian(domain),
    em.finders.Patterns(em.domains.Queries(3)),
    em.finders.Search(domain),
    em.around([{"age": 31}]),
]
for given in inputs:
    em.audit(noisy_count, given, claim)
    em.profile(noisy_count, given)
em.audit(noisy_count, 7, claim)  # type: ignore[arg-type]

# The planners.
assert_type(em.plan(claim, truth=1.5), AuditPlan)
assert_type(em.plan("eps=1", truth=1.5).event_probability, float)
assert_type(em.ldp.plan(precision=0.5, lipschitz=0.5, domain=(0, 1)), HistogramPlan)
em.plan(precision=0.5)  # type: ignore[call-arg]

# Misspelt names and settings are mistakes, in the namespaces, too.
em.adit  # type: ignore[attr-defined]
nothing: int = em.nothing  # type: ignore[attr-defined]
em.zoo.laplas()  # type: ignore[attr-defined]
em.domains.Vektor(3)  # type: ignore[attr-defined]
em.auditorium.mdm  # type: ignore[attr-defined]
em.audit(noisy_count, pair, claim, sampels=100)  # type: ignore[call-arg]
em.measure(noisy_count, pair, em.RenyiDP, ordre=2.0)  # type: ignore[call-arg]
assert_type(em.__version__, str)
