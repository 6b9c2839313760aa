"""Whatever weakens a reading stands next to the verdict, in every kind of report."""

import re
from xml.etree import ElementTree

import pytest

import epsilometer as em
from epsilometer.report.html import render_html
from epsilometer.report.junit import render_junit
from epsilometer.report.markdown import render_markdown
from epsilometer.report.notebook import render_fragment
from epsilometer.report.reservations import recorded_rows, reservations
from epsilometer.report.text import render_text
from epsilometer.result import Verdict

# The facts, and what is said about them.
SENTENCES = [
    ({"suppress": ["drift"]}, "the drift check switched off"),
    ({"suppress": ["constant", "drift"]}, "the checks constant and drift switched off"),
    (
        {
            "suppress": ["constant", "drift", "serial-correlation"],
            "silenced": ["drift", "serial-correlation"],
        },
        "the checks constant, drift and serial-correlation switched off "
        "(drift and serial-correlation would have remarked on these draws)",
    ),
    ({"on_error": "outcome"}, "failed runs counted as outcomes"),
    (
        {"on_error": "outcome", "failed": [3, 1000]},
        "failed runs counted as outcomes (3 left, 1,000 right)",
    ),
    ({"failed": [3, 0]}, "failed runs counted as outcomes (3 left, 0 right)"),
    ({"retried": [3, 14]}, "requests sent again (3 left, 14 right)"),
    ({"redrawn": [64, 0]}, "draws that were begun, lost and drawn again (64 left, 0 right)"),
    ({"statuses": [0, 3]}, "the exit statuses 0 and 3 taken for success"),
    ({"columns": ["age", "city"]}, "no look at columns other than age and city"),
    ({"representation": "bits"}, "no look at anything but the bits of floating-point numbers"),
    (
        {"features": {"name": "decoded", "digest": "", "place": ""}},
        "features of the outputs (decoded)",
    ),
    ({"distance": 2}, "inputs that are 2 neighbouring steps apart"),
    (
        {"suppress": ["drift"], "retried": [1, 0], "distance": 3},
        "the drift check switched off; requests sent again (1 left, 0 right); "
        "inputs that are 3 neighbouring steps apart",
    ),
]
ABOUT = {"mechanism": "noisy_count", "seed": 7, "pairs": 1}


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize(("facts", "sentence"), SENTENCES)
def test_the_sentence(facts, sentence):
    assert reservations({**ABOUT, **facts}) == sentence


def test_nothing_is_said_where_there_is_nothing_to_say(make_result):
    harmless = {
        **ABOUT,
        "representation": "all",
        "distance": 1,
        "suppress": [],
        "on_error": "raise",
    }
    assert reservations(harmless) is None
    result = make_result(settings=harmless)
    assert "    with " not in render_text(result)
    assert "Note: with" not in render_html(result)


@pytest.mark.parametrize(
    "facts",
    [
        {"suppress": 3},
        {"suppress": {"a": 1}, "silenced": None},
        {"suppress": [["x"], None, "\x1b[31m<b>"]},
        {"failed": "many", "on_error": "outcome"},
        {"retried": [1]},
        {"redrawn": [None, "<script>"]},
        {"features": "<script>alert(1)</script>"},
        {"distance": {"a": 2}},
        {"statuses": None, "columns": 5},
        {"recording": 5},
        {"recording": {"draws": [5, {"rows": "x"}, {"proved": [[1]]}]}},
    ],
)
def test_foreign_facts_do_no_harm(facts, make_result):
    result = make_result(settings={**ABOUT, **facts})
    pages = render_html(result), render_fragment(result), render_markdown([result])
    assert not any("\x1b" in text for text in (render_text(result), *pages))
    assert not any("<script>" in text for text in pages)
    ElementTree.fromstring(render_junit([result]))


FACTS = {
    "suppress": ["drift"],
    "failed": [3, 0],
    "on_error": "outcome",
    "retried": [2, 0],
    "redrawn": [0, 9],
}
SAID = [
    "the drift check switched off",
    "failed runs counted as outcomes (3 left, 0 right)",
    "requests sent again (2 left, 0 right)",
    "draws that were begun, lost and drawn again (0 left, 9 right)",
]


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_every_report_says_it_near_the_verdict(verdict, make_result):
    result = make_result(verdict, settings={**ABOUT, **FACTS})
    text = words(render_text(result))
    page = words(re.sub(r"<[^>]*>", " ", render_html(result).partition("</style>")[2]))
    fragment = words(re.sub(r"<[^>]*>", " ", render_fragment(result)))
    markdown = render_markdown([result]).replace("\\", "")
    for said in SAID:
        assert said in text.partition("bound ε")[0]
        assert said in page.partition("is at least")[0] + page.partition("What came out")[0][:900]
        assert said in fragment
        assert said in next(line for line in markdown.splitlines() if "noisy" in line)
    case = ElementTree.fromstring(render_junit([result])).find(".//testcase")
    noted = {each.get("name"): each.get("value") for each in case.iter("property")}
    assert noted["with"] == "; ".join(SAID)
    if verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE):
        message = next(each.get("message") for each in case if each.tag in ("failure", "error"))
        assert "With the drift check switched off" in message


def test_other_checks_are_said_to_be_others(make_result):
    text = words(render_text(make_result(settings={**ABOUT, **FACTS})))
    assert "the other health checks saw nothing unusual" in text
    assert "the health checks saw nothing unusual" in words(render_text(make_result()))
    assert "nothing unusual in the draws, by the other checks" in render_html(
        make_result(settings={**ABOUT, **FACTS})
    )


def test_a_profile_says_it(tmp_path):
    result = em.profile(
        em.from_callable(lambda x, rng: x + rng.normal(), on_error="outcome"),
        em.Pair(0, 1),
        samples=500,
        seed=0,
        suppress=["drift"],
        distance=2,
    )
    assert (
        "with             the drift check switched off; failed runs counted as outcomes; inputs"
        in str(result)
    )
    page = words(result.save_html(tmp_path / "profile.html").read_text(encoding="utf-8"))
    said = "the drift check switched off; failed runs counted as outcomes; inputs that are 2 neighbouring steps apart"
    assert said in page.partition("The figures")[0]


def test_a_replay_of_a_recording_leaves_rows_out(make_result):
    settings = {**ABOUT, "target": "recording:rows.npz", "json": "r.json"}
    text = words(render_text(make_result(settings=settings)))
    assert (
        "epsilometer replay r.json recording:rows.npz # rows that this audit used are left out"
        in text
    )


def test_rows_of_a_recording(make_result):
    draws = [
        {"input": "left", "rows": [[0, 200]], "chose": [[0, 60]], "proved": [[60, 200]]},
        {"input": "right", "rows": [[0, 200]], "chose": [[0, 60]], "proved": [[60, 200]]},
    ]
    assert (
        recorded_rows({"recording": {"draws": draws}})
        == "rows 1 to 60 of each input chose, rows 61 to 200 proved"
    )
    assert "recorded rows 1 to 60 of each input chose" in words(
        render_text(make_result(settings={**ABOUT, "recording": {"draws": draws}}))
    )
    unseeded = {**ABOUT, "seeded_mechanism": False, "recording": {"draws": draws}}
    again = "seed 7 gives the same figures again, on the same recorded rows"
    assert again in words(render_text(make_result(settings=unseeded)))
    assert "the figures will vary" in words(
        render_text(make_result(settings={**unseeded, "recorded_to": "f"}))
    )
    draws[1] |= {"chose": [], "proved": [[0, 20], [30, 40]]}
    assert recorded_rows({"recording": {"draws": draws}}) == (
        "rows 1 to 60 of left chose, rows 61 to 200 proved; rows 1 to 20 and 31 to 40 of right proved"
    )
    draws = [{**draws[0], "shuffled": True}]
    assert (
        recorded_rows({"recording": {"draws": draws}})
        == "all 200 rows of left, shuffled: 60 chose, 140 proved"
    )
    assert recorded_rows({"recording": {"earlier": draws}}) is None
    assert recorded_rows({}) is None
