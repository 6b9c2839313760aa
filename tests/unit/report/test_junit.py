"""JUnit XML that any parser takes."""

from xml.etree import ElementTree

import pytest

from epsilometer.report.junit import junit_case, junit_document, junit_error, render_junit
from epsilometer.result import Verdict

ATTACK = "]]><failure/>&\"'\x00\x1b\ud800\ufffe<![CDATA["


@pytest.mark.parametrize(
    ("verdict", "expected", "element"),
    [
        (Verdict.REFUTED, None, "failure"),
        (Verdict.NOT_REFUTED, None, "system-out"),
        (Verdict.INCONCLUSIVE, None, "error"),
        (None, None, "system-out"),
        (Verdict.REFUTED, Verdict.REFUTED, "system-out"),
        (Verdict.NOT_REFUTED, Verdict.REFUTED, "failure"),
    ],
)
def test_verdicts(make_result, verdict, expected, element):
    case = junit_case(make_result(verdict), "name", expected=expected)
    assert case.find(element) is not None
    assert sum(case.find(each) is not None for each in ("failure", "error", "system-out")) == 1


def test_counts_and_properties(make_result):
    root = ElementTree.fromstring(
        render_junit([make_result(), make_result(Verdict.NOT_REFUTED)], "ours")
    )
    (suite,) = root
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "ours",
        "2",
        "1",
        "0",
    )
    properties = {each.get("name"): each.get("value") for each in suite[0].iter("property")}
    assert properties["lower_bound"] == "1.98765"
    assert properties["false_alarm_rate"] == "0.05"
    assert "4,000 of 10,000" in suite[0].find("failure").text


def test_hostile_values_are_text(make_result):
    result = make_result(
        event=ATTACK,
        settings={"mechanism": ATTACK, "seed": ATTACK},
        health=[(ATTACK, ATTACK, True)],
    )
    text = junit_document(
        ATTACK, [junit_case(result, ATTACK), junit_error(ATTACK, ATTACK * 100_000)]
    )
    root = ElementTree.fromstring(text)
    assert text.isascii()
    assert len(list(root.iter("failure"))) == 1
    assert len(text) < 80_000
