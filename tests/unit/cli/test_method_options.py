"""Options of a method from flags, files and mappings."""

import pytest

import epsilometer as em
from epsilometer.cli.files import read_options
from epsilometer.cli.output import Answers
from epsilometer.cli.request import given_settings, make_request
from epsilometer.errors import InputError
from epsilometer.methods.registry import as_options, find_method, names, option_names


def request_of(target, flags):
    return make_request(target, given_settings(**flags), Answers())


FILE = 'mechanism = "zoo:laplace"\nmethod = "local"\n[options]\nfloor = 0.01\nregion = [-1, 1]\n'


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "audit.toml"
    path.write_text(FILE, encoding="utf-8")
    return str(path)


def test_values_are_json_or_words():
    assert read_options(
        ["domain=[0, 1]", "lipschitz=1.5", "kernel=biweight", "floor=null", "bound=.5"]
    ) == {
        "domain": [0, 1],
        "lipschitz": 1.5,
        "kernel": "biweight",
        "floor": None,
        "bound": 0.5,
    }


@pytest.mark.parametrize("entries", [["floor"], ["=1"], ["a b=1"], ["floor=1", "floor=2"]])
def test_what_is_no_option_is_refused(entries):
    with pytest.raises(InputError, match="--option"):
        read_options(entries)


def test_a_file_gives_options_and_flags_add_to_them(toml):
    assert request_of(toml, {}).keywords["options"] == {"floor": 0.01, "region": [-1, 1]}
    assert request_of(toml, {"option": ["floor=0.5"]}).keywords["options"] == {
        "floor": 0.5,
        "region": [-1, 1],
    }


def test_another_method_on_the_command_line_leaves_the_options_of_the_file_behind(toml):
    keywords = request_of(toml, {"method": "mmd", "option": ["certificate=published"]}).keywords
    assert keywords["method"] == "mmd"
    assert keywords["options"] == {"certificate": "published"}


def test_a_mapping_becomes_the_options_of_the_method():
    assert as_options("ldp-histogram", {"domain": [0, 1], "lipschitz": 1.5}) == em.ldp.Options(
        (0, 1), 1.5
    )
    given = em.auditorium.mmd.Options()
    assert as_options("mmd", given) is given


def test_a_mapping_and_its_object_give_the_same_audit():
    settings = {"method": "local", "samples": 2000, "seed": 3}
    entry = em.zoo.laplace(epsilon=1)
    by_mapping = em.audit(entry, options={"region": [-2, 2], "floor": 0.01}, **settings)
    by_object = em.audit(entry, options=em.local.Options(region=(-2, 2), floor=0.01), **settings)
    assert by_mapping.lower_bound == by_object.lower_bound
    assert by_mapping.settings["options"] == by_object.settings["options"]


def test_stopping_early_takes_a_mapping_too():
    assert (
        em.audit(em.zoo.svt5(), stop_early=True, samples=400, seed=0, options={"pilot": 20}).verdict
        is not None
    )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bits", {"floor": 1}, "has no options"),
        ("local", {"flor": 1}, "did you mean 'floor'"),
        ("ldp-histogram", {"lipschitz": 1.5}, "ldp-histogram"),
        ("local", {"floor": "much"}, "floor|local"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(InputError, match=message):
        find_method(name, options)


def test_every_method_tells_its_options():
    assert {name for name in names() if option_names(name)} >= {
        "local",
        "mmd",
        "hockey-stick",
        "renyi-variational",
    }
    assert option_names("bits") == []
