"""`method=` takes an object as well as a name."""

from dataclasses import dataclass, fields, replace

import pytest

import epsilometer as em
from epsilometer.methods import find_method, names
from epsilometer.methods.events import EventProposal
from epsilometer.testing import Coin

COIN = Coin(0.9, 0.2)


class Stranger:
    """Has the names of a method, and nothing else."""

    name, summary, guarantee = "sequential", "bears the name of one of ours, and is none", "exact"

    def propose(self, left, right, task):
        return find_method("events").propose(left, right, task)


@pytest.mark.parametrize("name", ["events", "auto", "hockey-stick"])
def test_an_object_of_ours_is_as_good_as_its_name(name):
    by_name, by_object = (
        em.audit(COIN, None, em.PureDP(1.0), samples=2000, seed=3, method=each)
        for each in (name, find_method(name))
    )
    assert by_name.findings[0].to_dict() == by_object.findings[0].to_dict()
    assert by_object.settings["method"] == name


@pytest.mark.parametrize(
    "options", [{"stop_early": True, "method": "auto"}, {"method": find_method("sequential")}]
)
def test_early_stopping_by_name_and_by_object(options):
    expected = em.audit(COIN, None, em.PureDP(0.5), samples=2000, seed=3, method="sequential")
    found = em.audit(COIN, None, em.PureDP(0.5), samples=2000, seed=3, **options)
    assert found.findings[0].to_dict() == expected.findings[0].to_dict()
    assert found.samples_used < (2000, 2000)


@pytest.mark.parametrize("run", [em.audit, em.measure])
def test_an_object_that_just_has_the_names_works(run):
    what = em.PureDP(1.0) if run is em.audit else em.PureDP
    expected = run(COIN, None, what, samples=2000, seed=3, method="events")
    found = run(COIN, None, what, samples=2000, seed=3, method=Stranger())
    assert found.findings[0].to_dict() == expected.findings[0].to_dict()
    assert found.samples_used == (2000, 2000)


def test_compare_and_finders_take_objects_too(rng):
    recorded = rng.random((2, 400)) < [[0.9], [0.2]]
    assert (
        em.compare(*recorded, em.PureDP(0.3), seed=0, method=Stranger()).verdict
        is em.Verdict.REFUTED
    )
    finder = em.finders.Random(
        em.domains.Number(low=0.0, high=1.0, sensitivity=0.9), trials=4, samples=400, seed=0
    )
    result = em.audit(
        COIN.mechanism, finder, em.PureDP(0.3), samples=2000, seed=0, method=Stranger()
    )
    assert result.settings["method"] == "sequential"


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Stranger, "make an object of it"),
        (object(), r"lacks name, summary, guarantee, propose\(left, right, task\)"),
        (None, "neither a name"),
        ("evnts", "did you mean 'events'"),
    ],
)
def test_what_is_no_method_is_refused(method, words):
    with pytest.raises(em.InputError, match=words):
        em.audit(COIN, None, em.PureDP(1.0), samples=2000, method=method)


@pytest.mark.parametrize(
    "wish", [{"options": {"a": 1}}, {"stop_early": True}, {"representation": "bits"}]
)
def test_what_an_object_cannot_do_is_refused(wish):
    with pytest.raises(em.InputError):
        em.audit(COIN, None, em.PureDP(1.0), samples=2000, method=Stranger(), **wish)


def test_methods_are_found_by_name_from_the_top():
    for name in set(names()) - {"ldp-histogram"}:  # that one has options that it needs
        assert em.methods.find_method(name).name == name


@dataclass(frozen=True)
class Careless(EventProposal):
    """Returns something that was not asked for."""

    change: dict

    def certify(self, left, right, pair, failure_probability):
        return replace(
            EventProposal.certify(self, left, right, pair, failure_probability), **self.change
        )


@dataclass
class CarelessMethod(Stranger):
    change: dict

    def propose(self, left, right, task):
        inner = Stranger.propose(self, left, right, task)
        return Careless(
            **{each.name: getattr(inner, each.name) for each in fields(inner)}, change=self.change
        )


@pytest.mark.parametrize(
    "change",
    [
        {"confidence": 0.9},
        {"confidence": 1.0},
        {"lower_bound": float("nan")},
        {"lower_bound": float("inf")},
    ],
)
def test_a_bound_that_costs_more_than_was_paid_is_refused(change, rng):
    with pytest.raises(
        em.EpsilometerError, match=r"the method 'events' gave lower_bound=.* was asked for"
    ):
        em.audit(COIN, None, em.PureDP(1.0), samples=2000, seed=0, method=CarelessMethod(change))
    with pytest.raises(em.EpsilometerError, match="was asked for"):
        em.compare(
            *(rng.random((2, 400)) < 0.5), em.PureDP(1.0), seed=0, method=CarelessMethod(change)
        )


@pytest.mark.parametrize("name", ["certify_secondary", "certify_beside"])
def test_secondary_findings_of_a_stranger_are_reported_under_both_names(name):
    class Wrapped:
        """A proposal that just has the names, and one secondary finding."""

        def __init__(self, proposal):
            self.proposal = proposal
            self.predicted = proposal.predicted
            self.tally = proposal.tally
            self.certify = proposal.certify
            setattr(self, name, self._secondary)

        def _secondary(self, *tallies_and_pair):
            return [replace(self.proposal.certify(*tallies_and_pair), method="secondary")]

    class WithSecondary(Stranger):
        """Wraps the proposals of another method."""

        def propose(self, left, right, task):
            return Wrapped(super().propose(left, right, task))

    result = em.audit(COIN, None, em.PureDP(1.0), samples=2000, seed=3, method=WithSecondary())
    assert [finding.method for finding in result.findings] == ["events", "secondary"]
