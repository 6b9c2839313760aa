"""Sequential audits: stopping, checkpoints, wishes that do not go together."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.storage.journal import stored_seed

PAIR = (0.0, 1.0)


def half_noise(dataset, n, rng):
    return rng.laplace(dataset, 1 / 1.4, n)


def decisions(result):
    return (
        result.findings[0].details["bound_over_time"],
        result.findings[0].details["wealth"],
        result.verdict,
    )


def test_stops_as_soon_as_the_claim_is_refuted():
    result = em.audit(em.zoo.svt5(epsilon=0.7), samples=5000, seed=0, stop_early=True)
    details = result.findings[0].details
    assert result.is_refuted
    assert result.samples_used[0] < 200
    assert details["stopped"] == "refuted"
    assert result.lower_bound > 0.7
    assert details["wealth"][-1][1] >= 20.0 > details["wealth"][-2][1]
    assert em.AuditResult.from_json(result.to_json()).to_dict() == result.to_dict()
    assert result.guarantee == "exact"


def test_works_from_twenty_samples():
    always = em.audit(
        em.from_batch(lambda d, n, rng: np.full(n, d)),
        (0, 1),
        "eps=1",
        samples=20,
        seed=0,
        stop_early=True,
    )
    assert always.is_refuted
    nothing = em.audit(em.zoo.laplace(), samples=20, seed=0, stop_early=True)
    assert nothing.verdict is em.Verdict.NOT_REFUTED
    assert nothing.samples_used == (20, 20)
    assert nothing.findings[0].details["stopped"] == "samples"


def test_a_true_claim_is_not_refuted():
    # With something to spare: a claim that just holds may be refuted once in twenty (`tests/statistical`).
    result = em.audit(em.zoo.laplace(), None, "eps=1.2", samples=3000, seed=0, stop_early=True)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.detectable is None
    assert 0.3 < result.lower_bound < 1.0


@pytest.mark.parametrize("claim", ["eps=.3,delta=.01", "mu=.4", "rho=.05", "eps=.1,order=2"])
def test_every_notion(claim):
    assert em.audit(
        em.from_batch(half_noise), PAIR, claim, samples=3000, seed=1, stop_early=True
    ).is_refuted


def test_measuring():
    result = em.measure(
        em.from_batch(half_noise), PAIR, em.PureDP, samples=2000, seed=0, method="sequential"
    )
    assert result.verdict is None
    assert 0.8 < result.lower_bound <= 1.4


def test_several_pairs():
    pairs = [em.Pair(0.0, 0.0, equal=True), (0.0, 1.0), (0.0, 0.1)]
    result = em.audit(
        em.from_batch(half_noise), pairs, "eps=.7", samples=2000, seed=0, stop_early=True
    )
    assert result.is_refuted
    assert result.witness.pair == em.Pair(0.0, 1.0)


def test_the_witness_can_be_replayed():
    result = em.audit(
        em.from_batch(half_noise), PAIR, "eps=.7", samples=5000, seed=0, stop_early=True
    )
    again = em.replay(
        em.AuditResult.from_json(result.to_json()),
        em.from_batch(half_noise),
        samples=20_000,
        seed=1,
    )
    assert again.lower_bound > 0.7


def test_workers_do_not_change_the_answer():
    single = em.zoo.svt5(epsilon=0.7)
    one, two = (
        em.audit(single, samples=500, seed=4, stop_early=True, jobs=jobs) for jobs in (1, 2)
    )
    assert decisions(one) == decisions(two)


def test_time_is_kept(monkeypatch):
    """By a clock that only the mechanism moves on, 5 ms per call, so that no other work on this machine counts."""
    calls = []
    monkeypatch.setattr("epsilometer.engine.deadlines.monotonic", lambda: 0.005 * len(calls))

    def slow(dataset, rng):
        calls.append(dataset)
        return rng.random()

    result = em.audit(
        slow, PAIR, "eps=1", samples=100_000, seed=0, max_seconds=1.0, stop_early=True
    )
    assert result.findings[0].details["stopped"] == "seconds"
    assert 200 <= len(calls) < 400
    with pytest.raises(em.MechanismError, match="pilot"):
        em.audit(slow, PAIR, "eps=1", samples=100_000, seed=0, max_seconds=0.05, stop_early=True)


class Interrupted(Exception):
    pass


class Interrupter:
    """Stops the audit after so many outputs, as Ctrl-C does."""

    def __init__(self, after):
        self.left = after

    def advance(self, n):
        self.left -= n
        if self.left < 0:
            raise Interrupted


@pytest.mark.parametrize("every", [97, 333])
def test_an_interrupted_audit_goes_on_as_if_nothing_had_happened(tmp_path, every):
    keywords = {"samples": 20_000, "seed": 5, "stop_early": True}
    mechanism = em.from_batch(half_noise, name="half")
    whole = em.audit(mechanism, PAIR, "eps=1", **keywords)
    path = tmp_path / "audit.npz"
    interruptions, result = 0, None
    while result is None:
        try:
            result = em.audit(
                mechanism,
                PAIR,
                "eps=1",
                checkpoint=path,
                progress=Interrupter(every * (1 + interruptions)),
                **keywords,
            )
        except Interrupted:
            interruptions += 1
    assert interruptions >= 2
    assert decisions(result) == decisions(whole)
    assert result.samples_used == whole.samples_used
    # Once more: it is over, nothing is drawn.
    again = em.audit(mechanism, PAIR, "eps=1", checkpoint=path, progress=Interrupter(0), **keywords)
    assert decisions(again) == decisions(whole)


def test_more_samples_continue_the_evidence(tmp_path):
    path = tmp_path / "audit.npz"
    mechanism = em.from_batch(half_noise, name="half")
    few = em.audit(
        mechanism, PAIR, "eps=1.2", samples=100, seed=2, stop_early=True, checkpoint=path
    )
    assert few.findings[0].details["stopped"] == "samples"
    assert stored_seed(path) == 2
    more = em.audit(
        mechanism, PAIR, "eps=1.2", samples=400, stop_early=True, checkpoint=path
    )  # the seed is that of the file
    assert more.samples_used == (400, 400)
    assert (
        more.findings[0].details["wealth"][: len(few.findings[0].details["wealth"]) - 1]
        == few.findings[0].details["wealth"][:-1]
    )


def test_draws_of_every_kind_survive_the_checkpoint(tmp_path):
    kinds = [None, "word", 3, 2.5, (True, 1.0), float("nan")]

    def mixed(dataset, rng):
        return kinds[int(rng.integers(6 if dataset else 5))]

    keywords = {"samples": 300, "seed": 3, "stop_early": True}
    whole = em.audit(mixed, (0, 1), "eps=3", **keywords)
    path = tmp_path / "audit.npz"
    with pytest.raises(Interrupted):
        em.audit(mixed, (0, 1), "eps=3", checkpoint=path, progress=Interrupter(200), **keywords)
    assert decisions(em.audit(mixed, (0, 1), "eps=3", checkpoint=path, **keywords)) == decisions(
        whole
    )


def test_a_checkpoint_belongs_to_one_audit(tmp_path):
    path = tmp_path / "audit.npz"
    mechanism = em.from_batch(half_noise, name="half")
    em.audit(mechanism, PAIR, "eps=1.2", samples=60, seed=2, stop_early=True, checkpoint=path)
    for changed in ({"claim": "eps=1"}, {"confidence": 0.9}, {"seed": 3}, {"inputs": (0.0, 2.0)}):
        settings = {"inputs": PAIR, "claim": "eps=1.2", "seed": 2} | changed
        with pytest.raises(em.InputError, match="another audit"):
            em.audit(mechanism, samples=60, stop_early=True, checkpoint=path, **settings)
    path.write_bytes(b"no archive")
    with pytest.raises(em.InputError, match="not a checkpoint"):
        em.audit(mechanism, PAIR, "eps=1.2", samples=60, stop_early=True, checkpoint=path)
    with pytest.raises(em.InputError, match="no folder"):
        em.audit(
            mechanism,
            PAIR,
            "eps=1.2",
            samples=60,
            stop_early=True,
            checkpoint=tmp_path / "no" / "file.npz",
        )


def test_the_current_bound_is_told():
    class Listener:
        def __init__(self):
            self.heard = []

        def advance(self, n):
            pass

        def tell(self, text):
            self.heard.append(text)

    listener = Listener()
    em.audit(em.zoo.svt5(epsilon=0.7), samples=500, seed=0, stop_early=True, progress=listener)
    assert "ε ≥" in listener.heard[-1]


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"method": "events", "stop_early": True}, "cannot stop early"),
        ({"stop_early": True, "representation": "bits"}, "cannot be combined"),
        ({"stop_early": True, "options": 3}, "sequential.Options"),
        ({"representation": "hex"}, "representation='hex'"),
        ({"method": "mmd", "representation": "all"}, "goes with the method events"),
        ({"max_seconds": -1.0}, "max_seconds=-1.0"),
        ({"stop_early": True, "samples": 25, "inputs": [PAIR] * 10}, "too few"),
    ],
)
def test_wishes_that_do_not_go_together(wishes, said):
    settings = {"inputs": PAIR, "claim": "eps=1", "samples": 100} | wishes
    with pytest.raises(em.InputError, match=said):
        em.audit(em.from_batch(half_noise), **settings)


def test_options_are_checked():
    for wrong in ({"pilot": 2}, {"growth": 0.0}, {"max_seconds": 0.0}):
        with pytest.raises(em.InputError):
            em.sequential.Options(**wrong)


def test_the_wealth_ladder_contains_the_claim():
    from epsilometer.methods.sequential import ladder_of

    ladder = ladder_of(em.PureDP(0.7))
    assert 0.7 < ladder.values[ladder.at_claim] < 0.7 + 1e-6
    wealth = np.full(len(ladder.values), math.log(19.0))
    assert ladder.bound(wealth, 0.05) == 0.0
    wealth[:5] = math.log(21.0)
    assert ladder.bound(wealth, 0.05) == ladder.values[4]
    wealth[10] = 99.0  # above a gap: does not count
    assert ladder.bound(wealth, 0.05) == ladder.values[4]
