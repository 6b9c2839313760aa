"""The result as a value and as a file."""

import copy
import json
import math
import pickle
import re
import time
from dataclasses import replace

import numpy as np
import pytest

import epsilometer as em
from epsilometer.bounds import Counts
from epsilometer.outputs import BlockPartition, Event, Group, Line, Partition
from epsilometer.result import AuditResult, Finding, HealthReport, OnRequest, Verdict, Witness

EVENT = Event(
    Partition((BlockPartition("float", (None,), (Group((-1,), Line(np.array([0.5]))),)),)),
    np.array([False, True, False, False, False]),
)
WITNESS = Witness(em.Pair(0.0, 1.0), EVENT, True, Counts(3, 100), Counts(90, 120), 0.6, 0.1)
CLAIMS = [
    em.PureDP(1.0),
    em.ApproxDP(1.0, 1e-6),
    em.claims.ApproxDeltaDP(1.0, 0.1),
    em.RenyiDP(2.0, 0.5),
    em.ZCDP(0.1),
    em.GaussianDP(0.7),
    em.TradeOffDP(([0.0, 0.5, 1.0], [0.9, 0.2, 0.0])),
    em.TradeOffDP(lambda error: (1 - error) ** 2),
]


def result(claim=None, **changes):
    claim = claim or em.PureDP(1.0)
    finding = Finding("events", 1.5, "exact", 0.95, WITNESS, claim, {"note": [1, 2]})
    made = AuditResult(
        verdict=Verdict.REFUTED,
        claim=claim,
        confidence=0.95,
        findings=(finding,),
        samples_used=(100, 120),
        health=(HealthReport("drift", "moved", True),),
        settings={"seed": 7},
        environment={"python": "3.11"},
        seconds=0.5,
        on_request=OnRequest(detectable=1.2),
    )
    return replace(made, **changes)


def test_the_deciding_finding_comes_first():
    first, second = (
        Finding("events", bound, "exact", 0.95, WITNESS, em.PureDP(1.0)) for bound in (0.3, 0.9)
    )
    both = result(findings=(first, second))
    assert both.lower_bound == 0.3
    assert both.guarantee == "exact"
    assert both.witness is WITNESS


def test_raise_if_refuted():
    with pytest.raises(em.PrivacyViolation) as caught:
        result().raise_if_refuted()
    assert isinstance(caught.value, AssertionError)
    assert caught.value.result.lower_bound == 1.5
    assert "1.5" in str(caught.value)
    first, empty, second, *_ = str(caught.value).splitlines()
    assert (">" in first, empty, second.startswith("REFUTED")) == (True, "", True)
    for verdict in (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, None):
        quiet = result(verdict=verdict)
        assert quiet.raise_if_refuted() is quiet


def test_counts_are_left_and_right():
    assert WITNESS.counts == (Counts(3, 100), Counts(90, 120))


@pytest.mark.parametrize(
    ("flipped", "left", "right", "sure"),
    [
        (False, Counts(9, 9), Counts(0, 9), True),
        (True, Counts(0, 9), Counts(9, 9), True),
        (False, Counts(0, 9), Counts(9, 9), False),
        (False, Counts(8, 9), Counts(0, 9), False),
        (False, Counts(9, 9), Counts(1, 9), False),
        (False, Counts(0, 0), Counts(0, 9), False),
        (False, Counts(9, 9), Counts(0, 0), False),
    ],
)
def test_always_here_never_there(flipped, left, right, sure):
    witness = replace(WITNESS, flipped=flipped, left_counts=left, right_counts=right)
    assert witness.is_deterministic is sure


class TestJson:
    @pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.notion)
    def test_round_trip_of_every_notion(self, claim):
        text = result(claim).to_json()
        back = AuditResult.from_json(text)
        assert AuditResult.from_json(back.to_json()).to_json() == back.to_json()
        assert back.verdict is Verdict.REFUTED
        assert type(back.claim) is type(claim)
        assert back.claim.value == claim.value
        assert back.lower_bound == 1.5
        assert back.samples_used == (100, 120)
        assert back.health == (HealthReport("drift", "moved", True),)
        assert back.witness.counts == WITNESS.counts
        assert back.witness.flipped
        assert back.witness.pair == em.Pair(0.0, 1.0)
        assert back.witness.event.describe() == "output ≥ 0.5"
        assert back.findings[0].details == {"note": [1, 2]}

    def test_keys(self):
        data = json.loads(result().to_json())
        needed = "verdict claim lower_bound confidence guarantee witness findings samples_used settings environment"
        assert set(needed.split()) | {"schema_version"} <= set(data)

    def test_strict_json(self):
        odd = result(
            on_request=OnRequest(detectable=math.inf), settings={"x": math.nan, "y": [math.inf]}
        )
        text = odd.to_json()
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert AuditResult.from_json(text).detectable == math.inf

    def test_a_measurement_has_no_verdict(self):
        back = AuditResult.from_json(result(verdict=None, on_request=OnRequest()).to_json())
        assert back.verdict is None
        assert back.detectable is None
        assert not back.is_refuted

    def test_a_finding_without_a_witness(self):
        bare = result(findings=(Finding("local", 0.3, "asymptotic", 0.95, None, em.PureDP(1.0)),))
        assert AuditResult.from_json(bare.to_json()).witness is None

    def test_can_be_written_to_a_file(self, tmp_path):
        odd = result(settings={"mechanism": "\ud800 and ε"})
        path = tmp_path / "result.json"
        path.write_text(odd.to_json(), encoding="utf-8")
        assert (
            AuditResult.from_json(path.read_text(encoding="utf-8")).settings["mechanism"]
            == "\ud800 and ε"
        )

    @pytest.mark.parametrize(
        "text", ["", "not json", "[]", "3", "null", "{}", '{"schema_version": 99}', '"text"']
    )
    def test_what_is_no_result(self, text):
        with pytest.raises(em.InputError):
            AuditResult.from_json(text)

    @pytest.mark.parametrize(
        "key", ["verdict", "claim", "findings", "samples_used", "health", "settings", "confidence"]
    )
    @pytest.mark.parametrize(
        "value", [None, 3, "text", [], [1], {}, {"notion": "pure"}, [[]], 1e999]
    )
    def test_damaged_results(self, key, value):
        data = json.loads(result().to_json())
        if value in (None, "text") and key == "verdict":
            value = {"text": "perhaps"}.get(value, 7)
        data[key] = value
        try:
            back = AuditResult.from_dict(data)
        except em.InputError:
            return
        # Harmless damage is fine, but then it must be a usable result.
        assert back.lower_bound == 1.5
        back.to_json()

    @pytest.mark.parametrize("key", list(json.loads(result().to_json())))
    def test_missing_keys(self, key):
        data = json.loads(result().to_json())
        del data[key]
        try:
            AuditResult.from_dict(data).to_json()
        except em.InputError:
            return
        assert key in (
            "blind",
            "detectable_mass",
            "lower_bound",
            "guarantee",
            "witness",
            "date",
            "identity",
            "p_value",
        )  # those of the first finding count


ASKED = []


def slow_value():
    """Stands for a simulation; a function of the module, so that it can be pickled."""
    ASKED.append(1)
    return 1.7


class TestWhatIsComputedOnRequest:
    @pytest.fixture
    def lazy(self):
        ASKED.clear()
        return result(on_request=OnRequest(detectable=slow_value))

    def test_once_and_not_before(self, lazy):
        assert lazy.lower_bound == 1.5
        assert not ASKED
        assert [lazy.detectable, lazy.detectable] == [1.7, 1.7]
        assert len(ASKED) == 1

    @pytest.mark.parametrize(
        "use",
        [
            repr,
            dir,
            lambda made: made == result(),
            lambda made: made == copy.copy(made),
            copy.copy,
            copy.deepcopy,
            lambda made: replace(made, seconds=2.0),
            lambda made: pickle.loads(pickle.dumps(made)),
        ],
        ids=["repr", "dir", "==", "== a copy", "copy", "deepcopy", "replace", "pickle"],
    )
    def test_a_result_is_data(self, lazy, use):
        use(lazy)
        assert not ASKED

    @pytest.mark.parametrize(
        "use",
        [
            copy.copy,
            copy.deepcopy,
            lambda made: replace(made, seconds=2.0),
            lambda made: pickle.loads(pickle.dumps(made)),
            lambda made: AuditResult.from_json(made.to_json()),
        ],
        ids=["copy", "deepcopy", "replace", "pickle", "json"],
    )
    def test_a_copy_can_still_compute_it(self, lazy, use):
        assert use(lazy).detectable == 1.7

    def test_copies_share_what_was_computed(self, lazy):
        other = replace(lazy, findings=lazy.findings * 2)
        assert other.detectable == 1.7
        assert lazy.detectable == 1.7
        assert len(ASKED) == 1

    def test_it_cannot_be_set(self, lazy):
        with pytest.raises(AttributeError):
            lazy.detectable = 2.0

    def test_real_results_can_be_pickled_before_anything_is_read(self):
        refuted = em.audit(em.zoo.dp_mean(), samples=1000, seed=0)
        kept = em.audit(em.zoo.laplace(), samples=1000, seed=0)
        for original in (refuted, kept):
            back = pickle.loads(pickle.dumps(original))
            assert back == original
            assert back.p_value == original.p_value
            assert back.identity == original.identity
        assert pickle.loads(pickle.dumps(kept)).detectable == kept.detectable

    def test_one_line_reprs(self):
        made = em.audit(em.zoo.dp_mean(), samples=1000, seed=0)
        for part in (made, made.findings[0], made.witness):
            text = repr(part)
            assert "\n" not in text
            assert len(text) < 160
        assert repr(made).startswith("<AuditResult refuted: ε ≥ ")


def test_results_with_arrays_in_their_witness_can_be_compared():
    def audited(seed):
        return em.audit(em.zoo.laplace(epsilon=2.0), claim="eps=1", samples=2000, seed=seed)

    one, other = audited(0), audited(1)
    assert one.witness is not None
    assert one == one
    assert one == AuditResult.from_json(one.to_json())
    assert one != other
    assert one != "a result"


def test_json_can_always_be_encoded():
    one = result(settings={"mechanism": "\ud800 ε"})
    text = one.to_json()
    assert text.isascii()
    assert json.loads(text)["settings"]["mechanism"] == "\ud800 ε"


def test_a_result_has_no_truth_value():
    with pytest.raises(TypeError, match="raise_if_refuted"):
        bool(result())


@pytest.mark.parametrize("confidence", [0.9999, 0.99999, 1.0 - 1e-9, 1.0 - 1e-15])
def test_no_confidence_is_shown_as_certainty(confidence):
    counts = np.arange(100)
    compared = em.compare(counts, counts + 0.5, em.PureDP(1.0), seed=0, confidence=confidence)
    found = em.profile(em.zoo.laplace(epsilon=1.0), samples=500, seed=0, confidence=confidence)
    for text in (str(compared), compared._repr_html_(), str(found)):
        assert "100%" not in re.sub(r'="[^"]*"', "", text)
    assert "99.99" in str(compared)


def test_what_was_waited_for_includes_what_was_computed_on_request():
    def slow():
        time.sleep(0.01)
        return 2.0

    waited = replace(result(), seconds=1.0, on_request=OnRequest(detectable=slow))
    assert waited.waited_seconds == 1.0
    assert waited.detectable == 2.0
    assert waited.waited_seconds >= 1.01
    assert waited.detectable_mass is None
