"""Finders from flags and files."""

from pathlib import Path

import pytest

from epsilometer.cli.output import Answers
from epsilometer.cli.request import given_settings, make_request
from epsilometer.cli.suite_file import read_suite
from epsilometer.errors import InputError


def request_of(target, flags):
    return make_request(target, given_settings(**flags), Answers())


TARGET = "zoo:dp_mean"
SEARCH = 'mechanism = "zoo:dp_mean"\nepsilon = 1.0\n[finder]\nname = "random"\ndomain = "vector:10:0:1"\ntrials = 9\n'


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "audit.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_flags_make_a_finder():
    flags = {
        "finder": "random",
        "domain": "vector:10",
        "relation": "replace",
        "trials": 5,
        "trial_samples": 700,
    }
    described = request_of(TARGET, {**flags, "seed": 4, "search_on": True}).inputs.describe()
    assert described["name"] == "random"
    assert (described["trials"], described["samples"], described["seed"]) == (5, 700, 4)
    assert described["stop_at_refutation"] is False


def test_a_file_describes_a_finder(toml):
    plan = request_of(toml(SEARCH + "samples = 600\nseed = 2\n"), {"seed": 7})
    described = plan.inputs.describe()
    assert (described["trials"], described["samples"], described["seed"]) == (9, 600, 2)
    assert plan.keywords == {"seed": 7}


def test_flags_change_a_finder_of_a_file(toml):
    described = request_of(toml(SEARCH), {"trials": 4, "finder": "grid"}).inputs.describe()
    assert (described["name"], described["trials"]) == ("grid", 4)
    assert described["domain"].startswith("Vector(size=10")


def test_inputs_of_the_command_line_replace_a_finder_of_a_file(toml):
    assert request_of(toml(SEARCH), {"left": "[0]", "right": "[1]"}).inputs.left == [0]


def test_patterns_have_no_seed():
    assert (
        request_of(
            "zoo:svt5", {"finder": "patterns", "domain": "queries:10", "seed": 3}
        ).inputs.trials
        == 8
    )


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"trials": 3}, "--trials is for a search; say what to search with --domain"),
        ({"trial_samples": 300}, "--trial-samples is for a search"),
        ({"finder": "random"}, "needs a domain"),
        ({"finder": "random", "domain": "vector:3", "left": "1", "right": "2"}, "not both"),
        ({"finder": "random", "domain": "vector:3", "relation": "l2"}, "relation='l2' is unknown"),
    ],
)
def test_flags_that_do_not_go_together(flags, reason):
    with pytest.raises(InputError, match=reason):
        request_of(TARGET, flags)


def test_a_finder_in_a_suite_replaces_the_inputs_of_all(toml):
    text = 'epsilon = 1\nleft = 0\nright = 1\n[[audit]]\nmechanism = "zoo:laplace"\n[[audit]]\n'
    path = toml(
        text + 'mechanism = "zoo:dp_mean"\n[audit.finder]\nname = "grid"\ndomain = "vector:10"\n'
    )
    one, other = read_suite(Path(path)).entries
    assert (one.settings["left"], one.settings["right"]) == (0, 1)
    assert "left" not in other.settings
    assert other.settings["finder"]["name"] == "grid"


def test_the_table_must_be_one(toml):
    with pytest.raises(InputError, match="finder = 'random' must be a table"):
        request_of(toml('mechanism = "zoo:laplace"\nfinder = "random"\n'), {})


def test_a_domain_alone_is_searched():
    described = request_of(
        TARGET, {"domain": "records:number:0:1", "relation": "add-remove", "seed": 4}
    ).inputs.describe()
    assert (described["name"], described["relation"], described["beyond"]) == (
        "search",
        "add-remove",
        False,
    )
    assert described["domain"].startswith("Records(value=Number(low=0, high=1")
    assert described["seed"] == 4


def test_settings_of_a_search_may_stand_outside_of_its_table(toml):
    text = 'mechanism = "zoo:dp_mean"\nepsilon = 1.0\nbeyond = true\ntrial_samples = 700\n'
    domain = 'domain = {kind = "table", rows = [0, 3], columns = {age = "integer:0:99", ill = "boolean"}}\n'
    described = request_of(
        toml(text + domain), {"relation": "replace", "trials": 7}
    ).inputs.describe()
    assert (described["beyond"], described["samples"], described["trials"]) == (True, 700, 7)
    assert described["domain"].startswith("Table(")


def test_flags_replace_the_inputs_of_a_file(toml):
    path = toml('mechanism = "zoo:dp_mean"\nepsilon = 1.0\nleft = [0]\nright = [1]\n')
    assert request_of(path, {"domain": "records:number:0:1"}).inputs.describe()["name"] == "search"
    path = toml('mechanism = "zoo:dp_mean"\nepsilon = 1.0\ndomain = "records:number:0:1"\n')
    assert request_of(path, {"left": "[0]", "right": "[1]"}).inputs.left == [0]


def test_the_neighbours_of_a_file(toml, tmp_path):
    (tmp_path / "data.csv").write_text("age,ill\n31,true\n54,false\n", encoding="utf-8")
    flags = {"around": str(tmp_path / "data.csv"), "relation": "add-remove"}
    for plan in (
        request_of(TARGET, flags),
        request_of(
            toml(
                'mechanism = "zoo:dp_mean"\nepsilon = 1.0\naround = "data.csv"\nrelation = "add-remove"\n'
            ),
            {},
        ),
        request_of(
            toml(
                'mechanism = "zoo:dp_mean"\n[finder]\naround = "@data.csv"\nrelation = "add-remove"\n'
            ),
            {},
        ),
    ):
        pair = plan.inputs.ask()
        assert plan.inputs.describe()["relation"] == "add-remove"
        assert abs(len(pair.left) - len(pair.right)) == 1
        assert {"age", "ill"} == pair.left[0].keys()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"beyond": True}, "--beyond is for a search"),
        ({"domain": "records:number:0"}, "write number:LOW:HIGH"),
        ({"domain": "records:numbr:0:1"}, "did you mean 'number'"),
        ({"around": "nowhere.csv"}, "nowhere.csv"),
        ({"domain": "number:0:1", "left": "1", "right": "2"}, "not both"),
    ],
)
def test_mistakes_in_a_search_are_told(flags, reason):
    with pytest.raises(InputError, match=reason):
        request_of(TARGET, flags)
