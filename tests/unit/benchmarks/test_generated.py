"""The grammar of random mechanisms: what a seed gives, how outputs are read back, the oracle, and the printed table."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import __main__ as program
from benchmarks.generated import (
    DEVELOPMENT_SETS,
    FIRST_REPORTING_SET,
    LEAKS,
    generated,
    member_seed,
)
from benchmarks.generated.factors import Number, Vector
from benchmarks.generated.families import family_member
from benchmarks.generated.grammar import draw_table
from benchmarks.generated.joints import Affine, Independent
from benchmarks.generated.laws import Choice, LawPair, Noise, Rounded, WithAtoms
from benchmarks.generated.layouts import OMITTED, Bare, Field, KeyValueText, Record, Row
from benchmarks.generated.leaves import Category, Date, Identifier, Letters, Ragged, Real
from benchmarks.generated.measuring import Outcome, Task, measure_one
from benchmarks.generated.oracle import find_oracle, store_oracles, stored_oracles
from benchmarks.generated.table import blind, markdown, measured, summary

import epsilometer as em
from epsilometer.zoo.distributions.exact import GaussianDistributions
from epsilometer_experiments.sniper.oracle import oracle_bound


def outputs_of(mechanism, side, n, seed):
    return mechanism.mechanism.function(side, n, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", [0, 7, member_seed(3, 5)])
def test_a_seed_always_gives_the_same_mechanism(seed):
    first, second = generated(seed), generated(seed)
    assert first.description == second.description
    assert first.claim == second.claim
    outputs = [outputs_of(mechanism, 1, 50, 0) for mechanism in (first, second)]
    assert list(map(repr, outputs[0])) == list(map(repr, outputs[1]))


def test_descriptions_are_single_lines_and_differ():
    descriptions = [generated(seed).description for seed in range(400)]
    assert len(set(descriptions)) == len(descriptions)
    assert not any(len(description.splitlines()) != 1 for description in descriptions)


def test_every_leak_and_every_layout_comes():
    mechanisms = [generated(seed) for seed in range(400)]
    assert {leak for mechanism in mechanisms for leak in mechanism.leaks} == set(LEAKS)
    assert {mechanism.layout.name for mechanism in mechanisms} == {
        "bare value",
        "array",
        "row",
        "dict",
        "JSON text",
        "key=value text",
        "CSV line",
        "fixed-width code",
        "sentence",
        "bytes",
    }
    notions = {type(mechanism.claim) for mechanism in mechanisms}
    assert notions == {em.PureDP, em.ApproxDP, em.GaussianDP}


def test_members_of_sets_differ_and_reporting_sets_are_apart():
    assert member_seed(1, 0) != member_seed(0, 1)
    assert member_seed(2, 0) - member_seed(1, 0) >= 1000
    assert max(DEVELOPMENT_SETS) < FIRST_REPORTING_SET


@pytest.mark.parametrize("leak", LEAKS)
def test_outputs_keep_all_that_matters(leak):
    """The ratios of outputs are those of the columns that they were made from."""
    for seed in range(6):
        mechanism = generated(seed, leaks=[leak])
        for side in (0, 1):
            outputs = outputs_of(mechanism, side, 40, seed)
            of_columns = mechanism.draw_log_ratios(side, 40, np.random.default_rng(seed))
            ratios = mechanism.log_ratio(outputs)
            assert ratios.shape == (40,)
            assert not np.isnan(ratios).any()
            np.testing.assert_allclose(ratios, of_columns, rtol=1e-9, atol=1e-9)


def test_outputs_that_the_library_has_read_are_refused():
    mechanism = generated(3)
    drawn = mechanism.mechanism.sample(mechanism.pair.left, 30, np.random.default_rng(1))
    assert len(drawn) == 30
    with pytest.raises(TypeError, match=r"mechanism\.function"):
        mechanism.log_ratio(drawn)


def test_no_ratio_is_told_by_the_wrong_side_of_an_exact_value():
    law = LawPair(
        WithAtoms(Noise("normal"), (0.5, 1.5), (0.1, 0.0)),
        WithAtoms(Noise("normal", 1.0), (0.5, 1.5), (0.0, 0.1)),
    )
    values = np.array([0.5, 1.5, 0.5000001])
    ratios = law.left.log_density(values) - law.right.log_density(values)
    assert ratios[0] == np.inf
    assert ratios[1] == -np.inf
    assert ratios[2] == pytest.approx(0.0, abs=1e-6)


def test_rounded_noise_adds_up_to_one():
    law = Rounded(Noise("Gumbel", 0.3, 0.5), 1)
    values = np.arange(-50, 200) / 10.0
    assert np.exp(law.log_density(values)).sum() == pytest.approx(1.0, abs=1e-9)


def test_correlated_noise_has_the_density_of_the_normal_law():
    matrix = np.array([[1.0, 0.0], [0.6, 0.8]])
    joint = Affine(Independent((Noise("normal"), Noise("normal"))), matrix, np.array([1.0, -1.0]))
    values = np.array([[0.2, 0.4], [2.0, -3.0]])
    covariance = matrix @ matrix.T
    centred = values - np.array([1.0, -1.0])
    exponent = -0.5 * np.einsum("ni,ij,nj->n", centred, np.linalg.inv(covariance), centred)
    constant = -np.log(2.0 * np.pi) - 0.5 * np.log(np.linalg.det(covariance))
    np.testing.assert_allclose(joint.log_density(values), exponent + constant)


NUMBER = Field("x", Real("x"))
HIDDEN = Field("y", Category("y", ("a", "b")), shown="y?")
TABLE = {
    "x": np.array([0.1, -2.5]),
    "y": np.array([1, 0]),
    "y?": np.array([1, 0]),
}


@pytest.mark.parametrize(
    ("layout", "outputs"),
    [
        (Bare(NUMBER), [0.1, -2.5]),
        (Bare(HIDDEN), ["b", None]),
        (Row((NUMBER, HIDDEN), tuple), [(0.1, "b"), (-2.5, None)]),
        (Record((NUMBER, HIDDEN), ("", "")), [{"x": 0.1, "y": "b"}, {"x": -2.5}]),
        (
            Record((NUMBER, replace(HIDDEN, absent=None)), ("", "in")),
            [{"in": {"y": "b"}, "x": 0.1}, {"in": {"y": None}, "x": -2.5}],
        ),
        (KeyValueText((NUMBER, HIDDEN), "; "), ["x=0.1; y=b", "x=-2.5"]),
    ],
)
def test_layouts_show_fields_and_read_them_back(layout, outputs):
    assert list(layout.render(TABLE)) == outputs
    table = layout.read(outputs)
    for column, values in table.items():
        np.testing.assert_array_equal(values, TABLE[column])
    assert HIDDEN.absent is OMITTED


@pytest.mark.parametrize("style", ["iso", "compact", "dotted", "object"])
@pytest.mark.parametrize("unit", ["D", "s"])
def test_dates_are_read_back(style, unit):
    leaf = Date("d", style, unit)
    moments = np.array([19_000, 20_088]) * (1 if unit == "D" else 86_400) + 7
    np.testing.assert_array_equal(leaf.recognise(leaf.show(moments)), moments)
    if style != "object":
        np.testing.assert_array_equal(leaf.parse(leaf.write(moments)), moments)


@pytest.mark.parametrize("style", ["hex", "dashed", "number", "user"])
def test_identifiers_are_read_back(style):
    leaf = Identifier("id", style)
    numbers = np.array([0, 5, 2**52 - 1])
    np.testing.assert_array_equal(leaf.recognise(leaf.show(numbers)), numbers)


def test_lists_and_letters_are_read_back_up_to_their_length():
    table = {"v": np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0]]), "n": np.array([3, 0, 1])}
    leaf = Category("v", ("a", "b"))
    assert Ragged(leaf, "n", 3).values(table) == [["a", "b", "b"], [], ["b"]]
    assert Letters(leaf, "n", 3).values(table) == ["abb", "-", "b"]
    for node in (Ragged(leaf, "n", 3), Letters(leaf, "n", 3)):
        for back in (node.read(node.values(table)), node.read_texts(node.texts(table))):
            np.testing.assert_array_equal(back["n"], table["n"])
            np.testing.assert_array_equal(back["v"], [[0, 1, 1], [0, 0, 0], [1, 0, 0]])


def with_factors(*factors):
    return replace(generated(0), factors=factors, claim=em.PureDP(1.0))


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_the_oracle_of_normal_noise_is_that_of_its_law(n):
    """Two columns along a direction are as one: both oracles know the exact law."""
    noise = Independent((Noise("normal"), Noise("normal")))
    moved = Affine(noise, np.eye(2), np.array([0.6, 0.8]))
    mechanism = with_factors(Vector(("a", "b"), noise, moved))
    bound = find_oracle(mechanism, n, 400_000).bound
    assert bound == pytest.approx(oracle_bound(GaussianDistributions(1.0), n), rel=0.02)


def test_the_oracle_of_few_outcomes_is_their_best_ratio():
    law = LawPair(Choice((0.5, 0.4, 0.1)), Choice((0.5, 0.49, 0.01)))
    oracle = find_oracle(with_factors(Number("c", law)), 10_000, 400_000)
    assert (oracle.p, oracle.q) == (pytest.approx(0.1, rel=0.02), pytest.approx(0.01, rel=0.02))
    assert oracle.threshold == pytest.approx(np.log(10.0))
    assert oracle.direction == "left"


def test_the_oracle_of_disjoint_outputs_is_what_all_draws_prove():
    law = LawPair(Choice((1.0, 0.0)), Choice((0.0, 1.0)))
    oracle = find_oracle(with_factors(Number("c", law)), 1000, 20_000)
    assert (oracle.p, oracle.q) == (1.0, 0.0)
    assert 5.0 < oracle.bound < np.log(1000.0)


def test_equal_sides_have_an_oracle_that_proves_nothing():
    law = LawPair(Noise("normal"), Noise("normal"))
    assert find_oracle(with_factors(Number("c", law)), 1000, 20_000).bound < 0.01


def test_oracles_are_kept_for_the_same_grammar_only(tmp_path):
    path = tmp_path / "oracles.json"
    assert stored_oracles(path) == {}
    store_oracles({"1 at 10 by 20": 0.5}, path)
    store_oracles({"2 at 10 by 20": 0.7}, path)
    assert stored_oracles(path) == {"1 at 10 by 20": 0.5, "2 at 10 by 20": 0.7}
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "digest": "of other code"}))
    assert stored_oracles(path) == {}


def outcome(seed, oracle, bound, empty=0, audits=1):
    return Outcome(
        seed=seed,
        description=f"mechanism {seed}",
        leaks=("location",),
        layout="dict",
        notion="PureDP",
        oracle=oracle,
        bound=bound,
        event="x ≥ 1",
        seconds=0.1,
        empty=empty,
        audits=audits,
    )


OUTCOMES = [
    outcome(0, 1.0, 0.9),
    outcome(1, 1.0, 0.8),
    outcome(2, 2.0, 0.0, empty=2, audits=3),
    outcome(3, 1.0, 0.0, empty=1, audits=8),
    outcome(4, 0.01, 0.0, empty=1),
]


def test_the_summary_leaves_out_what_has_no_oracle():
    figures = summary(OUTCOMES)
    assert (figures["mechanisms"], figures["compared"]) == (5, 4)
    assert figures["median"] == pytest.approx(0.4)
    assert figures["mean"] == pytest.approx(0.425)
    assert figures["least"] == 0.0
    assert [each.seed for each in measured(OUTCOMES)] == [0, 1, 2, 3]
    assert [each.seed for each in blind(OUTCOMES)] == [2]


def test_the_table_has_the_worst_first_and_keeps_reporting_sets_closed():
    text = markdown(OUTCOMES, "a title")
    assert text.index("seed 2:") < text.index("seed 1:") < text.index("seed 0:")
    assert "in 2 of 3 audits" in text
    closed = markdown(OUTCOMES, "a title", is_closed=True)
    assert "mechanism 2" not in closed
    assert "location" not in closed
    assert "| 0.400 |" in closed


def test_the_command_measures_a_set(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "generated --count 2 --seed 0 --samples 1000 --population 4e4 --jobs 1 --json out.json"
    assert program.main(words.split()) == 0
    assert "### Set 0, 2 mechanisms at 1e3 draws" in capsys.readouterr().out
    content = json.loads((tmp_path / "out.json").read_text())
    assert [each["seed"] for each in content["mechanisms"]] == [0, 1]
    assert content["summary"]["mechanisms"] == 2


def test_families_outside_the_grammar_take_turns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert [family_member(seed).leaks for seed in (0, 1, 10)] == [("waves",), ("ring",), ("waves",)]
    words = "generated --families --count 1 --seed 0 --samples 1000 --population 4e4 --jobs 1"
    assert program.main(words.split()) == 0
    assert "1 members of families outside the grammar at 1e3 draws" in capsys.readouterr().out


def test_an_audit_that_is_told_the_ratios_needs_no_score():
    """The signs of two numbers in a JSON text: their exact ratio has two values, which any learner can tell apart."""
    task = Task(seed=member_seed(1, 137), n=10_000, population=100_000, oracle=None, is_told=True)
    told = measure_one(task)
    assert told.oracle == pytest.approx(0.79, abs=0.02)
    assert told.share > 0.9


def test_an_audit_that_proves_nothing_is_repeated(monkeypatch):
    """What proves nothing by bad luck is told from what is never seen."""
    monkeypatch.setattr(
        "benchmarks.generated.measuring.generated",
        lambda seed: replace(
            with_factors(Number("c", LawPair(Choice((1.0,)), Choice((1.0,))))),
            layout=Bare(Field("c", Category("c", ("same",)))),
            mechanism=em.from_batch(lambda dataset, n, rng: ["same"] * n),
        ),
    )
    found = measure_one(Task(seed=0, n=500, population=1000, oracle=1.0))
    assert (found.empty, found.audits) == (2, 2)
    assert found.share == 0.0


def test_tables_have_the_columns_of_all_factors():
    mechanism = generated(11)
    table = draw_table(mechanism.factors, 0, 5, np.random.default_rng(0))
    assert all(len(column) == 5 for column in table.values())
