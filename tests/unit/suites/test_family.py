"""Holm's procedure beside its literal twin, exact error rates by enumeration, and who belongs to a family."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from epsilometer.result import HealthReport, OnRequest, Verdict
from epsilometer.suites import Entry, Terms, family_digest, judge_family
from epsilometer.suites.family import holm_adjusted, night_share, repeated_draws

TERMS = Terms(confidence=0.95, night=None, seed=7)


def rejected_step_by_step(p_values, level):
    """Holm's procedure as the paper tells it: from the smallest on, until one is too large."""
    remaining = dict(enumerate(p_values))
    rejected = set()
    while remaining:
        smallest = min(remaining, key=remaining.get)
        if remaining[smallest] * len(remaining) > level:
            break
        rejected.add(smallest)
        del remaining[smallest]
    return rejected


@pytest.mark.parametrize("size", range(5))
def test_adjusted_p_values_reject_what_the_procedure_rejects(size):
    for p_values in itertools.product((0.0, 0.01, 0.0125, 0.02, 0.025, 0.05, 1.0), repeat=size):
        adjusted = holm_adjusted(p_values)
        for level in (0.01, 0.05, 0.1, 0.5):
            expected = rejected_step_by_step(p_values, level)
            assert {
                position for position, value in enumerate(adjusted) if value <= level
            } == expected


def exact_test(n, probability, true_probability):
    """The possible p-values of a one-sided binomial test, and the chance of each."""
    hits = np.arange(n + 1)
    return binom.sf(hits - 1, n, probability), binom.pmf(hits, n, true_probability)


@pytest.mark.parametrize("true_claims", [(0, 1, 2), (0, 1), (2,)])
@pytest.mark.parametrize("level", [0.05, 0.2, 0.5])
def test_error_of_a_small_family_by_enumeration(true_claims, level):
    """Every outcome of three exact tests, at the boundary or far beyond it, with its probability."""
    tests = [exact_test(6, 0.5, 0.5 if claim in true_claims else 0.8) for claim in range(3)]
    chance_of_error = 0.0
    for outcome in itertools.product(range(7), repeat=3):
        p_values = [tests[claim][0][hits] for claim, hits in enumerate(outcome)]
        chance = math.prod(tests[claim][1][hits] for claim, hits in enumerate(outcome))
        adjusted = holm_adjusted(p_values)
        if any(adjusted[claim] <= level for claim in true_claims):
            chance_of_error += chance
    assert chance_of_error <= level


def test_error_of_twenty_true_claims_by_enumeration():
    """Judged one by one, twenty tests of exactly 5 % refute some true claim in 64 %; as a family in 5 %."""
    level, size = 0.05, 20
    # Randomised tests reach their level exactly, so this is the worst case: p-values on a fine uniform grid.
    p_values = np.arange(1, 4001) / 4000
    one_by_one = 1.0 - (1.0 - np.mean(p_values <= level)) ** size
    assert one_by_one == pytest.approx(1.0 - 0.95**20)
    assert one_by_one > 0.64
    # With the smallest of them at p the family refutes something just if its adjusted p-value is at most the level.
    survives = np.array([min(holm_adjusted([p, *[1.0] * (size - 1)])) <= level for p in p_values])
    as_family = 1.0 - (1.0 - np.mean(survives)) ** size
    assert as_family == pytest.approx(1.0 - (1.0 - level / size) ** size)
    assert as_family <= level


def test_nights_sum_to_one():
    shares = [night_share(night) for night in range(1, 100_000)]
    assert 0.9999 < math.fsum(shares) < 1.0
    assert shares[0] == pytest.approx(0.6079, abs=1e-4)
    assert Terms(0.95, 2, 0).failure_probability == pytest.approx(0.05 * night_share(2))


@pytest.fixture
def judged(make_outcome):
    """Judges a family described by name: (p-value, or what else happened to the audit)."""

    def judge(described, terms=TERMS, **expected):
        entries, outcomes, begun_again = [], {}, []
        for name, what in described.items():
            settings = {"mechanism": "m:f"}
            outcome = (
                make_outcome(name, error="no such module")
                if what == "error"
                else make_outcome(name)
            )
            if isinstance(what, float):
                verdict = Verdict.REFUTED if what <= 0.05 else Verdict.NOT_REFUTED
                changed = {"verdict": verdict, "on_request": OnRequest(p_value=what)}
                outcome = replace(outcome, result=replace(outcome.result, **changed))
            elif what == "inconclusive":
                report = HealthReport("drift", "drift", untrusted=True)
                changed = {"verdict": Verdict.INCONCLUSIVE, "health": (report,)}
                outcome = replace(outcome, result=replace(outcome.result, **changed))
            elif what == "measured":
                settings["notion"] = "pure"
                outcome = replace(outcome, result=replace(outcome.result, verdict=None))
            elif what in ("asymptotic", "conditional: densities are smooth"):
                finding = replace(outcome.result.findings[0], guarantee=what)
                changed = {
                    "verdict": Verdict.REFUTED,
                    "findings": (finding,),
                    "on_request": OnRequest(p_value=1e-9),
                }
                outcome = replace(outcome, result=replace(outcome.result, **changed))
            elif what in ("begun again", "begun again with its seed"):
                begun_again.append(name)
                facts = {"seeded_mechanism": what != "begun again"}
                changed = {
                    "verdict": Verdict.REFUTED,
                    "settings": facts,
                    "on_request": OnRequest(p_value=1e-9),
                }
                outcome = replace(outcome, result=replace(outcome.result, **changed))
            entries.append(Entry(name, settings, "d", expected.get(name)))
            outcomes[name] = outcome
        family = judge_family(entries, outcomes, terms, begun_again)
        return family, {entry.name: family.status(entry, outcomes[entry.name]) for entry in entries}

    return judge


def test_a_refutation_that_does_not_survive_is_refuted_alone(judged):
    family, statuses = judged({"strong": 0.001, "weak": 0.04, "none": 1.0})
    assert family.survivors == ("strong",)
    assert family.refuted_alone == ("weak",)
    assert statuses == {"strong": 1, "weak": 0, "none": 0}
    assert family.members["weak"].adjusted == pytest.approx(0.08)
    assert family.remark("weak") == "adjusted p 0.08"


def test_an_audit_without_evidence_still_counts(judged):
    """Dropping an audit because of its draws must not help the others."""
    helped, _ = judged({"weak": 0.02, "other": 1.0})
    assert helped.survivors == ("weak",)
    for trouble in ("inconclusive", "error"):
        family, statuses = judged({"weak": 0.02, "other": 1.0, "third": trouble})
        assert (family.size, family.survivors) == (3, ())
        assert statuses["third"] == {"inconclusive": 3, "error": 2}[trouble]


def test_what_stands_apart(judged):
    described = {"asked": 0.04, "rough": "asymptotic", "if": "conditional: densities are smooth"}
    described |= {"broken": 1e-9, "how much": "measured"}
    family, statuses = judged(described, broken=Verdict.REFUTED)
    assert list(family.members) == ["asked"]
    assert set(family.apart) == {"rough", "if", "broken", "how much"}
    assert family.survivors == ("asked",)  # a family of one
    assert family.refuted_alone == ("rough", "if")
    assert statuses == {"asked": 1, "rough": 0, "if": 0, "broken": 0, "how much": 0}
    assert "its guarantee is not exact but asymptotic" in "\n".join(family.sentences())


def test_a_second_attempt_counts_only_with_the_same_draws(judged):
    family, _ = judged({"mine": "begun again", "seeded": "begun again with its seed"})
    assert family.members["mine"].p_value == 1.0
    assert family.survivors == ("seeded",)
    assert family.refuted_alone == ("mine",)


def test_without_a_p_value_the_verdict_speaks(make_outcome):
    outcomes = {"a": make_outcome("a", Verdict.REFUTED), "b": make_outcome("b")}
    entries = [Entry(name, {"mechanism": "m:f"}, "d") for name in outcomes]
    family = judge_family(entries, outcomes, TERMS)
    assert [member.p_value for member in family.members.values()] == [pytest.approx(0.05), 1.0]
    assert family.refuted_alone == ("a",)


def test_a_stricter_audit_stays_strict(judged):
    """The family may refute what the audit, at its own higher confidence, did not: then it is not refuted."""
    family, statuses = judged({"strict": 0.0501})
    assert family.members["strict"].adjusted == pytest.approx(0.0501)
    family, statuses = judged({"strict": 0.0501}, terms=Terms(0.5, None, 0))
    assert (family.survivors, statuses) == ((), {"strict": 0})


def test_a_night_pays_its_share(judged):
    described = {"a": 0.001, "b": 1.0}
    assert judged(described, Terms(0.95, 1, 0))[0].survivors == ("a",)
    family, _ = judged(described, Terms(0.95, 9, 0))
    assert family.survivors == ()
    assert "over all nights; night 9 may spend 0.000376 of" in family.sentences()[0]


def test_settings_of_a_run():
    plain = Entry("a", {"mechanism": "m:f", "samples": 9}, "d")
    found = TERMS.settings_for(plain, 20)
    assert found == {"mechanism": "m:f", "samples": 9, "seed": found["seed"]}
    assert found["seed"] != TERMS.settings_for(replace(plain, name="b"), 20)["seed"]
    assert found["seed"] != Terms(0.95, None, 8).settings_for(plain, 20)["seed"]
    assert TERMS.settings_for(Entry("a", {"seed": 3}, "d"), 20)["seed"] == 3
    assert "seed" not in TERMS.settings_for(Entry("a", {"checkpoint": "c"}, "d"), 20)


def test_an_audit_that_stops_early_goes_on_until_it_survives():
    for settings in ({"stop_early": True}, {"method": "sequential"}):
        confidence = TERMS.settings_for(Entry("a", settings, "d"), 20)["confidence"]
        assert 1.0 - 0.05 / 20 < confidence < 1.0 - 0.98 * 0.05 / 20
    strict = Entry("a", {"stop_early": True, "confidence": 0.9999}, "d")
    assert TERMS.settings_for(strict, 20)["confidence"] == 0.9999
    expected = Entry("a", {"stop_early": True}, "d", Verdict.REFUTED)
    assert "confidence" not in TERMS.settings_for(expected, 20)


def test_the_same_draws_are_no_new_evidence():
    entries = [
        Entry("fixed", {"mechanism": "m:f", "seed": 0}, "d"),
        Entry("kept", {"mechanism": "m:f", "checkpoint": "c"}, "d"),
        Entry("recorded", {"mechanism": "recording:a.npz"}, "d"),
        Entry("new", {"mechanism": "m:f"}, "d"),
        Entry("broken", {"mechanism": "m:f", "seed": 0}, "d", Verdict.REFUTED),
    ]
    assert set(repeated_draws(entries)) == {"fixed", "kept", "recorded"}


def test_the_digest_follows_every_audit():
    one, other = Entry("a", {}, "d"), Entry("b", {}, "d")
    digests = [
        family_digest(entries)
        for entries in (
            [one],
            [one, other],
            [replace(one, digest="e")],
            [replace(one, expected=Verdict.REFUTED)],
        )
    ]
    assert len(set(digests)) == 4
