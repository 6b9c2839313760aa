"""Audits described in TOML."""

import pytest

from epsilometer.cli.output import Answers
from epsilometer.cli.request import given_settings, make_request
from epsilometer.cli.settings_file import read_settings
from epsilometer.errors import InputError
from epsilometer.inputs import Pair


def request_of(target, flags):
    return make_request(target, given_settings(**flags), Answers())


@pytest.fixture
def toml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        path = tmp_path / "audit.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_everything_is_read(toml, tmp_path):
    (tmp_path / "left.json").write_text("[1]")
    path = toml(
        'mechanism = "zoo:laplace"\nleft = "@left.json"\nright = "@@x"\nepsilon = 1.0\nsamples = 100\n'
    )
    assert read_settings(path) == {
        "mechanism": "zoo:laplace",
        "left": [1],
        "right": "@x",
        "epsilon": 1.0,
        "samples": 100,
    }


def test_pairs(toml):
    plan = request_of(str(toml('mechanism = "zoo:laplace"\npairs = [[0, 1], [2, 3]]\n')), {})
    assert plan.inputs == [(0, 1), (2, 3)]
    assert plan.record == {"target": "zoo:laplace"}


def test_flags_replace_the_whole_claim_and_pair(toml):
    path = toml('mechanism = "zoo:laplace"\npairs = [[0, 1]]\nepsilon = 1\ndelta = 0.1\nseed = 1\n')
    plan = request_of(str(path), {"mu": 1.0, "left": "5", "right": "6", "seed": 2, "samples": None})
    assert plan.parameters == {"mu": 1.0}
    assert plan.inputs == Pair(5, 6)
    assert plan.keywords == {"seed": 2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            'mechanism = "zoo:laplace"\nepsilom = 1\n',
            "unknown key 'epsilom'; did you mean 'epsilon'",
        ),
        ("epsilon = 1\n", "names no mechanism"),
        ("mechanism = 3\n", "mechanism = 3 must be a text"),
        ('mechanism = "zoo:laplace"\npairs = [[1, 2, 3]]\n', r"must be \[left, right\]"),
        ('mechanism = "zoo:laplace"\npairs = [[0, 1]]\nleft = 1\nright = 2\n', "not both"),
        ('mechanism = "zoo:laplace"\nleft = 1\n', "--left needs --right"),
        ('mechanism = "zoo:laplace"\nleft = "@none.json"\nright = 1\n', "missing"),
        ("mechanism = \n", "is not TOML"),
    ],
)
def test_nonsense_is_named(toml, text, reason):
    with pytest.raises(InputError, match=reason):
        request_of(str(toml(text)), {})
